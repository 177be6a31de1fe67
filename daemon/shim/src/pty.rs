//! A program's terminal, seen from its master: its size, its end-of-file character, and a terminal that no process has
//! open.

use super::run::{Shim, rewatch, token};
use rustix::event::epoll::EventFlags;
use rustix::fd::AsFd;
use rustix::io::Errno;
use toold_format::slots::{self, Resize};

impl Shim {
    pub fn resize(&mut self, token: u64, rows: u16, cols: u16) {
        let result = match &self.output.out {
            Some(master) if self.output.is_pty => {
                let size = rustix::termios::Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
                rustix::termios::tcsetwinsize(master, size)
            }
            Some(_) | None => Err(Errno::NOTTY),
        };
        if result.is_ok() {
            self.rows = rows;
            self.cols = cols;
            self.resizes.push(Resize { at: self.log.counts().end, rows, cols });
            self.write_slot(slots::RESIZES_AT, &self.resizes.slot());
            self.write_progress();
        }
        self.send_done(token, result);
    }

    /// Types the end-of-file character. A terminal in line mode takes one at the start of a line for the end,
    /// and elsewhere as "send what you have": there it needs a second.
    pub fn type_eof(&mut self) -> Result<(), Errno> {
        let Some(master) = &self.output.out else { return Err(Errno::PIPE) };
        let modes = rustix::termios::tcgetattr(master)?;
        let eof = modes.special_codes[rustix::termios::SpecialCodeIndex::VEOF];
        let twice = modes.local_modes.contains(rustix::termios::LocalModes::ICANON) && !self.stdin.at_line_start;
        let typed = [eof, eof];
        let wanted = if twice { &typed[..] } else { &typed[..1] };
        let written = rustix::io::write(master, wanted)?;
        // The first of two has sent the line: the next call needs one.
        self.stdin.at_line_start = true;
        if written < wanted.len() { Err(Errno::AGAIN) } else { Ok(()) }
    }

    /// Notes whether any process has the terminal open, and keeps it in either case. To close it would hang it up, and
    /// SIGHUP would end a program that only closed its descriptors, as `cat` does before it exits.
    pub fn set_pty_hung_up(&mut self, hung_up: bool) {
        if self.output.hung_up != hung_up {
            self.output.hung_up = hung_up;
            self.watch_pty(self.stdin.waits_for_pty());
        }
    }

    /// Watches the master for output, and for space to write if `for_space`.
    pub fn watch_pty(&mut self, for_space: bool) {
        let mut flags = self.output.watch_flags();
        if for_space {
            flags |= EventFlags::OUT;
        }
        if self.output.hung_up {
            // The hang-up stays readable: only a change may wake us.
            flags |= EventFlags::ET;
        }
        if let Some(fd) = &self.output.out {
            rewatch(&self.prepared.epoll, fd.as_fd(), token::OUT, flags);
        }
    }
}
