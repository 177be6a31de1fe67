//! The description of a process as `docs/protocol.md` defines it, and its parts.

use super::cut;
use super::handle::Proc;
use super::state::{LostCause, Phase, State};
use super::tree;
use crate::clock::mono_ms;
use crate::store::record::Spec;
use crate::store::shim_level;
use std::collections::BTreeMap;
use toold_format::slots::{Cause, Exit};
use toold_format::step;
use toold_proto::params::Status;
use toold_proto::process::{Failure, LimitReport, Process, Reason, Stdin, Watch, WatchState};
use toold_proto::pty::PtySize;
use toold_proto::time::rfc3339;

/// The real-time signals, as the C library numbers them.
const FIRST_REAL_TIME: i32 = 34;
const LAST_SIGNAL: i32 = 64;

/// The failure of a pending process whose environment values were in the memory of a daemon that died.
const ENVIRONMENT_LOST: &str = "environment lost";

/// Returns the name of a signal: `SIGKILL`, `SIGRTMIN+3`.
pub fn signal_name(number: i32) -> String {
    match nix::sys::signal::Signal::try_from(number) {
        Ok(signal) => signal.as_str().to_string(),
        Err(_) if number >= FIRST_REAL_TIME => format!("SIGRTMIN+{}", number - FIRST_REAL_TIME),
        // 32 and 33 belong to the C library and have no name.
        Err(_) => format!("SIG{number}"),
    }
}

/// Returns the number of a signal, given by name, with or without `SIG`, or by number.
pub fn signal_number(name: &str) -> Option<i32> {
    let upper = name.to_ascii_uppercase();
    let short = upper.strip_prefix("SIG").unwrap_or(&upper);
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse::<i32>().ok()).flatten();
    if let Some(number) = digits(short) {
        return (1..=LAST_SIGNAL).contains(&number).then_some(number);
    }
    let real_time = match short {
        "RTMIN" => Some(FIRST_REAL_TIME),
        "RTMAX" => Some(LAST_SIGNAL),
        _ => {
            let above = short.strip_prefix("RTMIN+").and_then(digits).map(|n| FIRST_REAL_TIME.saturating_add(n));
            above.or_else(|| short.strip_prefix("RTMAX-").and_then(digits).map(|n| LAST_SIGNAL.saturating_sub(n)))
        }
    };
    if let Some(number) = real_time {
        return (FIRST_REAL_TIME..=LAST_SIGNAL).contains(&number).then_some(number);
    }
    format!("SIG{short}").parse::<nix::sys::signal::Signal>().ok().map(|s| s as i32)
}

/// Returns the exit code and signal of a wait status: 128+n and the name after death by signal n.
pub fn decode(status: i32) -> (Option<i32>, Option<String>) {
    if libc::WIFSIGNALED(status) {
        let signal = libc::WTERMSIG(status);
        return (Some(128 + signal), Some(signal_name(signal)));
    }
    (libc::WIFEXITED(status).then(|| libc::WEXITSTATUS(status)), None)
}

/// Returns the reason for the end.
fn reason(exit: &Exit) -> Reason {
    match exit.cause {
        _ if exit.oom => Reason::Oom,
        Cause::Client | Cause::SessionEnd | Cause::Shutdown => Reason::Killed,
        Cause::Dependency => Reason::Dependency,
        Cause::Denied => Reason::Denied,
        Cause::Timeout | Cause::Idle => Reason::Timeout,
        Cause::Itself if libc::WIFSIGNALED(exit.wait_status) => Reason::Signaled,
        Cause::Itself => Reason::Exited,
    }
}

fn killed_by(exit: &Exit) -> Option<String> {
    let caller = format!("uid {} pid {}", exit.by_uid, exit.by_pid);
    match exit.cause {
        Cause::Itself | Cause::Dependency => None,
        // The approval has the one who denied it; a kill withdrew it.
        Cause::Denied if exit.by_pid == 0 => None,
        Cause::Client | Cause::Denied => Some(format!("client {caller}")),
        Cause::SessionEnd => Some(format!("session.end by {caller}")),
        Cause::Shutdown => Some(format!("daemon.shutdown by {caller}")),
        Cause::Timeout => Some("timeout_ms".into()),
        // A daemon ends a kernel that is idle, a shim a program that prints nothing.
        Cause::Idle if exit.by_pid != 0 => Some("idle_ms".into()),
        Cause::Idle => Some("limits.idle_ms".into()),
    }
}

