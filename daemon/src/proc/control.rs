//! Requests to a shim that are answered with an errno.

use super::handle::{Command, NoReply, Proc};
use crate::store::shim_level;
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

/// The result of `Proc::extend_timeout`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimeoutExtension {
    Extended,
    /// The process has no timeout.
    NoTimeout,
    /// The timeout is over, or the program has ended.
    TooLate,
    /// Its shim is of an earlier version: the timeout stays.
    Unsupported,
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

impl Proc {
    /// Returns 0 or an errno.
    pub async fn control(&self, control: Control) -> Result<i32, NoReply> {
        self.request(0, |reply| Command::Control { control, reply }).await
    }

    /// Moves the timeout of the running program by `by_ms`; a negative number brings it closer. The shim has it from then
    /// on, also without a daemon. After `NoReply::Gone` it is not known: the shim may have done it.
    pub async fn extend_timeout(&self, by_ms: i64) -> Result<TimeoutExtension, NoReply> {
        if self.spec.timeout_ms.is_none() {
            return Ok(TimeoutExtension::NoTimeout);
        }
        if !shim_level::extends_timeout(self.spec.shim_level) {
            return Ok(TimeoutExtension::Unsupported);
        }
        match self.request(0, |reply| Command::ExtendTimeout { by_ms, reply }).await {
            Ok(0) => Ok(TimeoutExtension::Extended),
            // ESRCH and ETIME: there is nothing left to extend.
            Ok(_) => Ok(TimeoutExtension::TooLate),
            Err(NoReply::Gone) if self.published_state().has_ended() => Ok(TimeoutExtension::TooLate),
            Err(e) => Err(e),
        }
    }
}
