//! The features of the shim that was started for a process. A shim outlives the daemon that started it, and ignores frames
//! that it does not know: a later daemon reads here whether they are answered.

use toold_format::{slots, writes};

/// The level of the shims that this daemon starts.
pub const OWN: u32 = 5;

/// Named writes that a shim before level 1 remembers.
const MAX_EARLY_WRITES: usize = 128;

/// Returns true if the shim answers `WriteFind`.
pub fn finds_writes(level: u32) -> bool {
    level >= 1
}

/// Returns true if the shim reports a stopped program, and answers `Pause` and `Resume`.
pub fn reports_stops(level: u32) -> bool {
    level >= 2
}

/// Returns true if the shim keeps the environment, and answers `ReadEnv`.
pub fn keeps_env(level: u32) -> bool {
    level >= 3
}

/// Returns true if the shim keeps the environment of a next run too, and takes `KeepEnv`.
pub fn keeps_given_env(level: u32) -> bool {
    level >= 4
}

/// Returns true if the shim answers `Position`.
pub fn reports_position(level: u32) -> bool {
    level >= 5
}

/// Returns true if the shim answers `ExtendTimeout`.
pub fn extends_timeout(level: u32) -> bool {
    level >= 5
}

/// Returns the number of named writes of a process that are remembered.
pub fn remembered_writes(level: u32, has_ended: bool) -> u64 {
    (match (level, has_ended) {
        (0, true) => slots::MAX_WRITES,
        (0, false) => MAX_EARLY_WRITES,
        (1.., _) => writes::MAX_WRITES,
    }) as u64
}
