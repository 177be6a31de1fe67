//! Kills a whole tree and proves that it ended. No step waits: the shim continues to read output.

use super::pids::Pids;
use super::run::Shim;
use super::tree::{self, SignalResult};
use crate::clock::mono_ms;
use crate::hooks;
use crate::sys;
use toold_format::frame::FromShim;
use toold_format::slots::Cause;

/// The number of callers that wait for one kill. Beyond it the oldest gets no answer.
const MAX_CALLERS: usize = 16;
/// The time that the tree has to be gone after SIGKILL. A process that is left then is a survivor.
const KILL_TIMEOUT_MS: u64 = 3000;
/// The shortest time between two looks at a tree that should be dying.
const RETRY_INTERVAL_MS: u64 = 20;
/// The number of looks at a tree that forks while it is signalled. Then its output and its exits have their turn.
const MAX_PASSES: usize = 8;
/// A look at a large tree takes long: the pause after it is as many times longer.
const PAUSE_FACTOR: u64 = 4;
/// The number of survivors in a report.
const MAX_SURVIVORS: usize = 64;
/// Stands in a report for survivors that cannot be listed.
const UNKNOWN_SURVIVOR: [u8; 4] = 0i32.to_le_bytes();

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
        /// The tree is not read again before this time.
        look_at: u64,
        /// The tree may have members that did not get the signal.
        look: bool,
    },
    /// SIGKILL was sent, and is sent again until the tree is empty.
    Killing {
        retry_at: u64,
        give_up_at: u64,
    },
}

/// The signals that were sent to the program itself, as bits.
#[derive(Clone, Copy, Default)]
struct ProgramSignals {
    sent: u64,
    /// Those of them that it could outlive: see `tree::can_outlive`.
    survivable: u64,
}

impl ProgramSignals {
    /// Checks whether an end can come from these signals. A program that exits by itself while it is killed may be sent
    /// a signal that the kernel drops: that signal did not end it.
    fn explain(self, status: i32) -> bool {
        let died_by_one = libc::WIFSIGNALED(status) && self.sent & bit(libc::WTERMSIG(status)) != 0;
        died_by_one || self.survivable != 0
    }
}

/// The bit of a signal in a report. Signal 64 has bit 0, which no other signal has.
fn bit(signal: i32) -> u64 {
    1u64 << (signal & 63)
}

