//! An HTTP server on loopback: a thread per connection, a function that answers, and a record of what was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// Longest wait for a request: a test that waits longer has failed.
const WAIT: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl HttpRequest {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.body).unwrap_or(serde_json::Value::Null)
    }
}

type Handler = dyn Fn(&HttpRequest, &mut TcpStream) + Send + Sync;

#[derive(Default)]
struct Record {
    requests: Mutex<Vec<HttpRequest>>,
    changed: Condvar,
}

/// Listens until the process ends: a test has few servers, and its process is short.
pub struct HttpServer {
    pub address: SocketAddr,
    record: Arc<Record>,
}

impl HttpServer {
    pub fn start(handler: impl Fn(&HttpRequest, &mut TcpStream) + Send + Sync + 'static) -> HttpServer {
        HttpServer::start_on(TcpListener::bind("127.0.0.1:0").unwrap(), handler)
    }

    pub fn start_on(
        listener: TcpListener,
        handler: impl Fn(&HttpRequest, &mut TcpStream) + Send + Sync + 'static,
    ) -> HttpServer {
        let address = listener.local_addr().unwrap();
        let record = Arc::new(Record::default());
        let (theirs, handler): (_, Arc<Handler>) = (record.clone(), Arc::new(handler));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (record, handler) = (theirs.clone(), handler.clone());
                std::thread::spawn(move || serve(stream, &record, &*handler));
            }
        });
        HttpServer { address, record }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns `host:port`, as `web.extract.allow` has it.
    pub fn host_port(&self) -> String {
        self.address.to_string()
    }

    pub fn requests(&self) -> Vec<HttpRequest> {
        self.record.requests.lock().unwrap().clone()
    }

    /// Waits for a request and returns the first that fits.
    pub fn wait_for(&self, fits: impl Fn(&HttpRequest) -> bool) -> HttpRequest {
        let until = Instant::now() + WAIT;
        let mut requests = self.record.requests.lock().unwrap();
        loop {
            if let Some(found) = requests.iter().find(|request| fits(request)) {
                return found.clone();
            }
            let left = until.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "no such request came; these did: {requests:#?}");
            requests = self.record.changed.wait_timeout(requests, left).unwrap().0;
        }
    }
}

/// Writes a complete answer with its length.
pub fn respond(stream: &mut TcpStream, status: &str, headers: &[(&str, &str)], body: &[u8]) {
    let mut head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n", body.len());
    headers.iter().for_each(|(name, value)| head.push_str(&format!("{name}: {value}\r\n")));
    // The client may have gone: that is its own affair.
    let _ = stream.write_all(&[format!("{head}\r\n").as_bytes(), body].concat());
    let _ = stream.flush();
}

/// Serves the requests of a connection, one after another.
fn serve(mut stream: TcpStream, record: &Record, handler: &Handler) {
    let Ok(reading) = stream.try_clone() else { return };
    let mut reader = BufReader::new(reading);
    while let Some(request) = read_request(&mut reader) {
        record.requests.lock().unwrap().push(request.clone());
        record.changed.notify_all();
        handler(&request, &mut stream);
    }
}

fn read_request(reader: &mut BufReader<TcpStream>) -> Option<HttpRequest> {
    let mut line = String::new();
    reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
    let mut parts = line.split_whitespace();
    let (method, path) = (parts.next()?.to_string(), parts.next()?.to_string());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|read| *read > 0)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_string()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").and_then(|(_, value)| value.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    Some(HttpRequest { method, path, headers, body })
}
