//! Namespaces for the jobs of a daemon, made by a spare that has no program.
//!
//! The spare forks a child that leaves the namespaces of the host, maps its ids from outside, and ends. The child builds what
//! is inside, sends the descriptors to the daemon and ends too: the descriptors keep the namespaces.

use super::child::set_namespace;
use super::{fds, mounts};
use crate::start::StepFailed;
use crate::sys::{self, Forked, check};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::ffi::{CStr, c_int};
use std::io::Write;
use toold_format::frame::{FromShim, Sink};
use toold_format::sandbox::{NamespaceBlock, NamespaceKind};
use toold_format::step;

/// The longest path below /proc here.
const MAX_PROC_PATH_LEN: usize = 48;

fn at(step: u32) -> impl Fn(Errno) -> StepFailed {
    move |errno| StepFailed(step, errno)
}

/// Makes the namespaces of a block and sends them, or the step that failed. `outer`: the user namespace to be inside of.
#[inline(never)]
pub fn make(control: BorrowedFd<'_>, block: &[u8], outer: Option<OwnedFd>) {
    let made = match NamespaceBlock::decode(block) {
        Some(block) => fork_inside(control, &block, outer),
        None => Err(StepFailed(step::SANDBOX, Errno::INVAL)),
    };
    if let Err(failed) = made {
        report(control, failed);
    }
}

fn report(control: BorrowedFd<'_>, StepFailed(step, errno): StepFailed) {
    send(control, &FromShim::Failed { step, errno: errno.raw_os_error() }, &[]);
}

fn send(control: BorrowedFd<'_>, frame: &FromShim<'_>, descriptors: &[BorrowedFd<'_>]) {
    let mut bytes = ShortFrame { bytes: [0; 32], len: 0 };
    frame.put(&mut bytes);
    let _ = fds::send(control, &bytes.bytes[..bytes.len], descriptors);
}

struct ShortFrame {
    bytes: [u8; 32],
    len: usize,
}

impl Sink for ShortFrame {
    fn put(&mut self, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            place.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }
}

/// Forks the child, maps its ids when it has left, and waits for its end.
fn fork_inside(control: BorrowedFd<'_>, block: &NamespaceBlock<'_>, outer: Option<OwnedFd>) -> Result<(), StepFailed> {
    // Before the fork: only a process of the outer namespace may map ids of one inside it.
    if let Some(outer) = outer {
        set_namespace(outer.as_fd(), libc::CLONE_NEWUSER).map_err(at(step::USER_NAMESPACE))?;
    }
    let pair = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None);
    let (ours, theirs) = pair.map_err(at(step::FORK))?;
    // SAFETY: a shim has one thread.
    match unsafe { sys::fork() }.map_err(at(step::FORK))? {
        Forked::Child => {
            drop(ours);
            let made = build(control, block, &theirs);
            sys::exit(match made {
                Ok(()) => 0,
                Err(failed) => {
                    report(control, failed);
                    1
                }
            })
        }
        Forked::Parent(pid) => {
            drop(theirs);
            let mut byte = [0u8; 1];
            // Nothing to read: the child failed, and reported it.
            if rustix::io::read(&ours, &mut byte) == Ok(1) {
                map_ids(pid, block).map_err(at(step::ID_MAP))?;
                rustix::io::write(&ours, b"m").map_err(at(step::ID_MAP))?;
            }
            while sys::reap_blocking() == Err(Errno::INTR) {}
            Ok(())
        }
    }
}

/// Writes the ids of the child's new user namespace: one that maps all of them needs the rights of its parent.
fn map_ids(pid: i32, block: &NamespaceBlock<'_>) -> Result<(), Errno> {
    if block.deny_setgroups {
        write_proc(pid, "setgroups", b"deny")?;
    }
    write_proc(pid, "uid_map", block.uid_map.to_bytes())?;
    write_proc(pid, "gid_map", block.gid_map.to_bytes())
}

