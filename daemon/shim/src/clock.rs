//! The time, as daemon and shim count it.

use rustix::time::{ClockId, clock_gettime};

/// Milliseconds on a clock that never jumps.
pub fn mono_ms() -> u64 {
    read_ms(ClockId::Monotonic)
}

/// Milliseconds since the boot, also those in which the machine slept. Never jumps.
pub fn boot_ms() -> u64 {
    read_ms(ClockId::Boottime)
}

/// Milliseconds since 1970.
pub fn wall_ms() -> u64 {
    read_ms(ClockId::Realtime)
}

fn read_ms(clock: ClockId) -> u64 {
    let t = clock_gettime(clock);
    t.tv_sec as u64 * 1000 + t.tv_nsec as u64 / 1_000_000
}
