//! The output of `log`: sanitized on a terminal, and through a pager when it is more than a screen.

use crate::console::Console;
use crate::error::CliError;
use crate::render::sanitize::Sanitizer;
use crate::render::text::columns;
use crate::sys::{self, Signals};
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::process::{Child, Command, Stdio};

/// Writes to a person, a file or another program.
pub struct Output {
    /// None: bytes are written unchanged.
    shown: Option<Sanitizer>,
    way: Sink,
    /// The last byte was not a newline.
    open: bool,
    /// The exact bytes are wanted, so not even a newline is added.
    raw: bool,
}

enum Sink {
    Direct,
    /// Buffered until it is known whether it is more than a screen, for this pager.
    Held {
        pager: Command,
        bytes: Vec<u8>,
        rows: usize,
        width: usize,
    },
    Pager(Pager),
}

/// A program that shows text page by page. Dropping it closes its input and waits for it.
struct Pager {
    child: Child,
    /// Ctrl-C is for the pager: if it ended us, the pager would be left alone with the terminal.
    _signals: Option<Signals>,
}

impl Drop for Pager {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        // Its exit status does not matter.
        let _ = self.child.wait();
    }
}

impl Output {
    /// `raw`: unchanged, with escape sequences.
    pub fn new(console: &Console<'_>, raw: bool, pager: Option<Command>) -> Output {
        let shown = if raw { None } else { console.sanitizer() };
        let way = match (pager, console.style.width) {
            (Some(pager), Some(width)) => {
                let rows = sys::window_size(io::stdout().as_fd()).map_or(24, |size| size.rows as usize);
                Sink::Held { pager, bytes: Vec::new(), rows: rows.max(2), width: width.max(1) }
            }
            (_, _) => Sink::Direct,
        };
        Output { shown, way, open: false, raw }
    }

    pub fn write(&mut self, bytes: &[u8], console: &mut Console<'_>) -> Result<(), CliError> {
        match &mut self.shown {
            Some(shown) => {
                let text = shown.push(&String::from_utf8_lossy(bytes));
                self.write_through(text.as_bytes(), console)
            }
            None => self.write_through(bytes, console),
        }
    }

    fn write_through(&mut self, bytes: &[u8], console: &mut Console<'_>) -> Result<(), CliError> {
        let Some(last) = bytes.last() else { return Ok(()) };
        self.open = *last != b'\n';
        if let Sink::Held { pager, bytes: held, rows, width } = &mut self.way {
            held.extend_from_slice(bytes);
            if !is_more(held, *rows, *width) {
                return Ok(());
            }
            let held = std::mem::take(held);
            self.way = start(pager).map_or(Sink::Direct, Sink::Pager);
            return self.send(&held, console);
        }
        self.send(bytes, console)
    }

    fn send(&mut self, bytes: &[u8], console: &mut Console<'_>) -> Result<(), CliError> {
        match &mut self.way {
            Sink::Pager(pager) => match &mut pager.child.stdin {
                Some(stdin) => stdin.write_all(bytes).map_err(CliError::io("write to the pager")),
                None => Ok(()),
            },
            Sink::Direct | Sink::Held { .. } => console.print_bytes(bytes),
        }
    }

    /// Ends the output, with a newline where one is missing.
    pub fn finish(mut self, console: &mut Console<'_>) -> Result<(), CliError> {
        let end = self.shown.as_mut().map(Sanitizer::finish).unwrap_or_default();
        self.write_through(end.as_bytes(), console)?;
        if self.open && !self.raw {
            self.write_through(b"\n", console)?;
        }
        if let Sink::Held { bytes, .. } = &mut self.way {
            let held = std::mem::take(bytes);
            return self.send(&held, console);
        }
        Ok(())
    }
}

/// Reports whether it is more than a screen, with a line left for the prompt.
fn is_more(bytes: &[u8], rows: usize, width: usize) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let mut left = rows.saturating_sub(1);
    for line in text.lines() {
        let high = columns(line).div_ceil(width).max(1);
        match left.checked_sub(high) {
            Some(rest) => left = rest,
            None => return true,
        }
    }
    false
}

/// Reports whether the first token of a shell line is a program that exists.
fn is_there(line: &str) -> bool {
    let Some(program) = line.split_whitespace().next().filter(|token| !token.contains('=')) else { return true };
    if program.contains('/') {
        return std::path::Path::new(program).is_file();
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

/// Returns `$PAGER`, else `less`, where a person would use one. None: there is none, or none is wanted.
pub fn pager(console: &Console<'_>) -> Option<Command> {
    if !console.is_real || !console.style.terminal() {
        return None;
    }
    let named = std::env::var("PAGER").ok();
    let mut command = match named.as_deref().map(str::trim) {
        Some("" | "cat") => return None,
        // A pager that does not exist would swallow the output.
        Some(line) if !is_there(line) => return None,
        Some(line) => {
            let mut shell = Command::new("sh");
            shell.args(["-c", line]);
            shell
        }
        None if !is_there("less") => return None,
        None => {
            let mut less = Command::new("less");
            less.arg("-R");
            less
        }
    };
    if std::env::var_os("LESS").is_none() {
        // A `less` that was named without options shows colours as colours too.
        command.env("LESS", "R");
    }
    Some(command)
}

fn start(pager: &mut Command) -> Option<Pager> {
    let child = pager.stdin(Stdio::piped()).spawn().ok()?;
    Some(Pager { child, _signals: Signals::catch(&[libc::SIGINT, libc::SIGQUIT]).ok() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_screen_is_full_when_no_line_is_left_for_the_prompt() {
        assert!(!is_more(b"1\n2\n3\n", 4, 80));
        assert!(is_more(b"1\n2\n3\n4\n", 4, 80));
        assert!(is_more(b"a line that is wrapped\n2\n", 4, 8), "by its width");
        assert!(!is_more(b"", 2, 8));
    }
}
