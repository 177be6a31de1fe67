//! Ends a session: kills every process with its key.

use super::{Registry, Selector};
use crate::proc::handle::Kill;
use crate::proc::kill::{GRACE_MS, kill_all};
use toold_format::slots::Cause;
use toold_proto::results::{KillStatus, Killed};

impl Registry {
    /// Kills the trees of a session and returns when each is empty. `uid` and `pid` are the caller's, for the record.
    pub async fn end_session(&self, session_key: &str, uid: u32, pid: i32) -> Vec<Killed> {
        let procs = self.select_unfinished(&Selector { session_key: Some(session_key.into()), ..Selector::default() });
        let kill = Kill { signal: libc::SIGTERM, grace_ms: GRACE_MS, cause: Cause::SessionEnd, uid, pid };
        let mut killed = kill_all(procs, kill).await;
        // A process that had exited, and whose shim was about to leave, was not killed.
        killed.retain(|one| one.status != KillStatus::AlreadyExited);
        self.remove_session_tmp(session_key).await;
        killed
    }
}
