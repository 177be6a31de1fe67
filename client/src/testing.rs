//! A fake daemon for unit tests: a thread that answers from a script and records its requests.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use tempfile::TempDir;

/// The reaction of the fake to one request.
pub enum Reply {
    Result(String),
    Error(String),
    /// Sends exactly these bytes.
    Line(String),
    /// Reads the request and never answers.
    Silence,
    HangUp,
    /// Does one after the other.
    Both(Box<Reply>, Box<Reply>),
    /// Runs this first, so that a test can act at a known moment.
    After(Box<dyn FnOnce() + Send>, Box<Reply>),
}

impl Reply {
    pub fn result(text: impl ToString) -> Reply {
        Reply::Result(text.to_string())
    }

    pub fn error(text: impl ToString) -> Reply {
        Reply::Error(text.to_string())
    }

    /// Answers a subscription, and pushes these events to it.
    pub fn subscribed(number: u64, events: &[Value]) -> Reply {
        Reply::result(number).then(Reply::pushed(number, events))
    }

    /// Pushes events to a subscription.
    pub fn pushed(number: u64, events: &[Value]) -> Reply {
        let line = |event: &Value| {
            let params = json!({"subscription": number, "result": event});
            format!("{}\n", json!({"jsonrpc": "2.0", "method": "events.event", "params": params}))
        };
        Reply::Line(events.iter().map(line).collect())
    }

    /// Does this reply, then the next.
    pub fn then(self, next: Reply) -> Reply {
        Reply::Both(Box::new(self), Box::new(next))
    }

    /// Runs `act`, then does the reply.
    pub fn after(act: impl FnOnce() + Send + 'static, reply: Reply) -> Reply {
        Reply::After(Box::new(act), Box::new(reply))
    }
}

/// One script for each connection; after the last script no one listens.
pub struct FakeDaemon {
    dir: TempDir,
    requests: Receiver<Value>,
}

impl FakeDaemon {
    pub fn start(connections: Vec<Vec<Reply>>) -> FakeDaemon {
        let dir = tempfile::tempdir().expect("a directory for the socket");
        let listener = UnixListener::bind(dir.path().join("s")).expect("a fresh path");
        let (record, requests) = channel();
        std::thread::spawn(move || {
            for script in connections {
                let Ok((stream, _)) = listener.accept() else { return };
                serve(stream, script, &record);
            }
        });
        FakeDaemon { dir, requests }
    }

    /// Serves one connection, with a result computed from each request's parameters.
    pub fn answering(result: impl Fn(&Value) -> Value + Send + 'static) -> FakeDaemon {
        let dir = tempfile::tempdir().expect("a directory for the socket");
        let listener = UnixListener::bind(dir.path().join("s")).expect("a fresh path");
        let (record, requests) = channel();
        std::thread::spawn(move || {
            let Ok((stream, _)) = listener.accept() else { return };
            let Ok(mut writer) = stream.try_clone() else { return };
            for line in BufReader::new(stream).lines().map_while(Result::ok) {
                let request: Value = serde_json::from_str(&line).unwrap_or(Value::Null);
                let (id, reply) = (request["id"].clone(), Reply::result(result(&request["params"])));
                let _ = record.send(request);
                answer(&mut writer, &id, reply);
            }
        });
        FakeDaemon { dir, requests }
    }

    pub fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("s")
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Returns the next request as (method, params).
    pub fn next_request(&self) -> (String, Value) {
        let mut request = self.requests.recv_timeout(std::time::Duration::from_secs(10)).expect("another request");
        (request["method"].as_str().unwrap_or("?").to_owned(), request["params"].take())
    }

    /// Returns all requests so far, as they were sent.
    pub fn full_requests(&self) -> Vec<Value> {
        self.requests.try_iter().collect()
    }

    /// Returns all requests so far.
    pub fn requests(&self) -> Vec<(String, Value)> {
        self.requests
            .try_iter()
            .map(|mut r| (r["method"].as_str().unwrap_or("?").to_owned(), r["params"].take()))
            .collect()
    }
}

fn serve(stream: UnixStream, script: Vec<Reply>, record: &Sender<Value>) {
    let Ok(mut writer) = stream.try_clone() else { return };
    let mut lines = BufReader::new(stream).lines();
    for reply in script {
        let Some(Ok(line)) = lines.next() else { return };
        let request: Value = serde_json::from_str(&line).unwrap_or(Value::Null);
        let id = request["id"].clone();
        let _ = record.send(request);
        if !answer(&mut writer, &id, reply) {
            return;
        }
    }
    // After the script the client decides when to disconnect.
    for line in lines.map_while(Result::ok) {
        let _ = record.send(serde_json::from_str(&line).unwrap_or(Value::Null));
    }
}

