//! Where a later daemon finds a shim: a name in the kernel's own space, so that it costs no file,
//! has no length to fit and leaves nothing behind. It says nothing secret: who connects must be of
//! our uid and say the record's nonce, and who answers must be of our uid too.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};
use toold_format::fnv1a;

/// Daemons that may knock at once.
const BACKLOG: i32 = 4;

/// `toold/<id>/<16 digits>`. Made on the stack: a shim has no heap.
fn address(id: &[u8], nonce: &[u8; 16]) -> Result<SocketAddrUnix, Errno> {
    use std::io::Write;
    let mut name = [0u8; 64];
    let mut rest = &mut name[..];
    let written = rest.write_all(b"toold/").and_then(|()| rest.write_all(id));
    let written = written.and_then(|()| write!(rest, "/{:016x}", fnv1a(nonce)));
    let left = rest.len();
    written.map_err(|_| Errno::NAMETOOLONG)?;
    SocketAddrUnix::new_abstract_name(&name[..64 - left])
}

fn socket() -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

/// The shim's end.
pub fn listen_at(id: &[u8], nonce: &[u8; 16]) -> Result<OwnedFd, Errno> {
    let socket = socket()?;
    bind(&socket, &address(id, nonce)?)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// The daemon's end. Never waits: a shim whose backlog is full is tried again later.
pub fn connect_to(id: &[u8], nonce: &[u8; 16]) -> Result<OwnedFd, Errno> {
    let socket = socket()?;
    connect(&socket, &address(id, nonce)?)?;
    if is_trusted_peer(&socket) { Ok(socket) } else { Err(Errno::PERM) }
}

/// Whether the other end is of our uid, or root's.
pub fn is_trusted_peer(stream: &OwnedFd) -> bool {
    let uid = rustix::process::geteuid();
    rustix::net::sockopt::socket_peercred(stream).is_ok_and(|c| c.uid == uid || c.uid.is_root())
}
