//! Events for `toolctl` itself: signals, Ctrl-C, Ctrl-Z, the end of its terminal, detaching.

use super::{Hangup, Request, Role, Session};
use crate::blocking::parse;
use crate::error::{CliError, DONE};
use crate::render::poll::summary;
use crate::sys;
use std::ffi::c_int;
use std::io::IsTerminal;
use std::time::Duration;
use toold_proto::api;
use toold_proto::params;
use toold_proto::process::Process;

/// The time that a process has after the second Ctrl-C before SIGKILL. Short: the user waits, and the first Ctrl-C was
/// its chance to end cleanly.
const GRACE_MS: u64 = 1000;
/// The time that a process has to end after output that cannot be printed, before it is reported to run on.
const END_WAIT_MS: i64 = 1000;

/// The signals that `run` and `attach` catch. SIGTTIN only so that a read from the background fails instead of stopping us.
pub const SIGNALS: [c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGTSTP, libc::SIGTTIN];
/// The signals that they catch on a terminal.
pub const SCREEN_SIGNALS: [c_int; 7] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGTSTP, libc::SIGWINCH, libc::SIGCONT];

impl Session<'_, '_> {
    /// Handles one signal to `toolctl` itself.
    pub(super) fn signalled(&mut self) -> Result<Option<u8>, CliError> {
        let Some(signal) = self.signals.take() else { return Ok(None) };
        match (signal, self.options.role) {
            (libc::SIGWINCH, _) => self.resize().and_then(|()| self.fit()),
            (libc::SIGTSTP, _) => self.stop().map(|()| None),
            (libc::SIGTTIN, _) => Ok(None),
            (libc::SIGCONT, _) => self.resume_terminal().map(|()| None),
            (libc::SIGINT, Role::Owner) => self.interrupted(),
            (signal, _) => self.hung_up(signal),
        }
    }

    fn interrupted(&mut self) -> Result<Option<u8>, CliError> {
        self.interrupts += 1;
        match (self.interrupts, &self.process) {
            // Nothing to interrupt yet; a second one means that the daemon takes too long.
            (1, None) => Ok(None),
            (1 | 2, Some(_)) => self.interrupt().map(|()| None),
            (_, None) | (3.., Some(_)) => Ok(Some(128 + libc::SIGINT as u8)),
            (0, Some(_)) => Ok(None),
        }
    }

    /// Sends the first Ctrl-C to the process, or cancels the script; the second kills it.
    pub(super) fn interrupt(&mut self) -> Result<(), CliError> {
        let id = self.id();
        if self.interrupts == 1 && self.options.script.is_some() {
            self.cancel_script()
        } else if self.interrupts == 1 {
            let params = params::SignalParams { id, signal: "SIGINT".into() };
            self.ask::<api::Signal>(Request::Signal, &params, Duration::ZERO)
        } else {
            self.message(&format!("killing {id}; Ctrl-C once more leaves without waiting"));
            let params = params::KillParams { id: Some(id), grace_ms: Some(GRACE_MS), ..Default::default() };
            self.ask::<api::Kill>(Request::Kill, &params, Duration::from_millis(GRACE_MS))
        }
    }

    /// Stops us on Ctrl-Z, and not the process. Its output waits in its log until we continue.
    fn stop(&mut self) -> Result<(), CliError> {
        self.cx.console.erase();
        self.restore_terminal();
        sys::stop().map_err(|source| CliError::Io { doing: "stop", source })
    }

    /// Reports whether the end of our terminal must be noticed.
    pub(super) fn watches_hangup(&self) -> bool {
        let terminal = || std::io::stdout().is_terminal() || std::io::stderr().is_terminal();
        let wanted = self.options.screen.is_some() || self.options.hangup == Hangup::Kill;
        wanted && self.cx.console.is_real && self.kill_on_start.is_none() && terminal()
    }

    /// Leaves because the user did, or asked us to. The process is killed only if that was requested.
    pub(super) fn hung_up(&mut self, signal: c_int) -> Result<Option<u8>, CliError> {
        self.restore_terminal_below();
        let hangup = match signal {
            libc::SIGHUP | libc::SIGTERM => self.options.hangup,
            // Only these two were named: no other signal kills it.
            _ => Hangup::RunsOn,
        };
        match (hangup, &self.process) {
            (Hangup::RunsOn, Some(id)) => {
                let line = self.return_hint(id);
                self.cx.console.message(&line);
            }
            (Hangup::RunsOn, None) => self.cx.console.message("left before the process had an id; see toolctl list"),
            (Hangup::Kill, Some(id)) => {
                let id = id.clone();
                let kill = params::KillParams { id: Some(id.clone()), ..Default::default() };
                self.cx.connection.call_raw_with_retry::<api::Kill>(|_| kill.clone())?;
                self.cx.console.message(&format!("killed {id}"));
            }
            // It is starting: its id comes with the next answer.
            (Hangup::Kill, None) => {
                self.kill_on_start = Some(signal);
                return Ok(None);
            }
        }
        Ok(Some(128 + signal as u8))
    }

    /// Handles a reader of our output that is gone. A program on a pipe of its own would get SIGPIPE now, so this one
    /// does.
    pub(super) fn reader_left(&mut self) -> Result<Option<u8>, CliError> {
        let params = params::SignalParams { id: self.id(), signal: "SIGPIPE".into() };
        // It may have ended already, and we exit in any case.
        let _ = self.cx.connection.call_raw::<api::Signal>(&params);
        Ok(Some(128 + libc::SIGPIPE as u8))
    }

    pub(super) fn detach(&mut self) -> Result<Option<u8>, CliError> {
        self.detach_at = None;
        // Keys from now on are for other programs.
        self.options.input = None;
        if self.cx.json {
            self.events.cancel(Request::Wait);
            return self.wait(Request::FinalPoll, 1).map(|()| None);
        }
        let id = self.id();
        if self.options.screen.is_some() {
            self.restore_terminal_below();
            let line = self.return_hint(&id);
            self.cx.console.message(&line);
        } else if self.cx.console.style.terminal() {
            let line = self.return_hint(&id);
            self.cx.console.print(&format!("{line}\n"))?;
        } else {
            self.cx.console.print(&format!("{id}\n"))?;
        }
        Ok(Some(DONE))
    }

    /// Returns what became of the process whose output cannot be printed, and the command that shows it.
    pub(super) fn left_hint(&mut self, known: &Process) -> String {
        let id = self.id();
        let params = params::WaitParams { id: Some(id.clone()), timeout_ms: Some(END_WAIT_MS), ..Default::default() };
        // It may end right behind its output, and then it does not run on.
        let waited = known.reason.is_none().then(|| self.cx.connection.call_raw::<api::Wait>(&params).ok()).flatten();
        let waited = waited.and_then(|raw| parse::<api::Wait>(&raw).ok()?.processes.pop());
        let process = waited.map_or_else(|| known.clone(), |waited| waited.process);
        if process.reason.is_none() {
            return self.return_hint(&id);
        }
        format!("{}; its output is kept: toolctl log {id}", summary(&process))
    }

    /// Returns where the process is now, and the command to return to it. By its name, if that can be typed without
    /// quotes.
    pub(super) fn return_hint(&self, id: &str) -> String {
        let typed = |name: &&str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        let name = self.options.exec.name.as_deref().filter(typed);
        let who = name.map_or_else(|| id.to_owned(), |name| format!("{name} ({id})"));
        let way = if self.options.screen.is_some() { "attach" } else { "log -f" };
        // It fits 80 columns with our prefix, if the name is short.
        format!("{who} is still running: toolctl {way} {}", name.unwrap_or(id))
    }
}
