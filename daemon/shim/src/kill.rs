//! Kills a whole tree and proves that it ended. No step waits: the shim continues to read output.

use super::run::Shim;
use super::tree::{self, SignalResult};
use crate::clock::mono_ms;
use crate::hooks;
use toold_format::frame::FromShim;
use toold_format::slots::Cause;

/// The number of callers that wait for one kill. Beyond it the oldest gets no answer.
const MAX_CALLERS: usize = 16;
/// The number of pids that get the first signal. Beyond it a process waits for SIGKILL.
const MAX_SIGNALLED: usize = 256;
/// The time that the tree has to be gone after SIGKILL. A process that is left then is a survivor.
const KILL_TIMEOUT_MS: u64 = 3000;
/// The time between two looks at a tree that should be dying.
const RETRY_INTERVAL_MS: u64 = 20;
/// The number of survivors in a report.
const MAX_SURVIVORS: usize = 64;

#[derive(Clone, Copy)]
pub struct KillRequest {
    /// 0: no caller waits for the answer.
    pub token: u64,
    pub signal: i32,
    pub grace_ms: u64,
    pub cause: Cause,
    pub uid: u32,
    pub pid: i32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    /// The first signal was sent. SIGKILL follows.
    Grace {
        kill_at: u64,
    },
    /// SIGKILL was sent, and is sent again until the tree is empty.
    Killing {
        retry_at: u64,
        give_up_at: u64,
    },
}

/// A kill under way. All callers share it.
pub struct KillState {
    phase: Phase,
    tokens: [u64; MAX_CALLERS],
    callers: usize,
    signal: i32,
    signals: u64,
    signalled: [i32; MAX_SIGNALLED],
    signalled_len: usize,
    cause: Cause,
    uid: u32,
    pid: i32,
}

impl KillState {
    pub const fn new() -> KillState {
        KillState {
            phase: Phase::Idle,
            tokens: [0; MAX_CALLERS],
            callers: 0,
            signal: 0,
            signals: 0,
            signalled: [0; MAX_SIGNALLED],
            signalled_len: 0,
            cause: Cause::Itself,
            uid: 0,
            pid: 0,
        }
    }

    pub fn is_pending(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// Returns the cause, uid and pid that the exit is attributed to if the program ends now.
    pub fn cause(&self) -> (Cause, u32, i32) {
        (self.cause, self.uid, self.pid)
    }

    pub fn deadline(&self) -> Option<u64> {
        match self.phase {
            Phase::Idle => None,
            Phase::Grace { kill_at } => Some(kill_at),
            Phase::Killing { retry_at, .. } => Some(retry_at),
        }
    }

    fn was_signalled(&self, pid: i32) -> bool {
        self.signalled[..self.signalled_len].contains(&pid)
    }
}

impl Shim {
    pub fn kill(&mut self, request: KillRequest) {
        hooks::at("kill.asked");
        self.reap();
        if request.token != 0 {
            if self.kill_state.callers == MAX_CALLERS {
                self.kill_state.tokens.copy_within(1.., 0);
                self.kill_state.callers -= 1;
            }
            self.kill_state.tokens[self.kill_state.callers] = request.token;
            self.kill_state.callers += 1;
        }
        if self.childless {
            return self.report(&[]);
        }
        let now = mono_ms();
        if self.kill_state.cause == Cause::Itself && self.exit.is_none() {
            self.kill_state.cause = request.cause;
            self.kill_state.uid = request.uid;
            self.kill_state.pid = request.pid;
        }
        if request.signal == libc::SIGKILL {
            return self.sigkill_all(now);
        }
        // Another signal than before goes to every process again.
        if self.kill_state.signal != request.signal {
            self.kill_state.signalled_len = 0;
            self.kill_state.signal = request.signal;
        }
        self.signal_all();
        let at = now + request.grace_ms;
        self.kill_state.phase = match self.kill_state.phase {
            Phase::Idle => Phase::Grace { kill_at: at },
            Phase::Grace { kill_at } => Phase::Grace { kill_at: kill_at.min(at) },
            killing @ Phase::Killing { .. } => killing,
        };
        hooks::at("kill.signalled");
    }

