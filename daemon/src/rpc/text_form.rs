//! The parameters `tail_lines` and `collapse` of the methods that return output.

use crate::text::TextForm;
use toold_proto::RpcError;
use toold_proto::params::{Ansi, Encoding};

/// The most lines in one answer.
const MAX_LINES: u64 = 100_000;

/// Checks `tail_lines`.
pub fn tail_lines(lines: Option<u64>) -> Result<Option<usize>, RpcError> {
    match lines {
        Some(n) if n == 0 || n > MAX_LINES => {
            Err(RpcError::param("tail_lines", format!("must be 1 to {MAX_LINES}, not {n}")))
        }
        lines => Ok(lines.map(|n| n as usize)),
    }
}

/// Returns the form of text that a call asks for. Without escape sequences lines are collapsed by default.
pub fn text_form(ansi: Ansi, encoding: Encoding, collapse: Option<bool>) -> Result<TextForm, RpcError> {
    let is_text = ansi == Ansi::Strip && encoding == Encoding::Text;
    match collapse {
        Some(true) if !is_text => {
            Err(RpcError::param("collapse", "needs text without escape sequences: ansi \"strip\", encoding \"text\""))
        }
        collapse => Ok(TextForm { ansi, collapse: collapse.unwrap_or(is_text) }),
    }
}
