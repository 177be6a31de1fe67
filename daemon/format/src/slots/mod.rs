//! The slots of a record file, to which each fact is written when it happens. Pure: bytes in, facts out.
//!
//! A record starts with one page of slots, all zero at first, so that a full disk cannot keep an exit
//! from being written. A slot ends in a checksum. A slot of zeros was never written; one whose checksum does not match is
//! damaged, or was written only in part.

mod resizes;

use crate::fnv1a;
use crate::log::{Counts, LogSums, SegmentSums};
pub use resizes::{MAX_RESIZES, Resize, Resizes};

/// The length of the slots before the spec.
pub const PAGE_LEN: usize = 4096;
/// The offset of each slot.
pub const HEAD_AT: u64 = 0;
/// The daemon's own slot: the published events of the process, and the position of its watch. It shares the head's sector,
/// which no shim writes.
pub const CHECKPOINT_AT: u64 = 256;
pub const LAUNCH_AT: u64 = 512;
pub const EXIT_AT: u64 = 1024;
/// The daemon's note of slots that it found damaged, and then wrote again.
pub const DAMAGE_NOTE_AT: u64 = 640;
/// The daemon's note that the program is not wanted any more. The child reads it right before it executes the program.
pub const CANCEL_AT: u64 = 768;
pub const CLOSED_AT: u64 = 1536;
/// The shim's note of the last sizes of the terminal.
pub const RESIZES_AT: u64 = 1664;
pub const COUNTS_AT: u64 = 2048;
/// Named writes, so that one that is repeated after the exit is recognised: 24 bytes each, id and bytes done.
pub const WRITES_AT: u64 = 2560;
pub const WRITE_ENTRY_LEN: usize = 24;
pub const MAX_WRITES: usize = 64;
/// The length of a slot, checksum included.
pub const SLOT_LEN: usize = 96;

const MAGIC: u64 = u64::from_le_bytes(*b"tooldrec");
/// The layout of the record. A daemon reads all versions up to its own.
pub const VERSION: u32 = 1;

/// One slot as bytes.
pub type Slot = [u8; SLOT_LEN];
/// The length of the daemon's own slot. Its content is not known here.
pub const CHECKPOINT_LEN: usize = 192;
pub type CheckpointSlot = [u8; CHECKPOINT_LEN];

/// The facts that the daemon has before it starts anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    pub spec_len: u32,
    pub spec_checksum: u64,
    /// A secret that proves to a shim that the connecting daemon can read the record.
    pub nonce: [u8; 16],
    /// The boot id: pids of another boot mean nothing.
    pub boot: [u8; 16],
    /// Launch slot and checkpoint were written with the record, so zeros there are damage. False in records of earlier
    /// versions.
    pub is_seeded: bool,
    /// It waits for its turn before anything is launched: a record without a launch was answered, and stays.
    pub is_pending: bool,
}

/// The condition of a slot, whatever it contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotCondition {
    /// All zero.
    Empty,
    Written,
    /// Its checksum does not match.
    Damaged,
}

impl SlotCondition {
    /// Examines a slot that ends in its checksum.
    pub fn of(slot: &[u8]) -> SlotCondition {
        match slot.split_last_chunk::<8>() {
            _ if slot.iter().all(|byte| *byte == 0) => SlotCondition::Empty,
            Some((facts, checksum)) if fnv1a(facts).to_le_bytes() == *checksum => SlotCondition::Written,
            Some(_) | None => SlotCondition::Damaged,
        }
    }
}

/// The content of a launch slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaunchSlot {
    /// Never written.
    Empty,
    /// Written with the record: no shim has come to it.
    NotLaunched,
    Launched(Launch),
    /// Damaged, or of a later version: something may have been started.
    Unknown,
}

/// The progress of a start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// A shim holds the lock and is about to fork.
    Launching,
    Running,
    /// The program never ran.
    Failed,
    /// A daemon found neither a shim nor an exit.
    Lost,
}

