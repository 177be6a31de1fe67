//! Patterns over a program's output, and how often they may speak. Pure: bytes and time are arguments.

mod breaker;
mod limiter;

pub use breaker::{Breaker, Gate, GlobalRules, MOST_BYTES};
pub use limiter::{Limiter, Rules, Verdict};

#[cfg(test)]
mod tests;
