//! The state of a process and its transitions. Pure: no clock, no files.

use crate::store::record::Facts;
use toold_format::slots::{Cause, Exit, Launch, Progress, Stage};
use toold_format::step;

/// The phase of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// It waits for its turn: nothing is launched.
    Pending,
    Starting,
    Running,
    /// `gone`: nothing of its tree is left, and its output is closed.
    Exited {
        exit: Exit,
        gone: bool,
    },
    /// The program never ran.
    Failed {
        step: u32,
        errno: i32,
        at_ms: u64,
    },
    /// The end was not observed. `wait_status` is the program's, if the kernel still knew it.
    Lost {
        at_ms: u64,
        wait_status: Option<i32>,
        cause: LostCause,
    },
}

/// The reason why an end was not observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LostCause {
    /// The daemon that found it was of an earlier version, which recorded no reason.
    Unrecorded,
    ShimDied,
    Rebooted,
    /// The part of the record that held the end cannot be read.
    RecordDamaged,
}

impl LostCause {
    /// Returns the bits of a launch slot's step that stand for it.
    pub fn bits(self) -> u32 {
        let number = match self {
            LostCause::Unrecorded => 0,
            LostCause::ShimDied => 1,
            LostCause::Rebooted => 2,
            LostCause::RecordDamaged => 3,
        };
        number << LOST_CAUSE_SHIFT
    }

    /// Returns the cause in a launch slot. None: the process is not lost.
    pub fn of(launch: &Launch) -> Option<LostCause> {
        (launch.stage == Stage::Lost).then(|| LostCause::from_bits(launch.step))
    }

