//! Kills processes for a client, with the questions that they wait for.

use super::Approvals;
use crate::proc::Proc;
use crate::proc::handle::Kill;
use crate::proc::kill::kill_all;
use std::sync::Arc;
use toold_proto::results::Killed;

impl Approvals {
    /// Kills trees, also the next runs of these processes that have not started. Their questions are withdrawn before it returns.
    pub async fn kill(&self, procs: Vec<Arc<Proc>>, kill: Kill) -> Vec<Killed> {
        let procs = self.registry.with_pending_runs(procs);
        let asked = self.asked_by(&procs);
        let killed = kill_all(procs, kill).await;
        self.wait_decided(&asked).await;
        killed
    }
}
