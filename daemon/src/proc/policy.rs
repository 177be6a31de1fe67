//! The restart policy of a process: the facts on which the decision depends, and the note that a client ended it.

use super::handle::Proc;
use super::state::{Phase, State};
use crate::clock::wall_ms;
use crate::store::record::Record;
use crate::store::restart::{EndKind, RunEnd};
use toold_format::slots::Cause;
use toold_format::step;
use toold_proto::restart::RestartPolicy;

impl Proc {
    /// Returns true if a policy can start it again.
    pub fn has_policy(&self) -> bool {
        self.spec.restart.as_ref().is_some_and(|restart| restart.policy != RestartPolicy::No)
    }

    /// Returns true if its shim stays after its end, with the environment for a run that may follow.
    pub fn keeps_shim(&self) -> bool {
        self.has_policy() || self.retry_spec().is_some()
    }

    /// Notes in the record that a client does not want the process any more: no policy starts it again, also if it ends by
    /// itself before the kill reaches it, and also after a crash of the daemon.
    pub fn end_policy(&self) {
        if !self.keeps_shim() {
            return;
        }
        if let Err(e) = Record::open(&self.dir).and_then(|record| record.set_canceled(wall_ms())) {
            tracing::warn!(id = %self.spec.id, %e, "failed to record the end of a restart policy");
        }
    }

    /// Returns true if a client ended the policy. A record that cannot be read proves nothing: it is not restarted.
    pub fn is_policy_ended(&self) -> bool {
        !Record::open(&self.dir).and_then(|record| record.is_canceled()).is_ok_and(|is_canceled| !is_canceled)
    }

    /// Describes the end of the run for the policy. None: it can never be restarted.
    pub fn run_end(&self, state: &State) -> Option<RunEnd> {
        let kind = match state.phase {
            Phase::Pending | Phase::Starting | Phase::Running | Phase::Lost { .. } => return None,
            Phase::Failed { step: step::ENVIRONMENT, .. } => return None,
            // The caller of the first start has the error.
            Phase::Failed { .. } if self.restarts() == 0 || state.is_canceled() => EndKind::Wanted,
            Phase::Failed { .. } => EndKind::Failed,
            Phase::Exited { exit, .. } => match exit.cause {
                Cause::Client | Cause::SessionEnd | Cause::Shutdown | Cause::Dependency | Cause::Denied => {
                    EndKind::Wanted
                }
                Cause::Itself | Cause::Timeout | Cause::Idle if exit.wait_status == 0 => EndKind::Well,
                Cause::Itself | Cause::Timeout | Cause::Idle => EndKind::Failed,
            },
        };
        let at_ms = state.ended_ms().unwrap_or(0);
        Some(RunEnd { at_ms, ran_ms: self.uptime_ms(state, at_ms), kind })
    }

    /// Returns the number of restarts in a row by the policy, up to this run.
    pub fn restarts(&self) -> u32 {
        self.spec.restart.as_ref().map_or(0, |restart| restart.count)
    }
}
