//! The process tree below a shim, found and signalled without the heap.
//!
//! The shim is a subreaper: a process that loses its parent becomes the shim's child. So the tree is every process that
//! can be reached from the shim by parenthood, and it is empty when the shim has no child.

use crate::pids::Pids;
use crate::sys;
use rustix::fd::{AsFd, OwnedFd};
use rustix::fs::{Mode, OFlags, RawDir};
use rustix::io::Errno;
use std::ffi::CStr;
use std::mem::MaybeUninit;

/// A process, as /proc shows it.
#[derive(Clone, Copy)]
pub struct Stat {
    pub state: u8,
    pub ppid: i32,
}

impl Stat {
    pub fn is_dead(&self) -> bool {
        matches!(self.state, b'Z' | b'X' | b'x')
    }

    /// Stopped by a signal, or by a tracer.
    pub fn is_stopped(&self) -> bool {
        matches!(self.state, b'T' | b't')
    }
}

/// A path below /proc, built on the stack.
pub(crate) struct ProcPath {
    bytes: [u8; 64],
    len: usize,
}

impl ProcPath {
    pub(crate) fn new() -> ProcPath {
        ProcPath { bytes: [0; 64], len: 0 }
    }
    pub(crate) fn text(mut self, text: &[u8]) -> ProcPath {
        for b in text {
            // The last byte stays NUL.
            if self.len < self.bytes.len() - 1 {
                self.bytes[self.len] = *b;
                self.len += 1;
            }
        }
        self
    }
    pub(crate) fn number(self, n: i32) -> ProcPath {
        let mut digits = [0u8; 11];
        let mut at = digits.len();
        let mut rest = n.max(0);
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.text(&digits[at..])
    }
    fn open(&self, flags: OFlags) -> Result<OwnedFd, Errno> {
        let name = CStr::from_bytes_until_nul(&self.bytes).map_err(|_| Errno::NAMETOOLONG)?;
        rustix::fs::open(name, OFlags::RDONLY | OFlags::CLOEXEC | flags, Mode::empty())
    }
    pub(crate) fn read(&self, into: &mut [u8]) -> usize {
        let Ok(fd) = self.open(OFlags::empty()) else { return 0 };
        let mut len = 0;
        while len < into.len() {
            match rustix::io::read(&fd, &mut into[len..]) {
                Ok(0) | Err(_) => break,
                Ok(n) => len += n,
            }
        }
        len
    }
}

/// Reads the state and the parent of a pid. None: there is no such process.
pub fn stat(pid: i32) -> Option<Stat> {
    let mut text = [0u8; 512];
    let len = ProcPath::new().text(b"/proc/").number(pid).text(b"/stat").read(&mut text);
    let text = text.get(..len)?;
    let after = text.get(text.iter().rposition(|b| *b == b')')? + 2..)?;
    let mut fields = after.split(|b| *b == b' ');
    let state = *fields.next()?.first()?;
    Some(Stat { state, ppid: number(fields.next()?)? })
}

/// Reads the start time of a process in ticks since boot: with the pid, an identity.
pub fn ticks(pid: i32) -> u64 {
    let mut text = [0u8; 512];
    let len = ProcPath::new().text(b"/proc/").number(pid).text(b"/stat").read(&mut text);
    let after = text[..len].iter().rposition(|b| *b == b')').and_then(|at| text[..len].get(at + 2..));
    let field = after.and_then(|a| a.split(|b| *b == b' ').nth(19));
    field.and_then(|f| std::str::from_utf8(f).ok()).and_then(|f| f.parse().ok()).unwrap_or(0)
}

/// Checks that a child of the zygote is a shim, by the name it gave itself.
pub fn is_shim(pid: i32) -> bool {
    let mut text = [0u8; 32];
    let len = ProcPath::new().text(b"/proc/").number(pid).text(b"/comm").read(&mut text);
    matches!(&text[..len], b"toold-shim\n" | b"toold-spare\n" | b"toold-zygote\n")
}

pub(crate) fn number(text: &[u8]) -> Option<i32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Collects every descendant of `root`, `root` itself not included.
pub fn descendants(root: i32) -> Pids {
    let mut pids = Pids::new();
    if !has_children_files() {
        scan_all(root, &mut pids);
        return pids;
    }
    children(root, &mut pids);
    let mut next = 0;
    while let Some(pid) = pids.list().get(next).copied() {
        children(pid, &mut pids);
        next += 1;
    }
    pids
}