    /// Sends the first signal to every member that has not had it.
    fn signal_all(&mut self) {
        let signal = self.kill_state.signal;
        let Some(mut memory) = PidBuffer::new() else { return };
        let pids = Shim::tree(self.pid, memory.list());
        for pid in pids.list() {
            if self.kill_state.was_signalled(*pid) || self.kill_state.signalled_len == MAX_SIGNALLED {
                continue;
            }
            if let SignalResult::Sent = tree::signal(*pid, pids.list(), self.pid, signal) {
                self.kill_state.signals |= 1u64 << (signal & 63);
                self.kill_state.signalled[self.kill_state.signalled_len] = *pid;
                self.kill_state.signalled_len += 1;
            }
        }
    }

    fn sigkill_all(&mut self, now: u64) {
        let give_up_at = match self.kill_state.phase {
            Phase::Killing { give_up_at, .. } => give_up_at,
            Phase::Idle | Phase::Grace { .. } => now + KILL_TIMEOUT_MS,
        };
        self.kill_state.phase = Phase::Killing { retry_at: now + RETRY_INTERVAL_MS, give_up_at };
        let Some(mut memory) = PidBuffer::new() else { return };
        // Stopped first, so that no process forks while the others die.
        for signal in [libc::SIGSTOP, libc::SIGKILL] {
            let pids = Shim::tree(self.pid, memory.list());
            for pid in pids.list() {
                if let SignalResult::Sent = tree::signal(*pid, pids.list(), self.pid, signal)
                    && signal == libc::SIGKILL
                {
                    self.kill_state.signals |= 1u64 << (signal & 63);
                }
            }
        }
        hooks::at("kill.forced");
    }

    /// Advances a kill: done, SIGKILL, or given up.
    pub fn kill_tick(&mut self, now: u64) {
        if !self.kill_state.is_pending() {
            return;
        }
        if self.childless {
            return self.report(&[]);
        }
        match self.kill_state.phase {
            Phase::Idle => {}
            Phase::Grace { kill_at } if now >= kill_at => self.sigkill_all(now),
            // A process died or became our child: those forked meanwhile are signalled too.
            Phase::Grace { .. } => self.signal_all(),
            Phase::Killing { give_up_at, .. } if now >= give_up_at => self.give_up(),
            Phase::Killing { retry_at, .. } if now >= retry_at => self.sigkill_all(now),
            Phase::Killing { .. } => {}
        }
    }

    fn give_up(&mut self) {
        let Some(mut memory) = PidBuffer::new() else { return self.report(&[]) };
        let pids = Shim::tree(self.pid, memory.list());
        let mut alive = [0u8; MAX_SURVIVORS * 4];
        let mut len = 0;
        for pid in pids.list() {
            if len < alive.len() && tree::stat(*pid).is_some_and(|s| !s.is_dead()) {
                alive[len..len + 4].copy_from_slice(&pid.to_le_bytes());
                len += 4;
            }
        }
        self.report(&alive[..len]);
    }

    fn report(&mut self, survivors: &[u8]) {
        hooks::at("kill.before_report");
        let signals = self.kill_state.signals;
        for at in 0..self.kill_state.callers {
            let token = self.kill_state.tokens[at];
            self.send(&FromShim::Killed { token, signals, survivors });
        }
        let (cause, uid, pid) = self.kill_state.cause();
        self.kill_state = KillState::new();
        // The exit of a program that outlived the kill is not attributed to it later; that of one that died is.
        if self.exit.is_some() {
            self.kill_state.cause = cause;
            self.kill_state.uid = uid;
            self.kill_state.pid = pid;
        }
    }
}

/// Memory for a pass over the tree, unmapped at its end.
struct PidBuffer(Option<&'static mut [u8]>);

impl PidBuffer {
    fn new() -> Option<PidBuffer> {
        crate::sys::map_anonymous(tree::MAX_PIDS * 4).map(|m| PidBuffer(Some(m)))
    }
    fn list(&mut self) -> &mut [i32] {
        match &mut self.0 {
            Some(memory) => crate::sys::as_pids(memory),
            None => &mut [],
        }
    }
}

impl Drop for PidBuffer {
    fn drop(&mut self) {
        if let Some(memory) = self.0.take() {
            // SAFETY: all of the mapping from `new`.
            unsafe { crate::sys::unmap(memory) };
        }
    }
}
