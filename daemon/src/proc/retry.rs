//! The retry of a process that failed because of its sandbox: whether one is due, and which one it is.

use super::handle::Proc;
use super::state::State;
use crate::store::policy::RetrySpec;
use crate::store::restart::EndKind;
use std::time::Duration;
use tokio::sync::watch;
use toold_proto::process::ProcessRetry;
use toold_proto::sandbox::Denials;

/// Time that an answer about an ended process waits until its retry is known: a disk that hangs delays it no longer.
const KNOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// The retry that followed the end of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Followed {
    #[default]
    Unknown,
    Nothing,
    Retry(ProcessRetry),
}

#[derive(Default)]
pub struct RetryCell {
    followed: watch::Sender<Followed>,
}

impl Proc {
    /// Returns the question that is asked if it fails in its sandbox.
    pub fn retry_spec(&self) -> Option<&RetrySpec> {
        self.spec.policy.as_ref()?.retry.as_deref()
    }

    /// Returns the calls that its sandbox refused, if it failed and they may be the reason.
    pub fn refused_before_failure(&self, state: &State) -> Option<Denials> {
        let has_failed = self.run_end(state).is_some_and(|end| end.kind == EndKind::Failed);
        let sandbox = self.spec.sandbox.as_deref().filter(|_| has_failed)?;
        Some(self.denials(sandbox)).filter(|denials| denials.count > 0)
    }

    fn retry_cell(&self) -> Option<&RetryCell> {
        self.pending.as_ref()?.retry.as_deref()
    }

    /// Publishes the retry that followed its end, or that there is none.
    pub fn set_retry(&self, retry: Option<ProcessRetry>) {
        if let Some(cell) = self.retry_cell() {
            cell.followed.send_replace(retry.map_or(Followed::Nothing, Followed::Retry));
        }
    }

    /// Returns its retry.
    pub fn retry(&self) -> Option<ProcessRetry> {
        match *self.retry_cell()?.followed.borrow() {
            Followed::Retry(retry) => Some(retry),
            Followed::Unknown | Followed::Nothing => None,
        }
    }

    /// Waits a moment, if it has ended, until it is known whether it has a retry.
    pub async fn retry_known(&self) {
        if let Some(cell) = self.retry_cell().filter(|_| self.published_state().has_ended()) {
            let mut followed = cell.followed.subscribe();
            let known = followed.wait_for(|followed| *followed != Followed::Unknown);
            let _ = tokio::time::timeout(KNOWN_TIMEOUT, known).await;
        }
    }
}
