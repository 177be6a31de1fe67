//! One request of a connection: its head, the check, and the page, a refusal or the WebSocket.

use crate::access::{Credentials, Decision, secret};
use crate::{Server, proxy};
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tungstenite::handshake::derive_accept_key;

const MAX_HEAD_LEN: usize = 16 * 1024;
const MAX_HEADERS: usize = 64;
/// The time that a client may take to send its request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
const PAGE: &str = include_str!("page.html");

/// The parts of a request that matter here.
#[derive(Debug, Default, PartialEq, Eq)]
struct Request {
    method: String,
    path: String,
    token: Option<String>,
    host: Option<String>,
    origin: Option<String>,
    cookies: Option<String>,
    authorization: Option<String>,
    upgrade: Option<String>,
    websocket_key: Option<String>,
    websocket_version: Option<String>,
}

/// Serves the one request of a connection. `number` is its number among those without the token.
pub fn serve(server: &Server, mut stream: TcpStream, number: u64) -> io::Result<()> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(HEAD_TIMEOUT))?;
    let Some(request) = read_request(&mut stream)? else {
        return refuse(&mut stream, "400 Bad Request", "this is not a request that toolctl web understands");
    };
    let bearer = request.authorization.as_deref().and_then(|value| value.strip_prefix("Bearer "));
    let given = Credentials {
        host: request.host.as_deref(),
        origin: request.origin.as_deref(),
        token: request.token.as_deref().or(bearer),
        cookies: request.cookies.as_deref(),
    };
    match server.access.check(given) {
        Decision::Allow => server.unauthorized.remove(number),
        Decision::NoToken => {
            return refuse(
                &mut stream,
                "401 Unauthorized",
                "open the address that `toolctl web` printed: it has a token",
            );
        }
        Decision::WrongToken => {
            return refuse(
                &mut stream,
                "403 Forbidden",
                "the token is wrong: open the address that `toolctl web` printed",
            );
        }
        Decision::ForeignHost => {
            return refuse(&mut stream, "403 Forbidden", "this host name is refused: use 127.0.0.1");
        }
        Decision::ForeignOrigin => return refuse(&mut stream, "403 Forbidden", "a page of another origin is refused"),
    }
    match (request.method.as_str(), request.path.as_str()) {
        ("GET" | "HEAD", "/") => page(server, &mut stream, request.method == "HEAD"),
        ("GET", "/ws") => upgrade(server, stream, &request),
        (_, "/" | "/ws") => refuse(&mut stream, "405 Method Not Allowed", "only GET is understood"),
        _ => refuse(&mut stream, "404 Not Found", "there is nothing here"),
    }
}

/// Reads the head of a request. None: it is not one.
fn read_request(stream: &mut TcpStream) -> io::Result<Option<Request>> {
    let until = Instant::now() + HEAD_TIMEOUT;
    let mut head = Vec::new();
    let mut chunk = [0; 2048];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = until.saturating_duration_since(Instant::now());
        if head.len() > MAX_HEAD_LEN || left.is_zero() {
            return Ok(None);
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut chunk)? {
            0 => return Ok(None),
            read => head.extend_from_slice(&chunk[..read]),
        }
    }
    Ok(parse(&head))
}

fn parse(head: &[u8]) -> Option<Request> {
    let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
    let mut parsed = httparse::Request::new(&mut headers);
    if !parsed.parse(head).is_ok_and(|status| status.is_complete()) {
        return None;
    }
    let (path, query) = parsed.path?.split_once('?').unwrap_or((parsed.path?, ""));
    let token = query.split('&').find_map(|pair| pair.strip_prefix("token="));
    let mut request = Request {
        method: parsed.method?.into(),
        path: path.into(),
        token: token.map(Into::into),
        ..Request::default()
    };
    for header in parsed.headers.iter() {
        let value = std::str::from_utf8(header.value).ok()?.trim().to_owned();
        let place = match header.name.to_ascii_lowercase().as_str() {
            "host" => &mut request.host,
            "origin" => &mut request.origin,
            "cookie" => &mut request.cookies,
            "authorization" => &mut request.authorization,
            "upgrade" => &mut request.upgrade,
            "sec-websocket-key" => &mut request.websocket_key,
            "sec-websocket-version" => &mut request.websocket_version,
            // The others do not matter here.
            _ => continue,
        };
        // A header that decides stands once: of two, another reader could take the other.
        if place.replace(value).is_some() {
            return None;
        }
    }
    Some(request)
}

fn page(server: &Server, stream: &mut TcpStream, head_only: bool) -> io::Result<()> {
    let nonce = secret()?;
    let body = PAGE.replace("{{nonce}}", &nonce).replace("{{write}}", if server.write { "yes" } else { "no" });
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let cookie = server.access.set_cookie();
    let headers = [("Content-Security-Policy", policy.as_str()), ("Set-Cookie", cookie.as_str())];
    let body = if head_only { "" } else { &body };
    respond(stream, "200 OK", "text/html; charset=utf-8", &headers, body)
}

fn refuse(stream: &mut TcpStream, status: &str, why: &str) -> io::Result<()> {
    respond(stream, status, "text/plain; charset=utf-8", &[], &format!("{why}\n"))
}

fn respond(stream: &mut TcpStream, status: &str, kind: &str, headers: &[(&str, &str)], body: &str) -> io::Result<()> {
    let mut head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\nCache-Control: no-store\r\n\
         X-Content-Type-Options: nosniff\r\nX-Frame-Options: DENY\r\nReferrer-Policy: no-referrer\r\n\
         Cross-Origin-Resource-Policy: same-origin\r\nCross-Origin-Opener-Policy: same-origin\r\n",
        body.len()
    );
    for (name, value) in headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{head}\r\n{body}").as_bytes())?;
    stream.flush()
}

fn upgrade(server: &Server, mut stream: TcpStream, request: &Request) -> io::Result<()> {
    let is_websocket = request.upgrade.as_deref().is_some_and(|value| value.eq_ignore_ascii_case("websocket"));
    let (Some(key), Some("13"), true) = (&request.websocket_key, request.websocket_version.as_deref(), is_websocket)
    else {
        return refuse(&mut stream, "426 Upgrade Required", "this is a WebSocket");
    };
    let accept = derive_accept_key(key.as_bytes());
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    stream.write_all(head.as_bytes())?;
    proxy::run(server, stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_is_read_and_one_with_two_hosts_is_not() {
        let head = b"GET /ws?a=1&token=ab HTTP/1.1\r\nHOST: x:1\r\nOrigin: http://x:1\r\nCookie: a=b\r\n\r\n";
        let expected = Request {
            method: "GET".into(),
            path: "/ws".into(),
            token: Some("ab".into()),
            host: Some("x:1".into()),
            origin: Some("http://x:1".into()),
            cookies: Some("a=b".into()),
            ..Request::default()
        };
        assert_eq!(parse(head), Some(expected));
        assert_eq!(parse(b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n"), None);
        assert_eq!(parse(b"nonsense\r\n\r\n"), None);
    }
}
