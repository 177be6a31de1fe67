//! Output that is kept for the connection that started a process: the shim holds the program back at the log's cap, and drops
//! nothing that this connection has not read. The hold ends with the connection.
//!
//! This daemon knows the connection and its position. The shim does the rest, and goes on for a bounded time without a daemon.

use super::Proc;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use toold_format::frame::ToShim;

/// The hold of one process that was started with `hold`.
#[derive(Debug, Default)]
pub struct Hold(Mutex<HoldState>);

#[derive(Debug, Default)]
struct HoldState {
    holder: Holder,
    read_to: u64,
    /// The shim does not know this yet.
    unsent: bool,
    /// The positions of connections that read before any had the hold: a subscription may get output before the answer of `exec`.
    early: Vec<(u64, u64)>,
}

/// The connection for which output is kept.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Holder {
    /// None is known here: a start under way, or a process of an earlier daemon. The shim counts the time.
    #[default]
    Unclaimed,
    Connection(u64),
    /// It is gone.
    Released,
}

impl HoldState {
    fn set(&mut self, holder: Holder, read_to: u64) {
        *self = HoldState { holder, read_to, unsent: true, early: Vec::new() };
    }
}

impl Hold {
    fn lock(&self) -> MutexGuard<'_, HoldState> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Takes the hold for a connection that has read up to `read_to`. The newest one has it. Returns false if it had it
    /// already.
    fn take(&self, connection: u64, read_to: u64, claim: Claim) -> bool {
        let mut state = self.lock();
        let early = state.early.iter().find(|(by, _)| *by == connection && claim == Claim::Start);
        let read_to = early.map_or(read_to, |(_, early)| read_to.max(*early));
        let is_new = state.holder != Holder::Connection(connection);
        if is_new {
            state.set(Holder::Connection(connection), read_to);
        }
        is_new
    }

    /// Moves the position of the connection, which never goes back. Returns true if it moved.
    fn note_read(&self, connection: u64, read_to: u64) -> bool {
        let mut state = self.lock();
        if state.holder == Holder::Unclaimed {
            match state.early.iter_mut().find(|(by, _)| *by == connection) {
                Some((_, early)) => *early = read_to.max(*early),
                None => state.early.push((connection, read_to)),
            }
            return false;
        }
        let moved = state.holder == Holder::Connection(connection) && read_to > state.read_to;
        if moved {
            state.set(Holder::Connection(connection), read_to);
        }
        moved
    }

    fn is_held_by(&self, connection: u64) -> bool {
        self.lock().holder == Holder::Connection(connection)
    }

    fn is_free(&self) -> bool {
        !matches!(self.lock().holder, Holder::Connection(_))
    }

    /// Ends the hold of a connection. Returns false if it has none.
    fn release(&self, connection: u64) -> bool {
        let mut state = self.lock();
        let held = state.holder == Holder::Connection(connection);
        if held {
            state.set(Holder::Released, 0);
        }
        held
    }

    /// Notes that the shim has a new connection, which has not carried anything yet.
    fn resend(&self) {
        let mut state = self.lock();
        state.unsent = state.holder != Holder::Unclaimed;
    }

    /// Takes the frame that the shim is to get.
    fn take_frame(&self) -> Option<ToShim<'static>> {
        let mut state = self.lock();
        if !std::mem::take(&mut state.unsent) {
            return None;
        }
        match state.holder {
            Holder::Unclaimed => None,
            Holder::Connection(_) => Some(ToShim::Hold { held: true, read_to: state.read_to }),
            Holder::Released => Some(ToShim::Hold { held: false, read_to: 0 }),
        }
    }
}

impl Proc {
    /// Notes that a connection has read the output up to `cursor`. Concerns only the one for which it is kept.
    pub fn note_read(&self, connection: u64, cursor: u64) {
        if let Some(hold) = &self.hold
            && hold.note_read(connection, cursor)
        {
            self.wake.notify_one();
        }
    }

    /// Sends everything again, on a new connection to the shim.
    pub(super) fn resend_hold(&self) {
        if let Some(hold) = &self.hold {
            hold.resend();
            self.wake.notify_one();
        }
    }

    /// Takes the frame about the hold that the shim is to get.
    pub(super) fn take_hold_frame(&self) -> Option<ToShim<'static>> {
        self.hold.as_ref()?.take_frame()
    }

    /// Returns true if its output can be kept for a connection: it was started with `hold`.
    pub fn can_hold(&self) -> bool {
        self.hold.is_some()
    }

    pub fn is_held_by(&self, connection: u64) -> bool {
        self.hold.as_ref().is_some_and(|hold| hold.is_held_by(connection))
    }
}

