//! A client on a plain Unix socket: one JSON message a line, no runtime, quick to start.

pub use crate::call_error::CallError;
use crate::message::read_message;
pub use crate::message::{Answer, Message, Push};
use crate::peer_check;
use crate::silence::{self, Peer, Step};
use serde::Serialize;
use serde_json::value::RawValue;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toold_proto::api::Method;

/// The largest read. A page of output is 64 KiB of bytes, about 90 KB of base64.
const MAX_READ_LEN: usize = 128 * 1024;
const MIN_READ_LEN: usize = 8 * 1024;
/// The longest message that is read: what the daemon may send, `max_outgoing_bytes` by default, and one read more.
const MAX_MESSAGE_LEN: usize = toold_proto::DEFAULT_MAX_OUTGOING_BYTES as usize + MAX_READ_LEN;

/// The time that a listener may take to accept. One that needs longer will not.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// A connection to the daemon.
pub struct Client {
    path: PathBuf,
    stream: UnixStream,
    inbox: Vec<u8>,
    /// The bytes of `inbox` that contain no newline.
    searched: usize,
    last_id: u64,
    timeout: Option<Duration>,
    /// The time that the call itself waits, if a longer silence is reported to the user.
    patience: Option<Duration>,
    max_message_len: usize,
}

/// Connects. While the listener's queue is full, connect(2) waits as long as a send may.
fn connect_within(path: &Path, after: Duration) -> io::Result<UnixStream> {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with, sockopt};
    // The standard library has the better error for a path that is too long.
    let Ok(address) = SocketAddrUnix::new(path) else { return UnixStream::connect(path) };
    let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
    sockopt::set_socket_timeout(&socket, sockopt::Timeout::Send, Some(after))?;
    connect(&socket, &address)?;
    let stream = UnixStream::from(socket);
    stream.set_write_timeout(None)?;
    Ok(stream)
}

impl Client {
    /// Connects to a daemon of this user or of root; to any other it sends nothing.
    pub fn connect(path: &Path) -> Result<Client, CallError> {
        Client::connect_within(path, CONNECT_TIMEOUT)
    }