/// Describes a failed start.
pub fn failure(spec: &Spec, failed: u32, errno: i32) -> Failure {
    let path = match failed {
        step::CHDIR => spec.cwd.clone(),
        step::PTY => "/dev/ptmx".into(),
        step::CGROUP => spec.cgroups.first().map(|p| p.display().to_string()).unwrap_or_default(),
        // Every other step concerns the program.
        _ => spec.program.clone(),
    };
    let step = step::name(failed);
    if failed == step::ENVIRONMENT {
        let message = "its environment values were in the memory of a daemon that ended before its turn came";
        let (step, error, message) = (step.into(), ENVIRONMENT_LOST.into(), Some(message.into()));
        return Failure { step, errno, error, path, message };
    }
    let message = format!("{step} {path}: {}", std::io::Error::from_raw_os_error(errno));
    failure_of(step, errno, path, message)
}

fn failure_of(step: &str, errno: i32, path: String, message: String) -> Failure {
    let error = format!("{:?}", nix::errno::Errno::from_raw(errno));
    Failure { step: step.into(), errno, error, path, message: Some(message) }
}

/// Describes the reason why an end was not observed.
fn lost(spec: &Spec, state: &State, cause: LostCause, exit_is_known: bool) -> Failure {
    // The shim died before it reported the start.
    let is_unstarted = state.pid == 0 && state.progress.counts.end == 0;
    let (step, errno, message) = match cause {
        LostCause::Rebooted => ("reboot", libc::ESHUTDOWN, "the machine was rebooted, or lost power, while it ran"),
        LostCause::RecordDamaged => ("record", libc::EUCLEAN, "its record was damaged, so its end is not known"),
        LostCause::ShimDied | LostCause::Unrecorded if is_unstarted => {
            let message = "its shim died before it reported the start; whether the program ran is not known";
            (step::name(step::LAUNCH), libc::EOWNERDEAD, message)
        }
        LostCause::ShimDied if exit_is_known => {
            ("shim", libc::EOWNERDEAD, "its shim died and its tree was killed; the exit code is the kernel's")
        }
        LostCause::ShimDied => ("shim", libc::EOWNERDEAD, "its shim died, so its end was not observed"),
        LostCause::Unrecorded => {
            ("unknown", libc::ENODATA, "its end was not observed; an earlier version of toold did not record why")
        }
    };
    failure_of(step, errno, spec.program.clone(), message.into())
}

fn stdin(spec: &Spec, state: &State) -> Stdin {
    if spec.pty.is_some() {
        return if state.has_ended() { Stdin::Closed } else { Stdin::Pty };
    }
    match (spec.stdin_pipe, state.progress.stdin_closed || state.has_ended()) {
        (false, _) => Stdin::Null,
        (true, false) => Stdin::Pipe,
        (true, true) => Stdin::Closed,
    }
}

/// Returns true if the program is stopped. A shim of an earlier version does not report that: /proc shows it.
pub fn is_stopped(spec: &Spec, state: &State) -> bool {
    match (state.phase, shim_level::reports_stops(spec.shim_level)) {
        (Phase::Running, true) => state.progress.stopped,
        (Phase::Running, false) => tree::is_stopped(state.pid, state.ticks),
        (Phase::Pending | Phase::Starting | Phase::Exited { .. } | Phase::Failed { .. } | Phase::Lost { .. }, _) => {
            false
        }
    }
}

/// Returns the report on each limit, with the kernel's kills for memory.
fn limits(spec: &Spec, state: &State) -> BTreeMap<String, LimitReport> {
    let mut limits = spec.limits.clone();
    if let Phase::Exited { exit, .. } = state.phase
        && exit.oom_kills > 0
        && let Some(memory) = limits.get_mut("memory_bytes")
    {
        memory.oom_kills = Some(exit.oom_kills);
    }
    limits
}

