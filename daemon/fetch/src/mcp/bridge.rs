//! A bridge: each message of stdin becomes a POST, each message of the server a line of stdout. A request gets exactly one
//! answer, from the server or from here, and is sent at most once.

use super::endpoint::{Endpoint, Exchange};
use super::message::{Outgoing, Received, error_answer, not_sent, outcome_unknown};
use super::output::Output;
use super::session::{Call, Era, Session};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::{Method, StatusCode, header};
use serde::Serialize;
use serde_json::Value;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::time::timeout;
use toold_proto::{ErrorKind, RpcError};

/// Largest message of a server.
pub const MAX_MESSAGE_BYTES: usize = 64 << 20;
/// Largest body of a refusal that is looked into.
const MAX_REFUSAL_BYTES: usize = 64 << 10;
/// Time for a notification: the messages behind it wait, so that they arrive in order.
const NOTIFY_TIMEOUT: Duration = Duration::from_secs(10);
/// Time in which a server may still answer a cancelled request.
const CANCEL_GRACE: Duration = Duration::from_secs(5);
/// Message of an error.
pub(super) const SESSION_ENDED: &str = "the server has ended the session";
/// Time for the goodbye.
const DELETE_TIMEOUT: Duration = Duration::from_secs(2);

pub struct Bridge {
    pub(super) endpoint: Endpoint,
    pub(super) output: Output,
    session: Mutex<Session>,
    /// Held while a new session begins: requests wait for it.
    pub(super) handshake: Arc<tokio::sync::Mutex<()>>,
    /// A call was answered.
    pub(super) answered: Notify,
    /// No session can be had.
    pub(super) failed: Notify,
}

/// The circumstances under which a request was sent.
#[derive(Debug, Clone)]
pub struct Sent {
    pub headers: Vec<(String, String)>,
    /// Number of the session, if the request named one.
    pub session: Option<u64>,
    pub era: Era,
}

impl Bridge {
    pub fn new(endpoint: Endpoint, output: Output) -> Arc<Bridge> {
        Arc::new(Bridge {
            endpoint,
            output,
            session: Mutex::default(),
            handshake: Arc::default(),
            answered: Notify::new(),
            failed: Notify::new(),
        })
    }

