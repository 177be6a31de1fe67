//! What comes to `toolctl` itself: signals, Ctrl-C, Ctrl-Z, the end of its terminal, the wish to leave.

use super::{Hangup, Request, Role, Session};
use crate::error::{CliError, DONE};
use crate::sys;
use std::ffi::c_int;
use std::io::IsTerminal;
use std::time::Duration;
use toold_proto::api;
use toold_proto::params;

/// How long a process has after the second Ctrl-C before SIGKILL. Short: the person waits, and the
/// first Ctrl-C was its chance to end in peace.
const GRACE_MS: u64 = 1000;

/// What `run` and `attach` hear of. SIGTTIN only so that a read from the background fails instead of stopping us.
pub const SIGNALS: [c_int; 6] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGTSTP, libc::SIGTTIN];
/// And on a terminal of their own also of these.
pub const SCREEN_SIGNALS: [c_int; 7] =
    [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT, libc::SIGTSTP, libc::SIGWINCH, libc::SIGCONT];

impl Session<'_, '_> {
    /// One signal to `toolctl` itself.
    pub(super) fn signalled(&mut self) -> Result<Option<u8>, CliError> {
        let Some(signal) = self.signals.take() else { return Ok(None) };
        match (signal, self.plan.role) {
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

    /// The first Ctrl-C is the process's own to handle, the second ends it.
    pub(super) fn interrupt(&mut self) -> Result<(), CliError> {
        let id = self.id();
        if self.interrupts == 1 {
            let params = params::SignalParams { id, signal: "SIGINT".into() };
            self.ask::<api::Signal>(Request::Signal, &params, Duration::ZERO)
        } else {
            self.message(&format!("killing {id}; Ctrl-C once more leaves without waiting"));
            let params = params::KillParams { id: Some(id), grace_ms: Some(GRACE_MS), ..Default::default() };
            self.ask::<api::Kill>(Request::Kill, &params, Duration::from_millis(GRACE_MS))
        }
    }

    /// Ctrl-Z stops us and not the process. Its output waits in its log until we go on.
    fn stop(&mut self) -> Result<(), CliError> {
        self.cx.console.erase();
        self.restore_terminal();
        sys::stop().map_err(|source| CliError::Io { doing: "stop", source })
    }

    /// Whether the end of our terminal is news.
    pub(super) fn watches_hangup(&self) -> bool {
        let terminal = || std::io::stdout().is_terminal() || std::io::stderr().is_terminal();
        let wanted = self.plan.screen.is_some() || self.plan.hangup == Hangup::Kill;
        wanted && self.cx.console.is_real && self.kill_on_start.is_none() && terminal()
    }

    /// The person is gone, or wants us to be. The process is not ours to end, unless we were told so.
    pub(super) fn hung_up(&mut self, signal: c_int) -> Result<Option<u8>, CliError> {
        self.restore_terminal_below();
        let hangup = match signal {
            libc::SIGHUP | libc::SIGTERM => self.plan.hangup,
            // Only those were named: nothing else ends it.
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
            // It starts now: its id is the next that we hear.
            (Hangup::Kill, None) => {
                self.kill_on_start = Some(signal);
                return Ok(None);
            }
        }
        Ok(Some(128 + signal as u8))
    }

    pub(super) fn detach(&mut self) -> Result<Option<u8>, CliError> {
        self.detach_at = None;
        // What is typed from now on is somebody else's.
        self.plan.input = None;
        if self.cx.json {
            self.events.cancel(Request::Wait);
            return self.wait(Request::FinalPoll, 1).map(|()| None);
        }
        let id = self.id();
        if self.plan.screen.is_some() {
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

    /// Where the process is now, and the way back to it. By its name, if it has one that can be
    /// typed as it is.
    pub(super) fn return_hint(&self, id: &str) -> String {
        let typed = |name: &&str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
        let name = self.plan.exec.name.as_deref().filter(typed);
        let who = name.map_or_else(|| id.to_owned(), |name| format!("{name} ({id})"));
        let way = if self.plan.screen.is_some() { "attach" } else { "log -f" };
        // In 80 columns with our name before it, if the name is short.
        format!("{who} runs on; come back: toolctl {way} {}", name.unwrap_or(id))
    }
}
