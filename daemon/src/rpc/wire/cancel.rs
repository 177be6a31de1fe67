//! `$/cancelRequest`: ends calls of its own connection that only wait. A call that has an effect is never interrupted in it.
//!
//! A call that does nothing but wait is dropped. `exec` has an effect first: it is asked, and looks when it waits for the
//! program that it has started (`requested`).

use super::message::{RequestId, request_id};
use super::pending::Call;
use super::response;
use futures_util::FutureExt;
use serde::Deserialize;
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tokio::sync::Notify;
use toold_proto::{ErrorKind, RpcError};

tokio::task_local! {
    /// The request to cancel the call that this task runs.
    static REQUEST: Arc<Notify>;
}

/// The way in which a call is cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cancellation {
    /// Its future is dropped: only its answer comes of it.
    Drop,
    /// It ends its wait when it is asked.
    Ask,
}

impl Cancellation {
    /// Returns the way in which a call of this method is cancelled. None: it is not.
    pub fn of(method: &str) -> Option<Cancellation> {
        match method {
            "wait" | "poll" | "events.next" | "fs.list" | "fs.search" | "script.result" | "kernel.next"
            | "kernel.stopping" => Some(Cancellation::Drop),
            "exec" | "script.run" | "kernel.run" | "tools.call" => Some(Cancellation::Ask),
            // They end soon, or have an effect.
            _ => None,
        }
    }
}

/// Returns when the client cancels the call that asks, and never in a call that cannot be cancelled.
pub async fn requested() {
    // A call enters the table after its first poll, so every poll looks again.
    let look = |_: &mut Context<'_>| REQUEST.try_with(Arc::clone).map_or(Poll::Pending, Poll::Ready);
    let request = poll_fn(look).await;
    request.notified().await;
}

/// Returns the error of a cancelled call.
pub fn cancelled() -> RpcError {
    RpcError::new(ErrorKind::Cancelled, "the call was cancelled; nothing happened to processes")
}

/// The calls of one connection that can be cancelled now. Each holds a permit, so there are at most as many as those.
#[derive(Default)]
pub(crate) struct InFlight(Mutex<Calls>);

#[derive(Default)]
struct Calls {
    last: u64,
    by_number: HashMap<u64, (RequestId, Arc<Notify>)>,
}

/// A call in the table. Dropped: it leaves the table.
struct Entry {
    table: Arc<InFlight>,
    number: u64,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.table.lock().by_number.remove(&self.number);
    }
}

impl InFlight {
    fn lock(&self) -> std::sync::MutexGuard<'_, Calls> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels the calls with this id: none if they have ended, several if the client uses an id twice.
    fn cancel(&self, id: &RequestId) {
        for (_, request) in self.lock().by_number.values().filter(|(of, _)| of == id) {
            // It is kept until the call looks for it.
            request.notify_one();
        }
    }

    /// Enters a call that has not ended after its first poll, if it can be cancelled. One without an id cannot: it has no
    /// answer.
    pub fn enter(self: &Arc<Self>, how: Option<Cancellation>, id: &RequestId, call: Call) -> Call {
        let Some(how) = how.filter(|_| *id != RequestId::Null) else { return call };
        let request = Arc::new(Notify::new());
        let number = {
            let mut calls = self.lock();
            calls.last += 1;
            let number = calls.last;
            calls.by_number.insert(number, (id.clone(), request.clone()));
            number
        };
        let entry = Entry { table: self.clone(), number };
        match how {
            Cancellation::Ask => async move {
                let _entry = entry;
                REQUEST.scope(request, call).await
            }
            .boxed(),
            Cancellation::Drop => {
                let id = id.clone();
                async move {
                    let _entry = entry;
                    tokio::select! {
                        biased;
                        answer = call => answer,
                        () = request.notified() => Some(response::error(&id, &cancelled()).into()),
                    }
                }
                .boxed()
            }
        }
    }

    /// Runs a `$/cancelRequest`. An id that no call has is not an error: its answer may be on the way.
    pub fn receive(&self, params: Option<&str>) -> Result<(), RpcError> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Params<'a> {
            #[serde(borrow)]
            id: &'a RawValue,
        }
        // Serde would take a list for a struct.
        let params = params.filter(|text| text.starts_with('{')).unwrap_or("{}");
        let params: Params<'_> = serde_json::from_str(params)
            .map_err(|_| RpcError::param("id", "and nothing else must be given, by name"))?;
        let id = request_id(params.id.get())
            .ok_or_else(|| RpcError::param("id", "must be the id of a request: a string or an integer"))?;
        self.cancel(&id);
        Ok(())
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.lock().by_number.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::pending;

    fn text(answer: Option<super::super::delivery::Answer>) -> String {
        answer.map(|answer| answer.text.into_string()).unwrap_or_default()
    }

    #[tokio::test]
    async fn a_waiting_call_is_answered_with_the_error_and_leaves_the_table() {
        let table = Arc::new(InFlight::default());
        let ids = [RequestId::Number(1), RequestId::Text("1".into()), RequestId::Other("-1".into())];
        let mut calls: Vec<Call> =
            ids.iter().map(|id| table.enter(Some(Cancellation::Drop), id, pending().boxed())).collect();
        assert_eq!(table.len(), 3);
        assert_eq!(table.receive(Some(r#"{"id":"1"}"#)), Ok(()));
        let answer = text(calls.remove(1).await);
        assert!(answer.starts_with(r#"{"jsonrpc":"2.0","id":"1","error":{"code":-32800,"#), "{answer}");
        assert_eq!(table.len(), 2, "the others wait on");
        drop(calls);
        assert_eq!(table.len(), 0);
        assert_eq!(table.receive(Some(r#"{"id":1}"#)), Ok(()), "an id that has ended");
    }

    #[tokio::test]
    async fn a_call_that_is_asked_ends_when_it_looks_also_if_it_was_asked_before() {
        let table = Arc::new(InFlight::default());
        let call = async {
            requested().await;
            None
        };
        let call = table.enter(Some(Cancellation::Ask), &RequestId::Number(7), call.boxed());
        assert_eq!(table.receive(Some(r#"{"id":7}"#)), Ok(()));
        assert!(call.await.is_none());
        assert_eq!(table.len(), 0);
    }

    #[test]
    fn a_request_to_cancel_without_a_usable_id_names_the_parameter() {
        let table = InFlight::default();
        for params in
            [None, Some("{}"), Some("[1]"), Some(r#"{"id":1.5}"#), Some(r#"{"id":[1]}"#), Some(r#"{"id":1,"x":2}"#)]
        {
            let error = table.receive(params).expect_err("not an id");
            assert_eq!((error.code, &error.data["param"]), (-32602, &"id".into()), "{params:?}");
        }
    }
}
