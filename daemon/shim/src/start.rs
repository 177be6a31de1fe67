//! The start: lock the record, open pipes or a terminal, run the program. Each step that fails is
//! recorded and told with its errno, and nothing is left running.

use super::address;
use super::capture::{self, Output};
use super::ends::{Ends, nonblocking};
use super::kill::Killing;
use super::link::{self, Link};
use super::run::{Ready, Shim, tag, watch};
use super::stdin::Stdin;
use super::tree;
use crate::clock::{mono_ms, wall_ms};
use crate::hooks;
use crate::sys::{self, Plan};
use rustix::event::epoll::EventFlags;
use rustix::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use rustix::fs::{FlockOperation, Mode, OFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};
use toold_format::frame::{self, FromShim, HEADER, ToShim};
use toold_format::launch::{Block, Numbers};
use toold_format::log::LogWriter;
use toold_format::slots::{self, Head, Launch, SLOT, Slot, Stage};
use toold_format::step;

/// The longest launch a shim reads. The kernel's own limit on arguments is below it.
pub const LAUNCH_MAX: usize = 16 * 1024 * 1024;
/// The child's stack until it execs.
const STACK: usize = 64 * 1024;
/// The launch, and the tables of pointers into it, as large as they usually are at most.
const USUAL_LAUNCH: usize = 96 * 1024;
const USUAL_TABLES: usize = 64 * 1024;
const _: () = assert!(USUAL_LAUNCH + STACK + USUAL_TABLES <= capture::BUFFER, "the start needs more than there is");

/// A step that failed.
pub(super) struct Failed(pub u32, pub Errno);

pub(super) fn at(step: u32) -> impl Fn(Errno) -> Failed {
    move |errno| Failed(step, errno)
}

/// What belongs to a start that is under way.
struct Starting<'a> {
    control: &'a OwnedFd,
    record: Option<OwnedFd>,
    pid: i32,
    /// The disk is waited for: before the program runs, and before its failure is told.
    sync: bool,
}

impl Starting<'_> {
    fn tell(&self, frame: &FromShim<'_>) {
        let mut bytes = Fixed { bytes: [0; 256], len: 0 };
        frame.put(&mut bytes);
        let _ = rustix::net::send(self.control, &bytes.bytes[..bytes.len], SendFlags::NOSIGNAL);
    }

    fn note(&self, launch: &Launch) -> Result<(), Errno> {
        let Some(record) = &self.record else { return Err(Errno::BADF) };
        rustix::io::pwrite(record, &launch.slot(), slots::LAUNCH_AT).map(drop)
    }

    /// What the program's child waits for. Begun early it is nearly done by then.
    fn begin_to_disk(&self) {
        if let Some(record) = self.record.as_ref().filter(|_| self.sync) {
            let _ = sys::begin_writeback(record);
        }
    }

    fn to_disk(&self) {
        if let Some(record) = self.record.as_ref().filter(|_| self.sync) {
            let _ = rustix::fs::fdatasync(record);
        }
    }
}

struct Fixed {
    bytes: [u8; 256],
    len: usize,
}

impl frame::Sink for Fixed {
    fn put(&mut self, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            place.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }
}

/// The shim of a program that runs. None: it does not, and that is recorded and told.
pub fn launch(mut ready: Ready, control: OwnedFd) -> Option<Shim> {
    // Output is read into the same memory, once the program runs.
    let (buffer, rest) = ready.room.all().split_at_mut(capture::BUFFER);
    let (usual, scratch) = buffer.split_at_mut(USUAL_LAUNCH);
    let mut received = receive(&control, usual)?;
    let block = Block::decode(&received.bytes()[HEADER..]);
    let sync = block.as_ref().is_some_and(|b| b.numbers.sync);
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    let mut starting = Starting { control: &control, record: None, pid, sync };
    let made = match &block {
        Some(block) => begin(&mut ready, &mut starting, block, scratch),
        None => Err(Failed(step::LAUNCH, Errno::INVAL)),
    };
    let (parts, ticks) = match made {
        Ok(made) => made,
        Err(Failed(step, errno)) => {
            fail(&starting, step, errno.raw_os_error());
            return None;
        }
    };
    let numbers = block.map(|b| b.numbers).unwrap_or_default();
    starting.tell(&FromShim::Started { pid: parts.main, shim_pid: starting.pid, ticks });
    hooks::at("spawn.told");
    let (record, pid) = (starting.record?, starting.pid);
    received.release();
    sys::forget_pages(buffer);
    assemble(ready, parts, Memory { buffer, rest }, Connected { record, control, pid }, numbers)
}

fn fail(starting: &Starting<'_>, step: u32, errno: i32) {
    // Without the lock the record is another's, and not ours to write.
    let (stage, shim_pid) = (Stage::Failed, starting.pid);
    let launch = Launch { stage, shim_pid, pid: 0, ticks: 0, step, errno, at_ms: wall_ms() };
    let _ = starting.note(&launch);
    starting.to_disk();
    starting.tell(&FromShim::Failed { step, errno });
}

