//! Writes to the stdin of a process and closes it. A named write is made at most once.

use super::Proc;
use super::handle::{Command, INBOX_LEN, NoReply, WriteResult, deadline_after};
use super::input_wait::terminal_echo;
use super::state::State;
use super::write_queue::QueuedWrite;
use crate::disk::on_disk;
use crate::store::{shim_level, writes};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};
use toold_format::frame::Wrote;
use toold_proto::process::Stdin;

/// Default time of a write.
pub const WRITE_TIMEOUT_MS: u64 = 5000;
/// The name of a write without a `write_id`.
const UNNAMED: [u8; 16] = [0; 16];
/// Time between two checks of a terminal's echo.
const ECHO_CHECK_INTERVAL: Duration = Duration::from_millis(20);

/// The result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Written {
    pub bytes: u64,
    pub complete: bool,
    /// A write of this name was made before: nothing was written now.
    pub duplicate: bool,
}

/// The reason why nothing, or only a part, reached the stdin.
#[derive(Debug, PartialEq, Eq)]
pub enum StdinError {
    /// The process has ended. With the bytes that were written before, if the write had started.
    Ended {
        bytes: Option<u64>,
    },
    /// The process was started without stdin.
    NotPiped,
    /// Its stdin is closed. With the bytes that were written before, if the write had started.
    Closed {
        bytes: Option<u64>,
    },
    /// The terminal takes no input now: its queue is full. End-of-file was not typed.
    Full,
    /// The terminal shows what is typed, or that is not known: a secret would be in the log. Nothing was written.
    Echo {
        known: bool,
    },
    /// The shim could not do it.
    Errno(i32),
    NoReply(NoReply),
}

/// Waits until the terminal of a process does not show what is typed, for at most `timeout_ms`: a program prints its
/// prompt and turns the echo off in either order, and the kernel reports no change of it. A pipe shows nothing.
pub async fn wait_until_hidden(proc: &Proc, timeout_ms: u64) -> Result<(), StdinError> {
    let deadline = deadline_after(timeout_ms);
    let mut state_changes = proc.subscribe();
    while proc.spec.pty.is_some() && !proc.published_state().has_ended() {
        let echo = terminal_echo(proc.published_state().pid);
        if echo == Some(false) {
            break;
        }
        if Instant::now() >= deadline {
            return Err(StdinError::Echo { known: echo.is_some() });
        }
        let pause = deadline.min(Instant::now() + ECHO_CHECK_INTERVAL);
        let _ = timeout_at(pause, state_changes.wait_for(State::has_ended)).await;
    }
    Ok(())
}

/// Writes `data`, for at most `timeout_ms`. A `write_id` makes a repetition harmless, also after the exit.
pub async fn write(proc: &Proc, write_id: Option<&str>, data: Vec<u8>, timeout_ms: u64) -> Result<Written, StdinError> {
    let name = write_id.map_or(UNNAMED, fingerprint);
    let total = data.len() as u64;
    let repeated = |bytes| Written { bytes, complete: bytes >= total, duplicate: true };
    if proc.published_state().has_ended() {
        let written = if name == UNNAMED { None } else { on_disk(async { proc.written(&name) }).await };
        return written.map(repeated).ok_or(StdinError::Ended { bytes: None });
    }
    if proc.stdin() == Stdin::Null {
        return Err(StdinError::NotPiped);
    }
    let result = proc.write(name, data, timeout_ms).await.map_err(StdinError::NoReply)?;
    let bytes = result.done;
    match result.state {
        Wrote::Complete => Ok(Written { bytes, complete: true, duplicate: false }),
        Wrote::Duplicate => Ok(repeated(bytes)),
        Wrote::More | Wrote::Stopped => Ok(Written { bytes, complete: false, duplicate: false }),
        Wrote::Broken if proc.published_state().has_ended() => Err(StdinError::Ended { bytes: Some(bytes) }),
        Wrote::Broken => Err(StdinError::Closed { bytes: Some(bytes) }),
    }
}

impl Proc {
    /// Returns the bytes of a named write that the shim wrote before the exit. None: the shim did not see it.
    pub fn written(&self, id: &[u8; 16]) -> Option<u64> {
        if *id == [0; 16] {
            return None;
        }
        writes::find(&self.dir, id)
    }
}

/// Returns the number of named writes of a process that are remembered.
pub fn remembered_writes(proc: &Proc) -> u64 {
    shim_level::remembered_writes(proc.spec.shim_level, proc.published_state().has_ended())
}

/// Closes the stdin.
pub async fn close(proc: &Proc) -> Result<(), StdinError> {
    if proc.published_state().has_ended() {
        return Err(StdinError::Ended { bytes: None });
    }
    match proc.control(super::control::Control::Close).await {
        Ok(0) => Ok(()),
        Ok(_) if proc.stdin() == Stdin::Null => Err(StdinError::NotPiped),
        Ok(libc::EAGAIN) => Err(StdinError::Full),
        Ok(_) if proc.published_state().has_ended() => Err(StdinError::Ended { bytes: None }),
        // EIO: no process has the terminal open.
        Ok(libc::EPIPE | libc::EIO) => Err(StdinError::Closed { bytes: None }),
        Ok(errno) => Err(StdinError::Errno(errno)),
        Err(e) => Err(StdinError::NoReply(e)),
    }
}

/// Hashes a name of any length to 16 bytes that are never all zero: two FNV sums with different salts.
fn fingerprint(id: &str) -> [u8; 16] {
    let mut salted = vec![0x5a];
    salted.extend_from_slice(id.as_bytes());
    let mut name = [0u8; 16];
    name[..8].copy_from_slice(&toold_format::fnv1a(id.as_bytes()).to_le_bytes());
    name[8..].copy_from_slice(&toold_format::fnv1a(&salted).to_le_bytes());
    name[0] |= 1;
    name
}

impl Proc {
    /// Writes bytes. A named write is made at most once.
    pub async fn write(&self, id: [u8; 16], data: Vec<u8>, timeout_ms: u64) -> Result<WriteResult, NoReply> {
        // A shim that cannot be asked for a named write while another one waits: its turn has to come first.
        let turns = if shim_level::finds_writes(self.spec.shim_level) { 1 } else { INBOX_LEN as u64 };
        let deadline = deadline_after(timeout_ms);
        let write = |reply| Command::Write(Box::new(QueuedWrite { id, data, deadline, reply }));
        self.request(timeout_ms.saturating_mul(turns), write).await
    }
}
