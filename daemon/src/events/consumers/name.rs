//! The name of a consumer.

use sha2::{Digest, Sha256};
use std::fmt;

/// The maximum length of a name, in characters.
const MAX_NAME_CHARS: usize = 128;

/// A name of 1 to 128 characters, none of them a control character.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ConsumerName(String);

/// The error for a text that is not a valid name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidConsumerName;

impl fmt::Display for InvalidConsumerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("must be 1 to 128 characters, none of them a control character")
    }
}

impl std::error::Error for InvalidConsumerName {}

impl ConsumerName {
    pub fn parse(text: &str) -> Result<ConsumerName, InvalidConsumerName> {
        let fits = (1..=MAX_NAME_CHARS).contains(&text.chars().count()) && !text.chars().any(char::is_control);
        if fits { Ok(ConsumerName(text.into())) } else { Err(InvalidConsumerName) }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns a digest of the name: a name may contain a slash or dots, or differ from another only in case.
    pub(super) fn file_name(&self) -> String {
        let digest = Sha256::digest(self.0.as_bytes());
        let hex: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        format!("{hex}.pos")
    }
}

impl fmt::Display for ConsumerName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
