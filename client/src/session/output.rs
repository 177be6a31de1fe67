//! The program's output on its way to ours, and our own line while there is none.

use super::Session;
use crate::error::CliError;
use crate::event_loop::{self, Sources};
use crate::sys::Interest;
use std::io::Write;
use std::os::fd::AsFd;
use std::time::Instant;
use toold_proto::params::Stream;

/// Bytes written at once to our own output: what a pipe that is ready takes without waiting.
const OUTPUT: usize = 4096;

impl Session<'_, '_> {
    /// Prints a piece of the program's, drawn by us if its screen is not of our size.
    pub(super) fn print(&mut self, stream: Stream, piece: &[u8]) -> Result<Option<u8>, CliError> {
        match self.translate(piece) {
            Some(drawn) => self.put(stream, &drawn),
            None => self.put(stream, piece),
        }
    }

    /// Writes it, and hears signals while the output is not ready to take it.
    pub(super) fn put(&mut self, stream: Stream, piece: &[u8]) -> Result<Option<u8>, CliError> {
        self.cx.console.erase();
        for part in piece.chunks(OUTPUT) {
            while self.cx.console.is_real {
                let (stdout, stderr) = (std::io::stdout(), std::io::stderr());
                let fd = match stream {
                    Stream::Stdout => stdout.as_fd(),
                    Stream::Stderr => stderr.as_fd(),
                };
                // Only keys can wait for a slow terminal: a pipe's data goes on when the output does.
                let keys = self.plan.input.as_ref().filter(|_| self.plan.screen.is_some() && self.reads_input());
                let sources = Sources {
                    signals: Some(&self.signals),
                    input: keys.map(|keys| keys.as_fd()),
                    output: Some((fd, Interest::Writable)),
                };
                let wake = event_loop::wait_without_daemon(&sources)?;
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
            if let Some(quiet) = &mut self.quiet {
                quiet.printed(stream, part, Instant::now());
            }
        }
        Ok(None)
    }

    /// When our line is due: once the process has an id, and prints nothing.
    pub(super) fn quiet_due(&self) -> Option<Instant> {
        self.process.as_ref().and(self.quiet.as_ref()?.due())
    }

    /// Shows our line if it is due.
    pub(super) fn show_quiet(&mut self, now: Instant) {
        let (id, typed) = (self.id(), self.shares_input());
        if self.quiet_due().is_some_and(|due| due <= now)
            && let (Some(quiet), Some(width)) = (&mut self.quiet, self.cx.console.err_style.width)
        {
            let line = quiet.line(&id, now, width);
            // Keys are shown where the cursor is.
            match typed {
                true => self.cx.console.show_line_below(&line),
                false => self.cx.console.show_line(&line),
            }
        }
    }
}
