//! A raw client of the server: one JSON message a line, nothing added and nothing hidden.

use serde_json::{Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use toold_test_support::rig::{DEADLINE, Daemon};

pub const MODERN: &str = "2026-07-28";

/// The connections of the rig.
pub const OURS: u64 = 1;
/// The connections on which a server follows the events of its session, from the first call on.
pub const FOLLOWER: u64 = 1;

/// Waits until this many connections are open. Each call has its own, which closes a moment after the answer: a count means
/// something only when it has settled.
#[track_caller]
pub fn await_connections(daemon: &Daemon, what: &str, count: u64) {
    daemon.eventually(what, || daemon.ok("daemon.info", json!({}))["counts"]["connections"] == count);
}

/// A server and our end of its pipes.
pub struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    messages: Receiver<Value>,
    /// Messages that came before the one that was waited for.
    kept: VecDeque<Value>,
    next_id: i64,
    /// The `_meta` of every request.
    meta: Value,
}

impl Server {
    /// Starts `toolctl mcp` with the rig's environment.
    pub fn start(daemon: &Daemon, args: &[&str]) -> Server {
        Server::start_with(daemon, args, &[])
    }

    pub fn start_with(daemon: &Daemon, args: &[&str], env: &[(&str, &str)]) -> Server {
        let mut command = daemon.ctl_command(&[&["mcp"], args].concat());
        command.envs(env.iter().copied()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut child = command.spawn().unwrap();
        let (stdin, stdout) = (child.stdin.take(), child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines().map_while(Result::ok) {
                let message = serde_json::from_str(&line).unwrap_or_else(|e| panic!("not a message: {line}: {e}"));
                if sender.send(message).is_err() {
                    return;
                }
            }
        });
        Server { child, stdin, messages, kept: VecDeque::new(), next_id: 0, meta: json!({}) }
    }

    /// Starts a server and makes the handshake of the older era.
    pub fn legacy(daemon: &Daemon, args: &[&str]) -> Server {
        let mut server = Server::start(daemon, args);
        server.initialize("2025-11-25", "test", json!({}));
        server
    }

    /// Starts a server for requests of the newer era by this client with these capabilities.
    pub fn modern(daemon: &Daemon, args: &[&str], name: &str, capabilities: Value) -> Server {
        let mut server = Server::start(daemon, args);
        server.meta = json!({
            "io.modelcontextprotocol/protocolVersion": MODERN,
            "io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        });
        server
    }

    pub fn initialize(&mut self, version: &str, name: &str, capabilities: Value) -> Value {
        let params = json!({"protocolVersion": version, "clientInfo": {"name": name, "version": "1"}, "capabilities": capabilities});
        let result = self.request("initialize", params);
        self.notify("notifications/initialized", json!({}));
        result
    }

    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    pub fn send_line(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        stdin.write_all(format!("{line}\n").as_bytes()).unwrap();
        stdin.flush().unwrap();
    }

    pub fn notify(&mut self, method: &str, params: Value) {
        self.send_line(&json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Sends a request with this id and these parameters alone.
    pub fn send_with_id(&mut self, id: Value, method: &str, mut params: Value) {
        for (key, value) in self.meta.as_object().unwrap().clone() {
            if params["_meta"].get(&key).is_none() {
                params["_meta"][key] = value;
            }
        }
        self.send_line(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string());
    }

    /// Sends a request and returns its id.
    pub fn send(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = json!(self.next_id);
        self.send_with_id(id.clone(), method, params);
        id
    }

    /// Waits for the first message that `wanted` accepts. Others are kept.
    pub fn wait_for(&mut self, what: &str, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.kept.iter().position(&wanted) {
            return self.kept.remove(at).unwrap();
        }
        let deadline = Instant::now() + DEADLINE;
        loop {
            match self.messages.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(message) if wanted(&message) => return message,
                Ok(message) => self.kept.push_back(message),
                Err(e) => panic!("{what}: {e}; kept: {:?}", self.kept),
            }
        }
    }

    /// Returns the messages that came and were not waited for.
    pub fn kept(&mut self) -> Vec<Value> {
        while let Ok(message) = self.messages.try_recv() {
            self.kept.push_back(message);
        }
        self.kept.drain(..).collect()
    }

    pub fn answer(&mut self, id: &Value) -> Value {
        self.wait_for(&format!("the answer to {id}"), |message| message["id"] == *id && message.get("method").is_none())
    }

    pub fn notification(&mut self, method: &str) -> Value {
        self.wait_for(method, |message| message["method"] == method)["params"].take()
    }

    /// Makes a request and returns its result.
    #[track_caller]
    pub fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let mut answer = self.answer(&id);
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].take()
    }

    /// Makes a request that fails, and returns its error.
    pub fn refused(&mut self, method: &str, params: Value) -> Value {
        let id = self.send(method, params);
        let mut answer = self.answer(&id);
        assert!(answer.get("result").is_none(), "{answer}");
        answer["error"].take()
    }

    /// Calls a tool and returns its text.
    #[track_caller]
    pub fn call(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        text_of(&result, false)
    }

    /// Calls a tool that fails, and returns its text.
    #[track_caller]
    pub fn fails(&mut self, tool: &str, arguments: Value) -> String {
        let result = self.request("tools/call", json!({"name": tool, "arguments": arguments}));
        text_of(&result, true)
    }

    /// Closes the input, and returns the status and the time until the end.
    pub fn close(mut self) -> (ExitStatus, Duration) {
        let begin = Instant::now();
        self.stdin = None;
        (self.child.wait().unwrap(), begin.elapsed())
    }

    pub fn signal(mut self, signal: i32) -> (ExitStatus, Duration) {
        let begin = Instant::now();
        toold_test_support::sys::Pidfd::open(self.pid()).unwrap().signal(signal);
        let status = self.child.wait().unwrap();
        (status, begin.elapsed())
    }

    pub fn kill9(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the text of a result, which is one text and nothing else.
#[track_caller]
pub fn text_of(result: &Value, is_error: bool) -> String {
    assert_eq!(result["isError"], json!(is_error), "{result}");
    assert!(result.get("structuredContent").is_none(), "{result}");
    let content = result["content"].as_array().unwrap();
    assert_eq!((content.len(), &content[0]["type"]), (1, &json!("text")), "{result}");
    content[0]["text"].as_str().unwrap().to_owned()
}

/// Returns the id at the beginning of a text.
#[track_caller]
pub fn id_in(text: &str) -> String {
    let id = text.split([' ', '\n']).next().unwrap();
    assert!(id.starts_with("proc_") && id.len() == 17, "{text}");
    id.to_owned()
}

/// Returns the line of events, if the text has one: it is the last.
pub fn events_in(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("events: ")).collect();
    assert!(lines.len() <= 1 && lines.first().is_none_or(|line| text.lines().last() == Some(line)), "{text}");
    lines.first().map(|line| line["events: ".len()..].to_owned())
}

/// Returns the text with its ids, times and numbers of processes replaced.
pub fn masked(text: &str) -> String {
    let rules = [
        (r"proc_[0-9a-f]{12}", "ID"),
        (r"\b\d+(\.\d)?[smh]( ago|,|$|\)| of| after|;| \()", "T$2"),
        (r"pid \d+", "pid N"),
        (r"(running|after) \d+(\.\d)?[smh]", "$1 T"),
    ];
    rules.into_iter().fold(text.to_owned(), |text, (pattern, with)| {
        regex::Regex::new(&format!("(?m){pattern}")).unwrap().replace_all(&text, with).into_owned()
    })
}
