//! Stops and continues a whole tree, and records what the kernel reports about the program: it may stop itself, and any
//! process may stop it.

use super::pids::Pids;
use super::run::Shim;
use super::tree::{self, SignalResult};
use crate::clock::mono_ms;
use crate::hooks;
use crate::sys;
use rustix::io::Errno;
use toold_format::frame::FromShim;

/// The number of callers that wait for one pause. Beyond it a caller is refused.
const MAX_CALLERS: usize = 8;
/// The time that a tree has to stop. A process that waits for a disk stops later.
const PAUSE_TIMEOUT_MS: u64 = 3000;
/// The time between two looks at a tree that should be stopping.
const RETRY_INTERVAL_MS: u64 = 5;

/// The stop of the program, and a pause under way. All callers share it.
pub struct PauseState {
    stopped: bool,
    tokens: [u64; MAX_CALLERS],
    callers: usize,
    look_at: u64,
    give_up_at: u64,
}

impl PauseState {
    pub const fn new() -> PauseState {
        PauseState { stopped: false, tokens: [0; MAX_CALLERS], callers: 0, look_at: 0, give_up_at: 0 }
    }

    /// Returns true if the program is stopped.
    pub fn is_stopped(&self) -> bool {
        self.stopped
    }

    pub fn deadline(&self) -> Option<u64> {
        (self.callers > 0).then_some(self.look_at)
    }

    /// Forgets the callers: their daemon is gone. The signals were sent.
    pub fn callers_gone(&mut self) {
        self.callers = 0;
    }
}

impl Shim {
    pub fn pause(&mut self, token: u64) {
        self.reap();
        if self.exit.is_some() {
            return self.send_done(token, Err(Errno::SRCH));
        }
        if self.pause_state.callers == MAX_CALLERS {
            return self.send_done(token, Err(Errno::AGAIN));
        }
        self.pause_state.tokens[self.pause_state.callers] = token;
        self.pause_state.callers += 1;
        self.pause_state.give_up_at = mono_ms() + PAUSE_TIMEOUT_MS;
        self.stop_tree();
        hooks::at("pause.signalled");
    }

    pub fn resume(&mut self, token: u64) {
        self.reap();
        if self.exit.is_some() {
            return self.send_done(token, Err(Errno::SRCH));
        }
        // A pause that has not seen its end yet must not stop the tree again.
        self.answer_pause(Ok(()));
        let pids = tree::descendants(self.pid);
        for pid in pids.list() {
            self.signal_tree_member(*pid, &pids, libc::SIGCONT);
        }
        let sent = match pids.list().is_empty() {
            true => sys::signal_group(self.child_pid, libc::SIGCONT),
            false => Ok(()),
        };
        hooks::at("resume.signalled");
        // The kernel notes that the program continues when the signal is sent.
        self.reap();
        self.send_done(token, sent);
    }

    /// Looks again at a tree that is stopping.
    pub fn pause_tick(&mut self, now: u64) {
        if self.pause_state.callers > 0 && now >= self.pause_state.look_at {
            self.stop_tree();
        }
    }

    /// Sends SIGSTOP to every process that runs, and answers when none does. Some fork meanwhile.
    fn stop_tree(&mut self) {
        let pids = tree::descendants(self.pid);
        if pids.list().is_empty() {
            // There is no /proc: only the program's group can be found.
            let sent = sys::signal_group(self.child_pid, libc::SIGSTOP);
            return self.answer_pause(sent);
        }
        let is_late = mono_ms() >= self.pause_state.give_up_at;
        let mut all_stopped = true;
        for pid in pids.list() {
            let Some(stat) = tree::stat(*pid) else { continue };
            if stat.is_dead() || stat.is_stopped() {
                continue;
            }
            all_stopped = false;
            // A process that has called vfork cannot stop before its child has executed a program: that child goes on.
            if stat.state == b'D' && !is_late {
                self.continue_children(*pid, &pids);
            }
            self.signal_tree_member(*pid, &pids, libc::SIGSTOP);
        }
        self.reap();
        // The program's own stop is known from the kernel's report, which the record has by then.
        if (all_stopped && self.pause_state.stopped) || is_late {
            return self.answer_pause(Ok(()));
        }
        self.pause_state.look_at = mono_ms() + RETRY_INTERVAL_MS;
    }

    fn continue_children(&self, parent: i32, pids: &Pids) {
        for pid in pids.list() {
            if tree::stat(*pid).is_some_and(|stat| stat.ppid == parent && stat.is_stopped()) {
                self.signal_tree_member(*pid, pids, libc::SIGCONT);
            }
        }
    }

    fn signal_tree_member(&self, pid: i32, pids: &Pids, signal: i32) -> SignalResult {
        let own = self.pid;
        tree::signal(pid, signal, |parent| parent == own || pids.contains(parent))
    }

    fn answer_pause(&mut self, result: Result<(), Errno>) {
        let callers = std::mem::take(&mut self.pause_state.callers);
        let tokens = self.pause_state.tokens;
        for token in &tokens[..callers] {
            self.send_done(*token, result);
        }
    }

    /// Records and reports that the program has stopped or continues.
    pub fn set_stopped(&mut self, stopped: bool) {
        // A tree is stopped for a moment before it is killed: it does not wait to be continued.
        if self.pause_state.stopped == stopped || (stopped && self.kill_state.is_forced()) {
            return;
        }
        self.pause_state.stopped = stopped;
        if !stopped {
            self.active_at = mono_ms();
        }
        self.write_progress();
        hooks::at("pause.recorded");
        let progress = self.progress();
        self.send(&FromShim::Bell { progress });
    }

    /// Ends a pause: the program has ended.
    pub fn end_pause(&mut self) {
        self.pause_state.stopped = false;
        self.answer_pause(Err(Errno::SRCH));
    }
}
