//! Ending a whole tree, and knowing that it ended. No step waits: the shim goes on with its output.

use super::run::Shim;
use super::tree::{self, Sent};
use crate::clock::mono_ms;
use crate::hooks;
use toold_format::frame::FromShim;
use toold_format::slots::Cause;

/// Callers that wait for one kill. More than this, and the oldest goes without its answer.
const CALLERS: usize = 16;
/// Pids that have had the polite signal. Beyond it a process waits for SIGKILL.
const REMEMBERED: usize = 256;
/// How long the tree has to be gone after SIGKILL before what is left is called a survivor.
const PROOF_MS: u64 = 3000;
/// How often the tree is looked at again while it should be dying.
const AGAIN_MS: u64 = 20;
/// Survivors named in a report.
const NAMED: usize = 64;

#[derive(Clone, Copy)]
pub struct Request {
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
    Asked(u64),
    /// SIGKILL sent; looked at again at the first time, given up at the second.
    Forced(u64, u64),
}

/// A kill under way. All that ask meanwhile share it.
pub struct Killing {
    phase: Phase,
    tokens: [u64; CALLERS],
    callers: usize,
    signal: i32,
    signals: u64,
    asked: [i32; REMEMBERED],
    asked_len: usize,
    cause: Cause,
    uid: u32,
    pid: i32,
}

impl Killing {
    pub const fn new() -> Killing {
        Killing {
            phase: Phase::Idle,
            tokens: [0; CALLERS],
            callers: 0,
            signal: 0,
            signals: 0,
            asked: [0; REMEMBERED],
            asked_len: 0,
            cause: Cause::Itself,
            uid: 0,
            pid: 0,
        }
    }

    pub fn pending(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// Who ended the program, if it ends now.
    pub fn blame(&self) -> (Cause, u32, i32) {
        (self.cause, self.uid, self.pid)
    }

    pub fn deadline(&self) -> Option<u64> {
        match self.phase {
            Phase::Idle => None,
            Phase::Asked(at) => Some(at),
            Phase::Forced(again, _) => Some(again),
        }
    }

    fn had(&self, pid: i32) -> bool {
        self.asked[..self.asked_len].contains(&pid)
    }
}

impl Shim {
    pub fn kill(&mut self, request: Request) {
        hooks::at("kill.asked");
        self.reap();
        if request.token != 0 {
            if self.killing.callers == CALLERS {
                self.killing.tokens.copy_within(1.., 0);
                self.killing.callers -= 1;
            }
            self.killing.tokens[self.killing.callers] = request.token;
            self.killing.callers += 1;
        }
        if self.childless {
            return self.report(&[]);
        }
        let now = mono_ms();
        if self.killing.cause == Cause::Itself && self.exit.is_none() {
            (self.killing.cause, self.killing.uid, self.killing.pid) = (request.cause, request.uid, request.pid);
        }
        if request.signal == libc::SIGKILL {
            return self.force(now);
        }
        // Another signal than before is news to everybody.
        if self.killing.signal != request.signal {
            self.killing.asked_len = 0;
            self.killing.signal = request.signal;
        }
        self.ask();
        let at = now + request.grace_ms;
        self.killing.phase = match self.killing.phase {
            Phase::Idle => Phase::Asked(at),
            Phase::Asked(earlier) => Phase::Asked(earlier.min(at)),
            forced @ Phase::Forced(..) => forced,
        };
        hooks::at("kill.signalled");
    }

    /// The polite signal to every member that has not had it.
    fn ask(&mut self) {
        let signal = self.killing.signal;
        let Some(mut memory) = PidMemory::new() else { return };
        let pids = Shim::tree(self.pid, memory.list());
        for pid in pids.list() {
            if self.killing.had(*pid) || self.killing.asked_len == REMEMBERED {
                continue;
            }
            if let Sent::Yes = tree::signal(*pid, pids.list(), self.pid, signal) {
                self.killing.signals |= 1u64 << (signal & 63);
                self.killing.asked[self.killing.asked_len] = *pid;
                self.killing.asked_len += 1;
            }
        }
    }

    fn force(&mut self, now: u64) {
        let give_up = match self.killing.phase {
            Phase::Forced(_, give_up) => give_up,
            Phase::Idle | Phase::Asked(_) => now + PROOF_MS,
        };
        self.killing.phase = Phase::Forced(now + AGAIN_MS, give_up);
        let Some(mut memory) = PidMemory::new() else { return };
        // Stopped first, so that nobody forks away while the others die.
        for signal in [libc::SIGSTOP, libc::SIGKILL] {
            let pids = Shim::tree(self.pid, memory.list());
            for pid in pids.list() {
                if let Sent::Yes = tree::signal(*pid, pids.list(), self.pid, signal)
                    && signal == libc::SIGKILL
                {
                    self.killing.signals |= 1u64 << (signal & 63);
                }
            }
        }
        hooks::at("kill.forced");
    }

    /// Moves a kill on: done, harder, or given up.
    pub fn kill_tick(&mut self, now: u64) {
        if !self.killing.pending() {
            return;
        }
        if self.childless {
            return self.report(&[]);
        }
        match self.killing.phase {
            Phase::Idle => {}
            Phase::Asked(at) if now >= at => self.force(now),
            // Somebody died or came home: whoever was born meanwhile is asked too.
            Phase::Asked(_) => self.ask(),
            Phase::Forced(_, give_up) if now >= give_up => self.give_up(),
            Phase::Forced(again, _) if now >= again => self.force(now),
            Phase::Forced(..) => {}
        }
    }

    fn give_up(&mut self) {
        let Some(mut memory) = PidMemory::new() else { return self.report(&[]) };
        let pids = Shim::tree(self.pid, memory.list());
        let mut alive = [0u8; NAMED * 4];
        let mut len = 0;
        for pid in pids.list() {
            if len < alive.len() && tree::stat(*pid).is_some_and(|s| !s.dead()) {
                alive[len..len + 4].copy_from_slice(&pid.to_le_bytes());
                len += 4;
            }
        }
        self.report(&alive[..len]);
    }

    fn report(&mut self, survivors: &[u8]) {
        hooks::at("kill.before_report");
        let signals = self.killing.signals;
        for at in 0..self.killing.callers {
            let token = self.killing.tokens[at];
            self.tell(&FromShim::Killed { token, signals, survivors });
        }
        let (cause, uid, pid) = self.killing.blame();
        self.killing = Killing::new();
        // A program that outlived the kill is not blamed on it later; one that died keeps its story.
        if self.exit.is_some() {
            (self.killing.cause, self.killing.uid, self.killing.pid) = (cause, uid, pid);
        }
    }
}

/// Room for a pass over the tree, given back at once.
struct PidMemory(Option<&'static mut [u8]>);

impl PidMemory {
    fn new() -> Option<PidMemory> {
        crate::sys::map(tree::ROOM * 4).map(|m| PidMemory(Some(m)))
    }
    fn list(&mut self) -> &mut [i32] {
        match &mut self.0 {
            Some(memory) => crate::sys::as_pids(memory),
            None => &mut [],
        }
    }
}

impl Drop for PidMemory {
    fn drop(&mut self) {
        if let Some(memory) = self.0.take() {
            crate::sys::unmap(memory);
        }
    }
}