/// The processes that run it, or the step that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    pub stage: Stage,
    pub shim_pid: i32,
    pub pid: i32,
    /// The start time of `pid` in clock ticks since boot: with the pid, an identity.
    pub ticks: u64,
    pub step: u32,
    pub errno: i32,
    pub at_ms: u64,
    /// The inode of the pipe that the program has as stdin. 0: it has none, or the shim is of an earlier version.
    pub stdin_inode: u64,
}

/// The reason of an exit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cause {
    #[default]
    Itself,
    Client,
    Timeout,
    Idle,
    SessionEnd,
    Shutdown,
    /// It waited for another process, which failed.
    Dependency,
    /// It waited for an approval, which was not given.
    Denied,
}

/// The end of the program, as the kernel reported it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    pub wait_status: i32,
    pub cause: Cause,
    pub oom: bool,
    pub by_uid: u32,
    pub by_pid: i32,
    pub at_ms: u64,
    /// The end of the output at the exit: later output is of orphaned descendants.
    pub end: u64,
    pub cpu_us: u64,
    pub max_rss_kib: u64,
    /// Processes of the tree that the kernel had killed for memory by then. 0 also where no group counts them.
    pub oom_kills: u32,
}

/// The counts of the output, and the state of the streams and the terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Progress {
    pub counts: Counts,
    /// Both streams are at their end.
    pub closed: bool,
    /// The program has written more, which waits until a reader has read: the log is full of bytes that it has not.
    pub held_back: bool,
    pub stdin_closed: bool,
    /// The program is stopped, as by SIGSTOP. Always false from earlier versions.
    pub stopped: bool,
    pub rows: u16,
    pub cols: u16,
    /// The checksums of the log. None from earlier versions.
    pub sums: Option<LogSums>,
}

/// Writes numbers into a slot, in order.
struct SlotWriter {
    slot: Slot,
    at: usize,
}

impl SlotWriter {
    fn new() -> SlotWriter {
        SlotWriter { slot: [0; SLOT_LEN], at: 0 }
    }
    fn put<const N: usize>(mut self, bytes: [u8; N]) -> SlotWriter {
        if let Some(place) = self.slot.get_mut(self.at..self.at + N) {
            place.copy_from_slice(&bytes);
        }
        self.at += N;
        self
    }
    fn seal(mut self) -> Slot {
        debug_assert!(self.at <= SLOT_LEN - 8, "a slot holds its facts and the checksum");
        let checksum = fnv1a(&self.slot[..SLOT_LEN - 8]);
        self.slot[SLOT_LEN - 8..].copy_from_slice(&checksum.to_le_bytes());
        self.slot
    }
}

/// Reads numbers from a slot, in order.
struct SlotReader<'a> {
    rest: &'a [u8],
}

impl<'a> SlotReader<'a> {
    /// Checks a slot. None: it was never written, or only in part.
    #[inline]
    fn open(slot: &'a Slot) -> Option<SlotReader<'a>> {
        let (facts, checksum) = slot.split_at(SLOT_LEN - 8);
        (fnv1a(facts).to_le_bytes() == checksum && facts.iter().any(|b| *b != 0)).then_some(SlotReader { rest: facts })
    }
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (head, rest) = self.rest.split_first_chunk::<N>().unwrap_or((&[0; N], &[]));
        self.rest = rest;
        *head
    }
    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }
    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }
    fn i32(&mut self) -> i32 {
        i32::from_le_bytes(self.take())
    }
    fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.take())
    }
}

impl Head {
    pub fn slot(&self) -> Slot {
        SlotWriter::new()
            .put(MAGIC.to_le_bytes())
            .put(VERSION.to_le_bytes())
            .put(self.spec_len.to_le_bytes())
            .put(self.spec_checksum.to_le_bytes())
            .put(self.nonce)
            .put(self.boot)
            .put((u32::from(self.is_seeded) | u32::from(self.is_pending) << 1).to_le_bytes())
            .seal()
    }
    pub fn read(slot: &Slot) -> Option<Head> {
        let mut t = SlotReader::open(slot)?;
        if t.u64() != MAGIC || t.u32() > VERSION {
            return None;
        }
        let (spec_len, spec_checksum, nonce, boot) = (t.u32(), t.u64(), t.take(), t.take());
        let flags = t.u32();
        let (is_seeded, is_pending) = (flags & 1 != 0, flags & 2 != 0);
        Some(Head { spec_len, spec_checksum, nonce, boot, is_seeded, is_pending })
    }
}

