//! The channel of a script: a socket of its own, over which the programs of the script call tools.

use crate::blocking::CallError;
use crate::cmd::options::exec::random_bits;
use crate::message::{ErrorObject, rpc_error};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toold_proto::script::ResultFile;
use toold_proto::{ErrorKind, RpcError};

/// The shortest and the longest pause before the next attempt to connect.
const RETRY_DELAY: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(200));

/// The environment of a script: its socket and its token.
pub struct Channel {
    socket: PathBuf,
    token: String,
    /// The first part of the ids of our calls, which no other program of the script has.
    link: String,
    calls: u64,
    stream: Option<BufReader<UnixStream>>,
}

/// A result of `tools.call` on the channel: a long one is in a file.
#[derive(Deserialize)]
struct CallAnswer {
    call: String,
    #[serde(default)]
    result: Value,
    file: Option<ResultFile>,
}

#[derive(Deserialize)]
struct Line<'a> {
    id: Option<Value>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<ErrorObject>,
}

impl Channel {
    /// Returns the channel of the script that we run in. None: we run in none.
    pub fn from_env(var: impl Fn(&str) -> Option<OsString>) -> Option<Channel> {
        let address = var("TOOLD_TOOLS")?;
        let socket = address.as_bytes().strip_prefix(b"unix:")?;
        let token = var("TOOLD_TOKEN")?.into_string().ok()?;
        let link = format!("{:08x}", random_bits() as u32);
        let socket = PathBuf::from(std::ffi::OsStr::from_bytes(socket));
        Some(Channel { socket, token, link, calls: 0, stream: None })
    }

    /// Calls a tool. Returns the document that `tools.call` has as its result on the main socket.
    pub fn call_tool(&mut self, params: &Value) -> Result<Box<RawValue>, CallError> {
        let raw = self.call("tools.call", params)?;
        let wrong = |e: serde_json::Error| CallError::Protocol(format!("cannot read the result of tools.call: {e}"));
        let answer: CallAnswer = serde_json::from_str(raw.get()).map_err(wrong)?;
        let result = match answer.file {
            None => answer.result,
            Some(file) => read_result(Path::new(&file.path))?,
        };
        serde_json::value::to_raw_value(&json!({"result": result, "call": answer.call})).map_err(wrong)
    }

    /// Calls a method. After a lost connection the call is sent again with the same id: the daemon does nothing twice.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Box<RawValue>, CallError> {
        self.calls += 1;
        let id = format!("{}-{}", self.link, self.calls);
        loop {
            match self.attempt(&id, method, params) {
                Err(CallError::Unreachable { .. }) => self.stream = None,
                outcome => return outcome,
            }
            if self.is_over() {
                return Err(retired());
            }
        }
    }

    fn attempt(&mut self, id: &str, method: &str, params: &Value) -> Result<Box<RawValue>, CallError> {
        if self.stream.is_none() {
            self.stream = Some(BufReader::new(self.connect()?));
            let hello = json!({"token": self.token, "pid": std::process::id()});
            let hello_id = format!("{}-hello", self.link);
            self.exchange(&hello_id, "script.hello", &hello)?;
        }
        self.exchange(id, method, params)
    }

    /// Connects as soon as a daemon listens.
    fn connect(&self) -> Result<UnixStream, CallError> {
        let mut delay = RETRY_DELAY.0;
        loop {
            match UnixStream::connect(&self.socket) {
                Ok(stream) => return Ok(stream),
                Err(_) if self.is_over() => return Err(retired()),
                Err(_) => std::thread::sleep(delay),
            }
            delay = (delay * 2).min(RETRY_DELAY.1);
        }
    }

    /// Sends one request and reads up to its answer.
    fn exchange(&mut self, id: &str, method: &str, params: &Value) -> Result<Box<RawValue>, CallError> {
        let socket = self.socket.clone();
        let lost = |source: io::Error| CallError::Unreachable { path: socket.clone(), source };
        let Some(stream) = &mut self.stream else { return Err(lost(io::ErrorKind::NotConnected.into())) };
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        stream.get_mut().write_all(format!("{request}\n").as_bytes()).map_err(lost)?;
        let mut line = String::new();
        loop {
            line.clear();
            // A line without its end is cut off: the daemon was killed while it wrote.
            if stream.read_line(&mut line).map_err(lost)? == 0 || !line.ends_with('\n') {
                return Err(lost(io::ErrorKind::UnexpectedEof.into()));
            }
            let answer: Line<'_> = serde_json::from_str(&line)
                .map_err(|e| CallError::Protocol(format!("the daemon's answer is not JSON-RPC: {e}")))?;
            let is_ours = answer.id.as_ref().and_then(Value::as_str) == Some(id);
            match (answer.error, answer.result) {
                // An error without an id is about a request that could not be read.
                (Some(error), _) if is_ours || answer.id.is_none() => return Err(CallError::Rpc(rpc_error(error))),
                (None, Some(result)) if is_ours => return Ok(result.to_owned()),
                // A notification, or the answer to a call of before.
                (Some(_), _) | (None, Some(_) | None) => {}
            }
        }
    }

    /// Returns true if the script has ended: the daemon then removes this file. Before, a daemon that was killed comes back.
    fn is_over(&self) -> bool {
        !self.socket.with_file_name("owner").exists()
    }
}

