//! Decodes the system call of a blocked thread into the descriptors that it waits for. Decides nothing.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;

/// Maximum number of descriptors of a poll that are read. A program that polls more does not wait for a person.
const MAX_POLL_FDS: u64 = 256;
/// Maximum number of descriptors in a select.
const MAX_SELECT_FDS: u64 = 1024;
/// Length of a `pollfd`: descriptor, events, returned events.
const POLLFD_LEN: usize = 8;
/// Events of poll and epoll that mean a read would not block.
const READABLE: u32 = (libc::POLLIN | libc::POLLRDNORM) as u32;
const WRITABLE: u32 = (libc::POLLOUT | libc::POLLWRNORM) as u32;

/// The descriptors that a thread waits for.
#[derive(Debug, PartialEq, Eq)]
pub enum WaitsFor {
    /// No descriptor has to become readable.
    Nothing,
    /// One of these. `more`: or something else.
    Files { reads: Vec<i32>, more: bool },
    /// The kernel does not show it.
    Hidden,
}

/// A system call in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Call {
    number: i64,
    args: [u64; 6],
}

impl Call {
    /// Returns None if the thread is not in a system call.
    fn parse(text: &str) -> Option<Call> {
        let mut fields = text.split_ascii_whitespace();
        let number = fields.next()?.parse::<i64>().ok().filter(|n| *n >= 0)?;
        let mut args = [0; 6];
        for arg in &mut args {
            *arg = u64::from_str_radix(fields.next()?.strip_prefix("0x")?, 16).ok()?;
        }
        Some(Call { number, args })
    }
}

/// Decodes the `syscall` file of the thread with this directory in /proc.
pub fn waits_for(syscall: &str, thread: &str) -> WaitsFor {
    let read = |at: u64, into: &mut [u8]| {
        File::open(format!("{thread}/mem")).and_then(|memory| memory.read_exact_at(into, at)).is_ok()
    };
    let targets = |fd: i32| fs::read_to_string(format!("{thread}/fdinfo/{fd}")).ok();
    Call::parse(syscall).map_or(WaitsFor::Nothing, |call| decide(call, read, targets))
}

/// Decodes a call. `read` reads the caller's memory, `targets` returns the `fdinfo` of an epoll descriptor.
fn decide(call: Call, read: impl Fn(u64, &mut [u8]) -> bool, targets: impl Fn(i32) -> Option<String>) -> WaitsFor {
    let [first, second, third, fourth, ..] = call.args;
    let one = |fd: u64, more| WaitsFor::Files { reads: vec![fd as i32], more };
    match call.number {
        libc::SYS_read | libc::SYS_readv | libc::SYS_preadv2 => one(first, false),
        // These also wait for space in the destination.
        libc::SYS_splice | libc::SYS_tee => one(first, true),
        libc::SYS_sendfile => one(second, true),
        libc::SYS_pselect6 => selected(first, [second, third, fourth], read),
        libc::SYS_ppoll => polled(first, second, read),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_select => selected(first, [second, third, fourth], read),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_poll => polled(first, second, read),
        #[cfg(target_arch = "x86_64")]
        libc::SYS_epoll_wait => epolled(targets(first as i32)),
        libc::SYS_epoll_pwait | libc::SYS_epoll_pwait2 => epolled(targets(first as i32)),
        // The reads of a ring are not visible, nor is the call that a stopped thread resumes.
        libc::SYS_io_uring_enter | libc::SYS_restart_syscall => WaitsFor::Hidden,
        // Time, children, locks, signals, sockets.
        _ => WaitsFor::Nothing,
    }
}

/// Decodes a select: three bit sets, any of which may be missing.
fn selected(count: u64, sets: [u64; 3], read: impl Fn(u64, &mut [u8]) -> bool) -> WaitsFor {
    let count = count.min(MAX_SELECT_FDS);
    let set = |at: u64| {
        let mut bits = vec![0u8; if at == 0 { 0 } else { count.div_ceil(64) as usize * 8 }];
        let known = bits.is_empty() || read(at, &mut bits);
        known.then(|| (0..count as usize).filter(|fd| bit(&bits, *fd)).map(|fd| fd as i32).collect::<Vec<i32>>())
    };
    match sets.map(set) {
        [Some(reads), Some(writes), Some(errors)] => watched(reads, !writes.is_empty() || !errors.is_empty()),
        // The memory is not readable. With one descriptor, only the first can be meant.
        _ if count == 1 && sets[0] != 0 && sets[1] == 0 && sets[2] == 0 => watched(vec![0], false),
        _ => WaitsFor::Hidden,
    }
}

