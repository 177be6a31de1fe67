//! The connection of one call to the daemon: made at its first use, made again after a loss, and ended by a cancellation.
//!
//! Every request of this program can be sent twice: starts, writes and calls of tools carry a key, the rest changes nothing or
//! ends what has ended.

use crate::sys;
use serde_json::Value;
use std::fmt;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use toold_client::autostart::{self, DaemonFlags};
use toold_client::blocking::{CallError, Client};
use toold_proto::RpcError;

/// The time that the daemon may take to answer, beyond the time that the call itself waits.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(30);
/// The number of connections that one request may lose. More means that the daemon dies of it.
const MAX_LOST_CONNECTIONS: u32 = 5;
/// The time that systemd or an upgrade may take to bring a lost daemon back before we start one.
const RESTART_WAIT: Duration = Duration::from_secs(1);
const RETRY_DELAY: Duration = Duration::from_millis(10);
/// The longest part of a wait in one request, so that a daemon that hangs is noticed.
const MAX_REQUEST_WAIT: Duration = Duration::from_secs(600);

/// The daemon to connect to.
#[derive(Debug, Clone)]
pub struct DaemonAddress {
    pub socket: PathBuf,
    pub config: Option<PathBuf>,
    pub may_start: bool,
}

/// The reason why a call has no result.
#[derive(Debug)]
pub enum Failure {
    /// The daemon refused it.
    Refused(RpcError),
    /// The arguments are wrong.
    Arguments(String),
    /// No daemon answers.
    Unreachable(String),
    /// The client does not want it any more.
    Cancelled,
    /// A tick ended the wait; the daemon goes on.
    Stopped,
}

/// The decision of a tick.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tick {
    GoOn,
    /// Waits no longer for the answer.
    Stop,
}

impl fmt::Display for Failure {
    /// Formats the text for the agent: the message and the kind.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Refused(error) => {
                let kind = error.data.get("kind").and_then(Value::as_str).unwrap_or("internal");
                write!(f, "{} ({kind})", error.message)
            }
            Failure::Arguments(message) => write!(f, "{message} (invalid_params)"),
            Failure::Unreachable(message) => write!(f, "{message} (unavailable)"),
            Failure::Cancelled => f.write_str("cancelled (cancelled)"),
            Failure::Stopped => f.write_str("it goes on; its answer was not awaited (timeout)"),
        }
    }
}

impl Failure {
    /// Returns the daemon's name for the reason.
    pub fn kind(&self) -> Option<&str> {
        match self {
            Failure::Refused(error) => error.data.get("kind").and_then(Value::as_str),
            Failure::Arguments(_) | Failure::Unreachable(_) | Failure::Cancelled | Failure::Stopped => None,
        }
    }
}

/// The cancellation of a call, from another thread.
#[derive(Debug, Default)]
pub struct Cancel {
    is_cancelled: AtomicBool,
    sockets: Mutex<Vec<OwnedFd>>,
}

impl Cancel {
    /// Ends the call: its connections return at once.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::SeqCst);
        let sockets = self.sockets.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        sockets.iter().for_each(|socket| sys::shut_down(socket.as_fd()));
    }

    pub fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::SeqCst)
    }

    fn watch(&self, client: &Client) {
        let mut sockets = self.sockets.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Ok(copy) = client.as_fd().try_clone_to_owned() {
            sockets.push(copy);
        }
        if self.is_cancelled() {
            sys::shut_down(client.as_fd());
        }
    }
}

/// A connection of one call.
pub struct DaemonLink<'a> {
    address: &'a DaemonAddress,
    cancel: &'a Cancel,
    client: Option<Client>,
    may_start: bool,
}

