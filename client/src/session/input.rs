//! Our stdin on its way to the process.

use super::{Request, Session};
use crate::blocking::parse;
use crate::cmd::options::exec::random_id;
use crate::cmd::wait::has_ended;
use crate::error::CliError;
use crate::error_text;
use crate::event_loop::{Incoming, Sources};
use crate::sys;
use crate::terminal::keys::Typed;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::value::RawValue;
use std::io::{self, IsTerminal, Read};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use toold_proto::api;
use toold_proto::params;
use toold_proto::{ErrorKind, RpcError};

/// How much of our stdin goes into one `write`. With its base64 it fits a socket's buffer, so
/// sending it never waits for a daemon that waits for us.
const INPUT: usize = 32 * 1024;
/// Keys that wait for a process that does not read. They are taken so that the key to leave is
/// seen; more than this is no typing, and waits in the terminal.
const TYPED: usize = 1024 * 1024;
/// A line at our terminal that is for somebody else is looked at again after so long: it may be ours
/// by then.
const GLANCE: Duration = Duration::from_millis(250);
/// A program whose input broke with a line on its way may be about to end: so long it is waited for that.
const ENDING: Duration = Duration::from_millis(100);
/// So much of a line that nobody read is said.
const SAID: usize = 200;
/// Who leaves waits so long for the last keys to be written.
const LAST_KEYS: Duration = Duration::from_secs(1);

impl Session<'_, '_> {
    /// Whether what our stdin has can be taken now.
    pub(super) fn reads_input(&self) -> bool {
        let room = match &self.plan.screen {
            Some(_) => self.typed.len() < TYPED && !self.leaving,
            None => {
                let asked = self.is_pending(Request::Close) || self.is_pending(Request::CheckStdin);
                self.sending.is_empty() && !asked && self.stdin_backoff.is_none()
            }
        };
        // What comes after the program's end is for whoever comes after us.
        self.process.is_some() && room && !self.progress.ended()
    }

    /// Whether we only share our stdin: lines of a terminal on which others read too.
    pub(super) fn shares_input(&self) -> bool {
        self.plan.screen.is_none() && self.plan.input.as_ref().is_some_and(|input| input.is_terminal())
    }

    /// Leaves a line to somebody else for a while.
    fn leave_input(&mut self) {
        self.stdin_backoff = Some(Instant::now() + GLANCE);
    }

    /// Sends on what our stdin has. A line of a terminal is the shell's once nobody can read it here, and what is read cannot be
    /// given back: so that is asked first, by a write of nothing.
    pub(super) fn forward(&mut self) -> Result<Option<u8>, CliError> {
        if !self.shares_input() {
            return self.take();
        }
        // The end of what was typed has brought the cursor into a line of ours.
        self.cx.console.erase();
        let params = params::WriteParams { id: self.id(), data: Some(String::new()), ..Default::default() };
        self.ask::<api::Write>(Request::CheckStdin, &params, crate::cmd::write::WAIT).map(|()| None)
    }

    /// Nobody reads it, so the line stays where it is.
    pub(super) fn unreadable(&mut self, error: &RpcError) {
        match error.kind() {
            Some(ErrorKind::AlreadyExited | ErrorKind::StdinUnavailable) => self.plan.input = None,
            _ => {
                self.message(&error_text::describe(error));
                self.leave_input();
            }
        }
    }

