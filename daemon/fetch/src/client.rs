//! One HTTP request with its redirects, each judged by the rules before a connection is made. No cookies, no proxy.

use crate::connect::{Connector, Resolve};
use crate::page::decode::{self, ACCEPTED};
use crate::target::{Rules, Target};
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Request, Response, StatusCode};
use std::sync::Arc;
use toold_fetch_templates::{HttpCall, HttpMethod};
use toold_proto::{ErrorKind, RpcError};

const MAX_REDIRECTS: usize = 5;

const USER_AGENT: &str = concat!("Mozilla/5.0 (compatible; toold-fetch/", env!("CARGO_PKG_VERSION"), ")");

/// Kinds of pages that can be extracted, text first: some servers have their pages as Markdown too.
const ACCEPT_PAGE: &str = "text/markdown, text/html, application/xhtml+xml, text/plain;q=0.9, application/json;q=0.9, application/xml;q=0.8, */*;q=0.1";

#[derive(Default)]
pub struct Client {
    connector: Connector,
}

/// A complete answer, not yet decompressed.
#[derive(Debug)]
pub struct Fetched {
    /// The URL after all redirects.
    pub target: Target,
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Fetched {
    pub fn header(&self, name: HeaderName) -> Option<String> {
        self.headers.get(name).and_then(|value| value.to_str().ok()).map(String::from)
    }

    /// Decompresses the body. For answers of a configured provider; a page is decompressed by its extractor.
    pub fn decoded(&mut self, max_bytes: u64) -> Result<Vec<u8>, RpcError> {
        let encoding = self.header(header::CONTENT_ENCODING).unwrap_or_default();
        decode::decode(&encoding, std::mem::take(&mut self.body), max_bytes)
    }
}

impl Client {
    pub fn with_resolver(resolver: Arc<dyn Resolve>) -> Client {
        Client { connector: Connector::new(resolver) }
    }

    /// Fetches a page. The caller bounds the time.
    pub async fn page(&self, target: Target, rules: &Rules, max_bytes: u64) -> Result<Fetched, RpcError> {
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static(ACCEPT_PAGE));
        headers.insert(header::ACCEPT_LANGUAGE, HeaderValue::from_static("en, *;q=0.5"));
        self.follow(target, rules, Message { method: Method::GET, headers, body: Bytes::new() }, max_bytes).await
    }

    /// Makes the call of a template. Its own host may be private; a redirect may not leave it for a private one.
    pub async fn call(&self, call: &HttpCall, max_bytes: u64) -> Result<Fetched, RpcError> {
        let target = Target::parse(&call.url)?;
        let rules = Rules::provider(&target);
        let mut headers = HeaderMap::new();
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        if call.body.is_some() {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        for (name, value) in &call.headers {
            let bad =
                || RpcError::new(ErrorKind::InvalidParams, format!("the template's header `{name}` is not valid"));
            let mut value = HeaderValue::from_str(value).map_err(|_| bad())?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_bytes(name.as_bytes()).map_err(|_| bad())?, value);
        }
        let method = match call.method {
            HttpMethod::Get => Method::GET,
            HttpMethod::Post => Method::POST,
        };
        let body = call.body.clone().map(Bytes::from).unwrap_or_default();
        self.follow(target, &rules, Message { method, headers, body }, max_bytes).await
    }

    async fn follow(
        &self,
        mut target: Target,
        rules: &Rules,
        mut message: Message,
        max_bytes: u64,
    ) -> Result<Fetched, RpcError> {
        for _ in 0..=MAX_REDIRECTS {
            let response = self.send(&target, rules, &message).await?;
            let Some(location) = location(&response)? else {
                let (head, body) = response.into_parts();
                let body = read_body(&head.headers, body, max_bytes).await?;
                return Ok(Fetched { target, status: head.status, headers: head.headers, body });
            };
            if message.method != Method::GET {
                let error = format!("the server redirects to `{location}`; configure that address");
                return Err(RpcError::new(ErrorKind::Unavailable, error).with("reason", "redirect"));
            }
            let next = target.redirect(&location)?;
            if !next.has_same_origin(&target) {
                // Keys are for the host that the user configured.
                remove_keyed(&mut message.headers);
            }
            target = next;
        }
        let error = format!("more than {MAX_REDIRECTS} redirects");
        Err(RpcError::new(ErrorKind::Unavailable, error).with("reason", "redirect"))
    }

