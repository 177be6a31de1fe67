//! Patches in the format of `apply_patch`: parsed from text, applied to bytes. Pure: nothing here opens a file.

pub mod apply;
pub mod error;
pub mod fold;
pub mod lines;
pub mod parse;
pub mod shell;

pub use apply::{Applied, apply};
pub use error::PatchError;
pub use parse::{Parser, parse};
pub use shell::{Invocation, Recognised, recognise, recognise_argv};

/// A patch: operations in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Patch {
    /// The environment that the patch names, if any.
    pub environment: Option<String>,
    pub operations: Vec<Operation>,
}

/// One operation on one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operation {
    /// The line of its header, from 1.
    pub line: usize,
    pub path: String,
    pub change: Change,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Writes the file, whether it exists or not.
    Add {
        content: String,
    },
    Delete,
    Update {
        move_to: Option<String>,
        chunks: Vec<Chunk>,
    },
}

/// Lines that replace others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Chunk {
    /// The line of its first line, from 1.
    pub line: usize,
    /// A line above the change, which is found first.
    pub context: Option<String>,
    pub lines: Vec<ChunkLine>,
    /// The old lines are the last of the file.
    pub at_end: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChunkLine {
    Keep(String),
    Remove(String),
    Insert(String),
}

impl Chunk {
    /// The lines that the file has before.
    pub fn old(&self) -> impl Iterator<Item = &str> {
        self.lines.iter().filter_map(|line| match line {
            ChunkLine::Keep(text) | ChunkLine::Remove(text) => Some(text.as_str()),
            ChunkLine::Insert(_) => None,
        })
    }
}
