//! Patterns over a program's output, and how often they may speak. Pure: bytes and time are arguments.

mod breaker;
mod limiter;
mod line_buffer;
mod matches;
mod multiline;
mod patterns;
mod scan;
mod scan_position;

pub use breaker::{Breaker, Gate, GlobalRules, MOST_BYTES};
pub use limiter::{Limiter, Rules, Verdict};
pub use matches::Found;
pub use patterns::{BadPattern, Patterns};
pub use scan::Scanner;
pub use scan_position::{OpenLine, Part, Resume};

#[cfg(test)]
mod tests;