    /// Resolves, checks every address, and connects to what was checked.
    async fn send(&self, target: &Target, rules: &Rules, message: &Message) -> Result<Response<Incoming>, RpcError> {
        rules.check_target(target)?;
        let addresses = self.connector.resolve(target).await?;
        rules.check_addresses(target, &addresses)?;
        let mut sender = self.connector.connect(target, &addresses).await?;
        let request = Request::builder().method(message.method.clone()).uri(target.path());
        let request = request.header(header::HOST, target.authority());
        let request = request.header(header::USER_AGENT, USER_AGENT).header(header::ACCEPT_ENCODING, ACCEPTED);
        let request = message.headers.iter().fold(request, |request, (name, value)| request.header(name, value));
        let request = request.body(Full::new(message.body.clone()));
        let request = request.map_err(|e| RpcError::param("url", format!("cannot be requested: {e}")))?;
        let failed = |e: hyper::Error| {
            let message = format!("`{}` did not answer: {e}", target.at.host);
            RpcError::new(ErrorKind::Unavailable, message).with("reason", "http")
        };
        sender.send_request(request).await.map_err(failed)
    }
}

struct Message {
    method: Method,
    headers: HeaderMap,
    body: Bytes,
}

/// Removes the headers of a template: any of them may have the key.
fn remove_keyed(headers: &mut HeaderMap) {
    let keyed = headers.iter().filter(|(_, value)| value.is_sensitive()).map(|(name, _)| name.clone());
    let keyed: Vec<HeaderName> = keyed.collect();
    keyed.iter().for_each(|name| drop(headers.remove(name)));
}

fn location(response: &Response<Incoming>) -> Result<Option<String>, RpcError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let location = response.headers().get(header::LOCATION).map(|value| String::from_utf8_lossy(value.as_bytes()));
    match location {
        Some(location) => Ok(Some(location.into_owned())),
        None => {
            Err(RpcError::new(ErrorKind::Unavailable, "a redirect that names no address").with("reason", "redirect"))
        }
    }
}

async fn read_body(headers: &HeaderMap, mut body: Incoming, max_bytes: u64) -> Result<Vec<u8>, RpcError> {
    let declared = headers.get(header::CONTENT_LENGTH).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
    if declared.is_some_and(|length| length > max_bytes) {
        return Err(decode::too_large(max_bytes));
    }
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|e| {
            RpcError::new(ErrorKind::Unavailable, format!("the answer broke off: {e}")).with("reason", "http")
        })?;
        let Some(data) = frame.data_ref() else { continue };
        if (bytes.len() + data.len()) as u64 > max_bytes {
            return Err(decode::too_large(max_bytes));
        }
        bytes.extend_from_slice(data);
    }
    Ok(bytes)
}

