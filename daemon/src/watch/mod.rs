//! Searches a program's output for patterns, and limits the rate of matches. Pure: bytes and time are arguments.

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
pub use patterns::{InvalidPattern, Patterns};
pub use scan::Scanner;
pub use scan_position::{LinePart, OpenLine, ScanPosition};

#[cfg(test)]
mod tests;