    fn from_bits(step: u32) -> LostCause {
        match step >> LOST_CAUSE_SHIFT & 3 {
            1 => LostCause::ShimDied,
            2 => LostCause::Rebooted,
            3 => LostCause::RecordDamaged,
            _ => LostCause::Unrecorded,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct State {
    pub phase: Phase,
    pub pid: i32,
    pub shim_pid: i32,
    /// Start time of `pid`: both together identify the program.
    pub ticks: u64,
    pub progress: Progress,
    pub closed: bool,
    /// The shim lives but does not answer.
    pub detached: bool,
    /// The shim died, and processes of its tree that left the session could not be looked for.
    pub tree_unknown: bool,
    /// It waits for an approval, before it waits for its turn.
    pub asking: bool,
}

/// A change that the shim, the record or the task reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Update {
    /// Its approval was given: it waits for its turn.
    Approved,
    /// Its turn has come.
    Launching,
    /// It ended while it waited for its turn.
    Canceled(Exit),
    Started {
        pid: i32,
        shim_pid: i32,
        ticks: u64,
    },
    Failed {
        step: u32,
        errno: i32,
        at_ms: u64,
    },
    Output(Progress),
    Exited {
        exit: Exit,
        progress: Progress,
    },
    Closed(Progress),
    Gone,
    Adopted {
        shim_pid: i32,
        pid: i32,
        progress: Progress,
        exit: Option<Exit>,
        closed: bool,
    },
    Unreachable,
    TreeUnknown,
    Lost {
        at_ms: u64,
        wait_status: Option<i32>,
        cause: LostCause,
        progress: Progress,
    },
}

impl State {
    pub fn new(progress: Progress) -> State {
        State {
            phase: Phase::Starting,
            pid: 0,
            shim_pid: 0,
            ticks: 0,
            progress,
            closed: false,
            detached: false,
            tree_unknown: false,
            asking: false,
        }
    }

    /// Returns the state of a process that waits for its turn. `asking`: and before that for an approval.
    pub fn pending(progress: Progress, asking: bool) -> State {
        State { phase: Phase::Pending, asking, ..State::new(progress) }
    }

    /// Returns the state that a record describes.
    pub fn from_facts(facts: &Facts) -> State {
        let mut state = State::new(facts.progress.unwrap_or_default());
        let Some(launch) = facts.launch else {
            // With a damaged launch slot the end is still known.
            if let Some(exit) = facts.exit {
                state.phase = Phase::Exited { exit, gone: false };
                state.closed = facts.closed_ms.is_some();
            }
            return state;
        };
        state.pid = launch.pid;
        state.shim_pid = launch.shim_pid;
        state.ticks = if launch.pid > 0 { launch.ticks } else { 0 };
        state.closed = facts.closed_ms.is_some();
        let Launch { stage, step, errno, at_ms, .. } = launch;
        state.tree_unknown = stage == Stage::Lost && step & LOST_TREE_UNKNOWN != 0;
        state.phase = match (stage, facts.exit) {
            (Stage::Failed, _) if step == step::PENDING => Phase::Exited { exit: canceled_exit(&launch), gone: true },
            (Stage::Failed, _) => Phase::Failed { step, errno, at_ms },
            (_, Some(exit)) => Phase::Exited { exit, gone: false },
            (Stage::Lost, None) => {
                let wait_status = (step & LOST_WITH_STATUS != 0).then_some(errno);
                Phase::Lost { at_ms, wait_status, cause: LostCause::from_bits(step) }
            }
            (Stage::Launching, None) => Phase::Starting,
            (Stage::Running, None) => Phase::Running,
        };
        if state.is_final() {
            state.closed = true;
        }
        state
    }

    /// Returns true if the program does not run any more, or never did.
    pub fn has_ended(&self) -> bool {
        !matches!(self.phase, Phase::Pending | Phase::Starting | Phase::Running)
    }

    /// Returns true if output of the program waits until its reader has read.
    pub fn is_held_back(&self) -> bool {
        self.progress.held_back && !self.closed
    }

    /// Returns true if a kill came before the program was started: it never ran.
    pub fn is_canceled(&self) -> bool {
        matches!(self.phase, Phase::Failed { step: step::LAUNCH, errno: libc::ECANCELED, .. })
    }

    /// Returns true if the state never changes again.
    pub fn is_final(&self) -> bool {
        match self.phase {
            Phase::Pending | Phase::Starting | Phase::Running => false,
            Phase::Exited { gone, .. } => gone,
            Phase::Failed { .. } | Phase::Lost { .. } => true,
        }
    }

    /// Returns the end of the program in milliseconds since 1970.
    pub fn ended_ms(&self) -> Option<u64> {
        match self.phase {
            Phase::Pending | Phase::Starting | Phase::Running => None,
            Phase::Exited { exit, .. } => Some(exit.at_ms),
            Phase::Failed { at_ms, .. } | Phase::Lost { at_ms, .. } => Some(at_ms),
        }
    }

    /// Applies an update. Returns true if the state changed.
    pub fn step(&mut self, update: &Update) -> bool {
        let before = *self;
        match (*update).clone() {
            Update::Started { pid, shim_pid, ticks } => {
                if self.phase == Phase::Starting {
                    self.phase = Phase::Running;
                }
                self.pid = pid;
                self.shim_pid = shim_pid;
                self.ticks = ticks;
                self.detached = false;
            }
            Update::Approved => self.asking = false,
            Update::Launching => {
                if self.phase == Phase::Pending {
                    self.phase = Phase::Starting;
                    self.asking = false;
                }
            }
            Update::Canceled(exit) => {
                if self.phase == Phase::Pending {
                    self.phase = Phase::Exited { exit, gone: true };
                    self.asking = false;
                    self.closed = true;
                }
            }
            Update::Failed { step, errno, at_ms } => {
                if matches!(self.phase, Phase::Pending | Phase::Starting) {
                    self.phase = Phase::Failed { step, errno, at_ms };
                    self.asking = false;
                    self.closed = true;
                }
            }
            Update::Output(progress) => {
                self.advance(progress);
                self.detached = false;
            }
            Update::Exited { exit, progress } => {
                if !self.has_ended() {
                    self.phase = Phase::Exited { exit, gone: false };
                }
                self.advance(progress);
                // The shim reports a close that it saw with the exit in the same update.
                self.closed |= progress.closed;
                self.detached = false;
            }
            Update::Closed(progress) => {
                self.advance(progress);
                self.closed = true;
                self.detached = false;
            }
            Update::Gone => {
                if let Phase::Exited { exit, .. } = self.phase {
                    self.phase = Phase::Exited { exit, gone: true };
                    self.closed = true;
                }
            }
            Update::Adopted { shim_pid, pid, progress, exit, closed } => {
                self.shim_pid = shim_pid;
                self.pid = pid;
                self.detached = false;
                if self.phase == Phase::Starting {
                    self.phase = Phase::Running;
                }
                if let (Some(exit), false) = (exit, self.has_ended()) {
                    self.phase = Phase::Exited { exit, gone: false };
                }
                self.advance(progress);
                self.closed |= closed;
            }
            Update::Unreachable => self.detached = !self.is_final(),
            Update::TreeUnknown => self.tree_unknown = true,
            Update::Lost { at_ms, wait_status, cause, progress } => {
                if !self.has_ended() {
                    self.phase = Phase::Lost { at_ms, wait_status, cause };
                }
                if let Phase::Exited { exit, .. } = self.phase {
                    self.phase = Phase::Exited { exit, gone: true };
                }
                self.advance(progress);
                self.closed = true;
                self.detached = false;
            }
        }
        *self != before
    }

    /// Ignores late and repeated counts.
    fn advance(&mut self, progress: Progress) {
        if progress.counts.end >= self.progress.counts.end {
            self.progress = progress;
        }
    }
}

/// The wait status of a program that never ran: neither an exit nor a signal.
pub const NO_WAIT_STATUS: i32 = 0x7f;

/// Returns the launch slot of a process that ended while it waited for its turn. One slot has all of it, and a shim that
/// comes too late finds the launch over.
pub fn canceled_launch(exit: &Exit) -> Launch {
    let by = u64::from(exit.by_uid) << 32 | u64::from(exit.by_pid as u32);
    let (step, errno, at_ms) = (step::PENDING, exit.cause.code() as i32, exit.at_ms);
    Launch { stage: Stage::Failed, shim_pid: 0, pid: 0, ticks: by, step, errno, at_ms, stdin_inode: 0 }
}

/// Returns the end that `canceled_launch` encoded.
fn canceled_exit(launch: &Launch) -> Exit {
    let (cause, by) = (Cause::from_code(launch.errno as u32), launch.ticks);
    Exit { by_uid: (by >> 32) as u32, by_pid: by as u32 as i32, ..never_ran(cause, launch.at_ms) }
}

/// Returns the end of a process that never ran.
pub fn never_ran(cause: Cause, at_ms: u64) -> Exit {
    Exit {
        wait_status: NO_WAIT_STATUS,
        cause,
        oom: false,
        by_uid: 0,
        by_pid: 0,
        at_ms,
        end: 0,
        cpu_us: 0,
        max_rss_kib: 0,
        oom_kills: 0,
    }
}

/// In a launch slot with stage `Lost`, this bit of the step means that `errno` holds the wait status.
pub const LOST_WITH_STATUS: u32 = 1;
/// And this one that processes of the tree may be left.
pub const LOST_TREE_UNKNOWN: u32 = 2;
/// Two bits from here on are the cause. Earlier versions wrote zeros, and ignore them.
const LOST_CAUSE_SHIFT: u32 = 2;

#[cfg(test)]
pub mod tests {
    use super::*;
    use toold_format::log::Counts;
    use toold_format::slots::Cause;

    fn progress(end: u64) -> Progress {
        Progress { counts: Counts { end, ..Counts::default() }, ..Progress::default() }
    }

    /// An exit with this wait status, for tests here and of other modules.
    pub fn exit(status: i32) -> Exit {
        Exit {
            wait_status: status,
            cause: Cause::Itself,
            oom: false,
            by_uid: 0,
            by_pid: 0,
            at_ms: 5,
            end: 0,
            cpu_us: 0,
            max_rss_kib: 0,
            oom_kills: 0,
        }
    }

    #[test]
    fn exited_and_closed_are_different_facts_in_either_order() {
        let mut state = State::new(progress(0));
        state.step(&Update::Started { pid: 7, shim_pid: 6, ticks: 1 });
        state.step(&Update::Exited { exit: exit(0), progress: progress(3) });
        assert!(state.has_ended() && !state.closed && !state.is_final());
        state.step(&Update::Closed(progress(9)));
        assert!(state.closed && !state.is_final());
        state.step(&Update::Gone);
        assert!(state.is_final() && state.progress == progress(9));
    }

    #[test]
    fn the_end_of_a_pending_process_reads_back_from_its_launch_slot() {
        for cause in [Cause::Client, Cause::SessionEnd, Cause::Shutdown, Cause::Dependency, Cause::Denied] {
            let end = Exit { by_uid: u32::MAX, by_pid: 77, ..never_ran(cause, 9) };
            assert_eq!(canceled_exit(&canceled_launch(&end)), end);
        }
    }

    #[test]
    fn only_a_process_that_still_waits_is_canceled() {
        let mut state = State::pending(progress(0), true);
        assert!(!state.has_ended() && !state.is_final() && state.asking);
        let end = Update::Canceled(never_ran(Cause::Client, 9));
        let mut canceled = state;
        assert!(canceled.step(&end) && canceled.is_final() && canceled.closed && !canceled.asking);
        assert!(state.step(&Update::Approved) && state.phase == Phase::Pending && !state.asking);
        assert!(state.step(&Update::Launching) && state.phase == Phase::Starting);
        assert!(!state.step(&end), "its turn had come");
    }

    #[test]
    fn late_and_repeated_news_never_takes_anything_back() {
        let mut state = State::new(progress(0));
        state.step(&Update::Started { pid: 7, shim_pid: 6, ticks: 1 });
        state.step(&Update::Exited { exit: exit(256), progress: progress(3) });
        state.step(&Update::Gone);
        let end = state;
        for late in [
            Update::Output(progress(1)),
            Update::Exited { exit: exit(9), progress: progress(2) },
            Update::Failed { step: 1, errno: 2, at_ms: 3 },
            Update::Lost { at_ms: 9, wait_status: Some(9), cause: LostCause::ShimDied, progress: progress(3) },
            Update::Unreachable,
            Update::Gone,
        ] {
            assert!(!state.step(&late), "{late:?}");
            assert_eq!(state, end, "{late:?}");
        }
    }
}
