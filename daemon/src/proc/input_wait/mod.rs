//! Whether a program waits for input, as far as the kernel tells: a thread of its tree is blocked reading the terminal
//! or the pipe that is its stdin. What would be a guess is `Unknown`. The rules are in `docs/needs-input.md`.

mod syscall;
#[cfg(test)]
mod tests;

use super::tree;
use crate::log::Log;
use crate::text::{self, PageEnd};
use rustix::fs::{Mode, OFlags};
use rustix::termios::{LocalModes, tcgetattr};
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use syscall::{WaitsFor, waits_for};
use toold_proto::params::Ansi;

/// What is shown of a prompt, in characters.
const MAX_PROMPT_CHARS: usize = 200;
/// What is read to find a prompt: it may be nearly all escape sequences.
const PROMPT_READ_LEN: usize = 16 * 1024;
/// The first major number of terminals, each with 256 of them.
const PTS_MAJOR: u32 = 136;
/// `/dev/tty`: whatever terminal controls who opened it.
const DEV_TTY: u64 = libc::makedev(5, 0);

/// Whether somebody of a tree waits for input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputWait {
    /// This process is blocked reading. `echo`: whether its terminal shows what is typed; None without a terminal.
    Waiting {
        pid: i32,
        echo: Option<bool>,
        wait: WaitId,
    },
    NotWaiting,
    /// It may or may not: the kernel does not tell, or does not tell us.
    Unknown,
}

/// One wait, told apart from the next: the thread that is blocked, and how often it has slept. A thread that still
/// sleeps in the same read has the same numbers, whatever others print meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitId {
    thread: i32,
    sleeps: u64,
}

impl WaitId {
    fn of(thread: &str) -> WaitId {
        let status = fs::read_to_string(format!("{thread}/status")).unwrap_or_default();
        let sleeps = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        let thread = thread.rsplit('/').next().and_then(|id| id.parse().ok());
        WaitId { thread: thread.unwrap_or(0), sleeps: sleeps.and_then(|n| n.trim().parse().ok()).unwrap_or(0) }
    }
}

/// Looks at the tree below a shim. `program` is the process that the shim started, `pty` whether it has a terminal.
pub fn detect(shim_pid: i32, program: i32, pty: bool) -> InputWait {
    let input = if pty { Input::terminal(program) } else { Input::pipe(shim_pid, program) };
    let input = match input {
        Ok(Some(input)) => input,
        Ok(None) => return InputWait::NotWaiting,
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return InputWait::Unknown,
        // It is gone.
        Err(_) => return InputWait::NotWaiting,
    };
    let mut unclear = false;
    for pid in tree::descendants(shim_pid) {
        match input.waiting_thread(pid) {
            Ok(wait) => return InputWait::Waiting { pid, echo: input.echo(), wait },
            Err(ThreadState::Unclear) => unclear = true,
            Err(ThreadState::ReadsInput | ThreadState::Other) => {}
        }
    }
    if unclear { InputWait::Unknown } else { InputWait::NotWaiting }
}

/// The last line of the output if it has no end, as a person sees it. Empty: there is none.
pub fn prompt(log: &Log) -> io::Result<String> {
    let page = log.tail(PROMPT_READ_LEN, None)?;
    let whole = page.bytes.len() - text::incomplete_len(&page.bytes);
    let line = page.bytes.get(..whole).unwrap_or_default().rsplit(|b| *b == b'\n').next().unwrap_or_default();
    let line = text::line_text(line, PageEnd::More, Ansi::Strip);
    // What stands before a carriage return was overwritten.
    let line = String::from_utf8_lossy(line.rsplit(|b| *b == b'\r').next().unwrap_or_default());
    let shown: Vec<char> = line.chars().filter(|c| !c.is_control()).collect();
    Ok(shown[shown.len().saturating_sub(MAX_PROMPT_CHARS)..].iter().collect())
}

/// What is known of one thread, or one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThreadState {
    ReadsInput,
    Other,
    Unclear,
}

/// What a program reads as its input.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Input {
    /// By device number, and by the file that stands for it here: containers number their terminals anew.
    Terminal {
        device: u64,
        file: Option<(u64, u64)>,
        path: String,
    },
    Pipe {
        file: (u64, u64),
    },
}

