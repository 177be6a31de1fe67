//! The zygote: forked from `toold` before any thread, it keeps a spare shim or two waiting.
//!
//! Daemon, zygote and spares share one packet socket. A request carries the control connection of a
//! new process; whichever spare receives it becomes that process's shim, and a spare again when the process is
//! over. If too few are left it tells the zygote when its program runs, which forks the next: no fork is in the way
//! of a start. When the daemon is gone the socket ends, and with it the spares, and the zygote after the last shim.

use crate::seat::{Places, SPARES, Seat};
use crate::sys::{self, Forked, Title};
use crate::{run, tree};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsRawFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

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
    // Whatever we were started with: a program gets its signals as they should be.
    sys::default_signals();
    sys::IGNORED.into_iter().for_each(sys::ignore);
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
    let (Ok(deaths), Ok((calls, call)), Some(places)) =
        (sys::child_signals(), rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC), Places::new())
    else {
        sys::exit(1)
    };
    // Whoever loses its shim becomes our child, also when the daemon is long gone: see `sweep`.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let mut daemon_lives = true;
    loop {
        while daemon_lives && places.taken() < SPARES {
            let Some(place) = places.promise() else { break };
            match sys::fork() {
                Ok(Forked::Child) => {
                    drop((deaths, calls));
                    spare(Seat { socket, zygote: call, places }, place, title)
                }
                Ok(Forked::Parent(pid)) => places.keep(place, pid),
                // No process to be had now: the next death or call tries again.
                Err(_) => {
                    places.free(place);
                    break;
                }
            }
        }
        let mut fds = [
            PollFd::new(&deaths, PollFlags::IN),
            PollFd::new(&calls, PollFlags::IN),
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
            let mut drained = [0u8; 64];
            let _ = rustix::io::read(&calls, &mut drained);
        }
        if dead.contains(PollFlags::IN) {
            let mut drained = [0u8; 1024];
            let _ = rustix::io::read(&deaths, &mut drained);
            let mut orphans = false;
            let childless = loop {
                match sys::reap() {
                    Ok(Some(reaped)) => {
                        places.forget(reaped.pid);
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

/// Waits for a request, then is its shim.
fn spare(seat: Seat, place: usize, title: Option<Title>) -> ! {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    seat.places.keep(place, own);
    let Some(ready) = run::Ready::new(title) else { sys::exit(1) };
    ready.show_spare();
    match seat.wait(place) {
        Some(control) => run::run(ready, control, Some(seat)),
        None => sys::exit(0),
    }
}
