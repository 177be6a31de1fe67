//! Runs the calls of one client, in any framing: a message in, an answer now or later. The limits, the panic guard and the
//! peer's identity are here, so every call passes them.

use super::call_limit::{CallLimit, CallPermit, MAX_GLOBAL_CALLS, URGENT_EXTRA_CALLS};
use super::cancel::InFlight;
use super::client_link::PushQueue;
use super::delivery::Answer;
use super::jsonrpsee::{answer_of, jsonrpsee_id, subscription_sink, unsubscribe, unsubscribe_params};
use super::message::{Message, Rejected, Request, RequestId};
use super::pending::{Call, Detached, Dispatched, FinishedCall, Pending};
use super::response::error_without_id;
use super::{Peer, PushBudget, Wire, message, nesting, response};
use futures_util::FutureExt;
use futures_util::future::{join_all, ready};
use jsonrpsee::core::id_providers::RandomIntegerIdProvider;
use jsonrpsee::types::Params;
use jsonrpsee::{BoundedSubscriptions, ConnectionId, Extensions, MethodCallback, MethodResponse, SubscriptionState};
use serde_json::value::RawValue;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::task::{Context, Poll, Waker};
use tokio::sync::mpsc;
use toold_proto::openrpc::CANCEL_REQUEST;
use toold_proto::{ErrorKind, RpcError};

/// The pushes that wait for one connection. A subscription that finds the queue full counts what it leaves out.
const PUSH_QUEUE_LEN: usize = 128;

/// The kind of connection: it decides which methods may be called.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    /// A connection that stays open and can carry pushes.
    Stream,
    /// One request with one answer.
    Post,
}

/// The receiving ends of a connection: answers of calls in their own tasks, and pushes.
pub(crate) struct Inbox {
    pub answers: mpsc::Receiver<FinishedCall>,
    pub pushes: mpsc::Receiver<Box<RawValue>>,
}

/// One client.
pub(crate) struct Connection {
    pub wire: Arc<Wire>,
    pub call_limit: Arc<CallLimit>,
    pub push_budget: Arc<PushBudget>,
    id: ConnectionId,
    peer: Arc<Peer>,
    extensions: Extensions,
    answers: mpsc::Sender<FinishedCall>,
    pushes: mpsc::Sender<Box<RawValue>>,
    subscriptions: BoundedSubscriptions,
    subscribed: AtomicBool,
    in_flight: Arc<InFlight>,
    /// Bytes in the framing's outgoing buffer.
    buffered: AtomicUsize,
    /// Bytes of answers on their way to that buffer.
    waiting: AtomicUsize,
}

enum Started {
    Ended(Option<Answer>),
    Running(Call, CallPermit),
}

impl Connection {
    pub fn new(wire: Arc<Wire>, peer: impl Into<Arc<Peer>>) -> (Arc<Connection>, Inbox) {
        let peer = peer.into();
        // One place per permit, so that a call never waits to deliver its answer.
        let (answers, answered) =
            mpsc::channel(wire.limits.max_requests_in_flight.min(MAX_GLOBAL_CALLS) + URGENT_EXTRA_CALLS);
        let (pushes, pushed) = mpsc::channel(PUSH_QUEUE_LEN);
        let mut extensions = Extensions::new();
        let id = ConnectionId(peer.connection as usize);
        extensions.insert(peer.clone());
        let push_budget = Arc::new(PushBudget::default());
        extensions.insert(push_budget.clone());
        // Set once: a peer has one connection.
        let _ = peer.queue.set(PushQueue { pushes: pushes.clone(), budget: push_budget.clone() });
        let connection = Connection {
            call_limit: CallLimit::new(wire.limits.max_requests_in_flight, wire.calls.clone()),
            push_budget,
            id,
            peer,
            extensions,
            answers,
            pushes,
            subscriptions: BoundedSubscriptions::new(wire.limits.max_subscriptions.try_into().unwrap_or(u32::MAX)),
            subscribed: AtomicBool::new(false),
            in_flight: Arc::default(),
            buffered: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            wire,
        };
        (Arc::new(connection), Inbox { answers: answered, pushes: pushed })
    }

