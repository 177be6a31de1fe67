//! A spare's place at the zygote: where it waits for a request, and comes back to when its program is over.
//!
//! A shim that comes back costs neither a fork nor an exit. It comes back only to the daemon that sent it out: when that
//! one hangs up, or the zygote ends, the shim lets go of its seat and leaves when its work is done.

use crate::sys;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, recvmsg};
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicI32, Ordering};

/// Shims that wait at least. One serves a start while the next is forked; the second takes a burst of two.
pub const SPARES: usize = 2;
/// Shims that wait at most, in memory of their own each.
const PLACES: usize = 4;
/// A place whose shim is being forked.
const PROMISED: i32 = -1;

/// The pids of those who wait, in memory that zygote and shims share. 0 is a free place.
#[derive(Clone, Copy)]
pub struct Places {
    all: &'static [AtomicI32],
}

impl Places {
    pub fn new() -> Option<Places> {
        Some(Places { all: sys::share_numbers(PLACES)? })
    }

    /// How many wait, or are about to.
    pub fn taken(&self) -> usize {
        self.all.iter().filter(|place| place.load(Ordering::Acquire) != 0).count()
    }

    /// Takes a free place. None: enough wait already.
    pub fn take(&self, who: i32) -> Option<usize> {
        self.all.iter().position(|place| self.change(place, 0, who))
    }

    /// A place for a shim that is forked next.
    pub fn promise(&self) -> Option<usize> {
        self.take(PROMISED)
    }

    /// The promise kept. Both sides of the fork say so: whoever comes second finds it done.
    pub fn keep(&self, place: usize, who: i32) {
        self.change(&self.all[place], PROMISED, who);
    }

    /// Frees a place, whoever has it.
    pub fn free(&self, place: usize) {
        self.all[place].store(0, Ordering::Release);
    }

    /// Frees the place of one that died.
    pub fn forget(&self, who: i32) {
        for place in self.all {
            self.change(place, who, 0);
        }
    }

    fn change(&self, place: &AtomicI32, from: i32, to: i32) -> bool {
        place.compare_exchange(from, to, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }
}

/// What a shim keeps of the zygote.
pub struct Seat {
    /// Requests come here.
    pub socket: OwnedFd,
    /// The zygote's ear, and a sign of its life: an error when it is gone.
    pub zygote: OwnedFd,
    pub places: Places,
}

impl Seat {
    /// Waits at a place for a request, and leaves the place with it. None: the daemon is gone.
    pub fn wait(&self, place: usize) -> Option<OwnedFd> {
        let control = loop {
            match receive(&self.socket) {
                Err(Errno::INTR) => {}
                other => break other.ok().flatten(),
            }
        };
        self.places.free(place);
        control
    }

    /// Asks for another spare, if too few wait. Only when the start is done: the fork would have taken a CPU from it.
    pub fn call_another(&self) {
        if self.places.taken() < SPARES {
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
    use super::{PLACES, Places};

    #[test]
    fn a_place_is_of_one_shim() {
        let places = Places::new().expect("there is one");
        let all: Vec<_> = (1..=PLACES as i32).map(|who| places.take(who)).collect();
        assert_eq!(all, (0..PLACES).map(Some).collect::<Vec<_>>());
        assert_eq!(places.take(99), None);
        places.free(1);
        assert_eq!((places.taken(), places.take(99)), (PLACES - 1, Some(1)));
    }

    #[test]
    fn a_promise_is_kept_once_whoever_is_first() {
        let places = Places::new().expect("there is one");
        let place = places.promise().expect("there is one");
        // The child was faster, and has left with a request before its parent came to say who it is.
        places.keep(place, 7);
        places.free(place);
        places.keep(place, 7);
        assert_eq!(places.taken(), 0);
    }

    #[test]
    fn who_dies_leaves_its_place() {
        let places = Places::new().expect("there is one");
        let place = places.promise().expect("there is one");
        places.keep(place, 7);
        places.forget(8);
        assert_eq!(places.taken(), 1);
        places.forget(7);
        assert_eq!(places.taken(), 0);
    }
}
