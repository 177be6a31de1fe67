//! The life of a shim: prepare, launch, then serve pipes, children and the daemon until the tree is gone.

use super::spare::SpareLink;
use super::{capture, hold, kept_env, kill, link, pause, start, stdin, stdio};
use crate::clock::{mono_ms, wall_ms};
use crate::hooks;
use crate::sandbox::Observer;
use crate::sys::{self, ProcessTitle};
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use toold_format::Stream;
use toold_format::frame::FromShim;
use toold_format::log::LogWriter;
use toold_format::slots::{self, Cause, Exit, Progress, Resizes, Slot};

/// The longest wait for an event, about 24 days: a kernel without `epoll_pwait2` takes no more.
const MAX_WAIT_MS: u64 = i32::MAX as u64;

/// The sources of events.
pub mod token {
    pub const CONTROL: u64 = 1;
    pub const HANDSHAKE: u64 = 2;
    pub const LISTENER: u64 = 3;
    pub const OUT: u64 = 4;
    pub const ERR: u64 = 5;
    pub const CHILDREN: u64 = 6;
    pub const STDIN: u64 = 7;
    pub const ZYGOTE: u64 = 8;
    pub const SANDBOX: u64 = 9;
}

/// The parts of a shim that are made before it gets a process, so that a start does not wait for them.
pub struct Prepared {
    pub epoll: OwnedFd,
    pub children: OwnedFd,
    title: Option<ProcessTitle>,
    /// The memory of one process at a time.
    pub arena: sys::Arena,
    /// The pipes of the next process.
    pub pipes: Option<stdio::Pipes>,
}

impl Prepared {
    /// Makes this process a session of its own and the reaper of its descendants.
    pub fn new(title: Option<ProcessTitle>) -> Option<Prepared> {
        let _ = rustix::process::setsid();
        rustix::process::set_child_subreaper(Some(rustix::process::getpid())).ok()?;
        let children = sys::sigchld_fd().ok()?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).ok()?;
        watch(&epoll, children.as_fd(), token::CHILDREN, EventFlags::IN).ok()?;
        let arena =
            sys::Arena::new(capture::READ_BUF_LEN + link::MEMORY_LEN + stdin::MEMORY_LEN + kept_env::MEMORY_LEN)?;
        let mut prepared = Prepared { epoll, children, title, arena, pipes: None };
        prepared.open_pipes();
        Some(prepared)
    }

    /// Opens the pipes that most processes need.
    fn open_pipes(&mut self) {
        // If this fails, the start tries again and reports the error.
        self.pipes = self.pipes.take().or_else(|| stdio::Pipes::open().ok());
    }

    /// Shows that this shim waits for a process.
    pub fn set_idle_title(&self) {
        self.set_title(&[b"toold: spare shim"]);
        sys::set_name(c"toold-spare");
    }

    /// Sets the command line that `ps` shows.
    pub fn set_title(&self, parts: &[&[u8]]) {
        if let Some(title) = &self.title {
            title.set(parts);
        }
    }
}

pub fn watch(epoll: &OwnedFd, fd: BorrowedFd<'_>, token: u64, flags: EventFlags) -> Result<(), Errno> {
    epoll::add(epoll, fd, EventData::new_u64(token), flags)
}

pub fn rewatch(epoll: &OwnedFd, fd: BorrowedFd<'_>, token: u64, flags: EventFlags) {
    let _ = epoll::modify(epoll, fd, EventData::new_u64(token), flags);
}

pub fn unwatch(epoll: &OwnedFd, fd: BorrowedFd<'_>) {
    let _ = epoll::delete(epoll, fd);
}