    /// Runs one message. Polls every call in it once; most are finished then.
    pub fn receive(&self, text: &[u8], transport: Transport) -> Dispatched {
        self.peer.is_post.store(transport == Transport::Post, Relaxed);
        let limits = &self.wire.limits;
        if nesting::deeper_than(text, limits.max_nesting) {
            let message = format!("a message nests at most {} deep", limits.max_nesting);
            return Dispatched::Answer(error_without_id(&RpcError::limit("max_nesting", message)).into());
        }
        match message::parse(text, limits.max_batch) {
            Ok(Message::One(request)) => self.one(request, transport),
            Ok(Message::Batch(entries)) => self.batch(entries),
            Err(Rejected { id, error }) => {
                if let Some(link) = self.peer.answering_link()
                    && let Some(answer) = message::parse_response(text)
                    && link.is_answer(&answer)
                {
                    link.on_answer(answer);
                    return Dispatched::NoAnswer;
                }
                Dispatched::Answer(response::error(&id, &error).into())
            }
        }
    }

    /// Returns true if the client serves tools: it sends answers while it is sent requests.
    pub fn serves_tools(&self) -> bool {
        self.peer.answering_link().is_some()
    }

    /// Records that the client sends nothing more, so that no call waits for its answer.
    pub fn on_sending_ended(&self) {
        self.peer.on_sending_ended();
    }

    /// Returns the answer to a message over the size limit.
    pub fn too_long(&self) -> Box<str> {
        let max = self.wire.limits.max_message_bytes;
        error_without_id(&RpcError::limit("max_message_bytes", format!("a message has at most {max} bytes")))
    }

    /// Continues a pending message in a task of its own. Its answer comes through the inbox.
    pub fn spawn(self: &Arc<Self>, pending: Pending) {
        let connection = self.clone();
        // A call with an effect outlives its client: a hang-up must not stop an exec or a kill half-way.
        let ends_with_client = pending.ends_with_client();
        tokio::spawn(async move {
            let Pending { id, call, permits } = pending;
            let answer = tokio::select! {
                biased;
                answer = call => answer,
                () = connection.answers.closed(), if ends_with_client => return,
            };
            let answer = answer.map(|answer| connection.within_bounds(&id, answer));
            // Never full: the permits bound the answers. Closed: the client has disconnected.
            let _ = connection.answers.try_send(FinishedCall { answer, _permits: permits });
        });
    }

    /// Continues a pending message in a task of its own, for a caller that awaits its answer.
    pub fn detach(self: &Arc<Self>, pending: Pending) -> Detached {
        let connection = self.clone();
        let ends_with_client = pending.ends_with_client();
        let task = tokio::spawn(async move {
            let Pending { id, call, permits } = pending;
            let answer = call.await.map(|answer| connection.within_bounds(&id, answer));
            connection.on_answer_queued(answer.as_ref().map_or("", |answer| &answer.text));
            drop(permits);
            answer
        });
        Detached { task, ends_with_client }
    }

    /// Records that an answer from the inbox is now in the outgoing buffer.
    pub fn on_answer_queued(&self, text: &str) {
        self.waiting.fetch_sub(text.len(), Relaxed);
    }

    /// Records the length of the outgoing buffer.
    pub fn set_buffered(&self, bytes: usize) {
        self.buffered.store(bytes, Relaxed);
    }

    /// Returns true if a subscription was made here, so that pushes may come.
    pub fn is_subscribed(&self) -> bool {
        self.subscribed.load(Relaxed)
    }

    /// Returns the answer, or an error in its place if the client has left too much unread.
    fn within_bounds(&self, id: &RequestId, answer: Answer) -> Answer {
        let text = &answer.text;
        let max = self.wire.limits.max_outgoing_bytes;
        let before = self.waiting.fetch_add(text.len(), Relaxed) + self.buffered.load(Relaxed);
        if before.saturating_add(text.len()) <= max {
            return answer;
        }
        self.waiting.fetch_sub(text.len(), Relaxed);
        let message = format!("the answer has {} bytes and {before} wait unread; at most {max} may wait", text.len());
        let error = response::error(id, &RpcError::limit("max_outgoing_bytes", message));
        self.waiting.fetch_add(error.len(), Relaxed);
        error.into()
    }

