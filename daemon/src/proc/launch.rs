//! A launch that no shim has taken yet: given to another shim, or canceled. The record's lock decides who may do that.

use super::shim_connection::ShimConnection;
use super::state::Update;
use super::task::{RECONNECT_DELAY, Task};
use crate::backend::LaunchFrame;
use crate::clock::wall_ms;
use crate::disk::on_disk;
use crate::store::record::LockOwner;
use std::time::Duration;
use tokio::time::sleep;
use toold_format::frame::FromShim;
use toold_format::step;
use tracing::warn;

/// Time after which a launch that no shim took is given to an executed one: the zygote and its spares may be stopped.
pub const LAUNCH_WAIT: Duration = Duration::from_secs(1);
/// Number of shims that are executed for one launch.
const MAX_RELAUNCHES: u32 = 3;

/// Checks for the answer of a shim that did not get the record's lock, or found the launch in the record.
pub fn is_lock_refused(frame: &FromShim<'_>) -> bool {
    matches!(frame, FromShim::Failed { step: step::LOCK, errno: libc::EWOULDBLOCK | libc::EALREADY })
}

impl Task {
    /// Returns true if no shim has the launch.
    pub(super) fn is_untaken(&self) -> bool {
        let is_free = self.record.lock() == LockOwner::Daemon;
        if is_free {
            self.record.unlock();
        }
        is_free && self.record.is_unlaunched()
    }

    /// Records that the program is never started, under the record's lock, so that a shim that takes the launch later
    /// finds it over. Returns false if a shim has the launch: it gets the kill instead.
    pub(super) async fn cancel_launch(&mut self) -> bool {
        self.canceled = true;
        if self.record.lock() != LockOwner::Daemon {
            return false;
        }
        let (step, errno, at_ms) = (step::LAUNCH, libc::ECANCELED, wall_ms());
        let canceled = self.record.is_unlaunched()
            && match self.record.set_failed(step, errno, at_ms) {
                Ok(()) => true,
                Err(e) => {
                    warn!(id = %self.proc.spec.id, %e, "failed to record a canceled start");
                    false
                }
            };
        if canceled {
            if let Err(e) = self.record.sync_async().await {
                warn!(id = %self.proc.spec.id, %e, "fdatasync of a canceled start failed");
            }
            self.apply(Update::Failed { step, errno, at_ms }).await;
        }
        self.record.unlock();
        canceled
    }

    /// Returns true if a shim took the launch and may have started the program.
    async fn is_taken(&self) -> bool {
        while self.record.lock() == LockOwner::Shim {
            if !self.record.is_unlaunched() {
                return true;
            }
            // The shim closed the connection before it started, so it is exiting: its lock goes with it.
            sleep(RECONNECT_DELAY).await;
        }
        let started = !self.record.is_unlaunched();
        self.record.unlock();
        started
    }

    /// Launches again by exec, if no shim took the launch or the one that did died before it started anything. Only a
    /// program that provably never started is started again.
    pub(super) async fn relaunch(
        &mut self,
        frame: LaunchFrame,
        launch: &mut Option<LaunchFrame>,
    ) -> Option<ShimConnection> {
        if on_disk(self.is_taken()).await {
            return self.reconnect().await;
        }
        if self.canceled && self.cancel_launch().await {
            return None;
        }
        self.relaunches += 1;
        if self.relaunches > MAX_RELAUNCHES {
            return self.reconnect().await;
        }
        warn!(id = %self.proc.spec.id, "no shim took the launch; starting one by exec");
        match self.launcher.exec(&frame).await {
            Ok(stream) => {
                self.shim_guard.watch_start(&self.proc, &self.record);
                *launch = Some(frame);
                Some(ShimConnection::new(stream))
            }
            Err(e) => {
                let errno = e.raw_os_error().unwrap_or(libc::EIO);
                let update = Update::Failed { step: step::FORK, errno, at_ms: wall_ms() };
                self.ensure_durable(&update).await;
                self.apply(update).await;
                None
            }
        }
    }
}
