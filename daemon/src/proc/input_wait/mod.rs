//! Detects whether a program waits for input: a thread of its tree is blocked reading the terminal or the pipe that is
//! its stdin. A case that would need a guess is `Unknown`. The rules are in `docs/needs-input.md`.

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

/// Maximum number of characters of a prompt.
const MAX_PROMPT_CHARS: usize = 200;
/// Bytes read to find a prompt: nearly all may be escape sequences.
const PROMPT_READ_LEN: usize = 16 * 1024;
/// First major number of pseudo-terminals. Each major number has 256 of them.
const PTS_MAJOR: u32 = 136;
/// `/dev/tty`: the controlling terminal of the process that opened it.
const DEV_TTY: u64 = libc::makedev(5, 0);

/// The result of a check of one tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputWait {
    /// This process is blocked reading. `echo`: its terminal shows typed characters; None without a terminal.
    Waiting {
        pid: i32,
        echo: Option<bool>,
        wait: WaitId,
    },
    NotWaiting,
    /// The kernel does not show it, or not to this daemon.
    Unknown,
}

/// The identity of one wait: the blocked thread, and how often it has slept. A thread that still sleeps in the same
/// read has the same numbers, even if others print meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitId {
    thread: i32,
    sleeps: u64,
}

impl WaitId {
    fn of(thread: &str) -> WaitId {
        let status = fs::read_to_string(format!("{thread}/status")).unwrap_or_default();
        let thread = thread.rsplit('/').next().and_then(|id| id.parse().ok());
        WaitId { thread: thread.unwrap_or(0), sleeps: sleeps(&status).unwrap_or(0) }
    }

    /// Returns true if the thread still sleeps in this wait. Reads one file.
    pub fn lasts(&self) -> bool {
        let status = fs::read_to_string(format!("/proc/{}/status", self.thread)).unwrap_or_default();
        let state = status.lines().find_map(|line| line.strip_prefix("State:"));
        state.is_some_and(|state| state.trim_start().starts_with('S')) && sleeps(&status) == Some(self.sleeps)
    }
}

/// Returns how often a thread has slept, from its `status` file.
fn sleeps(status: &str) -> Option<u64> {
    let number = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
    number.trim().parse().ok()
}

/// The input that a shim gave its program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ShimInput {
    Terminal,
    /// A pipe to which the shim can still write.
    Pipe {
        inode: u64,
    },
    /// A pipe of a shim that did not record which, or no pipe.
    UnknownPipe,
    Closed,
}