fn answer(writer: &mut UnixStream, id: &Value, reply: Reply) -> bool {
    let text = match reply {
        Reply::Result(text) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{text}}}\n"),
        Reply::Error(text) => format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{text}}}\n"),
        Reply::Line(text) => text,
        Reply::Silence => return true,
        Reply::HangUp => return false,
        Reply::Both(first, second) => return answer(writer, id, *first) && answer(writer, id, *second),
        Reply::After(act, next) => {
            act();
            return answer(writer, id, *next);
        }
    };
    writer.write_all(text.as_bytes()).is_ok()
}

/// Returns a complete process document with `changes` on top.
pub fn process(changes: Value) -> Value {
    let mut document = json!({
        "id": "proc_0123456789ab", "name": null, "command": "make test", "argv": ["make", "test"], "cwd": "/",
        "backend": "local", "pid": 42, "status": "running", "closed": false, "exit_code": null, "signal": null,
        "core_dumped": false, "reason": null, "killed_by": null, "failure": null,
        "started_at": "2026-11-16T03:00:00.000Z", "exited_at": null, "uptime_ms": 300000, "pty": false,
        "pty_size": null, "stdin": "null", "task_id": null, "session_key": null, "labels": {}, "notify": false,
        "watch": null, "bytes": 0, "lines": 0, "cursor": 0, "dropped_bytes": 0, "unstored_bytes": 0, "limits": {},
        "sandbox": {"kind": "none", "enforced": []}, "detached": null, "request_id": null, "cut": null
    });
    merge(&mut document, changes);
    document
}

/// Returns the process as `exec` answers it.
pub fn started(changes: Value) -> Value {
    let mut document = process(json!({"output": "", "next_cursor": 0, "truncated": null, "gap": null,
        "existing": false, "ready": null}));
    merge(&mut document, changes);
    document
}

/// Returns the process as `poll` answers it: a page of bytes from a cursor.
pub fn page(from: u64, bytes: &[u8], changes: Value) -> Value {
    use base64::Engine;
    let output = base64::engine::general_purpose::STANDARD.encode(bytes);
    let end = from + bytes.len() as u64;
    let mut document = process(json!({
        "output": output, "from": from, "next_cursor": end, "gap": null, "spans": [], "cursor": end
    }));
    merge(&mut document, changes);
    document
}

fn merge(document: &mut Value, changes: Value) {
    if let (Value::Object(document), Value::Object(changes)) = (document, changes) {
        document.extend(changes);
    }
}

/// Returns the answer to `daemon.info`, with a journal of these events.
pub fn info(oldest: u64, last: u64) -> Value {
    let usage = json!({"processes": 1, "cpu_ms": 0, "rss_bytes": 1048576});
    json!({"version": "0.1.0", "protocol": 1, "pid": 9, "started_at": "x", "uptime_ms": 61000,
        "counts": {"starting": 0, "running": 2, "exited": 3, "lost": 0, "connections": 1}, "usage": usage,
        "daemon": {"processes": 1, "cpu_ms": 0, "rss_bytes": 13 << 20},
        "limits": {"max_running": 4096, "max_wait_ms": 5}, "features": {"pidfd": true},
        "paths": {"socket": "/s", "state_dir": "/d", "config": null}, "damaged": ["procs/x"],
        "events": {"oldest": oldest, "last": last, "bytes": 2048, "consumers": []},
        "watch": {"state": "passing", "recent": 0, "dropped": 0, "release_ms": null}})
}

/// Compares text with the golden file of that name; with `UPDATE_GOLDEN` it writes the file.
#[track_caller]
pub fn golden(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, text).expect("a golden file can be written");
    }
    let golden = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, golden, "{name} changed: look at the difference, then run with UPDATE_GOLDEN=1");
}

/// Returns the result of `list` with these processes.
pub fn listed(processes: &[Value]) -> Value {
    let one = |changes: &Value| {
        let mut document = process(changes.clone());
        document["preview"] = json!("");
        document
    };
    let listed: Vec<Value> = processes.iter().map(one).collect();
    json!({"total": listed.len(), "processes": listed})
}
