//! System calls that only the daemon makes, and those that it shares with the shim.

use rustix::fd::OwnedFd;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::c_void;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

pub use toold_shim::sys::{has_pidfd_info, pidfd_exit_status, pidfd_open, pidfd_signal, start_writeback};

/// Takes the descriptors that systemd passed to this process, set to close on exec. Empty if there are none, if the
/// variables are malformed, or if they were taken before.
pub fn take_passed_fds() -> io::Result<Vec<OwnedFd>> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let fds = match sd_notify::listen_fds() {
        Err(e) if e.kind() == io::ErrorKind::InvalidInput => return Ok(Vec::new()),
        fds => fds?,
    };
    if fds.len() == 0 || TAKEN.swap(true, Ordering::Relaxed) {
        return Ok(Vec::new());
    }
    // SAFETY: systemd opened the descriptors before this program ran, the variables are meant for this process, and the
    // flag makes this the only owner.
    Ok(fds.map(|fd| unsafe { toold_shim::sys::own(fd) }).collect())
}

/// Returns true for an error that comes from a lack of resources, not from the file: the same call may work later.
pub fn is_transient(e: &io::Error) -> bool {
    let lacks = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOBUFS, libc::EINTR, libc::EAGAIN];
    e.raw_os_error().is_some_and(|errno| lacks.contains(&errno))
}

/// Signals that the daemon ignores: nothing sends them on purpose, and by default each ends a process.
const STRAY_SIGNALS: [i32; 8] = [
    libc::SIGHUP,
    libc::SIGUSR1,
    libc::SIGUSR2,
    libc::SIGALRM,
    libc::SIGVTALRM,
    libc::SIGPROF,
    libc::SIGIO,
    libc::SIGPWR,
];

/// Ignores the signals that nothing sends on purpose. Called after the zygote is there; programs get the default of each.
pub fn ignore_stray_signals() {
    STRAY_SIGNALS.into_iter().for_each(toold_shim::sys::ignore_signal);
}

/// The shortest timeslice that the kernel grants.
const SHORT_TIMESLICE_NS: u64 = 100_000;

/// Asks the scheduler for short timeslices for this thread: it waits less for one, and has no more of the CPU.
/// Kernels before 6.12 ignore it.
pub fn set_short_timeslice() {
    toold_shim::sys::set_timeslice(SHORT_TIMESLICE_NS);
}

/// The length of the stack that a message is searched on, with room to spare.
const WIPED_STACK_LEN: usize = 16 * 1024;
/// The size from which glibc maps a block by itself, and so unmaps it when it is freed. It is above what the usual page of
/// output needs, so that only unusual ones cost a mapping.
const MMAP_THRESHOLD: usize = 256 * 1024;

/// The free bytes at the end of a heap from which they go back to the kernel. A list of 200 processes needs half of them, and
/// the next one would have to get them back page by page.
const TRIM_THRESHOLD: usize = 512 * 1024;

/// The system's allocator, which wipes a block when it is freed. Values of environment variables pass through many blocks: a
/// message, its parameters, the parser's own memory, the launch. None of them keeps a value after its owner is done with it.
pub struct WipingAllocator;

// SAFETY: every block comes from `System` with the same layout, and goes back to it once.
unsafe impl GlobalAlloc for WipingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those of `System`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are those of `System`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller gives up a block of this size.
        unsafe { wipe(block, layout.size()) };
        // SAFETY: the caller's promises are those of `System`.
        unsafe { System.dealloc(block, layout) };
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller's block.
        if unsafe { stays_in_place(block, layout, new_size) } {
            let rest = layout.size().saturating_sub(new_size);
            // SAFETY: the caller gives up the rest of the block.
            unsafe { wipe(block.add(layout.size() - rest), rest) };
            // SAFETY: the caller's promises are those of `System`.
            return unsafe { System.realloc(block, layout, new_size) };
        }
        // SAFETY: the caller promises that the new size fits the alignment, and it is not zero.
        let new = unsafe { System.alloc(Layout::from_size_align_unchecked(new_size, layout.align())) };
        if !new.is_null() {
            // SAFETY: both blocks have this many bytes, and a new block overlaps no other.
            unsafe { std::ptr::copy_nonoverlapping(block, new, layout.size().min(new_size)) };
            // SAFETY: the caller gives up the old block, whose content was copied.
            unsafe { self.dealloc(block, layout) };
        }
        new
    }
}

