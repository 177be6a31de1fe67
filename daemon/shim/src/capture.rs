//! Output: from pipe or terminal into the log, one read at a time, in the order of arrival.

use super::hold::HeldOutput;
use super::run::Shim;
use crate::clock::{mono_ms, wall_ms};
use crate::hooks;
use crate::sys;
use rustix::event::epoll::EventFlags;
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use toold_format::Stream;
use toold_format::frame::FromShim;
use toold_format::slots;

/// The most that one read takes. Pages of it that no read reached cost no memory.
pub const READ_BUF_LEN: usize = 256 * 1024;
/// A pipe that is found with this many bytes is enlarged.
const FULL_PIPE_LEN: usize = 60 * 1024;
/// The size of a busy pipe, so that writer and reader need not take turns.
const LARGE_PIPE_LEN: usize = 1024 * 1024;
/// The delay after the last large read before the buffer's pages are returned to the kernel.
const RELEASE_DELAY_MS: u64 = 200;
/// A read of more bytes than this touches pages that are worth returning.
const LARGE_READ_LEN: usize = 4096;
/// The most that is drained from a terminal, which does not count its bytes reliably.
const MAX_PTY_DRAIN_LEN: usize = 64 * 1024;
/// The delay before the closed output of a program that still runs is reported.
const CLOSE_DELAY_MS: u64 = 50;

/// The reading ends, and the memory to read into.
pub struct Output {
    pub out: Option<OwnedFd>,
    pub err: Option<OwnedFd>,
    pub is_pty: bool,
    /// No process has the terminal open, and the program runs: it may open it again.
    pub hung_up: bool,
    /// Output that waits for its reader. While there is some, nothing is read.
    pub held: Option<HeldOutput>,
    /// The program has ended, and what it wrote before is not all read: it waits for its reader.
    pub undrained: bool,
    enlarged: bool,
    release_at: Option<u64>,
    buffer: &'static mut [u8],
}

/// The result of one read.
enum ReadResult {
    Bytes(usize),
    Nothing,
    End,
}

impl Output {
    pub fn new(out: OwnedFd, err: Option<OwnedFd>, is_pty: bool, buffer: &'static mut [u8]) -> Output {
        Output {
            out: Some(out),
            err,
            is_pty,
            hung_up: false,
            held: None,
            undrained: false,
            enlarged: false,
            release_at: None,
            buffer,
        }
    }

    /// Keeps output in the buffer, whose pages are needed until it is stored.
    pub fn hold(&mut self, held: HeldOutput) {
        self.held = Some(held);
        self.release_at = None;
    }

    /// Returns the events to watch the streams for. A stream that no process has open is always ready, so while nothing is
    /// read only a change may wake us.
    pub fn watch_flags(&self) -> EventFlags {
        if self.held.is_some() { EventFlags::ET } else { EventFlags::IN }
    }

    /// Returns the buffer's pages to the kernel a moment later.
    pub fn release_later(&mut self) {
        self.release_at = Some(mono_ms() + RELEASE_DELAY_MS);
    }

    pub fn bytes(&self, from: usize, to: usize) -> &[u8] {
        self.buffer.get(from..to).unwrap_or_default()
    }

    /// The time at which the buffer's pages are returned to the kernel.
    pub fn release_at(&self) -> Option<u64> {
        self.release_at
    }

    /// Returns the buffer's pages to the kernel if that is due.
    fn release_if_idle(&mut self, now: u64) -> bool {
        let idle = self.release_at.is_some_and(|at| now >= at);
        if idle {
            self.release_at = None;
            // SAFETY: the buffer is part of the arena, which is a mapping from `map_anonymous`.
            unsafe { sys::discard_pages(self.buffer) };
        }
        idle
    }

    fn fd(&self, stream: Stream) -> Option<&OwnedFd> {
        match stream {
            Stream::Stdout => self.out.as_ref(),
            Stream::Stderr => self.err.as_ref(),
        }
    }

