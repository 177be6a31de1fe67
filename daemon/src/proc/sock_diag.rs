//! Asks the kernel for the TCP sockets that listen in our network namespace. `/proc/net/tcp` has them too, but to find its end
//! the kernel walks the table of all connections, which takes milliseconds even if it is empty.

use super::listening_port::Socket;
use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, send, socket_with};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsFd, OwnedFd};

const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLMSG_ERROR: u16 = 2;
const NLMSG_DONE: u16 = 3;
/// NLM_F_REQUEST and NLM_F_DUMP.
const DUMP: u16 = 0x301;
/// The table changed meanwhile: sockets may be missing.
const NLM_F_DUMP_INTR: u16 = 0x10;
const MAX_ATTEMPTS: usize = 3;
/// The bit of the state of a listening socket.
const LISTEN: u32 = 1 << 10;
/// The length of a header of netlink.
const HEADER_LEN: usize = 16;
/// The length of `inet_diag_req_v2`.
const REQUEST_LEN: usize = 56;
/// The kernel fills at most this much at a time.
const BUFFER_LEN: usize = 32 * 1024;

/// Returns the sockets that listen, of IPv4 and IPv6.
pub fn listening() -> io::Result<Vec<Socket>> {
    let netlink =
        socket_with(AddressFamily::NETLINK, SocketType::DGRAM, SocketFlags::CLOEXEC, Some(netlink::SOCK_DIAG))?;
    let mut found = Vec::new();
    for family in [AddressFamily::INET, AddressFamily::INET6] {
        found.extend(of_family(&netlink, family)?);
    }
    Ok(found)
}

fn of_family(netlink: &OwnedFd, family: AddressFamily) -> io::Result<Vec<Socket>> {
    for _ in 1..MAX_ATTEMPTS {
        if let Dump { sockets, is_whole: true } = dump(netlink, family)? {
            return Ok(sockets);
        }
    }
    Ok(dump(netlink, family)?.sockets)
}

#[derive(Default)]
struct Dump {
    sockets: Vec<Socket>,
    is_whole: bool,
}

fn dump(netlink: &OwnedFd, family: AddressFamily) -> io::Result<Dump> {
    send(netlink, &request(family), SendFlags::empty())?;
    let mut dump = Dump { sockets: Vec::new(), is_whole: true };
    let mut buffer = vec![0; BUFFER_LEN];
    loop {
        let (len, _) = recv(netlink.as_fd(), &mut buffer[..], RecvFlags::empty())?;
        if dump.add(buffer.get(..len).unwrap_or_default())? {
            return Ok(dump);
        }
    }
}

/// Returns the request for all sockets of a family that listen: a header, then `inet_diag_req_v2`, whose last part selects by
/// address and is zero.
fn request(family: AddressFamily) -> [u8; HEADER_LEN + REQUEST_LEN] {
    let mut request = [0; HEADER_LEN + REQUEST_LEN];
    let len = (HEADER_LEN + REQUEST_LEN) as u32;
    request[..4].copy_from_slice(&len.to_ne_bytes());
    request[4..6].copy_from_slice(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    request[6..8].copy_from_slice(&DUMP.to_ne_bytes());
    request[16] = family.as_raw() as u8;
    request[17] = libc::IPPROTO_TCP as u8;
    request[20..24].copy_from_slice(&LISTEN.to_ne_bytes());
    request
}

impl Dump {
    /// Takes the messages of one read. Returns true after the last one.
    fn add(&mut self, mut messages: &[u8]) -> io::Result<bool> {
        let truncated = || io::Error::new(io::ErrorKind::InvalidData, "a message of netlink is cut");
        if messages.is_empty() {
            return Err(truncated());
        }
        while !messages.is_empty() {
            let len = u32_at(messages, 0).ok_or_else(truncated)? as usize;
            let body = messages.get(HEADER_LEN..len).ok_or_else(truncated)?;
            let flags = u16_at(messages, 6).ok_or_else(truncated)?;
            self.is_whole &= flags & NLM_F_DUMP_INTR == 0;
            match u16_at(messages, 4) {
                Some(NLMSG_DONE) => return Ok(true),
                Some(NLMSG_ERROR) => {
                    let errno = u32_at(body, 0).ok_or_else(truncated)? as i32;
                    return Err(io::Error::from_raw_os_error(-errno));
                }
                _ => self.sockets.extend(socket(body)),
            }
            messages = messages.get(len.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(false)
    }
}

/// Reads `inet_diag_msg`: family and state, then ports and addresses in the order of the network, at last the inode.
fn socket(message: &[u8]) -> Option<Socket> {
    let port = u16::from_be_bytes(*message.get(4..)?.first_chunk()?);
    let address = message.get(8..)?;
    let address: IpAddr = match i32::from(*message.first()?) {
        libc::AF_INET => Ipv4Addr::from(*address.first_chunk::<4>()?).into(),
        libc::AF_INET6 => Ipv6Addr::from(*address.first_chunk::<16>()?).into(),
        _ => return None,
    };
    Some(Socket { inode: u32_at(message, 68)?.into(), address, port })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn the_kernel_lists_listeners_of_both_families_and_no_connection() {
        let listeners = ["127.0.0.1:0", "[::1]:0"].map(TcpListener::bind);
        let Ok(all) = listening() else { return println!("skipped: the kernel has no sock_diag") };
        for listener in listeners.into_iter().flatten() {
            let address = listener.local_addr().expect("it is bound");
            let _connection = std::net::TcpStream::connect(address).expect("it listens");
            let found: Vec<_> = all.iter().filter(|socket| socket.port == address.port()).collect();
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!((found[0].address, found[0].inode > 0), (address.ip(), true));
        }
    }

    #[test]
    fn a_message_that_is_cut_or_an_error_is_an_error_and_an_interrupted_dump_is_not_whole() {
        let header = |kind: u16, flags: u16, body: &[u8]| {
            let mut message = Vec::from(((HEADER_LEN + body.len()) as u32).to_ne_bytes());
            message.extend(kind.to_ne_bytes());
            message.extend(flags.to_ne_bytes());
            message.extend([0; 8]);
            message.extend(body);
            message
        };
        let mut dump = Dump { sockets: Vec::new(), is_whole: true };
        assert!(dump.add(&header(NLMSG_DONE, NLM_F_DUMP_INTR, &[])).is_ok_and(|last| last));
        assert!(!dump.is_whole);
        let refused = dump.add(&header(NLMSG_ERROR, 0, &(-libc::ENOENT).to_ne_bytes())).expect_err("an error");
        assert_eq!(refused.raw_os_error(), Some(libc::ENOENT));
        let whole = header(SOCK_DIAG_BY_FAMILY, 0, &[0; 72]);
        assert!((0..whole.len()).all(|len| Dump::default().add(&whole[..len]).is_err()));
    }
}
