//! Streams of events: the answer to a request, resumed where it broke off; and the server's own, for notifications.

use super::bridge::{Bridge, MAX_MESSAGE_BYTES, SESSION_ENDED, Sent, Visibility};
use super::endpoint::Exchange;
use super::message::{Outgoing, Received, error_answer, outcome_unknown};
use super::session::Era;
use super::sse::SseParser;
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::{Method, header};
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};

/// Delay before a stream is resumed, unless the server asked for another.
const RESUME_DELAY: Duration = Duration::from_secs(1);
/// Longest delay that a server can ask for, and that failures lead to.
const MAX_RESUME_DELAY: Duration = Duration::from_secs(60);
/// Failures in a row, after which the answer of a call is given up.
const MAX_RESUME_FAILURES: u32 = 8;
/// Time in which calls of a session that has ended are refused by the server itself.
const REFUSAL_GRACE: Duration = Duration::from_millis(300);
/// Time for the end of a stream after its answer, for the connection to be used again.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(50);

/// A place in a stream.
#[derive(Debug, Default)]
struct Cursor {
    last_event: Option<String>,
    retry_ms: Option<u64>,
}

impl Cursor {
    /// Returns the time to wait after this many failures.
    fn delay(&self, failures: u32) -> Duration {
        let base = self.retry_ms.map_or(RESUME_DELAY, Duration::from_millis);
        base.saturating_mul(1 << failures.min(6)).min(MAX_RESUME_DELAY)
    }
}

/// The outcome of an attempt to open a stream.
enum Opened {
    Stream(Incoming),
    /// The session is no more.
    Expired,
    /// The server has no such stream.
    None(String),
    /// An error that may pass.
    Failed(String),
}

impl Bridge {
    /// Reads the stream that answers a call, over broken connections if the server numbers its events.
    pub(super) async fn follow(self: &Arc<Bridge>, key: &str, exchange: Exchange, sent: &Sent) {
        let (mut body, sender) = exchange.into_parts();
        let mut sender = Some(sender);
        let mut cursor = Cursor::default();
        loop {
            let end = self.read_events(&mut body, &mut cursor, Some(key)).await;
            if !self.is_in_flight(key) {
                let is_drained = timeout(DRAIN_TIMEOUT, async { while let Some(Ok(_)) = body.frame().await {} }).await;
                if let (Ok(()), Some(sender)) = (is_drained, sender) {
                    self.endpoint.keep(sender);
                }
                return;
            }
            sender = None;
            if cursor.last_event.is_none() || sent.era == Era::Stateless {
                return self.fail(key, outcome_unknown("stream_ended", end)).await;
            }
            match self.resume(&cursor, key).await {
                Opened::Stream(next) => body = next,
                Opened::Expired => return self.expire(sent.session.unwrap_or_default()),
                Opened::None(reason) | Opened::Failed(reason) => {
                    let reason = format!("{end}, and cannot be resumed: {reason}");
                    return self.fail(key, outcome_unknown("stream_ended", reason)).await;
                }
            }
        }
    }

    /// Opens a broken stream again, at its cursor.
    async fn resume(&self, cursor: &Cursor, key: &str) -> Opened {
        let mut failures = 0;
        loop {
            sleep(cursor.delay(failures)).await;
            match self.open(cursor).await {
                Opened::Failed(_) if failures < MAX_RESUME_FAILURES && self.is_in_flight(key) => failures += 1,
                opened => return opened,
            }
        }
    }

    async fn open(&self, cursor: &Cursor) -> Opened {
        let mut headers = vec![("accept".to_string(), "text/event-stream".to_string())];
        let has_session = {
            let session = self.session();
            headers.extend(session.id.iter().map(|id| ("mcp-session-id".to_string(), id.clone())));
            headers.extend(session.version.iter().map(|v| ("mcp-protocol-version".to_string(), v.clone())));
            session.id.is_some()
        };
        headers.extend(cursor.last_event.iter().map(|id| ("last-event-id".to_string(), id.clone())));
        let exchange = match self.endpoint.send(Method::GET, &headers, "").await {
            Ok(exchange) => exchange,
            Err(error) => return Opened::Failed(error.message),
        };
        let status = exchange.response.status();
        let content_type = exchange.header(header::CONTENT_TYPE.as_str()).unwrap_or_default();
        match status.as_u16() {
            200..=299 if content_type.starts_with("text/event-stream") => Opened::Stream(exchange.into_parts().0),
            404 if has_session => Opened::Expired,
            408 | 429 | 500.. => Opened::Failed(format!("the server answered {status}")),
            _ => Opened::None(format!("the server answered {status}")),
        }
    }