/// A launch frame, in the usual place or in memory of its own.
enum Received<'a> {
    Usual(&'a mut [u8]),
    Large(&'static mut [u8]),
}

impl Received<'_> {
    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Received::Usual(bytes) => bytes,
            Received::Large(bytes) => bytes,
        }
    }

    fn release(self) {
        if let Received::Large(memory) = self {
            sys::unmap(memory);
        }
    }
}

/// Reads the launch frame whole, and nothing beyond it. None when the daemon went away before it was.
fn receive<'a>(control: &OwnedFd, usual: &'a mut [u8]) -> Option<Received<'a>> {
    let mut header = [0u8; HEADER];
    read_exact(control, &mut header)?;
    let length = u32::from_le_bytes([header[0], header[1], header[2], header[3]]) as usize;
    if length > LAUNCH_MAX {
        return None;
    }
    let mut received = match usual.get_mut(..HEADER + length) {
        Some(place) => Received::Usual(place),
        None => Received::Large(sys::map(HEADER + length)?),
    };
    let bytes = received.bytes();
    bytes[..HEADER].copy_from_slice(&header);
    read_exact(control, &mut bytes[HEADER..])?;
    let frame = frame::next(bytes, LAUNCH_MAX).ok().flatten()?;
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
struct Parts {
    dir: OwnedFd,
    nonce: [u8; 16],
    listener: OwnedFd,
    main: i32,
    ends: Ends,
    oom_file: Option<OwnedFd>,
}