    fn one(&self, request: Request<'_>, transport: Transport) -> Dispatched {
        let id = request.id.clone().unwrap_or(RequestId::Null);
        let no_push = match transport {
            Transport::Stream => None,
            Transport::Post => {
                Some("a subscription needs a connection that stays: use lines, Content-Length or WebSocket")
            }
        };
        match self.start(request, no_push) {
            Started::Ended(None) => Dispatched::NoAnswer,
            Started::Ended(Some(answer)) => Dispatched::Answer(answer),
            Started::Running(call, permit) => {
                let call = self.in_flight.enter(permit.cancellation(), &id, call);
                Dispatched::Pending(Pending { id, call, permits: vec![permit] })
            }
        }
    }

    fn batch(&self, entries: Vec<Result<Request<'_>, Rejected>>) -> Dispatched {
        let (mut calls, mut permits): (Vec<Started>, Vec<CallPermit>) = (Vec::new(), Vec::new());
        for entry in entries {
            calls.push(match entry {
                Ok(request) => {
                    let id = request.id.clone().unwrap_or(RequestId::Null);
                    match self.start(request, Some("a subscription cannot be in a batch: send it by itself")) {
                        Started::Running(call, permit) => {
                            Started::Running(self.in_flight.enter(permit.cancellation(), &id, call), permit)
                        }
                        ended @ Started::Ended(_) => ended,
                    }
                }
                Err(Rejected { id, error }) => Started::Ended(Some(response::error(&id, &error).into())),
            });
        }
        let mut running = false;
        let mut parts: Vec<Call> = Vec::with_capacity(calls.len());
        for call in calls {
            parts.push(match call {
                Started::Ended(answer) => ready(answer).boxed(),
                Started::Running(call, permit) => {
                    running = true;
                    permits.push(permit);
                    call
                }
            });
        }
        let call = join_all(parts).map(response::batch).boxed();
        if running {
            return Dispatched::Pending(Pending { id: RequestId::Null, call, permits });
        }
        call.now_or_never().flatten().map_or(Dispatched::NoAnswer, Dispatched::Answer)
    }

    /// Starts one call and polls it once. `no_push` is the reason why a subscription is impossible here.
    fn start(&self, request: Request<'_>, no_push: Option<&'static str>) -> Started {
        let Request { id, method, params } = request;
        let Some((name, callback)) = self.wire.methods.method_with_name(&method) else {
            // Not in the table of methods: it is about this connection, and costs no other call a comparison.
            if method == CANCEL_REQUEST {
                return self.cancel(id, params);
            }
            return refuse(id, || no_such_method(&method));
        };
        if let Some(Err(error)) = self.wire.authorize.get().map(|authorize| authorize(&self.peer, name)) {
            return refuse(id, || error);
        }
        let is_subscription = matches!(callback, MethodCallback::Subscription(_));
        if is_subscription && id.is_none() {
            // The answer carries the number of the subscription. Without it the client could not unsubscribe.
            return Started::Ended(None);
        }
        if is_subscription && let Some(why) = no_push {
            return refuse(id, || RpcError::new(ErrorKind::InvalidRequest, why));
        }
        let ended =
            match matches!(callback, MethodCallback::Unsubscription(_)).then(|| unsubscribe_params(params)).transpose()
            {
                Ok(ended) => ended,
                Err(error) => return refuse(id, || error),
            };
        let params = ended.as_deref().or(params);
        let Some(permit) = self.call_limit.acquire(name) else {
            tracing::debug!(connection = self.id.0, method = name, "too many requests in flight");
            return refuse(id, || self.too_many_calls());
        };
        let state = match self.subscription(is_subscription) {
            Ok(state) => state,
            Err(error) => return refuse(id, || error),
        };
        let mut call = self.call(name, callback.clone(), id, params, state);
        // The waker is not needed: a call that is not ready moves to a task, which polls it again.
        match call.poll_unpin(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(answer) => Started::Ended(answer),
            Poll::Pending => Started::Running(call, permit),
        }
    }

    /// Runs a `$/cancelRequest`: a notification. One that is sent as a request is answered with null.
    fn cancel(&self, id: Option<RequestId>, params: Option<&str>) -> Started {
        match self.in_flight.receive(params) {
            Err(error) => refuse(id, || error),
            Ok(()) => Started::Ended(id.map(|id| response::null(&id).into())),
        }
    }

