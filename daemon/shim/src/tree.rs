//! The process tree below a shim, found and signalled without the heap.
//!
//! The shim is a subreaper: a process that loses its parent becomes the shim's child. So the tree is every process that
//! can be reached from the shim by parenthood, and it is empty when the shim has no child.

use crate::sys;
use rustix::fd::AsFd;
use rustix::fs::{Mode, OFlags, RawDir};
use std::mem::MaybeUninit;

/// The number of processes seen in one pass. The next pass finds the others, when these are dead.
pub const MAX_PIDS: usize = 4096;

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
}

/// A path below /proc, built on the stack.
struct ProcPath {
    bytes: [u8; 64],
    len: usize,
}

impl ProcPath {
    fn new() -> ProcPath {
        ProcPath { bytes: [0; 64], len: 0 }
    }
    fn text(mut self, text: &[u8]) -> ProcPath {
        for b in text {
            // The last byte stays NUL.
            if self.len < self.bytes.len() - 1 {
                self.bytes[self.len] = *b;
                self.len += 1;
            }
        }
        self
    }
    fn number(self, n: i32) -> ProcPath {
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
    fn read(&self, into: &mut [u8]) -> usize {
        let Ok(name) = std::ffi::CStr::from_bytes_until_nul(&self.bytes) else { return 0 };
        let Ok(fd) = rustix::fs::open(name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else { return 0 };
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

fn number(text: &[u8]) -> Option<i32> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// A list of pids in borrowed memory.
pub struct Pids<'a> {
    pub all: &'a mut [i32],
    pub len: usize,
}

impl Pids<'_> {
    fn push(&mut self, pid: i32) {
        if let Some(place) = self.all.get_mut(self.len) {
            *place = pid;
            self.len += 1;
        }
    }
    pub fn list(&self) -> &[i32] {
        &self.all[..self.len]
    }
}

/// Collects every descendant of `root`, `root` itself not included.
pub fn descendants(root: i32, pids: &mut Pids<'_>) {
    pids.len = 0;
    if !has_children_files() {
        return scan_all(root, pids);
    }
    children(root, pids);
    let mut next = 0;
    while next < pids.len {
        children(pids.all[next], pids);
        next += 1;
    }
}

/// Checks that this kernel lists children (CONFIG_PROC_CHILDREN): nearly all do.
fn has_children_files() -> bool {
    rustix::fs::access(c"/proc/thread-self/children", rustix::fs::Access::READ_OK).is_ok()
}

/// Collects the same from the parents of all processes, for a kernel that does not list children: slower,
/// as it reads every process once for each generation.
fn scan_all(root: i32, pids: &mut Pids<'_>) {
    loop {
        let before = pids.len;
        let Ok(dir) = rustix::fs::open(c"/proc", OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
        else {
            return;
        };
        let mut buffer = [MaybeUninit::<u8>::uninit(); 4096];
        let mut entries = RawDir::new(dir.as_fd(), &mut buffer);
        while let Some(Ok(entry)) = entries.next() {
            let Some(pid) = number(entry.file_name().to_bytes()) else { continue };
            let Some(stat) = stat(pid) else { continue };
            let below = stat.ppid == root || pids.list().contains(&stat.ppid);
            if below && !pids.list().contains(&pid) {
                pids.push(pid);
            }
        }
        if pids.len == before {
            return;
        }
    }
}

/// Adds the children of all threads of a process.
pub fn children(pid: i32, pids: &mut Pids<'_>) {
    let path = ProcPath::new().text(b"/proc/").number(pid).text(b"/task");
    let Ok(name) = std::ffi::CStr::from_bytes_until_nul(&path.bytes) else { return };
    let Ok(dir) = rustix::fs::open(name, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) else {
        return;
    };
    let mut buffer = [MaybeUninit::<u8>::uninit(); 1024];
    let mut entries = RawDir::new(dir.as_fd(), &mut buffer);
    while let Some(Ok(entry)) = entries.next() {
        if let Some(tid) = number(entry.file_name().to_bytes()) {
            thread_children(pid, tid, pids);
        }
    }
}

/// Adds the children of one thread: numbers with blanks between, of any count.
fn thread_children(pid: i32, tid: i32, pids: &mut Pids<'_>) {
    let path = ProcPath::new().text(b"/proc/").number(pid).text(b"/task/").number(tid).text(b"/children");
    let Ok(name) = std::ffi::CStr::from_bytes_until_nul(&path.bytes) else { return };
    let Ok(fd) = rustix::fs::open(name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()) else { return };
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

/// The result of a signal to one pid.
pub enum SignalResult {
    Sent,
    /// The process is dead, or not of this tree any more.
    Gone,
    Refused,
}

/// Signals a pid that was seen in the tree, and only while it is still in it: the pidfd pins the process
/// before its parent is looked up, so another process that got the same number is left alone.
pub fn signal(pid: i32, tree: &[i32], root: i32, number: i32) -> SignalResult {
    let Ok(pidfd) = sys::pidfd_open(pid) else { return SignalResult::Gone };
    let Some(stat) = stat(pid) else { return SignalResult::Gone };
    if stat.is_dead() || !(stat.ppid == root || tree.contains(&stat.ppid)) {
        return SignalResult::Gone;
    }
    match sys::pidfd_signal(pidfd.as_fd(), number) {
        Ok(()) => {
            // A stopped process cannot act on anything but SIGKILL.
            if matches!(stat.state, b'T') && !matches!(number, libc::SIGKILL | libc::SIGSTOP | libc::SIGCONT) {
                let _ = sys::pidfd_signal(pidfd.as_fd(), libc::SIGCONT);
            }
            SignalResult::Sent
        }
        Err(rustix::io::Errno::SRCH) => SignalResult::Gone,
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
        let (mut first, mut second) = ([0i32; 64], [0i32; 64]);
        let mut listed = Pids { all: &mut first, len: 0 };
        while listed.len == 0 {
            descendants(root, &mut listed);
        }
        let mut scanned = Pids { all: &mut second, len: 0 };
        scan_all(root, &mut scanned);
        assert_eq!(listed.list(), scanned.list());
        assert!(has_children_files(), "the quick way is the one that was taken");
        drop(shell.stdin.take());
        shell.wait().expect("it ends with its input");
    }
}
