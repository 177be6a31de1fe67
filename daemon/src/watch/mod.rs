//! Patterns over a program's output, and how often they may speak. Pure: bytes and time are arguments.

mod breaker;
mod limiter;
mod line_buffer;
mod matches;
mod multiline;
mod patterns;
mod scan;
mod scan_position;

pub use breaker::{Admission, Breaker, BreakerConfig, MAX_BREAKER_LEN};
pub use limiter::{Decision, Limiter, LimiterConfig};
pub use matches::Matches;
pub use patterns::{BadPattern, Patterns};
pub use scan::Scanner;
pub use scan_position::{LinePart, OpenLine, ScanPosition};

#[cfg(test)]
mod tests;
