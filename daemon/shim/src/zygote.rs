//! The zygote: forked from `toold` before any thread, it keeps a spare shim or two waiting.
//!
//! Daemon, zygote and spares share one packet socket. A request carries the control connection of a
//! new process; whichever spare receives it becomes that process's shim, and a spare again when the process is
//! over. If too few are left it tells the zygote when its program runs, which forks the next: no fork is in the way
//! of a start. When the daemon is gone the socket ends, and with it the spares, and the zygote after the last shim.

use crate::spare::{MIN_SPARES, SpareLink, SpareSlots};
use crate::sys::{self, Forked, ProcessTitle};
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
    match run::Prepared::new(ProcessTitle::find()) {
        Some(prepared) => run::run(prepared, control, None),
        None => sys::exit(1),
    }
}

/// Leaves everything of the daemon behind but the socket, which becomes descriptor 3.
fn detach(socket: OwnedFd) -> Option<OwnedFd> {
    let _ = rustix::process::setsid();
    // Whatever we were started with: a program gets its signals as they should be.
    sys::default_signals();
    sys::IGNORED_SIGNALS.into_iter().for_each(sys::ignore_signal);
    let null = rustix::fs::open(c"/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty()).ok()?;
    for at in 0..3 {
        sys::dup2_to(null.as_raw_fd(), at).ok()?;
    }
    if socket.as_raw_fd() != 3 {
        sys::dup2_to(socket.as_raw_fd(), 3).ok()?;
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
    let title = ProcessTitle::find();
    if let Some(title) = &title {
        title.set(&[b"toold: zygote"]);
    }
    sys::set_name(c"toold-zygote");
    let (Ok(sigchld), Ok((wake_rx, wake_tx)), Some(slots)) =
        (sys::sigchld_fd(), rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC), SpareSlots::new())
    else {
        sys::exit(1)
    };
    // Whoever loses its shim becomes our child, also when the daemon is long gone: see `kill_orphans`.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let mut daemon_alive = true;
    loop {
        while daemon_alive && slots.filled() < MIN_SPARES {
            let Some(slot) = slots.reserve() else { break };
            match sys::fork() {
                Ok(Forked::Child) => {
                    drop((sigchld, wake_rx));
                    spare(SpareLink { socket, zygote: wake_tx, slots }, slot, title)
                }
                Ok(Forked::Parent(pid)) => slots.fill(slot, pid),
                // No process to be had now: the next death or wake_tx tries again.
                Err(_) => {
                    slots.release(slot);
                    break;
                }
            }
        }
        let mut fds = [
            PollFd::new(&sigchld, PollFlags::IN),
            PollFd::new(&wake_rx, PollFlags::IN),
            // Only its socket_ready: requests are for the spares.
            PollFd::new(&socket, PollFlags::empty()),
        ];
        // Without a daemon only sigchld matter, and its socket would report its socket_ready for ever.
        let watched = if daemon_alive { &mut fds[..] } else { &mut fds[..1] };
        if poll(watched, None).is_err() {
            continue;
        }
        let [sigchld_ready, woken, socket_ready] = fds.map(|fd| fd.revents());
        daemon_alive &= !socket_ready.intersects(PollFlags::HUP | PollFlags::ERR);
        if woken.contains(PollFlags::IN) {
            let mut drained = [0u8; 64];
            let _ = rustix::io::read(&wake_rx, &mut drained);
        }
        if sigchld_ready.contains(PollFlags::IN) {
            let mut drained = [0u8; 1024];
            let _ = rustix::io::read(&sigchld, &mut drained);
            let mut orphans = false;
            let childless = loop {
                match sys::reap() {
                    Ok(Some(reaped)) => {
                        slots.release_pid(reaped.pid);
                        orphans |= libc::WIFSIGNALED(reaped.status);
                    }
                    Ok(None) => break false,
                    Err(_) => break true,
                }
            };
            if orphans {
                kill_orphans();
            }
            if childless && !daemon_alive {
                sys::exit(0);
            }
        }
    }
}

/// ParentStdio what a killed shim left behind. A shim that leaves by itself has nobody below it, so a child
/// of ours that is no shim has lost its own: nobody could see its output or its socket_ready any more.
fn kill_orphans() {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    let Some(memory) = sys::map_anonymous(tree::MAX_PIDS * 8) else { return };
    let (children, below) = sys::as_pids(memory).split_at_mut(tree::MAX_PIDS);
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
fn spare(spare_link: SpareLink, slot: usize, title: Option<ProcessTitle>) -> ! {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    spare_link.slots.fill(slot, own);
    let Some(prepared) = run::Prepared::new(title) else { sys::exit(1) };
    prepared.set_idle_title();
    match spare_link.wait(slot) {
        Some(control) => run::run(prepared, control, Some(spare_link)),
        None => sys::exit(0),
    }
}
