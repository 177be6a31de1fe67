//! A session with one process, behind `run` and `attach`: handles the daemon's answers, our signals and our stdin in the order
//! they come.

mod hold;
mod input;
mod json;
mod output;
mod output_limit;
mod progress;
mod question;
mod ready;
mod record;
mod script;
mod signals;
mod status_line;
mod terminal;
#[cfg(test)]
mod tests;

pub use signals::{SCREEN_SIGNALS, SIGNALS};
pub use terminal::{Access, AttachedTerminal};

use crate::blocking::{CallError, parse};
use crate::cmd::Context;
use crate::cmd::options::ready::Readiness;
use crate::cmd::poll::bytes;
use crate::error::CliError;
use crate::error_text;
use crate::event_loop::{EventLoop, Incoming, Sources};
use crate::render::limits;
use crate::sys::{Interest, Signals};
use output_limit::OutputLimit;
use progress::{Next, Progress, pieces};
use serde_json::value::RawValue;
use status_line::StatusLine;
use std::fs::File;
use std::io::IsTerminal;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use toold_proto::api::{self, Method};
use toold_proto::params::{self, Ansi, Encoding};
use toold_proto::pty::Pty;
use toold_proto::script::ScriptRunParams;
use toold_proto::{ErrorKind, RpcError};

/// The length of a page of output: with larger ones, a call more or less does not matter.
const PAGE_LEN: u64 = 256 * 1024;

/// Our relation to the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// We start it, and an interrupt is for it.
    Owner,
    /// It existed before us.
    Attached,
}

/// The fate of the process when our terminal is closed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hangup {
    RunsOn,
    Kill,
}

/// The options of `run` or `attach`.
pub struct SessionOptions {
    pub role: Role,
    pub hangup: Hangup,
    pub exec: params::ExecParams,
    /// The script to run. `exec` then has only what the texts about it need: its name and its time limit.
    pub script: Option<ScriptRunParams>,
    pub detach_after: Option<Duration>,
    /// Our stdin, when it is to be forwarded.
    pub input: Option<File>,
    /// The readiness condition, if it is to be reported.
    pub readiness: Option<Readiness>,
    /// Our terminal, when it is to be the process's.
    pub screen: Option<AttachedTerminal>,
    /// The fate of the record when the process has ended.
    pub record: RecordFate,
    /// The most output to print, in bytes.
    pub max_output: Option<u64>,
}

/// The fate of the record of a process that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordFate {
    Kept,
    Removed,
}

/// The kinds of calls that may be pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Request {
    Exec,
    Poll,
    /// Checks that the process can read its stdin, before a line is taken.
    CheckStdin,
    /// Checks whether it has ended, after a line was refused.
    CheckExit,
    Wait,
    /// Waits until the process is ready.
    Ready,
    /// The last read of a `run --json` that leaves the process running.
    FinalPoll,
    Signal,
    Kill,
    Write,
    Close,
    Resize,
    /// Takes the hold again after a lost connection.
    Hold,
}

/// One `run` or `attach`.
pub struct Session<'a, 'c> {
    cx: &'a mut Context<'c>,
    signals: Signals,
    options: SessionOptions,
    detach_at: Option<Instant>,
    process: Option<String>,
    progress: Progress,
    events: EventLoop<Request>,
    interrupts: u32,
    /// Bytes of our stdin that are being written.
    sending: Vec<u8>,
    /// A line that was taken and refused, until it is known whether the process ended.
    unread: Vec<u8>,
    /// Another process reads our terminal, at least until then.
    stdin_backoff: Option<Instant>,
    /// Keys that were typed meanwhile.
    typed: Vec<u8>,
    /// The signal by which the user left, before the process had an id.
    kill_on_start: Option<i32>,
    /// The connection was lost, and the daemon has not answered since.
    disconnected: bool,
    /// The user wants to leave once what was typed is written.
    leaving: bool,
    /// The status line that is shown while the program prints nothing.
    status_line: Option<StatusLine>,
    output_limit: Option<OutputLimit>,
}

impl<'a, 'c> Session<'a, 'c> {
    pub fn new(cx: &'a mut Context<'c>, signals: Signals, options: SessionOptions) -> Session<'a, 'c> {
        let now = Instant::now();
        let detach_at = options.detach_after.map(|after| now + after);
        // A program on a terminal has the screen for itself.
        let shows = cx.console.can_redraw && !cx.json && options.exec.pty == Pty::No && options.screen.is_none();
        let status_line = shows.then(|| StatusLine::since(now));
        let output_limit = options.max_output.map(OutputLimit::new);
        Session {
            cx,
            signals,
            options,
            detach_at,
            process: None,
            progress: Progress::default(),
            events: EventLoop::new(),
            interrupts: 0,
            sending: Vec::new(),
            unread: Vec::new(),
            stdin_backoff: None,
            typed: Vec::new(),
            kill_on_start: None,
            disconnected: false,
            leaving: false,
            status_line,
            output_limit,
        }
    }

