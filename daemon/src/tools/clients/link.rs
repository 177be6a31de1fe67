//! The way to a client that serves tools: requests to it on its own connection. The wire implements it.

use futures_util::future::BoxFuture;
use serde_json::Value;
use serde_json::value::RawValue;
use std::io;
use std::sync::Arc;
use toold_proto::approval::Caller;

/// A request to a client.
pub struct LinkRequest {
    /// The call for which it is made. `settled` finds it by this.
    pub call: Arc<str>,
    pub method: &'static str,
    pub params: Value,
    /// Runs when there is room for the request, right before it is sent. An error: it is not sent.
    pub before: Box<dyn FnOnce() -> io::Result<()> + Send>,
}

/// The answer of a client: a result or an error object, as its text.
#[derive(Debug)]
pub enum LinkAnswer {
    Result(Box<RawValue>),
    Error(Box<RawValue>),
    /// Both or neither.
    Malformed,
}

/// The connection ended before the answer came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkClosed;

/// The reason why a request was not sent.
#[derive(Debug)]
pub enum SendError {
    Closed,
    /// `before` failed.
    Refused(io::Error),
}

/// The answer to a request that was sent. Dropped before it has come: the client is sent `$/cancelRequest`.
pub type PendingAnswer = BoxFuture<'static, Result<LinkAnswer, LinkClosed>>;

/// The connection of a client that can be sent requests.
pub trait ClientLink: Send + Sync {
    /// Returns the number of the connection, unique while the daemon runs.
    fn connection(&self) -> u64;

    fn caller(&self) -> Caller;

    /// Takes answers of the client from now on. Those that answer nothing are ignored and counted.
    fn accept_answers(&self);

    /// Lets requests and notifications out from now on. Before that they wait, so that the answer to the registration is first.
    fn open(&self);

    /// Sends a request, as soon as the client has read enough of what was sent before.
    fn send(&self, request: LinkRequest) -> BoxFuture<'static, Result<PendingAnswer, SendError>>;

    /// Sends a notification, in its turn.
    fn notify(&self, method: &'static str, params: Value) -> BoxFuture<'static, ()>;

    /// Returns when the client has answered what was cancelled of a call, or does not in a bounded time.
    fn settled(&self, call: Arc<str>) -> BoxFuture<'static, ()>;

    /// Returns when the connection has ended, and at once after that.
    fn closed(&self) -> BoxFuture<'static, ()>;

    /// Returns the number of answers that were ignored.
    fn ignored_answers(&self) -> u64;
}
