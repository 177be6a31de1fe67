//! Forwards our stdin to the process.

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

/// The size of one `write`. With its base64 it fits a socket's buffer, so sending it never waits for a daemon that
/// waits for us.
const MAX_WRITE_LEN: usize = 32 * 1024;
/// The number of keys that are held for a process that does not read. They are read so that the detach key is seen; more
/// than this is not typing, and stays in the terminal.
const MAX_TYPED_LEN: usize = 1024 * 1024;
/// The delay before a line on our terminal that is for another process is checked again: it may be ours by
/// then.
const STDIN_CHECK_DELAY: Duration = Duration::from_millis(250);
/// The time to wait for the end of a program that stopped reading with a line under way.
const EXIT_WAIT: Duration = Duration::from_millis(100);
/// The number of characters of an unread line that are printed.
const MAX_SHOWN_CHARS: usize = 200;
/// The time that the last keys may take to be written on detaching.
const DETACH_WRITE_WAIT: Duration = Duration::from_secs(1);

impl Session<'_, '_> {
    /// Reports whether our stdin may be read now.
    pub(super) fn reads_input(&self) -> bool {
        let room = match &self.options.screen {
            Some(_) => self.typed.len() < MAX_TYPED_LEN && !self.leaving,
            None => {
                let asked = self.is_pending(Request::Close) || self.is_pending(Request::CheckStdin);
                self.sending.is_empty() && !asked && self.stdin_backoff.is_none()
            }
        };
        // Input after the program's end is for the next reader.
        self.process.is_some() && room && !self.progress.ended()
    }

    /// Reports whether we share our stdin: lines of a terminal that other processes read too.
    pub(super) fn shares_input(&self) -> bool {
        self.options.screen.is_none() && self.options.input.as_ref().is_some_and(|input| input.is_terminal())
    }

    /// Leaves a line to another process for a while.
    fn leave_input(&mut self) {
        self.stdin_backoff = Some(Instant::now() + STDIN_CHECK_DELAY);
    }

    /// Forwards what our stdin has. A line of a terminal belongs to the shell once the process cannot read it, and a line that
    /// was read cannot be given back: so an empty write checks that first.
    pub(super) fn forward(&mut self) -> Result<Option<u8>, CliError> {
        if !self.shares_input() {
            return self.take();
        }
        // The line break that was typed has moved the cursor into our status line.
        self.cx.console.erase();
        let params = params::WriteParams { id: self.id(), data: Some(String::new()), ..Default::default() };
        self.ask::<api::Write>(Request::CheckStdin, &params, crate::cmd::write::READ_WAIT).map(|()| None)
    }

    /// Leaves the line where it is, because the process cannot read it.
    pub(super) fn unreadable(&mut self, error: &RpcError) {
        match error.kind() {
            Some(ErrorKind::AlreadyExited | ErrorKind::StdinUnavailable) => self.options.input = None,
            _ => {
                self.message(&error_text::describe(error));
                self.leave_input();
            }
        }
    }

