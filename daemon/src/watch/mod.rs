//! Patterns over a program's output, and how often they may speak. Pure: bytes and time are arguments.

mod breaker;
mod found;
mod limiter;
mod line;
mod loose;
mod patterns;
mod resume;
mod scan;

pub use breaker::{Breaker, Gate, GlobalRules, MOST_BYTES};
pub use found::Found;
pub use limiter::{Limiter, Rules, Verdict};
pub use patterns::{BadPattern, Patterns};
pub use resume::{OpenLine, Part, Resume};
pub use scan::Scanner;

#[cfg(test)]
mod tests;