    /// Starts the process and follows it. Returns the code to exit with.
    pub fn run(mut self) -> Result<u8, CliError> {
        self.start()?;
        self.run_loop()
    }

    /// Handles answers and events until there is a code to exit with.
    fn run_loop(&mut self) -> Result<u8, CliError> {
        loop {
            while let Some(incoming) = self.events.next(&mut self.cx.connection)? {
                if let Incoming::Answer(request, outcome) = incoming
                    && let Some(code) = self.answered(request, outcome)?
                {
                    return Ok(code);
                }
            }
            if let Some(code) = self.poll_once()? {
                return Ok(code);
            }
        }
    }

    /// Waits for the next events, and handles them.
    fn poll_once(&mut self) -> Result<Option<u8>, CliError> {
        let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
        let terminal = if stdout.is_terminal() { stdout.as_fd() } else { stderr.as_fd() };
        let timer = self.next_timer();
        let input = self.options.input.as_ref().filter(|_| self.reads_input()).map(|input| input.as_fd());
        let sources = Sources {
            signals: Some(&self.signals),
            input,
            output: self.watches_hangup().then_some((terminal, Interest::HungUp)),
        };
        let wake = self.events.wait(&mut self.cx.connection, sources, timer)?;
        if wake.signal
            && let Some(code) = self.signalled()?
        {
            return Ok(Some(code));
        }
        if wake.output
            && let Some(code) = self.hung_up(libc::SIGHUP)?
        {
            return Ok(Some(code));
        }
        if let Some(notice) = &wake.notice {
            self.message(notice);
        }
        // The daemon's answers come first: they may report the program's end, and then the line is not for it.
        let input = wake.input && !(wake.daemon && self.shares_input());
        if input && let Some(code) = self.forward()? {
            return Ok(Some(code));
        }
        if let Some(lost) = wake.lost {
            // All other calls may run twice: the start and the writes carry ids, the rest only looks or ends. A signal may
            // not, for a program may count them.
            self.events.cancel(Request::Signal);
            self.events.reconnect(&mut self.cx.connection, lost)?;
            self.disconnected = true;
        }
        self.run_timers(wake.daemon)
    }

    /// Returns the time of the next timer.
    fn next_timer(&self) -> Option<Instant> {
        let timers = [self.detach_due(), self.status_due(), self.resize_due(), self.redraw_due(), self.stdin_backoff];
        timers.into_iter().flatten().min()
    }

    /// Returns when to detach. Before the id is known there is nothing to print or to leave behind.
    fn detach_due(&self) -> Option<Instant> {
        self.detach_at.filter(|_| self.process.is_some())
    }

    /// Runs the timers that are due.
    fn run_timers(&mut self, answers: bool) -> Result<Option<u8>, CliError> {
        let now = Instant::now();
        if !answers {
            self.show_status(now);
        }
        self.stdin_backoff = self.stdin_backoff.filter(|until| *until > now);
        if self.resize_due().is_some_and(|due| due <= now) {
            self.resize()?;
        }
        if self.redraw_due().is_some_and(|due| due <= now) {
            self.redraw();
        }
        match self.detach_due() {
            Some(at) if now >= at => self.detach(),
            _ => Ok(None),
        }
    }

    /// Sends a call that itself waits up to `wait` before it answers.
    fn ask<M: Method>(&mut self, request: Request, params: &M::Params, wait: Duration) -> Result<(), CliError> {
        self.events.send::<M>(&mut self.cx.connection, request, params, wait)
    }

    fn is_pending(&self, request: Request) -> bool {
        self.events.is_pending(request)
    }

    fn answered(&mut self, what: Request, outcome: Result<Box<RawValue>, RpcError>) -> Result<Option<u8>, CliError> {
        if what != Request::Poll {
            self.report_reconnect();
        }
        let result = match (what, outcome) {
            (_, Ok(result)) => result,
            (Request::Signal | Request::Kill | Request::Write | Request::Close, Err(error))
            | (Request::Resize | Request::Ready | Request::CheckExit, Err(error)) => {
                self.refused(what, &error)?;
                return Ok(None);
            }
            // The next poll reports what is wrong.
            (Request::Hold, Err(_)) => return Ok(None),
            (Request::CheckStdin, Err(error)) => {
                self.unreadable(&error);
                return Ok(None);
            }
            (Request::Exec, Err(error)) if self.options.exec.hold && hold::is_unknown(&error) => {
                return self.start_without_hold().map(|()| None);
            }
            (Request::Exec | Request::Poll | Request::Wait | Request::FinalPoll, Err(error)) => {
                if let Some(id) = error.data.get("id").and_then(|id| id.as_str()).filter(|_| what == Request::Exec) {
                    // A start that failed has a record too.
                    self.process = Some(id.to_owned());
                    self.remove_record();
                }
                return Err(CallError::Rpc(error).into());
            }
        };
        match what {
            Request::Exec => self.started(&result),
            Request::Poll => self.page(&result),
            Request::CheckStdin => self.take(),
            Request::CheckExit => self.check_unread(&result).map(|()| None),
            Request::Wait | Request::FinalPoll => self.waited(what, &result),
            Request::Ready => self.ready(&result).map(|()| None),
            Request::Write => self.wrote(&result),
            Request::Resize => self.on_resized(),
            Request::Signal | Request::Kill | Request::Close | Request::Hold => Ok(None),
        }
    }

