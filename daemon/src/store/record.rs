//! A process's directory: `record` (slots and spec), the log beside it, and the shim's socket.

use super::dir_pool::{self, PreparedDir};
use rustix::fs::FlockOperation;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toold_format::fnv1a;
use toold_format::slots::{
    self, CHECKPOINT_LEN, CheckpointSlot, Exit, Head, Launch, PAGE_LEN, Progress, SLOT_LEN, Slot, Stage,
};
use toold_proto::ProcId;
use toold_proto::pattern::Pattern;
use toold_proto::process::LimitReport;
use toold_proto::pty::PtySize;

/// The longest spec. Arguments come from one message, so this is above what can be asked for.
const SPEC_MAX: u32 = 64 << 20;

/// What to run, as it was accepted. Never changes. Environment values are not in it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    pub id: ProcId,
    pub name: Option<String>,
    pub command: String,
    pub argv: Vec<String>,
    /// The file that is executed.
    pub program: String,
    pub cwd: String,
    pub backend: String,
    pub env_names: Vec<String>,
    pub pty: Option<PtySize>,
    pub stdin_pipe: bool,
    pub timeout_ms: Option<u64>,
    pub idle_ms: Option<u64>,
    /// Between SIGTERM and SIGKILL when a timeout ends it.
    pub timeout_grace_ms: u64,
    pub log_max_bytes: u64,
    pub task_id: Option<String>,
    pub session_key: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub notify: bool,
    pub watch: Vec<Pattern>,
    pub request_id: Option<String>,
    #[serde(default)]
    pub heartbeat_ms: Option<u64>,
    /// Its events go into the journal. Not so before there was one.
    #[serde(default)]
    pub journaled: bool,
    pub limits: BTreeMap<String, LimitReport>,
    /// Directories of the control groups that were made for it.
    #[serde(default)]
    pub cgroups: Vec<PathBuf>,
    pub created_ms: u64,
    /// Orders what was created in the same millisecond.
    pub seq: u64,
}

/// Everything the slots say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Facts {
    pub head: Head,
    pub launch: Option<Launch>,
    pub exit: Option<Exit>,
    pub closed_ms: Option<u64>,
    pub progress: Option<Progress>,
    /// As it is: its reader knows whether it is whole.
    pub checkpoint: CheckpointSlot,
}

/// An open record.
#[derive(Debug)]
pub struct Record {
    file: File,
}

/// What a new record says.
pub struct NewRecord<'a> {
    pub spec: &'a Spec,
    pub progress: &'a Progress,
    pub nonce: [u8; 16],
    pub boot: [u8; 16],
}

/// Makes the record in a directory that was made ahead, and gives that its name. Nothing runs yet.
pub fn create_in(prepared: PreparedDir, dir: &Path, new: &NewRecord<'_>) -> io::Result<Record> {
    let PreparedDir { dir: from, record: file } = prepared;
    // The record is whole before it can be seen.
    match page(new).and_then(|page| file.write_all_at(&page, 0)).and_then(|()| std::fs::rename(&from, dir)) {
        Ok(()) => Ok(Record { file }),
        Err(e) => {
            let _ = std::fs::remove_dir_all(&from);
            Err(e)
        }
    }
}

/// Makes the directory and the record. Nothing runs yet. `durable`: the disk has both when this is done.
pub fn create(dir: &Path, new: &NewRecord<'_>, durable: bool) -> io::Result<Record> {
    let page = page(new)?;
    let PreparedDir { record: file, .. } = dir_pool::prepare(dir.to_path_buf())?;
    let written = file.write_all_at(&page, 0);
    match written.and_then(|()| if durable { dir_pool::sync_all(dir, &file) } else { Ok(()) }) {
        Ok(()) => Ok(Record { file }),
        Err(e) => {
            let _ = std::fs::remove_dir_all(dir);
            Err(e)
        }
    }
}

fn page(new: &NewRecord<'_>) -> io::Result<Vec<u8>> {
    let mut page = vec![0u8; PAGE_LEN];
    serde_json::to_writer(&mut page, new.spec)?;
    let json = &page[PAGE_LEN..];
    let head = Head { spec_len: json.len() as u32, spec_checksum: fnv1a(json), nonce: new.nonce, boot: new.boot };
    page[..SLOT_LEN].copy_from_slice(&head.slot());
    page[slots::COUNTS_AT as usize..][..SLOT_LEN].copy_from_slice(&new.progress.slot());
    Ok(page)
}

impl Record {
    pub fn open(dir: &Path) -> io::Result<Record> {
        Ok(Record { file: File::options().read(true).write(true).open(dir.join("record"))? })
    }

    /// Made, and never written.
    pub fn is_empty(&self) -> io::Result<bool> {
        let mut head = [0u8; SLOT_LEN];
        let len = self.file.read_at(&mut head, 0)?;
        Ok(dir_pool::is_unused(&head[..len]))
    }

