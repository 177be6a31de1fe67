//! The start: lock the record, open pipes or a terminal, run the program. Each step that fails is
//! recorded and reported with its errno, and nothing is left running.

use super::address;
use super::capture::{self, Output};
use super::hold::Hold;
use super::kept_env::KeptEnv;
use super::kill::KillState;
use super::link::{self, DaemonLink};
use super::pause::PauseState;
use super::run::{Prepared, Shim, token, watch};
use super::stdin::{self, Stdin};
use super::stdio::{ParentStdio, nonblocking};
use super::tree;
use crate::clock::{mono_ms, wall_ms};
use crate::hooks;
use crate::sandbox::fds::{self, ReceivedFds};
use crate::sandbox::{self, ChildSandbox};
use crate::sys::{self, ChildPlan};
use rustix::event::epoll::EventFlags;
use rustix::fd::{AsFd, OwnedFd, RawFd};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use std::ffi::CStr;
use toold_format::frame::{self, FromShim, HEADER_LEN, ToShim};
use toold_format::launch::LaunchBlock;
use toold_format::log::LogWriter;
use toold_format::slots::{self, Head, Launch, LaunchSlot, Resizes, SLOT_LEN, Slot, Stage};
use toold_format::step;

/// The longest launch a shim reads. The kernel's own limit on arguments is below it.
pub const MAX_LAUNCH_LEN: usize = 16 * 1024 * 1024;
/// The length of the child's stack until it execs.
const CHILD_STACK_LEN: usize = 64 * 1024;
/// The lengths of the launch, and of the tables of pointers into it, that most launches fit into.
const INLINE_LAUNCH_LEN: usize = 96 * 1024;
const INLINE_TABLES_LEN: usize = 64 * 1024;
const _: () = assert!(
    INLINE_LAUNCH_LEN + CHILD_STACK_LEN + INLINE_TABLES_LEN <= capture::READ_BUF_LEN,
    "the start needs more than there is"
);

/// A step that failed.
pub(super) struct StepFailed(pub u32, pub Errno);

pub(super) fn failed_at(step: u32) -> impl Fn(Errno) -> StepFailed {
    move |errno| StepFailed(step, errno)
}

/// The parts of a start that is under way.
struct LaunchContext<'a> {
    control: &'a OwnedFd,
    record: Option<OwnedFd>,
    pid: i32,
    /// The record is durable before the program runs, and before its failure is reported.
    sync: bool,
}

impl LaunchContext<'_> {
    fn send(&self, frame: &FromShim<'_>) {
        let mut bytes = StackBuffer { bytes: [0; 256], len: 0 };
        frame.put(&mut bytes);
        let _ = rustix::net::send(self.control, &bytes.bytes[..bytes.len], SendFlags::NOSIGNAL);
    }

    fn write_launch(&self, launch: &Launch) -> Result<(), Errno> {
        let Some(record) = &self.record else { return Err(Errno::BADF) };
        rustix::io::pwrite(record, &launch.slot(), slots::LAUNCH_AT).map(drop)
    }

    /// Starts to write the record to the disk. The child waits for the end of it: started here, it is nearly done by then.
    fn start_sync(&self) {
        if let Some(record) = self.record.as_ref().filter(|_| self.sync) {
            let _ = sys::start_writeback(record);
        }
    }

    fn sync_record(&self) {
        if let Some(record) = self.record.as_ref().filter(|_| self.sync) {
            let _ = rustix::fs::fdatasync(record);
        }
    }
}

struct StackBuffer {
    bytes: [u8; 256],
    len: usize,
}

impl frame::Sink for StackBuffer {
    fn put(&mut self, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            place.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }
}

