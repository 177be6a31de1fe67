//! The zygote: forked from `toold` before any thread, it keeps a spare shim or two waiting.
//!
//! Daemon, zygote and spares share one packet socket. A request carries the control connection of a
//! new process. The spare that receives it becomes that process's shim, and a spare again when the process is
//! over. If too few spares are left, it asks the zygote for another once its program runs: no fork is in the way
//! of a start. When the daemon is gone the socket ends, and with it the spares, and the zygote after the last shim.

use crate::pids::Pids;
use crate::spare::{SpareLink, SpareSlots};
use crate::sys::{self, Forked, ProcessTitle};
use crate::{run, tree};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fd::{AsRawFd, OwnedFd, RawFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Resource, getrlimit, setrlimit};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The number of the socket in a process that left the daemon behind.
const SOCKET_FD: RawFd = 3;
/// The lowest number for the control connection of an executed shim while it is moved.
const MIN_CONTROL_FD: RawFd = 10;

/// The daemon's side.
pub struct Zygote {
    pub socket: OwnedFd,
    /// None: the kernel has no pidfds, or a filter refuses them.
    pub pidfd: Option<OwnedFd>,
    pub pid: i32,
}

/// Forks the zygote, which shows `state_dir` in its title and keeps up to `max_spares` shims waiting. An error also when this process has more than one thread.
pub fn start(state_dir: &Path, max_spares: usize) -> Result<Zygote, Errno> {
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    if !sys::is_single_threaded()? {
        return Err(Errno::BUSY);
    }
    // SAFETY: this process has one thread, so no other can start one.
    match unsafe { sys::fork() }? {
        Forked::Parent(pid) => Ok(Zygote { socket: ours, pidfd: sys::pidfd_open(pid).ok(), pid }),
        Forked::Child => {
            drop(ours);
            // SAFETY: a child of a fork has one thread.
            unsafe { sys::drop_environment() };
            serve(theirs, state_dir, max_spares)
        }
    }
}

/// Attributes of the daemon before it changed them for itself: a program gets these, from the zygote and by exec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StartAttributes {
    /// The soft limit on descriptors. None: unlimited.
    pub max_fds: Option<u64>,
    /// The timeslice in nanoseconds. 0: this kernel has none.
    pub timeslice_ns: u64,
}

impl StartAttributes {
    /// Reads those of this thread.
    pub fn read() -> StartAttributes {
        StartAttributes { max_fds: getrlimit(Resource::Nofile).current, timeslice_ns: sys::timeslice_ns() }
    }

    fn restore(self) {
        let mut limit = getrlimit(Resource::Nofile);
        limit.current = self.max_fds;
        let _ = setrlimit(Resource::Nofile, limit);
        sys::set_timeslice(self.timeslice_ns);
    }
}

/// Runs an executed shim: its control connection is its stdin. The parent continues at once, because the shim is a child
/// of a child that exits.
pub fn exec_main(attributes: StartAttributes, state_dir: &Path) -> ! {
    if sys::is_single_threaded() != Ok(true) {
        sys::exit(1);
    }
    // Before the fork: a daemon that gets the shim as its child knows it by this name.
    sys::set_name(c"toold-shim");
    // SAFETY: this process has one thread.
    match unsafe { sys::fork() } {
        Ok(Forked::Child) => {}
        Ok(Forked::Parent(_)) => sys::exit(0),
        // The daemon reads the error from the exit code.
        Err(e) => sys::exit(e.raw_os_error()),
    }
    // SAFETY: a child of a fork has one thread.
    unsafe { sys::drop_environment() };
    attributes.restore();
    // SAFETY: nothing closes stdin before `detach`, which puts /dev/null there.
    let stdin = unsafe { sys::borrow(0) };
    let Ok(control) = rustix::io::fcntl_dupfd_cloexec(stdin, MIN_CONTROL_FD) else { sys::exit(1) };
    let Some(control) = detach(control) else { sys::exit(1) };
    match run::Prepared::new(ProcessTitle::find(state_dir.as_os_str().as_bytes())) {
        Some(prepared) => run::run(prepared, control, None),
        None => sys::exit(1),
    }
}

/// Leaves everything of the daemon behind but the socket, which becomes descriptor 3.
fn detach(socket: OwnedFd) -> Option<OwnedFd> {
    let _ = rustix::process::setsid();
    // A program gets the default of every signal, however this process was started.
    sys::default_signals();
    sys::IGNORED_SIGNALS.into_iter().for_each(sys::ignore_signal);
    let null = rustix::fs::open(c"/dev/null", rustix::fs::OFlags::RDWR, rustix::fs::Mode::empty()).ok()?;
    for number in 0..3 {
        // SAFETY: no object of this process owns a standard stream.
        unsafe { sys::dup2_to(null.as_raw_fd(), number) }.ok()?;
    }
    if socket.as_raw_fd() != SOCKET_FD {
        // SAFETY: the object that owned it belongs to the daemon's side of the fork, which this side never returns to.
        unsafe { sys::dup2_to(socket.as_raw_fd(), SOCKET_FD) }.ok()?;
    }
    // Their old numbers are closed below, with all the others.
    std::mem::forget(socket);
    std::mem::forget(null);
    // SAFETY: objects that own a higher number belong to the daemon's side of the fork.
    unsafe { sys::close_from(SOCKET_FD + 1) };
    let _ = rustix::process::chdir(c"/");
    // SAFETY: the copy from above, whose old owner was forgotten.
    let socket = unsafe { sys::own(SOCKET_FD) };
    // A copy has no such flag. Without `close_range` nothing else keeps it from a program.
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC).ok()?;
    Some(socket)
}