/// Returns true if glibc gives a block another size where it is: it has room for it. A block that moves leaves its content
/// behind.
///
/// # Safety
///
/// The block is one of `System`.
#[cfg(target_env = "gnu")]
unsafe fn stays_in_place(block: *mut u8, layout: Layout, new_size: usize) -> bool {
    // Above it, blocks are not from malloc itself.
    const MALLOC_ALIGN: usize = 2 * size_of::<usize>();
    // SAFETY: the caller promises the block, which malloc made if it has no special alignment.
    layout.align() <= MALLOC_ALIGN && new_size <= unsafe { libc::malloc_usable_size(block.cast()) }
}

/// No other allocator promises it.
#[cfg(not(target_env = "gnu"))]
unsafe fn stays_in_place(_block: *mut u8, _layout: Layout, _new_size: usize) -> bool {
    false
}

/// Makes bytes zero, also if no code reads them again.
///
/// # Safety
///
/// The block has `len` bytes, and belongs to the caller alone.
unsafe fn wipe(block: *mut u8, len: usize) {
    let mut rest = 0..len;
    if len >= MMAP_THRESHOLD {
        // Most blocks of this size are mappings and go back to the kernel, but not all. It has zeros sooner than we do.
        let page = rustix::param::page_size();
        let start = block as usize;
        let pages = start.next_multiple_of(page)..(start + len) / page * page;
        // SAFETY: whole pages inside the block, whose content its owner has given up.
        if unsafe { libc::madvise(pages.start as *mut c_void, pages.len(), libc::MADV_DONTNEED) } == 0 {
            // SAFETY: the part of the block before the pages.
            unsafe { std::ptr::write_bytes(block, 0, pages.start - start) };
            rest = pages.end - start..len;
        }
    }
    // SAFETY: the caller promises the block, and this is a part of it.
    unsafe { std::ptr::write_bytes(block.add(rest.start), 0, rest.len()) };
    // The compiler has to assume that this reads the block: it would leave the write before a free out.
    std::hint::black_box(block);
}

/// Wipes the stack below the caller: a search in a message leaves copies of its parts there. Deeper calls overwrite them
/// sooner or later; a caller that is done with a message does not wait for that.
#[inline(never)]
pub fn wipe_stack() {
    let mut below = [0u8; WIPED_STACK_LEN];
    std::hint::black_box(&mut below);
}

/// Makes the allocator return large buffers to the kernel at once. By itself glibc learns from the first ones to keep
/// them, and a daemon that once answered a hundred readers at a time would stay as large as it was then.
pub fn tune_malloc() {
    #[cfg(target_env = "gnu")]
    for (number, value) in [
        (libc::M_MMAP_THRESHOLD, MMAP_THRESHOLD as i32),
        (libc::M_TRIM_THRESHOLD, TRIM_THRESHOLD as i32),
        (libc::M_ARENA_MAX, 2),
    ] {
        // SAFETY: it only sets a number of the allocator, before there is a second thread.
        unsafe { libc::mallopt(number, value) };
    }
}

/// Returns freed memory to the kernel.
pub fn trim_malloc() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes a number and touches only memory that is free.
    unsafe {
        libc::malloc_trim(0)
    };
}

/// Unmaps the program text and constants that only the start needed: arguments, config, recovery, the check of the sandbox. The
/// page cache keeps them, and what is needed again is mapped again, sixteen pages at a time.
pub fn release_start_text() {
    let (Ok(maps), Ok(own)) = (std::fs::read_to_string("/proc/self/maps"), std::fs::read_link("/proc/self/exe")) else {
        return;
    };
    // Constants and tables for unwinding are in the mapping of the file's start. Later ones without the right to write hold
    // addresses that the loader has written.
    let is_unwritten = |line: &str| line.contains(" r-xp ") || line.contains(" r--p 00000000 ");
    for line in maps.lines().filter(|line| is_unwritten(line) && line.ends_with(&*own.to_string_lossy())) {
        let hex = |text: &str| usize::from_str_radix(text, 16).ok();
        let Some((Some(from), Some(to))) =
            line.split(' ').next().and_then(|range| range.split_once('-')).map(|(from, to)| (hex(from), hex(to)))
        else {
            continue;
        };
        // SAFETY: whole pages of a file that are never written: a read maps the same bytes again.
        unsafe { libc::madvise(from as *mut c_void, to.saturating_sub(from), libc::MADV_DONTNEED) };
    }
}

