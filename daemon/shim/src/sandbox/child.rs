//! The steps that confine a child before it runs its program. Each can only succeed or end the start: a child that lacks one
//! of them never runs anything.

use super::fds::{self, ReceivedFds};
use super::filter::Watched;
use super::landlock;
use super::listener::Observer;
use crate::start::StepFailed;
use crate::sys::{self, check, last_errno};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::Signal;
use std::cell::Cell;
use std::ffi::{CStr, c_int, c_ulong};
use toold_format::sandbox::{FileId, SandboxBlock, SandboxFds};
use toold_format::step;

/// The confinement of a program that is about to start, with its descriptors.
pub struct ChildSandbox<'a> {
    pub block: SandboxBlock<'a>,
    fds: SandboxFds<Option<OwnedFd>>,
    watched: Watched,
    hand_over: Option<HandOver>,
}

/// The connection by which a child sends its listener.
struct HandOver {
    from_child: OwnedFd,
    /// The child's end. A number, because the child reads this memory while the shim closes its own copy.
    to_shim: RawFd,
    is_closed: Cell<bool>,
}

impl HandOver {
    fn new() -> Result<HandOver, Errno> {
        let (from_child, to_shim) = socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)?;
        Ok(HandOver { from_child, to_shim: to_shim.into_raw_fd(), is_closed: Cell::new(false) })
    }

    /// Closes this process's copy of the child's end, so that the end of a child is seen.
    fn close(&self) {
        if !self.is_closed.replace(true) {
            // SAFETY: it was open, is ours, and is not closed twice.
            drop(unsafe { sys::own(self.to_shim) });
        }
    }
}

impl Drop for HandOver {
    fn drop(&mut self) {
        self.close();
    }
}

/// The message of a child whose filter has a listener, and of one that cannot have one.
const LISTENER: &[u8] = b"l";
const NO_LISTENER: &[u8] = b"n";

impl<'a> ChildSandbox<'a> {
    /// Reads the block, and takes the descriptors that it names.
    #[inline(never)]
    pub(crate) fn new(block: &'a [u8], received: &mut ReceivedFds) -> Result<ChildSandbox<'a>, StepFailed> {
        let failed = |errno| StepFailed(step::SANDBOX, errno);
        let block = SandboxBlock::decode(block).ok_or(failed(Errno::INVAL))?;
        let mut fds = [const { None }; 7];
        for (place, is_there) in fds.iter_mut().zip(block.fds.into_array()) {
            if is_there {
                *place = Some(received.take_next().ok_or(failed(Errno::BADF))?);
            }
        }
        let signals = block.session != FileId::default();
        let watched = Watched { writes: block.observe_writes, signals, network: block.network, listener: true };
        let hand_over = if watched.is_any() { Some(HandOver::new().map_err(failed)?) } else { None };
        Ok(ChildSandbox { block, fds: SandboxFds::from_array(fds), watched, hand_over })
    }

    /// The directory of the devices that the program will have, if it has its own.
    pub(crate) fn dev(&self) -> Option<BorrowedFd<'_>> {
        self.fds.dev.as_ref().map(AsFd::as_fd)
    }

    /// Confines this child, and changes to `cwd` inside.
    #[inline(never)]
    pub(crate) fn enter(&self, cwd: &CStr) -> Result<(), (u32, Errno)> {
        let at = |step: u32| move |errno: Errno| (step, errno);
        let fds = &self.fds;
        for (fd, kind, step) in [
            (&fds.user, libc::CLONE_NEWUSER, step::USER_NAMESPACE),
            (&fds.net, libc::CLONE_NEWNET, step::NET_NAMESPACE),
            (&fds.ipc, libc::CLONE_NEWIPC, step::IPC_NAMESPACE),
            (&fds.inner_user, libc::CLONE_NEWUSER, step::USER_NAMESPACE),
            (&fds.mount, libc::CLONE_NEWNS, step::MOUNT_NAMESPACE),
        ] {
            if let Some(fd) = fd {
                set_namespace(fd.as_fd(), kind).map_err(at(step))?;
            }
        }
        // A change of the user namespace may clear it.
        let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
        // By its path, and inside: a descriptor from before would still write to the mounts of the host.
        rustix::process::chdir(cwd).map_err(at(step::CHDIR))?;
        check_cwd(self.block.cwd)?;
        if self.block.joins_only {
            return Ok(());
        }
        no_core_dump();
        rustix::thread::set_no_new_privs(true).map_err(at(step::NO_NEW_PRIVS))?;
        drop_capabilities().map_err(at(step::CAPABILITIES))?;
        if let Some(ruleset) = &fds.ruleset {
            landlock::restrict_self(ruleset).map_err(at(step::LANDLOCK))?;
        }
        let listener = install_filter(self.watched).map_err(at(step::FILTER))?;
        let Some(HandOver { to_shim, .. }) = &self.hand_over else { return Ok(()) };
        // SAFETY: this child has a copy of its own, which the exec closes.
        let to_shim = unsafe { sys::borrow(*to_shim) };
        let sent = match &listener {
            Some(listener) => fds::send(to_shim, LISTENER, &[listener.as_fd()]),
            None => fds::send(to_shim, NO_LISTENER, &[]),
        };
        // The shim is the only one that keeps it.
        drop(listener);
        sent.map(drop).map_err(at(step::LISTENER))
    }