/// The zygote's own side.
struct Server {
    socket: OwnedFd,
    /// Readable when a child ended.
    sigchld: OwnedFd,
    /// Shims write to the one end to ask for another spare.
    wake_rx: OwnedFd,
    wake_tx: OwnedFd,
    slots: SpareSlots,
    title: Option<ProcessTitle>,
    daemon_alive: bool,
}

fn serve(socket: OwnedFd, state_dir: &Path, max_spares: usize) -> ! {
    let Some(socket) = detach(socket) else { sys::exit(1) };
    let title = ProcessTitle::find(state_dir.as_os_str().as_bytes());
    if let Some(title) = &title {
        title.set(&[b"toold: zygote"]);
    }
    sys::set_name(c"toold-zygote");
    let (Ok(sigchld), Ok((wake_rx, wake_tx)), Some(slots)) =
        (sys::sigchld_fd(), rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC), SpareSlots::new(max_spares))
    else {
        sys::exit(1)
    };
    // A process that loses its shim becomes our child, also when the daemon is long gone: see `kill_orphans`.
    let _ = rustix::process::set_child_subreaper(Some(rustix::process::getpid()));
    let mut server = Server { socket, sigchld, wake_rx, wake_tx, slots, title, daemon_alive: true };
    loop {
        server = server.fork_spares();
        server.wait();
    }
}

impl Server {
    /// Forks spares until enough wait. In a child it does not return.
    fn fork_spares(self) -> Server {
        while self.daemon_alive && self.slots.has_too_few() {
            let Some(slot) = self.slots.reserve() else { break };
            // SAFETY: the zygote never has a second thread.
            match unsafe { sys::fork() } {
                Ok(Forked::Child) => {
                    let Server { socket, sigchld, wake_rx, wake_tx, slots, title, .. } = self;
                    drop((sigchld, wake_rx));
                    spare(SpareLink { socket, zygote: wake_tx, slots }, slot, title)
                }
                Ok(Forked::Parent(pid)) => self.slots.fill(slot, pid),
                // The system has no process for us now: the next SIGCHLD or request tries again.
                Err(_) => {
                    self.slots.release(slot);
                    break;
                }
            }
        }
        self
    }

    /// Waits for the end of a child, for a request for a spare, or for the end of the daemon.
    fn wait(&mut self) {
        let mut fds = [
            PollFd::new(&self.sigchld, PollFlags::IN),
            PollFd::new(&self.wake_rx, PollFlags::IN),
            // Only its end: requests are for the spares.
            PollFd::new(&self.socket, PollFlags::empty()),
        ];
        // Without a daemon only children matter, and its socket would report its end for ever.
        let watched = if self.daemon_alive { &mut fds[..] } else { &mut fds[..1] };
        if poll(watched, None).is_err() {
            return;
        }
        let [sigchld, wake, socket] = fds.map(|fd| fd.revents());
        self.daemon_alive &= !socket.intersects(PollFlags::HUP | PollFlags::ERR);
        if wake.contains(PollFlags::IN) {
            let mut drained = [0u8; 64];
            let _ = rustix::io::read(&self.wake_rx, &mut drained);
        }
        if sigchld.contains(PollFlags::IN) {
            let mut drained = [0u8; 1024];
            let _ = rustix::io::read(&self.sigchld, &mut drained);
            self.reap();
            continue_stopped();
        }
    }

    fn reap(&self) {
        let mut killed = false;
        let childless = loop {
            match sys::reap() {
                Ok(Some(reaped)) => {
                    self.slots.release_pid(reaped.pid);
                    killed |= libc::WIFSIGNALED(reaped.status);
                }
                Ok(None) => break false,
                Err(_) => break true,
            }
        };
        if killed {
            kill_orphans();
        }
        if childless && !self.daemon_alive {
            sys::exit(0);
        }
    }
}

/// Continues every child that was stopped. A job can stop its own shim, and a stopped shim records no exit and answers no
/// call; nothing has a reason to stop one.
fn continue_stopped() {
    while let Some(pid) = sys::next_stopped_child() {
        let _ = sys::signal_child(pid, libc::SIGCONT);
    }
}

/// Kills the processes that a killed shim left behind. A shim that exits by itself has no process below it, so a child
/// of ours that is not a shim has lost its own: no process could see its output or its end any more.
fn kill_orphans() {
    let own = sys::own_pid();
    let mut orphans = Pids::new();
    tree::children(own, &mut orphans);
    for orphan in orphans.list().iter().filter(|pid| !tree::is_shim(**pid)) {
        let below = tree::descendants(*orphan);
        tree::signal(*orphan, libc::SIGKILL, |parent| parent == own);
        for member in below.list() {
            tree::signal(*member, libc::SIGKILL, |parent| parent == *orphan || below.contains(parent));
        }
    }
}

/// Waits for a request, then becomes its shim.
fn spare(link: SpareLink, slot: usize, title: Option<ProcessTitle>) -> ! {
    let own = rustix::process::getpid().as_raw_nonzero().get();
    link.slots.fill(slot, own);
    let Some(prepared) = run::Prepared::new(title) else { sys::exit(1) };
    prepared.set_idle_title();
    match link.wait(slot) {
        Some(control) => run::run(prepared, control, Some(link)),
        None => sys::exit(0),
    }
}
