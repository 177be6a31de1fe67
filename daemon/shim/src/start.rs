//! The start: lock the record, open pipes or a terminal, run the program. Each step that fails is
//! recorded and told with its errno, and nothing is left running.

use super::address;
use super::capture::{self, Output};
use super::kill::KillState;
use super::link::{self, DaemonLink};
use super::run::{Prepared, Shim, token, watch};
use super::stdin::Stdin;
use super::stdio::{ParentStdio, nonblocking};
use super::tree;
use crate::clock::{mono_ms, wall_ms};
use crate::hooks;
use crate::sys::{self, ChildPlan};
use rustix::event::epoll::EventFlags;
use rustix::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use toold_format::frame::{self, FromShim, HEADER_LEN, ToShim};
use toold_format::launch::{Block, Numbers};
use toold_format::log::LogWriter;
use toold_format::slots::{self, Head, Launch, SLOT_LEN, Slot, Stage};
use toold_format::step;

/// The longest launch a shim reads. The kernel's own limit on arguments is below it.
pub const MAX_LAUNCH_LEN: usize = 16 * 1024 * 1024;
/// The child's stack until it execs.
const CHILD_STACK_LEN: usize = 64 * 1024;
/// The launch, and the tables of pointers into it, as large as they usually are at most.
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

/// What belongs to a start that is under way.
struct LaunchContext<'a> {
    control: &'a OwnedFd,
    record: Option<OwnedFd>,
    pid: i32,
    /// The disk is waited for: before the program runs, and before its failure is told.
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

    /// What the program's child waits for. Begun early it is nearly done by then.
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

/// The shim of a program that runs. None: it does not, and that is recorded and told.
pub fn launch(mut prepared: Prepared, control: OwnedFd) -> Option<Shim> {
    // Output is read into the same memory, once the program runs.
    let (buffer, rest) = prepared.arena.all().split_at_mut(capture::READ_BUF_LEN);
    let (usual, scratch) = buffer.split_at_mut(INLINE_LAUNCH_LEN);
    let mut received = receive(&control, usual)?;
    let block = Block::decode(&received.bytes()[HEADER_LEN..]);
    let sync = block.as_ref().is_some_and(|b| b.numbers.sync);
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    let mut ctx = LaunchContext { control: &control, record: None, pid, sync };
    let made = match &block {
        Some(block) => prepare(&mut prepared, &mut ctx, block, scratch),
        None => Err(StepFailed(step::LAUNCH, Errno::INVAL)),
    };
    let (child, ticks) = match made {
        Ok(made) => made,
        Err(StepFailed(step, errno)) => {
            report_failure(&ctx, step, errno.raw_os_error());
            return None;
        }
    };
    let numbers = block.map(|b| b.numbers).unwrap_or_default();
    ctx.send(&FromShim::Started { pid: child.child_pid, shim_pid: ctx.pid, ticks });
    hooks::at("spawn.told");
    let (record, pid) = (ctx.record?, ctx.pid);
    received.release();
    sys::discard_pages(buffer);
    assemble(prepared, child, Memory { buffer, rest }, Connected { record, control, pid }, numbers)
}

fn report_failure(ctx: &LaunchContext<'_>, step: u32, errno: i32) {
    // Without the lock the record is another's, and not ours to write.
    let (stage, shim_pid) = (Stage::Failed, ctx.pid);
    let launch = Launch { stage, shim_pid, pid: 0, ticks: 0, step, errno, at_ms: wall_ms() };
    let _ = ctx.write_launch(&launch);
    ctx.sync_record();
    ctx.send(&FromShim::Failed { step, errno });
}

/// A launch frame, in the usual place or in memory of its own.
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

    fn release(self) {
        if let LaunchFrame::Mapped(memory) = self {
            sys::unmap(memory);
        }
    }
}

/// Reads the launch frame whole, and nothing beyond it. None when the daemon went away before it was.
fn receive<'a>(control: &OwnedFd, usual: &'a mut [u8]) -> Option<LaunchFrame<'a>> {
    let mut header = [0u8; HEADER_LEN];
    read_exact(control, &mut header)?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
    if length > MAX_LAUNCH_LEN {
        return None;
    }
    let mut received = match usual.get_mut(..HEADER_LEN + length) {
        Some(place) => LaunchFrame::Inline(place),
        None => LaunchFrame::Mapped(sys::map_anonymous(HEADER_LEN + length)?),
    };
    let bytes = received.bytes();
    bytes[..HEADER_LEN].copy_from_slice(&header);
    read_exact(control, &mut bytes[HEADER_LEN..])?;
    let frame = frame::next_frame(bytes, MAX_LAUNCH_LEN).ok().flatten()?;
    matches!(ToShim::read(frame.0, frame.1), Some(ToShim::Launch { .. })).then_some(())?;
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

