//! The signals that stop the daemon.

use crate::listener::ListenAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Signals that stop the daemon.
pub struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
}

impl StopSignals {
    /// Catches them from now on.
    pub fn install() -> Option<StopSignals> {
        let kinds = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()), signal(SignalKind::quit()));
        let (Ok(terminate), Ok(interrupt), Ok(quit)) = kinds else {
            tracing::error!("failed to install signal handlers; stop with daemon.shutdown");
            return None;
        };
        Some(StopSignals { terminate, interrupt, quit })
    }

    /// Stops the daemon at the first one. One that is not ready has nothing to finish, and may wait for a disk.
    pub async fn stop(mut self, stop: watch::Sender<bool>, is_ready: Arc<AtomicBool>, addr: Arc<ListenAddr>) {
        let name = tokio::select! {
            _ = self.terminate.recv() => "SIGTERM",
            _ = self.interrupt.recv() => "SIGINT",
            _ = self.quit.recv() => "SIGQUIT",
        };
        tracing::info!(signal = name, "stopping");
        if !is_ready.load(Relaxed) {
            addr.remove();
            std::process::exit(0);
        }
        let _ = stop.send(true);
    }
}
