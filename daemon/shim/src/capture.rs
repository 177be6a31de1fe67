//! Output: from pipe or terminal into the log, one read at a time, in the order of arrival.

use super::run::{Shim, rewatch, token};
use crate::clock::{mono_ms, wall_ms};
use crate::hooks;
use crate::sys;
use rustix::event::epoll::EventFlags;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use toold_format::Stream;
use toold_format::frame::FromShim;
use toold_format::slots;

/// The most one read takes. Untouched until there is that much.
pub const READ_BUF_LEN: usize = 256 * 1024;
/// A pipe that was found this full gets a larger one.
const FULL_PIPE_LEN: usize = 60 * 1024;
/// What a busy pipe gets, so that writer and reader need not take turns.
const LARGE_PIPE_LEN: usize = 1024 * 1024;
/// How long after the last enlarged read the buffer's pages are given back.
const RELEASE_DELAY_MS: u64 = 200;
/// How long a program that closed its output lives on before that is news of its own.
const CLOSE_DELAY_MS: u64 = 50;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Which {
    Out,
    Err,
}

/// The reading ends, and the memory to read into.
pub struct Output {
    pub out: Option<OwnedFd>,
    pub err: Option<OwnedFd>,
    pub terminal: bool,
    /// Nobody has the terminal open, and the program lives: it may open it again.
    hung_up: bool,
    enlarged: bool,
    release_at: Option<u64>,
    buffer: &'static mut [u8],
}

/// What one read found.
enum ReadResult {
    Bytes(usize),
    Nothing,
    End,
}

impl Output {
    pub fn new(out: OwnedFd, err: Option<OwnedFd>, terminal: bool, buffer: &'static mut [u8]) -> Output {
        Output { out: Some(out), err, terminal, hung_up: false, enlarged: false, release_at: None, buffer }
    }

    /// When to give the buffer's pages back.
    pub fn release_at(&self) -> Option<u64> {
        self.release_at
    }

    fn release_if_idle(&mut self, now: u64) -> bool {
        let at_rest = self.release_at.is_some_and(|at| now >= at);
        if at_rest {
            self.release_at = None;
            sys::discard_pages(self.buffer);
        }
        at_rest
    }

    fn fd(&self, which: Which) -> Option<&OwnedFd> {
        match which {
            Which::Out => self.out.as_ref(),
            Which::Err => self.err.as_ref(),
        }
    }

    fn read(&mut self, which: Which) -> ReadResult {
        let fd = match which {
            Which::Out => self.out.as_ref(),
            Which::Err => self.err.as_ref(),
        };
        let Some(fd) = fd else { return ReadResult::Nothing };
        match rustix::io::read(fd, &mut *self.buffer) {
            Ok(0) => ReadResult::End,
            Ok(n) => {
                if n >= FULL_PIPE_LEN && !self.enlarged && !self.terminal {
                    // Refused beyond the user's share of pipe memory, and then it stays as it is.
                    self.enlarged = rustix::pipe::fcntl_setpipe_size(fd, LARGE_PIPE_LEN).is_ok();
                }
                if n > 4096 {
                    self.release_at = Some(mono_ms() + RELEASE_DELAY_MS);
                }
                ReadResult::Bytes(n)
            }
            Err(Errno::AGAIN | Errno::INTR) => ReadResult::Nothing,
            // A terminal whose last user is gone says EIO.
            Err(_) => ReadResult::End,
        }
    }
}

impl Shim {
    /// One read from a stream that has something.
    pub fn capture(&mut self, which: Which) {
        match self.output.read(which) {
            ReadResult::Bytes(n) => {
                self.set_pty_hung_up(false);
                self.store(which, n);
            }
            ReadResult::Nothing => {}
            ReadResult::End if self.output.terminal && self.exit.is_none() => self.set_pty_hung_up(true),
            ReadResult::End => self.close_stream(which),
        }
    }

    /// Keeps a terminal that nobody has open. To close it would hang it up, and SIGHUP would end a
    /// program that only closed its descriptors, as `cat` does on its way out.
    fn set_pty_hung_up(&mut self, hung_up: bool) {
        if self.output.hung_up != hung_up {
            self.output.hung_up = hung_up;
            self.watch_terminal(self.stdin.waits_for_terminal());
        }
    }

    /// Gives back what only a flood of output needs, a moment after it.
    pub fn release_idle(&mut self, now: u64) {
        if self.output.release_if_idle(now) {
            self.log.release_reserved();
        }
    }

    fn store(&mut self, which: Which, n: usize) {
        let stream = match which {
            Which::Out => Stream::Stdout,
            Which::Err => Stream::Stderr,
        };
        hooks::at("output.read");
        self.log.append(stream, &self.output.buffer[..n], wall_ms());
        hooks::at("output.appended");
        self.active_at = mono_ms();
        self.write_progress();
        hooks::at("output.counted");
        self.ring_bell();
    }

    fn close_stream(&mut self, which: Which) {
        // Closed, nobody watches it any more: the program's copy of it went with the exec.
        match which {
            Which::Out => self.output.out = None,
            Which::Err => self.output.err = None,
        }
        if self.output.terminal {
            self.stdin.terminal_gone();
        }
        if self.output.out.is_none() && self.output.err.is_none() && !self.closed {
            self.closed = true;
            self.log.release_reserved();
            self.write_progress();
            self.write_slot(slots::CLOSED_AT, &slots::closed_slot(wall_ms()));
            // A program that ends closes its output just before. The exit comes first for whoever
            // listens, so the close of one that lives is told when it has lived on a moment.
            match self.exit {
                Some(_) => self.send_closed(),
                None => self.send_closed_at = Some(mono_ms() + CLOSE_DELAY_MS),
            }
        }
    }

    pub fn send_closed(&mut self) {
        self.send_closed_at = None;
        let progress = self.progress();
        self.send(&FromShim::Closed { progress });
    }

    /// Takes what is in the pipes now, and no more: a leftover that goes on writing cannot hold us.
    pub fn drain(&mut self) {
        for which in [Which::Out, Which::Err] {
            let mut left = match self.output.fd(which) {
                Some(_) if self.output.terminal => 64 * 1024,
                Some(fd) => sys::bytes_readable(fd.as_fd()),
                None => 0,
            };
            // One look more than there are bytes: without a leftover the end is there already.
            left += 1;
            while left > 0 {
                match self.output.read(which) {
                    ReadResult::Bytes(n) => {
                        self.store(which, n);
                        left = left.saturating_sub(n);
                    }
                    ReadResult::Nothing => break,
                    ReadResult::End => {
                        self.close_stream(which);
                        break;
                    }
                }
            }
        }
    }

    /// Watches the terminal for room to write, or not.
    pub fn watch_terminal(&mut self, for_room: bool) {
        let mut flags = if for_room { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        if self.output.hung_up {
            // Its end is there all the time: only what is new may wake us.
            flags |= EventFlags::ET;
        }
        if let Some(fd) = &self.output.out {
            rewatch(&self.prepared.epoll, fd.as_fd(), token::OUT, flags);
        }
    }
}