/// Returns true if a bit set, stored in groups of the machine's byte order, contains `fd`.
fn bit(set: &[u8], at: usize) -> bool {
    let group = set.chunks_exact(8).nth(at / 64).and_then(|group| group.try_into().ok());
    group.is_some_and(|group| u64::from_ne_bytes(group) >> (at % 64) & 1 == 1)
}

fn polled(at: u64, count: u64, read: impl Fn(u64, &mut [u8]) -> bool) -> WaitsFor {
    if count == 0 {
        return WaitsFor::Nothing;
    }
    let mut entries = vec![0u8; count.min(MAX_POLL_FDS) as usize * POLLFD_LEN];
    if count > MAX_POLL_FDS || !read(at, &mut entries) {
        return WaitsFor::Hidden;
    }
    let entries = entries.chunks_exact(POLLFD_LEN).map(|e| {
        let fd = i32::from_ne_bytes([e[0], e[1], e[2], e[3]]);
        (fd, u32::from(u16::from_ne_bytes([e[4], e[5]])))
    });
    sorted(entries)
}

/// Decodes the `fdinfo` of an epoll descriptor: `tfd: 0 events: 19 data: ...`, in hexadecimal.
fn epolled(info: Option<String>) -> WaitsFor {
    let Some(info) = info else { return WaitsFor::Hidden };
    let entries = info.lines().filter(|line| line.starts_with("tfd:")).filter_map(|line| {
        let mut fields = line.split_ascii_whitespace();
        Some((fields.nth(1)?.parse().ok()?, u32::from_str_radix(fields.nth(1)?, 16).ok()?))
    });
    sorted(entries)
}

/// Collects descriptors with the events that are waited for. The kernel ignores a negative descriptor too.
fn sorted(entries: impl Iterator<Item = (i32, u32)>) -> WaitsFor {
    let (reads, others): (Vec<_>, Vec<_>) = entries.filter(|(fd, _)| *fd >= 0).partition(|(_, e)| e & READABLE != 0);
    // A descriptor that is also waited for to become writable is a second reason to continue.
    let more = !others.is_empty() || reads.iter().any(|(_, events)| events & WRITABLE != 0);
    watched(reads.into_iter().map(|(fd, _)| fd).collect(), more)
}

fn watched(reads: Vec<i32>, more: bool) -> WaitsFor {
    if reads.is_empty() { WaitsFor::Nothing } else { WaitsFor::Files { reads, more } }
}

