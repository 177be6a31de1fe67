//! Much of everything, bounded in count and time, and the proof that afterwards all is as it was.
//!
//! `TOOLD_LOAD_SCALE` multiplies the counts that only cost time (default 1).
// A test that unwraps a None has failed, and says where: there is nobody to hand an error to.
#![allow(clippy::unwrap_used)]

#[path = "../e2e/conn.rs"]
#[allow(dead_code)]
mod conn;
#[path = "../e2e/ctl.rs"]
#[allow(dead_code)]
mod ctl;
#[path = "../crash/oracle/mod.rs"]
#[allow(dead_code, unused_imports)]
mod oracle;
#[path = "../e2e/rig.rs"]
#[allow(dead_code)]
mod rig;
#[path = "../e2e/sys.rs"]
#[allow(dead_code)]
mod sys;

mod connections;
mod events;
mod followers;
mod idle;
mod processes;
mod weight;

/// `count`, scaled.
fn scaled(count: usize) -> usize {
    let scale: f64 = std::env::var("TOOLD_LOAD_SCALE").ok().and_then(|s| s.parse().ok()).unwrap_or(1.0);
    ((count as f64 * scale) as usize).max(1)
}
