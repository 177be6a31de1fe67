//! Requests of the daemon to a client, on the client's own connection, and their answers. The ids are texts of the daemon, so that
//! none is mistaken for one of the client's.
//!
//! A request waits until the client has read enough of what was pushed before: a client that reads nothing costs what a
//! subscriber that reads nothing costs, and delays no other client.

use super::PushBudget;
use super::message::{ClientAnswer, RequestId, Response};
use crate::approvals::caller;
use crate::tools::clients::link::{ClientLink, LinkAnswer, LinkClosed, LinkRequest, PendingAnswer, SendError};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot, watch};
use toold_proto::approval::Caller;
use toold_proto::openrpc::CANCEL_REQUEST;

/// The start of the daemon's ids.
const ID_PREFIX: &str = "toold-";
/// The time in which a client answers a call that was cancelled. After it, nothing waits for the answer.
const CANCEL_GRACE: Duration = Duration::from_secs(1);

/// The queue to a client.
#[derive(Clone)]
pub(super) struct PushQueue {
    pub pushes: mpsc::Sender<Box<RawValue>>,
    pub budget: Arc<PushBudget>,
}

/// The link to the client of one connection.
#[derive(Clone)]
pub(super) struct ConnectionLink(Arc<Shared>);

struct Shared {
    queue: PushQueue,
    connection: u64,
    uid: u32,
    pid: i32,
    /// The client serves tools, so that it may send answers.
    accepts: AtomicBool,
    /// True: messages may be sent to it.
    is_open: watch::Sender<bool>,
    /// True: the client sends nothing more.
    ended: watch::Sender<bool>,
    ignored: AtomicU64,
    open: Mutex<OpenRequests>,
    /// Counts the requests that have left the table.
    settled: watch::Sender<u64>,
}

/// The requests without an answer. The dispatcher bounds the calls of all callers, and so these.
#[derive(Default)]
struct OpenRequests {
    last: u64,
    by_number: HashMap<u64, OpenRequest>,
}

struct OpenRequest {
    call: Arc<str>,
    answer: oneshot::Sender<LinkAnswer>,
}

impl fmt::Debug for PushQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PushQueue")
    }
}

impl fmt::Debug for ConnectionLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionLink").field("connection", &self.0.connection).finish_non_exhaustive()
    }
}

impl ConnectionLink {
    pub fn new(queue: PushQueue, connection: u64, uid: u32, pid: i32) -> ConnectionLink {
        ConnectionLink(Arc::new(Shared {
            queue,
            connection,
            uid,
            pid,
            accepts: AtomicBool::new(false),
            is_open: watch::Sender::new(false),
            ended: watch::Sender::new(false),
            ignored: AtomicU64::new(0),
            open: Mutex::default(),
            settled: watch::Sender::new(0),
        }))
    }

    /// Returns true if the client serves tools, so that a message without a method may be an answer.
    pub fn has_answers(&self) -> bool {
        self.0.accepts.load(Relaxed)
    }

    /// Returns true if a message without a method is an answer, and not a request that lacks its method.
    pub fn is_answer(&self, response: &Response<'_>) -> bool {
        !matches!(response.answer, ClientAnswer::Malformed) || number_of(&response.id).is_some()
    }

    /// Takes an answer of the client. One that no open request has asked for is counted.
    pub fn on_answer(&self, response: Response<'_>) {
        let request = number_of(&response.id).and_then(|number| self.0.remove(number));
        match request {
            Some(request) => {
                // Refused: the call has been given up in this moment.
                let _ = request.answer.send(match response.answer {
                    ClientAnswer::Result(raw) => LinkAnswer::Result(raw.to_owned()),
                    ClientAnswer::Error(raw) => LinkAnswer::Error(raw.to_owned()),
                    ClientAnswer::Malformed => LinkAnswer::Malformed,
                });
            }
            None => {
                self.0.ignored.fetch_add(1, Relaxed);
                tracing::debug!(connection = self.0.connection, "an answer to no open request was ignored");
            }
        }
    }

    /// Records that the client sends nothing more: its requests have no answers.
    pub fn end(&self) {
        self.0.ended.send_replace(true);
    }
}

/// Returns the number in an id of ours.
fn number_of(id: &RequestId) -> Option<u64> {
    let RequestId::Text(text) = id else { return None };
    let number = text.strip_prefix(ID_PREFIX)?.parse().ok()?;
    (*text == id_text(number)).then_some(number)
}

