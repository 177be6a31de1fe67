//! The socket address at which a later daemon finds a shim: an abstract name, so that it costs no file,
//! has no path length to fit and leaves nothing behind. The name is not a secret: a daemon that connects must be of
//! our uid and send the record's nonce, and a shim that accepts must be of our uid too.

use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect, listen, socket_with};
use toold_format::fnv1a;

/// Daemons that may connect at the same time.
const LISTEN_BACKLOG: i32 = 4;

/// The longest name, which the kernel would take 107 bytes of.
const MAX_NAME_LEN: usize = 64;

/// Builds `toold/<id>/<16 digits>` on the stack: a shim does not use the heap.
fn address(id: &[u8], nonce: &[u8; 16]) -> Result<SocketAddrUnix, Errno> {
    use std::io::Write;
    let mut name = [0u8; MAX_NAME_LEN];
    let mut rest = &mut name[..];
    let written = rest.write_all(b"toold/").and_then(|()| rest.write_all(id));
    let written = written.and_then(|()| write!(rest, "/{:016x}", fnv1a(nonce)));
    let left = rest.len();
    written.map_err(|_| Errno::NAMETOOLONG)?;
    SocketAddrUnix::new_abstract_name(&name[..MAX_NAME_LEN - left])
}

fn socket() -> Result<OwnedFd, Errno> {
    socket_with(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

/// Listens at the shim's address.
pub fn listen_at(id: &[u8], nonce: &[u8; 16]) -> Result<OwnedFd, Errno> {
    let socket = socket()?;
    bind(&socket, &address(id, nonce)?)?;
    listen(&socket, LISTEN_BACKLOG)?;
    Ok(socket)
}

/// Connects to a shim. Never waits: the caller tries a shim whose backlog is full again later.
pub fn connect_to(id: &[u8], nonce: &[u8; 16]) -> Result<OwnedFd, Errno> {
    let socket = socket()?;
    connect(&socket, &address(id, nonce)?)?;
    if is_trusted_peer(&socket) { Ok(socket) } else { Err(Errno::PERM) }
}

/// Checks that the other end runs as our uid, or as root.
pub fn is_trusted_peer(stream: &OwnedFd) -> bool {
    let uid = rustix::process::geteuid();
    rustix::net::sockopt::socket_peercred(stream).is_ok_and(|c| c.uid == uid || c.uid.is_root())
}
