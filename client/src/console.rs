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
    /// These are descriptors 1 and 2, which can be waited for, and descriptor 0 is ours to read.
    pub live: bool,
}

impl Console<'_> {
    pub fn print(&mut self, text: &str) -> Result<(), Failure> {
        self.print_bytes(text.as_bytes())
    }

    pub fn print_bytes(&mut self, bytes: &[u8]) -> Result<(), Failure> {
        self.out.write_all(bytes).and_then(|()| self.out.flush()).map_err(Failure::io("write to standard output"))
    }

    /// A word to the person, on standard error. If nobody hears it, nothing else can be done.
    pub fn say(&mut self, text: &str) {
        let _ = writeln!(self.err, "toolctl: {text}").and_then(|()| self.err.flush());
    }
}

/// How standard output wants it: cut to its width and coloured on a terminal, else neither.
pub fn look() -> Look {
    let out = io::stdout();
    if !out.is_terminal() {
        return Look::plain();
    }
    let window = sys::window(out.as_fd()).map(|size| size.cols as usize).filter(|cols| *cols > 0);
    let columns = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|n| *n > 0);
    let width = window.or_else(columns).unwrap_or(USUAL_WIDTH);
    let colour = std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty())
        && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
    Look { width: Some(width), colour }
}
