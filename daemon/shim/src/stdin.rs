//! The program's input: written piece by piece, at most once, never waiting for a slow reader.

use super::run::{Shim, tag, unwatch, watch};
use crate::clock::mono_ms;
use rustix::event::epoll::EventFlags;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use toold_format::frame::{FromShim, WRITE_MAX, Wrote};
use toold_format::slots;

/// Named writes that are remembered. A client repeats its last ones, not those of long ago.
const NAMES: usize = 128;
const NAME_BYTES: usize = 32;
pub const MEMORY: usize = WRITE_MAX + NAMES * NAME_BYTES;

enum End {
    Null,
    Pipe(OwnedFd),
    Closed,
    /// The terminal's master, which `capture` owns.
    Terminal,
}

pub struct Stdin {
    end: End,
    /// The piece that waits for room.
    piece: &'static mut [u8],
    at: usize,
    len: usize,
    token: u64,
    id: [u8; 16],
    offset: u64,
    total: u64,
    /// id, bytes done, 1 when it is over: 32 bytes each, the oldest overwritten first.
    names: &'static mut [u8],
    next_name: usize,
    /// Whether the last byte typed ended a line.
    at_line_start: bool,
}

impl Stdin {
    fn new(end: End, memory: &'static mut [u8]) -> Stdin {
        let (piece, names) = memory.split_at_mut(WRITE_MAX);
        Stdin {
            end,
            piece,
            at: 0,
            len: 0,
            token: 0,
            id: [0; 16],
            offset: 0,
            total: 0,
            names,
            next_name: 0,
            at_line_start: true,
        }
    }
    pub fn null(memory: &'static mut [u8]) -> Stdin {
        Stdin::new(End::Null, memory)
    }
    pub fn pipe(fd: OwnedFd, memory: &'static mut [u8]) -> Stdin {
        Stdin::new(End::Pipe(fd), memory)
    }
    pub fn terminal(memory: &'static mut [u8]) -> Stdin {
        Stdin::new(End::Terminal, memory)
    }

    pub fn is_closed(&self) -> bool {
        matches!(self.end, End::Closed)
    }

    pub fn waits_for_terminal(&self) -> bool {
        matches!(self.end, End::Terminal) && self.len > 0
    }

    pub fn terminal_gone(&mut self) {
        self.end = End::Closed;
        self.len = 0;
    }

    /// The daemon that asked is gone: what waits is dropped, what was done is remembered.
    pub fn caller_gone(&mut self) {
        self.len = 0;
    }

    /// Bytes done of a named write, and whether it is over. None: never seen, or unnamed.
    fn seen(&self, id: &[u8; 16]) -> Option<(u64, bool)> {
        if *id == [0; 16] {
            return None;
        }
        let entry = self.names.chunks_exact(NAME_BYTES).find(|e| e[..16] == id[..])?;
        let done = u64::from_le_bytes(entry[16..24].try_into().ok()?);
        Some((done, entry[24] == 1))
    }

    fn remember(&mut self, id: &[u8; 16], done: u64, over: bool) {
        if *id == [0; 16] {
            return;
        }
        let known = self.names.chunks_exact(NAME_BYTES).position(|e| e[..16] == id[..]);
        let at = known.unwrap_or_else(|| {
            let at = self.next_name;
            self.next_name = (at + 1) % NAMES;
            at
        });
        if let Some(entry) = self.names.chunks_exact_mut(NAME_BYTES).nth(at) {
            entry[..16].copy_from_slice(id);
            entry[16..24].copy_from_slice(&done.to_le_bytes());
            entry[24] = u8::from(over);
        }
    }
}

impl Shim {
    /// Puts the named writes into the record, for who repeats one after the exit.
    pub fn record_names(&self) {
        let mut out = [0u8; slots::NAME * slots::NAMES];
        // The newest last ones fit: a client repeats its last writes.
        let newest = (0..NAMES).map(|back| (self.stdin.next_name + NAMES - 1 - back) % NAMES);
        let entries = newest.filter_map(|at| self.stdin.names.get(at * NAME_BYTES..(at + 1) * NAME_BYTES));
        let used = entries.filter(|e| e[..16] != [0; 16]);
        let mut any = false;
        for (entry, place) in used.zip(out.chunks_exact_mut(slots::NAME)) {
            place.copy_from_slice(&entry[..slots::NAME]);
            any = true;
        }
        if any {
            let _ = rustix::io::pwrite(&self.record, &out, slots::NAMES_AT);
        }
    }

    pub fn stdin_write(&mut self, token: u64, id: [u8; 16], offset: u64, total: u64, data: &[u8]) {
        match self.stdin.seen(&id) {
            Some((done, true)) => return self.tell(&FromShim::Wrote { token, done, state: Wrote::Duplicate }),
            // A daemon that died half-way: the rest is still wanted.
            Some((done, false)) if done > offset => {
                return self.tell(&FromShim::Wrote { token, done, state: Wrote::More });
            }
            Some(_) | None => {}
        }
        if matches!(self.stdin.end, End::Null | End::Closed) || data.len() > WRITE_MAX {
            return self.tell(&FromShim::Wrote { token, done: offset, state: Wrote::Broken });
        }
        if total == 0 && self.stdin_abandoned() {
            self.stdin_shut();
            return self.tell(&FromShim::Wrote { token, done: offset, state: Wrote::Broken });
        }
        let s = &mut self.stdin;
        s.piece[..data.len()].copy_from_slice(data);
        (s.at, s.len, s.token, s.id, s.offset, s.total) = (0, data.len(), token, id, offset, total);
        self.stdin_push();
    }