/// A kill under way. All callers share it.
pub struct KillState {
    phase: Phase,
    tokens: [u64; MAX_CALLERS],
    callers: usize,
    signal: i32,
    /// The signals that were sent to members other than the program, as bits.
    signals: u64,
    program: ProgramSignals,
    /// The members that got the first signal.
    signalled: Option<Pids>,
    /// There is no /proc: only the program's group can be signalled.
    blind: bool,
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
            program: ProgramSignals { sent: 0, survivable: 0 },
            signalled: None,
            blind: false,
            cause: Cause::Itself,
            uid: 0,
            pid: 0,
        }
    }

    pub fn is_pending(&self) -> bool {
        self.phase != Phase::Idle
    }

    /// Returns true from the first SIGKILL on, before which the tree is stopped.
    pub fn is_forced(&self) -> bool {
        matches!(self.phase, Phase::Killing { .. })
    }

    /// Returns the cause, uid and pid that the program's end is attributed to, and forgets signals that came too late: the
    /// answer to a kill and the exit agree.
    pub fn attribute(&mut self, wait_status: i32) -> (Cause, u32, i32) {
        if self.program.explain(wait_status) {
            return (self.cause, self.uid, self.pid);
        }
        self.program = ProgramSignals::default();
        (Cause::Itself, 0, 0)
    }

    pub fn deadline(&self) -> Option<u64> {
        match self.phase {
            Phase::Idle => None,
            Phase::Grace { kill_at, look_at, look: true } => Some(kill_at.min(look_at)),
            Phase::Grace { kill_at, look: false, .. } => Some(kill_at),
            Phase::Killing { retry_at, .. } => Some(retry_at),
        }
    }

    /// A process died, or became our child: those that were forked meanwhile are to be signalled too.
    pub fn tree_changed(&mut self) {
        if let Phase::Grace { look, .. } = &mut self.phase {
            *look = true;
        }
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
        if self.kill_state.cause == Cause::Itself && self.exit.is_none() {
            self.kill_state.cause = request.cause;
            self.kill_state.uid = request.uid;
            self.kill_state.pid = request.pid;
        }
        if request.signal == libc::SIGKILL {
            return self.sigkill_all();
        }
        // Another signal than before goes to every process again.
        if self.kill_state.signal != request.signal {
            self.kill_state.signalled = None;
            self.kill_state.signal = request.signal;
        }
        let at = mono_ms().saturating_add(request.grace_ms);
        self.kill_state.phase = match self.kill_state.phase {
            Phase::Idle => Phase::Grace { kill_at: at, look_at: 0, look: true },
            Phase::Grace { kill_at, .. } => Phase::Grace { kill_at: kill_at.min(at), look_at: 0, look: true },
            killing @ Phase::Killing { .. } => killing,
        };
        self.signal_all();
        hooks::at("kill.signalled");
    }

    /// Sends the first signal to every member that has not had it, until there is none: some fork meanwhile.
    fn signal_all(&mut self) {
        let (signal, began) = (self.kill_state.signal, mono_ms());
        let mut signalled = self.kill_state.signalled.take().unwrap_or_default();
        let mut look = true;
        for _ in 0..MAX_PASSES {
            let pids = tree::descendants(self.pid);
            hooks::at("kill.listed");
            if pids.list().is_empty() && !tree::has_proc() {
                self.signal_group(signal, &mut signalled);
                look = false;
                break;
            }
            signalled.retain_common(&pids);
            let (mut found, mut later) = (false, false);
            for pid in pids.list() {
                if signalled.contains(*pid) {
                    continue;
                }
                match self.signal_member(*pid, &pids, signal) {
                    SignalResult::Sent => {
                        signalled.push(*pid);
                        found = true;
                    }
                    SignalResult::Later => later = true,
                    SignalResult::Gone | SignalResult::Refused => {}
                }
            }
            if !found {
                look = later;
                break;
            }
        }
        self.kill_state.signalled = Some(signalled);
        let next = next_look(began);
        if let Phase::Grace { look_at, look: wanted, .. } = &mut self.kill_state.phase {
            (*look_at, *wanted) = (next, look);
        }
    }

    fn sigkill_all(&mut self) {
        let began = mono_ms();
        // Stopped first, so that no process forks while the others die.
        for signal in [libc::SIGSTOP, libc::SIGKILL] {
            let pids = tree::descendants(self.pid);
            for pid in pids.list() {
                self.signal_member(*pid, &pids, signal);
            }
            if pids.list().is_empty() && !tree::has_proc() {
                self.signal_group(signal, &mut Pids::new());
            }
        }
        let give_up_at = match self.kill_state.phase {
            Phase::Killing { give_up_at, .. } => give_up_at,
            Phase::Idle | Phase::Grace { .. } => mono_ms() + KILL_TIMEOUT_MS,
        };
        self.kill_state.phase = Phase::Killing { retry_at: next_look(began), give_up_at };
        hooks::at("kill.forced");
    }

    /// Signals one member, and notes what was sent to whom.
    fn signal_member(&mut self, pid: i32, pids: &Pids, signal: i32) -> SignalResult {
        let own = self.pid;
        let is_program = pid == self.child_pid && self.exit.is_none();
        let survivable = is_program && tree::can_outlive(pid, signal);
        let sent = tree::signal(pid, signal, |parent| parent == own || pids.contains(parent));
        // SIGSTOP only precedes SIGKILL, unless a caller asked for it.
        if sent == SignalResult::Sent && (signal != libc::SIGSTOP || self.kill_state.signal == signal) {
            if is_program {
                self.kill_state.program.sent |= bit(signal);
                self.kill_state.program.survivable |= if survivable { bit(signal) } else { 0 };
            } else {
                self.kill_state.signals |= bit(signal);
            }
        }
        sent
    }

    /// Signals the program's group, for a system without /proc: members outside of it cannot be found there. Once for each
    /// signal.
    fn signal_group(&mut self, signal: i32, signalled: &mut Pids) {
        self.kill_state.blind = true;
        // The leader is not reaped, so the group id is still the program's.
        if self.exit.is_some() || signalled.contains(self.child_pid) {
            return;
        }
        if sys::signal_group(self.child_pid, signal).is_ok() && signal != libc::SIGSTOP {
            signalled.push(self.child_pid);
            self.kill_state.program.sent |= bit(signal);
            self.kill_state.program.survivable |= if signal == libc::SIGKILL { 0 } else { bit(signal) };
        }
    }

    /// Kills the rest of a group whose leader has ended, before the leader is reaped: its number may be another group's
    /// afterwards, and without /proc the members cannot be found by their own.
    pub fn kill_leaderless_group(&mut self) {
        if self.kill_state.blind && self.exit.is_none() && sys::has_ended(self.child_pid) {
            let _ = sys::signal_group(self.child_pid, libc::SIGKILL);
        }
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
            Phase::Grace { kill_at, .. } if now >= kill_at => self.sigkill_all(),
            Phase::Grace { look: true, look_at, .. } if now >= look_at => self.signal_all(),
            Phase::Grace { .. } => {}
            Phase::Killing { give_up_at, .. } if now >= give_up_at => self.give_up(),
            Phase::Killing { retry_at, .. } if now >= retry_at => self.sigkill_all(),
            Phase::Killing { .. } => {}
        }
    }

    fn give_up(&mut self) {
        let pids = tree::descendants(self.pid);
        let mut alive = [0u8; MAX_SURVIVORS * 4];
        let mut len = 0;
        for pid in pids.list() {
            if len < alive.len() && tree::stat(*pid).is_some_and(|s| !s.is_dead()) {
                alive[len..len + 4].copy_from_slice(&pid.to_le_bytes());
                len += 4;
            }
        }
        // A child is left, whether /proc shows it or not.
        if len == 0 { self.report(&UNKNOWN_SURVIVOR) } else { self.report(&alive[..len]) }
    }

    /// Answers every caller. The exit of a program that outlived the kill is not attributed to it later.
    fn report(&mut self, survivors: &[u8]) {
        hooks::at("kill.before_report");
        let signals = self.kill_state.signals | self.kill_state.program.sent;
        for at in 0..self.kill_state.callers {
            let token = self.kill_state.tokens[at];
            self.send(&FromShim::Killed { token, signals, survivors });
        }
        self.kill_state = KillState::new();
    }
}

