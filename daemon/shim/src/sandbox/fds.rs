//! Descriptors beside the bytes of a connection.

use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;

/// The largest number of descriptors beside one frame.
pub const MAX_FDS: usize = 32;

/// Descriptors that came with a frame, in their order.
#[derive(Default)]
pub struct ReceivedFds {
    fds: [Option<OwnedFd>; MAX_FDS],
    taken: usize,
}

impl ReceivedFds {
    fn push(&mut self, fd: OwnedFd) {
        if let Some(place) = self.fds.iter_mut().find(|place| place.is_none()) {
            *place = Some(fd);
        }
    }

    /// Takes the next one.
    pub fn take_next(&mut self) -> Option<OwnedFd> {
        let fd = self.fds.get_mut(self.taken)?.take();
        self.taken += 1;
        fd
    }
}

/// Receives bytes, and the descriptors beside them.
pub fn receive(socket: BorrowedFd<'_>, into: &mut [u8], fds: &mut ReceivedFds) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(socket, &mut [IoSliceMut::new(into)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = message {
            received.for_each(|fd| fds.push(fd));
        }
    }
    Ok(got.bytes)
}

/// Sends bytes with descriptors beside them. Returns the number of bytes that the socket took.
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(Errno::TOOBIG);
    }
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)
}