/// Checks that this kernel lists children (CONFIG_PROC_CHILDREN): nearly all do.
pub fn has_children_files() -> bool {
    rustix::fs::access(c"/proc/thread-self/children", rustix::fs::Access::READ_OK).is_ok()
}

/// Collects the same from the parents of all processes, for a kernel that does not list children: slower,
/// as it reads every process once for each generation.
fn scan_all(root: i32, pids: &mut Pids) {
    loop {
        let before = pids.list().len();
        let Ok(dir) = rustix::fs::open(c"/proc", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        else {
            return;
        };
        let mut buffer = [MaybeUninit::<u8>::uninit(); 4096];
        let mut entries = RawDir::new(dir.as_fd(), &mut buffer);
        while let Some(Ok(entry)) = entries.next() {
            let Some(pid) = number(entry.file_name().to_bytes()) else { continue };
            let Some(stat) = stat(pid) else { continue };
            if stat.ppid == root || pids.contains(stat.ppid) {
                pids.push(pid);
            }
        }
        if pids.list().len() == before {
            return;
        }
    }
}

/// Adds the children of all threads of a process.
pub fn children(pid: i32, pids: &mut Pids) {
    let path = ProcPath::new().text(b"/proc/").number(pid).text(b"/task");
    let Ok(dir) = path.open(OFlags::DIRECTORY) else { return };
    let mut buffer = [MaybeUninit::<u8>::uninit(); 1024];
    let mut entries = RawDir::new(dir.as_fd(), &mut buffer);
    while let Some(Ok(entry)) = entries.next() {
        if let Some(tid) = number(entry.file_name().to_bytes()) {
            thread_children(pid, tid, pids);
        }
    }
}

/// Adds the children of one thread: numbers with blanks between, of any count.
fn thread_children(pid: i32, tid: i32, pids: &mut Pids) {
    let path = ProcPath::new().text(b"/proc/").number(pid).text(b"/task/").number(tid).text(b"/children");
    let Ok(fd) = path.open(OFlags::empty()) else { return };
    let mut text = [0u8; 1024];
    let mut pid = 0i32;
    while let Ok(n) = rustix::io::read(&fd, &mut text)
        && n > 0
    {
        for b in &text[..n] {
            if b.is_ascii_digit() {
                pid = pid.wrapping_mul(10).wrapping_add(i32::from(b - b'0'));
            } else if pid != 0 {
                pids.push(pid);
                pid = 0;
            }
        }
    }
    if pid != 0 {
        pids.push(pid);
    }
}

/// Checks that /proc shows this process: without it no member of a tree can be found.
pub fn has_proc() -> bool {
    stat(sys::own_pid()).is_some()
}

/// Signals whose default is to be ignored or to stop a process.
const HARMLESS: [i32; 8] = [
    libc::SIGCHLD,
    libc::SIGCONT,
    libc::SIGURG,
    libc::SIGWINCH,
    libc::SIGSTOP,
    libc::SIGTSTP,
    libc::SIGTTIN,
    libc::SIGTTOU,
];

/// Checks whether a process can outlive a signal, because it catches, blocks or ignores it or because the default is
/// harmless. A process that cannot either dies by the signal, or was exiting before the signal came.
pub fn can_outlive(pid: i32, signal: i32) -> bool {
    let mut text = [0u8; 4096];
    let len = ProcPath::new().text(b"/proc/").number(pid).text(b"/status").read(&mut text);
    signal != libc::SIGKILL && (HARMLESS.contains(&signal) || is_handled(&text[..len], signal).unwrap_or(true))
}

/// Checks the masks of a status file for a signal. None: the file has no masks.
fn is_handled(status: &[u8], signal: i32) -> Option<bool> {
    let mask = |name: &[u8]| {
        let line = status.split(|b| *b == b'\n').find_map(|line| line.strip_prefix(name))?;
        u64::from_str_radix(std::str::from_utf8(line.trim_ascii()).ok()?, 16).ok()
    };
    let all = mask(b"SigBlk:")? | mask(b"SigIgn:")? | mask(b"SigCgt:")?;
    // Signal 1 is bit 0.
    Some(all >> ((signal - 1) & 63) & 1 == 1)
}

/// The result of a signal to one pid.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SignalResult {
    Sent,
    /// The process is dead, or not of this tree any more.
    Gone,
    Refused,
    /// Nothing proves that the number is still this process: its turn comes when it is our own child.
    Later,
}

