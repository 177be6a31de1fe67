//! `--wake codex`: an idle thread of Codex gets exits by `codex queue`, which starts a turn. At most once in a while, and
//! never what a result has reported already.

use crate::carrier::now_ms;
use crate::server::Server;
use crate::sys;
use std::collections::BTreeSet;
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};
use toold_client::agent_events::{self, DeliveryLock, Subject};
use toold_client::blocking::Client;

/// The shortest time between two messages.
const WAKE_INTERVAL: Duration = Duration::from_secs(15);
/// The time in which a call that is running, or its result, may report the exit instead.
const SETTLE_TIME: Duration = Duration::from_millis(700);
/// The time that `codex queue` may take.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(30);
const CHECK_INTERVAL: Duration = Duration::from_millis(50);

/// The sessions in which something ended.
#[derive(Default)]
pub struct Wake {
    pending: Mutex<BTreeSet<String>>,
    changed: Condvar,
}

impl Wake {
    /// Notes that a process of the session has ended.
    pub fn exited(&self, session: &str) {
        if session.starts_with("codex:") {
            self.pending.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).insert(session.to_owned());
            self.changed.notify_all();
        }
    }

    fn next(&self) -> String {
        let mut pending = self.pending.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        loop {
            if let Some(session) = pending.pop_first() {
                return session;
            }
            pending = self.changed.wait(pending).unwrap_or_else(|poisoned| poisoned.into_inner());
        }
    }
}

/// Starts the thread that wakes Codex.
pub fn start(server: Arc<Server>) {
    std::thread::spawn(move || {
        let mut last: Option<Instant> = None;
        loop {
            let session = server.wake.next();
            sys::pause(SETTLE_TIME);
            while server.calls_in(&session) > 0 || last.is_some_and(|at| at.elapsed() < WAKE_INTERVAL) {
                sys::pause(CHECK_INTERVAL);
            }
            if send(&server, &session) {
                last = Some(Instant::now());
            }
        }
    });
}

/// Sends what is unseen to the thread of the session. Returns true if a message was sent.
fn send(server: &Server, session: &str) -> bool {
    let Some(thread) = session.strip_prefix("codex:") else { return false };
    let Some(_lock) = DeliveryLock::acquire(&server.address.socket, session, Duration::from_secs(2)) else {
        // A result is on its way. What it does not report is due afterwards.
        server.wake.exited(session);
        return false;
    };
    let Ok(mut client) = Client::connect(&server.address.socket) else { return false };
    let Ok(unseen) = agent_events::pull(&mut client, session) else { return false };
    if !unseen.events.iter().any(|event| event.subject == Subject::Exit) {
        return false;
    }
    let Some(line) = unseen.line(now_ms()) else { return false };
    let is_queued = queue(thread, &format!("toold: {line}"));
    if let Some(seq) = unseen.last_seq.filter(|_| is_queued)
        && let Err(error) = agent_events::acknowledge(&mut client, session, seq)
    {
        eprintln!("toolctl-mcp: cannot acknowledge events of {session}: {error}");
    }
    is_queued
}

/// Runs `codex queue`. Returns true if it took the message.
fn queue(thread: &str, message: &str) -> bool {
    let mut command = Command::new("codex");
    command.args(["queue", "--thread", thread, "--message", message]);
    // Our output is the client's.
    command.stdin(Stdio::null()).stdout(Stdio::null());
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            eprintln!("toolctl-mcp: cannot run codex queue: {error}");
            return false;
        }
    };
    let deadline = Instant::now() + QUEUE_TIMEOUT;
    loop {
        match child.try_wait() {
            Ok(Some(status)) if status.success() => return true,
            Ok(Some(status)) => {
                eprintln!("toolctl-mcp: codex queue ended with {status}");
                return false;
            }
            Ok(None) if Instant::now() < deadline => sys::pause(CHECK_INTERVAL),
            Ok(None) | Err(_) => {
                eprintln!("toolctl-mcp: codex queue does not end");
                let _ = child.kill();
                let _ = child.wait();
                return false;
            }
        }
    }
}
