//! The restart of a process, as its record keeps it: the previous run, and the policy. The decision is pure.

use serde::{Deserialize, Serialize};
use toold_proto::ProcId;
use toold_proto::restart::{DEFAULT_MAX_BACKOFF_MS, RestartOptions, RestartPolicy};

/// Restarts in a row, if the call has no number.
const DEFAULT_MAX: u32 = 10;
/// Delay before the first restart, if the call has no number.
const DEFAULT_BACKOFF_MS: u64 = 1000;
/// A program that ran for this long has not crashed in a row with the runs before it.
pub const STABLE_MS: u64 = 60_000;

/// The part of a spec that only a process has which was restarted, or is to be. Never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RestartSpec {
    /// The previous run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub of: Option<ProcId>,
    pub policy: RestartPolicy,
    pub max: u32,
    pub backoff_ms: u64,
    pub max_backoff_ms: u64,
    /// Restarts in a row by the policy, this run included.
    pub count: u32,
}

/// The end of a run, as far as the decision needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunEnd {
    pub at_ms: u64,
    /// The time that the program ran.
    pub ran_ms: u64,
    pub kind: EndKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndKind {
    /// Exit code 0.
    Well,
    Failed,
    /// A client wanted the end.
    Wanted,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestartDecision {
    /// The policy does not apply to this end.
    Stay,
    Restart {
        at_ms: u64,
        count: u32,
    },
    /// There were too many restarts in a row.
    GiveUp,
}

impl RestartSpec {
    /// Returns the policy of a call. None: it has none.
    pub fn from_options(options: RestartOptions) -> Option<RestartSpec> {
        let RestartOptions { policy, max, backoff_ms, max_backoff_ms } = options;
        (policy != RestartPolicy::No).then(|| RestartSpec {
            of: None,
            policy,
            max: max.unwrap_or(DEFAULT_MAX),
            backoff_ms: backoff_ms.unwrap_or(DEFAULT_BACKOFF_MS),
            max_backoff_ms: max_backoff_ms.unwrap_or(DEFAULT_MAX_BACKOFF_MS),
            count: 0,
        })
    }

    /// Decides what follows the end of a run.
    pub fn decide(&self, end: RunEnd) -> RestartDecision {
        let applies = match (self.policy, end.kind) {
            (RestartPolicy::No, _) | (_, EndKind::Wanted) => false,
            (RestartPolicy::OnFailure, kind) => kind == EndKind::Failed,
            (RestartPolicy::Always, EndKind::Well | EndKind::Failed) => true,
        };
        if !applies {
            return RestartDecision::Stay;
        }
        let before = if end.ran_ms >= STABLE_MS { 0 } else { self.count };
        if before >= self.max {
            return RestartDecision::GiveUp;
        }
        let doubled = self.backoff_ms.saturating_mul(1u64.checked_shl(before).unwrap_or(u64::MAX));
        let at_ms = end.at_ms.saturating_add(doubled.min(self.max_backoff_ms));
        RestartDecision::Restart { at_ms, count: before + 1 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(policy: RestartPolicy, max: u32, count: u32) -> RestartSpec {
        let options = RestartOptions { policy, max: Some(max), ..RestartOptions::default() };
        RestartSpec { count, ..RestartSpec::from_options(options).expect("a policy") }
    }

    fn end(kind: EndKind, ran_ms: u64) -> RunEnd {
        RunEnd { at_ms: 5000, ran_ms, kind }
    }

    #[test]
    fn each_policy_restarts_after_its_ends_and_never_after_one_that_was_wanted() {
        use EndKind::{Failed, Wanted, Well};
        for (policy, kind, restarts) in [
            (RestartPolicy::OnFailure, Failed, true),
            (RestartPolicy::OnFailure, Well, false),
            (RestartPolicy::OnFailure, Wanted, false),
            (RestartPolicy::Always, Failed, true),
            (RestartPolicy::Always, Well, true),
            (RestartPolicy::Always, Wanted, false),
        ] {
            let decision = spec(policy, 10, 0).decide(end(kind, 0));
            let expected =
                if restarts { RestartDecision::Restart { at_ms: 6000, count: 1 } } else { RestartDecision::Stay };
            assert_eq!(decision, expected, "{policy:?} {kind:?}");
        }
        assert_eq!(RestartSpec::from_options(RestartOptions::default()), None);
    }

    #[test]
    fn the_delay_doubles_to_its_maximum_and_is_reset_after_a_minute_of_running() {
        let delay =
            |count, ran_ms| match spec(RestartPolicy::Always, u32::MAX, count).decide(end(EndKind::Failed, ran_ms)) {
                RestartDecision::Restart { at_ms, count } => (at_ms - 5000, count),
                other => panic!("{other:?}"),
            };
        let delays: Vec<u64> = (0..8).map(|count| delay(count, 59_999).0).collect();
        assert_eq!(delays, [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]);
        assert_eq!(delay(5, STABLE_MS), (1000, 1));
        assert_eq!(delay(4_000_000_000, 0).0, 60_000, "any number of restarts");
    }

    #[test]
    fn too_many_restarts_in_a_row_end_it() {
        let after =
            |max, count, ran_ms| spec(RestartPolicy::OnFailure, max, count).decide(end(EndKind::Failed, ran_ms));
        assert_eq!(after(2, 1, 0), RestartDecision::Restart { at_ms: 7000, count: 2 });
        assert_eq!(after(2, 2, 0), RestartDecision::GiveUp);
        assert_eq!(after(2, 2, STABLE_MS), RestartDecision::Restart { at_ms: 6000, count: 1 });
        assert_eq!(after(0, 0, STABLE_MS), RestartDecision::GiveUp);
    }
}
