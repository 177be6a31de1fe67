//! The server's address: one HTTP exchange at a time, and the knowledge of whether its request was sent.

use super::message::{not_sent, outcome_unknown};
use crate::connect::{Body, Connector, Sender};
use crate::target::Target;
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use toold_proto::RpcError;

/// A connection that was idle for longer is not used again: servers close theirs after seconds, and a request that meets
/// the close would have an unknown outcome.
const MAX_IDLE: Duration = Duration::from_secs(1);
const MAX_IDLE_CONNECTIONS: usize = 8;
const MAX_REDIRECTS: usize = 5;

pub struct Endpoint {
    connector: Connector,
    /// Changes with a redirect.
    target: Mutex<Target>,
    /// Headers of the user, on every request.
    headers: HeaderMap,
    idle: Mutex<Vec<(Instant, Sender)>>,
}

/// A response, with the connection that it comes from.
pub struct Exchange {
    pub response: Response<Incoming>,
    sender: Sender,
}

impl Endpoint {
    pub fn new(target: Target, headers: HeaderMap) -> Endpoint {
        Endpoint { connector: Connector::default(), target: Mutex::new(target), headers, idle: Mutex::default() }
    }

    /// Sends a request. The error is `unavailable` if it provably was not sent, else `outcome_unknown`.
    pub async fn send(&self, method: Method, headers: &[(String, String)], body: &str) -> Result<Exchange, RpcError> {
        for _ in 0..=MAX_REDIRECTS {
            let target = self.target.lock().expect("no panic holds it").clone();
            let request = self.request(&target, &method, headers, body)?;
            let exchange = self.exchange(&target, request).await?;
            let status = exchange.response.status().as_u16();
            let location = exchange.response.headers().get(header::LOCATION).and_then(|value| value.to_str().ok());
            let (Some(location), 307 | 308) = (location, status) else { return Ok(exchange) };
            let next = target.redirect(location)?;
            // The user's headers have keys, and were given for this server.
            if !next.has_same_origin(&target) {
                return Err(not_sent(
                    "redirect",
                    format!("the server redirects to `{}`; configure that url", next.url),
                ));
            }
            *self.target.lock().expect("no panic holds it") = next;
        }
        Err(not_sent("redirect", format!("more than {MAX_REDIRECTS} redirects")))
    }

    /// Takes back the connection of a response that was read to its end.
    pub fn keep(&self, sender: Sender) {
        let mut idle = self.idle.lock().expect("no panic holds it");
        idle.retain(|(since, sender)| since.elapsed() < MAX_IDLE && !sender.is_closed());
        if idle.len() < MAX_IDLE_CONNECTIONS {
            idle.push((Instant::now(), sender));
        }
    }

    fn idle_connection(&self) -> Option<Sender> {
        let mut idle = self.idle.lock().expect("no panic holds it");
        while let Some((since, sender)) = idle.pop() {
            if since.elapsed() < MAX_IDLE && sender.is_ready() {
                return Some(sender);
            }
        }
        None
    }

    fn request(
        &self,
        target: &Target,
        method: &Method,
        headers: &[(String, String)],
        body: &str,
    ) -> Result<Request<Body>, RpcError> {
        let request = Request::builder().method(method.clone()).uri(target.path());
        let request = request.header(header::HOST, target.authority());
        let request = request.header(header::USER_AGENT, concat!("toold-fetch/", env!("CARGO_PKG_VERSION")));
        let mut request = request
            .body(Full::new(Bytes::copy_from_slice(body.as_bytes())))
            .map_err(|e| not_sent("request", format!("the request is not valid: {e}")))?;
        for (name, value) in headers {
            let bad = |_| not_sent("request", format!("the header `{name}` is not valid"));
            let value = HeaderValue::from_str(value).map_err(|e| bad(e.to_string()))?;
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|e| bad(e.to_string()))?;
            request.headers_mut().insert(name, value);
        }
        request.headers_mut().extend(self.headers.clone());
        Ok(request)
    }

    async fn exchange(&self, target: &Target, mut request: Request<Body>) -> Result<Exchange, RpcError> {
        if let Some(mut sender) = self.idle_connection() {
            match sender.try_send_request(request).await {
                Ok(response) => return Ok(Exchange { response, sender }),
                Err(mut error) => match error.take_message() {
                    // The connection ended before the request was written to it.
                    Some(unsent) => request = unsent,
                    None => return Err(lost(error.error())),
                },
            }
        }
        let unreached = |error: RpcError| {
            let reason = error.data.get("reason").and_then(|reason| reason.as_str()).unwrap_or("connect");
            not_sent(reason, &error.message)
        };
        let addresses = self.connector.resolve(target).await.map_err(unreached)?;
        let mut sender = self.connector.connect(target, &addresses).await.map_err(unreached)?;
        let mut error = match sender.try_send_request(request).await {
            Ok(response) => return Ok(Exchange { response, sender }),
            Err(error) => error,
        };
        match error.take_message() {
            Some(_) => Err(not_sent("connect", format!("the server closed the connection: {}", error.error()))),
            None => Err(lost(error.error())),
        }
    }
}

impl Exchange {
    pub fn header(&self, name: &str) -> Option<String> {
        self.response.headers().get(name).and_then(|value| value.to_str().ok()).map(String::from)
    }

    pub fn into_parts(self) -> (Incoming, Sender) {
        (self.response.into_body(), self.sender)
    }
}

fn lost(error: &hyper::Error) -> RpcError {
    outcome_unknown("connection_lost", format!("the connection was lost after the request was sent: {error}"))
}
