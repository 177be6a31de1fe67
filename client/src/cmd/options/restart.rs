//! The options about the restart policy.

use crate::args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use toold_proto::restart::{self, RestartPolicy, RestartSetting};

#[derive(Debug, Default, clap::Args)]
pub struct RestartOptions {
    /// Start it again when it ended: no, on-failure or always; `kill` ends that [default: no]
    #[arg(long = "restart", value_name = "POLICY", hide_possible_values = true, value_parser = policy())]
    policy: Option<RestartPolicy>,
    /// Give up after this many restarts in a row; a minute of running begins a new row [default: 10]
    #[arg(long, value_name = "N", requires = "policy")]
    max_restarts: Option<u32>,
    /// Wait this long before the first restart, then twice as long, up to a minute [default: 1s]
    #[arg(long, value_name = "TIME", requires = "policy", value_parser = args::duration_ms)]
    restart_backoff: Option<u64>,
}

fn policy() -> impl TypedValueParser<Value = RestartPolicy> {
    let names = RestartPolicy::NAMES.map(|(name, _)| name);
    PossibleValuesParser::new(names).try_map(|text: String| {
        let known = RestartPolicy::NAMES.iter().find(|(name, _)| *name == text);
        known.map(|(_, policy)| *policy).ok_or("not a policy")
    })
}

impl RestartOptions {
    pub fn param(self) -> RestartSetting {
        let backoff_ms = self.restart_backoff;
        RestartSetting(restart::RestartOptions {
            policy: self.policy.unwrap_or_default(),
            max: self.max_restarts,
            backoff_ms,
            // A longer first delay than the longest one is meant.
            max_backoff_ms: backoff_ms.filter(|ms| *ms > restart::DEFAULT_MAX_BACKOFF_MS),
        })
    }
}
