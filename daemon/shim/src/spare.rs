//! Spare shims: each waits in a slot for a request, and returns to a slot when its program is over.
//!
//! A shim that returns costs neither a fork nor an exit. It returns only to the daemon that it came from: when that
//! daemon disconnects, or the zygote ends, the shim drops its link to the zygote and exits when its work is done.

use crate::sys;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, Ordering};

/// The number of shims that wait at least. One serves a start while the next is forked; the second takes a burst of two.
const MIN_SPARES: usize = 2;
/// The number of shims that wait at most, each in memory of its own.
pub const MAX_SPARES: usize = 4;
/// The value of a slot whose shim is being forked.
const RESERVED: i32 = -1;

/// The pids of the spares, in memory that zygote and shims share. 0 is a free slot.
#[derive(Clone, Copy)]
pub struct SpareSlots {
    all: &'static [AtomicI32],
}

impl SpareSlots {
    /// Makes slots for at least one shim.
    pub fn new(max: usize) -> Option<SpareSlots> {
        Some(SpareSlots { all: sys::shared_atomics(max.max(1))? })
    }

    /// Returns true if another shim should wait.
    pub fn has_too_few(&self) -> bool {
        self.occupied() < MIN_SPARES.min(self.all.len())
    }

    /// Counts the shims that wait, or are about to.
    pub fn occupied(&self) -> usize {
        self.all.iter().filter(|slot| slot.load(Ordering::Acquire) != 0).count()
    }

    /// Takes a free slot. None: enough shims wait already.
    pub fn claim(&self, pid: i32) -> Option<usize> {
        self.all.iter().position(|slot| self.swap(slot, 0, pid))
    }

    /// Reserves a slot for the shim that is forked next.
    pub fn reserve(&self) -> Option<usize> {
        self.claim(RESERVED)
    }

    /// Fills a reserved slot. Both sides of the fork do so: the second finds it done.
    pub fn fill(&self, slot: usize, pid: i32) {
        self.swap(&self.all[slot], RESERVED, pid);
    }

    /// Frees a slot, also a reserved one.
    pub fn release(&self, slot: usize) {
        self.all[slot].store(0, Ordering::Release);
    }

    /// Frees the slot of a shim that died.
    pub fn release_pid(&self, pid: i32) {
        for slot in self.all {
            self.swap(slot, pid, 0);
        }
    }

    fn swap(&self, slot: &AtomicI32, from: i32, to: i32) -> bool {
        slot.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// A shim's link to the zygote.
pub struct SpareLink {
    /// Carries the requests.
    pub socket: OwnedFd,
    /// The pipe to the zygote, which also shows whether it lives: an error when it is gone.
    pub zygote: OwnedFd,
    pub slots: SpareSlots,
}

impl SpareLink {
    /// Waits in a slot for a request, and frees the slot. None: the daemon is gone.
    pub fn wait(&self, slot: usize) -> Option<OwnedFd> {
        let control = loop {
            match receive(&self.socket) {
                Err(Errno::INTR) => {}
                other => break other.ok().flatten(),
            }
        };
        self.slots.release(slot);
        control
    }

    /// Asks for another spare, if too few wait. Called when the start is done: the fork would have taken a CPU from it.
    pub fn request_spare(&self) {
        if self.slots.has_too_few() {
            let _ = rustix::io::write(&self.zygote, b"s");
        }
    }
}

/// Receives one request: a byte, and a descriptor beside it. None at the end of the socket.
fn receive(socket: &OwnedFd) -> Result<Option<OwnedFd>, Errno> {
    let mut byte = [0u8; 8];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut parts = [std::io::IoSliceMut::new(&mut byte)];
    let got = recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC)?;
    if got.bytes == 0 {
        return Ok(None);
    }
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(mut fds) = message
            && let Some(fd) = fds.next()
        {
            return Ok(Some(fd));
        }
    }
    Err(Errno::BADMSG)
}

#[cfg(test)]
mod tests {
    use super::{MAX_SPARES, SpareSlots};

    #[test]
    fn a_slot_belongs_to_one_shim() {
        let slots = SpareSlots::new(MAX_SPARES).expect("there is memory");
        let all: Vec<_> = (1..=MAX_SPARES as i32).map(|pid| slots.claim(pid)).collect();
        assert_eq!(all, (0..MAX_SPARES).map(Some).collect::<Vec<_>>());
        assert_eq!(slots.claim(99), None);
        slots.release(1);
        assert_eq!((slots.occupied(), slots.claim(99)), (MAX_SPARES - 1, Some(1)));
    }

    #[test]
    fn one_slot_is_enough_for_one_spare() {
        let slots = SpareSlots::new(1).expect("there is memory");
        assert!(slots.has_too_few());
        assert_eq!((slots.claim(7), slots.has_too_few(), slots.claim(8)), (Some(0), false, None));
    }

    #[test]
    fn a_reserved_slot_is_filled_once_by_the_first_side_of_the_fork() {
        let slots = SpareSlots::new(MAX_SPARES).expect("there is memory");
        let slot = slots.reserve().expect("there is memory");
        // The child was faster: it filled the slot and freed it with a request before its parent filled it.
        slots.fill(slot, 7);
        slots.release(slot);
        slots.fill(slot, 7);
        assert_eq!(slots.occupied(), 0);
    }

    #[test]
    fn a_shim_that_dies_frees_its_slot() {
        let slots = SpareSlots::new(MAX_SPARES).expect("there is memory");
        let slot = slots.reserve().expect("there is memory");
        slots.fill(slot, 7);
        slots.release_pid(8);
        assert_eq!(slots.occupied(), 1);
        slots.release_pid(7);
        assert_eq!(slots.occupied(), 0);
    }
}
