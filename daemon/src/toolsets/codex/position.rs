//! The output of a session that its client has. A result moves it when it was written to the client: a client that hung up, or
//! a daemon that was killed, loses no output, and the next call may return some of it again.

use crate::proc::Proc;
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use toold_format::fnv1a;
use toold_proto::ProcId;

/// The file in the directory of the process: the cursor, whether the end was reported, a checksum.
const FILE: &str = "codex";
const CONTENT_LEN: usize = 9;
const FILE_LEN: usize = CONTENT_LEN + 8;

/// A position in the output. The default is its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Position {
    pub cursor: u64,
    /// The end of the process was reported too: the session is over.
    pub is_reported: bool,
}

/// The positions of results that are being written to their clients.
#[derive(Default)]
pub struct Positions {
    started: Mutex<HashMap<ProcId, Position>>,
}

impl Positions {
    /// Returns the position of a session. Reads the disk.
    pub fn get(&self, proc: &Proc) -> Position {
        let started = self.lock().get(&proc.spec.id).copied().unwrap_or_default();
        started.max(read(&proc.dir))
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<ProcId, Position>> {
        self.started.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The delivery of a result with output of a session. Dropped without `delivered`: the position stays.
pub struct ReadDelivery {
    positions: Arc<Positions>,
    proc: Arc<Proc>,
    to: Position,
    is_started: AtomicBool,
}

impl ReadDelivery {
    pub(in super::super) fn new(positions: Arc<Positions>, proc: Arc<Proc>, to: Position) -> ReadDelivery {
        ReadDelivery { positions, proc, to, is_started: AtomicBool::new(false) }
    }

    /// The result is being written: the next call comes after it.
    pub fn begin(&self) {
        let mut started = self.positions.lock();
        let position = started.entry(self.proc.spec.id).or_default();
        *position = self.to.max(*position);
        self.is_started.store(true, Relaxed);
    }

    /// Records the position. A failure is only logged: the output comes again.
    pub fn delivered(&self) {
        // The same request again, after later ones, moves nothing back.
        if self.to > read(&self.proc.dir)
            && let Err(e) = write(&self.proc.dir, self.to)
        {
            tracing::warn!(id = %self.proc.spec.id, %e, "failed to record the output that a session has returned");
        }
    }
}

impl Drop for ReadDelivery {
    fn drop(&mut self) {
        let mut started = self.positions.lock();
        if self.is_started.load(Relaxed) && started.get(&self.proc.spec.id) == Some(&self.to) {
            started.remove(&self.proc.spec.id);
        }
    }
}

/// Reads the position of a process. One that cannot be read is the beginning: output comes twice, and is not lost.
fn read(dir: &Path) -> Position {
    let mut bytes = [0; FILE_LEN];
    let read = File::open(dir.join(FILE)).and_then(|file| file.read_exact_at(&mut bytes, 0));
    match read {
        Ok(()) => decode(&bytes).unwrap_or_default(),
        Err(_) => Position::default(),
    }
}

fn write(dir: &Path, to: Position) -> io::Result<()> {
    // One write of its whole length: a daemon that is killed leaves the old content or the new.
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(0o600).open(dir.join(FILE))?;
    file.write_all_at(&encode(to), 0)
}

fn encode(position: Position) -> [u8; FILE_LEN] {
    let mut bytes = [0; FILE_LEN];
    bytes[..8].copy_from_slice(&position.cursor.to_le_bytes());
    bytes[8] = position.is_reported.into();
    let sum = fnv1a(&bytes[..CONTENT_LEN]);
    bytes[CONTENT_LEN..].copy_from_slice(&sum.to_le_bytes());
    bytes
}

fn decode(bytes: &[u8; FILE_LEN]) -> Option<Position> {
    let (content, sum) = bytes.split_at(CONTENT_LEN);
    let (cursor, flag) = content.split_first_chunk::<8>()?;
    let is_whole = fnv1a(content).to_le_bytes() == sum;
    is_whole.then(|| Position { cursor: u64::from_le_bytes(*cursor), is_reported: flag == [1] })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_comes_back_and_a_damaged_one_is_the_beginning() {
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(read(dir.path()), Position::default());
        for to in [Position { cursor: 7, is_reported: false }, Position { cursor: u64::MAX, is_reported: true }] {
            write(dir.path(), to).expect("written");
            assert_eq!(read(dir.path()), to);
        }
        let mut bytes = encode(Position { cursor: 7, is_reported: false });
        for at in 0..FILE_LEN {
            bytes[at] ^= 1;
            assert_eq!(decode(&bytes), None, "{at}");
            bytes[at] ^= 1;
        }
    }
}
