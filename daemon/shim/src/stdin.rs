//! The program's input: written piece by piece, each piece at most once, without waiting for a slow reader.

use super::named_writes::{self, NamedWrites};
use super::run::{Shim, token, unwatch, watch};
use crate::clock::mono_ms;
use rustix::event::epoll::EventFlags;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use toold_format::frame::{FromShim, MAX_WRITE_LEN, Wrote};

pub const MEMORY_LEN: usize = MAX_WRITE_LEN + named_writes::MEMORY_LEN;

/// The other end of the program's input.
enum Target {
    Null,
    Pipe(OwnedFd),
    Closed,
    /// The terminal's master, which `capture` owns.
    Pty,
}

pub struct Stdin {
    target: Target,
    /// The piece that waits for space in the pipe or terminal.
    piece: &'static mut [u8],
    at: usize,
    len: usize,
    token: u64,
    id: [u8; 16],
    offset: u64,
    total: u64,
    pub named: NamedWrites,
    /// The last byte typed ended a line.
    pub at_line_start: bool,
}

impl Stdin {
    fn new(target: Target, memory: &'static mut [u8]) -> Stdin {
        let (piece, writes) = memory.split_at_mut(MAX_WRITE_LEN);
        Stdin {
            target,
            piece,
            at: 0,
            len: 0,
            token: 0,
            id: [0; 16],
            offset: 0,
            total: 0,
            named: NamedWrites::new(writes),
            at_line_start: true,
        }
    }
    pub fn null(memory: &'static mut [u8]) -> Stdin {
        Stdin::new(Target::Null, memory)
    }
    pub fn pipe(fd: OwnedFd, memory: &'static mut [u8]) -> Stdin {
        Stdin::new(Target::Pipe(fd), memory)
    }
    pub fn pty(memory: &'static mut [u8]) -> Stdin {
        Stdin::new(Target::Pty, memory)
    }

    pub fn is_closed(&self) -> bool {
        matches!(self.target, Target::Closed)
    }

    pub fn waits_for_pty(&self) -> bool {
        matches!(self.target, Target::Pty) && self.len > 0
    }

    /// Drops the piece that waits for a daemon that is gone. The bytes written are remembered.
    pub fn caller_gone(&mut self) {
        self.len = 0;
    }
}

impl Shim {
    pub fn stdin_write(&mut self, token: u64, id: [u8; 16], offset: u64, total: u64, data: &[u8]) {
        match self.stdin.named.find(&id) {
            Some((done, true)) => return self.send(&FromShim::Wrote { token, done, state: Wrote::Duplicate }),
            // A daemon that died half-way: the rest is still wanted.
            Some((done, false)) if done > offset => {
                return self.send(&FromShim::Wrote { token, done, state: Wrote::More });
            }
            Some(_) | None => {}
        }
        if matches!(self.stdin.target, Target::Null | Target::Closed) || data.len() > MAX_WRITE_LEN {
            return self.send(&FromShim::Wrote { token, done: offset, state: Wrote::Broken });
        }
        if total == 0 && self.stdin_has_no_reader() {
            self.stdin_close_pipe();
            return self.send(&FromShim::Wrote { token, done: offset, state: Wrote::Broken });
        }
        let s = &mut self.stdin;
        s.piece[..data.len()].copy_from_slice(data);
        s.at = 0;
        s.len = data.len();
        s.token = token;
        s.id = id;
        s.offset = offset;
        s.total = total;
        self.stdin_push();
    }

    /// Reports what is known of a named write, whatever waits: the bytes done, and whether it is finished.
    pub fn stdin_find(&mut self, token: u64, id: [u8; 16]) {
        let (done, state) = match self.stdin.named.find(&id) {
            Some((done, true)) => (done, Wrote::Duplicate),
            Some((done, false)) => (done, Wrote::More),
            None => (0, Wrote::More),
        };
        self.send(&FromShim::Wrote { token, done, state });
    }

