//! Sends systemd's watchdog pings, only while calls are answered.

use crate::rpc::wire::{Wire, probe};
use std::sync::Arc;
use std::time::Duration;

/// Number of pings per watchdog timeout: each call has a third of it to be answered, and one ping may be late.
const PINGS_PER_TIMEOUT: u32 = 3;

/// Starts the pings if systemd wants them (`WATCHDOG_USEC`). Otherwise there is no task and no timer.
pub fn start(wire: &Arc<Wire>) {
    let Some(timeout) = sd_notify::watchdog_enabled().filter(|timeout| !timeout.is_zero()) else { return };
    tokio::spawn(run_pings(timeout / PINGS_PER_TIMEOUT, wire.clone()));
}

async fn run_pings(interval: Duration, wire: Arc<Wire>) {
    let mut ticker = tokio::time::interval(interval);
    // After a pause, send one ping and not all that were missed.
    ticker.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticker.tick().await;
        match tokio::time::timeout(interval, probe::probe(&wire)).await {
            Ok(true) => drop(sd_notify::notify(&[sd_notify::NotifyState::Watchdog])),
            Ok(false) | Err(_) => {
                tracing::warn!(?interval, "a call of our own was not answered; the watchdog ping is skipped")
            }
        }
    }
}
