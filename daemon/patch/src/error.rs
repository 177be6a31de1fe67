//! The reasons for which a patch is refused.

use std::fmt;

/// A patch that cannot be parsed or applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatchError {
    /// The line of the patch, from 1.
    pub line: usize,
    pub message: String,
    /// Lines of the file, from 1, that are nearest to the lines looked for.
    pub nearest: Vec<usize>,
}

impl PatchError {
    pub fn at(line: usize, message: impl Into<String>) -> PatchError {
        PatchError { line, message: message.into(), nearest: Vec::new() }
    }
}

impl fmt::Display for PatchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.message)?;
        match self.nearest.first() {
            Some(nearest) => write!(f, "; nearest to line {nearest} of the file"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for PatchError {}