impl Launch {
    pub fn slot(&self) -> Slot {
        let stage: u32 = match self.stage {
            Stage::Launching => 1,
            Stage::Running => 2,
            Stage::Failed => 3,
            Stage::Lost => 4,
        };
        SlotWriter::new()
            .put(stage.to_le_bytes())
            .put(self.shim_pid.to_le_bytes())
            .put(self.pid.to_le_bytes())
            .put(self.step.to_le_bytes())
            .put(self.errno.to_le_bytes())
            .put(self.ticks.to_le_bytes())
            .put(self.at_ms.to_le_bytes())
            .put(self.stdin_inode.to_le_bytes())
            .seal()
    }
    pub fn read(slot: &Slot) -> Option<Launch> {
        let mut t = SlotReader::open(slot)?;
        let stage = match t.u32() {
            1 => Stage::Launching,
            2 => Stage::Running,
            3 => Stage::Failed,
            4 => Stage::Lost,
            // Not launched, or a stage of a later version.
            _ => return None,
        };
        let (shim_pid, pid, step, errno) = (t.i32(), t.i32(), t.u32(), t.i32());
        Some(Launch { stage, shim_pid, pid, step, errno, ticks: t.u64(), at_ms: t.u64(), stdin_inode: t.u64() })
    }
}

impl LaunchSlot {
    /// Encodes the slot of a record that no shim has come to. Stage 0, which an earlier version reads as not started.
    pub fn not_launched(at_ms: u64) -> Slot {
        let unused = [0; 24];
        SlotWriter::new().put(0u32.to_le_bytes()).put(unused).put(at_ms.max(1).to_le_bytes()).seal()
    }

    pub fn read(slot: &Slot) -> LaunchSlot {
        match (SlotCondition::of(slot), Launch::read(slot)) {
            (_, Some(launch)) => LaunchSlot::Launched(launch),
            (SlotCondition::Empty, None) => LaunchSlot::Empty,
            (SlotCondition::Written, None) if slot[..4] == [0; 4] => LaunchSlot::NotLaunched,
            (SlotCondition::Written | SlotCondition::Damaged, None) => LaunchSlot::Unknown,
        }
    }
}

impl Cause {
    pub fn code(self) -> u32 {
        match self {
            Cause::Itself => 0,
            Cause::Client => 1,
            Cause::Timeout => 2,
            Cause::Idle => 3,
            Cause::SessionEnd => 4,
            Cause::Shutdown => 5,
            Cause::Dependency => 6,
            Cause::Denied => 7,
        }
    }
    pub fn from_code(code: u32) -> Cause {
        match code {
            1 => Cause::Client,
            2 => Cause::Timeout,
            3 => Cause::Idle,
            4 => Cause::SessionEnd,
            5 => Cause::Shutdown,
            6 => Cause::Dependency,
            7 => Cause::Denied,
            // A cause of a later version: none is claimed.
            _ => Cause::Itself,
        }
    }
}

impl Exit {
    pub fn slot(&self) -> Slot {
        SlotWriter::new()
            .put(1u32.to_le_bytes())
            .put(self.wait_status.to_le_bytes())
            .put(self.cause.code().to_le_bytes())
            .put(u32::from(self.oom).to_le_bytes())
            .put(self.by_uid.to_le_bytes())
            .put(self.by_pid.to_le_bytes())
            .put(self.at_ms.to_le_bytes())
            .put(self.end.to_le_bytes())
            .put(self.cpu_us.to_le_bytes())
            .put(self.max_rss_kib.to_le_bytes())
            .put(self.oom_kills.to_le_bytes())
            .seal()
    }
    pub fn read(slot: &Slot) -> Option<Exit> {
        let mut t = SlotReader::open(slot)?;
        t.u32();
        let (wait_status, cause, oom) = (t.i32(), Cause::from_code(t.u32()), t.u32() != 0);
        let (by_uid, by_pid) = (t.u32(), t.i32());
        let (at_ms, end, cpu_us, max_rss_kib) = (t.u64(), t.u64(), t.u64(), t.u64());
        // An earlier version wrote zeroes here.
        let oom_kills = t.u32();
        Some(Exit { wait_status, cause, oom, by_uid, by_pid, at_ms, end, cpu_us, max_rss_kib, oom_kills })
    }
}

