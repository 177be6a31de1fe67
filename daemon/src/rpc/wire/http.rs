//! HTTP/1.1: a POST is one message and its response the answer; a GET may become a WebSocket.

use super::connection::{Connection, Inbox, Transport};
use super::delivery::Answer;
use super::hang_up::hung_up;
use super::http_io::{AnswerBody, HttpIo};
use super::opening::OpeningDeadline;
use super::pending::Dispatched;
use super::response::error_without_id;
use super::sniff::Framing;
use super::{STOP_FLUSH_TIMEOUT, StopSignal, reject, ws};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HeaderValue, ORIGIN, UPGRADE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::Notify;
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;
use toold_proto::{ErrorKind, RpcError};

/// The longest request head. Browsers stay below 8 KiB.
const MAX_HEAD_LEN: usize = 64 * 1024;
/// The time for which the rest of a body over the limit is read and dropped, so that its sender sees the answer instead
/// of a reset.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest part of an origin in an error.
const MAX_ORIGIN_CHARS: usize = 200;
const USAGE: &str = "POST one JSON-RPC 2.0 message here, or connect as a WebSocket.\n";

/// One client, for the handlers of its requests.
struct HttpClient {
    connection: Arc<Connection>,
    stream: Arc<UnixStream>,
    upgraded: AtomicBool,
    /// Notified when the first whole request has come.
    opened: Notify,
}

/// The way in which hyper is done with a connection.
enum Ended {
    Http(hyper::Result<()>),
    /// The first request did not come in time.
    Overdue,
    Stop,
}

/// Serves a client until it closes or the daemon stops. `bytes` were read already.
pub(super) async fn serve(
    stream: UnixStream,
    (bytes, mut deadline): (Vec<u8>, OpeningDeadline),
    (connection, inbox): (Arc<Connection>, Inbox),
    stop: StopSignal,
) {
    let stream = Arc::new(stream);
    let io = HttpIo::new(stream.clone(), bytes, deadline.received().clone());
    let taken = io.taken();
    let (upgraded, opened) = (AtomicBool::new(false), Notify::new());
    let client = Arc::new(HttpClient { connection: connection.clone(), stream, upgraded, opened });
    let service = service_fn(|request| {
        let (client, taken) = (client.clone(), taken.clone());
        Box::pin(async move {
            let response = client.respond(request).await;
            Ok::<_, Infallible>(response.map(|reply| match reply {
                Reply::Text(text) => AnswerBody::text(text),
                Reply::Answer(answer) => AnswerBody::answer(answer, taken),
                Reply::Empty => AnswerBody::default(),
            }))
        })
    });
    // A client may close its sending side after its request, as `nc -N` does. `hung_up` notices when it is gone.
    let mut builder = http1::Builder::new();
    let mut http = builder.half_close(true).max_buf_size(MAX_HEAD_LEN).serve_connection(TokioIo::new(io), service);
    let mut stopping = stop.clone();
    let overdue = async {
        tokio::select! {
            () = deadline.passed() => {}
            () = client.opened.notified() => std::future::pending().await,
        }
    };
    let ended = tokio::select! {
        ended = poll_fn(|cx| http.poll_without_shutdown(cx)) => Ended::Http(ended),
        () = overdue => Ended::Overdue,
        () = stopping.wait() => Ended::Stop,
    };
    if let Ended::Stop = ended {
        std::pin::Pin::new(&mut http).graceful_shutdown();
        let rest = poll_fn(|cx| http.poll_without_shutdown(cx));
        // Waits only for the answer in flight. There is nothing to do about its failure.
        let _ = tokio::time::timeout(STOP_FLUSH_TIMEOUT, rest).await;
        return;
    }
    let parts = http.into_parts();
    let io = parts.io.into_inner();
    match ended {
        Ended::Overdue => reject::send_error_and_close(io, Framing::Http, &deadline.error()).await,
        Ended::Http(Ok(())) if client.upgraded.load(Relaxed) => {
            ws::serve(io, parts.read_buf.to_vec(), (connection, inbox), stop).await;
        }
        Ended::Http(_) | Ended::Stop => reject::linger(io).await,
    }
}

/// The body of a response before it is written.
#[derive(Default)]
enum Reply {
    Answer(Answer),
    Text(String),
    #[default]
    Empty,
}