/// Returns the time of the next look at a tree after one that began at `began`.
fn next_look(began: u64) -> u64 {
    let now = mono_ms();
    now + RETRY_INTERVAL_MS.max((now - began) * PAUSE_FACTOR)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The wait status of an exit with a code, and of a death by a signal.
    fn code(code: i32) -> i32 {
        code << 8
    }
    fn signal(signal: i32) -> i32 {
        signal
    }

    #[test]
    fn an_end_is_explained_only_by_a_signal_that_can_have_caused_it() {
        let term = bit(libc::SIGTERM);
        let sent = |sent, survivable| ProgramSignals { sent, survivable };
        for (signals, status, explained) in [
            // Nothing was sent.
            (sent(0, 0), code(0), false),
            (sent(0, 0), signal(libc::SIGTERM), false),
            // The default of SIGTERM ends a program by SIGTERM: one with a code was exiting already.
            (sent(term, 0), signal(libc::SIGTERM), true),
            (sent(term, 0), code(0), false),
            (sent(term, 0), signal(libc::SIGSEGV), false),
            // A handler ends the program as it likes.
            (sent(term, term), code(7), true),
            (sent(term, term), signal(libc::SIGABRT), true),
            // After the grace.
            (sent(term | bit(libc::SIGKILL), term), signal(libc::SIGKILL), true),
            (sent(bit(libc::SIGKILL), 0), signal(libc::SIGKILL), true),
            (sent(bit(libc::SIGKILL), 0), code(3), false),
            (sent(bit(64), 0), signal(64), true),
        ] {
            assert_eq!(signals.explain(status), explained, "sent {:x}, status {status:x}", signals.sent);
        }
    }

    #[test]
    fn every_signal_has_a_bit_of_its_own() {
        let mut all = 0u64;
        for signal in 1..=64 {
            assert_eq!(all & bit(signal), 0, "{signal}");
            all |= bit(signal);
        }
    }
}
