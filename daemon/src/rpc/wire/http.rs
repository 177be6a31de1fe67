//! HTTP/1.1: a POST is one message and its response the answer; a GET may become a WebSocket.

use super::connection::{Connection, Dispatched, Inbox, Transport};
use super::{STOP_FLUSH_TIMEOUT, StopSignal, reject, ws};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{ALLOW, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HeaderValue, UPGRADE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io::Cursor;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio_tungstenite::tungstenite::handshake::server::create_response_with_body;

/// The longest request head. Browsers stay below 8 KiB.
const MAX_HEAD_LEN: usize = 64 * 1024;
/// The time for which the rest of a body over the limit is read and dropped, so that its sender sees the answer instead
/// of a reset.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);
const USAGE: &str = "POST one JSON-RPC 2.0 message here, or connect as a WebSocket.\n";

/// Serves a client until it closes or the daemon stops. `bytes` were read already.
pub(super) async fn serve(
    stream: UnixStream,
    bytes: Vec<u8>,
    (connection, inbox): (Arc<Connection>, Inbox),
    stop: StopSignal,
) {
    let (reader, writer) = stream.into_split();
    let io = TokioIo::new(tokio::io::join(Cursor::new(bytes).chain(reader), writer));
    let upgraded = Arc::new(AtomicBool::new(false));
    let service = service_fn(|request| {
        let (connection, upgraded) = (connection.clone(), upgraded.clone());
        Box::pin(async move { Ok::<_, Infallible>(respond(request, &connection, &upgraded).await) })
    });
    let mut http = http1::Builder::new().max_buf_size(MAX_HEAD_LEN).serve_connection(io, service);
    let mut stopping = stop.clone();
    let ended = tokio::select! {
        ended = poll_fn(|cx| http.poll_without_shutdown(cx)) => ended,
        () = stopping.wait() => {
            std::pin::Pin::new(&mut http).graceful_shutdown();
            let rest = poll_fn(|cx| http.poll_without_shutdown(cx));
            // Waits only for the answer in flight. There is nothing to do about its failure.
            let _ = tokio::time::timeout(STOP_FLUSH_TIMEOUT, rest).await;
            return;
        }
    };
    let parts = http.into_parts();
    if ended.is_ok() && upgraded.load(Relaxed) {
        ws::serve(parts.io.into_inner(), parts.read_buf.to_vec(), (connection, inbox), stop).await;
    } else {
        reject::linger(parts.io.into_inner()).await;
    }
}

async fn respond(
    request: Request<Incoming>,
    connection: &Arc<Connection>,
    upgraded: &AtomicBool,
) -> Response<Full<Bytes>> {
    if request.headers().contains_key(UPGRADE) {
        return match create_response_with_body(&request, Full::default) {
            Ok(response) => {
                upgraded.store(true, Relaxed);
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
    match body(request, connection.wire.limits.max_message_bytes).await {
        Body::Whole(message) => call(&message, connection).await,
        Body::TooLong(rest) => {
            let mut response = json(StatusCode::PAYLOAD_TOO_LARGE, connection.too_long());
            if rest == Rest::Unread {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            response
        }
        Body::Broken => text(StatusCode::BAD_REQUEST, "the body ended early\n".into()),
    }
}

/// Runs one message. The call gets a task of its own: hyper drops this future when the client hangs up.
async fn call(message: &[u8], connection: &Arc<Connection>) -> Response<Full<Bytes>> {
    let answer = match connection.receive(message, Transport::Post) {
        Dispatched::NoAnswer => None,
        Dispatched::Answer(text) => Some(text),
        // The task does not panic: every call in it has a panic guard.
        Dispatched::Pending(pending) => connection.detach(pending).await.ok().flatten(),
    };
    match answer {
        Some(answer) => json(StatusCode::OK, answer),
        None => {
            let mut response = Response::new(Full::default());
            *response.status_mut() = StatusCode::NO_CONTENT;
            response
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

fn json(status: StatusCode, answer: Box<str>) -> Response<Full<Bytes>> {
    // The newline is for curl in a terminal.
    let body = format!("{answer}\n");
    typed(status, body, "application/json")
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    typed(status, body, "text/plain; charset=utf-8")
}

fn typed(status: StatusCode, body: String, content_type: &'static str) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
