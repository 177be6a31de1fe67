//! The directory of a process: `record` (slots and spec), the log beside it, and the shim's socket.

use super::dir_pool::{self, PreparedDir};
pub use super::facts::{DamagedSlots, Facts, RecordStart};
use super::namespaces::Namespaces;
use super::pending::PendingSpec;
use super::policy::PolicySpec;
use super::restart::RestartSpec;
use super::sandbox::SandboxSpec;
use super::script::ScriptSpec;
use super::stage::StageSpec;
use rustix::fs::FlockOperation;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toold_format::fnv1a;
use toold_format::slots::{
    self, CHECKPOINT_LEN, CheckpointSlot, Head, Launch, LaunchSlot, PAGE_LEN, Progress, Resizes, SLOT_LEN, Slot, Stage,
};
use toold_proto::ProcId;
use toold_proto::params::EnvMode;
use toold_proto::patch::PatchResult;
use toold_proto::pattern::Pattern;
use toold_proto::process::{LimitReport, StartedBy};
use toold_proto::pty::PtySize;

/// The digest of what a request runs.
pub type RequestDigest = std::num::NonZeroU64;

/// Maximum length of a spec. Arguments come from one message, so no request reaches this.
const MAX_SPEC_LEN: u32 = 64 << 20;

/// Number of reads after which a slot that does not match its checksum is damaged: a read during a write fails too.
const MAX_SLOT_READS: usize = 8;

/// The accepted description of a process. Never changes. Contains no environment values.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Spec {
    pub id: ProcId,
    pub name: Option<String>,
    pub command: String,
    pub argv: Vec<String>,
    /// The file that is executed.
    pub program: String,
    pub cwd: String,
    pub backend: Box<str>,
    pub env_names: Vec<String>,
    pub pty: Option<PtySize>,
    pub stdin_pipe: bool,
    /// Both streams share one pipe.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub merge: bool,
    /// Its output is kept for the connection that started it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hold: bool,
    pub timeout_ms: Option<u64>,
    pub idle_ms: Option<u64>,
    /// Time between SIGTERM and SIGKILL when a timeout ends the process.
    pub timeout_grace_ms: u64,
    pub log_max_bytes: u64,
    pub task_id: Option<String>,
    pub session_key: Option<String>,
    /// The client that started it. None in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_by: Option<Box<StartedBy>>,
    pub labels: BTreeMap<String, String>,
    pub notify: bool,
    pub watch: Vec<Pattern>,
    pub request_id: Option<String>,
    /// The digest of what the request runs, see `spec::digest`. None without a request, and in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_digest: Option<RequestDigest>,
    #[serde(default)]
    pub heartbeat_ms: Option<u64>,
    /// Its events go into the journal. False in records from before there was a journal.
    #[serde(default)]
    pub journaled: bool,
    /// Version of the features of its shim, see `shim_level`. 0 in records from before there were levels.
    #[serde(default)]
    pub shim_level: u32,
    /// The namespaces of its shim. None in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespaces: Option<Namespaces>,
    /// The reasons why it does not start at once. None: it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pending: Option<Box<PendingSpec>>,
    /// Builds the environment again. None: the call had values of its own, which are on no disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_mode: Option<EnvMode>,
    /// The previous run and the restart policy. None: it has neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<Box<RestartSpec>>,
    /// Its confinement. None: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<Box<SandboxSpec>>,
    /// The permission under which it runs. None: none was needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<Box<PolicySpec>>,
    /// The result of the patch that it applied. None: it applied none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub patch: Option<Box<PatchResult>>,
    /// The overlays on which it runs. None: it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stage: Option<Box<StageSpec>>,
    /// The script or kernel that it is. None: it is neither.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<Box<ScriptSpec>>,
    pub limits: BTreeMap<String, LimitReport>,
    /// It does not run without them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub require_limits: bool,
    /// Directories of its control groups.
    #[serde(default)]
    pub cgroups: Vec<PathBuf>,
    pub created_ms: u64,
    /// Orders processes that were created in the same millisecond.
    pub seq: u64,
}

/// Returns true if a file was read and is not what was written there. Any other error proves nothing about the file.
pub fn is_damage(e: &io::Error) -> bool {
    let not_a_file = [Errno::LOOP, Errno::NXIO, Errno::ISDIR, Errno::NOTDIR].map(Errno::raw_os_error);
    matches!(e.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof)
        || e.raw_os_error().is_some_and(|no| not_a_file.contains(&no))
}

/// An open record.
#[derive(Debug)]
pub struct Record {
    file: File,
}

