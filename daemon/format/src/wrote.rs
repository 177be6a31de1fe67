//! The result of a piece of a write, and its number in a frame.

/// The result of a piece of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wrote {
    /// The piece is written; the next one is wanted.
    More,
    /// The whole write is done.
    Complete,
    /// The daemon stopped the write; no more of it is written.
    Stopped,
    /// No process can read the input any more.
    Broken,
    /// A write of this name was done before.
    Duplicate,
}

impl Wrote {
    pub(crate) fn code(self) -> u32 {
        match self {
            Wrote::More => 0,
            Wrote::Complete => 1,
            Wrote::Stopped => 2,
            Wrote::Broken => 3,
            Wrote::Duplicate => 4,
        }
    }
    pub(crate) fn from_code(code: u32) -> Option<Wrote> {
        Some(match code {
            0 => Wrote::More,
            1 => Wrote::Complete,
            2 => Wrote::Stopped,
            3 => Wrote::Broken,
            4 => Wrote::Duplicate,
            // A result of a later version.
            _ => return None,
        })
    }
}
