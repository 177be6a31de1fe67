//! Ending a whole tree, and knowing that it ended. No step waits: the shim goes on with its output.

use super::run::Shim;
use super::tree::{self, SignalResult};
use crate::clock::mono_ms;
use crate::hooks;
use toold_format::frame::FromShim;
use toold_format::slots::Cause;

/// Callers that wait for one kill. More than this, and the oldest goes without its answer.
const MAX_CALLERS: usize = 16;
/// Pids that have was_signalled the polite signal. Beyond it a process waits for SIGKILL.
const MAX_SIGNALLED: usize = 256;
/// How long the tree has to be gone after SIGKILL before what is left is called a survivor.
const KILL_TIMEOUT_MS: u64 = 3000;
/// How often the tree is looked at again while it should be dying.
const RETRY_INTERVAL_MS: u64 = 20;
/// Survivors named in a report.
const MAX_SURVIVORS: usize = 64;

#[derive(Clone, Copy)]
pub struct KillRequest {
    /// 0: nobody waits for the answer.
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
    /// Asked to end; SIGKILL at this time.
    Grace(u64),
    /// SIGKILL sent; looked at again at the first time, given up at the second.
    Killing(u64, u64),
}

/// A kill under way. All that ask meanwhile share it.
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

    /// Who ended the program, if it ends now.
    pub fn cause(&self) -> (Cause, u32, i32) {
        (self.cause, self.uid, self.pid)
    }

    pub fn deadline(&self) -> Option<u64> {
        match self.phase {
            Phase::Idle => None,
            Phase::Grace(at) => Some(at),
            Phase::Killing(again, _) => Some(again),
        }
    }

    fn was_signalled(&self, pid: i32) -> bool {
        self.signalled[..self.signalled_len].contains(&pid)
    }
}

impl Shim {
    pub fn kill(&mut self, request: KillRequest) {
        hooks::at("kill.signalled");
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
            (self.kill_state.cause, self.kill_state.uid, self.kill_state.pid) =
                (request.cause, request.uid, request.pid);
        }
        if request.signal == libc::SIGKILL {
            return self.sigkill_all(now);
        }
        // Another signal than before is news to everybody.
        if self.kill_state.signal != request.signal {
            self.kill_state.signalled_len = 0;
            self.kill_state.signal = request.signal;
        }
        self.signal_all();
        let at = now + request.grace_ms;
        self.kill_state.phase = match self.kill_state.phase {
            Phase::Idle => Phase::Grace(at),
            Phase::Grace(earlier) => Phase::Grace(earlier.min(at)),
            killing @ Phase::Killing(..) => killing,
        };
        hooks::at("kill.signalled");
    }

    /// The polite signal to every member that has not was_signalled it.
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
        let give_up = match self.kill_state.phase {
            Phase::Killing(_, give_up) => give_up,
            Phase::Idle | Phase::Grace(_) => now + KILL_TIMEOUT_MS,
        };
        self.kill_state.phase = Phase::Killing(now + RETRY_INTERVAL_MS, give_up);
        let Some(mut memory) = PidBuffer::new() else { return };
        // Stopped first, so that nobody forks away while the others die.
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
        hooks::at("kill.killing");
    }

    /// Moves a kill on: done, harder, or given up.
    pub fn kill_tick(&mut self, now: u64) {
        if !self.kill_state.is_pending() {
            return;
        }
        if self.childless {
            return self.report(&[]);
        }
        match self.kill_state.phase {
            Phase::Idle => {}
            Phase::Grace(at) if now >= at => self.sigkill_all(now),
            // Somebody died or came home: whoever was born meanwhile is signalled too.
            Phase::Grace(_) => self.signal_all(),
            Phase::Killing(_, give_up) if now >= give_up => self.give_up(),
            Phase::Killing(again, _) if now >= again => self.sigkill_all(now),
            Phase::Killing(..) => {}
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
        // A program that outlived the kill is not blamed on it later; one that died keeps its story.
        if self.exit.is_some() {
            (self.kill_state.cause, self.kill_state.uid, self.kill_state.pid) = (cause, uid, pid);
        }
    }
}

/// Arena for a pass over the tree, given back at once.
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
            crate::sys::unmap(memory);
        }
    }
}
