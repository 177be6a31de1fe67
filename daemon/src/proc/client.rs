//! The process at the other end of a connection, as /proc shows it: its ancestors, and whether it is confined more than the
//! daemon. A number that was reused by another process is never taken for it.

use super::tree::{self, Parentage};
use crate::clock::boot_ms;
use std::sync::OnceLock;
use toold_shim::confined::Confinement;
use toold_shim::sys::own_pid;

/// The most ancestors that are looked at.
const MAX_DEPTH: usize = 256;
/// The number of looks at ancestors that change meanwhile.
const TRIES: usize = 16;
/// The kernel counts the start of a process in hundredths of a second.
const TICK_SLACK_MS: u64 = 20;

/// A client, as its connection shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Client {
    pub pid: i32,
    /// The time since the boot at which the connection was accepted: a process that started later has only its number.
    pub accepted_ms: u64,
}

impl Client {
    pub fn new(pid: i32) -> Client {
        Client { pid, accepted_ms: boot_ms() }
    }

    /// Returns true for a client of a PID namespace that is not below the daemon's, as that of every job is.
    pub fn is_foreign(self) -> bool {
        self.pid == 0
    }

    fn parentage(self) -> Option<Parentage> {
        tree::parentage(self.pid).filter(|found| found.started_ms <= self.accepted_ms + TICK_SLACK_MS)
    }

    /// Returns the client and its ancestors, the nearest first, as far as they can be seen. None: it has ended, or its
    /// ancestors never stood still.
    ///
    /// An orphan gets the shim as its parent, because that is the subreaper of all processes below it: so whatever a job
    /// does, its shim stays above every one of its processes.
    pub fn ancestors(self) -> Option<Vec<i32>> {
        (0..TRIES).find_map(|_| self.try_ancestors())
    }

    fn try_ancestors(self) -> Option<Vec<i32>> {
        let mut at = self.parentage()?;
        let mut all = vec![self.pid];
        while at.ppid > 0 && all.len() < MAX_DEPTH {
            let parent = tree::parentage(at.ppid);
            // If its child still has this parent, the number stood for that one all the time.
            let child = tree::parentage(*all.last()?)?;
            if (child.ppid, child.started_ms) != (at.ppid, at.started_ms) {
                return None;
            }
            all.push(at.ppid);
            // A parent of another user is hidden on some systems. Its number is known all the same.
            let Some(parent) = parent else { break };
            at = parent;
        }
        Some(all)
    }

    /// Returns false if the client is certainly in no sandbox of a job: each has more confinement than the daemon, and
    /// nothing takes that away. None: the client has ended.
    pub fn is_confined(self) -> Option<bool> {
        static OWN: OnceLock<Confinement> = OnceLock::new();
        let own = OWN.get_or_init(|| Confinement::of(own_pid()).unwrap_or_default());
        let confinement = Confinement::of(self.pid)?;
        // Read after it: a number that was reused meanwhile has another start.
        self.parentage()?;
        Some(confinement.exceeds(own))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn the_ancestors_of_a_process_are_those_that_started_it() {
        let own = std::process::id() as i32;
        let chain = Client::new(own).ancestors().expect("it lives");
        assert_eq!(chain[..2], [own, std::os::unix::process::parent_id() as i32]);
        let mut child = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().expect("it starts");
        let pid = child.id() as i32;
        assert_eq!(Client::new(pid).ancestors().expect("it lives")[..2], [pid, own]);
        child.kill().expect("it lives");
        child.wait().expect("it is ours");
        assert_eq!((Client::new(pid).ancestors(), Client::new(pid).is_confined()), (None, None), "it has ended");
        assert_eq!(Client::new(own).is_confined(), Some(false));
        // A process that started after the connection has only its number.
        let early = Client { pid: own, accepted_ms: 0 };
        assert_eq!((early.ancestors(), early.is_confined()), (None, None));
    }
}