/// The holds of one connection, which end with it.
#[derive(Debug, Default)]
pub struct ConnectionHolds(Mutex<HeldProcs>);

#[derive(Debug, Default)]
struct HeldProcs {
    procs: Vec<Weak<Proc>>,
    /// The connection is gone: what it takes from now on is released at once.
    is_closed: bool,
}

/// The circumstances in which a hold is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Claim {
    /// By whom started the process. What its subscription has read already counts.
    Start,
    /// By whom reads on, after a lost connection.
    Own,
    /// By whom was given a process of another: only if no connection has it.
    IfFree,
}

impl ConnectionHolds {
    /// Takes the hold of a process for this connection, which has read its output up to `read_to`. Without effect on a
    /// process that was started without one.
    pub fn take(&self, connection: u64, proc: &Arc<Proc>, read_to: u64, claim: Claim) {
        let Some(hold) = &proc.hold else { return };
        let mut held = self.lock();
        let is_wanted = claim != Claim::IfFree || hold.is_free();
        if !is_wanted || !hold.take(connection, read_to, claim) {
            return;
        }
        if held.is_closed {
            hold.release(connection);
        } else {
            // Only before it would grow: a connection that starts process after process keeps few.
            if held.procs.len() == held.procs.capacity() {
                held.procs.retain(|proc| proc.upgrade().is_some_and(|proc| !proc.published_state().closed));
            }
            held.procs.push(Arc::downgrade(proc));
        }
        proc.wake.notify_one();
    }

    /// Releases everything: the connection is gone.
    pub fn close(&self, connection: u64) {
        let procs = {
            let mut held = self.lock();
            held.is_closed = true;
            std::mem::take(&mut held.procs)
        };
        for proc in procs.iter().filter_map(Weak::upgrade) {
            if proc.hold.as_ref().is_some_and(|hold| hold.release(connection)) {
                proc.wake.notify_one();
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HeldProcs> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(held: bool, read_to: u64) -> Option<ToShim<'static>> {
        Some(ToShim::Hold { held, read_to })
    }

    #[test]
    fn the_shim_gets_each_change_once_and_the_whole_state_on_a_new_connection() {
        let hold = Hold::default();
        hold.resend();
        assert_eq!(hold.take_frame(), None, "what is not known is not sent");
        assert!(hold.take(7, 0, Claim::Start));
        assert_eq!((hold.take_frame(), hold.take_frame()), (frame(true, 0), None));
        assert!(hold.note_read(7, 100) && !hold.note_read(7, 90), "a position never goes back");
        assert_eq!((hold.take_frame(), hold.take_frame()), (frame(true, 100), None));
        hold.resend();
        assert_eq!(hold.take_frame(), frame(true, 100));
        assert!(!hold.note_read(8, 200), "another connection reads without an effect");
        assert!(hold.release(7) && !hold.release(7));
        assert_eq!((hold.take_frame(), hold.take_frame()), (frame(false, 0), None));
        hold.resend();
        assert_eq!(hold.take_frame(), frame(false, 0), "a release is not forgotten");
    }

    #[test]
    fn output_that_was_read_before_the_hold_was_taken_is_known() {
        let hold = Hold::default();
        assert!(!hold.note_read(7, 100) && !hold.note_read(8, 900) && !hold.note_read(7, 50));
        assert_eq!(hold.take_frame(), None);
        assert!(hold.take(7, 0, Claim::Start));
        assert_eq!(hold.take_frame(), frame(true, 100));
        let by_a_reader = Hold::default();
        by_a_reader.note_read(7, 100);
        assert!(by_a_reader.take(7, 20, Claim::Own), "a reader reports its own place");
        assert_eq!(by_a_reader.take_frame(), frame(true, 20));
    }

    #[test]
    fn the_newest_connection_has_the_hold_and_the_end_of_an_older_one_does_not_release_it() {
        let hold = Hold::default();
        let take = |connection, read_to| hold.take(connection, read_to, Claim::Own);
        assert!(take(1, 0) && !take(1, 0) && take(2, 50));
        assert_eq!(hold.take_frame(), frame(true, 50));
        assert!(!hold.release(1) && hold.is_held_by(2) && !hold.is_free());
        assert_eq!(hold.take_frame(), None);
    }
}
