//! Reads the directory of one process when a daemon starts, and distinguishes absent, damaged and not readable now. Only
//! what was read as never started is removed, only what was read as damaged is quarantined.

use crate::log::{Log, Writer, check, check_whole, verify};
use crate::proc::checkpoint::Checkpoint;
use crate::proc::output::unreadable;
use crate::proc::state::{LostCause, Phase, State, Update};
use crate::proc::{denials, lost, tree};
use crate::store::record::{self, Facts, LockOwner, Record, Spec};
use crate::store::requests::{self, Requests};
use crate::store::stage::StageDir;
use crate::store::writes;
use crate::sys;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use toold_format::log::LogSums;
use toold_format::slots::{Progress, Stage};
use toold_shim::hooks;

/// Bytes of output up to which a log is compared with its checksums before the first request is served. Larger ones are
/// compared in the background.
const MAX_START_CHECK_BYTES: u64 = 256 * 1024;
/// Bytes of output of all processes up to which that is done: a fraction of a second.
const ALL_START_CHECK_BYTES: u64 = 64 * 1024 * 1024;
/// Bytes that take about as long to compare as the files of a log take to open.
const OPEN_COST_BYTES: u64 = 16 * 1024;

/// The room for comparing logs with their checksums before the first request is served.
pub struct StartChecks(AtomicU64);

impl Default for StartChecks {
    fn default() -> StartChecks {
        StartChecks(AtomicU64::new(ALL_START_CHECK_BYTES))
    }
}

impl StartChecks {
    /// Takes the room for a log. Returns false if it is to be compared in the background.
    fn take(&self, progress: &Progress) -> bool {
        let len = progress.counts.end.saturating_sub(progress.counts.dropped);
        let take = |left: u64| left.checked_sub(len + OPEN_COST_BYTES);
        len <= MAX_START_CHECK_BYTES && self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }
}

/// The content of one process directory.
pub enum Scanned {
    /// A process in its final state.
    Finished(Box<Loaded>),
    /// A shim lives, or died without recording an end: a task finds out.
    Open {
        loaded: Box<Loaded>,
        record: Arc<Record>,
        nonce: [u8; 16],
    },
    /// It waits for its turn. Its lock is held, or a late shim could start it.
    Pending {
        loaded: Box<Loaded>,
        locked: Record,
        nonce: [u8; 16],
    },
    /// Nothing was started, and the call that created it was never answered: it is removed. Its lock is held until
    /// then, or a late shim could still start it.
    NeverStarted(Option<Record>),
    Damaged(io::Error),
    /// It could not be read now. Nothing is known about it, so it stays as it is.
    Unread(io::Error),
}

/// A process as its directory describes it.
pub struct Loaded {
    pub spec: Spec,
    pub dir: PathBuf,
    pub state: State,
    /// The start in milliseconds since 1970. 0: none is known.
    pub started_ms: u64,
    pub checkpoint: Option<Checkpoint>,
    /// The slot of the checkpoint was written once and is not readable.
    pub lost_checkpoint: bool,
    /// Descriptions of the damage that leaves the rest readable.
    pub damage: Vec<String>,
    /// The error of reading its log.
    pub unreadable: Option<String>,
    pub requests: Requests,
    /// Its log has yet to be compared with its checksums.
    pub unverified: bool,
}

impl Scanned {
    pub fn loaded(&self) -> Option<&Loaded> {
        match self {
            Scanned::Finished(loaded) | Scanned::Open { loaded, .. } | Scanned::Pending { loaded, .. } => Some(loaded),
            Scanned::NeverStarted(_) | Scanned::Damaged(_) | Scanned::Unread(_) => None,
        }
    }
}

/// Reads one directory. The owner of the lock decides how the process is resolved. `has_events`: the journal has events
/// of it, so it was started.
pub fn scan_dir(dir: &Path, has_events: bool, checks: &StartChecks) -> Scanned {
    hooks::at("recovery.look");
    match read(dir, has_events, checks) {
        Ok(scanned) => scanned,
        Err(e) if record::is_damage(&e) => Scanned::Damaged(e),
        Err(e) => Scanned::Unread(e),
    }
}