/// A shim at work.
pub struct Shim {
    pub prepared: Prepared,
    pub pid: i32,
    /// The process's record. Its lock shows that this shim runs.
    pub record: OwnedFd,
    pub nonce: [u8; 16],
    pub link: link::DaemonLink,
    pub child_pid: i32,
    pub log: LogWriter,
    pub output: capture::Output,
    pub hold: hold::Hold,
    pub stdin: stdin::Stdin,
    /// The values of the program's variables, for a restart.
    pub kept_env: kept_env::KeptEnv,
    /// The values of the next run's variables, if they are others.
    pub next_env: Option<kept_env::KeptEnv>,
    /// The environment is wanted after the end of the program.
    pub keep: bool,
    /// Sees what the sandbox refuses. None: the program is not confined.
    pub observer: Option<Observer>,
    pub kill_state: kill::KillState,
    pub pause_state: pause::PauseState,
    pub rows: u16,
    pub cols: u16,
    /// The sizes that the terminal got after its start.
    pub resizes: Resizes,
    pub exit: Option<Exit>,
    pub closed: bool,
    pub send_closed_at: Option<u64>,
    /// No child is left.
    pub childless: bool,
    pub timeout_at: Option<u64>,
    pub idle_ms: u64,
    pub active_at: u64,
    pub grace_ms: u64,
    /// The exit is durable before it is reported.
    pub sync: bool,
    /// The kernel's count of out-of-memory kills, as an open file.
    pub oom_file: Option<OwnedFd>,
    /// The link to the zygote, to wait for the next process. None: this process is the last.
    pub spare_link: Option<SpareLink>,
}

/// Reads the launch, starts the program and serves it; then the next one, if there is a link to the zygote.
pub fn run(mut prepared: Prepared, mut control: OwnedFd, mut spare_link: Option<SpareLink>) -> ! {
    loop {
        hooks::at("shim.before_launch");
        let launched = start::launch(prepared, control);
        if let Some(spare_link) = &spare_link {
            spare_link.request_spare();
        }
        let Some(mut shim) = launched else { sys::exit(1) };
        if let Some(spare_link) = &spare_link {
            let _ = watch(&shim.prepared.epoll, spare_link.zygote.as_fd(), token::ZYGOTE, EventFlags::empty());
        }
        shim.spare_link = spare_link;
        shim.serve();
        (prepared, control, spare_link) = shim.reuse().unwrap_or_else(|| sys::exit(0));
    }
}

impl Shim {
    pub fn progress(&self) -> Progress {
        Progress {
            counts: self.log.counts(),
            closed: self.closed,
            held_back: self.is_held_back(),
            stdin_closed: self.stdin.is_closed(),
            stopped: self.pause_state.is_stopped(),
            rows: self.rows,
            cols: self.cols,
            sums: Some(self.log.sums()),
        }
    }

    pub fn write_slot(&self, at: u64, slot: &Slot) {
        let mut done = 0;
        while done < slot.len() {
            match rustix::io::pwrite(&self.record, &slot[done..], at + done as u64) {
                Ok(0) => break,
                Ok(n) => done += n,
                Err(Errno::INTR) => {}
                // The page was written when the record was made, so only a failing disk comes here.
                Err(_) => break,
            }
        }
    }

    pub fn write_progress(&self) {
        self.write_slot(slots::COUNTS_AT, &self.progress().slot());
    }

    fn serve(&mut self) {
        while !self.is_finished() {
            let now = mono_ms();
            let timeout = self.next_deadline().map(|at| at.saturating_sub(now).min(MAX_WAIT_MS));
            let timeout = timeout.map(|ms| rustix::time::Timespec {
                tv_sec: (ms / 1000) as i64,
                tv_nsec: (ms % 1000 * 1_000_000) as i64,
            });
            let mut events = [std::mem::MaybeUninit::uninit(); 8];
            let Ok((prepared, _)) = epoll::wait(&self.prepared.epoll, &mut events, timeout.as_ref()) else { continue };
            // In the order in which they became ready: that keeps the streams in order.
            for event in prepared.iter() {
                let (flags, what) = (event.flags, event.data.u64());
                self.handle(what, flags);
            }
            self.tick(mono_ms());
        }
        self.leave();
    }

