//! The position at which a new consumer of events begins.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The first event of a new consumer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ConsumerStart {
    /// The oldest event in the journal.
    #[default]
    Oldest,
    /// The next event that is published.
    Now,
}