/// Returns true if the directory has no file with output: a program that ran may have left one.
fn has_no_output(dir: &Path) -> io::Result<bool> {
    for entry in std::fs::read_dir(dir)? {
        let name = entry?.file_name();
        if [b"log", b"idx"].iter().any(|prefix| name.as_encoded_bytes().starts_with(*prefix)) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn read(dir: &Path, has_events: bool, checks: &StartChecks) -> io::Result<Scanned> {
    if !std::fs::symlink_metadata(dir)?.is_dir() {
        return Err(record::bad("it is not a directory"));
    }
    let was_never_used = || Ok::<_, io::Error>(!has_events && has_no_output(dir)?);
    let record = match Record::open(dir) {
        // The daemon died between creating the directory and the record.
        Err(e) if e.kind() == io::ErrorKind::NotFound && was_never_used()? => {
            return Ok(Scanned::NeverStarted(None));
        }
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(record::bad("the record is missing")),
        opened => opened?,
    };
    let lock = record.try_lock()?;
    // Read after trying the lock: if we hold it, no shim writes any more.
    let start = record.start()?;
    if lock == LockOwner::Daemon && start.is_blank() {
        if was_never_used()? {
            // The daemon died between creating the record and writing it.
            return Ok(Scanned::NeverStarted(Some(record)));
        }
        return Err(record::bad("the record is empty"));
    }
    let facts = record.facts_from(&start)?;
    let head = facts.head.ok_or_else(|| record::bad("the head of the record is damaged"))?;
    let waits = lock == LockOwner::Daemon && facts.is_unlaunched && was_never_used()?;
    if waits && !head.is_pending {
        // Nothing was started, so it does not matter whether the whole spec was written.
        return Ok(Scanned::NeverStarted(Some(record)));
    }
    let spec = record.spec_from(&start, &head)?;
    if spec.id.to_string() != dir.file_name().and_then(|n| n.to_str()).unwrap_or_default() {
        return Err(record::bad("the record belongs to another process"));
    }
    let checkpoint = Checkpoint::read(&facts.checkpoint);
    let mut damage = damaged_slots(&facts, lock, checkpoint.as_ref());
    if lock == LockOwner::Daemon && facts.damaged.any() {
        // Before a slot is written again. Without the note only later daemons do not know of it.
        let _ = record.note_damage(facts.damaged.or(facts.repaired));
    }
    if let Some(stage) = &spec.stage {
        match StageDir::of(dir).end() {
            Ok(end) => end.into_iter().for_each(|end| stage.end.set(end)),
            Err(e) if sys::is_transient(&e) => return Err(e),
            Err(e) => damage.push(format!("stage/end: {e}")),
        }
    }
    if spec.sandbox.is_some() && lock == LockOwner::Daemon {
        damage.extend(denials::check(dir)?);
    }
    let state = match lock {
        LockOwner::Daemon if waits => {
            let asking = spec.pending.as_ref().is_some_and(|pending| pending.approval.is_some());
            with_size(State::pending(facts.progress.unwrap_or_default(), asking), &spec)
        }
        LockOwner::Daemon => resolve(dir, &record, &facts, &spec)?,
        LockOwner::Shim => with_size(with_counts(State::from_facts(&facts), dir, &facts), &spec),
    };
    if state.has_ended() && spec.journaled && !checkpoint.is_some_and(|checkpoint| checkpoint.exited) {
        // The exit was never published. The shim may still be waiting for the disk, or died before that.
        lost::to_disk(dir, &record);
    }
    let (mut unreadable_log, mut unverified) = (None, false);
    // A program that printed nothing has no log, and most processes have none of the other files: every look costs as much
    // as the record, and there may be 10,000 of them.
    let sums = state.progress.sums.filter(|_| has_log(&state.progress));
    if !state.is_final() {
        match sums.map(|sums| if checks.take(&state.progress) { verify_running(dir, &sums) } else { None }) {
            Some(Some(changed)) => damage.extend(changed),
            Some(None) => unverified = true,
            None => {}
        }
    } else if has_log(&state.progress) {
        let counts = &state.progress.counts;
        let sums_now = sums.filter(|_| checks.take(&state.progress));
        unverified = sums.is_some() && sums_now.is_none();
        match sums_now.map_or_else(|| check(dir, counts), |sums| check_whole(dir, counts, &sums)) {
            Ok(found) => damage.extend(found),
            Err(e) if sys::is_transient(&e) => return Err(e),
            Err(e) => unreadable_log = Some(unreadable(&e)),
        }
    }
    if state.is_final() && (spec.stdin_pipe || spec.pty.is_some()) {
        damage.extend(writes::check(dir));
    }
    let lost_checkpoint = facts.damaged.checkpoint;
    // Only a process with a name is the answer to a request that did not start it.
    let requests = match spec.name.as_ref().map_or_else(|| Ok(Requests::default()), |_| requests::read(dir)) {
        Err(e) if sys::is_transient(&e) => return Err(e),
        Err(e) => {
            damage.push(format!("requests: {e}"));
            Requests::default()
        }
        Ok(requests) => requests,
    };
    if requests.damaged > 0 {
        damage.push(format!("requests: {} request ids cannot be read", requests.damaged));
    }
    let dir = dir.to_path_buf();
    let loaded = Box::new(Loaded {
        spec,
        dir,
        state,
        started_ms: started_ms(&facts),
        checkpoint,
        lost_checkpoint,
        damage,
        unreadable: unreadable_log,
        requests,
        unverified,
    });
    if state.is_final() {
        return Ok(Scanned::Finished(loaded));
    }
    if waits {
        return Ok(Scanned::Pending { loaded, locked: record, nonce: head.nonce });
    }
    record.unlock();
    Ok(Scanned::Open { loaded, record: Arc::new(record), nonce: head.nonce })
}

/// Returns true if something was ever written to a log.
fn has_log(progress: &Progress) -> bool {
    progress.counts.end > 0 || progress.sums.is_some_and(|sums| sums.end > 0 || sums.idx_len > 0)
}

/// Compares the log of a running process with its checksums. None: it is to be compared in the background, because it is
/// too large, or after an error, which does not make a running process unknown.
fn verify_running(dir: &Path, sums: &LogSums) -> Option<Vec<String>> {
    let changed = verify(dir, sums, Writer::MayRun, MAX_START_CHECK_BYTES).ok()??;
    Some(changed.iter().map(|file| file.quarantine_and_describe(dir)).collect())
}

/// Resolves the state of a process whose lock this daemon holds: its shim is dead.
fn resolve(dir: &Path, record: &Record, facts: &Facts, spec: &Spec) -> io::Result<State> {
    let mut state = State::from_facts(facts);
    if facts.progress.is_none() {
        state.progress = lost::recount(dir, None)?;
        if record.set_progress(&state.progress).is_err() {
            tracing::warn!(dir = %dir.display(), "failed to record the counts of its output");
        }
    }
    state = with_size(state, spec);
    if matches!(state.phase, Phase::Exited { .. }) && state.closed {
        state.step(&Update::Gone);
    }
    // The shim is dead, and so is the program, unless a task has to kill it and to wait for the kernel's wait status.
    if !state.is_final() && (state.has_ended() || tree::pin(state.pid, state.ticks)?.is_none()) {
        lost::kill_orphans(Some(facts), lost::PidIdentity::Unverified);
        for update in lost::final_updates(dir, record, None, lost::may_have_orphans(facts))? {
            state.step(&update);
        }
    }
    Ok(state)
}

/// Completes a state whose counts are damaged from the log, until the living shim reports and writes them. Only reads: the
/// shim may be writing.
fn with_counts(mut state: State, dir: &Path, facts: &Facts) -> State {
    if facts.progress.is_none()
        && let Ok(counts) = Log::open_all(dir).and_then(|log| log.recount())
    {
        state.progress.counts = counts;
    }
    state
}

/// Completes a state without counts by the size of the terminal that was requested.
fn with_size(mut state: State, spec: &Spec) -> State {
    if let Some(size) = spec.pty.filter(|_| (state.progress.rows, state.progress.cols) == (0, 0)) {
        state.progress.rows = size.rows as u16;
        state.progress.cols = size.cols as u16;
    }
    state
}

/// Returns the time of the launch.
fn started_ms(facts: &Facts) -> u64 {
    let launch = facts.launch.filter(|launch| matches!(launch.stage, Stage::Launching | Stage::Running));
    launch.map_or(0, |launch| launch.at_ms)
}

/// Describes damaged slots and the consequence of each.
fn damaged_slots(facts: &Facts, lock: LockOwner, checkpoint: Option<&Checkpoint>) -> Vec<String> {
    let damaged = facts.damaged.or(facts.repaired);
    let resolved = lock == LockOwner::Daemon;
    // An exit was published that the record does not have.
    let ended_otherwise = facts.launch.is_some_and(|launch| matches!(launch.stage, Stage::Lost | Stage::Failed));
    let gone = facts.exit.is_none() && !ended_otherwise && checkpoint.is_some_and(|checkpoint| checkpoint.exited);
    // An earlier daemon found that, and wrote it down as the cause of the loss.
    let was_gone =
        !damaged.launch && facts.launch.is_some_and(|launch| LostCause::of(&launch) == Some(LostCause::RecordDamaged));
    let all = [
        (damaged.launch, "the launch slot of the record is damaged: pid and start are unknown"),
        (
            damaged.exit || (resolved && (gone || was_gone)),
            "the exit slot of the record is damaged: the end is unknown",
        ),
        (damaged.closed, "the close slot of the record is damaged"),
        // A living shim writes it again.
        (damaged.counts && resolved, "the counts of the record are damaged; they were counted again from the log"),
        (
            damaged.checkpoint,
            "the checkpoint of the record is damaged; it was restored from the journal, or else every event that is \
             due counts as published",
        ),
    ];
    all.into_iter().filter(|(is_damaged, _)| *is_damaged).map(|(_, what)| what.to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_compared_before_the_first_request_while_there_is_room_and_no_large_one_is() {
        let of = |end: u64, dropped: u64| {
            let mut progress = Progress::default();
            (progress.counts.end, progress.counts.dropped) = (end, dropped);
            progress
        };
        let checks = StartChecks::default();
        assert!(!checks.take(&of(MAX_START_CHECK_BYTES + 1, 0)));
        assert!(checks.take(&of(1 << 40, (1 << 40) - 1)), "what was dropped is not compared");
        let many = (0..100_000).filter(|_| checks.take(&of(MAX_START_CHECK_BYTES, 0))).count() as u64;
        assert_eq!(many, (ALL_START_CHECK_BYTES - OPEN_COST_BYTES - 1) / (MAX_START_CHECK_BYTES + OPEN_COST_BYTES));
        assert!(checks.take(&of(1, 0)), "there may be room for a smaller one");
    }
}
