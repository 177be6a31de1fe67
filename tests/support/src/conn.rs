//! A client of newline JSON that knows only the wire and nothing else of toold.

use crate::rig::DEADLINE;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;

/// A result, or the error object.
pub type Answer = Result<Value, Value>;

/// One connection. Dropping it disconnects.
pub struct Conn {
    stream: BufReader<UnixStream>,
    last_id: u64,
    early: Vec<Value>,
}

impl Conn {
    pub fn open(socket: &Path) -> std::io::Result<Conn> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(DEADLINE))?;
        stream.set_write_timeout(Some(DEADLINE))?;
        Ok(Conn { stream: BufReader::new(stream), last_id: 0, early: Vec::new() })
    }

    /// Makes one call and returns its answer; answers to earlier requests are kept for `answer`.
    pub fn call(&mut self, method: &str, params: Value) -> Answer {
        let id = self.request(method, params);
        self.answer(id)
    }

    /// Sends a request and does not wait.
    pub fn request(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params }));
        self.last_id
    }

    /// Returns the answer to one request, in whatever order they arrive.
    pub fn answer(&mut self, id: u64) -> Answer {
        if let Some(at) = self.early.iter().position(|m| m["id"] == id) {
            return split(self.early.remove(at));
        }
        loop {
            let message = self.recv();
            if message["id"] == id {
                return split(message);
            }
            self.early.push(message);
        }
    }

    /// Returns true if the answer to this request has arrived among the messages read so far.
    pub fn has_early(&self, id: u64) -> bool {
        self.early.iter().any(|m| m["id"] == id)
    }

    /// Returns the next push, in whatever order with answers it arrives.
    pub fn push(&mut self) -> Value {
        let at = self.early.iter().position(|m| m["method"] == "events.event");
        let message = match at {
            Some(at) => self.early.remove(at),
            None => loop {
                let message = self.recv();
                if message["method"] == "events.event" {
                    break message;
                }
                self.early.push(message);
            },
        };
        assert!(message["params"]["subscription"].is_u64(), "{message}");
        message["params"]["result"].clone()
    }

    /// Returns the pushes up to the first of this type, which is included.
    pub fn pushes_until(&mut self, kind: &str) -> Vec<Value> {
        let mut all = Vec::new();
        loop {
            all.push(self.push());
            if all.last().unwrap()["type"] == kind {
                return all;
            }
        }
    }

    pub fn send(&mut self, message: &Value) {
        let mut line = message.to_string();
        line.push('\n');
        self.send_raw(line.as_bytes());
    }

    pub fn send_raw(&mut self, bytes: &[u8]) {
        self.stream.get_mut().write_all(bytes).unwrap();
    }

    /// Like `send_raw` for bytes that the daemon may reject. Returns false if it did.
    pub fn offer(&mut self, bytes: &[u8]) -> bool {
        self.stream.get_mut().write_all(bytes).is_ok()
    }

    /// Returns the next message. Panics when none comes.
    pub fn recv(&mut self) -> Value {
        self.try_recv().expect("the daemon disconnected instead of answering")
    }

    /// Returns the next message unparsed. None when the daemon disconnected.
    pub fn line(&mut self) -> Option<Vec<u8>> {
        let mut line = Vec::new();
        loop {
            match self.stream.read_until(b'\n', &mut line) {
                Ok(0) => return None,
                Ok(_) if line.iter().all(u8::is_ascii_whitespace) => line.clear(),
                Ok(_) => return Some(line),
                Err(e) if e.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(e) => panic!("no answer within {DEADLINE:?}: {e}"),
            }
        }
    }

    /// Returns the next message, or None when the daemon disconnected. Panics after the deadline.
    pub fn try_recv(&mut self) -> Option<Value> {
        let line = self.line()?;
        Some(serde_json::from_slice(&line).expect("an answer is one line of JSON"))
    }
}

/// Converts a response to a result and checks its form.
pub fn split(response: Value) -> Answer {
    assert_eq!(response["jsonrpc"], "2.0", "{response}");
    match (response.get("result"), response.get("error")) {
        (Some(result), None) => Ok(result.clone()),
        (None, Some(error)) => {
            assert!(error["code"].is_i64() && error["message"].is_string(), "{response}");
            Err(error.clone())
        }
        // A response has one of the two, never both or neither.
        _ => panic!("not a response: {response}"),
    }
}
