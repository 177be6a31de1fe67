//! A daemon that does not answer: when that is reported, when it is given up, and what is known about it.

use crate::daemon_probe;
use std::fmt;
use std::os::fd::AsFd;
use std::time::Duration;

/// The time without an answer, beyond the time that the call itself waits, after which that is reported.
const NOTICE_AFTER: Duration = Duration::from_secs(5);
/// The same after which a daemon that is stopped is given up. One that runs may wait for a disk.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

/// The steps of a silence, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Notice,
    GiveUpIfStopped,
    GiveUp,
}

/// Returns the step after `passed` without an answer, and when it is due, for a call that itself waits up to `wait` and has
/// `timeout` in all.
pub fn next_step(wait: Duration, timeout: Duration, passed: Duration) -> (Step, Duration) {
    let steps = [(Step::Notice, NOTICE_AFTER), (Step::GiveUpIfStopped, GIVE_UP_AFTER)];
    let steps = steps.map(|(step, after)| (step, wait.saturating_add(after)));
    let next = steps.into_iter().find(|(_, due)| *due > passed && *due < timeout);
    next.unwrap_or((Step::GiveUp, timeout))
}

/// The process behind a socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Peer {
    pid: Option<u32>,
    is_stopped: bool,
}

impl Peer {
    /// Looks at the process that listens behind this connection. The socket of systemd has systemd's pid, and then the lock
    /// of the state directory names the daemon.
    pub fn of(stream: impl AsFd) -> Peer {
        let peer = rustix::net::sockopt::socket_peercred(stream).ok();
        // The pid of a process in another namespace is 0.
        let peer = peer.and_then(|peer| u32::try_from(peer.pid.as_raw_pid()).ok()).filter(|pid| *pid > 0);
        let daemon = peer.filter(|pid| daemon_probe::is_daemon(*pid));
        Peer::with_pid(daemon.or_else(daemon_probe::daemon_pid).or(peer))
    }

    /// Looks at the process that the lock of the state directory names.
    pub fn of_state_dir() -> Peer {
        Peer::with_pid(daemon_probe::daemon_pid())
    }

    fn with_pid(pid: Option<u32>) -> Peer {
        let stat = pid.and_then(|pid| std::fs::read_to_string(format!("/proc/{pid}/stat")).ok());
        Peer { pid, is_stopped: stat.is_some_and(|stat| is_stopped(&stat)) }
    }

    pub fn is_stopped(self) -> bool {
        self.is_stopped
    }

    /// Returns the command that lets a stopped daemon go on.
    pub fn continue_command(self) -> Option<String> {
        self.pid.filter(|_| self.is_stopped).map(|pid| format!("kill -CONT {pid}"))
    }

    /// Returns the line for a user who waits.
    pub fn notice(self) -> String {
        match (self.pid, self.is_stopped) {
            (Some(pid), true) => {
                format!("the daemon (pid {pid}) does not answer: it is stopped; `kill -CONT {pid}` continues it")
            }
            (Some(pid), false) => {
                format!("the daemon (pid {pid}) runs and has not answered yet; waiting on, Ctrl-C leaves")
            }
            (None, _) => "the daemon has not answered yet; waiting on, Ctrl-C leaves".into(),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.pid, self.is_stopped) {
            (Some(pid), true) => write!(f, "the daemon (pid {pid}) is stopped; `kill -CONT {pid}` continues it"),
            (Some(pid), false) => {
                write!(
                    f,
                    "the daemon (pid {pid}) runs; if it never answers, `kill {pid}` ends it, and its processes keep running"
                )
            }
            (None, _) => f.write_str("is toold stopped, or does something else listen there?"),
        }
    }
}

/// Reads /proc/PID/stat: the state follows the name, which may contain parentheses.
fn is_stopped(stat: &str) -> bool {
    stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with(['T', 't']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_silence_is_reported_then_checked_and_then_ends() {
        let seconds = Duration::from_secs;
        let next = |passed| next_step(seconds(2), seconds(32), seconds(passed));
        assert_eq!(next(0), (Step::Notice, seconds(7)));
        assert_eq!(next(7), (Step::GiveUpIfStopped, seconds(12)));
        assert_eq!(next(12), (Step::GiveUp, seconds(32)));
        assert_eq!(next_step(seconds(1), seconds(2), Duration::ZERO), (Step::GiveUp, seconds(2)), "it is short");
    }

    #[test]
    fn a_stopped_process_is_recognised_whatever_its_name() {
        assert!(is_stopped("12 (toold) T 1 2") && is_stopped("12 (a) S (b) t 1"));
        assert!(!is_stopped("12 (T) S 1 2") && !is_stopped(""));
        let stopped = Peer { pid: Some(7), is_stopped: true };
        assert!(stopped.to_string().contains("kill -CONT 7") && stopped.notice().contains("kill -CONT 7"));
        assert_eq!(stopped.continue_command().as_deref(), Some("kill -CONT 7"));
        let own = Peer::with_pid(Some(std::process::id()));
        assert!(!own.is_stopped() && own.continue_command().is_none() && own.to_string().contains(" runs; "));
    }
}