    fn handle(&mut self, what: u64, flags: EventFlags) {
        match what {
            token::OUT => self.capture(Stream::Stdout),
            token::ERR => self.capture(Stream::Stderr),
            token::CHILDREN => {
                let mut drained = [0u8; 512];
                let _ = rustix::io::read(&self.prepared.children, &mut drained);
                self.reap();
            }
            token::CONTROL => self.control_event(flags),
            token::HANDSHAKE => self.handshake_event(),
            token::LISTENER => self.accept(),
            token::STDIN => self.stdin_event(),
            token::SANDBOX => self.sandbox_event(flags),
            // Only its end is watched.
            token::ZYGOTE => self.spare_link = None,
            // There are no other tokens.
            _ => {}
        }
        // A terminal's master is readable and writable under one token.
        if what == token::OUT && self.stdin.waits_for_pty() && flags.contains(EventFlags::OUT) {
            self.stdin_event();
        }
    }

    /// Checks that the program has ended, its output too, and that no process of the tree is left.
    fn is_finished(&self) -> bool {
        self.exit.is_some() && self.closed && self.childless && !self.kill_state.is_pending() && !self.keep
    }

    fn next_deadline(&self) -> Option<u64> {
        let timeout = self.timeout_at.filter(|_| self.exit.is_none());
        let idle = self.can_be_idle().then(|| self.idle_at());
        let releases = [self.output.release_at(), self.hold.release_at()];
        let (kill, pause) = (self.kill_state.deadline(), self.pause_state.deadline());
        [timeout, idle, kill, pause, self.send_closed_at].into_iter().chain(releases).flatten().min()
    }

    /// Checks that the time without output counts. A stopped program is not idle, nor one whose output waits for a reader.
    fn can_be_idle(&self) -> bool {
        let is_waiting = self.pause_state.is_stopped() || self.is_held_back();
        self.exit.is_none() && self.idle_ms > 0 && !self.kill_state.is_pending() && !is_waiting
    }

    /// Returns the time at which the program counts as idle. A time that no clock reaches is never.
    fn idle_at(&self) -> u64 {
        self.active_at.saturating_add(self.idle_ms)
    }

    /// Moves the timeout of the program. Fails if it has ended, if it has no timeout, and if that is over.
    pub fn extend_timeout(&mut self, by_ms: i64) -> Result<(), Errno> {
        self.reap();
        if self.exit.is_some() {
            return Err(Errno::SRCH);
        }
        let at = self.timeout_at.as_mut().ok_or(Errno::TIME)?;
        *at = at.saturating_add_signed(by_ms);
        Ok(())
    }

    fn tick(&mut self, now: u64) {
        if self.exit.is_none() && self.timeout_at.is_some_and(|at| now >= at) {
            self.timeout_at = None;
            let (signal, grace) = (libc::SIGTERM, self.grace_ms);
            self.kill(kill::KillRequest { token: 0, signal, grace_ms: grace, cause: Cause::Timeout, uid: 0, pid: 0 });
        }
        if self.can_be_idle() && now >= self.idle_at() {
            let (signal, grace) = (libc::SIGTERM, self.grace_ms);
            self.kill(kill::KillRequest { token: 0, signal, grace_ms: grace, cause: Cause::Idle, uid: 0, pid: 0 });
        }
        self.kill_tick(now);
        self.pause_tick(now);
        if self.send_closed_at.is_some_and(|at| now >= at) {
            self.send_closed();
        }
        self.hold_tick(now);
        self.release_idle(now);
    }

