//! Output: from pipe or terminal into the log, one read at a time, in the order of arrival.

use super::run::{Shim, rewatch, tag};
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
pub const BUFFER: usize = 256 * 1024;
/// A pipe that was found this full gets a larger one.
const FULL: usize = 60 * 1024;
/// What a busy pipe gets, so that writer and reader need not take turns.
const LARGE_PIPE: usize = 1024 * 1024;
/// How long after the last large read the buffer's pages are given back.
const REST_MS: u64 = 200;
/// How long a program that closed its output lives on before that is news of its own.
const LIVES_ON_MS: u64 = 50;

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
    deserted: bool,
    large: bool,
    rest_at: Option<u64>,
    buffer: &'static mut [u8],
}

/// What one read found.
enum Got {
    Bytes(usize),
    Nothing,
    End,
}

impl Output {
    pub fn new(out: OwnedFd, err: Option<OwnedFd>, terminal: bool, buffer: &'static mut [u8]) -> Output {
        Output { out: Some(out), err, terminal, deserted: false, large: false, rest_at: None, buffer }
    }

    /// When to give the buffer's pages back.
    pub fn rest_at(&self) -> Option<u64> {
        self.rest_at
    }

    fn is_at_rest(&mut self, now: u64) -> bool {
        let at_rest = self.rest_at.is_some_and(|at| now >= at);
        if at_rest {
            self.rest_at = None;
            sys::forget_pages(self.buffer);
        }
        at_rest
    }

    fn end(&self, which: Which) -> Option<&OwnedFd> {
        match which {
            Which::Out => self.out.as_ref(),
            Which::Err => self.err.as_ref(),
        }
    }

    fn read(&mut self, which: Which) -> Got {
        let fd = match which {
            Which::Out => self.out.as_ref(),
            Which::Err => self.err.as_ref(),
        };
        let Some(fd) = fd else { return Got::Nothing };
        match rustix::io::read(fd, &mut *self.buffer) {
            Ok(0) => Got::End,
            Ok(n) => {
                if n >= FULL && !self.large && !self.terminal {
                    // Refused beyond the user's share of pipe memory, and then it stays as it is.
                    self.large = rustix::pipe::fcntl_setpipe_size(fd, LARGE_PIPE).is_ok();
                }
                if n > 4096 {
                    self.rest_at = Some(mono_ms() + REST_MS);
                }
                Got::Bytes(n)
            }
            Err(Errno::AGAIN | Errno::INTR) => Got::Nothing,
            // A terminal whose last user is gone says EIO.
            Err(_) => Got::End,
        }
    }
}

impl Shim {
    /// One read from a stream that has something.
    pub fn capture(&mut self, which: Which) {
        match self.output.read(which) {
            Got::Bytes(n) => {
                self.desert(false);
                self.store(which, n);
            }
            Got::Nothing => {}
            Got::End if self.output.terminal && self.exit.is_none() => self.desert(true),
            Got::End => self.end(which),
        }
    }

    /// Keeps a terminal that nobody has open. To close it would hang it up, and SIGHUP would end a
    /// program that only closed its descriptors, as `cat` does on its way out.
    fn desert(&mut self, deserted: bool) {
        if self.output.deserted != deserted {
            self.output.deserted = deserted;
            self.watch_terminal(self.stdin.waits_for_terminal());
        }
    }

    /// Gives back what only a flood of output needs, a moment after it.
    pub fn rest(&mut self, now: u64) {
        if self.output.is_at_rest(now) {
            self.log.rest();
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
        self.ring();
    }

    fn end(&mut self, which: Which) {
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
            self.log.rest();
            self.write_progress();
            self.write_slot(slots::CLOSED_AT, &slots::closed_slot(wall_ms()));
            // A program that ends closes its output just before. The exit comes first for whoever
            // listens, so the close of one that lives is told when it has lived on a moment.
            match self.exit {
                Some(_) => self.tell_closed(),
                None => self.tell_closed_at = Some(mono_ms() + LIVES_ON_MS),
            }
        }
    }

    pub fn tell_closed(&mut self) {
        self.tell_closed_at = None;
        let progress = self.progress();
        self.tell(&FromShim::Closed { progress });
    }

    /// Takes what is in the pipes now, and no more: a leftover that goes on writing cannot hold us.
    pub fn drain(&mut self) {
        for which in [Which::Out, Which::Err] {
            let mut left = match self.output.end(which) {
                Some(_) if self.output.terminal => 64 * 1024,
                Some(fd) => sys::waiting(fd.as_fd()),
                None => 0,
            };
            // One look more than there are bytes: without a leftover the end is there already.
            left += 1;
            while left > 0 {
                match self.output.read(which) {
                    Got::Bytes(n) => {
                        self.store(which, n);
                        left = left.saturating_sub(n);
                    }
                    Got::Nothing => break,
                    Got::End => {
                        self.end(which);
                        break;
                    }
                }
            }
        }
    }

    /// Watches the terminal for room to write, or not.
    pub fn watch_terminal(&mut self, for_room: bool) {
        let mut flags = if for_room { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        if self.output.deserted {
            // Its end is there all the time: only what is new may wake us.
            flags |= EventFlags::ET;
        }
        if let Some(fd) = &self.output.out {
            rewatch(&self.ready.epoll, fd.as_fd(), tag::OUT, flags);
        }
    }
}
