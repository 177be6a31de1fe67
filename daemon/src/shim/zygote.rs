//! The zygote: forked from `toold` before any thread, it keeps a spare shim or two waiting.
//!
//! Daemon, zygote and spares share one packet socket. A request carries the control connection of a
//! new process; whichever spare receives it becomes that process's shim. When its program runs it
//! tells the zygote, which forks the next spare: no fork is in the way of a start. When the daemon is gone
//! the socket ends, and with it the zygote and the spares; shims at work have nothing of it.

use crate::shim::{run, tree};
use crate::sys::{self, Forked, Title};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SocketFlags, SocketType, recvmsg, socketpair,
};
use std::mem::MaybeUninit;

/// Shims that wait. One serves a start while the next is forked; the second takes a burst of two.
const SPARES: usize = 2;

/// The daemon's side.
pub struct Zygote {
    pub socket: OwnedFd,
    pub pidfd: OwnedFd,
    pub pid: i32,
}

/// Forks the zygote. Call it while this process has one thread.
pub fn start() -> Result<Zygote, Errno> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    match sys::fork()? {
        Forked::Parent(pid) => Ok(Zygote { socket: ours, pidfd: sys::pidfd_open(pid)?, pid }),
        Forked::Child => {
            drop(ours);
            serve(theirs)
        }
    }
}

/// The main program of an exec'd shim: its control connection is its stdin. Whoever started it goes
/// on at once, because the shim is a child of a child that leaves.
pub fn exec_main() -> ! {
    match sys::fork() {
        Ok(Forked::Child) => {}
        Ok(Forked::Parent(_)) => sys::exit(0),
        Err(_) => sys::exit(1),
    }
    let Ok(control) = rustix::io::fcntl_dupfd_cloexec(sys::borrow(0), 10) else { sys::exit(1) };
    let Some(control) = detach(control) else { sys::exit(1) };
    let _ = rustix::io::fcntl_setfd(&control, rustix::io::FdFlags::CLOEXEC);
    match run::Ready::new(Title::find()) {
        Some(ready) => run::run(ready, control, None),
        None => sys::exit(1),
    }
}

/// Leaves everything of the daemon behind but the socket, which becomes descriptor 3.
fn detach(socket: OwnedFd) -> Option<OwnedFd> {
    let _ = rustix::process::setsid();
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGPIPE, libc::SIGQUIT] {
        sys::ignore(signal);
    }
    let null = rustix::fs::open(c"/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty()).ok()?;
    for at in 0..3 {
        sys::dup_to(null.as_raw_fd(), at).ok()?;
    }
    if socket.as_raw_fd() != 3 {
        sys::dup_to(socket.as_raw_fd(), 3).ok()?;
    }
    // Their old numbers are closed below, with all the others.
    std::mem::forget(socket);
    std::mem::forget(null);
    sys::close_from(4);
    let _ = rustix::process::chdir(c"/");
    Some(sys::own(3))
}

fn serve(socket: OwnedFd) -> ! {
    let Some(socket) = detach(socket) else { sys::exit(1) };
    let title = Title::find();
    if let Some(title) = &title {
        title.set(&[b"toold: zygote"]);
    }
    sys::set_name(c"toold-zygote");
    let (Ok(deaths), Ok((taken, take))) =
        (sys::child_signals(), rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC))
    else {
        sys::exit(1)
    };
    // Whoever loses its shim becomes our child, also when the daemon is long gone: see `sweep`.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let mut spares = [0i32; SPARES];
    let mut daemon_lives = true;
    loop {
        for place in &mut spares {
            if *place == 0 && daemon_lives {
                match sys::fork() {
                    Ok(Forked::Child) => {
                        drop((deaths, taken));
                        spare(socket, take, title)
                    }
                    Ok(Forked::Parent(pid)) => *place = pid,
                    // No process to be had now: the next death or request tries again.
                    Err(_) => break,
                }
            }
        }
        let mut fds = [
            PollFd::new(&deaths, PollFlags::IN),
            PollFd::new(&taken, PollFlags::IN),
            // Only its end: requests are for the spares.
            PollFd::new(&socket, PollFlags::empty()),
        ];
        // Without a daemon only deaths matter, and its socket would report its end for ever.
        let watched = if daemon_lives { &mut fds[..] } else { &mut fds[..1] };
        if poll(watched, None).is_err() {
            continue;
        }
        let [dead, news, end] = fds.map(|fd| fd.revents());
        daemon_lives &= !end.intersects(PollFlags::HUP | PollFlags::ERR);
        if news.contains(PollFlags::IN) {
            let mut pid = [0u8; 4];
            let _ = rustix::io::read(&taken, &mut pid);
            forget(&mut spares, i32::from_le_bytes(pid));
        }
        if dead.contains(PollFlags::IN) {
            let mut drained = [0u8; 1024];
            let _ = rustix::io::read(&deaths, &mut drained);
            let mut orphans = false;
            let childless = loop {
                match sys::reap() {
                    Ok(Some(reaped)) => {
                        forget(&mut spares, reaped.pid);
                        orphans |= libc::WIFSIGNALED(reaped.status);
                    }
                    Ok(None) => break false,
                    Err(_) => break true,
                }
            };
            if orphans {
                sweep();
            }
            if childless && !daemon_lives {
                sys::exit(0);
            }
        }
    }
}

/// Ends what a killed shim left behind. A shim that leaves by itself has nobody below it, so a child
/// of ours that is no shim has lost its own: nobody could see its output or its end any more.
fn sweep() {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let Some(memory) = sys::map(tree::ROOM * 8) else { return };
    let (children, below) = sys::as_pids(memory).split_at_mut(tree::ROOM);
    let mut orphans = tree::Pids { all: children, len: 0 };
    tree::children(own, &mut orphans);
    for pid in orphans.list() {
        if tree::is_shim(*pid) {
            continue;
        }
        let mut tree = tree::Pids { all: &mut *below, len: 0 };
        tree::descendants(*pid, &mut tree);
        tree::signal(*pid, &[], own, libc::SIGKILL);
        for member in tree.list() {
            tree::signal(*member, tree.list(), *pid, libc::SIGKILL);
        }
    }
    sys::unmap(memory);
}

fn forget(spares: &mut [i32; SPARES], pid: i32) {
    for place in spares {
        if *place == pid {
            *place = 0;
        }
    }
}

/// Waits for a request, then is its shim.
fn spare(socket: OwnedFd, take: OwnedFd, title: Option<Title>) -> ! {
    let Some(ready) = run::Ready::new(title) else { sys::exit(1) };
    ready.show(&[b"toold: spare shim"]);
    sys::set_name(c"toold-spare");
    let control = loop {
        match receive(&socket) {
            Ok(Some(control)) => break control,
            // The daemon is gone.
            Ok(None) => sys::exit(0),
            Err(Errno::INTR) => {}
            Err(_) => sys::exit(1),
        }
    };
    drop(socket);
    run::run(ready, control, Some(take))
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