impl HttpClient {
    async fn respond(&self, request: Request<Incoming>) -> Response<Reply> {
        if let Some(error) = self.check_origin(&request) {
            self.opened.notify_one();
            return json(StatusCode::FORBIDDEN, error_without_id(&error).into());
        }
        if request.headers().contains_key(UPGRADE) {
            self.opened.notify_one();
            return match create_response_with_body(&request, Reply::default) {
                Ok(response) => {
                    self.upgraded.store(true, Relaxed);
                    response
                }
                Err(error) => text(StatusCode::BAD_REQUEST, format!("no WebSocket: {error}\n")),
            };
        }
        if request.method() != Method::POST {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, USAGE.into());
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("POST"));
            return response;
        }
        let body = body(request, self.connection.wire.limits.max_message_bytes).await;
        self.opened.notify_one();
        match body {
            Body::Whole(message) => self.call(message).await,
            Body::TooLong(rest) => {
                let mut response = json(StatusCode::PAYLOAD_TOO_LARGE, self.connection.too_long().into());
                if rest == Rest::Unread {
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                response
            }
            Body::Broken => text(StatusCode::BAD_REQUEST, "the body ended early\n".into()),
        }
    }

    /// Rejects the requests of web pages that are not listed. Only a browser sends the header: the socket is not made for
    /// it, but a proxy could make it reachable for every page that its user opens.
    fn check_origin(&self, request: &Request<Incoming>) -> Option<RpcError> {
        let allowed = &self.connection.wire.limits.allowed_origins;
        let is_allowed = |origin: &&HeaderValue| allowed.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes());
        let origin = request.headers().get_all(ORIGIN).into_iter().find(|origin| !is_allowed(origin))?;
        let text: String = String::from_utf8_lossy(origin.as_bytes()).chars().take(MAX_ORIGIN_CHARS).collect();
        let reason = format!("the origin {text:?} is not in allowed_origins");
        Some(RpcError::new(ErrorKind::Denied, format!("access denied: {reason}")).with("reason", reason))
    }

    /// Runs one message. The call gets a task of its own: if it has an effect, it goes on when the client hangs up.
    async fn call(&self, message: Vec<u8>) -> Response<Reply> {
        let dispatched = self.connection.receive(&message, Transport::Post);
        // A call may take long, and its message may have values of environment variables.
        drop(message);
        crate::sys::wipe_stack();
        let answer = match dispatched {
            Dispatched::NoAnswer => None,
            Dispatched::Answer(answer) => Some(answer),
            Dispatched::Pending(pending) => tokio::select! {
                answer = self.connection.detach(pending) => answer,
                // The write of any response fails now, and that ends the connection.
                () = hung_up(&self.stream) => None,
            },
        };
        match answer {
            Some(answer) => json(StatusCode::OK, answer),
            None => {
                let mut response = Response::new(Reply::Empty);
                *response.status_mut() = StatusCode::NO_CONTENT;
                response
            }
        }
    }
}

enum Body {
    Whole(Vec<u8>),
    TooLong(Rest),
    Broken,
}

/// The state of a body over the limit after it was read.
#[derive(PartialEq, Eq)]
enum Rest {
    /// All of it was read, and another request may follow.
    Drained,
    Unread,
}

/// Reads the body. Never holds more than `max` bytes of it.
async fn body(request: Request<Incoming>, max: usize) -> Body {
    let length = request.headers().get(CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    let mut fits = length.is_none_or(|length| length <= max as u64);
    if !fits && request.headers().contains_key(EXPECT) {
        // The client waits for a `100 Continue` before it sends, so it does not send at all.
        return Body::TooLong(Rest::Unread);
    }
    let mut body = request.into_body();
    let mut whole = Vec::new();
    while fits {
        let Some(frame) = body.frame().await else { return Body::Whole(whole) };
        let Ok(frame) = frame else { return Body::Broken };
        // Trailers are not part of a message.
        let data = frame.into_data().unwrap_or_default();
        fits = whole.len() + data.len() <= max;
        if fits {
            whole.extend_from_slice(&data);
        }
    }
    drop(whole);
    let drain = async { while let Some(Ok(_)) = body.frame().await {} };
    match tokio::time::timeout(DRAIN_TIMEOUT, drain).await {
        Ok(()) => Body::TooLong(Rest::Drained),
        Err(_) => Body::TooLong(Rest::Unread),
    }
}

fn json(status: StatusCode, answer: Answer) -> Response<Reply> {
    typed(status, Reply::Answer(answer), "application/json")
}

fn text(status: StatusCode, body: String) -> Response<Reply> {
    typed(status, Reply::Text(body), "text/plain; charset=utf-8")
}

fn typed(status: StatusCode, body: Reply, content_type: &'static str) -> Response<Reply> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
