//! A running `toold-fetch mcp`, as the daemon holds one: lines in, lines out, a signal.

use crate::program::PROGRAM;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;
use toold_test_support::http::{HttpRequest, respond};

/// Longest wait for a line: a test that waits longer has failed.
const WAIT: Duration = Duration::from_secs(20);

pub struct Bridge {
    child: Child,
    stdin: Option<ChildStdin>,
    lines: Receiver<String>,
}

impl Bridge {
    pub fn start(url: &str) -> Bridge {
        Bridge::start_with(url, &[], &[])
    }

    pub fn start_with(url: &str, args: &[&str], env: &[(&str, &str)]) -> Bridge {
        let mut child = Command::new(PROGRAM)
            .args(["mcp", url])
            .args(args)
            .envs(env.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let (sender, lines) = channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Bridge { stdin: child.stdin.take(), child, lines }
    }

    pub fn send(&mut self, message: Value) {
        writeln!(self.stdin.as_mut().unwrap(), "{message}").unwrap();
    }

    pub fn request(&mut self, id: impl Into<Value>, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params}));
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Shakes hands, as a client of the revisions with sessions does.
    pub fn initialize(&mut self) -> Value {
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        self.request("init", "initialize", params);
        let answer = self.receive();
        self.notify("notifications/initialized", json!({}));
        answer
    }

    pub fn receive(&self) -> Value {
        let line = self.lines.recv_timeout(WAIT).expect("a line of the bridge");
        serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"))
    }

    pub fn close_stdin(&mut self) {
        self.stdin = None;
    }

    pub fn terminate(&self) {
        Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
    }

    /// Waits for the end, and returns the lines that were not received.
    pub fn wait(mut self) -> (ExitStatus, Vec<String>) {
        let status = self.child.wait().unwrap();
        (status, self.lines.iter().collect())
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // It has ended already, or the test has failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub const JSON: (&str, &str) = ("content-type", "application/json");

/// Answers a request with a result.
pub fn answer(request: &HttpRequest, stream: &mut TcpStream, headers: &[(&str, &str)], result: Value) {
    let body = json!({"jsonrpc": "2.0", "id": request.json()["id"], "result": result});
    respond(stream, "200 OK", &[&[JSON], headers].concat(), body.to_string().as_bytes());
}

/// Begins an answer that is a stream; it ends with the connection.
pub fn begin_events(stream: &mut TcpStream) {
    let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n");
}

pub fn event(stream: &mut TcpStream, id: &str, message: &Value) {
    let id = if id.is_empty() { String::new() } else { format!("id: {id}\n") };
    let _ = stream.write_all(format!("event: message\n{id}data: {message}\n\n").as_bytes());
    let _ = stream.flush();
}

pub fn close(stream: &TcpStream) {
    // The other side may have closed it before.
    let _ = stream.shutdown(std::net::Shutdown::Both);
}

/// Returns when the other side has closed the connection.
pub fn wait_for_close(stream: &mut TcpStream) {
    use std::io::Read;
    while matches!(stream.read(&mut [0; 64]), Ok(read) if read > 0) {}
}
