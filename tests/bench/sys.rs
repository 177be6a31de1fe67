//! Unsafe code of the benchmark: the clock that other processes use too, and the parent-death signal.

/// Returns the monotonic clock in nanoseconds, the same for all processes.
pub fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the value is ours to write.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Makes the kernel kill this process when the thread that started it ends.
pub fn end_with_parent() {
    // SAFETY: it takes integers and touches no memory of ours.
    unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) };
}