fn retired() -> CallError {
    let message = "denied: the script has ended, and its authority with it";
    CallError::Rpc(RpcError::new(ErrorKind::Denied, message).with("reason", "retired"))
}

fn read_result(path: &Path) -> Result<Value, CallError> {
    let wrong = |e: String| CallError::Protocol(format!("cannot read the result in {}: {e}", path.display()));
    let text = std::fs::read(path).map_err(|e| wrong(e.to_string()))?;
    serde_json::from_slice(&text).map_err(|e| wrong(e.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FakeDaemon, Reply};

    fn channel(fake: &FakeDaemon) -> Channel {
        let address = format!("unix:{}", fake.path().display());
        std::fs::write(fake.path().with_file_name("owner"), "").expect("a file");
        Channel::from_env(|name| match name {
            "TOOLD_TOOLS" => Some(address.clone().into()),
            "TOOLD_TOKEN" => Some("secret".into()),
            _ => None,
        })
        .expect("both variables are set")
    }

    #[test]
    fn a_call_is_sent_again_with_its_id_after_a_lost_connection_and_an_answer_that_was_cut_off() {
        let hello = || Reply::result(json!({"script": "proc_0123456789ab", "cwd": "/"}));
        let fake = FakeDaemon::start(vec![
            vec![hello(), Reply::HangUp],
            vec![hello(), Reply::Line("{\"jsonrpc\":\"2.0\",\"id\"".into()).then(Reply::HangUp)],
            vec![hello(), Reply::result(json!({"call": "c", "result": {"n": 1}}))],
        ]);
        let mut channel = channel(&fake);
        let params = json!({"name": "read_file", "args": {"path": "a"}});
        let raw = channel.call_tool(&params).expect("the third connection answers");
        assert_eq!(serde_json::from_str::<Value>(raw.get()).ok(), Some(json!({"result": {"n": 1}, "call": "c"})));
        let asked = fake.full_requests();
        let ids: Vec<&str> = asked.iter().filter_map(|request| request["id"].as_str()).collect();
        let (hello, call) = (format!("{}-hello", channel.link), format!("{}-1", channel.link));
        assert_eq!(ids, [&hello, &call, &hello, &call, &hello, &call]);
        assert_eq!(asked[0]["params"], json!({"token": "secret", "pid": std::process::id()}));
        assert_eq!(asked[5]["params"], params);
    }

    #[test]
    fn a_long_result_is_read_from_its_file_and_a_refusal_is_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("1.json");
        std::fs::write(&path, "[1, 2]").expect("a file");
        let denied = json!({"code": -32005, "message": "no", "data": {"kind": "denied", "reason": "retired"}});
        let fake = FakeDaemon::start(vec![vec![
            Reply::result(json!({})),
            Reply::result(json!({"call": "c", "file": {"path": path, "bytes": 6, "sha256": "00"}})),
            Reply::error(denied),
        ]]);
        let mut channel = channel(&fake);
        let raw = channel.call_tool(&json!({})).expect("a result");
        assert_eq!(serde_json::from_str::<Value>(raw.get()).ok(), Some(json!({"result": [1, 2], "call": "c"})));
        assert!(
            matches!(channel.call_tool(&json!({})), Err(CallError::Rpc(error)) if error.data["reason"] == "retired")
        );
    }

    #[test]
    fn the_channel_of_an_ended_script_denies() {
        let fake = FakeDaemon::start(vec![]);
        let mut channel = channel(&fake);
        drop(fake);
        let called = channel.call("tools.list", &json!({}));
        assert!(matches!(called, Err(CallError::Rpc(error)) if error.data["reason"] == "retired"));
        assert!(Channel::from_env(|_| None).is_none());
    }
}