impl<'a> DaemonLink<'a> {
    /// Makes a link that starts the daemon if none answers.
    pub fn new(address: &'a DaemonAddress, cancel: &'a Cancel) -> DaemonLink<'a> {
        DaemonLink { address, cancel, client: None, may_start: address.may_start }
    }

    /// Makes a link that starts no daemon.
    pub fn without_start(address: &'a DaemonAddress, cancel: &'a Cancel) -> DaemonLink<'a> {
        DaemonLink { may_start: false, ..DaemonLink::new(address, cancel) }
    }

    pub fn client(&mut self) -> Result<&mut Client, Failure> {
        let client = match self.client.take() {
            Some(client) => client,
            None => {
                let client = self.connect()?;
                self.cancel.watch(&client);
                client
            }
        };
        Ok(self.client.insert(client))
    }

    fn connect(&self) -> Result<Client, Failure> {
        let DaemonAddress { socket, config, .. } = self.address;
        if self.may_start {
            let flags = DaemonFlags { socket: Some(socket.clone()), config: config.clone() };
            return autostart::connect(socket, &flags).map_err(|e| Failure::Unreachable(e.to_string()));
        }
        Client::connect(socket).map_err(|e| Failure::Unreachable(e.to_string()))
    }

    /// Makes a request and returns its result.
    pub fn call(&mut self, method: &str, params: &Value) -> Result<Value, Failure> {
        self.call_waiting(method, |_| params.clone(), Duration::ZERO, ANSWER_TIMEOUT, |_| Tick::GoOn)
    }

    /// Makes a request that itself waits up to `wait`. `params` gets the time that is left, in milliseconds. Calls `tick` after
    /// each `interval` without an answer, with the time since the start.
    pub fn call_waiting(
        &mut self,
        method: &str,
        params: impl Fn(u64) -> Value,
        wait: Duration,
        interval: Duration,
        mut tick: impl FnMut(Duration) -> Tick,
    ) -> Result<Value, Failure> {
        let begin = Instant::now();
        let mut losses = 0;
        loop {
            let left = wait.saturating_sub(begin.elapsed()).min(MAX_REQUEST_WAIT);
            let mut is_stopped = false;
            let attempt = self.attempt(method, &params(left.as_millis() as u64), left, interval, || {
                is_stopped = tick(begin.elapsed()) == Tick::Stop;
                !is_stopped
            });
            if self.cancel.is_cancelled() {
                return Err(Failure::Cancelled);
            }
            if is_stopped {
                // The answer to this request must not be taken for one to the next.
                self.client = None;
                return Err(Failure::Stopped);
            }
            match attempt {
                Ok(result) => return Ok(result),
                Err(CallError::Rpc(error)) => return Err(Failure::Refused(error)),
                Err(error @ CallError::Unreachable { .. }) => {
                    losses += 1;
                    self.client = None;
                    if losses > MAX_LOST_CONNECTIONS {
                        return Err(Failure::Unreachable(error.to_string()));
                    }
                    self.reconnect()?;
                }
                Err(error) => return Err(Failure::Unreachable(error.to_string())),
            }
        }
    }

    /// Connects again to a daemon that another program may bring back, else to one that we start.
    fn reconnect(&mut self) -> Result<(), Failure> {
        let deadline = Instant::now() + RESTART_WAIT;
        while Instant::now() < deadline && !self.cancel.is_cancelled() {
            if let Ok(client) = Client::connect(&self.address.socket) {
                self.cancel.watch(&client);
                self.client = Some(client);
                return Ok(());
            }
            sys::pause(RETRY_DELAY);
        }
        self.client().map(drop)
    }

    fn attempt(
        &mut self,
        method: &str,
        params: &Value,
        wait: Duration,
        interval: Duration,
        mut goes_on: impl FnMut() -> bool,
    ) -> Result<Value, CallError> {
        let client = match self.client() {
            Ok(client) => client,
            // The text has everything; the kind does not matter here.
            Err(failure) => return Err(CallError::Protocol(failure_text(failure))),
        };
        client.set_timeout(interval)?;
        let (begin, id) = (Instant::now(), client.send(method, params)?);
        loop {
            while let Some(answer) = client.next_answer()? {
                if answer.id == Some(id) || answer.id.is_none() && answer.outcome.is_err() {
                    let raw = answer.outcome.map_err(CallError::Rpc)?;
                    return serde_json::from_str(raw.get())
                        .map_err(|e| CallError::Protocol(format!("cannot read the result of {method}: {e}")));
                }
            }
            match client.fill() {
                Err(error @ CallError::TimedOut { .. }) => {
                    if begin.elapsed() >= wait + ANSWER_TIMEOUT || !goes_on() {
                        return Err(error);
                    }
                }
                other => other?,
            }
        }
    }
}

fn failure_text(failure: Failure) -> String {
    match failure {
        Failure::Unreachable(text) => text,
        other => other.to_string(),
    }
}