    /// Whether nobody is left who could read the pipe: a write of nothing asks just that, and write(2) would not tell.
    fn stdin_abandoned(&self) -> bool {
        let End::Pipe(fd) = &self.stdin.end else { return false };
        let mut look = [PollFd::new(fd, PollFlags::OUT)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        matches!(poll(&mut look, Some(&now)), Ok(1)) && look[0].revents().contains(PollFlags::ERR)
    }

    /// Writes what the reader takes now.
    fn stdin_push(&mut self) {
        loop {
            let s = &mut self.stdin;
            let done = s.offset + s.at as u64;
            if s.at == s.len {
                let state = if done >= s.total { Wrote::Complete } else { Wrote::More };
                return self.stdin_over(done, state);
            }
            let piece = &s.piece[s.at..s.len];
            let wrote = match (&s.end, &self.output.out) {
                (End::Pipe(fd), _) => rustix::io::write(fd, piece),
                (End::Terminal, Some(master)) => rustix::io::write(master, piece),
                (End::Terminal, None) | (End::Null | End::Closed, _) => Err(Errno::PIPE),
            };
            match wrote {
                Ok(n) => {
                    s.at_line_start = s.piece[..s.at + n].last() == Some(&b'\n');
                    s.at += n;
                    let (id, done) = (s.id, s.offset + s.at as u64);
                    s.remember(&id, done, false);
                    self.active_at = mono_ms();
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return self.stdin_watch(),
                Err(_) => {
                    self.stdin_shut();
                    return self.stdin_over(done, Wrote::Broken);
                }
            }
        }
    }

    fn stdin_watch(&mut self) {
        match &self.stdin.end {
            End::Pipe(fd) => {
                let _ = watch(&self.ready.epoll, fd.as_fd(), tag::STDIN, EventFlags::OUT);
            }
            End::Terminal => self.watch_terminal(true),
            End::Null | End::Closed => {}
        }
    }

    fn stdin_unwatch(&mut self) {
        match &self.stdin.end {
            End::Pipe(fd) => unwatch(&self.ready.epoll, fd.as_fd()),
            End::Terminal => self.watch_terminal(false),
            End::Null | End::Closed => {}
        }
    }

    pub fn stdin_event(&mut self) {
        self.stdin_unwatch();
        if self.stdin.len > 0 {
            self.stdin_push();
        }
    }

    fn stdin_over(&mut self, done: u64, state: Wrote) {
        let (id, token) = (self.stdin.id, self.stdin.token);
        let over = !matches!(state, Wrote::More);
        self.stdin.remember(&id, done, over);
        self.stdin.len = 0;
        self.tell(&FromShim::Wrote { token, done, state });
    }

    pub fn stdin_stop(&mut self, token: u64) {
        // Nothing waits: the answer is already on its way.
        if self.stdin.len > 0 && self.stdin.token == token {
            self.stdin_unwatch();
            let done = self.stdin.offset + self.stdin.at as u64;
            self.stdin_over(done, Wrote::Stopped);
        }
    }

    fn stdin_shut(&mut self) {
        if matches!(self.stdin.end, End::Pipe(_)) {
            self.stdin_unwatch();
            self.stdin.end = End::Closed;
            self.write_progress();
        }
    }

    /// Closes the pipe, or types end-of-file.
    pub fn stdin_close(&mut self, token: u64) {
        let result = match &self.stdin.end {
            End::Pipe(_) => {
                self.stdin_shut();
                Ok(())
            }
            End::Terminal => self.type_end(),
            End::Null | End::Closed => Err(Errno::PIPE),
        };
        self.done(token, result);
    }

    /// A terminal in line mode takes one end-of-file character at the start of a line for the end,
    /// and elsewhere as "send what you have": there it needs a second.
    fn type_end(&mut self) -> Result<(), Errno> {
        let Some(master) = &self.output.out else { return Err(Errno::PIPE) };
        let modes = rustix::termios::tcgetattr(master)?;
        let end = modes.special_codes[rustix::termios::SpecialCodeIndex::VEOF];
        let twice = modes.local_modes.contains(rustix::termios::LocalModes::ICANON) && !self.stdin.at_line_start;
        let typed = [end, end];
        rustix::io::write(master, if twice { &typed } else { &typed[..1] })?;
        self.stdin.at_line_start = true;
        Ok(())
    }

    pub fn resize(&mut self, token: u64, rows: u16, cols: u16) {
        let result = match &self.output.out {
            Some(master) if self.output.terminal => {
                let size = rustix::termios::Winsize { ws_row: rows, ws_col: cols, ws_xpixel: 0, ws_ypixel: 0 };
                rustix::termios::tcsetwinsize(master, size)
            }
            Some(_) | None => Err(Errno::NOTTY),
        };
        if result.is_ok() {
            (self.rows, self.cols) = (rows, cols);
            self.write_progress();
        }
        self.done(token, result);
    }
}