fn begin(
    ready: &mut Ready,
    starting: &mut Starting<'_>,
    block: &Block<'_>,
    scratch: &mut [u8],
) -> Result<(Parts, u64), Failed> {
    let dir_name = block.dir();
    let dir_path = std::ffi::CStr::from_bytes_with_nul(dir_name).map_err(|_| Failed(step::LAUNCH, Errno::INVAL))?;
    let dir = rustix::fs::open(dir_path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        .map_err(at(step::RECORD))?;
    let id = dir_name.rsplit(|b| *b == b'/').next().unwrap_or(b"");
    let id = &id[..id.len().saturating_sub(1)];
    let (record, nonce) = lock(&dir)?;
    starting.record = Some(record);
    hooks::at("spawn.locked");
    let listener = address::listen_at(id, &nonce).map_err(at(step::SOCKET))?;
    let (ends, theirs) = Ends::open(&block.numbers, ready.pipes.take())?;
    starting.note(&launching(Stage::Launching, starting.pid)).map_err(at(step::RECORD))?;
    hooks::at("spawn.launching");
    starting.begin_to_disk();
    let plan = [theirs.stdin.as_raw_fd(), theirs.stdout.as_raw_fd(), theirs.stderr.as_raw_fd()];
    // What can be done while the program is on its way: it has copies of its ends by then.
    let mut ticks = 0;
    let mut watched = Ok(());
    let meanwhile = |pid| {
        ticks = tree::ticks(pid);
        drop(theirs);
        watched = watch_all(ready, starting.control, &listener, &ends);
        ready.show(&[b"toold: shim ", id]);
        sys::set_name(c"toold-shim");
    };
    let (main, oom_file) = program(starting, block, &ends, plan, scratch, meanwhile)?;
    hooks::at("spawn.forked");
    let launch = Launch { pid: main, ticks, ..launching(Stage::Running, starting.pid) };
    let _ = starting.note(&launch);
    hooks::at("spawn.running");
    // The program runs: what cannot be watched cannot be served, and ends with us.
    watched.map_err(at(step::SOCKET))?;
    Ok((Parts { dir, nonce, listener, main, ends, oom_file }, ticks))
}

fn launching(stage: Stage, shim_pid: i32) -> Launch {
    Launch { stage, shim_pid, pid: 0, ticks: 0, step: 0, errno: 0, at_ms: wall_ms() }
}

/// Takes the record's lock, and makes sure that nobody gave it up for lost or started it before.
fn lock(dir: &OwnedFd) -> Result<(OwnedFd, [u8; 16]), Failed> {
    let record =
        rustix::fs::openat(dir, c"record", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(at(step::RECORD))?;
    hooks::at("spawn.opened");
    rustix::fs::flock(&record, FlockOperation::NonBlockingLockExclusive).map_err(at(step::LOCK))?;
    if rustix::fs::fstat(&record).map_err(at(step::RECORD))?.st_nlink == 0 {
        // Discarded between our open and our lock: a daemon took the start for one that never began.
        return Err(Failed(step::LOCK, Errno::NOENT));
    }
    let read = |at: u64| -> Result<Slot, Errno> {
        let mut slot = [0u8; SLOT];
        rustix::io::pread(&record, &mut slot, at)?;
        Ok(slot)
    };
    let head = read(slots::HEAD_AT).map_err(at(step::RECORD))?;
    let head = Head::read(&head).ok_or(Failed(step::RECORD, Errno::INVAL))?;
    if Launch::read(&read(slots::LAUNCH_AT).map_err(at(step::RECORD))?).is_some() {
        // Dropping the record without a note: its story is already told.
        return Err(Failed(step::LOCK, Errno::ALREADY));
    }
    Ok((record, head.nonce))
}

/// Hears of everything that the shim is to serve.
fn watch_all(ready: &Ready, control: &OwnedFd, listener: &OwnedFd, ends: &Ends) -> Result<(), Errno> {
    nonblocking(control)?;
    watch(&ready.epoll, control.as_fd(), tag::CONTROL, EventFlags::IN)?;
    watch(&ready.epoll, listener.as_fd(), tag::LISTENER, EventFlags::IN)?;
    watch(&ready.epoll, ends.out.as_fd(), tag::OUT, EventFlags::IN)?;
    match &ends.err {
        Some(err) => watch(&ready.epoll, err.as_fd(), tag::ERR, EventFlags::IN),
        None => Ok(()),
    }
}

/// Runs the program. Its pid, and the open file that counts its out-of-memory kills.
fn program(
    starting: &Starting<'_>,
    block: &Block<'_>,
    ends: &Ends,
    theirs: [RawFd; 3],
    scratch: &mut [u8],
    meanwhile: impl FnOnce(i32),
) -> Result<(i32, Option<OwnedFd>), Failed> {
    let count = block.cgroups + block.argv + block.env + 3;
    let (stack, usual) = scratch.split_at_mut(STACK);
    let needed = (count + 1) * size_of::<usize>();
    let mut large = (needed > usual.len()).then(|| sys::map(needed).ok_or(Failed(step::MEMORY, Errno::NOMEM)));
    let tables = match &mut large {
        None => usual,
        Some(Ok(memory)) => memory,
        Some(Err(_)) => return Err(Failed(step::MEMORY, Errno::NOMEM)),
    };
    let Some(table) = sys::pointer_table(tables, count) else { return Err(Failed(step::MEMORY, Errno::NOMEM)) };
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
    let mut plan = Plan {
        stdin: theirs[0],
        stdout: theirs[1],
        stderr: theirs[2],
        terminal: ends.terminal,
        cwd: sys::pointer(cwd),
        program: sys::pointer(program),
        argv: argv.as_ptr(),
        env: env.as_ptr(),
        cgroups: cgroups.as_ptr(),
        record: starting.record.as_ref().filter(|_| starting.sync).map_or(-1, AsRawFd::as_raw_fd),
        parent: starting.pid,
        step: 0,
        errno: 0,
    };
    let spawned = sys::spawn(&mut plan, stack, meanwhile);
    if let Some(Ok(memory)) = large {
        sys::unmap(memory);
    }
    let main = spawned.map_err(at(step::FORK))?;
    if plan.step != 0 {
        let _ = sys::reap();
        return Err(Failed(plan.step, Errno::from_raw_os_error(plan.errno)));
    }
    let oom_file = oom_file.and_then(|name| {
        let name = std::ffi::CStr::from_bytes_with_nul(name).ok()?;
        rustix::fs::open(name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()
    });
    Ok((main, oom_file))
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

fn assemble(ready: Ready, parts: Parts, memory: Memory, with: Connected, numbers: Numbers) -> Option<Shim> {
    let Memory { buffer, rest } = memory;
    let (for_link, for_stdin) = rest.split_at_mut(link::MEMORY);
    let Connected { record, control, pid } = with;
    let Parts { dir, nonce, listener, main, ends, oom_file } = parts;
    let Ends { out, err, stdin: input, terminal } = ends;
    let stdin = match (terminal, input) {
        (true, _) => Stdin::terminal(for_stdin),
        (false, Some(fd)) => Stdin::pipe(fd, for_stdin),
        (false, None) => Stdin::null(for_stdin),
    };
    let now = mono_ms();
    let log = LogWriter::new(dir, numbers.log_max_bytes);
    Some(Shim {
        ready,
        pid,
        record,
        nonce,
        link: Link::new(control, listener, for_link),
        main,
        log,
        output: Output::new(out, err, terminal, buffer),
        stdin,
        killing: Killing::new(),
        rows: numbers.rows,
        cols: numbers.cols,
        exit: None,
        closed: false,
        tell_closed_at: None,
        childless: false,
        timeout_at: (numbers.timeout_ms > 0).then(|| now + numbers.timeout_ms),
        idle_ms: numbers.idle_ms,
        active_at: now,
        grace_ms: numbers.grace_ms,
        sync: numbers.sync,
        oom_file,
        seat: None,
    })
}