/// Starts a program and returns its shim. None: it does not run, and that is recorded and reported.
pub fn launch(mut prepared: Prepared, control: OwnedFd) -> Option<Shim> {
    // SAFETY: the loan of the process before ended with its shim, see `Shim::reuse`.
    let arena = unsafe { prepared.arena.all() };
    // Output is read into the same memory, once the program runs.
    let (buffer, rest) = arena.split_at_mut(capture::READ_BUF_LEN);
    let (inline, scratch) = buffer.split_at_mut(INLINE_LAUNCH_LEN);
    let mut fds = ReceivedFds::default();
    let mut received = receive(&control, inline, &mut fds)?;
    let (block, confinement) = match received.read()? {
        ToShim::Launch { block } => (block, None),
        ToShim::LaunchSandboxed { sandbox, block } => (block, Some((sandbox, fds))),
        ToShim::MakeNamespaces { block } => {
            sandbox::make(control.as_fd(), block, fds.take_next());
            return None;
        }
        // No other frame is the first of a connection.
        _ => return None,
    };
    let block = LaunchBlock::decode(block);
    let options = block.map(|b| b.options).unwrap_or_default();
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    let mut ctx = LaunchContext { control: &control, record: None, pid, sync: options.sync };
    let started = match &block {
        Some(block) => prepare(&mut prepared, &mut ctx, block, confinement, scratch),
        None => Err(StepFailed(step::LAUNCH, Errno::INVAL)),
    };
    let child = match started {
        Ok(child) => child,
        Err(StepFailed(step, errno)) => {
            report_failure(&ctx, step, errno.raw_os_error());
            return None;
        }
    };
    ctx.send(&FromShim::Started { pid: child.pid, shim_pid: pid, ticks: child.ticks });
    hooks::at("spawn.told");
    let record = ctx.record?;
    let (for_link, rest) = rest.split_at_mut(link::MEMORY_LEN);
    let (for_stdin, for_env) = rest.split_at_mut(stdin::MEMORY_LEN);
    // Only after the start was reported: no caller waits for it.
    let kept_env = KeptEnv::new(block.map(|block| block.env).unwrap_or_default(), for_env);
    // The launch had the values too, and they are to be in one place.
    received.release();
    // SAFETY: the arena is a mapping of whole pages, and so is the buffer at its start.
    unsafe { sys::discard_pages(buffer) };
    let ParentStdio { out, err, stdin, is_pty } = child.stdio;
    let stdin = match (is_pty, stdin) {
        (true, _) => Stdin::pty(for_stdin),
        (false, Some(fd)) => Stdin::pipe(fd, for_stdin),
        (false, None) => Stdin::null(for_stdin),
    };
    let now = mono_ms();
    let hold = Hold::new(options.hold_ms, now);
    let mut log = LogWriter::new(child.dir, options.log_max_bytes);
    log.keep_from(hold.keep_from());
    let mut shim = Shim {
        prepared,
        pid,
        record,
        nonce: child.nonce,
        link: DaemonLink::new(control, child.listener, for_link),
        child_pid: child.pid,
        log,
        output: Output::new(out, err, is_pty, buffer),
        hold,
        stdin,
        kept_env,
        next_env: None,
        keep: options.keep,
        observer: child.observer,
        kill_state: KillState::new(),
        pause_state: PauseState::new(),
        rows: options.rows,
        cols: options.cols,
        resizes: Resizes::default(),
        exit: None,
        closed: false,
        send_closed_at: None,
        childless: false,
        timeout_at: (options.timeout_ms > 0).then(|| now.saturating_add(options.timeout_ms)),
        idle_ms: options.idle_ms,
        active_at: now,
        grace_ms: options.grace_ms,
        sync: options.sync,
        oom_file: child.oom_file,
        spare_link: None,
    };
    shim.report_blindness();
    Some(shim)
}

fn report_failure(ctx: &LaunchContext<'_>, step: u32, errno: i32) {
    // Without the lock the record belongs to another shim: `ctx.record` is none, and nothing is written.
    let (stage, shim_pid) = (Stage::Failed, ctx.pid);
    let launch = Launch { step, errno, ..launch_slot(stage, shim_pid) };
    let _ = ctx.write_launch(&launch);
    ctx.sync_record();
    ctx.send(&FromShim::Failed { step, errno });
}

/// A launch frame, in the arena or in memory of its own.
enum LaunchFrame<'a> {
    Inline(&'a mut [u8]),
    Mapped(&'static mut [u8]),
}

impl LaunchFrame<'_> {
    fn bytes(&mut self) -> &mut [u8] {
        match self {
            LaunchFrame::Inline(bytes) => bytes,
            LaunchFrame::Mapped(bytes) => bytes,
        }
    }

    /// Reads the frame. None: a kind of a later version, which starts nothing.
    fn read(&mut self) -> Option<ToShim<'_>> {
        let (kind, body, _) = frame::next_frame(self.bytes(), MAX_LAUNCH_LEN).ok().flatten()?;
        ToShim::read(kind, body)
    }

    fn release(self) {
        if let LaunchFrame::Mapped(memory) = self {
            // SAFETY: all of a mapping from `map_anonymous`, made in `receive`.
            unsafe { sys::unmap(memory) };
        }
    }
}