impl Input {
    /// The terminal that controls the program. None: it has none.
    fn terminal(program: i32) -> io::Result<Option<Input>> {
        let stat = Stat::read(&format!("/proc/{program}"))?;
        if stat.terminal == 0 {
            return Ok(None);
        }
        let device = stat.terminal;
        let index = libc::major(device).saturating_sub(PTS_MAJOR) * 256 + libc::minor(device);
        let path = format!("/dev/pts/{index}");
        let file = fs::metadata(&path).ok().filter(|found| found.rdev() == device).map(|found| file(&found));
        Ok(Some(Input::Terminal { device, file, path }))
    }

    /// The pipe that the program has as descriptor 0 and its shim writes to. None: it has another stdin, or it is
    /// closed on our side, and a read does not wait.
    fn pipe(shim: i32, program: i32) -> io::Result<Option<Input>> {
        let stdin = fs::metadata(format!("/proc/{program}/fd/0"))?;
        if !stdin.file_type().is_fifo() {
            return Ok(None);
        }
        let ours = fs::read_dir(format!("/proc/{shim}/fd"))?.flatten();
        let ours = ours.filter_map(|fd| fs::metadata(fd.path()).ok()).any(|open| file(&open) == file(&stdin));
        Ok(ours.then(|| Input::Pipe { file: file(&stdin) }))
    }

    /// Whether this open file of a process is the input.
    fn is(&self, open: &Metadata, pid: i32) -> bool {
        match self {
            Input::Pipe { file: pipe } => file(open) == *pipe,
            Input::Terminal { .. } if !open.file_type().is_char_device() => false,
            Input::Terminal { device, .. } if open.rdev() == DEV_TTY => {
                Stat::read(&format!("/proc/{pid}")).is_ok_and(|stat| stat.terminal == *device)
            }
            Input::Terminal { device, file: node, .. } => {
                open.rdev() == *device && node.is_none_or(|node| node == file(open))
            }
        }
    }

    /// Whether what is typed is shown.
    fn echo(&self) -> Option<bool> {
        let Input::Terminal { device, path, .. } = self else { return None };
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let terminal = rustix::fs::open(Path::new(path), flags, Mode::empty()).ok()?;
        let same = rustix::fs::fstat(&terminal).is_ok_and(|found| found.st_rdev == *device);
        let modes = tcgetattr(&terminal).ok().filter(|_| same)?;
        Some(modes.local_modes.contains(LocalModes::ECHO))
    }

    /// Whether any thread of a process is blocked reading the input.
    fn waiting_thread(&self, pid: i32) -> Result<WaitId, ThreadState> {
        let threads = match fs::read_dir(format!("/proc/{pid}/task")) {
            Ok(threads) => threads,
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Err(ThreadState::Unclear),
            // It is gone.
            Err(_) => return Err(ThreadState::Other),
        };
        // System calls of a program for another machine have other numbers.
        if syscall::is_foreign_abi(pid) {
            return Err(ThreadState::Unclear);
        }
        let mut all = ThreadState::Other;
        for thread in threads.flatten().filter_map(|t| t.path().to_str().map(String::from)) {
            match self.thread_state(pid, &thread) {
                ThreadState::ReadsInput => return Ok(WaitId::of(&thread)),
                ThreadState::Unclear => all = ThreadState::Unclear,
                ThreadState::Other => {}
            }
        }
        Err(all)
    }

    /// Whether the thread with this directory in /proc is.
    fn thread_state(&self, pid: i32, thread: &str) -> ThreadState {
        if !asleep(thread) {
            return ThreadState::Other;
        }
        let path = format!("{thread}/syscall");
        let Ok(call) = fs::read_to_string(&path) else { return self.from_wchan(pid, thread) };
        match waits_for(&call, thread) {
            WaitsFor::Nothing => ThreadState::Other,
            WaitsFor::Hidden => ThreadState::Unclear,
            WaitsFor::Files { reads, more } => {
                let is = |fd: &i32| fs::metadata(format!("{thread}/fd/{fd}")).is_ok_and(|open| self.is(&open, pid));
                let ours = reads.iter().filter(|fd| is(fd)).count();
                // It may have gone on while we looked, and the descriptor may be another's by now.
                let still = || asleep(thread) && fs::read_to_string(&path).is_ok_and(|again| again == call);
                match ours {
                    0 => ThreadState::Other,
                    n if n == reads.len() && !more => {
                        if still() {
                            ThreadState::ReadsInput
                        } else {
                            ThreadState::Other
                        }
                    }
                    // It waits for other things too, and that is how a server idles.
                    _ => ThreadState::Unclear,
                }
            }
        }
    }

