//! The form of output in an answer.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Treatment of terminal escape sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ansi {
    #[default]
    Strip,
    Keep,
}

/// Conversion of output bytes to a JSON string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Encoding {
    /// UTF-8. Each maximal invalid subpart becomes one U+FFFD.
    #[default]
    Text,
    /// All bytes unchanged.
    Base64,
}
