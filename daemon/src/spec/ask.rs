//! A question that a person must answer before a process may start. Questions are recorded above this layer.

use futures_util::future::BoxFuture;
use std::io;
use std::path::PathBuf;
use toold_proto::ProcId;
use toold_proto::approval::ApprovalId;

/// A question that is not recorded yet.
pub trait Ask: Send + Sync {
    /// Records the question for a process that is recorded after it. It is durable when this returns.
    fn record(&self, process: ProcId) -> BoxFuture<'_, Result<ApprovalId, AskError>>;

    /// Removes the question again: its process could not be recorded.
    fn discard(&self, id: ApprovalId) -> BoxFuture<'_, ()>;
}

/// The reason why a question was not recorded.
#[derive(Debug)]
pub enum AskError {
    /// This many questions of the session wait already.
    TooMany {
        limit: u64,
    },
    Store {
        path: PathBuf,
        source: io::Error,
    },
    /// The kernel gave no random bytes.
    Random(getrandom::Error),
}
