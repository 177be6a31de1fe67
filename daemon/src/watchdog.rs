//! The sign of life that systemd asks for, given only while calls are really answered.

use crate::rpc::wire::{Wire, probe};
use std::sync::Arc;
use std::time::Duration;

/// Signs in the time that systemd waits for one: each has a third to be proven, and one may be late.
const SIGNS: u32 = 3;

/// Starts giving signs if systemd wants them (`WATCHDOG_USEC`). Else there is no task and no timer.
pub fn start(wire: &Arc<Wire>) {
    let Some(patience) = sd_notify::watchdog_enabled().filter(|patience| !patience.is_zero()) else { return };
    tokio::spawn(live(patience / SIGNS, wire.clone()));
}

async fn live(pace: Duration, wire: Arc<Wire>) {
    let mut clock = tokio::time::interval(pace);
    // After a pause, one sign and not all that were missed.
    clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        clock.tick().await;
        match tokio::time::timeout(pace, probe::probe(&wire)).await {
            Ok(true) => drop(sd_notify::notify(&[sd_notify::NotifyState::Watchdog])),
            Ok(false) | Err(_) => tracing::warn!(?pace, "a call of our own was not answered; no sign of life is given"),
        }
    }
}
