//! Writes the program's output to ours, and shows a status line while there is none.

use super::Session;
use crate::error::CliError;
use crate::event_loop::{self, Sources};
use crate::sys::Interest;
use std::io::Write;
use std::os::fd::AsFd;
use std::time::Instant;
use toold_proto::params::Stream;
use toold_proto::process::Process;

/// The size of one write to our output: a pipe that is ready takes this without blocking.
const WRITE_LEN: usize = 4096;

impl Session<'_, '_> {
    /// Prints a piece of the program's output, drawn by us if its screen has another size than ours.
    pub(super) fn print(&mut self, stream: Stream, piece: &[u8]) -> Result<Option<u8>, CliError> {
        match self.translate(piece) {
            Some(drawn) => self.put(stream, &drawn),
            None => self.put(stream, piece),
        }
    }

    /// Writes it, and handles signals while the output is not ready.
    pub(super) fn put(&mut self, stream: Stream, piece: &[u8]) -> Result<Option<u8>, CliError> {
        self.cx.console.erase();
        for part in piece.chunks(WRITE_LEN) {
            while self.cx.console.is_real {
                let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
                let fd = match stream {
                    Stream::Stdout => stdout.as_fd(),
                    Stream::Stderr => stderr.as_fd(),
                };
                // Only keys may wait for a slow terminal: data of a pipe is read when the output continues.
                let keys = self.options.input.as_ref().filter(|_| self.options.screen.is_some() && self.reads_input());
                let sources = Sources {
                    signals: Some(&self.signals),
                    input: keys.map(|keys| keys.as_fd()),
                    output: Some((fd, Interest::Writable)),
                };
                let daemon = self.cx.connection.fd().filter(|_| self.options.exec.hold);
                let wake = event_loop::wait_unread(daemon, &sources)?;
                if wake.daemon {
                    self.take_hold_again();
                }
                if wake.signal
                    && let Some(code) = self.signalled()?
                {
                    return Ok(Some(code));
                }
                if wake.input
                    && let Some(code) = self.forward()?
                {
                    return Ok(Some(code));
                }
                if wake.output {
                    break;
                }
            }
            let (out, doing): (&mut dyn Write, _) = match stream {
                Stream::Stdout => (&mut *self.cx.console.out, "write to standard output"),
                Stream::Stderr => (&mut *self.cx.console.err, "write to standard error"),
            };
            out.write_all(part).and_then(|()| out.flush()).map_err(CliError::io(doing))?;
            self.track_output(part);
            if let Some(status) = &mut self.status_line {
                status.printed(stream, part, Instant::now());
            }
        }
        Ok(None)
    }

    /// Prints the end of an output that is limited, with a message about what was left out before it.
    pub(super) fn print_kept(&mut self) -> Result<Option<u8>, CliError> {
        let Some(limit) = self.output_limit.take() else { return Ok(None) };
        let (left_out, tail) = limit.finish();
        if left_out > 0 {
            let id = self.id();
            self.message(&format!("{left_out} bytes of output are left out here; for all of it: toolctl log {id}"));
        }
        for (stream, piece) in tail {
            if let Some(code) = self.put(stream, &piece)? {
                return Ok(Some(code));
            }
        }
        Ok(None)
    }

    pub(super) fn saw(&mut self, process: &Process) {
        if let Some(status) = &mut self.status_line {
            status.saw(process);
        }
    }

    /// Returns when the status line is due: once the process has an id, and prints nothing.
    pub(super) fn status_due(&self) -> Option<Instant> {
        self.process.as_ref().and(self.status_line.as_ref()?.due())
    }

    /// Shows the status line if it is due.
    pub(super) fn show_status(&mut self, now: Instant) {
        let (id, typed) = (self.id(), self.shares_input());
        if self.status_due().is_some_and(|due| due <= now)
            && let (Some(status), Some(width)) = (&mut self.status_line, self.cx.console.err_style.width)
        {
            let line = status.line(&id, now, width);
            // The terminal echoes keys where the cursor is.
            if typed { self.cx.console.show_line_below(&line) } else { self.cx.console.show_line(&line) }
        }
    }
}