/// Checks the tree below a shim. `program` is the process that the shim started.
pub fn detect(shim_pid: i32, program: i32, input: ShimInput) -> InputWait {
    let input = match input {
        ShimInput::Terminal => Input::terminal(program),
        ShimInput::Pipe { inode } => Input::known_pipe(program, inode),
        ShimInput::UnknownPipe => Input::pipe(shim_pid, program),
        ShimInput::Closed => Ok(None),
    };
    let input = match input {
        Ok(Some(input)) => input,
        Ok(None) => return InputWait::NotWaiting,
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return InputWait::Unknown,
        // The process is gone.
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

/// Returns true if the controlling terminal of this process echoes typed characters. None: it has none, or it cannot be
/// opened here.
pub fn terminal_echo(program: i32) -> Option<bool> {
    Input::terminal(program).ok()??.echo()
}

/// Returns the last line of the output if it has no newline, as a person sees it, else an empty string.
pub fn prompt(log: &Log) -> io::Result<String> {
    let page = log.tail(PROMPT_READ_LEN, None)?;
    let whole = page.bytes.len() - text::incomplete_len(&page.bytes);
    let line = page.bytes.get(..whole).unwrap_or_default().rsplit(|b| *b == b'\n').next().unwrap_or_default();
    let line = text::line_text(line, PageEnd::More, Ansi::Strip);
    // Text before a carriage return was overwritten.
    let line = String::from_utf8_lossy(line.rsplit(|b| *b == b'\r').next().unwrap_or_default());
    let shown: Vec<char> = line.chars().filter(|c| !c.is_control()).collect();
    Ok(shown[shown.len().saturating_sub(MAX_PROMPT_CHARS)..].iter().collect())
}

/// The state of a thread or a process with respect to the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThreadState {
    ReadsInput,
    Other,
    Unclear,
}

/// The input of a program.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Input {
    /// By device number and by the file of that device here: containers renumber their terminals.
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
    /// Returns the controlling terminal of the program, if it has one.
    fn terminal(program: i32) -> io::Result<Option<Input>> {
        let stat = Stat::read(&format!("/proc/{program}"))?;
        if stat.terminal == 0 {
            return Ok(None);
        }
        let device = stat.terminal;
        let index = libc::major(device).saturating_sub(PTS_MAJOR) * 256 + libc::minor(device);
        // As the program sees it: one in a sandbox has terminals of its own.
        let path = format!("/proc/{program}/root/dev/pts/{index}");
        let file = fs::metadata(&path).ok().filter(|found| found.rdev() == device).map(|found| file(&found));
        Ok(Some(Input::Terminal { device, file, path }))
    }

    /// Returns the pipe with this inode if it is descriptor 0 of the program. None: it has another stdin.
    fn known_pipe(program: i32, inode: u64) -> io::Result<Option<Input>> {
        let path = format!("/proc/{program}/fd/0");
        if fs::read_link(&path)?.to_str() != Some(&format!("pipe:[{inode}]")) {
            return Ok(None);
        }
        Ok(Some(Input::Pipe { file: file(&fs::metadata(path)?) }))
    }

    /// Returns the pipe that is descriptor 0 of the program and to which the shim writes. None: it has another stdin,
    /// or ours is closed and a read does not block.
    fn pipe(shim: i32, program: i32) -> io::Result<Option<Input>> {
        let stdin = fs::metadata(format!("/proc/{program}/fd/0"))?;
        if !stdin.file_type().is_fifo() {
            return Ok(None);
        }
        let ours = fs::read_dir(format!("/proc/{shim}/fd"))?.flatten();
        let ours = ours.filter_map(|fd| fs::metadata(fd.path()).ok()).any(|open| file(&open) == file(&stdin));
        Ok(ours.then(|| Input::Pipe { file: file(&stdin) }))
    }

    /// Returns true if this open file of a process is the input.
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

    /// Returns true if the terminal echoes typed characters.
    fn echo(&self) -> Option<bool> {
        let Input::Terminal { device, path, .. } = self else { return None };
        let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let terminal = rustix::fs::open(Path::new(path), flags, Mode::empty()).ok()?;
        let same = rustix::fs::fstat(&terminal).is_ok_and(|found| found.st_rdev == *device);
        let modes = tcgetattr(&terminal).ok().filter(|_| same)?;
        Some(modes.local_modes.contains(LocalModes::ECHO))
    }

    /// Finds a thread of a process that is blocked reading the input.
    fn waiting_thread(&self, pid: i32) -> Result<WaitId, ThreadState> {
        let threads = match fs::read_dir(format!("/proc/{pid}/task")) {
            Ok(threads) => threads,
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Err(ThreadState::Unclear),
            // The process is gone.
            Err(_) => return Err(ThreadState::Other),
        };
        // System calls of another architecture have other numbers.
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

    /// Returns the state of the thread with this directory in /proc.
    fn thread_state(&self, pid: i32, thread: &str) -> ThreadState {
        if !asleep(thread) {
            return ThreadState::Other;
        }
        let path = format!("{thread}/syscall");
        let Ok(call) = fs::read_to_string(&path) else { return self.state_by_wchan(pid, thread) };
        match waits_for(&call, thread) {
            WaitsFor::Nothing => ThreadState::Other,
            WaitsFor::Hidden => ThreadState::Unclear,
            WaitsFor::Files { reads, more } => {
                let is = |fd: &i32| fs::metadata(format!("{thread}/fd/{fd}")).is_ok_and(|open| self.is(&open, pid));
                let ours = reads.iter().filter(|fd| is(fd)).count();
                // The thread may have continued meanwhile, and the descriptor may be another file by now.
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
                    // It waits for other things too, as an idle server does.
                    _ => ThreadState::Unclear,
                }
            }
        }
    }

    /// Decides by the name of the kernel function, for a thread whose system call is not readable.
    fn state_by_wchan(&self, pid: i32, thread: &str) -> ThreadState {
        if !asleep(thread) {
            return ThreadState::Other;
        }
        // A kernel that does not show the function has no name for it.
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

/// The open descriptors of a process that matter here.
#[derive(Debug, Clone, Copy, Default)]
struct OpenInputs {
    /// The input, as any descriptor.
    input: bool,
    /// The input as descriptor 0.
    stdin: bool,
    /// Another pipe open for reading: a function name does not show which pipe is read.
    pipes: bool,
}

/// Returns true if a descriptor is open for reading, or cannot be checked.
fn readable(thread: &str, fd: &OsStr) -> bool {
    let info = fs::read_to_string(format!("{thread}/fdinfo/{}", fd.display())).unwrap_or_default();
    let flags = info.lines().find_map(|line| i32::from_str_radix(line.strip_prefix("flags:")?.trim(), 8).ok());
    flags.is_none_or(|flags| flags & libc::O_ACCMODE != libc::O_WRONLY)
}

/// Returns the state of a sleeping thread by the function that it sleeps in. Only unambiguous names count as a read.
fn from_wchan(name: &str, terminal: bool, inputs: OpenInputs) -> ThreadState {
    if !inputs.input {
        return ThreadState::Other;
    }
    match name {
        "n_tty_read" if terminal && inputs.stdin => ThreadState::ReadsInput,
        "pipe_read" | "anon_pipe_read" if !terminal && inputs.stdin && !inputs.pipes => ThreadState::ReadsInput,
        "pipe_read" | "anon_pipe_read" if terminal => ThreadState::Other,
        // Sleeps for a time, a child or a lock: waits for no descriptor.
        "do_nanosleep" | "hrtimer_nanosleep" | "do_wait" | "do_sigtimedwait" | "do_sigsuspend" | "sigsuspend" => {
            ThreadState::Other
        }
        _ if name.starts_with("futex_wait") => ThreadState::Other,
        // No name, or one that also stands for sockets and for many descriptors.
        _ => ThreadState::Unclear,
    }
}

/// Returns true if a thread sleeps until an event. A stopped thread does not wait for input.
fn asleep(thread: &str) -> bool {
    Stat::read(thread).is_ok_and(|stat| stat.state == 'S')
}

/// Returns device and inode, which identify an open file.
fn file(open: &Metadata) -> (u64, u64) {
    (open.dev(), open.ino())
}

/// The fields of a `stat` file in /proc that are used here.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    state: char,
    /// Device of the controlling terminal; 0 for none.
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
