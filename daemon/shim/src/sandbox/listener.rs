//! The listener: sees write-intent and network calls of confined programs before the kernel decides on them.
//!
//! It refuses nothing that a mount or a rule refuses by itself: the call goes on, and the kernel's own answer to the same
//! question shows that it will be refused. A race with a program that changes its arguments meanwhile can make a count
//! wrong, and lets nothing through. Two things are its own: signals to other jobs of the session, which it sends, and protected
//! paths that do not exist, which nothing can be mounted on. It refuses to make those, and that a race can evade.

use super::call::{self, Refusal};
use super::denials::DenialTable;
use super::signals;
use crate::clock::wall_ms;
use crate::run::{Shim, token, unwatch, watch};
use crate::start::StepFailed;
use crate::sys::{self, check};
use rustix::event::epoll::EventFlags;
use rustix::fd::{AsFd, AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::ffi::{CStr, c_int};
use std::io::Write;
use toold_format::frame::FromShim;
use toold_format::sandbox::{FileId, NetworkFilter, SandboxBlock};
use toold_format::step;

/// The observer of one process's calls.
pub struct Observer {
    /// None: it could not be had, or no process with the filter is left.
    listener: Option<OwnedFd>,
    /// The root directory of the program, in its mount namespace.
    root: Option<OwnedFd>,
    pub(super) rules: Rules,
    /// The strings of one call.
    text: Mapped,
    /// The private `/tmp` of the session.
    session: FileId,
    denials: DenialTable,
    observes: (bool, bool),
    /// Calls should be seen and cannot be: another listener is above this process.
    is_blind: bool,
}

/// The rules by which a call is refused.
pub(super) struct Rules {
    /// The mounts show by themselves what can be written.
    pub has_mounts: bool,
    pub network: NetworkFilter,
    /// Directories that may be written in, then paths that are hidden, then those that are not to be made, then those in reach
    /// below hidden ones: C strings.
    memory: Option<Mapped>,
    writable_len: usize,
    masked_len: usize,
    guarded_len: usize,
    reachable_len: usize,
}

impl Rules {
    fn new(block: &SandboxBlock<'_>) -> Option<Rules> {
        let lists = [block.writable, block.masked, block.guarded, block.reachable].map(|list| list.as_bytes());
        let [writable_len, masked_len, guarded_len, reachable_len] = lists.map(<[u8]>::len);
        let len = writable_len + masked_len + guarded_len + reachable_len;
        let memory = if len > 0 { Some(Mapped::new(len)?) } else { None };
        let mut rules = Rules {
            has_mounts: block.fds.mount,
            network: block.network,
            memory,
            writable_len,
            masked_len,
            guarded_len,
            reachable_len,
        };
        if let Some(Mapped(memory)) = &mut rules.memory {
            let mut memory = &mut **memory;
            for list in lists {
                let (place, rest) = memory.split_at_mut(list.len());
                place.copy_from_slice(list);
                memory = rest;
            }
        }
        Some(rules)
    }

    fn list(&self, from: usize, len: usize) -> impl Iterator<Item = &[u8]> {
        let bytes = self.memory.as_ref().and_then(|memory| memory.0.get(from..from + len)).unwrap_or_default();
        bytes.split(|byte| *byte == 0).filter(|path| !path.is_empty())
    }

    /// Returns true for a path that is in a directory that may be written in.
    pub fn is_writable(&self, path: &[u8]) -> bool {
        self.list(0, self.writable_len).any(|dir| is_at_or_below(path, dir))
    }

    /// Returns true for a path that is hidden.
    pub fn is_masked(&self, path: &[u8]) -> bool {
        let reachable = self.writable_len + self.masked_len + self.guarded_len;
        self.list(self.writable_len, self.masked_len).any(|hidden| is_at_or_below(path, hidden))
            && !self.list(reachable, self.reachable_len).any(|open| is_at_or_below(path, open))
    }

    /// Returns true for a hidden path that is not inside another one: an empty file, or directory, stands in its place.
    pub fn is_mask(&self, path: &[u8]) -> bool {
        self.list(self.writable_len, self.masked_len).any(|hidden| hidden == path)
    }

    fn guarded(&self) -> impl Iterator<Item = &[u8]> {
        self.list(self.writable_len + self.masked_len, self.guarded_len)
    }

    /// Returns true for a path that is not to be made.
    pub fn is_guarded(&self, path: &[u8]) -> bool {
        self.guarded().any(|guarded| guarded == path)
    }

    /// Returns true for the last part of a path that is not to be made.
    pub fn is_guarded_name(&self, name: &[u8]) -> bool {
        self.guarded().any(|guarded| guarded.strip_suffix(name).is_some_and(|dir| dir.ends_with(b"/")))
    }

    /// Returns true if there are paths that are not to be made.
    pub fn has_guarded(&self) -> bool {
        self.guarded_len > 0
    }
}

/// Memory that is returned to the kernel at its end. Only pages that were written to cost something.
struct Mapped(&'static mut [u8]);

impl Mapped {
    fn new(len: usize) -> Option<Mapped> {
        sys::map_anonymous(len).map(Mapped)
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: all of a mapping from `map_anonymous`, made in `new`, to which no other reference is left.
        unsafe { sys::unmap(std::mem::take(&mut self.0)) };
    }
}

/// Returns true if `path` is `dir` or below it.
pub(super) fn is_at_or_below(path: &[u8], dir: &[u8]) -> bool {
    path.strip_prefix(dir).is_some_and(|rest| rest.is_empty() || rest[0] == b'/' || dir.ends_with(b"/"))
}

impl Observer {
    /// Takes over the listener of a program that is about to start.
    pub(crate) fn new(block: &SandboxBlock<'_>, listener: Option<OwnedFd>) -> Result<Observer, StepFailed> {
        let no_memory = StepFailed(step::MEMORY, Errno::NOMEM);
        let (Some(rules), Some(text)) = (Rules::new(block), Mapped::new(call::TEXT_LEN)) else { return Err(no_memory) };
        let is_seen = listener.is_some();
        let observes = (is_seen && block.observe_writes, is_seen && block.network != NetworkFilter::Open);
        let is_blind = !is_seen && (block.observe_writes || block.network != NetworkFilter::Open);
        let (session, denials) = (block.session, DenialTable::new());
        Ok(Observer { listener, root: None, rules, text, session, denials, observes, is_blind })
    }

    /// Looks at the program, which runs by now: before, it could not be traced.
    pub(crate) fn started(&mut self, pid: i32) {
        self.root = open_root(pid);
        if let Some(listener) = &self.listener {
            wake_up_in_sync(listener);
        }
    }

    pub(crate) fn watch(&self, epoll: &OwnedFd) -> Result<(), Errno> {
        match &self.listener {
            Some(listener) => watch(epoll, listener.as_fd(), token::SANDBOX, EventFlags::IN),
            None => Ok(()),
        }
    }
}

/// Asks the kernel to run the other side at once, on the same CPU: 3 microseconds instead of 60. Linux 6.6 and later.
fn wake_up_in_sync(listener: &OwnedFd) {
    const SYNC_WAKE_UP: u64 = 1;
    // SAFETY: the request takes a plain number.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SET_FLAGS as _, SYNC_WAKE_UP) };
}

fn open_root(pid: i32) -> Option<OwnedFd> {
    let mut path = [0u8; 32];
    write!(&mut path[..], "/proc/{pid}/root\0").ok()?;
    let path = CStr::from_bytes_until_nul(&path).ok()?;
    rustix::fs::open(path, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()).ok()
}

/// The answer to a call.
enum Answer {
    Continue,
    Refuse(i32),
    /// It was done for the caller.
    Done,
}

impl Answer {
    fn of(done: sys::Result<()>) -> Answer {
        done.map_or_else(|errno| Answer::Refuse(errno.raw_os_error()), |()| Answer::Done)
    }
}

impl Shim {
    /// Handles a call that waits for an answer. Not inlined: a frame with room for paths would be touched by every shim.
    #[inline(never)]
    pub fn sandbox_event(&mut self, flags: EventFlags) {
        let Some(listener) = self.observer.as_ref().and_then(|observer| observer.listener.as_ref()) else { return };
        if !flags.contains(EventFlags::IN) {
            // No process with the filter is left.
            return self.end_listening();
        }
        // One at a time: with the event there is a call, and to ask for another would wait for it.
        match receive(listener) {
            Ok(call) => self.handle_call(&call),
            // The caller was killed meanwhile.
            Err(Errno::NOENT | Errno::INTR) => {}
            Err(_) => self.end_listening(),
        }
    }

    fn end_listening(&mut self) {
        let listener = self.observer.as_mut().and_then(|observer| observer.listener.take());
        if let Some(listener) = listener {
            unwatch(&self.prepared.epoll, listener.as_fd());
        }
    }

    fn handle_call(&mut self, call: &libc::seccomp_notif) {
        let Some(observer) = self.observer.as_mut() else { return };
        let Some(listener) = &observer.listener else { return };
        if signals::is_signal(call) {
            let relayed = signals::relay(call, observer.session);
            return respond(listener, call.id, relayed.map_or(Answer::Continue, Answer::of));
        }
        let mut found = [const { None }; 2];
        let mut text = call::Text::new(&mut *observer.text.0);
        call::judge(call, &observer.rules, observer.root.as_ref(), &mut text, &mut found);
        // Read before the answer: afterwards the caller may be another one with the same number.
        let is_there = found.iter().any(Option::is_some) && is_valid(listener, call.id);
        let socket_refused = observer.rules.network == NetworkFilter::Refused && call::is_socket(call);
        let refused = found.iter().flatten().find(|refusal| refusal.by_observer).map(|refusal| refusal.errno);
        let answer = match refused {
            Some(errno) => Answer::Refuse(errno),
            None if socket_refused => Answer::Refuse(libc::EACCES),
            None => Answer::Continue,
        };
        respond(listener, call.id, answer);
        if !is_there {
            return;
        }
        let mut is_new = false;
        for Refusal { op, errno, target, via, .. } in found.into_iter().flatten() {
            is_new |= observer.denials.add(op, errno, text.get(&target), text.get(&via), wall_ms());
        }
        if is_new {
            self.write_denials();
            let Some(observer) = &self.observer else { return };
            let (distinct, count) = (observer.denials.entries() as u32, observer.denials.count());
            self.send(&FromShim::Denied { distinct, count });
        }
    }

    /// Writes an empty file of refusals if they cannot be seen: without a file they count as seen.
    pub fn report_blindness(&mut self) {
        if self.observer.as_ref().is_some_and(|observer| observer.is_blind) {
            self.write_denials();
        }
    }

    /// Writes the file of refusals, if it lacks something.
    pub fn flush_denials(&mut self) {
        if self.observer.as_ref().is_some_and(|observer| observer.denials.is_dirty()) {
            self.write_denials();
        }
    }

    pub(crate) fn write_denials(&mut self) {
        if let Some(observer) = self.observer.as_mut() {
            observer.denials.write(self.log.dir(), observer.observes);
        }
    }
}

fn receive(listener: &OwnedFd) -> sys::Result<libc::seccomp_notif> {
    // SAFETY: a notification is plain numbers, for which all zero is a value, and the kernel asks for it.
    let mut call: libc::seccomp_notif = unsafe { std::mem::zeroed() };
    // SAFETY: the kernel writes the structure of this size, which it checks.
    check(unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_RECV as _, &mut call) })?;
    Ok(call)
}

fn is_valid(listener: &OwnedFd, id: u64) -> bool {
    // SAFETY: the kernel reads the live local.
    let valid = unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_ID_VALID as _, &id) };
    valid == 0
}

fn respond(listener: &OwnedFd, id: u64, answer: Answer) {
    let (error, flags): (c_int, u32) = match answer {
        Answer::Continue => (0, libc::SECCOMP_USER_NOTIF_FLAG_CONTINUE as u32),
        Answer::Refuse(errno) => (-errno, 0),
        Answer::Done => (0, 0),
    };
    let mut response = libc::seccomp_notif_resp { id, val: 0, error, flags };
    // SAFETY: the kernel reads the live local. A caller that was killed meanwhile is an error, and no matter.
    unsafe { libc::ioctl(listener.as_raw_fd(), libc::SECCOMP_IOCTL_NOTIF_SEND as _, &mut response) };
}
