//! Output that is kept for a reader: at the cap its program is held back, instead of dropping bytes that were not read.
//!
//! The daemon knows the reader and reports how far it has read. While no daemon does, the hold lasts a bounded time.

use super::run::{Shim, rewatch, token};
use crate::clock::{mono_ms, wall_ms};
use crate::hooks;
use rustix::fd::AsFd;
use toold_format::Stream;
use toold_format::frame::FromShim;

/// The hold of one process. Pure: times are arguments.
#[derive(Debug, PartialEq, Eq)]
pub struct Hold {
    /// The reader has read everything before. None: there is no reader.
    read_to: Option<u64>,
    /// The longest time in which no daemon reports a reader.
    unclaimed_ms: u64,
    /// The end of that time, while it runs.
    release_at: Option<u64>,
}

impl Hold {
    /// Starts with the hold that a launch asks for. Until a daemon reports a reader, it is unclaimed.
    pub fn new(unclaimed_ms: u32, now: u64) -> Hold {
        let unclaimed_ms = u64::from(unclaimed_ms);
        let is_held = unclaimed_ms > 0;
        Hold {
            read_to: is_held.then_some(0),
            unclaimed_ms,
            release_at: is_held.then(|| now.saturating_add(unclaimed_ms)),
        }
    }

    /// A daemon reports a reader and its position.
    fn claim(&mut self, read_to: u64) {
        self.read_to = Some(read_to);
        self.release_at = None;
    }

    fn release(&mut self) {
        self.read_to = None;
        self.release_at = None;
    }

    /// The daemon that knew the reader is gone: the next one has a bounded time to report it.
    pub fn daemon_gone(&mut self, now: u64) {
        if self.read_to.is_some() && self.release_at.is_none() {
            self.release_at = Some(now.saturating_add(self.unclaimed_ms));
        }
    }

    /// Returns the time at which the hold ends by itself.
    pub fn release_at(&self) -> Option<u64> {
        self.release_at
    }

    /// Returns the offset from which on bytes are kept; `u64::MAX` without a reader.
    pub fn keep_from(&self) -> u64 {
        self.read_to.unwrap_or(u64::MAX)
    }
}

/// Output that was read from the program and does not fit into the log: bytes `from..to` of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeldOutput {
    stream: Stream,
    from: usize,
    to: usize,
}

impl Shim {
    /// A daemon reports a reader of the output, or that there is none any more.
    pub fn set_hold(&mut self, held: bool, read_to: u64) {
        if held {
            self.hold.claim(read_to);
            hooks::at("hold.claimed");
        } else {
            self.hold.release();
            hooks::at("hold.released");
        }
        self.apply_hold();
    }

    /// Ends a hold that no daemon claimed in time.
    pub fn hold_tick(&mut self, now: u64) {
        if self.hold.release_at().is_some_and(|at| now >= at) {
            self.hold.release();
            self.apply_hold();
        }
    }

    /// Returns true if output of the program waits for its reader.
    pub fn is_held_back(&self) -> bool {
        self.output.held.is_some() || self.output.undrained
    }

    /// Keeps the rest of what was read, and reads no more: the pipes fill up, and the program waits.
    pub fn hold_back(&mut self, stream: Stream, from: usize, to: usize) {
        self.output.hold(HeldOutput { stream, from, to });
        self.log.release_reserved();
        self.watch_output();
        hooks::at("hold.full");
    }

    /// Stores output that waited, as far as there is room now, and reads again once all of it is stored.
    fn apply_hold(&mut self) {
        self.log.keep_from(self.hold.keep_from());
        let Some(HeldOutput { stream, from, to }) = self.output.held else { return };
        let taken = self.log.append(stream, self.output.bytes(from, to), wall_ms());
        let left = HeldOutput { stream, from: from + taken, to };
        self.output.held = (left.from < to).then_some(left);
        if self.output.held.is_none() {
            self.read_again();
        }
        if taken > 0 {
            self.output_stored();
        }
        if self.output.held.is_none() && self.output.undrained {
            self.drain();
            if !self.output.undrained {
                // All that the program wrote is stored. Who waits for that may wait for nothing else.
                self.write_progress();
                let progress = self.progress();
                self.send(&FromShim::Bell { progress });
            }
        }
    }

    fn read_again(&mut self) {
        self.output.release_later();
        // It printed nothing because it could not.
        self.active_at = mono_ms();
        self.watch_output();
        hooks::at("hold.resumed");
    }

    /// Watches the streams for output, or not while some waits for its reader.
    fn watch_output(&mut self) {
        if self.output.is_pty {
            return self.watch_pty(self.stdin.waits_for_pty());
        }
        let flags = self.output.watch_flags();
        for (fd, token) in [(&self.output.out, token::OUT), (&self.output.err, token::ERR)] {
            if let Some(fd) = fd {
                rewatch(&self.prepared.epoll, fd.as_fd(), token, flags);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_kept_from_where_the_reader_is_and_not_without_one() {
        let mut hold = Hold::new(0, 5);
        assert_eq!((hold.keep_from(), hold.release_at()), (u64::MAX, None));
        hold.daemon_gone(6);
        assert_eq!(hold.release_at(), None, "nothing is held");
        hold.claim(70);
        assert_eq!((hold.keep_from(), hold.release_at()), (70, None));
        hold.claim(90);
        assert_eq!(hold.keep_from(), 90);
        hold.release();
        assert_eq!(hold, Hold::new(0, 0));
    }

    #[test]
    fn a_hold_without_a_daemon_that_knows_the_reader_ends_after_a_bounded_time() {
        let mut hold = Hold::new(60, 100);
        assert_eq!((hold.keep_from(), hold.release_at()), (0, Some(160)), "held from the start, and unclaimed");
        hold.daemon_gone(110);
        assert_eq!(hold.release_at(), Some(160), "not longer");
        hold.claim(8);
        assert_eq!(hold.release_at(), None, "as long as the daemon is there");
        hold.daemon_gone(500);
        assert_eq!((hold.keep_from(), hold.release_at()), (8, Some(560)));
        hold.daemon_gone(550);
        assert_eq!(hold.release_at(), Some(560), "another daemon that came and went changes nothing");
        hold.claim(9);
        assert_eq!((hold.keep_from(), hold.release_at()), (9, None));
        assert_eq!(Hold::new(u32::MAX, u64::MAX).release_at(), Some(u64::MAX));
    }
}