    /// What became of a line that was on its way when the program ended.
    pub(super) fn finish_write(&mut self) -> Result<(), CliError> {
        let until = Instant::now() + ENDING;
        while self.shares_input() && self.is_pending(Request::Write) {
            if let Some(incoming) = self.events.next(&mut self.cx.connection)? {
                if let Incoming::Answer(request, outcome) = incoming {
                    self.answered(request, outcome)?;
                }
                continue;
            }
            let wake = self.events.wait(&mut self.cx.connection, Sources::default(), Some(until))?;
            if wake.is_timeout() || wake.lost.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// A line that was refused is in our hands, and in nobody else's. Should the program have ended, that is told.
    pub(super) fn keep_unread(&mut self) -> Result<(), CliError> {
        let Some(input) = self.plan.input.as_ref().filter(|_| self.shares_input()) else { return Ok(()) };
        if self.sending.is_empty() || !sys::has_echo(input.as_fd()) {
            return Ok(());
        }
        self.unread.clone_from(&self.sending);
        let timeout_ms = Some(ENDING.as_millis() as i64);
        let params = params::WaitParams { id: Some(self.id()), timeout_ms, ..Default::default() };
        self.ask::<api::Wait>(Request::CheckExit, &params, ENDING)
    }

    /// The program runs on without its stdin, and what was typed is nothing to it.
    pub(super) fn check_unread(&mut self, result: &RawValue) -> Result<(), CliError> {
        if !parse::<api::Wait>(result)?.processes.iter().any(|waited| has_ended(&waited.process)) {
            self.unread.clear();
        }
        Ok(())
    }

    pub(super) fn say_unread(&mut self) {
        let unread = std::mem::take(&mut self.unread);
        let line: String = String::from_utf8_lossy(&unread).trim_end().chars().take(SAID).collect();
        if !line.is_empty() {
            self.cx.console.message(&format!("it ended before it could read what you typed: {line}"));
        }
    }

    /// Takes what our stdin has and sends it on; at its end closes the process's.
    pub(super) fn take(&mut self) -> Result<Option<u8>, CliError> {
        let shares = self.shares_input();
        if shares && self.progress.ended() {
            return Ok(None);
        }
        let Some(input) = &mut self.plan.input else { return Ok(None) };
        if shares && !sys::is_canonical_foreground(input.as_fd()) {
            self.leave_input();
            return Ok(None);
        }
        let mut chunk = vec![0; INPUT];
        let read = match input.read(&mut chunk) {
            Err(error) if shares && error.raw_os_error() == Some(libc::EIO) => {
                // In the background since we looked, or gone.
                if !sys::is_canonical_foreground(input.as_fd()) {
                    self.leave_input();
                    return Ok(None);
                }
                Ok(0)
            }
            read => read,
        };
        match read {
            // Interrupted, or somebody else was faster.
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {
                return Ok(None);
            }
            // So ends a terminal.
            Ok(0) | Err(_) if self.plan.screen.is_some() => {
                self.plan.input = None;
                return self.hung_up(libc::SIGHUP);
            }
            Err(source) => return Err(CliError::Io { doing: "read standard input", source }),
            Ok(0) => {
                self.plan.input = None;
                let id = self.id();
                return self
                    .ask::<api::Close>(Request::Close, &params::CloseParams { id }, Duration::ZERO)
                    .map(|()| None);
            }
            Ok(read) => chunk.truncate(read),
        }
        match self.plan.screen.as_mut().map(|screen| screen.typed(&chunk)) {
            None => self.typed = chunk,
            Some(Typed::Keys(keys)) => self.typed.extend(keys),
            Some(Typed::Detach(keys)) => {
                self.typed.extend(keys);
                self.leaving = true;
                self.detach_at = Some(Instant::now() + LAST_KEYS);
            }
        }
        self.write_next()
    }

    /// Sends what was typed unless something is on its way: one at a time, so that it stays in order.
    fn write_next(&mut self) -> Result<Option<u8>, CliError> {
        if self.sending.is_empty() {
            let rest = self.typed.split_off(self.typed.len().min(INPUT));
            self.sending = std::mem::replace(&mut self.typed, rest);
            match (self.sending.is_empty(), self.leaving) {
                (false, _) => self.write()?,
                (true, true) => return self.detach(),
                (true, false) => {}
            }
        }
        Ok(None)
    }

    /// Carries an id of its own, so that it can be asked again on a new connection and is still
    /// written once.
    fn write(&mut self) -> Result<(), CliError> {
        let params = params::WriteParams {
            id: self.id(),
            data_base64: Some(STANDARD.encode(&self.sending)),
            write_id: Some(random_id()),
            ..Default::default()
        };
        self.ask::<api::Write>(Request::Write, &params, crate::cmd::write::WAIT)
    }

    pub(super) fn wrote(&mut self, result: &RawValue) -> Result<Option<u8>, CliError> {
        let written = parse::<api::Write>(result)?.bytes_written as usize;
        self.sending.drain(..written.min(self.sending.len()));
        // The reader was slow: the rest is a new write.
        if self.sending.is_empty() { self.write_next() } else { self.write().map(|()| None) }
    }
}
