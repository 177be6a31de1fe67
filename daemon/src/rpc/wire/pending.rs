//! Calls that are not finished when they have started: in flight, in a task of their own, and their answers.

use super::call_limit::CallPermit;
use super::delivery::Answer;
use super::message::RequestId;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::task::JoinHandle;

/// The result of handing a message to its methods.
pub(crate) enum Dispatched {
    /// Only notifications.
    NoAnswer,
    Answer(Answer),
    Pending(Pending),
}

/// A message whose calls are in flight.
pub(crate) struct Pending {
    pub id: RequestId,
    pub call: Call,
    pub permits: Vec<CallPermit>,
}

impl Pending {
    /// Returns true if nothing but the answer comes of its calls.
    pub fn ends_with_client(&self) -> bool {
        self.permits.iter().all(CallPermit::ends_with_client)
    }
}

/// A pending message in a task of its own. Resolves to its answer. Dropped: its calls run on, unless they end with their
/// client.
pub(crate) struct Detached {
    pub task: JoinHandle<Option<Answer>>,
    pub ends_with_client: bool,
}

impl Future for Detached {
    type Output = Option<Answer>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // The task does not panic: every call in it has a panic guard.
        self.task.poll_unpin(cx).map(|answer| answer.ok().flatten())
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        if self.ends_with_client {
            self.task.abort();
        }
    }
}

/// A call in flight. Resolves to its answer, or to None for a notification.
pub(crate) type Call = BoxFuture<'static, Option<Answer>>;

/// A call that finished in its own task. Dropped: its permits are given back.
pub(crate) struct FinishedCall {
    pub answer: Option<Answer>,
    pub _permits: Vec<CallPermit>,
}