    /// Handles a refused call. The output continues, so `run` does not end.
    fn refused(&mut self, what: Request, error: &RpcError) -> Result<(), CliError> {
        if what == Request::Signal && question::is_asking(error) {
            return self.withdraw();
        }
        if matches!(what, Request::Write | Request::Close) {
            self.keep_unread()?;
            self.sending.clear();
            self.typed.clear();
            // Without keys there would be no way to detach.
            if self.options.screen.is_none() {
                self.options.input = None;
            }
        }
        // It ended, or closed its stdin, just before: the effect is the same.
        if !matches!(error.kind(), Some(ErrorKind::AlreadyExited | ErrorKind::StdinUnavailable)) {
            self.message(&error_text::describe(error));
        }
        Ok(())
    }

    fn started(&mut self, result: &RawValue) -> Result<Option<u8>, CliError> {
        let process = self.started_process(result)?;
        self.process = Some(process.id.to_string());
        if let Some(limits) = limits::unenforced(&process).filter(|_| !self.cx.json) {
            self.message(&limits);
        }
        // A process that ran already may have been started without.
        self.options.exec.hold = process.held_back.is_some();
        if let Some(signal) = self.kill_on_start.take() {
            return self.hung_up(signal);
        }
        self.saw(&process);
        self.report_question(&process);
        if self.cx.json {
            self.wait_for_end()?
        } else {
            self.enter_terminal()?;
            self.poll(progress::wait(&process))?;
            self.ask_ready()?
        }
        // Interrupts from before the process had an id are for it too.
        match self.interrupts {
            0 => Ok(None),
            _ => self.interrupt().map(|()| None),
        }
    }

    fn id(&self) -> String {
        self.process.clone().unwrap_or_default()
    }

    fn poll(&mut self, wait: Duration) -> Result<(), CliError> {
        let wait = self.page_wait(wait);
        let params = params::PollParams {
            id: self.id(),
            cursor: Some(self.progress.cursor),
            max_bytes: Some(PAGE_LEN),
            wait_ms: wait.as_millis() as u64,
            ansi: Ansi::Keep,
            encoding: Encoding::Base64,
            spans: true,
            hold: self.options.exec.hold,
            ..Default::default()
        };
        self.ask::<api::Poll>(Request::Poll, &params, wait)
    }

    fn page(&mut self, result: &RawValue) -> Result<Option<u8>, CliError> {
        let page = parse::<api::Poll>(result)?;
        if let Some(gap) = page.gap {
            self.message(&format!("{} bytes of output were not kept", gap.to.saturating_sub(gap.from)));
        }
        self.saw(&page.process);
        if let Some(code) = self.update_remote_size(page.process.pty_size)? {
            return Ok(Some(code));
        }
        let output = bytes(&page.output)?;
        for (stream, piece) in pieces(&output, page.from, page.spans.as_deref().unwrap_or_default()) {
            let piece = self.output_limit.as_mut().map_or(piece, |limit| limit.take(stream, piece));
            match self.print(stream, piece) {
                Err(CliError::OutputClosed | CliError::Io { .. }) if self.options.screen.is_some() => {
                    return self.hung_up(libc::SIGHUP);
                }
                Err(CliError::OutputClosed) => return self.reader_left(),
                Err(failure @ CliError::Io { .. }) => {
                    // A full disk is our problem, not the program's: its output stays stored.
                    let line = self.left_hint(&page.process);
                    self.cx.console.message(&line);
                    return Err(failure);
                }
                Err(failure) => return Err(failure),
                Ok(Some(code)) => return Ok(Some(code)),
                Ok(None) => {}
            }
        }
        // After the output that came meanwhile: a program that redraws would overwrite the message at once.
        self.report_reconnect();
        if !output.is_empty() {
            self.repeat_message();
        }
        if self.resize_due().is_some() && !output.is_empty() {
            self.resize()?;
        }
        self.progress.printed += output.len() as u64;
        match self.progress.page(&page, Instant::now()) {
            Next::Poll(wait) => self.poll(wait).map(|()| None),
            Next::Leave(code) => {
                if let Some(code) = self.print_kept()? {
                    return Ok(Some(code));
                }
                self.finish_write()?;
                self.restore_terminal();
                self.acknowledge();
                self.report_unread();
                self.report_end(&page.process);
                self.remove_record();
                let code = self.exit_code(&page.process, code);
                Ok(Some(self.report_missing(&page.process).unwrap_or(code)))
            }
        }
    }
}