/// Makes the error for a status that is not success. `hints` are remedies by status.
pub fn status_error(
    subject: &str,
    fetched: &Fetched,
    hints: &std::collections::BTreeMap<String, String>,
) -> Option<RpcError> {
    let status = fetched.status;
    if status.is_success() {
        return None;
    }
    let kind = match status.as_u16() {
        401 | 403 | 407 | 451 => ErrorKind::Denied,
        404 | 410 => ErrorKind::NotFound,
        429 => ErrorKind::Limit,
        _ => ErrorKind::Unavailable,
    };
    let hint = hints.get(status.as_str()).map(|hint| format!("; {hint}")).unwrap_or_default();
    let error = RpcError::new(kind, format!("{subject} answered {status}{hint}")).with("status", status.as_u16());
    Some(match fetched.header(header::RETRY_AFTER) {
        Some(after) => error.with("retry_after", after),
        None => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;
    use std::net::SocketAddr;
    use std::sync::Mutex;
    use toold_test_support::http::{HttpServer, respond};

    /// Answers each question for a host with its next list of addresses, and records the questions.
    struct Script {
        answers: Mutex<Vec<Vec<SocketAddr>>>,
        asked: Mutex<Vec<String>>,
    }

    impl Resolve for Script {
        fn resolve(&self, host: &str, _: u16) -> io::Result<Vec<SocketAddr>> {
            self.asked.lock().expect("no panic").push(host.into());
            Ok(self.answers.lock().expect("no panic").remove(0))
        }
    }

    fn script(answers: &[&[SocketAddr]]) -> Arc<Script> {
        let answers = answers.iter().map(|addresses| addresses.to_vec()).collect();
        Arc::new(Script { answers: Mutex::new(answers), asked: Mutex::default() })
    }

    fn fetch(script: &Arc<Script>, url: &str, allow: &[String]) -> Result<Fetched, RpcError> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let rules = Rules::parse(allow, &[]).expect("rules");
        let client = Client::with_resolver(script.clone());
        runtime.block_on(client.page(Target::parse(url).expect("a URL"), &rules, 1 << 20))
    }

    fn server(body: &'static str) -> HttpServer {
        HttpServer::start(move |_, stream| respond(stream, "200 OK", &[], body.as_bytes()))
    }

    #[test]
    fn a_name_is_resolved_once_and_the_checked_address_is_used() {
        // A client that checks one answer and connects by another gets "inner".
        let (outer, inner) = (server("outer"), server("inner"));
        let script = script(&[&[outer.address], &[inner.address]]);
        let fetched = fetch(&script, "http://rebind.test:8080/", &["rebind.test:8080".into()]).expect("a page");
        assert_eq!(fetched.body, b"outer");
        assert_eq!(script.asked.lock().expect("no panic").as_slice(), ["rebind.test"]);
        assert_eq!(inner.requests(), []);
    }

    #[test]
    fn a_private_address_among_public_ones_refuses_the_name_before_any_connection() {
        let server = server("inner");
        let public: SocketAddr = "93.184.216.34:80".parse().expect("an address");
        let error = fetch(&script(&[&[public, server.address]]), "http://mixed.test/", &[]).expect_err("refused");
        assert_eq!(error.kind(), Some(ErrorKind::Denied));
        assert_eq!(error.data["class"], "loopback");
        assert_eq!(server.requests(), []);
    }

    #[test]
    fn every_redirect_is_resolved_and_judged_again() {
        let server = HttpServer::start(|request, stream| match request.path.as_str() {
            "/start" => respond(stream, "302 Found", &[("location", "/next")], b""),
            _ => respond(stream, "307 Temporary Redirect", &[("location", "http://inner.test/")], b""),
        });
        // The second question for the same name has another answer: that one is judged too.
        let script = script(&[&[server.address], &[server.address], &["10.0.0.1:80".parse().expect("an address")]]);
        let error = fetch(&script, "http://outer.test:81/start", &["outer.test:81".into()]).expect_err("refused");
        assert_eq!((error.kind(), error.data["class"].as_str()), (Some(ErrorKind::Denied), Some("private")));
        assert_eq!(script.asked.lock().expect("no panic").as_slice(), ["outer.test", "outer.test", "inner.test"]);
    }

    #[test]
    fn a_key_does_not_follow_a_redirect_to_another_host() {
        let elsewhere = server("{}");
        let to = elsewhere.url("/");
        let first = HttpServer::start(move |_, stream| respond(stream, "302 Found", &[("location", &to)], b""));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let mut headers = HeaderMap::new();
        let mut key = HeaderValue::from_static("s3cret");
        key.set_sensitive(true);
        headers.insert("x-key", key);
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        let rules = Rules::parse(&[first.host_port(), elsewhere.host_port()], &[]).expect("rules");
        let message = Message { method: Method::GET, headers, body: Bytes::new() };
        let target = Target::parse(&first.url("/")).expect("a URL");
        runtime.block_on(Client::default().follow(target, &rules, message, 100)).expect("an answer");
        assert_eq!(first.requests()[0].header("x-key"), Some("s3cret"));
        assert_eq!(elsewhere.requests()[0].header("x-key"), None);
        assert_eq!(elsewhere.requests()[0].header("accept"), Some("application/json"));
        assert_eq!(elsewhere.requests()[0].header("cookie"), None);
    }
}