/// Everything a running program has.
struct RunningChild {
    dir: OwnedFd,
    nonce: [u8; 16],
    listener: OwnedFd,
    child_pid: i32,
    stdio: ParentStdio,
    oom_file: Option<OwnedFd>,
}

fn prepare(
    prepared: &mut Prepared,
    ctx: &mut LaunchContext<'_>,
    block: &Block<'_>,
    scratch: &mut [u8],
) -> Result<(RunningChild, u64), StepFailed> {
    let dir_name = block.dir();
    let dir_path = std::ffi::CStr::from_bytes_with_nul(dir_name).map_err(|_| StepFailed(step::LAUNCH, Errno::INVAL))?;
    let dir = rustix::fs::open(dir_path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(failed_at(step::RECORD))?;
    let id = dir_name.rsplit(|b| *b == b'/').next().unwrap_or(b"");
    let id = &id[..id.len().saturating_sub(1)];
    let (record, nonce) = lock_record(&dir)?;
    ctx.record = Some(record);
    hooks::at("spawn.locked");
    let listener = address::listen_at(id, &nonce).map_err(failed_at(step::SOCKET))?;
    let (stdio, child_stdio) = ParentStdio::open(&block.numbers, prepared.pipes.take())?;
    ctx.write_launch(&launch_slot(Stage::Launching, ctx.pid)).map_err(failed_at(step::RECORD))?;
    hooks::at("spawn.launching");
    ctx.start_sync();
    let plan = [child_stdio.stdin.as_raw_fd(), child_stdio.stdout.as_raw_fd(), child_stdio.stderr.as_raw_fd()];
    // What can be done while the program is on its way: it has copies of its stdio by then.
    let mut ticks = 0;
    let mut watched = Ok(());
    let while_child_starts = |pid| {
        ticks = tree::ticks(pid);
        drop(child_stdio);
        watched = watch_fds(prepared, ctx.control, &listener, &stdio);
        prepared.set_title(&[b"toold: shim ", id]);
        sys::set_name(c"toold-shim");
    };
    let (child_pid, oom_file) = spawn_child(ctx, block, &stdio, plan, scratch, while_child_starts)?;
    hooks::at("spawn.forked");
    let launch = Launch { pid: child_pid, ticks, ..launch_slot(Stage::Running, ctx.pid) };
    let _ = ctx.write_launch(&launch);
    hooks::at("spawn.running");
    // The program runs: what cannot be watched cannot be served, and stdio with us.
    watched.map_err(failed_at(step::SOCKET))?;
    Ok((RunningChild { dir, nonce, listener, child_pid, stdio, oom_file }, ticks))
}

fn launch_slot(stage: Stage, shim_pid: i32) -> Launch {
    Launch { stage, shim_pid, pid: 0, ticks: 0, step: 0, errno: 0, at_ms: wall_ms() }
}

/// Takes the record's lock, and makes sure that nobody gave it up for lost or started it before.
fn lock_record(dir: &OwnedFd) -> Result<(OwnedFd, [u8; 16]), StepFailed> {
    let record = rustix::fs::openat(dir, c"record", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())
        .map_err(failed_at(step::RECORD))?;
    hooks::at("spawn.opened");
    rustix::fs::flock(&record, FlockOperation::NonBlockingLockExclusive).map_err(failed_at(step::LOCK))?;
    if rustix::fs::fstat(&record).map_err(failed_at(step::RECORD))?.st_nlink == 0 {
        // Discarded between our open and our lock: a daemon took the start for one that never began.
        return Err(StepFailed(step::LOCK, Errno::NOENT));
    }
    let read = |at: u64| -> Result<Slot, Errno> {
        let mut slot = [0u8; SLOT_LEN];
        rustix::io::pread(&record, &mut slot, at)?;
        Ok(slot)
    };
    let head = read(slots::HEAD_AT).map_err(failed_at(step::RECORD))?;
    let head = Head::read(&head).ok_or(StepFailed(step::RECORD, Errno::INVAL))?;
    if Launch::read(&read(slots::LAUNCH_AT).map_err(failed_at(step::RECORD))?).is_some() {
        // Dropping the record without a note: its story is already told.
        return Err(StepFailed(step::LOCK, Errno::ALREADY));
    }
    Ok((record, head.nonce))
}

/// Hears of everything that the shim is to serve.
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

/// Runs the program. Its pid, and the open file that counts its out-of-memory kills.
fn spawn_child(
    ctx: &LaunchContext<'_>,
    block: &Block<'_>,
    stdio: &ParentStdio,
    child_stdio: [RawFd; 3],
    scratch: &mut [u8],
    while_child_starts: impl FnOnce(i32),
) -> Result<(i32, Option<OwnedFd>), StepFailed> {
    let count = block.cgroups + block.argv + block.env + 3;
    let (stack, usual) = scratch.split_at_mut(CHILD_STACK_LEN);
    let needed = (count + 1) * size_of::<usize>();
    let mut large =
        (needed > usual.len()).then(|| sys::map_anonymous(needed).ok_or(StepFailed(step::MEMORY, Errno::NOMEM)));
    let tables = match &mut large {
        None => usual,
        Some(Ok(memory)) => memory,
        Some(Err(_)) => return Err(StepFailed(step::MEMORY, Errno::NOMEM)),
    };
    let Some(table) = sys::pointer_table(tables, count) else { return Err(StepFailed(step::MEMORY, Errno::NOMEM)) };
    let mut strings = block.strings().skip(1);
    let (cwd, program) = (strings.next().unwrap_or(b"/\0"), strings.next().unwrap_or(b"\0"));
    let oom_file = strings.next().filter(|name| name.len() > 1);
    // Three lists, each ended by the null that fresh memory is.
    let (cgroups, rest) = table.split_at_mut(block.cgroups + 1);
    let (argv, env) = rest.split_at_mut(block.argv + 1);
    for (list, len) in [(&mut *cgroups, block.cgroups), (&mut *argv, block.argv), (&mut *env, block.env)] {
        for place in &mut list[..len] {
            *place = strings.next().map_or(std::ptr::null(), sys::pointer);
        }
    }
    let mut plan = ChildPlan {
        stdin: child_stdio[0],
        stdout: child_stdio[1],
        stderr: child_stdio[2],
        terminal: stdio.terminal,
        cwd: sys::pointer(cwd),
        program: sys::pointer(program),
        argv: argv.as_ptr(),
        env: env.as_ptr(),
        cgroups: cgroups.as_ptr(),
        record: ctx.record.as_ref().filter(|_| ctx.sync).map_or(-1, AsRawFd::as_raw_fd),
        parent: ctx.pid,
        step: 0,
        errno: 0,
    };
    let spawned = sys::spawn(&mut plan, stack, while_child_starts);
    if let Some(Ok(memory)) = large {
        sys::unmap(memory);
    }
    let child_pid = spawned.map_err(failed_at(step::FORK))?;
    if plan.step != 0 {
        let _ = sys::reap();
        return Err(StepFailed(plan.step, Errno::from_raw_os_error(plan.errno)));
    }
    let oom_file = oom_file.and_then(|name| {
        let name = std::ffi::CStr::from_bytes_with_nul(name).ok()?;
        rustix::fs::open(name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()
    });
    Ok((child_pid, oom_file))
}

/// The room once the start is done with it.
struct Memory {
    buffer: &'static mut [u8],
    rest: &'static mut [u8],
}

struct Connected {
    record: OwnedFd,
    control: OwnedFd,
    pid: i32,
}

fn assemble(
    prepared: Prepared,
    child: RunningChild,
    memory: Memory,
    with: Connected,
    numbers: Numbers,
) -> Option<Shim> {
    let Memory { buffer, rest } = memory;
    let (for_link, for_stdin) = rest.split_at_mut(link::MEMORY_LEN);
    let Connected { record, control, pid } = with;
    let RunningChild { dir, nonce, listener, child_pid, stdio, oom_file } = child;
    let ParentStdio { out, err, stdin: input, terminal } = stdio;
    let stdin = match (terminal, input) {
        (true, _) => Stdin::terminal(for_stdin),
        (false, Some(fd)) => Stdin::pipe(fd, for_stdin),
        (false, None) => Stdin::null(for_stdin),
    };
    let now = mono_ms();
    let log = LogWriter::new(dir, numbers.log_max_bytes);
    Some(Shim {
        prepared,
        pid,
        record,
        nonce,
        link: DaemonLink::new(control, listener, for_link),
        child_pid,
        log,
        output: Output::new(out, err, terminal, buffer),
        stdin,
        kill_state: KillState::new(),
        rows: numbers.rows,
        cols: numbers.cols,
        exit: None,
        closed: false,
        send_closed_at: None,
        childless: false,
        timeout_at: (numbers.timeout_ms > 0).then(|| now + numbers.timeout_ms),
        idle_ms: numbers.idle_ms,
        active_at: now,
        grace_ms: numbers.grace_ms,
        sync: numbers.sync,
        oom_file,
        spare_link: None,
    })
}
