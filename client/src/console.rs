//! What `toolctl` writes to, and how it should look there.

use crate::failure::Failure;
use crate::render::Look;
use crate::sys;
use std::io::{self, IsTerminal, Write};
use std::os::fd::AsFd;

/// A terminal of unknown width is taken to be this wide.
const USUAL_WIDTH: usize = 80;

/// Standard output and standard error, or what stands for them in a test.
pub struct Console<'a> {
    pub out: &'a mut dyn Write,
    pub err: &'a mut dyn Write,
    pub look: Look,
    /// How standard error wants it.
    pub err_look: Look,
    /// Standard error is a terminal where a line can be written over.
    pub overwrites: bool,
    /// A line that is to be written over stands there.
    line: bool,
    /// These are descriptors 1 and 2, which can be waited for, and descriptor 0 is ours to read.
    pub live: bool,
}

impl<'a> Console<'a> {
    /// The streams of this program.
    pub fn live(out: &'a mut dyn Write, err: &'a mut dyn Write) -> Console<'a> {
        let (look, err_look) = (look(&io::stdout()), look(&io::stderr()));
        let overwrites = err_look.terminal() && !is_dumb();
        Console { out, err, look, err_look, overwrites, line: false, live: true }
    }

    /// The streams of a test.
    #[cfg(test)]
    pub fn plain(out: &'a mut dyn Write, err: &'a mut dyn Write) -> Console<'a> {
        let look = Look::plain();
        Console { out, err, look, err_look: look, overwrites: false, line: false, live: false }
    }

    /// Whether a line can be shown now: there is a terminal for it, and we are not in its background.
    pub fn shows_lines(&self) -> bool {
        self.overwrites && (!self.live || sys::is_foreground(io::stderr().as_fd()))
    }

    /// One line on standard error that the next one replaces, where that can be shown.
    pub fn show_line(&mut self, text: &str) {
        if self.shows_lines() {
            // If nobody sees it, nothing is lost.
            let _ = write!(self.err, "\r{text}\x1b[K").and_then(|()| self.err.flush());
            self.line = true;
        }
    }

    /// Takes that line away, before anything else is printed.
    pub fn erase(&mut self) {
        if std::mem::take(&mut self.line) {
            let _ = self.err.write_all(b"\r\x1b[K").and_then(|()| self.err.flush());
        }
    }

    /// The terminal's bell, on standard error.
    pub fn ring(&mut self) {
        self.erase();
        let _ = self.err.write_all(b"\x07").and_then(|()| self.err.flush());
    }

    pub fn print(&mut self, text: &str) -> Result<(), Failure> {
        self.print_bytes(text.as_bytes())
    }

    pub fn print_bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.erase();
        self.out.write_all(bytes).and_then(|()| self.out.flush()).map_err(Failure::io("write to standard output"))
    }

    /// A word to the person, on standard error. If nobody hears it, nothing else can be done.
    pub fn say(&mut self, text: &str) {
        self.erase();
        let _ = writeln!(self.err, "toolctl: {text}").and_then(|()| self.err.flush());
    }
}

/// How a stream wants it: cut to its width and coloured on a terminal, else neither.
fn look(stream: &(impl IsTerminal + AsFd)) -> Look {
    if !stream.is_terminal() {
        return Look::plain();
    }
    let window = sys::window(stream.as_fd()).map(|size| size.cols as usize).filter(|cols| *cols > 0);
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|n| *n > 0);
    let width = window.or_else(columns).unwrap_or(USUAL_WIDTH);
    let colour = std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty()) && !is_dumb();
    Look { width: Some(width), colour }
}

/// Whether the terminal knows no escape sequences.
fn is_dumb() -> bool {
    std::env::var_os("TERM").is_some_and(|term| term == "dumb")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_to_be_written_over_is_gone_before_anything_else_is_printed() {
        let (mut out, mut err) = (Vec::new(), Vec::new());
        let mut console = Console::plain(&mut out, &mut err);
        console.show_line("nobody could see it");
        console.overwrites = true;
        console.show_line("1s");
        console.show_line("2s");
        console.print("text\n").expect("a vector takes it");
        console.show_line("3s");
        console.say("word");
        console.erase();
        assert_eq!(String::from_utf8_lossy(&out), "text\n");
        assert_eq!(String::from_utf8_lossy(&err), "\r1s\x1b[K\r2s\x1b[K\r\x1b[K\r3s\x1b[K\r\x1b[Ktoolctl: word\n");
    }
}