/// The content of a new record.
pub struct NewRecord<'a> {
    pub spec: &'a Spec,
    pub progress: &'a Progress,
    pub nonce: [u8; 16],
    pub boot: [u8; 16],
    /// The checkpoint of a process without events.
    pub checkpoint: &'a CheckpointSlot,
}

/// Writes the record in a prepared directory, and gives the directory its name. Nothing runs yet.
pub fn create_in(prepared: PreparedDir, dir: &Path, new: &NewRecord<'_>) -> io::Result<Record> {
    let PreparedDir { dir: from, record: file } = prepared;
    // The record is complete before it becomes visible.
    match page(new).and_then(|page| file.write_all_at(&page, 0)).and_then(|()| std::fs::rename(&from, dir)) {
        Ok(()) => Ok(Record { file }),
        Err(e) => {
            let _ = std::fs::remove_dir_all(&from);
            Err(e)
        }
    }
}

/// Creates the directory and the record. Nothing runs yet. `durable`: waits until both are durable.
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
    let head = Head {
        spec_len: json.len() as u32,
        spec_checksum: fnv1a(json),
        nonce: new.nonce,
        boot: new.boot,
        is_seeded: true,
        is_pending: new.spec.pending.is_some(),
    };
    page[..SLOT_LEN].copy_from_slice(&head.slot());
    page[slots::CHECKPOINT_AT as usize..][..CHECKPOINT_LEN].copy_from_slice(new.checkpoint);
    page[slots::LAUNCH_AT as usize..][..SLOT_LEN].copy_from_slice(&LaunchSlot::not_launched(new.spec.created_ms));
    page[slots::COUNTS_AT as usize..][..SLOT_LEN].copy_from_slice(&new.progress.slot());
    Ok(page)
}

impl Record {
    /// Opens the record of a directory. A link would lead elsewhere and a pipe would block: both are damage.
    pub fn open(dir: &Path) -> io::Result<Record> {
        Ok(Record { file: open_regular(&dir.join("record"))? })
    }

    /// Reads the slots and a short spec at once.
    pub fn start(&self) -> io::Result<RecordStart> {
        RecordStart::read(|bytes| self.read_up_to(bytes))
    }

