//! The time, and the boot that it is counted in.

use std::sync::atomic::{AtomicU64, Ordering};
pub use toold_shim::clock::{boot_ms, mono_ms};

/// Milliseconds since 1970. A debug build adds the number in the file `wall_offset_ms` in the directory of the hooks.
pub fn wall_ms() -> u64 {
    let now = toold_shim::clock::wall_ms();
    #[cfg(debug_assertions)]
    if let Some((_, dir)) = toold_shim::hooks::variable()
        && let Ok(offset) = std::fs::read_to_string(dir.join("wall_offset_ms"))
    {
        return now.saturating_add_signed(offset.trim().parse().unwrap_or(0));
    }
    now
}

/// The retention time at boot; 0 until it is set.
static RETENTION_AT_BOOT: AtomicU64 = AtomicU64::new(0);

/// Milliseconds since 1970 on the clock of retention, which does not jump with the wall clock: `retention_clock` sets it
/// at the start, and from there it counts with the time since the boot.
pub fn retention_ms() -> u64 {
    match RETENTION_AT_BOOT.load(Ordering::Relaxed) {
        0 => wall_ms(),
        at_boot => at_boot.wrapping_add(boot_ms()),
    }
}

/// Sets the clock of retention, given its time `at_ms` when the time since the boot was `boot_ms`.
pub fn set_retention(at_ms: u64, boot_ms: u64) {
    RETENTION_AT_BOOT.store(at_ms.wrapping_sub(boot_ms), Ordering::Relaxed);
}

/// Returns the computing time of the current thread, in nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Names this run of the kernel.
pub fn boot_id() -> [u8; 16] {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let mut id = [0u8; 16];
    for (place, pair) in id.iter_mut().zip(digits.chunks_exact(2)) {
        let pair = std::str::from_utf8(pair).unwrap_or("0");
        *place = u8::from_str_radix(pair, 16).unwrap_or(0);
    }
    id
}