    /// Reaps every child that ended. The program's own end is recorded, then reported.
    pub fn reap(&mut self) {
        self.kill_leaderless_group();
        loop {
            match sys::reap_or_stopped() {
                Ok(Some(reaped)) if reaped.stopped().is_some() => {
                    if reaped.pid == self.child_pid {
                        self.set_stopped(reaped.stopped() == Some(true));
                    }
                }
                Ok(Some(reaped)) if reaped.pid == self.child_pid && self.exit.is_none() => self.child_exited(&reaped),
                // An orphaned descendant that became our child: only its absence matters.
                Ok(Some(_)) => self.kill_state.tree_changed(),
                Ok(None) => {
                    self.childless = false;
                    break;
                }
                Err(Errno::INTR) => {}
                Err(_) => {
                    self.childless = true;
                    break;
                }
            }
        }
        if self.kill_state.is_pending() {
            self.kill_tick(mono_ms());
        }
        // With no process left, `leave` sends it along with `Gone`: one message instead of three.
        if self.exit.is_some() && !self.is_finished() {
            self.flush();
            hooks::at("exit.told");
        }
    }

    fn child_exited(&mut self, reaped: &sys::Reaped) {
        hooks::at("exit.reaped");
        self.kill_state.tree_changed();
        self.end_pause();
        // Everything that it wrote before its end is in the pipes by now.
        self.drain();
        let (cause, uid, pid) = self.kill_state.attribute(reaped.status);
        let oom_kills = self.oom_kills();
        let killed = libc::WIFSIGNALED(reaped.status) && libc::WTERMSIG(reaped.status) == libc::SIGKILL;
        let exit = Exit {
            wait_status: reaped.status,
            cause,
            oom: killed && cause == Cause::Itself && oom_kills > 0,
            by_uid: uid,
            by_pid: pid,
            at_ms: wall_ms(),
            end: self.log.counts().end,
            cpu_us: reaped.cpu_us,
            max_rss_kib: reaped.max_rss_kib,
            oom_kills,
        };
        self.exit = Some(exit);
        self.record_writes();
        self.flush_denials();
        hooks::at("exit.before_record");
        self.write_slot(slots::EXIT_AT, &exit.slot());
        hooks::at("exit.written");
        if self.sync {
            // The exit is true also when the disk fails: it is reported all the same.
            let _ = rustix::fs::fdatasync(&self.record);
        }
        hooks::at("exit.recorded");
        let progress = self.progress();
        self.enqueue(&FromShim::Exited { exit, progress });
        if self.closed {
            self.send_closed_at = None;
            self.enqueue(&FromShim::Closed { progress });
        }
    }

    /// Reads the number of processes of the group that the kernel killed for memory. 0 without a memory limit.
    fn oom_kills(&self) -> u32 {
        let Some(file) = &self.oom_file else { return 0 };
        let mut text = [0u8; 1024];
        let len = rustix::io::pread(file, &mut text, 0).unwrap_or(0);
        let text = std::str::from_utf8(&text[..len]).unwrap_or("");
        let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
        count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
    }

    fn leave(&mut self) {
        self.flush_denials();
        self.write_progress();
        hooks::at("exit.before_gone");
        self.send(&FromShim::Gone);
        self.link.flush_blocking();
        hooks::at("exit.told");
        hooks::at("exit.gone");
    }

    /// Drops everything of this process, and waits for the next. None: the daemon is gone, or enough spares wait already.
    fn reuse(self) -> Option<(Prepared, OwnedFd, Option<SpareLink>)> {
        let Shim {
            mut prepared,
            spare_link: Some(spare_link),
            pid,
            record,
            link,
            output,
            stdin,
            kept_env,
            next_env,
            log,
            oom_file,
            observer,
            ..
        } = self
        else {
            return None;
        };
        // Now, not when the next process is there: a daemon waits for the record's lock.
        drop((record, link, output, stdin, kept_env, next_env, log, oom_file, observer));
        // SAFETY: the loans were in `link`, `output`, `stdin` and `kept_env`, which were just dropped.
        unsafe { prepared.arena.clear() };
        prepared.open_pipes();
        let place = spare_link.slots.claim(pid)?;
        unwatch(&prepared.epoll, spare_link.zygote.as_fd());
        prepared.set_idle_title();
        let control = spare_link.wait(place)?;
        Some((prepared, control, Some(spare_link)))
    }
}