    fn read_up_to(&self, buf: &mut [u8]) -> io::Result<usize> {
        let mut len = 0;
        while len < buf.len() {
            match self.file.read_at(&mut buf[len..], len as u64) {
                Ok(0) => break,
                Ok(n) => len += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(len)
    }

    fn slot(&self, at: u64) -> io::Result<Slot> {
        let mut slot = [0u8; SLOT_LEN];
        self.file.read_exact_at(&mut slot, at)?;
        Ok(slot)
    }

    /// Reads all slots at once. Fails only if the file cannot be read.
    pub fn facts(&self) -> io::Result<Facts> {
        self.facts_from(&self.start()?)
    }

    /// Returns the slots that were read, and reads them again if one is damaged: a shim may have been writing it.
    pub fn facts_from(&self, start: &RecordStart) -> io::Result<Facts> {
        let mut facts = start.facts();
        for _ in 1..MAX_SLOT_READS {
            if !facts.damaged.any() {
                break;
            }
            facts = self.start()?.facts();
        }
        Ok(facts)
    }

    /// Returns the progress of the output as the shim last wrote it.
    pub fn progress(&self) -> Option<Progress> {
        // A read during a write fails its checksum; the next one does not.
        (0..8).find_map(|_| Progress::read(&self.slot(slots::COUNTS_AT).ok()?))
    }

    /// Returns the last sizes of the terminal. None: it kept its first size, or its shim is of an earlier version.
    pub fn resizes(&self) -> Option<Resizes> {
        // As for the progress.
        (0..8).find_map(|_| Resizes::read(&self.slot(slots::RESIZES_AT).ok()?))
    }

    /// Returns the spec, which is read if the beginning does not have all of it.
    pub fn spec_from(&self, start: &RecordStart, head: &Head) -> io::Result<Spec> {
        if head.spec_len > MAX_SPEC_LEN {
            return Err(bad("the spec is too long"));
        }
        let mut long = Vec::new();
        let json = match start.bytes().get(PAGE_LEN..PAGE_LEN + head.spec_len as usize) {
            Some(json) => json,
            None => {
                long.resize(head.spec_len as usize, 0);
                self.file.read_exact_at(&mut long, PAGE_LEN as u64)?;
                &long
            }
        };
        if fnv1a(json) != head.spec_checksum {
            return Err(bad("the checksum of the spec is wrong"));
        }
        Ok(serde_json::from_slice(json)?)
    }

    /// Returns the bytes of a named write, if the shim stored it at the exit.
    pub fn written(&self, id: &[u8; 16]) -> Option<u64> {
        let mut names = [0u8; slots::WRITE_ENTRY_LEN * slots::MAX_WRITES];
        self.file.read_exact_at(&mut names, slots::WRITES_AT).ok()?;
        let entry = names.chunks_exact(slots::WRITE_ENTRY_LEN).find(|e| e[..16] == id[..])?;
        Some(u64::from_le_bytes(entry[16..].try_into().ok()?))
    }

    /// Tries to lock the record. A living shim holds the lock; otherwise this daemon has it afterwards.
    pub fn lock(&self) -> LockOwner {
        self.try_lock().unwrap_or(LockOwner::Shim)
    }

    /// Tries to lock the record, and fails if the owner of the lock cannot be found out.
    pub fn try_lock(&self) -> io::Result<LockOwner> {
        loop {
            match rustix::fs::flock(&self.file, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) => return Ok(LockOwner::Daemon),
                Err(Errno::WOULDBLOCK) => return Ok(LockOwner::Shim),
                Err(Errno::INTR) => {}
                Err(e) => return Err(e.into()),
            }
        }
    }

    pub fn unlock(&self) {
        let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
    }

    pub fn set_launch(&self, launch: &Launch) -> io::Result<()> {
        self.file.write_all_at(&launch.slot(), slots::LAUNCH_AT)
    }

    /// Records a start that failed before any shim could.
    pub fn set_failed(&self, step: u32, errno: i32, at_ms: u64) -> io::Result<()> {
        let (stage, stdin_inode) = (Stage::Failed, 0);
        self.set_launch(&Launch { stage, shim_pid: 0, pid: 0, ticks: 0, step, errno, at_ms, stdin_inode })
    }

    pub fn set_checkpoint(&self, checkpoint: &CheckpointSlot) -> io::Result<()> {
        self.file.write_all_at(checkpoint, slots::CHECKPOINT_AT)
    }

    pub fn set_progress(&self, progress: &Progress) -> io::Result<()> {
        self.file.write_all_at(&progress.slot(), slots::COUNTS_AT)
    }

    /// Notes damaged slots, so that later daemons know of them after they were written again.
    pub fn note_damage(&self, damaged: DamagedSlots) -> io::Result<()> {
        self.file.write_all_at(&slots::damage_note(damaged.bits()), slots::DAMAGE_NOTE_AT)
    }

    /// Notes that the program is not wanted any more: a child that has not executed it yet reads this before it does.
    pub fn set_canceled(&self, at_ms: u64) -> io::Result<()> {
        self.file.write_all_at(&slots::cancel_slot(at_ms), slots::CANCEL_AT)
    }

    /// Returns true if the program is not wanted any more.
    pub fn is_canceled(&self) -> io::Result<bool> {
        Ok(slots::is_canceled(&self.slot(slots::CANCEL_AT)?))
    }

    pub fn set_closed(&self, at_ms: u64) -> io::Result<()> {
        self.file.write_all_at(&slots::closed_slot(at_ms), slots::CLOSED_AT)
    }

    /// Returns the launch, if the slot can be read and has one.
    pub fn launch(&self) -> Option<Launch> {
        Launch::read(&self.slot(slots::LAUNCH_AT).ok()?)
    }

    /// Returns true if the launch slot proves that nothing was started. A damaged or unreadable one proves nothing.
    pub fn is_unlaunched(&self) -> bool {
        let slot = self.slot(slots::LAUNCH_AT);
        slot.is_ok_and(|slot| matches!(LaunchSlot::read(&slot), LaunchSlot::Empty | LaunchSlot::NotLaunched))
    }

    /// Starts to write the record to disk, without waiting.
    pub fn start_writeback(&self) -> io::Result<()> {
        Ok(crate::sys::start_writeback(&self.file)?)
    }

    /// Waits until the record is durable, without blocking other tasks.
    pub async fn sync_async(self: &Arc<Record>) -> io::Result<()> {
        let record = self.clone();
        crate::disk::blocking(move || record.sync()).await.flatten()
    }

    /// Waits until the record is durable.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }
}

/// The owner of a record's lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockOwner {
    Daemon,
    Shim,
}

/// Opens a regular file for reading and writing, and nothing else.
pub(super) fn open_regular(path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK;
    let file = File::options().read(true).write(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(bad("it is not a regular file")) }
}

pub fn bad(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, why)
}