    fn connect_within(path: &Path, after: Duration) -> Result<Client, CallError> {
        let untrusted = |why| CallError::Untrusted { path: path.into(), why };
        let trust = peer_check::check_dir(path).map_err(untrusted)?;
        let stream = match connect_within(path, after) {
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                return Err(CallError::TimedOut { path: path.into(), after, peer: Peer::of_state_dir() });
            }
            stream => stream.map_err(|source| CallError::Unreachable { path: path.into(), source })?,
        };
        let peer = peer_check::check_peer(&stream, trust);
        peer.map_err(|source| CallError::Unreachable { path: path.into(), source })?.map_err(untrusted)?;
        Ok(Client {
            path: path.into(),
            stream,
            inbox: Vec::new(),
            searched: 0,
            last_id: 0,
            timeout: None,
            patience: None,
            max_message_len: MAX_MESSAGE_LEN,
        })
    }

    /// Returns the socket of a connection on which nothing was sent yet, for a program that passes messages on.
    pub fn into_stream(self) -> UnixStream {
        self.stream
    }

    /// Sets how long a call waits for the daemon to read it, and then for each part of the answer. Without a timeout
    /// it waits for ever.
    pub fn set_timeout(&mut self, timeout: Duration) -> Result<(), CallError> {
        let set = self.stream.set_read_timeout(Some(timeout));
        set.and_then(|()| self.stream.set_write_timeout(Some(timeout))).map_err(|source| self.lost(source))?;
        (self.timeout, self.patience) = (Some(timeout), None);
        Ok(())
    }

    /// Sets the same for a call that itself waits up to `wait`, and prints a line to standard error if the daemon takes
    /// longer. One that is stopped is given up earlier.
    pub(crate) fn set_patience(&mut self, wait: Duration, timeout: Duration) -> Result<(), CallError> {
        let (_, first) = silence::next_step(wait, timeout, Duration::ZERO);
        let set = self.stream.set_read_timeout(Some(first));
        set.and_then(|()| self.stream.set_write_timeout(Some(timeout))).map_err(|source| self.lost(source))?;
        (self.timeout, self.patience) = (Some(timeout), Some(wait));
        Ok(())
    }

    /// Handles a read that ended without data. Returns the time without an answer after which the next one ends.
    fn on_silence(&self, wait: Duration, passed: Duration, source: io::Error) -> Result<Duration, CallError> {
        let timeout = self.timeout.unwrap_or(Duration::MAX);
        let (step, due) = silence::next_step(wait, timeout, passed);
        let peer = Peer::of(&self.stream);
        match step {
            Step::GiveUp => return Err(self.lost(source)),
            Step::GiveUpIfStopped if peer.is_stopped() => {
                return Err(CallError::TimedOut { path: self.path.clone(), after: due, peer });
            }
            Step::GiveUpIfStopped => {}
            Step::Notice => eprintln!("toolctl: {}", peer.notice()),
        }
        let (_, next) = silence::next_step(wait, timeout, due);
        self.stream.set_read_timeout(Some(next.saturating_sub(due))).map_err(|source| self.lost(source))?;
        Ok(due)
    }

    /// Calls a method and reads its result.
    pub fn call<M: Method>(&mut self, params: &M::Params) -> Result<M::Result, CallError> {
        parse::<M>(&self.call_raw(M::NAME, params)?)
    }

    /// Calls a method and returns the bytes of its result.
    pub fn call_raw(&mut self, method: &str, params: &impl Serialize) -> Result<Box<RawValue>, CallError> {
        let id = self.send(method, params)?;
        loop {
            while let Some(answer) = self.next_answer()? {
                if answer.id == Some(id) || answer.id.is_none() && answer.outcome.is_err() {
                    return answer.outcome.map_err(CallError::Rpc);
                }
            }
            self.fill()?;
        }
    }

    /// Sends a request without waiting, and returns the id of its answer. For callers that wait for several things at
    /// once; they continue with `as_fd`, `fill` and `next_answer`.
    pub fn send(&mut self, method: &str, params: &impl Serialize) -> Result<u64, CallError> {
        self.last_id += 1;
        let request = Request { jsonrpc: "2.0", id: self.last_id, method, params };
        let mut line = serde_json::to_vec(&request)
            .map_err(|e| CallError::Protocol(format!("the parameters of {method} do not fit into JSON: {e}")))?;
        line.push(b'\n');
        match self.stream.write_all(&line) {
            // The daemon closed the connection. It may have sent the reason first, which the next read returns.
            Err(e) if matches!(e.kind(), io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset) => {}
            Err(source) => return Err(self.lost(source)),
            Ok(()) => {}
        }
        Ok(self.last_id)
    }

    /// Reads once, and blocks if nothing has arrived.
    pub fn fill(&mut self) -> Result<(), CallError> {
        let old = self.inbox.len();
        // What is complete is taken out before more is read, so this is one message without an end.
        if old > self.max_message_len {
            return Err(too_long(self.max_message_len));
        }
        // As much as is buffered already: a short answer touches little memory, a long one needs few reads.
        self.inbox.resize(old + old.clamp(MIN_READ_LEN, MAX_READ_LEN), 0);
        let mut passed = Duration::ZERO;
        let read = loop {
            match (self.stream.read(&mut self.inbox[old..]), self.patience) {
                (Err(e), _) if e.kind() == io::ErrorKind::Interrupted => continue,
                (Err(e), Some(wait)) if e.kind() == io::ErrorKind::WouldBlock => {
                    passed = self.on_silence(wait, passed, e)?;
                }
                (other, _) => break other,
            }
        };
        if let (Some(wait), Some(timeout)) = (self.patience, self.timeout)
            && passed > Duration::ZERO
        {
            self.set_patience(wait, timeout)?;
        }
        self.inbox.truncate(old + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => Err(self.lost(io::Error::new(io::ErrorKind::UnexpectedEof, "it closed the connection"))),
            Ok(_) => Ok(()),
            Err(source) => Err(self.lost(source)),
        }
    }

    /// Returns the next answer that has already been read. Pushes are skipped.
    pub fn next_answer(&mut self) -> Result<Option<Answer>, CallError> {
        loop {
            match self.next_message()? {
                Some(Message::Push(_)) => {}
                Some(Message::Answer(answer)) => return Ok(Some(answer)),
                None => return Ok(None),
            }
        }
    }

    /// Returns the next answer or push that has already been read.
    pub fn next_message(&mut self) -> Result<Option<Message>, CallError> {
        loop {
            let Some(at) = self.inbox[self.searched..].iter().position(|b| *b == b'\n') else {
                self.searched = self.inbox.len();
                return Ok(None);
            };
            let line: Vec<u8> = self.inbox.drain(..=self.searched + at).collect();
            self.searched = 0;
            if let Some(message) = read_message(&line)? {
                return Ok(Some(message));
            }
        }
    }

    fn lost(&self, source: io::Error) -> CallError {
        let path = self.path.clone();
        match (source.kind(), self.timeout) {
            (io::ErrorKind::WouldBlock, Some(after)) => {
                CallError::TimedOut { path, after, peer: Peer::of(&self.stream) }
            }
            // Any other error ends the connection.
            _ => CallError::Unreachable { path, source },
        }
    }
}

