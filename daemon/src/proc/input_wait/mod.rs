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
use syscall::{Watch, watch};
use toold_proto::params::Ansi;

/// What is shown of a prompt, in characters.
const PROMPT: usize = 200;
/// What is read to find a prompt: it may be nearly all escape sequences.
const PROMPT_BYTES: usize = 16 * 1024;
/// The first major number of terminals, each with 256 of them.
const TERMINALS: u32 = 136;
/// `/dev/tty`: whatever terminal controls who opened it.
const DEV_TTY: u64 = libc::makedev(5, 0);

/// Whether somebody of a tree waits for input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asks {
    /// This process is blocked reading. `echo`: whether its terminal shows what is typed; None without a terminal.
    Yes {
        pid: i32,
        echo: Option<bool>,
        wait: Wait,
    },
    No,
    /// It may or may not: the kernel does not tell, or does not tell us.
    Unknown,
}

/// One wait, told apart from the next: the thread that is blocked, and how often it has slept. A thread that still
/// sleeps in the same read has the same numbers, whatever others print meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wait {
    thread: i32,
    slept: u64,
}

impl Wait {
    fn of(thread: &str) -> Wait {
        let status = fs::read_to_string(format!("{thread}/status")).unwrap_or_default();
        let slept = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        let thread = thread.rsplit('/').next().and_then(|id| id.parse().ok());
        Wait { thread: thread.unwrap_or(0), slept: slept.and_then(|n| n.trim().parse().ok()).unwrap_or(0) }
    }
}

/// Looks at the tree below a shim. `program` is the process that the shim started, `pty` whether it has a terminal.
pub fn asks(shim_pid: i32, program: i32, pty: bool) -> Asks {
    let input = if pty { Input::terminal(program) } else { Input::pipe(shim_pid, program) };
    let input = match input {
        Ok(Some(input)) => input,
        Ok(None) => return Asks::No,
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Asks::Unknown,
        // It is gone.
        Err(_) => return Asks::No,
    };
    let mut unclear = false;
    for pid in tree::descendants(shim_pid) {
        match input.read_by(pid) {
            Ok(wait) => return Asks::Yes { pid, echo: input.echo(), wait },
            Err(Verdict::Unclear) => unclear = true,
            Err(Verdict::Reads | Verdict::Not) => {}
        }
    }
    if unclear { Asks::Unknown } else { Asks::No }
}

/// The last line of the output if it has no end, as a person sees it. Empty: there is none.
pub fn prompt(log: &Log) -> io::Result<String> {
    let page = log.tail(PROMPT_BYTES, None)?;
    let whole = page.bytes.len() - text::incomplete_len(&page.bytes);
    let line = page.bytes.get(..whole).unwrap_or_default().rsplit(|b| *b == b'\n').next().unwrap_or_default();
    let line = text::line_text(line, PageEnd::More, Ansi::Strip);
    // What stands before a carriage return was overwritten.
    let line = String::from_utf8_lossy(line.rsplit(|b| *b == b'\r').next().unwrap_or_default());
    let shown: Vec<char> = line.chars().filter(|c| !c.is_control()).collect();
    Ok(shown[shown.len().saturating_sub(PROMPT)..].iter().collect())
}

/// What is known of one thread, or one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Reads,
    Not,
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
        let index = libc::major(device).saturating_sub(TERMINALS) * 256 + libc::minor(device);
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
    fn read_by(&self, pid: i32) -> Result<Wait, Verdict> {
        let threads = match fs::read_dir(format!("/proc/{pid}/task")) {
            Ok(threads) => threads,
            Err(e) if e.kind() == io::ErrorKind::PermissionDenied => return Err(Verdict::Unclear),
            // It is gone.
            Err(_) => return Err(Verdict::Not),
        };
        // System calls of a program for another machine have other numbers.
        if syscall::foreign(pid) {
            return Err(Verdict::Unclear);
        }
        let mut all = Verdict::Not;
        for thread in threads.flatten().filter_map(|t| t.path().to_str().map(String::from)) {
            match self.read_in(pid, &thread) {
                Verdict::Reads => return Ok(Wait::of(&thread)),
                Verdict::Unclear => all = Verdict::Unclear,
                Verdict::Not => {}
            }
        }
        Err(all)
    }

    /// Whether the thread with this directory in /proc is.
    fn read_in(&self, pid: i32, thread: &str) -> Verdict {
        if !asleep(thread) {
            return Verdict::Not;
        }
        let path = format!("{thread}/syscall");
        let Ok(call) = fs::read_to_string(&path) else { return self.by_name(pid, thread) };
        match watch(&call, thread) {
            Watch::Nothing => Verdict::Not,
            Watch::Hidden => Verdict::Unclear,
            Watch::Files { reads, more } => {
                let is = |fd: &i32| fs::metadata(format!("{thread}/fd/{fd}")).is_ok_and(|open| self.is(&open, pid));
                let ours = reads.iter().filter(|fd| is(fd)).count();
                // It may have gone on while we looked, and the descriptor may be another's by now.
                let still = || asleep(thread) && fs::read_to_string(&path).is_ok_and(|again| again == call);
                match ours {
                    0 => Verdict::Not,
                    n if n == reads.len() && !more => {
                        if still() {
                            Verdict::Reads
                        } else {
                            Verdict::Not
                        }
                    }
                    // It waits for other things too, and that is how a server idles.
                    _ => Verdict::Unclear,
                }
            }
        }
    }

    /// The same by the name of the kernel's function, where the system call is not ours to see.
    fn by_name(&self, pid: i32, thread: &str) -> Verdict {
        if !asleep(thread) {
            return Verdict::Not;
        }
        // A kernel that does not tell has no name for it.
        let name = fs::read_to_string(format!("{thread}/wchan")).unwrap_or_default();
        let Ok(fds) = fs::read_dir(format!("{thread}/fd")) else { return Verdict::Unclear };
        let mut held = Held::default();
        for fd in fds.flatten() {
            let Ok(open) = fs::metadata(fd.path()) else { continue };
            let ours = self.is(&open, pid);
            held.input |= ours;
            held.stdin |= ours && fd.file_name() == "0";
            held.pipes |= !ours && open.file_type().is_fifo() && readable(thread, &fd.file_name());
        }
        let verdict = by_name(name.trim(), matches!(self, Input::Terminal { .. }), held);
        if verdict == Verdict::Reads && !asleep(thread) { Verdict::Not } else { verdict }
    }
}

/// What a process has of the input.
#[derive(Debug, Clone, Copy, Default)]
struct Held {
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
fn by_name(name: &str, terminal: bool, held: Held) -> Verdict {
    if !held.input {
        return Verdict::Not;
    }
    match name {
        "n_tty_read" if terminal && held.stdin => Verdict::Reads,
        "pipe_read" | "anon_pipe_read" if !terminal && held.stdin && !held.pipes => Verdict::Reads,
        "pipe_read" | "anon_pipe_read" if terminal => Verdict::Not,
        // Asleep for a time, for a child or for a lock: no descriptor is waited for.
        "do_nanosleep" | "hrtimer_nanosleep" | "do_wait" | "do_sigtimedwait" | "do_sigsuspend" | "sigsuspend" => {
            Verdict::Not
        }
        _ if name.starts_with("futex_wait") => Verdict::Not,
        // No name, or one that also stands for sockets and for many descriptors.
        _ => Verdict::Unclear,
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