    fn call(
        &self,
        name: &'static str,
        callback: MethodCallback,
        id: Option<RequestId>,
        params: Option<&str>,
        state: Option<SubscriptionState<'static>>,
    ) -> Call {
        let answered = id.is_some();
        let id = id.unwrap_or(RequestId::Null);
        let sink = state.is_some().then(|| subscription_sink(&self.pushes, &id));
        let (wire_id, connection, extensions) = (jsonrpsee_id(&id), self.id, self.extensions.clone());
        let params = Params::new(params).into_owned();
        let run = async move {
            match (callback, sink.zip(state)) {
                (MethodCallback::Sync(call), _) => call(wire_id, params, usize::MAX, extensions),
                (MethodCallback::Async(call), _) => call(wire_id, params, connection, usize::MAX, extensions).await,
                (MethodCallback::Unsubscription(call), _) => {
                    unsubscribe(&*call, wire_id, params, connection, extensions).await
                }
                (MethodCallback::Subscription(call), Some((sink, state))) => {
                    call(wire_id, params, sink, state, extensions).await
                }
                // Unreachable: `start` makes both for every subscription.
                (MethodCallback::Subscription(_), None) => MethodResponse::notification(),
            }
        };
        let finish = move |result: Result<MethodResponse, _>| match result {
            Ok(response) => answered.then(|| answer_of(response, &id)).flatten(),
            Err(_) => {
                tracing::error!(method = name, "a handler panicked");
                let error =
                    RpcError::new(ErrorKind::Internal, format!("`{name}` failed inside toold; its log has the panic"));
                answered.then(|| response::error(&id, &error).into())
            }
        };
        AssertUnwindSafe(run).catch_unwind().map(finish).boxed()
    }

    /// Returns what jsonrpsee needs for a subscription, unless the connection has too many.
    fn subscription(&self, wanted: bool) -> Result<Option<SubscriptionState<'static>>, RpcError> {
        if !wanted {
            return Ok(None);
        }
        let Some(subscription_permit) = self.subscriptions.acquire() else {
            let message = format!("a connection has at most {} subscriptions", self.subscriptions.max());
            return Err(RpcError::limit("max_subscriptions", message));
        };
        self.subscribed.store(true, Relaxed);
        Ok(Some(SubscriptionState { conn_id: self.id, id_provider: &RandomIntegerIdProvider, subscription_permit }))
    }

    fn too_many_calls(&self) -> RpcError {
        let max = self.wire.limits.max_requests_in_flight;
        let message = format!("{max} requests are in flight; wait for one, or use another connection");
        RpcError::limit("max_requests_in_flight", message)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if self.is_subscribed() || self.serves_tools() {
            self.wire.trim_later();
        }
    }
}

/// Answers a call that did not start. A notification gets no answer.
fn refuse(id: Option<RequestId>, error: impl FnOnce() -> RpcError) -> Started {
    Started::Ended(id.map(|id| response::error(&id, &error()).into()))
}

fn no_such_method(method: &str) -> RpcError {
    // The name may be as long as a message.
    let name: String = method.chars().take(100).collect();
    RpcError::new(ErrorKind::MethodNotFound, format!("there is no method `{name}`; rpc.discover lists them all"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::wire::WireLimits;
    use jsonrpsee::RpcModule;

    #[tokio::test]
    async fn an_error_replaces_an_answer_when_too_much_is_unread() {
        let mut module = RpcModule::new(());
        let later = |_, _, _| async {
            tokio::task::yield_now().await;
            "x".repeat(200)
        };
        module.register_async_method("later", later).expect("new");
        let wire = Wire::new(module, WireLimits { max_outgoing_bytes: 1000, ..WireLimits::default() }, 0);
        let (connection, mut inbox) = Connection::new(wire, Peer { connection: 1, ..Peer::default() });
        for (unread, fits) in [(0, true), (700, true), (800, false), (0, true)] {
            connection.set_buffered(unread);
            let call = br#"{"jsonrpc":"2.0","id":1,"method":"later"}"#;
            let Dispatched::Pending(pending) = connection.receive(call, Transport::Stream) else { panic!("pending") };
            connection.spawn(pending);
            let done = inbox.answers.recv().await.expect("an answer");
            let text = &*done.answer.as_ref().expect("an answer").text;
            assert_eq!(text.contains("xxx"), fits, "{unread}: {text}");
            assert_eq!(text.contains("max_outgoing_bytes"), !fits, "{unread}: {text}");
            connection.on_answer_queued(text);
            assert!(!connection.call_limit.is_idle(), "the answer holds its permit");
            drop(done);
            assert!(connection.call_limit.is_idle());
        }
    }
}