impl AsFd for Client {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

/// Builds the error for a message that does not end.
fn too_long(max: usize) -> CallError {
    CallError::Protocol(format!(
        "the daemon sent more than {max} bytes without the end of a message; ask for less at a time"
    ))
}

/// Parses the bytes of a result.
pub fn parse<M: Method>(raw: &RawValue) -> Result<M::Result, CallError> {
    serde_json::from_str(raw.get())
        .map_err(|e| CallError::Protocol(format!("cannot read the result of {}: {e}", M::NAME)))
}

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    params: &'a P,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FakeDaemon, Reply};
    use serde_json::json;
    use toold_proto::api;
    use toold_proto::params;

    #[test]
    fn a_result_comes_back_as_the_very_bytes_that_were_sent() {
        let odd = r#"{ "b":1.50,  "a":"\u0041", "unknown": [ ] }"#;
        let fake = FakeDaemon::start(vec![vec![Reply::result(odd)]]);
        let mut client = Client::connect(&fake.path()).expect("the fake listens");
        let raw = client.call_raw("list", &json!({})).expect("it answers");
        assert_eq!(raw.get(), odd);
    }

    #[test]
    fn an_error_keeps_its_kind_and_foreign_data_is_kept_as_detail() {
        let ours = r#"{"code":-32001,"message":"no such process","data":{"kind":"not_found"}}"#;
        let theirs = r#"{"code":-32700,"message":"parse","data":"at 3"}"#;
        let fake = FakeDaemon::start(vec![vec![Reply::error(ours), Reply::error(theirs)]]);
        let mut client = Client::connect(&fake.path()).expect("the fake listens");
        let params = params::InspectParams { id: "x".into(), ..Default::default() };
        let Err(CallError::Rpc(first)) = client.call::<api::Inspect>(&params) else { panic!("an error was sent") };
        assert_eq!(first.kind(), Some(toold_proto::ErrorKind::NotFound));
        let Err(CallError::Rpc(second)) = client.call::<api::Inspect>(&params) else { panic!("an error was sent") };
        assert_eq!((second.code, second.data.get("detail")), (-32700, Some(&json!("at 3"))));
    }

    #[test]
    fn a_hang_up_and_a_missing_socket_are_unreachable_and_nonsense_is_a_protocol_error() {
        let fake = FakeDaemon::start(vec![vec![Reply::HangUp], vec![Reply::Line("nonsense\n".into())]]);
        let mut client = Client::connect(&fake.path()).expect("the fake listens");
        assert!(matches!(client.call_raw("list", &json!({})), Err(CallError::Unreachable { .. })));
        let mut client = Client::connect(&fake.path()).expect("the fake listens");
        assert!(matches!(client.call_raw("list", &json!({})), Err(CallError::Protocol(_))));
        assert!(matches!(Client::connect(Path::new("/nowhere/sock")), Err(CallError::Unreachable { .. })));
    }