    /// Delivers the messages of a stream until its end, or until a call is answered. Returns the reason of the end.
    async fn read_events(&self, body: &mut Incoming, cursor: &mut Cursor, until: Option<&str>) -> String {
        let mut parser = SseParser::default();
        while let Some(frame) = body.frame().await {
            let frame = match frame {
                Ok(frame) => frame,
                Err(e) => return format!("the stream of the answer broke off: {e}"),
            };
            for event in parser.feed(frame.data_ref().map_or(&[], |data| data)) {
                cursor.last_event = event.id.or(cursor.last_event.take());
                if event.data.is_empty() {
                    continue;
                }
                match Received::parse(&event.data) {
                    Ok(messages) => {
                        for message in messages {
                            self.deliver(message).await;
                        }
                    }
                    Err(e) => eprintln!("toold-fetch: the server sent an event that is not a message: {e}"),
                }
            }
            cursor.retry_ms = parser.retry_ms.or(cursor.retry_ms);
            if until.is_some_and(|key| !self.is_in_flight(key)) {
                return String::new();
            }
            if parser.pending_bytes() > MAX_MESSAGE_BYTES {
                cursor.last_event = None;
                return format!("the server sent a message of more than {MAX_MESSAGE_BYTES} bytes");
            }
        }
        "the stream ended without the answer".into()
    }

    /// Starts to listen to the server's own stream. A plain function, so that the tasks do not contain each other.
    pub(super) fn start_listening(self: &Arc<Bridge>) {
        let number = self.session().number;
        tokio::spawn(self.clone().listen(number));
    }

    /// Listens as long as the session lasts, if the server has such a stream.
    async fn listen(self: Arc<Bridge>, number: u64) {
        let mut cursor = Cursor::default();
        let mut failures = 0;
        while self.session().number == number {
            match self.open(&cursor).await {
                Opened::Stream(mut body) => {
                    failures = 0;
                    self.read_events(&mut body, &mut cursor, None).await;
                }
                Opened::Expired => return self.expire(number),
                Opened::None(_) => return,
                Opened::Failed(_) => failures += 1,
            }
            sleep(cursor.delay(failures)).await;
        }
    }

    /// Ends a session that the server has ended: its calls are answered, and a new session begins. In a task of its own,
    /// because the tasks of the calls are ended.
    pub(super) fn expire(self: &Arc<Bridge>, number: u64) {
        let bridge = self.clone();
        tokio::spawn(async move {
            let handshake = bridge.handshake.clone().lock_owned().await;
            if !bridge.session().expire(number) {
                return;
            }
            // A call that the server is about to refuse has a better answer than any from here.
            sleep(REFUSAL_GRACE).await;
            let calls = bridge.session().end_all(number);
            for call in calls {
                call.task.inspect(|task| task.abort());
                let error = outcome_unknown("session_expired", SESSION_ENDED);
                bridge.output.write(error_answer(&call.id, &error)).await;
            }
            bridge.answered.notify_one();
            bridge.handshake_again(number).await;
            drop(handshake);
        });
    }

    /// Begins a session again, with the `initialize` that the client sent before.
    async fn handshake_again(self: &Arc<Bridge>, number: u64) {
        let initialize = self.session().initialize.clone();
        let message = initialize.and_then(|mut message| {
            *message.get_mut("id")? = Value::String(format!("toold-fetch-session-{number}"));
            Outgoing::parse(&message.to_string()).ok()
        });
        let Some(message) = message else { return self.failed.notify_one() };
        let Some(key) = self.begin(&message, Visibility::Hidden) else { return self.failed.notify_one() };
        self.clone().call(message, key).await;
        if self.session().version.is_none() {
            eprintln!("toold-fetch: the server has ended the session, and no new one can begin");
            return self.failed.notify_one();
        }
        eprintln!("toold-fetch: the server has ended the session, and a new one began");
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
        if let Ok(message) = Outgoing::parse(&initialized) {
            self.notify(&message).await;
        }
        // The new session may have other tools: the client lists them again.
        let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
        self.output.write(changed.to_string()).await;
    }
}