/// Returns the version of Landlock that the kernel supports; 0 for none.
pub fn landlock_abi() -> i64 {
    const LANDLOCK_CREATE_RULESET: libc::c_long = 444;
    // SAFETY: with the version flag the call takes a null pointer and a zero size.
    let abi = unsafe { libc::syscall(LANDLOCK_CREATE_RULESET, std::ptr::null::<c_void>(), 0usize, 1u32) };
    abi.max(0)
}

/// Tries to trace a process, without stopping it. The kernel ends it when this process ends.
pub fn try_ptrace(pid: i32) -> io::Result<()> {
    let nothing = std::ptr::null_mut::<c_void>();
    // SAFETY: the call takes a pid and no memory.
    let seized = unsafe { libc::ptrace(libc::PTRACE_SEIZE, pid, nothing, nothing) };
    if seized == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Tries to mount an empty file system at `dir`.
pub fn try_mount(dir: &std::path::Path) -> io::Result<()> {
    use std::os::unix::ffi::OsStrExt;
    let dir = std::ffi::CString::new(dir.as_os_str().as_bytes())?;
    // SAFETY: the strings end in NUL, and the data is none.
    let mounted = unsafe { libc::mount(c"none".as_ptr(), dir.as_ptr(), c"tmpfs".as_ptr(), 0, std::ptr::null()) };
    if mounted == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Registers an owned descriptor with tokio's event loop. None when it cannot be polled.
pub fn pollable(fd: OwnedFd) -> Option<tokio::io::unix::AsyncFd<OwnedFd>> {
    // SAFETY: the descriptor is owned, stays the same, and is closed only after its registration is dropped.
    unsafe { tokio::io::unix::AsyncFd::register_with_interest(fd, tokio::io::Interest::READABLE) }.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the KiB of program text that are mapped.
    fn mapped_text_kib() -> u64 {
        let smaps = std::fs::read_to_string("/proc/self/smaps").expect("readable");
        let own = std::env::current_exe().expect("known");
        let mut is_text = false;
        let mut kib = 0;
        for line in smaps.lines() {
            if line.ends_with(&*own.to_string_lossy()) {
                is_text = line.contains(" r-xp ");
            } else if let Some(rss) = line.strip_prefix("Rss:").filter(|_| std::mem::take(&mut is_text)) {
                kib += rss.trim().trim_end_matches(" kB").parse::<u64>().expect("a number");
            }
        }
        kib
    }

    #[test]
    fn text_that_only_the_start_needed_is_not_mapped_any_more() {
        // Other tests of this program have mapped most of theirs, or this one has by its start.
        let before = mapped_text_kib();
        release_start_text();
        let after = mapped_text_kib();
        assert!(after < before, "{after} KiB of {before} are mapped");
    }

    #[test]
    fn a_block_keeps_its_content_whatever_size_it_gets() {
        let sizes = [1, 24, 25, 4096, 100_000, 99_999, MMAP_THRESHOLD, MMAP_THRESHOLD * 4, MMAP_THRESHOLD + 1, 7];
        let layout = |size| Layout::array::<u8>(size).expect("a size");
        // SAFETY: a layout of one byte.
        let mut block = unsafe { WipingAllocator.alloc(layout(1)) };
        // SAFETY: the block has one byte.
        unsafe { block.write(9) };
        for pair in sizes.windows(2) {
            let (old, new) = (&pair[0], &pair[1]);
            // SAFETY: the block has the old size, and the new one is not zero.
            block = unsafe { WipingAllocator.realloc(block, layout(*old), *new) };
            // SAFETY: all bytes up to the smaller size were written, and the block is ours.
            let bytes = unsafe { std::slice::from_raw_parts_mut(block, *new) };
            assert!(bytes[..*old.min(new)].iter().all(|byte| *byte == 9), "{old} to {new}");
            bytes.fill(9);
        }
        // SAFETY: the last size of the list.
        unsafe { WipingAllocator.dealloc(block, layout(7)) };
    }
}