/// The outcome of a process: exit code, signal, core dump, reason, killer, failure.
#[derive(Default)]
pub struct Outcome {
    pub exit_code: Option<i32>,
    pub signal: Option<String>,
    pub core_dumped: bool,
    pub reason: Option<Reason>,
    pub killed_by: Option<String>,
    pub failure: Option<Failure>,
}

pub fn outcome(spec: &Spec, state: &State) -> Outcome {
    match state.phase {
        Phase::Pending | Phase::Starting | Phase::Running => Outcome::default(),
        Phase::Exited { exit, .. } => {
            let (exit_code, signal) = decode(exit.wait_status);
            let core_dumped = libc::WIFSIGNALED(exit.wait_status) && libc::WCOREDUMP(exit.wait_status);
            let (reason, killed_by) = (Some(reason(&exit)), killed_by(&exit));
            Outcome { exit_code, signal, core_dumped, reason, killed_by, failure: None }
        }
        Phase::Failed { step, errno, .. } => Outcome {
            reason: Some(Reason::FailedStart),
            failure: Some(failure(spec, step, errno)),
            ..Outcome::default()
        },
        Phase::Lost { wait_status, cause, .. } => {
            let (exit_code, signal) = wait_status.map_or((None, None), decode);
            let failure = Some(lost(spec, state, cause, wait_status.is_some()));
            Outcome { exit_code, signal, reason: Some(Reason::Lost), failure, ..Outcome::default() }
        }
    }
}

impl State {
    pub fn status(&self) -> Status {
        match self.phase {
            Phase::Pending => Status::Pending,
            Phase::Starting => Status::Starting,
            Phase::Running => Status::Running,
            Phase::Exited { .. } | Phase::Failed { .. } => Status::Exited,
            Phase::Lost { .. } => Status::Lost,
        }
    }
}

/// Returns the number of processes that the program left behind.
fn descendants(state: &State) -> u64 {
    match state.phase {
        Phase::Exited { gone: false, .. } if state.shim_pid > 0 => tree::count_below(state.shim_pid),
        // The program runs, or nothing is left of it, or its shim died and nothing is known.
        _ => 0,
    }
}

impl Proc {
    /// Returns the present size of the terminal. None without a terminal.
    pub fn terminal_size(&self, state: &State) -> Option<PtySize> {
        self.spec.pty.map(|first| match (state.progress.rows, state.progress.cols) {
            (0, 0) => first,
            (rows, cols) => PtySize { rows: rows.into(), cols: cols.into() },
        })
    }

    /// Returns the present stdin.
    pub fn stdin(&self) -> Stdin {
        stdin(&self.spec, &self.state())
    }

    fn watch_view(&self, state: &State) -> Option<Watch> {
        self.watch_task.as_ref()?;
        let (limiter, now, rules) = (self.checkpoint().limiter, mono_ms(), &self.sink.watch_gate.limiter);
        let breaker = self.sink.watch_gate.breaker_view();
        let cooldown = limiter.quiet_until.saturating_sub(now).min(rules.min_interval_ms);
        let release = breaker.release_ms.unwrap_or(0);
        let (watch, quiet_ms) = match () {
            () if limiter.disabled => (WatchState::Disabled, 0),
            () if state.has_ended() && self.is_scanned(state) => (WatchState::Ended, 0),
            () if breaker.release_ms.is_some() => (WatchState::Silent, release.max(cooldown)),
            () if cooldown > 0 => (WatchState::Cooldown, cooldown),
            () => (WatchState::Watching, 0),
        };
        let note = match watch {
            WatchState::Watching | WatchState::Ended if self.checkpoint().unscanned_bytes > 0 => {
                Some(format!("{} bytes were dropped before they could be scanned", self.checkpoint().unscanned_bytes))
            }
            WatchState::Watching | WatchState::Ended => None,
            WatchState::Cooldown => Some(format!(
                "a match was published; the next one can be in {quiet_ms} ms; lines suppressed since: {}",
                limiter.pending
            )),
            WatchState::Silent => Some(format!("too many matches over all processes; they resume in {release} ms")),
            WatchState::Disabled => Some(format!(
                "too many matches in {} intervals in a row; the watch ended and `notify` is on",
                limiter.strikes
            )),
        };
        Some(Watch {
            patterns: self.spec.watch.clone(),
            hits: limiter.hits,
            suppressed: limiter.suppressed,
            disabled: limiter.disabled,
            state: watch,
            strikes: limiter.strikes,
            quiet_ms,
            unseen_bytes: self.checkpoint().unscanned_bytes,
            note,
        })
    }