    #[test]
    fn a_listener_that_never_answers_or_never_accepts_is_given_up() {
        let soon = Duration::from_millis(20);
        let timed_out =
            |result: Result<(), CallError>| matches!(result, Err(CallError::TimedOut { after, .. }) if after == soon);
        let fake = FakeDaemon::start(vec![vec![Reply::Silence]]);
        let mut client = Client::connect(&fake.path()).expect("the fake listens");
        client.set_timeout(soon).expect("a socket has timeouts");
        assert!(timed_out(client.call_raw("list", &json!({})).map(drop)));
        let too_much = "x".repeat(8 << 20);
        let dir = tempfile::tempdir().expect("a directory for the socket");
        let path = dir.path().join("s");
        let _listener = std::os::unix::net::UnixListener::bind(&path).expect("a fresh path");
        let mut client = Client::connect(&path).expect("the queue is empty");
        client.set_timeout(soon).expect("a socket has timeouts");
        assert!(timed_out(client.send("list", &too_much).map(drop)), "it is not read");
        let mut queue = Vec::new();
        let full = loop {
            match Client::connect_within(&path, soon) {
                Ok(client) => queue.push(client),
                Err(error) => break error,
            }
        };
        assert!(timed_out(Err(full)), "{} connections wait", queue.len());
    }

    #[test]
    fn a_message_without_an_end_is_given_up_and_a_longer_stream_of_messages_is_not() {
        let many =
            "{\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n".repeat(10_000) + "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":2}\n";
        let endless = Reply::Line("x".repeat(1 << 20)).then(Reply::Silence);
        let fake = FakeDaemon::start(vec![vec![Reply::Line(many), endless]]);
        let mut client = Client::connect(&fake.path()).expect("the fake listens");
        client.max_message_len = 64 * 1024;
        assert_eq!(client.call_raw("list", &json!({})).expect("it answers").get(), "2");
        let Err(CallError::Protocol(why)) = client.call_raw("list", &json!({})) else { panic!("it has no end") };
        assert!(why.contains("more than 65536 bytes") && client.inbox.len() < 512 * 1024, "{why}");
    }

    #[test]
    fn a_notification_and_an_answer_to_another_call_are_passed_over() {
        let noise = "{\"jsonrpc\":\"2.0\",\"method\":\"events.event\",\"params\":{}}\n{\"jsonrpc\":\"2.0\",\"id\":77,\"result\":1}\n";
        let fake = FakeDaemon::start(vec![vec![Reply::Line(
            noise.to_owned() + "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":2}\n",
        )]]);
        let mut client = Client::connect(&fake.path()).expect("the fake listens");
        assert_eq!(client.call_raw("list", &json!({})).expect("it answers").get(), "2");
    }

    #[test]
    fn a_push_keeps_its_very_bytes_and_may_come_before_the_answer() {
        let odd = r#"{ "seq":1 ,"new": 1.50 }"#;
        let push = |body: &str| format!("{{\"jsonrpc\":\"2.0\",\"method\":\"events.event\",\"params\":{body}}}\n");
        let lines = [
            push(&format!("{{\"subscription\":7,\"result\":{odd}}}")),
            "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":7}\n".into(),
            push("{\"subscription\":7,\"error\":\"over\"}"),
            push("[1]"),
        ];
        let fake =
            FakeDaemon::start(vec![vec![Reply::Both(Box::new(Reply::Line(lines.concat())), Box::new(Reply::HangUp))]]);
        let mut client = Client::connect(&fake.path()).expect("the fake listens");
        client.send("events.subscribe", &json!({})).expect("it is taken");
        let mut printed = Vec::new();
        loop {
            while let Some(message) = client.next_message().expect("JSON-RPC") {
                printed.push(match message {
                    Message::Answer(answer) => format!("answer {:?}", answer.id),
                    Message::Push(push) => {
                        format!("{} {:?}", push.subscription, push.outcome.map_err(|e| e.to_string()))
                    }
                });
            }
            if client.fill().is_err() {
                break;
            }
        }
        assert_eq!(printed.len(), 3, "{printed:?}");
        assert!(printed[0].starts_with("7 Ok") && printed[0].contains("1.50 }"), "{printed:?}");
        assert_eq!((printed[1].as_str(), printed[2].as_str()), ("answer Some(1)", "7 Err(\"\\\"over\\\"\")"));
    }
}