/// A process that was found by its number: whatever is sent through it reaches that process or none.
enum Pinned {
    Pidfd(OwnedFd),
    /// The process's directory in /proc, which the kernel takes in place of a pidfd (Linux 5.1).
    Dir(OwnedFd),
    /// Neither can be opened.
    Number,
}

/// Pins a process before anything about it is read. None: it is gone.
fn pin(pid: i32) -> Option<Pinned> {
    match sys::pidfd_open(pid) {
        Ok(pidfd) => return Some(Pinned::Pidfd(pidfd)),
        Err(Errno::SRCH) => return None,
        // No such call (before Linux 5.3), a filter that refuses it, or no descriptor left.
        Err(_) => {}
    }
    match ProcPath::new().text(b"/proc/").number(pid).open(OFlags::DIRECTORY) {
        Ok(dir) => Some(Pinned::Dir(dir)),
        Err(Errno::NOENT | Errno::SRCH) => None,
        Err(_) => Some(Pinned::Number),
    }
}

/// Signals a pid that was seen in the tree, and only while its parent is one that `is_parent` accepts: the process is
/// pinned before its parent is looked up, so another process that got the same number is left alone. A process that
/// cannot be pinned is signalled by its number if it is our own child: the number is its own until we reap it.
pub fn signal(pid: i32, number: i32, is_parent: impl Fn(i32) -> bool) -> SignalResult {
    let Some(pinned) = pin(pid) else { return SignalResult::Gone };
    let Some(stat) = stat(pid) else { return SignalResult::Gone };
    if stat.is_dead() || !is_parent(stat.ppid) {
        return SignalResult::Gone;
    }
    let is_child = stat.ppid == sys::own_pid();
    let send = |number| {
        let sent = match &pinned {
            Pinned::Pidfd(fd) | Pinned::Dir(fd) => sys::pidfd_signal(fd.as_fd(), number),
            Pinned::Number => Err(Errno::NOSYS),
        };
        match sent {
            Err(e) if e != Errno::SRCH && is_child => sys::signal_child(pid, number),
            Ok(()) | Err(_) => sent,
        }
    };
    match send(number) {
        Ok(()) => {
            // A stopped process cannot act on anything but SIGKILL.
            if matches!(stat.state, b'T') && !matches!(number, libc::SIGKILL | libc::SIGSTOP | libc::SIGCONT) {
                let _ = send(libc::SIGCONT);
            }
            SignalResult::Sent
        }
        Err(Errno::SRCH) => SignalResult::Gone,
        Err(_) if !is_child && !matches!(pinned, Pinned::Pidfd(_)) => SignalResult::Later,
        Err(_) => SignalResult::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn both_ways_of_finding_descendants_find_the_same() {
        // A shell whose child waits for a line that never comes: two generations below us.
        let mut shell =
            Command::new("sh").args(["-c", "cat; :"]).stdin(Stdio::piped()).spawn().expect("a shell can be started");
        let root = shell.id() as i32;
        let mut listed = descendants(root);
        while listed.list().is_empty() {
            listed = descendants(root);
        }
        let mut scanned = Pids::new();
        scan_all(root, &mut scanned);
        assert_eq!(listed.list(), scanned.list());
        assert!(has_children_files(), "the quick way is the one that was taken");
        drop(shell.stdin.take());
        shell.wait().expect("it ends with its input");
    }

    #[test]
    fn a_signal_that_is_caught_blocked_or_ignored_can_be_outlived() {
        let status = b"Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000000002\nSigCgt:\t8000000000004000\n";
        for (signal, handled) in [(1, true), (2, true), (15, true), (64, true), (3, false), (9, false), (63, false)] {
            assert_eq!(is_handled(status, signal), Some(handled), "{signal}");
        }
        assert_eq!(is_handled(b"Name:\tx\n", 15), None);
        let own = sys::own_pid();
        assert!(!can_outlive(own, libc::SIGKILL) && can_outlive(own, libc::SIGWINCH));
    }
}