/// Reads the whole launch frame with the descriptors beside it, and nothing beyond it. None when the daemon disconnected
/// before its end.
fn receive<'a>(control: &OwnedFd, inline: &'a mut [u8], fds: &mut ReceivedFds) -> Option<LaunchFrame<'a>> {
    let mut header = [0u8; HEADER_LEN];
    // The descriptors are beside the first byte.
    let len = loop {
        match fds::receive(control.as_fd(), &mut header, fds) {
            Err(Errno::INTR) => {}
            other => break other.ok().filter(|len| *len > 0)?,
        }
    };
    read_exact(control, &mut header[len..])?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
    if length > MAX_LAUNCH_LEN {
        return None;
    }
    let mut received = match inline.get_mut(..HEADER_LEN + length) {
        Some(place) => LaunchFrame::Inline(place),
        None => LaunchFrame::Mapped(sys::map_anonymous(HEADER_LEN + length)?),
    };
    let bytes = received.bytes();
    bytes[..HEADER_LEN].copy_from_slice(&header);
    read_exact(control, &mut bytes[HEADER_LEN..])?;
    Some(received)
}

fn read_exact(control: &OwnedFd, mut into: &mut [u8]) -> Option<()> {
    while !into.is_empty() {
        match rustix::net::recv(control, &mut *into, RecvFlags::empty()) {
            Ok((0, _)) => return None,
            Ok((n, _)) => into = &mut into[n..],
            Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
    Some(())
}

/// A program that runs, and our ends of everything it has.
struct RunningChild {
    pid: i32,
    /// Its start time, see `tree::ticks`.
    ticks: u64,
    dir: OwnedFd,
    nonce: [u8; 16],
    listener: OwnedFd,
    stdio: ParentStdio,
    oom_file: Option<OwnedFd>,
    observer: Option<sandbox::Observer>,
}

fn prepare(
    prepared: &mut Prepared,
    ctx: &mut LaunchContext<'_>,
    block: &LaunchBlock<'_>,
    confinement: Option<(&[u8], ReceivedFds)>,
    scratch: &mut [u8],
) -> Result<RunningChild, StepFailed> {
    let dir = rustix::fs::open(block.dir, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(failed_at(step::RECORD))?;
    let id = block.dir.to_bytes().rsplit(|b| *b == b'/').next().unwrap_or(b"");
    let (record, nonce) = lock_record(&dir)?;
    ctx.record = Some(record);
    hooks::at("spawn.locked");
    let confinement = confinement.map(|(block, mut fds)| ChildSandbox::new(block, &mut fds)).transpose()?;
    let listener = address::listen_at(id, &nonce).map_err(failed_at(step::SOCKET))?;
    let (stdio, child_stdio) = {
        let dev = confinement.as_ref().and_then(ChildSandbox::dev);
        ParentStdio::open(&block.options, prepared.pipes.take(), dev)?
    };
    ctx.write_launch(&launch_slot(Stage::Launching, ctx.pid)).map_err(failed_at(step::RECORD))?;
    hooks::at("spawn.launching");
    ctx.start_sync();
    let child_fds = child_stdio.raw_fds();
    let mut ticks = 0;
    let (mut watched, mut observer) = (Ok(()), Ok(None));
    let while_child_starts = |pid| {
        ticks = tree::ticks(pid);
        // The child has copies of its ends by now.
        drop(child_stdio);
        watched = watch_fds(prepared, ctx.control, &listener, &stdio);
        prepared.set_title(&[b"toold: shim ", id]);
        sys::set_name(c"toold-shim");
        // Last, because it waits for the child.
        observer = confinement.as_ref().map(|confinement| confinement.take_observer(&prepared.epoll)).transpose();
    };
    // SAFETY: `child_stdio` is dropped in the closure, which runs after the fork.
    let pid = unsafe { spawn_child(ctx, block, confinement.as_ref(), child_fds, scratch, while_child_starts) }?;
    hooks::at("spawn.forked");
    let stdin_inode = stdio.stdin_inode();
    let _ = ctx.write_launch(&Launch { pid, ticks, stdin_inode, ..launch_slot(Stage::Running, ctx.pid) });
    hooks::at("spawn.running");
    // The program runs. Descriptors that cannot be watched cannot be served: it ends with us.
    watched.map_err(failed_at(step::SOCKET))?;
    let mut observer = observer?;
    if let Some(observer) = &mut observer {
        observer.started(pid);
    }
    let oom_file = (!block.oom_file.is_empty())
        .then(|| rustix::fs::open(block.oom_file, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok())
        .flatten();
    Ok(RunningChild { pid, ticks, dir, nonce, listener, stdio, oom_file, observer })
}

fn launch_slot(stage: Stage, shim_pid: i32) -> Launch {
    Launch { stage, shim_pid, pid: 0, ticks: 0, step: 0, errno: 0, at_ms: wall_ms(), stdin_inode: 0 }
}

/// Takes the record's lock, and makes sure that no daemon declared it lost and no shim started it before.
fn lock_record(dir: &OwnedFd) -> Result<(OwnedFd, [u8; 16]), StepFailed> {
    let record = rustix::fs::openat(dir, c"record", OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty())
        .map_err(failed_at(step::RECORD))?;
    hooks::at("spawn.opened");
    rustix::fs::flock(&record, FlockOperation::NonBlockingLockExclusive).map_err(failed_at(step::LOCK))?;
    if rustix::fs::fstat(&record).map_err(failed_at(step::RECORD))?.st_nlink == 0 {
        // Discarded between our open and our lock: a daemon found a start that never got anywhere.
        return Err(StepFailed(step::LOCK, Errno::NOENT));
    }
    let mut page = [0u8; slots::LAUNCH_AT as usize + SLOT_LEN];
    rustix::io::pread(&record, &mut page, 0).map_err(failed_at(step::RECORD))?;
    let slot = |at: u64| -> Slot { std::array::from_fn(|byte| page[at as usize + byte]) };
    let head = Head::read(&slot(slots::HEAD_AT)).ok_or(StepFailed(step::RECORD, Errno::INVAL))?;
    let launch = LaunchSlot::read(&slot(slots::LAUNCH_AT));
    if !matches!(launch, LaunchSlot::Empty | LaunchSlot::NotLaunched) {
        // A damaged slot may be that of a start, and a program never runs twice. Dropped without a launch slot of ours: the record holds the first start already.
        return Err(StepFailed(step::LOCK, Errno::ALREADY));
    }
    Ok((record, head.nonce))
}

/// Watches everything that the shim is to serve.
fn watch_fds(prepared: &Prepared, control: &OwnedFd, listener: &OwnedFd, stdio: &ParentStdio) -> Result<(), Errno> {
    nonblocking(control)?;
    watch(&prepared.epoll, control.as_fd(), token::CONTROL, EventFlags::IN)?;
    watch(&prepared.epoll, listener.as_fd(), token::LISTENER, EventFlags::IN)?;
    watch(&prepared.epoll, stdio.out.as_fd(), token::OUT, EventFlags::IN)?;
    match &stdio.err {
        Some(err) => watch(&prepared.epoll, err.as_fd(), token::ERR, EventFlags::IN),
        None => Ok(()),
    }
}

/// Runs the program and returns its pid.
///
/// # Safety
///
/// The descriptors are open until `while_child_starts` is called, which is after the fork.
unsafe fn spawn_child(
    ctx: &LaunchContext<'_>,
    block: &LaunchBlock<'_>,
    confinement: Option<&ChildSandbox<'_>>,
    [stdin, stdout, stderr]: [RawFd; 3],
    scratch: &mut [u8],
    while_child_starts: impl FnOnce(i32),
) -> Result<i32, StepFailed> {
    let no_memory = || StepFailed(step::MEMORY, Errno::NOMEM);
    let lists = [block.cgroups, block.argv, block.env];
    let count = lists.iter().map(|list| list.len() + 1).sum();
    let (stack, inline) = scratch.split_at_mut(CHILD_STACK_LEN);
    let needed = (count + 1) * size_of::<usize>();
    let mut mapped = if needed > inline.len() { Some(sys::map_anonymous(needed).ok_or(no_memory())?) } else { None };
    let memory = mapped.as_deref_mut().unwrap_or(inline);
    let table = sys::pointer_table(memory, count).ok_or(no_memory())?;
    // Three lists, each ended by null.
    let mut pointers = lists.iter().flat_map(|list| list.iter().map(CStr::as_ptr).chain([std::ptr::null()]));
    table.fill_with(|| pointers.next().unwrap_or(std::ptr::null()));
    let (cgroups, rest) = table.split_at(block.cgroups.len() + 1);
    let (argv, env) = rest.split_at(block.argv.len() + 1);
    let mut plan = ChildPlan {
        stdin,
        stdout,
        stderr,
        is_pty: block.options.pty,
        cwd: block.cwd,
        confinement,
        program: block.program,
        argv: argv.as_ptr(),
        env: env.as_ptr(),
        cgroups: cgroups.as_ptr(),
        record: ctx.record.as_ref().map(AsFd::as_fd),
        sync: ctx.sync,
        parent: ctx.pid,
        failed: None,
    };
    // SAFETY: the three lists are C strings of the block, ended by null, and both outlive the call; the caller promises the
    // descriptors; the stack is 64 KiB; the closure makes system calls through rustix, which does not touch errno, and
    // closes descriptors, which does so only when it fails.
    let spawned = unsafe { sys::spawn(&mut plan, stack, while_child_starts) };
    let failed = plan.failed;
    if let Some(memory) = mapped {
        // SAFETY: all of the mapping from above, and the child has left our memory.
        unsafe { sys::unmap(memory) };
    }
    let pid = spawned.map_err(failed_at(step::FORK))?;
    if let Some((step, errno)) = failed {
        let _ = sys::reap();
        return Err(StepFailed(step, errno));
    }
    Ok(pid)
}
