//! Requests to a shim that are answered with an errno.

use toold_format::frame::{NO_ENV, ToShim};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Control {
    /// Closes stdin, or types end-of-file.
    Close,
    Resize {
        rows: u16,
        cols: u16,
    },
    /// Sends a signal to the program's group.
    Signal(i32),
    /// Stops the tree. Answered when it has stopped, or a few seconds later.
    Pause,
    /// Continues the tree.
    Resume,
    /// Lets a shim go that keeps the environment of an ended program.
    Release,
    /// Keeps the shim, with the environment, when the program has ended.
    KeepOwnEnv,
}

impl Control {
    pub(super) fn frame(self, token: u64) -> ToShim<'static> {
        match self {
            Control::Close => ToShim::Close { token },
            Control::Resize { rows, cols } => ToShim::Resize { token, rows, cols },
            Control::Signal(signal) => ToShim::Signal { token, signal },
            Control::Pause => ToShim::Pause { token },
            Control::Resume => ToShim::Resume { token },
            Control::Release => ToShim::Release { token },
            Control::KeepOwnEnv => ToShim::KeepEnv { token, offset: 0, total: NO_ENV, data: &[] },
        }
    }
}
