//! A minimal client: sends prepared lines, receives whole lines and parses nothing while time is measured.

use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::{Duration, Instant};

/// Longer than any measured call.
const READ_TIMEOUT: Duration = Duration::from_secs(120);

pub struct Client {
    stream: UnixStream,
    buffer: Vec<u8>,
    have: usize,
}

impl Client {
    pub fn open(socket: &Path) -> Client {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
        Client { stream, buffer: vec![0; 64 << 10], have: 0 }
    }

    pub fn send(&mut self, line: &[u8]) {
        self.stream.write_all(line).unwrap();
    }

    /// Reads the next line. Only for one response at a time: bytes after it in the same read are dropped.
    pub fn line(&mut self) -> &[u8] {
        self.have = 0;
        while self.have == 0 || self.buffer[self.have - 1] != b'\n' {
            if self.have == self.buffer.len() {
                self.buffer.resize(self.have * 2, 0);
            }
            let count = self.stream.read(&mut self.buffer[self.have..]).unwrap();
            assert_ne!(count, 0, "it hung up");
            self.have += count;
        }
        &self.buffer[..self.have]
    }

    /// Returns the last line again.
    pub fn last(&self) -> &[u8] {
        &self.buffer[..self.have]
    }

    /// Measures microseconds from request to response.
    pub fn ask(&mut self, line: &[u8]) -> f64 {
        let began = Instant::now();
        self.send(line);
        self.line();
        began.elapsed().as_secs_f64() * 1e6
    }

    /// Sends a request that must succeed, and returns the result and the length of its line.
    pub fn checked(&mut self, line: &[u8]) -> (Value, usize) {
        self.ask(line);
        let answer: Value = serde_json::from_slice(self.last()).unwrap();
        assert!(answer["error"].is_null(), "{}: {answer}", String::from_utf8_lossy(line));
        (answer["result"].clone(), self.have)
    }

    /// Reads and drops this many bytes.
    pub fn drain(&mut self, bytes: usize) {
        let mut left = bytes;
        while left > 0 {
            let count = self.stream.read(&mut self.buffer).unwrap();
            assert_ne!(count, 0, "it hung up");
            left = left.saturating_sub(count);
        }
    }
}

/// Returns a call as one line.
pub fn call(method: &str, params: Value) -> Vec<u8> {
    let mut line = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params }).to_string();
    line.push('\n');
    line.into()
}