    /// Checks that no process can read the pipe any more. A write of 0 bytes asks this, and write(2) would not report it.
    fn stdin_has_no_reader(&self) -> bool {
        let Target::Pipe(fd) = &self.stdin.target else { return false };
        let mut look = [PollFd::new(fd, PollFlags::OUT)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut look, Some(&now)), Ok(1)) && look[0].revents().contains(PollFlags::ERR)
    }

    /// Writes as much as fits into the pipe or terminal now.
    fn stdin_push(&mut self) {
        loop {
            let s = &mut self.stdin;
            let done = s.offset + s.at as u64;
            if s.at == s.len {
                let state = if done >= s.total { Wrote::Complete } else { Wrote::More };
                return self.stdin_finish(done, state);
            }
            let piece = &s.piece[s.at..s.len];
            let wrote = match (&s.target, &self.output.out) {
                (Target::Pipe(fd), _) => rustix::io::write(fd, piece),
                (Target::Pty, Some(master)) => rustix::io::write(master, piece),
                (Target::Pty, None) | (Target::Null | Target::Closed, _) => Err(Errno::PIPE),
            };
            match wrote {
                Ok(n) => {
                    s.at_line_start = s.piece[..s.at + n].last() == Some(&b'\n');
                    s.at += n;
                    let (id, done) = (s.id, s.offset + s.at as u64);
                    s.named.record(&id, done, false);
                    self.active_at = mono_ms();
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return self.stdin_watch(),
                Err(_) => {
                    self.stdin_close_pipe();
                    return self.stdin_finish(done, Wrote::Broken);
                }
            }
        }
    }

    fn stdin_watch(&mut self) {
        match &self.stdin.target {
            Target::Pipe(fd) => {
                let _ = watch(&self.prepared.epoll, fd.as_fd(), token::STDIN, EventFlags::OUT);
            }
            Target::Pty => self.watch_pty(true),
            Target::Null | Target::Closed => {}
        }
    }

    fn stdin_unwatch(&mut self) {
        match &self.stdin.target {
            Target::Pipe(fd) => unwatch(&self.prepared.epoll, fd.as_fd()),
            Target::Pty => self.watch_pty(false),
            Target::Null | Target::Closed => {}
        }
    }

    pub fn stdin_event(&mut self) {
        self.stdin_unwatch();
        if self.stdin.len > 0 {
            self.stdin_push();
        }
    }

    fn stdin_finish(&mut self, done: u64, state: Wrote) {
        let (id, token) = (self.stdin.id, self.stdin.token);
        let finished = !matches!(state, Wrote::More);
        self.stdin.named.record(&id, done, finished);
        self.stdin.len = 0;
        self.send(&FromShim::Wrote { token, done, state });
    }

    pub fn stdin_stop(&mut self, token: u64) {
        // Without a waiting piece, the answer was sent already.
        if self.stdin.len > 0 && self.stdin.token == token {
            self.stdin_unwatch();
            let done = self.stdin.offset + self.stdin.at as u64;
            self.stdin_finish(done, Wrote::Stopped);
        }
    }

    fn stdin_close_pipe(&mut self) {
        if matches!(self.stdin.target, Target::Pipe(_)) {
            self.stdin_unwatch();
            self.stdin.target = Target::Closed;
            self.write_progress();
        }
    }

    /// Answers the piece that waits for space, if one does: its rest is not written any more.
    fn stdin_break_off(&mut self) {
        if self.stdin.len > 0 {
            let done = self.stdin.offset + self.stdin.at as u64;
            self.stdin_finish(done, Wrote::Broken);
        }
    }

    /// Notes that the terminal is closed.
    pub fn stdin_pty_gone(&mut self) {
        self.stdin.target = Target::Closed;
        self.stdin_break_off();
    }

    /// Closes the pipe, or types end-of-file on a terminal: not before a piece that waits, whose end it would cut off.
    pub fn stdin_close(&mut self, token: u64) {
        let result = match &self.stdin.target {
            Target::Pipe(_) => {
                self.stdin_close_pipe();
                self.stdin_break_off();
                Ok(())
            }
            Target::Pty if self.stdin.len > 0 => Err(Errno::AGAIN),
            Target::Pty => self.type_eof(),
            Target::Null | Target::Closed => Err(Errno::PIPE),
        };
        self.send_done(token, result);
    }
}