    fn slot(&self, at: u64) -> io::Result<Slot> {
        let mut slot = [0u8; SLOT_LEN];
        self.file.read_exact_at(&mut slot, at)?;
        Ok(slot)
    }

    /// All slots in one read. An error: the head is damaged.
    pub fn facts(&self) -> io::Result<Facts> {
        let mut page = [0u8; PAGE_LEN];
        self.file.read_exact_at(&mut page, 0)?;
        let slot = |at: u64| -> Slot {
            let mut slot = [0u8; SLOT_LEN];
            slot.copy_from_slice(&page[at as usize..at as usize + SLOT_LEN]);
            slot
        };
        let head = Head::read(&slot(slots::HEAD_AT)).ok_or_else(|| bad("the head of the record is damaged"))?;
        Ok(Facts {
            head,
            launch: Launch::read(&slot(slots::LAUNCH_AT)),
            exit: Exit::read(&slot(slots::EXIT_AT)),
            closed_ms: slots::read_closed(&slot(slots::CLOSED_AT)),
            progress: Progress::read(&slot(slots::COUNTS_AT)),
            checkpoint: {
                let mut checkpoint = [0u8; CHECKPOINT_LEN];
                checkpoint.copy_from_slice(
                    &page[slots::CHECKPOINT_AT as usize..slots::CHECKPOINT_AT as usize + CHECKPOINT_LEN],
                );
                checkpoint
            },
        })
    }

    /// How far the output has come, as the shim last wrote it.
    pub fn progress(&self) -> Option<Progress> {
        // A read that meets a write half-way fails its checksum; the next one does not.
        (0..8).find_map(|_| Progress::read(&self.slot(slots::COUNTS_AT).ok()?))
    }

    pub fn spec(&self, head: &Head) -> io::Result<Spec> {
        if head.spec_len > SPEC_MAX {
            return Err(bad("the spec is too long to be one"));
        }
        let mut json = vec![0u8; head.spec_len as usize];
        self.file.read_exact_at(&mut json, PAGE_LEN as u64)?;
        if fnv1a(&json) != head.spec_checksum {
            return Err(bad("the spec does not fit its checksum"));
        }
        Ok(serde_json::from_slice(&json)?)
    }

    /// The bytes that a named write put in, if the shim remembered it at the exit.
    pub fn written(&self, id: &[u8; 16]) -> Option<u64> {
        let mut names = [0u8; slots::WRITE_ENTRY_LEN * slots::MAX_WRITES];
        self.file.read_exact_at(&mut names, slots::WRITES_AT).ok()?;
        let entry = names.chunks_exact(slots::WRITE_ENTRY_LEN).find(|e| e[..16] == id[..])?;
        Some(u64::from_le_bytes(entry[16..].try_into().ok()?))
    }

    /// Whether a shim lives: it holds the record's lock as long as it does. Not held: we have it now.
    pub fn lock(&self) -> LockOwner {
        match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => LockOwner::Daemon,
            Err(_) => LockOwner::Shim,
        }
    }

    pub fn unlock(&self) {
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }

    pub fn set_launch(&self, launch: &Launch) -> io::Result<()> {
        self.file.write_all_at(&launch.slot(), slots::LAUNCH_AT)
    }

    /// Notes a start that failed before any shim could.
    pub fn set_failed(&self, step: u32, errno: i32, at_ms: u64) -> io::Result<()> {
        self.set_launch(&Launch { stage: Stage::Failed, shim_pid: 0, pid: 0, ticks: 0, step, errno, at_ms })
    }

    pub fn set_checkpoint(&self, checkpoint: &CheckpointSlot) -> io::Result<()> {
        self.file.write_all_at(checkpoint, slots::CHECKPOINT_AT)
    }

    pub fn set_progress(&self, progress: &Progress) -> io::Result<()> {
        self.file.write_all_at(&progress.slot(), slots::COUNTS_AT)
    }

    pub fn set_closed(&self, at_ms: u64) -> io::Result<()> {
        self.file.write_all_at(&slots::closed_slot(at_ms), slots::CLOSED_AT)
    }

    /// The stage, or that nobody ever began.
    pub fn stage(&self) -> Option<Stage> {
        Launch::read(&self.slot(slots::LAUNCH_AT).ok()?).map(|l| l.stage)
    }

    /// Begins to write it to the disk, without waiting.
    pub fn start_writeback(&self) -> io::Result<()> {
        Ok(crate::sys::start_writeback(&self.file)?)
    }

    /// Waits for the disk without keeping other tasks from anything.
    pub async fn sync_async(self: &Arc<Record>) -> io::Result<()> {
        let record = self.clone();
        tokio::task::spawn_blocking(move || record.sync()).await.unwrap_or_else(|e| Err(io::Error::other(e)))
    }

    /// Waits until it is on the disk.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// Who has a record's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockOwner {
    Daemon,
    Shim,
}

fn bad(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
