//! The reasons why a call has no result.

use crate::silence::Peer;
use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use toold_proto::RpcError;

/// The reason why a call has no result.
#[derive(Debug)]
pub enum CallError {
    /// The daemon refused, with the reason.
    Rpc(RpcError),
    /// No process listens there, or the connection was lost before the answer came.
    Unreachable { path: PathBuf, source: io::Error },
    /// Another user could be behind the socket, so nothing was sent.
    Untrusted { path: PathBuf, why: String },
    /// A process listens there, but does not read or does not answer.
    TimedOut { path: PathBuf, after: Duration, peer: Peer },
    /// This client does not understand the answer.
    Protocol(String),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::Rpc(error) => error.fmt(f),
            CallError::Unreachable { path, source } => write!(f, "cannot reach toold at {}: {source}", path.display()),
            CallError::Untrusted { path, why } => {
                write!(f, "nothing was sent to {}: {why}", path.display())
            }
            CallError::TimedOut { path, after, peer } => {
                write!(f, "no answer from {} after {} s: {peer}", path.display(), after.as_secs_f32())
            }
            CallError::Protocol(what) => write!(f, "{what}; do toolctl and toold have the same version?"),
        }
    }
}

impl std::error::Error for CallError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            CallError::Rpc(error) => Some(error),
            CallError::Unreachable { source, .. } => Some(source),
            CallError::Untrusted { .. } | CallError::TimedOut { .. } | CallError::Protocol(_) => None,
        }
    }
}
