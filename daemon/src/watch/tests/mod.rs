//! What watches promise, by hand and against models that remember everything.

mod breaker;
mod limiter;