    /// Waits for the result of a write that was under way when the program ended.
    pub(super) fn finish_write(&mut self) -> Result<(), CliError> {
        let until = Instant::now() + EXIT_WAIT;
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

    /// Keeps a line that was refused: we have it, and no one else. If the program has ended, it is reported.
    pub(super) fn keep_unread(&mut self) -> Result<(), CliError> {
        let Some(input) = self.options.input.as_ref().filter(|_| self.shares_input()) else { return Ok(()) };
        if self.sending.is_empty() || !sys::has_echo(input.as_fd()) {
            return Ok(());
        }
        self.unread.clone_from(&self.sending);
        let timeout_ms = Some(EXIT_WAIT.as_millis() as i64);
        let params = params::WaitParams { id: Some(self.id()), timeout_ms, ..Default::default() };
        self.ask::<api::Wait>(Request::CheckExit, &params, EXIT_WAIT)
    }

    /// Drops the unread line if the program still runs, which then does not want it.
    pub(super) fn check_unread(&mut self, result: &RawValue) -> Result<(), CliError> {
        if !parse::<api::Wait>(result)?.processes.iter().any(|waited| has_ended(&waited.process)) {
            self.unread.clear();
        }
        Ok(())
    }

    pub(super) fn report_unread(&mut self) {
        let unread = std::mem::take(&mut self.unread);
        let line: String = String::from_utf8_lossy(&unread).trim_end().chars().take(MAX_SHOWN_CHARS).collect();
        if !line.is_empty() {
            self.cx.console.message(&format!("it ended before it could read what you typed: {line}"));
        }
    }

    /// Reads our stdin and forwards it; at its end closes the process's.
    pub(super) fn take(&mut self) -> Result<Option<u8>, CliError> {
        let shares = self.shares_input();
        if shares && self.progress.ended() {
            return Ok(None);
        }
        let Some(input) = &mut self.options.input else { return Ok(None) };
        if shares && !sys::is_canonical_foreground(input.as_fd()) {
            self.leave_input();
            return Ok(None);
        }
        let mut chunk = vec![0; MAX_WRITE_LEN];
        let read = match input.read(&mut chunk) {
            Err(error) if shares && error.raw_os_error() == Some(libc::EIO) => {
                // We are in the background since the check, or the terminal is gone.
                if !sys::is_canonical_foreground(input.as_fd()) {
                    self.leave_input();
                    return Ok(None);
                }
                Ok(0)
            }
            read => read,
        };
        match read {
            // Interrupted, or another reader was faster.
            Err(error) if matches!(error.kind(), io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock) => {
                return Ok(None);
            }
            // This is the end of a terminal.
            Ok(0) | Err(_) if self.options.screen.is_some() => {
                self.options.input = None;
                return self.hung_up(libc::SIGHUP);
            }
            Err(source) => return Err(CliError::Io { doing: "read standard input", source }),
            Ok(0) => {
                self.options.input = None;
                let id = self.id();
                return self
                    .ask::<api::Close>(Request::Close, &params::CloseParams { id }, Duration::ZERO)
                    .map(|()| None);
            }
            Ok(read) => chunk.truncate(read),
        }
        match self.options.screen.as_mut().map(|screen| screen.typed(&chunk)) {
            None => self.typed = chunk,
            Some(Typed::Keys(keys)) => self.typed.extend(keys),
            Some(Typed::Detach(keys)) => {
                self.typed.extend(keys);
                self.leaving = true;
                self.detach_at = Some(Instant::now() + DETACH_WRITE_WAIT);
            }
        }
        self.write_next()
    }

    /// Writes what was typed unless a write is pending: one at a time, to keep the order.
    fn write_next(&mut self) -> Result<Option<u8>, CliError> {
        if self.sending.is_empty() {
            let rest = self.typed.split_off(self.typed.len().min(MAX_WRITE_LEN));
            self.sending = std::mem::replace(&mut self.typed, rest);
            match (self.sending.is_empty(), self.leaving) {
                (false, _) => self.write()?,
                (true, true) => return self.detach(),
                (true, false) => {}
            }
        }
        Ok(None)
    }

    /// Writes with an id of its own, so that it can be sent again on a new connection and is still written
    /// once.
    fn write(&mut self) -> Result<(), CliError> {
        let params = params::WriteParams {
            id: self.id(),
            data_base64: Some(STANDARD.encode(&self.sending)),
            write_id: Some(random_id()),
            ..Default::default()
        };
        self.ask::<api::Write>(Request::Write, &params, crate::cmd::write::READ_WAIT)
    }

    pub(super) fn wrote(&mut self, result: &RawValue) -> Result<Option<u8>, CliError> {
        let written = parse::<api::Write>(result)?.bytes_written as usize;
        self.sending.drain(..written.min(self.sending.len()));
        // The reader was slow: the rest is a new write.
        if self.sending.is_empty() { self.write_next() } else { self.write().map(|()| None) }
    }
}