fn write_proc(pid: i32, name: &str, text: &[u8]) -> Result<(), Errno> {
    let mut path = [0u8; MAX_PROC_PATH_LEN];
    write!(&mut path[..], "/proc/{pid}/{name}\0").map_err(|_| Errno::NAMETOOLONG)?;
    let path = CStr::from_bytes_until_nul(&path).map_err(|_| Errno::NAMETOOLONG)?;
    let file = rustix::fs::open(path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
    if rustix::io::write(&file, text)? == text.len() { Ok(()) } else { Err(Errno::IO) }
}

/// Leaves the namespaces of the host, builds what is inside, and sends the descriptors.
fn build(control: BorrowedFd<'_>, block: &NamespaceBlock<'_>, parent: &OwnedFd) -> Result<(), StepFailed> {
    let pts = match block.kind {
        NamespaceKind::Net { .. } | NamespaceKind::User => None,
        // In the outer namespace, where uid 0 is mapped for an ordinary user too: the file system asks for it.
        NamespaceKind::Mount => {
            unshare(libc::CLONE_NEWNS).map_err(at(step::MOUNT_NAMESPACE))?;
            mounts::new_terminals().ok()
        }
    };
    let flags = match block.kind {
        NamespaceKind::User => libc::CLONE_NEWUSER | libc::CLONE_NEWIPC,
        NamespaceKind::Net { .. } => libc::CLONE_NEWUSER | libc::CLONE_NEWIPC | libc::CLONE_NEWNET,
        NamespaceKind::Mount => libc::CLONE_NEWUSER | libc::CLONE_NEWNS,
    };
    unshare(flags).map_err(at(step::USER_NAMESPACE))?;
    // The files below /proc that map ids belong to root otherwise.
    let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::Dumpable);
    rustix::io::write(parent, b"u").map_err(at(step::ID_MAP))?;
    let mut byte = [0u8; 1];
    if rustix::io::read(parent, &mut byte) != Ok(1) {
        // The parent failed, and reports it.
        return Ok(());
    }
    let open = |path: &CStr| rustix::fs::open(path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty());
    let user = open(c"/proc/self/ns/user").map_err(at(step::USER_NAMESPACE))?;
    match block.kind {
        NamespaceKind::User => {
            let ipc = open(c"/proc/self/ns/ipc").map_err(at(step::IPC_NAMESPACE))?;
            send(control, &FromShim::Namespaces, &[user.as_fd(), ipc.as_fd()]);
        }
        NamespaceKind::Net { loopback } => {
            if loopback {
                set_loopback_up().map_err(at(step::LOOPBACK))?;
            }
            let net = open(c"/proc/self/ns/net").map_err(at(step::NET_NAMESPACE))?;
            let ipc = open(c"/proc/self/ns/ipc").map_err(at(step::IPC_NAMESPACE))?;
            send(control, &FromShim::Namespaces, &[user.as_fd(), ipc.as_fd(), net.as_fd()]);
        }
        NamespaceKind::Mount => {
            let mnt = open(c"/proc/self/ns/mnt").map_err(at(step::MOUNT_NAMESPACE))?;
            let overlays = mounts::build(&block.mounts, pts)?;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let dev = rustix::fs::open(c"/dev", flags, Mode::empty()).map_err(at(step::MOUNTS))?;
            let mut all = [user.as_fd(); 3 + mounts::MAX_OVERLAYS];
            let mut count = 0;
            for fd in [&user, &mnt, &dev].into_iter().chain(overlays.iter().flatten()) {
                all[count] = fd.as_fd();
                count += 1;
            }
            send(control, &FromShim::Namespaces, &all[..count]);
        }
    }
    Ok(())
}

fn unshare(flags: c_int) -> Result<(), Errno> {
    // SAFETY: plain numbers. None of the flags shares or splits memory.
    check(unsafe { libc::unshare(flags) }).map(drop)
}

/// Turns the loopback device of this network namespace on.
fn set_loopback_up() -> Result<(), Errno> {
    let socket = rustix::net::socket_with(AddressFamily::INET, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
    // SAFETY: a request is plain bytes, for which all zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l' as _;
    request.ifr_name[1] = b'o' as _;
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as _;
    let fd = rustix::fd::AsRawFd::as_raw_fd(&socket);
    // SAFETY: the kernel reads the live local.
    check(unsafe { libc::ioctl(fd, libc::SIOCSIFFLAGS, &request) }).map(drop)
}
