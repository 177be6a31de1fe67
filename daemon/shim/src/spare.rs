//! A spare's slot at the zygote: where it waits for a request, and comes back to when its program is over.
//!
//! A shim that comes back costs neither a fork nor an exit. It comes back only to the daemon that sent it out: when that
//! one hangs up, or the zygote ends, the shim lets go of its spare_link and leaves when its work is done.

use crate::sys;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, Ordering};

/// Shims that wait at least. One serves a start while the next is forked; the second takes a burst of two.
pub const MIN_SPARES: usize = 2;
/// Shims that wait at most, in memory of their own each.
const MAX_SPARES: usize = 4;
/// A slot whose shim is being forked.
const RESERVED: i32 = -1;

/// The pids of those who wait, in memory that zygote and shims share. 0 is a free slot.
#[derive(Clone, Copy)]
pub struct SpareSlots {
    all: &'static [AtomicI32],
}

impl SpareSlots {
    pub fn new() -> Option<SpareSlots> {
        Some(SpareSlots { all: sys::shared_atomics(MAX_SPARES)? })
    }

    /// How many wait, or are about to.
    pub fn filled(&self) -> usize {
        self.all.iter().filter(|slot| slot.load(Ordering::Acquire) != 0).count()
    }

    /// Takes a free slot. None: enough wait already.
    pub fn claim(&self, pid: i32) -> Option<usize> {
        self.all.iter().position(|slot| self.swap(slot, 0, pid))
    }

    /// A slot for a shim that is forked next.
    pub fn reserve(&self) -> Option<usize> {
        self.claim(RESERVED)
    }

    /// The promise kept. Both sides of the fork say so: whoever comes second finds it done.
    pub fn fill(&self, slot: usize, pid: i32) {
        self.swap(&self.all[slot], RESERVED, pid);
    }

    /// Frees a slot, whoever has it.
    pub fn release(&self, slot: usize) {
        self.all[slot].store(0, Ordering::Release);
    }

    /// Frees the slot of one that died.
    pub fn release_pid(&self, pid: i32) {
        for slot in self.all {
            self.swap(slot, pid, 0);
        }
    }

    fn swap(&self, slot: &AtomicI32, from: i32, to: i32) -> bool {
        slot.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// What a shim keeps of the zygote.
pub struct SpareLink {
    /// Requests come here.
    pub socket: OwnedFd,
    /// The zygote's ear, and a sign of its life: an error when it is gone.
    pub zygote: OwnedFd,
    pub slots: SpareSlots,
}

impl SpareLink {
    /// Waits at a slot for a request, and leaves the slot with it. None: the daemon is gone.
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

    /// Asks for another spare, if too few wait. Only when the start is done: the fork would have taken a CPU from it.
    pub fn request_spare(&self) {
        if self.slots.filled() < MIN_SPARES {
            let _ = rustix::io::write(&self.zygote, b"s");
        }
    }
}

/// One request: a byte, and a descriptor beside it. None at the end of the socket.
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
    fn a_place_is_of_one_shim() {
        let slots = SpareSlots::new().expect("there is one");
        let all: Vec<_> = (1..=MAX_SPARES as i32).map(|pid| slots.claim(pid)).collect();
        assert_eq!(all, (0..MAX_SPARES).map(Some).collect::<Vec<_>>());
        assert_eq!(slots.claim(99), None);
        slots.release(1);
        assert_eq!((slots.filled(), slots.claim(99)), (MAX_SPARES - 1, Some(1)));
    }

    #[test]
    fn a_promise_is_kept_once_whoever_is_first() {
        let slots = SpareSlots::new().expect("there is one");
        let slot = slots.reserve().expect("there is one");
        // The child was faster, and has left with a request before its parent came to say who it is.
        slots.fill(slot, 7);
        slots.release(slot);
        slots.fill(slot, 7);
        assert_eq!(slots.filled(), 0);
    }

    #[test]
    fn who_dies_leaves_its_place() {
        let slots = SpareSlots::new().expect("there is one");
        let slot = slots.reserve().expect("there is one");
        slots.fill(slot, 7);
        slots.release_pid(8);
        assert_eq!(slots.filled(), 1);
        slots.release_pid(7);
        assert_eq!(slots.filled(), 0);
    }
}