    fn read(&mut self, stream: Stream) -> ReadResult {
        // Not `self.fd`, which would borrow the buffer too.
        let fd = match stream {
            Stream::Stdout => self.out.as_ref(),
            Stream::Stderr => self.err.as_ref(),
        };
        let Some(fd) = fd else { return ReadResult::Nothing };
        match rustix::io::read(fd, &mut *self.buffer) {
            Ok(0) => ReadResult::End,
            Ok(n) => {
                if n >= FULL_PIPE_LEN && !self.enlarged && !self.is_pty {
                    // Refused beyond the user's share of pipe memory, and then it stays as it is.
                    self.enlarged = rustix::pipe::fcntl_setpipe_size(fd, LARGE_PIPE_LEN).is_ok();
                }
                if n > LARGE_READ_LEN {
                    self.release_later();
                }
                ReadResult::Bytes(n)
            }
            Err(Errno::AGAIN | Errno::INTR) => ReadResult::Nothing,
            // A terminal that no process has open returns EIO.
            Err(_) => ReadResult::End,
        }
    }
}

impl Shim {
    /// Reads once from a stream that is readable.
    pub fn capture(&mut self, stream: Stream) {
        if self.output.held.is_some() {
            // Its event came with the one that found the log full.
            return;
        }
        match self.output.read(stream) {
            ReadResult::Bytes(n) => {
                self.set_pty_hung_up(false);
                self.store(stream, n);
            }
            ReadResult::Nothing => {}
            ReadResult::End if self.output.is_pty && self.exit.is_none() => self.set_pty_hung_up(true),
            ReadResult::End => self.close_stream(stream),
        }
    }

    /// Releases, some time after a flood of output, the memory and the disk blocks that only a flood needs.
    pub fn release_idle(&mut self, now: u64) {
        if self.output.release_if_idle(now) {
            self.log.release_reserved();
        }
    }

    fn store(&mut self, stream: Stream, n: usize) {
        hooks::at("output.read");
        let taken = self.log.append(stream, &self.output.buffer[..n], wall_ms());
        hooks::at("output.appended");
        if taken < n {
            self.hold_back(stream, taken, n);
        }
        self.output_stored();
    }

    /// Counts output that was stored, and reports it to a daemon that waits for it.
    pub fn output_stored(&mut self) {
        self.active_at = mono_ms();
        self.write_progress();
        hooks::at("output.counted");
        self.ring_bell();
    }

    fn close_stream(&mut self, stream: Stream) {
        // Closing it also ends the watch: no other process has our end.
        match stream {
            Stream::Stdout => self.output.out = None,
            Stream::Stderr => self.output.err = None,
        }
        if self.output.is_pty {
            self.stdin_pty_gone();
        }
        if self.output.out.is_none() && self.output.err.is_none() && !self.closed {
            self.closed = true;
            self.log.release_reserved();
            self.write_progress();
            self.write_slot(slots::CLOSED_AT, &slots::closed_slot(wall_ms()));
            // A program that ends closes its output just before. The daemon is to receive the exit first, so the
            // close is reported only of a program that still runs a moment later.
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

    /// Reads what the program wrote before its end.
    pub fn drain(&mut self) {
        self.output.undrained = !self.read_waiting(true);
    }

    /// Reads the bytes that are in the pipes now, and no more: a program that continues to write cannot hold us. Stops
    /// where the rest waits for its reader, and then returns false.
    pub fn read_waiting(&mut self, has_exited: bool) -> bool {
        for stream in [Stream::Stdout, Stream::Stderr] {
            let mut left = match self.output.fd(stream) {
                Some(_) if self.output.is_pty => MAX_PTY_DRAIN_LEN,
                Some(fd) => sys::bytes_readable(fd.as_fd()),
                None => 0,
            };
            // One read more than there are bytes: without an orphaned descendant the end is there already.
            left += 1;
            while left > 0 {
                if self.output.held.is_some() {
                    return false;
                }
                match self.output.read(stream) {
                    ReadResult::Bytes(n) => {
                        self.set_pty_hung_up(false);
                        self.store(stream, n);
                        left = left.saturating_sub(n);
                    }
                    ReadResult::Nothing => break,
                    ReadResult::End if self.output.is_pty && !has_exited => {
                        self.set_pty_hung_up(true);
                        break;
                    }
                    ReadResult::End => {
                        self.close_stream(stream);
                        break;
                    }
                }
            }
        }
        true
    }
}