    /// The same by the name of the kernel's function, where the system call is not ours to see.
    fn from_wchan(&self, pid: i32, thread: &str) -> ThreadState {
        if !asleep(thread) {
            return ThreadState::Other;
        }
        // A kernel that does not tell has no name for it.
        let name = fs::read_to_string(format!("{thread}/wchan")).unwrap_or_default();
        let Ok(fds) = fs::read_dir(format!("{thread}/fd")) else { return ThreadState::Unclear };
        let mut inputs = OpenInputs::default();
        for fd in fds.flatten() {
            let Ok(open) = fs::metadata(fd.path()) else { continue };
            let ours = self.is(&open, pid);
            inputs.input |= ours;
            inputs.stdin |= ours && fd.file_name() == "0";
            inputs.pipes |= !ours && open.file_type().is_fifo() && readable(thread, &fd.file_name());
        }
        let verdict = from_wchan(name.trim(), matches!(self, Input::Terminal { .. }), inputs);
        if verdict == ThreadState::ReadsInput && !asleep(thread) { ThreadState::Other } else { verdict }
    }
}

/// What a process has of the input.
#[derive(Debug, Clone, Copy, Default)]
struct OpenInputs {
    /// As any descriptor.
    input: bool,
    /// As descriptor 0.
    stdin: bool,
    /// It can read from other pipes too: a name does not tell which one it reads.
    pipes: bool,
}

/// Whether a descriptor is open for reading. One that we cannot see is.
fn readable(thread: &str, fd: &OsStr) -> bool {
    let info = fs::read_to_string(format!("{thread}/fdinfo/{}", fd.display())).unwrap_or_default();
    let flags = info.lines().find_map(|line| i32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    flags.is_none_or(|flags| flags & libc::O_ACCMODE != libc::O_WRONLY)
}

/// What a sleeping thread does, by the function that it sleeps in. Only names that mean one thing are taken for it.
fn from_wchan(name: &str, terminal: bool, inputs: OpenInputs) -> ThreadState {
    if !inputs.input {
        return ThreadState::Other;
    }
    match name {
        "n_tty_read" if terminal && inputs.stdin => ThreadState::ReadsInput,
        "pipe_read" | "anon_pipe_read" if !terminal && inputs.stdin && !inputs.pipes => ThreadState::ReadsInput,
        "pipe_read" | "anon_pipe_read" if terminal => ThreadState::Other,
        // Asleep for a time, for a child or for a lock: no descriptor is waited for.
        "do_nanosleep" | "hrtimer_nanosleep" | "do_wait" | "do_sigtimedwait" | "do_sigsuspend" | "sigsuspend" => {
            ThreadState::Other
        }
        _ if name.starts_with("futex_wait") => ThreadState::Other,
        // No name, or one that also stands for sockets and for many descriptors.
        _ => ThreadState::Unclear,
    }
}

/// Whether a thread sleeps until something happens. A stopped one does not wait for input, whatever it was at.
fn asleep(thread: &str) -> bool {
    Stat::read(thread).is_ok_and(|stat| stat.state == 'S')
}

/// Device and inode: the same open file, whoever has it.
fn file(open: &Metadata) -> (u64, u64) {
    (open.dev(), open.ino())
}

/// The fields of a `stat` in /proc that are used here.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    /// The device of the terminal that controls it; 0 for none.
    terminal: u64,
}

impl Stat {
    fn read(dir: &str) -> io::Result<Stat> {
        let text = fs::read(format!("{dir}/stat"))?;
        Stat::parse(&String::from_utf8_lossy(&text)).ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn parse(text: &str) -> Option<Stat> {
        let mut fields = text.rsplit_once(") ")?.1.split_ascii_whitespace();
        let state = fields.next()?.chars().next()?;
        let number = fields.nth(3)?.parse::<i32>().ok()? as u32;
        let terminal = libc::makedev((number >> 8) & 0xfff, (number & 0xff) | ((number >> 12) & 0xf_ff00));
        Some(Stat { state, terminal })
    }
}