    pub(super) fn session(&self) -> MutexGuard<'_, Session> {
        self.session.lock().expect("no panic holds it")
    }

    pub fn has_calls(&self) -> bool {
        !self.session().calls.is_empty()
    }

    pub(super) fn is_in_flight(&self, key: &str) -> bool {
        self.session().calls.contains_key(key)
    }

    /// Takes a line of stdin. Returns when the next one may be taken.
    pub async fn on_line(self: &Arc<Bridge>, line: &str) {
        let message = match Outgoing::parse(line) {
            Ok(message) => message,
            Err(error) => return self.output.write(error_answer(&Value::Null, &error)).await,
        };
        drop(self.handshake.lock().await);
        if !message.is_request() {
            return self.notify(&message).await;
        }
        let is_handshake = message.is("initialize");
        let Some(key) = self.begin(&message, Visibility::Written) else {
            let error = RpcError::new(ErrorKind::InvalidRequest, "a request with this id is in flight");
            return self.output.write(error_answer(&message.id.unwrap_or_default(), &error)).await;
        };
        let task = tokio::spawn(self.clone().call(message, key.clone()));
        if let Some(call) = self.session().calls.get_mut(&key) {
            call.task = Some(task.abort_handle());
        }
        if is_handshake {
            // Its error is an answer; a panic is one too, at the end.
            let _ = task.await;
        }
    }

    /// Registers a request as in flight. Returns nothing if its id is in use.
    pub(super) fn begin(&self, message: &Outgoing, visibility: Visibility) -> Option<String> {
        let (id, method) = (message.id.clone()?, message.method.clone()?);
        let mut session = self.session();
        let key = id.to_string();
        if session.calls.contains_key(&key) {
            return None;
        }
        if message.is("initialize") {
            // A new handshake is a new session, whatever became of the old one.
            session.number += 1;
            session.id = None;
            session.version = None;
            session.initialize = serde_json::from_str(&message.text).ok();
        }
        let era = if message.version().is_some() { Era::Stateless } else { Era::Session };
        let call = Call { id, method, era, session: session.number, task: None, visibility };
        session.calls.insert(key.clone(), call);
        Some(key)
    }

    /// Makes the headers of a message, by the session of this moment.
    fn sent(&self, message: &Outgoing) -> Sent {
        let session = self.session();
        let own = message.version();
        let mut headers = vec![
            ("content-type".to_string(), "application/json".to_string()),
            ("accept".to_string(), "application/json, text/event-stream".to_string()),
        ];
        headers.extend(session.mirror.headers(message));
        let version = own.or(session.version.as_deref());
        headers.extend(version.map(|version| ("mcp-protocol-version".to_string(), version.to_string())));
        let id = session.id.as_ref().filter(|_| own.is_none());
        headers.extend(id.map(|id| ("mcp-session-id".to_string(), id.clone())));
        let era = if own.is_some() { Era::Stateless } else { Era::Session };
        Sent { headers, session: id.map(|_| session.number), era }
    }

    /// Sends a request and receives its answer.
    pub(super) async fn call(self: Arc<Bridge>, message: Outgoing, key: String) {
        let sent = self.sent(&message);
        match self.endpoint.send(Method::POST, &sent.headers, &message.text).await {
            Ok(exchange) => self.receive(&message, &key, exchange, &sent).await,
            Err(error) => self.fail(&key, error).await,
        }
    }

    async fn receive(self: &Arc<Bridge>, message: &Outgoing, key: &str, exchange: Exchange, sent: &Sent) {
        let status = exchange.response.status();
        if let (StatusCode::NOT_FOUND, Some(session)) = (status, sent.session) {
            // The server refused it by this, so it did not happen.
            self.fail(key, not_sent("session_expired", SESSION_ENDED)).await;
            return self.expire(session);
        }
        if !status.is_success() {
            return self.refuse(key, exchange).await;
        }
        if message.is("initialize") {
            self.session().id = exchange.header("mcp-session-id");
        }
        let content_type = exchange.header(header::CONTENT_TYPE.as_str()).unwrap_or_default();
        if content_type.starts_with("text/event-stream") {
            return self.follow(key, exchange, sent).await;
        }
        let (body, sender) = exchange.into_parts();
        match read(body, MAX_MESSAGE_BYTES).await.map(|text| Received::parse(&text)) {
            Ok(Ok(messages)) => {
                self.endpoint.keep(sender);
                for message in messages {
                    self.deliver(message).await;
                }
            }
            Ok(Err(e)) => {
                self.fail(
                    key,
                    outcome_unknown("no_answer", format!("the server answered {status} without a message: {e}")),
                )
                .await
            }
            Err(reason) => {
                self.fail(key, outcome_unknown("connection_lost", format!("the answer broke off: {reason}"))).await
            }
        }
        if self.is_in_flight(key) {
            let error = outcome_unknown("no_answer", "the server's messages do not answer the request");
            self.fail(key, error).await;
        }
    }

    /// Writes a message of the server. An answer is written if its call is in flight, so a second one is not.
    pub(super) async fn deliver(&self, message: Received) {
        // First a place in the queue: between the end of the call and its answer nothing may wait.
        let place = self.output.reserve().await;
        if let Some(key) = message.answers() {
            let mut session = self.session();
            let Some(call) = session.end(&key) else { return };
            match call.method.as_str() {
                "initialize" => {
                    session.version = message.at("/result/protocolVersion").and_then(|v| v.as_str().map(String::from));
                }
                "tools/list" => session.mirror.learn(&message.at("/result/tools").unwrap_or_default()),
                // The transport needs nothing of other results.
                _ => {}
            }
            self.answered.notify_one();
            if call.visibility == Visibility::Hidden {
                return;
            }
        }
        place.write(message.text);
    }

    /// Answers a call that the server refused, with the error of the server if there is one.
    async fn refuse(&self, key: &str, exchange: Exchange) {
        let status = exchange.response.status();
        let retry_after = exchange.header(header::RETRY_AFTER.as_str());
        let text = read(exchange.into_parts().0, MAX_REFUSAL_BYTES).await.unwrap_or_default();
        let answers = Received::parse(&text).unwrap_or_default().into_iter();
        if let Some(answer) = answers.into_iter().find(|answer| answer.answers().as_deref() == Some(key)) {
            return self.deliver(answer).await;
        }
        // An error without an id is about this request: there is no other in the exchange.
        let own = serde_json::from_str::<Value>(&text).ok().map(|mut message| message["error"].take());
        match own.filter(|own| own["code"].is_i64()) {
            Some(own) => self.fail(key, own).await,
            None => self.fail(key, refusal(status, retry_after)).await,
        }
    }

    /// Answers a call with an error, if it is in flight.
    pub(super) async fn fail(&self, key: &str, error: impl Serialize) {
        let place = self.output.reserve().await;
        let Some(call) = self.session().end(key) else { return };
        self.answered.notify_one();
        if call.visibility == Visibility::Written {
            place.write(error_answer(&call.id, &error));
        }
    }

    /// Sends a notification or an answer, and waits until the server has it.
    pub(super) async fn notify(self: &Arc<Bridge>, message: &Outgoing) {
        let cancelled = message.cancelled();
        let era = cancelled.as_ref().and_then(|key| self.session().calls.get(key).map(|call| call.era));
        if let (Some(key), Some(Era::Stateless)) = (&cancelled, era) {
            // The end of the connection is the cancellation.
            return self.abandon(key);
        }
        let sent = self.sent(message);
        match timeout(NOTIFY_TIMEOUT, self.endpoint.send(Method::POST, &sent.headers, &message.text)).await {
            Ok(Ok(exchange)) => self.on_notified(message, exchange, &sent).await,
            Ok(Err(error)) => eprintln!("toold-fetch: a notification did not arrive: {}", error.message),
            Err(_) => eprintln!("toold-fetch: a notification did not arrive: timed out"),
        }
        if let Some(key) = cancelled {
            let bridge = self.clone();
            tokio::spawn(async move {
                tokio::time::sleep(CANCEL_GRACE).await;
                bridge.abandon(&key);
            });
        }
    }

    async fn on_notified(self: &Arc<Bridge>, message: &Outgoing, exchange: Exchange, sent: &Sent) {
        let status = exchange.response.status();
        match (status, sent.session) {
            (StatusCode::NOT_FOUND, Some(session)) => self.expire(session),
            (status, _) if status.is_success() => {
                let (body, sender) = exchange.into_parts();
                if read(body, MAX_REFUSAL_BYTES).await.is_ok() {
                    self.endpoint.keep(sender);
                }
                if message.is("notifications/initialized") {
                    self.start_listening();
                }
            }
            (status, _) => eprintln!("toold-fetch: the server answered {status} to a notification"),
        }
    }

    /// Ends a call that was cancelled, without an answer: who cancelled it does not wait for one.
    fn abandon(&self, key: &str) {
        if let Some(call) = self.session().end(key) {
            call.task.inspect(|task| task.abort());
            self.answered.notify_one();
        }
    }

    /// Answers all calls in flight and ends the session at the server.
    pub async fn shut_down(&self, reason: &str) {
        let calls: Vec<Call> = self.session().calls.drain().map(|(_, call)| call).collect();
        for call in calls.into_iter().filter(|call| call.visibility == Visibility::Written) {
            let error = outcome_unknown("bridge_ended", reason);
            self.output.write(error_answer(&call.id, &error)).await;
        }
        let (id, version) = {
            let mut session = self.session();
            (session.id.take(), session.version.take())
        };
        if let Some(id) = id {
            let mut headers = vec![("mcp-session-id".to_string(), id)];
            headers.extend(version.map(|version| ("mcp-protocol-version".to_string(), version)));
            // A server that keeps sessions answers 405, and one that is gone nothing.
            let _ = timeout(DELETE_TIMEOUT, self.endpoint.send(Method::DELETE, &headers, "")).await;
        }
        self.output.flush().await;
    }
}

/// The readers of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Visibility {
    /// It is written to stdout.
    Written,
    /// It is for the bridge itself.
    Hidden,
}

/// Reads a body to its end.
pub(super) async fn read(body: Incoming, max_bytes: usize) -> Result<String, String> {
    let body = Limited::new(body, max_bytes).collect().await.map_err(|e| e.to_string())?;
    Ok(String::from_utf8_lossy(&body.to_bytes()).into_owned())
}

/// Makes the error of a request that the server refused without one of its own.
fn refusal(status: StatusCode, retry_after: Option<String>) -> RpcError {
    let error = match status.as_u16() {
        401 | 403 => {
            let message = format!("the server answered {status}; check the headers that are configured for it");
            RpcError::new(ErrorKind::Denied, message).with("reason", "authorization")
        }
        // A gateway may answer for a server that has the request.
        500.. => outcome_unknown("server_error", format!("the server answered {status}")),
        _ => not_sent("refused", format!("the server answered {status}")),
    };
    let error = error.with("status", status.as_u16());
    retry_after.into_iter().fold(error, |error, after| error.with("retry_after", after))
}