/// Returns true for a program of another architecture size, whose system calls have other numbers.
pub fn is_foreign_abi(pid: i32) -> bool {
    let mut head = [0u8; 5];
    let read = File::open(format!("/proc/{pid}/exe")).and_then(|mut exe| exe.read_exact(&mut head));
    let own = if cfg!(target_pointer_width = "64") { 2 } else { 1 };
    read.is_ok() && head.starts_with(b"\x7fELF") && head[4] != own
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes with this memory at address 0x1000.
    fn decided(number: i64, args: [u64; 6], memory: &[u8]) -> WaitsFor {
        let read = |at: u64, into: &mut [u8]| {
            let from = at.wrapping_sub(0x1000) as usize;
            memory.get(from..from.saturating_add(into.len())).map(|bytes| into.copy_from_slice(bytes)).is_some()
        };
        let targets = |fd: i32| (fd == 5).then(|| "pos: 0\nflags: 02\ntfd:  0 events:  19 data: 0\n".to_string());
        decide(Call { number, args }, read, targets)
    }

    fn files(reads: &[i32], more: bool) -> WaitsFor {
        WaitsFor::Files { reads: reads.to_vec(), more }
    }

    fn pollfd(fd: i32, events: i16) -> Vec<u8> {
        [&fd.to_ne_bytes()[..], &events.to_ne_bytes()[..], &[0, 0]].concat()
    }

    #[test]
    fn a_call_is_read_as_the_kernel_prints_it() {
        let text = "0 0x3 0x7f25 0x20000 0x7f26 0xffffffff 0x0 0x7ffe 0x7f27\n";
        assert_eq!(Call::parse(text), Some(Call { number: 0, args: [3, 0x7f25, 0x20000, 0x7f26, 0xffff_ffff, 0] }));
        assert_eq!((Call::parse("running\n"), Call::parse("-1 0x7ffe 0x7f27\n")), (None, None));
    }

    #[test]
    fn a_read_waits_for_its_descriptor_and_a_sleep_for_none() {
        assert_eq!(decided(libc::SYS_read, [7, 0x1000, 10, 0, 0, 0], &[]), files(&[7], false));
        assert_eq!(decided(libc::SYS_splice, [0, 0, 1, 0, 0, 0], &[]), files(&[0], true));
        assert_eq!(decided(libc::SYS_clock_nanosleep, [0; 6], &[]), WaitsFor::Nothing);
        assert_eq!(decided(libc::SYS_wait4, [u64::MAX, 0, 0, 0, 0, 0], &[]), WaitsFor::Nothing);
        assert_eq!(decided(libc::SYS_io_uring_enter, [0; 6], &[]), WaitsFor::Hidden);
    }

    #[test]
    fn a_select_waits_for_the_bits_of_its_sets() {
        let both = [5u64.to_ne_bytes(), 2u64.to_ne_bytes()].concat();
        assert_eq!(decided(libc::SYS_pselect6, [3, 0x1000, 0, 0, 0, 0], &both), files(&[0, 2], false));
        assert_eq!(decided(libc::SYS_pselect6, [1, 0x1000, 0, 0, 0, 0], &both), files(&[0], false));
        assert_eq!(decided(libc::SYS_pselect6, [3, 0x1000, 0x1008, 0, 0, 0], &both), files(&[0, 2], true));
        assert_eq!(decided(libc::SYS_pselect6, [0, 0, 0, 0, 0, 0], &[]), WaitsFor::Nothing);
        // Without the memory only one descriptor is certain.
        assert_eq!(decided(libc::SYS_pselect6, [1, 0x1000, 0, 0, 0, 0], &[]), files(&[0], false));
        assert_eq!(decided(libc::SYS_pselect6, [2, 0x1000, 0, 0, 0, 0], &[]), WaitsFor::Hidden);
    }

    #[test]
    fn a_poll_waits_for_the_events_of_its_entries() {
        let (input, output) = (pollfd(0, libc::POLLIN), pollfd(1, libc::POLLOUT));
        let two = [input.clone(), output.clone()].concat();
        let none = [input.clone(), pollfd(-1, libc::POLLIN)].concat();
        assert_eq!(decided(libc::SYS_ppoll, [0x1000, 1, 0, 0, 0, 0], &input), files(&[0], false));
        assert_eq!(decided(libc::SYS_ppoll, [0x1000, 2, 0, 0, 0, 0], &none), files(&[0], false));
        assert_eq!(decided(libc::SYS_ppoll, [0x1000, 2, 0, 0, 0, 0], &two), files(&[0], true));
        assert_eq!(decided(libc::SYS_ppoll, [0x1000, 1, 0, 0, 0, 0], &output), WaitsFor::Nothing);
        assert_eq!(decided(libc::SYS_ppoll, [0, 0, 0, 0, 0, 0], &[]), WaitsFor::Nothing);
        assert_eq!(decided(libc::SYS_ppoll, [0x1000, 1, 0, 0, 0, 0], &[]), WaitsFor::Hidden);
        assert_eq!(decided(libc::SYS_epoll_pwait, [5, 0, 0, 0, 0, 0], &[]), files(&[0], false));
        assert_eq!(decided(libc::SYS_epoll_pwait, [6, 0, 0, 0, 0, 0], &[]), WaitsFor::Hidden);
    }
}
