//! The task that writes the messages to a server: one after the other, each by its name at most once.

use super::state_file::{self, LongWrite};
use crate::proc::Proc;
use crate::proc::handle::NoReply;
use crate::proc::stdin::{self, StdinError, Written};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use toold_shim::hooks;

/// The time that a write may take: as long as the server lives. A write that is cut would break the next one too.
const WRITE_TIMEOUT_MS: u64 = 1000 * 3600 * 24 * 365;
/// A pipe takes a write of this length whole or not at all.
const ATOMIC_LEN: usize = 4096;
/// The time between tries to reach a shim whose connection broke, and their number.
const RECONNECT_WAIT: Duration = Duration::from_millis(200);
const RECONNECT_TRIES: usize = 50;

/// The reason why a message was not written.
#[derive(Debug, PartialEq, Eq)]
pub enum NotWritten {
    /// The server has not got it, or only a part that is not a message.
    Unsent,
    /// The server may have got it.
    Unknown,
}

/// A message to write.
pub struct Outgoing {
    pub write_id: String,
    pub data: Vec<u8>,
    /// Its receiver is dropped: the message is not wanted any more, if it was not started. None: it is not waited for.
    pub done: Option<oneshot::Sender<Result<(), NotWritten>>>,
}

/// Writes messages one after the other, until the server ends.
pub async fn write_all(proc: Arc<Proc>, mut queue: mpsc::Receiver<Outgoing>, long_write: PathBuf) {
    // The rest of a message that an earlier daemon began.
    match state_file::read::<LongWrite>(&long_write) {
        Ok(Some(unfinished)) if unfinished.process == proc.spec.id => {
            let _ = write_named(&proc, &unfinished.write_id, unfinished.data.into_bytes()).await;
            state_file::remove(&long_write);
        }
        Ok(_) => {}
        Err(e) => tracing::error!(path = %long_write.display(), %e, "a message to an MCP server was left unfinished"),
    }
    while let Some(Outgoing { write_id, data, done }) = queue.recv().await {
        if done.as_ref().is_some_and(oneshot::Sender::is_closed) {
            continue;
        }
        let is_long = data.len() > ATOMIC_LEN;
        if is_long {
            let data = String::from_utf8_lossy(&data).into_owned();
            let unfinished = LongWrite { process: proc.spec.id, write_id: write_id.clone(), data };
            if let Err(e) = state_file::write(&long_write, &unfinished) {
                tracing::warn!(path = %long_write.display(), %e, "a long message would be cut by a crash");
            }
        }
        hooks::at("mcp.write");
        let written = write_named(&proc, &write_id, data).await;
        hooks::at("mcp.written");
        if is_long {
            state_file::remove(&long_write);
        }
        if let Some(done) = done {
            let _ = done.send(written);
        }
    }
}

/// Writes one message, again after a broken connection to the shim: the name makes that harmless.
pub async fn write_named(proc: &Arc<Proc>, write_id: &str, data: Vec<u8>) -> Result<(), NotWritten> {
    let len = data.len() as u64;
    let mut updates = proc.subscribe();
    for _ in 0..RECONNECT_TRIES {
        let unsent = |bytes: Option<u64>| match bytes {
            // Without its last bytes it is not valid JSON.
            Some(bytes) if bytes + 1 >= len => NotWritten::Unknown,
            Some(_) | None => NotWritten::Unsent,
        };
        match stdin::write(proc, Some(write_id), data.clone(), WRITE_TIMEOUT_MS).await {
            Ok(Written { complete: true, .. }) => return Ok(()),
            Ok(Written { bytes, .. }) => return Err(unsent(Some(bytes))),
            Err(StdinError::Ended { bytes } | StdinError::Closed { bytes }) => return Err(unsent(bytes)),
            Err(StdinError::NoReply(NoReply::Gone)) => {
                let _ = tokio::time::timeout(RECONNECT_WAIT, updates.changed()).await;
            }
            Err(StdinError::NotPiped) => return Err(NotWritten::Unsent),
            Err(StdinError::NoReply(_) | StdinError::Full | StdinError::Echo { .. } | StdinError::Errno(_)) => {
                return Err(NotWritten::Unknown);
            }
        }
    }
    Err(NotWritten::Unknown)
}