    /// Describes the process as it is now.
    pub fn view(&self, now_ms: u64) -> Process {
        let state = self.state();
        self.view_of(&state, now_ms)
    }

    /// Describes the process in `state`, with values of at most `SINGLE` bytes.
    pub fn view_of(&self, state: &State, now_ms: u64) -> Process {
        let mut view = self.whole_view(state, now_ms);
        cut::cut(&mut view, cut::SINGLE);
        view
    }

    /// Describes the process in `state` as one of many.
    pub fn listed_view(&self, state: &State, now_ms: u64) -> Process {
        let mut view = self.whole_view(state, now_ms);
        cut::cut(&mut view, cut::LISTED);
        view
    }

    fn whole_view(&self, state: &State, now_ms: u64) -> Process {
        let spec = &self.spec;
        let Outcome { exit_code, signal, core_dumped, reason, killed_by, failure } = outcome(spec, state);
        let counts = state.progress.counts;
        let ended = state.ended_ms();
        Process {
            id: spec.id,
            name: spec.name.clone(),
            command: spec.command.clone(),
            argv: spec.argv.clone(),
            cwd: spec.cwd.clone(),
            backend: spec.backend.to_string(),
            pid: (state.pid > 0).then_some(state.pid),
            status: state.status(),
            stopped: is_stopped(spec, state),
            pending_on: self.pending_on(state),
            closed: state.closed,
            exit_code,
            signal,
            core_dumped,
            reason,
            killed_by,
            failure,
            started_at: rfc3339(self.started_ms()),
            exited_at: ended.map(rfc3339),
            uptime_ms: self.uptime_ms(state, now_ms),
            pty: spec.pty.is_some(),
            pty_size: self.terminal_size(state),
            stdin: stdin(spec, state),
            needs_input: self.input_wait(state),
            descendants: descendants(state),
            task_id: spec.task_id.clone(),
            session_key: spec.session_key.clone(),
            started_by: spec.started_by.clone(),
            labels: spec.labels.clone(),
            notify: self.notify(),
            watch: self.watch_view(state),
            bytes: counts.end,
            lines: counts.lines_of(None),
            cursor: counts.end,
            held_back: self.can_hold().then(|| state.is_held_back()),
            dropped_bytes: counts.dropped,
            unstored_bytes: counts.unstored,
            limits: limits(spec, state),
            sandbox: self.sandbox_view(),
            stage: self.stage_view(state),
            script: self.script_view(),
            kernel: self.kernel_view(),
            detached: state.detached.then_some(true),
            unreachable: if state.detached { self.unreachable() } else { None },
            request_id: spec.request_id.clone(),
            restart_of: spec.restart.as_ref().and_then(|restart| restart.of),
            approval: spec.policy.as_ref().and_then(|policy| policy.approval),
            retry_of: spec.policy.as_ref().and_then(|policy| policy.retry_of),
            retry: self.retry(),
            patch: spec.patch.clone(),
            damaged: Some(self.damage()).filter(|damage| !damage.is_empty()),
            cut: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_signal_has_a_name_that_is_its_number_again() {
        for number in 1..=64 {
            let name = signal_name(number);
            assert_eq!(signal_number(&name), Some(number), "{name}");
            assert_eq!(signal_number(&name.to_ascii_lowercase()["sig".len()..]), Some(number), "{name}");
            assert_eq!(signal_number(&number.to_string()), Some(number));
        }
        assert_eq!(
            (signal_number("RTMAX"), signal_number("SIGRTMAX-30"), signal_name(33)),
            (Some(64), Some(34), "SIG33".into())
        );
        for wrong in [
            "",
            "SIG",
            "0",
            "65",
            "-1",
            "+9",
            "SIGRTMIN+31",
            "RTMIN+",
            "RTMIN-1",
            "RTMAX-31",
            "RTMAX-99999999999",
            "TERMX",
        ] {
            assert_eq!(signal_number(wrong), None, "{wrong}");
        }
    }
}
