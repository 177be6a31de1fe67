//! A launch that no shim has taken yet: given to another shim, or canceled. The record's lock decides who may do that.

use super::state::Update;
use super::task::Task;
use crate::clock::wall_ms;
use crate::store::record::LockOwner;
use std::time::Duration;
use toold_format::frame::FromShim;
use toold_format::step;
use tracing::warn;

/// Time after which a launch that no shim took is given to an executed one: the zygote and its spares may be stopped.
pub const LAUNCH_WAIT: Duration = Duration::from_secs(1);
/// Number of shims that are executed for one launch.
pub const MAX_RELAUNCHES: u32 = 3;

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
}