fn id_text(number: u64) -> String {
    format!("{ID_PREFIX}{number}")
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, OpenRequests> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remove(&self, number: u64) -> Option<OpenRequest> {
        let removed = self.lock().by_number.remove(&number);
        self.settled.send_modify(|count| *count = count.wrapping_add(1));
        removed
    }

    fn has_open(&self, call: &str) -> bool {
        self.lock().by_number.values().any(|request| *request.call == *call)
    }

    async fn closed(&self) {
        let mut ended = self.ended.subscribe();
        tokio::select! {
            () = self.queue.pushes.closed() => {}
            // The sender lives as long as `self`.
            _ = ended.wait_for(|ended| *ended) => {}
        }
    }

    /// Queues a message when there is room. `before` runs in the same step, so that both happen or neither.
    async fn push(&self, text: Box<RawValue>, before: impl FnOnce() -> io::Result<()> + Send) -> Result<(), SendError> {
        let PushQueue { pushes, budget } = &self.queue;
        let queued = async {
            // The sender lives as long as `self`.
            let _ = self.is_open.subscribe().wait_for(|open| *open).await;
            let _turn = budget.turn().await;
            budget.room().await;
            let place = pushes.reserve().await.map_err(|_| SendError::Closed)?;
            before().map_err(SendError::Refused)?;
            budget.add(text.get().len());
            place.send(text);
            Ok(())
        };
        tokio::select! {
            biased;
            () = self.closed() => Err(SendError::Closed),
            queued = queued => queued,
        }
    }

    async fn send(self: Arc<Self>, request: LinkRequest) -> Result<PendingAnswer, SendError> {
        let LinkRequest { call, method, params, before } = request;
        let number = {
            let mut open = self.lock();
            open.last += 1;
            open.last
        };
        let text = message(Some(id_text(number)), method, params)?;
        let (answer, receiver) = oneshot::channel();
        let enter = || {
            before()?;
            self.lock().by_number.insert(number, OpenRequest { call, answer });
            Ok(())
        };
        self.push(text, enter).await?;
        Ok(PendingRequest { link: self, number, answer: Some(receiver) }.wait().boxed())
    }

    /// Sends `$/cancelRequest`, and awaits the answer for a bounded time.
    async fn cancel(self: Arc<Self>, number: u64, answer: oneshot::Receiver<LinkAnswer>) {
        let notify = async {
            if let Ok(text) = message(None, CANCEL_REQUEST, json!({ "id": id_text(number) })) {
                // Closed: there is no one to cancel it.
                let _ = self.push(text, || Ok(())).await;
            }
        };
        let settle = async {
            tokio::select! {
                _ = tokio::time::timeout(CANCEL_GRACE, answer) => {}
                () = self.closed() => {}
            }
            self.remove(number);
        };
        tokio::join!(notify, settle);
    }
}

fn message(id: Option<String>, method: &str, params: Value) -> Result<Box<RawValue>, SendError> {
    #[derive(Serialize)]
    struct Message<'a> {
        jsonrpc: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        method: &'a str,
        params: Value,
    }
    to_raw_value(&Message { jsonrpc: "2.0", id, method, params }).map_err(|e| SendError::Refused(e.into()))
}

/// A request that was sent. Dropped without an answer: it is cancelled.
struct PendingRequest {
    link: Arc<Shared>,
    number: u64,
    /// None: the wait has ended.
    answer: Option<oneshot::Receiver<LinkAnswer>>,
}

impl PendingRequest {
    async fn wait(mut self) -> Result<LinkAnswer, LinkClosed> {
        let link = self.link.clone();
        let answer = tokio::select! {
            biased;
            answer = Answered(&mut self) => answer,
            () = link.closed() => Err(LinkClosed),
        };
        self.answer = None;
        link.remove(self.number);
        answer
    }
}

/// The arrival of the answer. The receiver stays with the request, which needs it if the wait is dropped.
struct Answered<'a>(&'a mut PendingRequest);

impl Future for Answered<'_> {
    type Output = Result<LinkAnswer, LinkClosed>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0.answer {
            Some(receiver) => receiver.poll_unpin(cx).map(|answer| answer.map_err(|_| LinkClosed)),
            None => Poll::Ready(Err(LinkClosed)),
        }
    }
}

impl Drop for PendingRequest {
    fn drop(&mut self) {
        let Some(answer) = self.answer.take() else { return };
        match Handle::try_current() {
            Ok(runtime) => {
                runtime.spawn(self.link.clone().cancel(self.number, answer));
            }
            // The daemon ends.
            Err(_) => {
                self.link.remove(self.number);
            }
        }
    }
}

impl ClientLink for ConnectionLink {
    fn connection(&self) -> u64 {
        self.0.connection
    }

    fn caller(&self) -> Caller {
        caller(self.0.uid, self.0.pid)
    }

    fn accept_answers(&self) {
        self.0.accepts.store(true, Relaxed);
    }

    fn open(&self) {
        self.0.is_open.send_replace(true);
    }

    fn send(&self, request: LinkRequest) -> BoxFuture<'static, Result<PendingAnswer, SendError>> {
        self.0.clone().send(request).boxed()
    }

    fn notify(&self, method: &'static str, params: Value) -> BoxFuture<'static, ()> {
        let link = self.0.clone();
        async move {
            if let Ok(text) = message(None, method, params) {
                let _ = link.push(text, || Ok(())).await;
            }
        }
        .boxed()
    }

    fn settled(&self, call: Arc<str>) -> BoxFuture<'static, ()> {
        let link = self.0.clone();
        async move {
            let mut settled = link.settled.subscribe();
            while link.has_open(&call) {
                let _ = settled.changed().await;
            }
        }
        .boxed()
    }

    fn closed(&self) -> BoxFuture<'static, ()> {
        let link = self.0.clone();
        async move { link.closed().await }.boxed()
    }

    fn ignored_answers(&self) -> u64 {
        self.0.ignored.load(Relaxed)
    }
}