    /// Takes over the listener of a child that was forked, and watches it. It waits until the child is confined, and so
    /// does its part while the child executes its program.
    #[inline(never)]
    pub(crate) fn take_observer(&self, epoll: &OwnedFd) -> Result<Observer, StepFailed> {
        let observer = Observer::new(&self.block, self.take_listener()?)?;
        observer.watch(epoll).map_err(|errno| StepFailed(step::LISTENER, errno))?;
        Ok(observer)
    }

    /// Takes the listener that the child sent before its exec. None: it could not have one, or nothing is watched.
    fn take_listener(&self) -> Result<Option<OwnedFd>, StepFailed> {
        let Some(hand_over) = &self.hand_over else { return Ok(None) };
        hand_over.close();
        let (mut byte, mut received) = ([0u8; 1], ReceivedFds::default());
        let failed = |errno| StepFailed(step::LISTENER, errno);
        let from_child = hand_over.from_child.as_fd();
        let len = loop {
            match fds::receive(from_child, &mut byte, &mut received) {
                Err(Errno::INTR) => {}
                got => break got.map_err(failed)?,
            }
        };
        match (&byte[..len], received.take_next()) {
            (LISTENER, Some(listener)) => Ok(Some(listener)),
            (NO_LISTENER, None) => Ok(None),
            // The child ended before it sent one, and its failure is reported.
            _ => Err(failed(Errno::BADMSG)),
        }
    }
}

/// Joins the namespace behind a descriptor.
pub(crate) fn set_namespace(fd: BorrowedFd<'_>, kind: c_int) -> sys::Result<()> {
    // SAFETY: plain numbers.
    check(unsafe { libc::setns(fd.as_raw_fd(), kind) }).map(drop)
}

/// Checks that the working directory is the one that was judged: its path may lead elsewhere by now.
fn check_cwd(judged: FileId) -> Result<(), (u32, Errno)> {
    if judged == FileId::default() {
        return Ok(());
    }
    let here = rustix::fs::stat(c".").map_err(|errno| (step::CWD_IDENTITY, errno))?;
    if (FileId { dev: here.st_dev, ino: here.st_ino }) == judged {
        Ok(())
    } else {
        Err((step::CWD_IDENTITY, Errno::STALE))
    }
}

/// Turns core dumps off: the machine's handler of them is outside.
fn no_core_dump() {
    let none = rustix::process::Rlimit { current: Some(0), maximum: Some(0) };
    let _ = rustix::process::setrlimit(rustix::process::Resource::Core, none);
}

/// Drops every capability, for good: uid 0 would get those of its user namespace back with the exec.
fn drop_capabilities() -> sys::Result<()> {
    const VERSION_3: u32 = 0x2008_0522;
    const MAX_CAPABILITY: c_ulong = 63;
    for capability in 0..=MAX_CAPABILITY {
        // SAFETY: plain numbers.
        match check(unsafe { libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0) }) {
            Ok(_) => {}
            // The last one of this kernel was before it.
            Err(Errno::INVAL) => break,
            // An ordinary user without a namespace has none and, without new privileges, gets none.
            Err(Errno::PERM) if !rustix::process::geteuid().is_root() => break,
            Err(errno) => return Err(errno),
        }
    }
    let (header, none) = ([VERSION_3, 0], [0u32; 6]);
    // SAFETY: the kernel reads a header of two numbers and, of this version, six more.
    check(unsafe { libc::syscall(libc::SYS_capset, header.as_ptr(), none.as_ptr()) } as c_int).map(drop)
}

/// Installs the filter. None: it has no listener, because nothing is watched or because another one is above this process.
fn install_filter(watched: Watched) -> sys::Result<Option<OwnedFd>> {
    const SPEC_ALLOW: c_ulong = libc::SECCOMP_FILTER_FLAG_SPEC_ALLOW;
    const NEW_LISTENER: c_ulong = libc::SECCOMP_FILTER_FLAG_NEW_LISTENER | SPEC_ALLOW;
    const WAIT_KILLABLE: c_ulong = libc::SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV;
    if watched.is_any() {
        let mut installed = set_filter(watched, NEW_LISTENER | WAIT_KILLABLE);
        if installed == Err(Errno::INVAL) {
            // A kernel before 5.19.
            installed = set_filter(watched, NEW_LISTENER);
        }
        match installed {
            // SAFETY: the kernel just made it for us.
            Ok(fd) => return Ok(Some(unsafe { sys::own(fd) })),
            Err(Errno::BUSY) => {}
            Err(errno) => return Err(errno),
        }
    }
    set_filter(Watched { listener: false, ..watched }, SPEC_ALLOW)?;
    Ok(None)
}

fn set_filter(watched: Watched, flags: c_ulong) -> sys::Result<c_int> {
    let code = watched.program().code();
    let program = libc::sock_fprog { len: code.len() as u16, filter: code.as_ptr().cast_mut() };
    // SAFETY: the kernel reads the program, which is constant.
    let done = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, flags, &program) };
    if done < 0 { Err(last_errno()) } else { Ok(done as c_int) }
}

/// Returns true if the kernel can pass a call to a listener.
pub fn has_listeners() -> bool {
    let action = libc::SECCOMP_RET_USER_NOTIF;
    // SAFETY: the kernel reads the live local.
    let done = unsafe { libc::syscall(libc::SYS_seccomp, libc::SECCOMP_GET_ACTION_AVAIL, 0, &action) };
    done == 0
}
