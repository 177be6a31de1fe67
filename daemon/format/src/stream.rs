//! The two output streams of a process.

/// One output stream. A terminal has only `Stdout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    Stdout,
    Stderr,
}
