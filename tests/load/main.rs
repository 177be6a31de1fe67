//! Load tests, bounded in count and time: afterwards the footprint of the daemon is as before.
//!
//! `TOOLD_LOAD_SCALE` multiplies the counts that only cost time (default 1).
// A test that unwraps a None has failed, and the panic names the line: there is no caller to return an error to.
#![allow(clippy::unwrap_used)]

mod connections;
mod events;
mod followers;
mod footprint;
mod idle;
mod processes;
mod sandboxes;
mod soak;
mod subscribers;

/// `count`, scaled.
fn scaled(count: usize) -> usize {
    let scale: f64 = std::env::var("TOOLD_LOAD_SCALE").ok().and_then(|s| s.parse().ok()).unwrap_or(1.0);
    ((count as f64 * scale) as usize).max(1)
}