impl Progress {
    pub fn slot(&self) -> Slot {
        let c = &self.counts;
        let flags = u32::from(self.closed) << 4
            | u32::from(c.out_open)
            | u32::from(c.err_open) << 1
            | u32::from(self.stdin_closed) << 2
            | u32::from(c.last_open) << 3
            | u32::from(self.sums.is_some()) << 5
            | u32::from(self.stopped) << 6
            | u32::from(self.held_back) << 7
            | 1 << 31;
        let sums = self.sums.unwrap_or_default();
        SlotWriter::new()
            .put(flags.to_le_bytes())
            .put(self.rows.to_le_bytes())
            .put(self.cols.to_le_bytes())
            .put(c.end.to_le_bytes())
            .put(c.out_newlines.to_le_bytes())
            .put(c.err_newlines.to_le_bytes())
            .put(c.dropped.to_le_bytes())
            .put(c.unstored.to_le_bytes())
            .put(sums.start.to_le_bytes())
            .put(sums.end.to_le_bytes())
            .put(sums.idx_len.to_le_bytes())
            .put(sums.last.log.to_le_bytes())
            .put(sums.last.idx.to_le_bytes())
            .put(sums.head.log.to_le_bytes())
            .put(sums.head.idx.to_le_bytes())
            .seal()
    }
    #[inline]
    pub fn read(slot: &Slot) -> Option<Progress> {
        let mut t = SlotReader::open(slot)?;
        let (flags, rows, cols) = (t.u32(), t.u16(), t.u16());
        let counts = Counts {
            end: t.u64(),
            out_newlines: t.u64(),
            err_newlines: t.u64(),
            dropped: t.u64(),
            unstored: t.u64(),
            out_open: flags & 1 != 0,
            err_open: flags & 2 != 0,
            last_open: flags & 8 != 0,
        };
        let (start, end, idx_len) = (t.u64(), t.u64(), t.u64());
        let mut segment = || SegmentSums { log: t.u32(), idx: t.u32() };
        let (last, head) = (segment(), segment());
        let sums = (flags & 32 != 0).then_some(LogSums { start, end, idx_len, last, head });
        let (closed, stdin_closed, stopped) = (flags & 16 != 0, flags & 4 != 0, flags & 64 != 0);
        let held_back = flags & 128 != 0;
        Some(Progress { counts, closed, held_back, stdin_closed, stopped, rows, cols, sums })
    }
}

/// Encodes the time at which both streams were at their end.
pub fn closed_slot(at_ms: u64) -> Slot {
    SlotWriter::new().put(1u32.to_le_bytes()).put(0u32.to_le_bytes()).put(at_ms.to_le_bytes()).seal()
}

/// Encodes the note that a start is canceled.
pub fn cancel_slot(at_ms: u64) -> Slot {
    closed_slot(at_ms)
}

/// Returns true if a start is canceled. A slot that was written only in part cancels nothing: its writer has not answered.
pub fn is_canceled(slot: &Slot) -> bool {
    SlotCondition::of(slot) == SlotCondition::Written
}

/// Encodes a note of damaged slots, a bit each.
pub fn damage_note(slots: u32) -> Slot {
    SlotWriter::new().put(1u32.to_le_bytes()).put(slots.to_le_bytes()).seal()
}

/// Returns the bits of a note; 0 without one.
pub fn read_damage_note(slot: &Slot) -> u32 {
    SlotReader::open(slot).map_or(0, |mut t| {
        t.u32();
        t.u32()
    })
}

pub fn read_closed(slot: &Slot) -> Option<u64> {
    let mut t = SlotReader::open(slot)?;
    t.u64();
    Some(t.u64())
}

#[cfg(test)]
mod tests;
