//! Named consumers: the position of each on disk, and its next events.

mod delivery;
mod expired;
mod file;
pub mod fuzz;
mod name;
mod names;
mod next;
mod state;
mod wait;

pub use delivery::Delivery;
pub use expired::Expired;
pub use name::{ConsumerName, InvalidConsumerName};
pub use names::FILE_NAME as NAMES_FILE_NAME;
pub use next::NextEvents;
pub use state::{ConsumerView, ExitMark};
pub use wait::NextQuery;

use super::journal::SeqBounds;
use super::recover::create_dir;
use super::segment::lock_ignoring_poison;
use crate::retention::counted_from;
use file::ConsumerFile;
use names::NameList;
use next::ScanCache;
use state::Fact;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use tokio::sync::Notify;
use toold_proto::ProcId;
use toold_proto::params::ConsumerStart;
use toold_shim::hooks;

/// The minimum interval between writes of the time of last use: frequent calls cost no writes.
const TOUCH_INTERVAL_MS: u64 = 60_000;

/// A registered consumer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    pub position: u64,
    pub created: bool,
    /// It had expired and starts again: reported until `forget_expiry`.
    pub expired: Option<Expired>,
    /// The time at which damage to its file was found: reported until it acknowledges.
    pub damaged_ms: Option<u64>,
}

#[derive(Debug)]
pub enum ConsumerError {
    /// The configured maximum is reached.
    TooMany {
        max: usize,
    },
    /// There is no such consumer, or it expired.
    Unknown,
    Io(io::Error),
}

impl fmt::Display for ConsumerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConsumerError::TooMany { max } => write!(f, "there are {max} consumers already"),
            ConsumerError::Unknown => f.write_str("no such consumer"),
            ConsumerError::Io(e) => write!(f, "store a consumer's position: {e}"),
        }
    }
}

impl std::error::Error for ConsumerError {}

impl From<io::Error> for ConsumerError {
    fn from(e: io::Error) -> ConsumerError {
        ConsumerError::Io(e)
    }
}

#[derive(Debug)]
pub struct Consumers {
    dir: PathBuf,
    ttl_ms: u64,
    max: usize,
    /// Held while the disk is written.
    table: Mutex<Table>,
    /// Position and time of last use of each consumer. Never held while the disk is used.
    listed: Mutex<BTreeMap<ConsumerName, (u64, u64)>>,
    /// The answers with an exit for a consumer that are being written.
    deliveries: Mutex<HashMap<ConsumerName, usize>>,
    /// Notified when the delivery of an answer ends.
    settled: Notify,
}

#[derive(Debug)]
struct Table {
    active: HashMap<ConsumerName, Consumer>,
    expired: expired::ExpiredList,
    /// Consumers whose files are lost, until the position at which they start again is known.
    lost: Vec<ConsumerName>,
}

#[derive(Debug)]
struct Consumer {
    file: ConsumerFile,
    /// The time of last use, which may not be on disk yet.
    used_ms: u64,
    scan_cache: ScanCache,
}

impl Consumer {
    fn new(file: ConsumerFile) -> Consumer {
        Consumer { used_ms: file.state.used_ms, file, scan_cache: ScanCache::default() }
    }
}

impl Consumers {
    /// Opens the consumers in `dir`; all times are those of retention. Quarantines damaged files, and returns descriptions of them.
    pub fn open(dir: &Path, ttl_ms: u64, max: usize, now_ms: u64) -> io::Result<(Consumers, Vec<String>)> {
        let mut damage = Vec::new();
        create_dir(dir, &mut damage)?;
        let mut active = HashMap::new();
        let names = NameList::load(dir, &mut damage)?;
        let listed: HashMap<String, &ConsumerName> = names.active.iter().map(|name| (name.file_name(), name)).collect();
        for entry in std::fs::read_dir(dir)? {
            let path = entry?.path();
            let file_name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if path.extension().is_some_and(|ext| ext == "tmp") {
                let _ = std::fs::remove_file(&path);
            } else if path.extension().is_some_and(|ext| ext == "pos")
                && let Some(file) = ConsumerFile::load(&path, listed.get(file_name).copied(), now_ms, &mut damage)?
            {
                let mut consumer = Consumer::new(file);
                let unused = now_ms.saturating_sub(consumer.used_ms);
                consumer.used_ms = counted_from(unused, now_ms, ttl_ms);
                active.insert(consumer.file.name.clone(), consumer);
            }
        }
        let gone: Vec<_> = names.expired.iter().filter(|(name, _)| !active.contains_key(name)).cloned().collect();
        let expired = expired::ExpiredList::load(dir, &gone, &mut damage)?;
        let is_lost = |name: &&ConsumerName| !active.contains_key(*name) && expired.get(name).is_none();
        let lost: Vec<ConsumerName> = names.active.iter().filter(is_lost).cloned().collect();
        for name in &lost {
            damage.push(format!("the position of consumer {name} is lost; it receives all stored events again"));
        }
        let consumers = Consumers {
            dir: dir.into(),
            ttl_ms,
            max,
            table: Mutex::new(Table { active, expired, lost }),
            listed: Mutex::default(),
            deliveries: Mutex::default(),
            settled: Notify::new(),
        };
        lock_ignoring_poison(&consumers.table)
            .active
            .iter()
            .for_each(|(name, consumer)| consumers.show(name, consumer));
        consumers.expire(now_ms);
        consumers.store_names(&lock_ignoring_poison(&consumers.table));
        Ok((consumers, damage))
    }

    /// Creates the consumers again whose files are lost. `oldest` is the oldest event that is kept: they receive all of them.
    pub fn recreate_lost(&self, oldest: u64, now_ms: u64) -> io::Result<()> {
        let mut table = lock_ignoring_poison(&self.table);
        for name in std::mem::take(&mut table.lost) {
            let position = oldest.saturating_sub(1);
            let file = ConsumerFile::create(&self.dir, &name, position, now_ms, Some(now_ms))?;
            let consumer = Consumer::new(file);
            self.show(&name, &consumer);
            table.active.insert(name, consumer);
        }
        Ok(())
    }

    /// Writes the list of all consumers. A failure is repaired by the next change or start.
    fn store_names(&self, table: &Table) {
        let active = table.active.keys().chain(&table.lost).cloned().collect();
        let list = NameList { active, expired: table.expired.entries().to_vec() };
        if let Err(e) = list.store(&self.dir) {
            tracing::warn!(%e, "failed to write the list of consumers");
        }
    }

    /// Returns the consumer's position. Creates the consumer if there is none.
    pub fn register(
        &self,
        name: &ConsumerName,
        start: ConsumerStart,
        bounds: SeqBounds,
        now_ms: u64,
    ) -> Result<Registration, ConsumerError> {
        let mut table = lock_ignoring_poison(&self.table);
        let expired = table.expired.get(name);
        let begin = match start {
            // A consumer that returns was promised the events that it has not seen.
            ConsumerStart::Now if expired.is_none() => bounds.last,
            ConsumerStart::Now | ConsumerStart::Oldest => bounds.oldest.saturating_sub(1),
        };
        let created = self.create_if_absent(&mut table, name, begin, now_ms)?;
        self.touch_locked(&mut table, name, now_ms)?;
        let state = table.active.get(name).map(|consumer| &consumer.file.state);
        let position = state.map_or(begin, |state| state.position);
        Ok(Registration { position, created, expired, damaged_ms: state.and_then(|state| state.damaged_ms) })
    }

    /// Records that the consumer was informed of its expiry. A failure only informs it again.
    pub fn forget_expiry(&self, name: &ConsumerName) {
        let mut table = lock_ignoring_poison(&self.table);
        let removed = table.expired.remove(&self.dir, name);
        self.store_names(&table);
        if let Err(e) = removed {
            tracing::warn!(%e, %name, "failed to record that a consumer knows of its expiry");
        }
    }

    /// Acknowledges the events up to `seq`; `last` is the newest event. Returns the position, which never decreases.
    pub fn ack(&self, name: &ConsumerName, seq: u64, last: u64, now_ms: u64) -> Result<u64, ConsumerError> {
        let mut table = lock_ignoring_poison(&self.table);
        let consumer = table.active.get_mut(name).ok_or(ConsumerError::Unknown)?;
        let seq = seq.min(last);
        if seq > consumer.file.state.position {
            hooks::at("ack.write");
            consumer.file.append(Fact::Ack { seq, at_ms: now_ms })?;
            hooks::at("ack.written");
            consumer.used_ms = consumer.used_ms.max(now_ms);
            consumer.file.state.tidy(0);
            consumer.file.compact();
        }
        if let Some(at_ms) = consumer.file.state.damaged_ms {
            consumer.file.append(Fact::Damaged { at_ms, reported: true })?;
        }
        let position = consumer.file.state.position;
        self.touch_locked(&mut table, name, now_ms)?;
        Ok(position)
    }

    /// Records that a call returned the exit of `id` to the consumer, so that its events are not delivered again. Creates
    /// the consumer if there is none.
    pub fn mark_exit_seen(
        &self,
        name: &ConsumerName,
        id: ProcId,
        mark: ExitMark,
        bounds: SeqBounds,
        now_ms: u64,
    ) -> Result<(), ConsumerError> {
        let mut table = lock_ignoring_poison(&self.table);
        self.create_if_absent(&mut table, name, bounds.oldest.saturating_sub(1), now_ms)?;
        let consumer = table.active.get_mut(name).ok_or(ConsumerError::Unknown)?;
        let mark = ExitMark { newest_seq: mark.newest_seq.min(bounds.last), exit_seq: mark.exit_seq.min(bounds.last) };
        let known = consumer.file.state.exit_marks.get(&id.bits());
        if known != Some(&mark) && consumer.file.state.position < mark.max_seq() {
            hooks::at("exit_seen.write");
            consumer.file.append(Fact::ExitSeen { process: id.bits(), mark })?;
            hooks::at("exit_seen.written");
            consumer.file.state.tidy(bounds.oldest);
            consumer.file.compact();
        }
        self.touch_locked(&mut table, name, now_ms)
    }

    /// Returns a snapshot that decides which events the consumer receives.
    pub fn view(&self, name: &ConsumerName) -> Option<ConsumerView> {
        lock_ignoring_poison(&self.table).active.get(name).map(|consumer| consumer.file.state.view())
    }

    /// Records that the consumer is in use.
    pub fn touch(&self, name: &ConsumerName, now_ms: u64) -> Result<(), ConsumerError> {
        self.touch_locked(&mut lock_ignoring_poison(&self.table), name, now_ms)
    }

    /// Expires the consumers that were unused for too long. Returns their names.
    pub fn expire(&self, now_ms: u64) -> Vec<ConsumerName> {
        self.expire_locked(&mut lock_ignoring_poison(&self.table), now_ms)
    }

    /// Returns name, position and time of last use of all consumers. Never waits for the disk.
    pub fn list(&self) -> Vec<(ConsumerName, u64, u64)> {
        let listed = lock_ignoring_poison(&self.listed);
        listed.iter().map(|(name, (position, used_ms))| (name.clone(), *position, *used_ms)).collect()
    }

    /// Lists a consumer as it is now.
    fn show(&self, name: &ConsumerName, consumer: &Consumer) {
        let facts = (consumer.file.state.position, consumer.used_ms);
        let mut listed = lock_ignoring_poison(&self.listed);
        match listed.get_mut(name) {
            Some(known) => *known = facts,
            None => drop(listed.insert(name.clone(), facts)),
        }
    }

    /// Returns the highest event number that any consumer knows.
    pub fn highest(&self) -> u64 {
        let table = lock_ignoring_poison(&self.table);
        let known = table.active.values().map(|consumer| consumer.file.state.highest_seq());
        known.max().unwrap_or(0).max(table.expired.max_seq())
    }

    /// Starts the writeback of changed files, without waiting.
    pub fn start_writeback(&self) -> io::Result<()> {
        self.changed(|file| file.needs_writeback.take()).iter().try_for_each(|path| file::start_writeback(path))
    }

    /// Waits until all positions are durable.
    pub fn sync(&self) -> io::Result<()> {
        let changed = self.changed(|file| file.needs_sync.take());
        changed.iter().try_for_each(|path| file::sync(path))?;
        if changed.is_empty() { Ok(()) } else { std::fs::File::open(&self.dir)?.sync_all() }
    }

    /// Takes the marks of changed files. The caller waits for the disk without the lock.
    fn changed(&self, take: impl Fn(&mut ConsumerFile) -> Option<PathBuf>) -> Vec<PathBuf> {
        lock_ignoring_poison(&self.table).active.values_mut().filter_map(|consumer| take(&mut consumer.file)).collect()
    }

    /// Returns the number of exit marks of a consumer.
    #[cfg(test)]
    pub(super) fn exit_marks(&self, name: &ConsumerName) -> usize {
        lock_ignoring_poison(&self.table).active.get(name).map_or(0, |consumer| consumer.file.state.exit_marks.len())
    }

    /// Creates the consumer if there is none. Returns true if it did.
    fn create_if_absent(
        &self,
        table: &mut Table,
        name: &ConsumerName,
        position: u64,
        now_ms: u64,
    ) -> Result<bool, ConsumerError> {
        if table.active.contains_key(name) {
            return Ok(false);
        }
        if table.active.len() >= self.max {
            self.expire_locked(table, now_ms);
        }
        if table.active.len() >= self.max {
            return Err(ConsumerError::TooMany { max: self.max });
        }
        let file = ConsumerFile::create(&self.dir, name, position, now_ms, None)?;
        table.active.insert(name.clone(), Consumer::new(file));
        // After its file: a consumer that is listed and has no file is lost.
        hooks::at("consumer.created");
        self.store_names(table);
        hooks::at("consumer.listed");
        Ok(true)
    }

    fn touch_locked(&self, table: &mut Table, name: &ConsumerName, now_ms: u64) -> Result<(), ConsumerError> {
        let consumer = table.active.get_mut(name).ok_or(ConsumerError::Unknown)?;
        consumer.used_ms = consumer.used_ms.max(now_ms);
        self.show(name, consumer);
        let every = TOUCH_INTERVAL_MS.min(self.ttl_ms / 10);
        if now_ms.saturating_sub(consumer.file.state.used_ms) > every {
            // A full disk must not prevent reading: the next use tries again.
            if let Err(e) = consumer.file.append(Fact::Used { at_ms: now_ms }) {
                tracing::debug!(%e, "failed to record the use of a consumer");
            }
            consumer.file.compact();
        }
        Ok(())
    }

    fn expire_locked(&self, table: &mut Table, now_ms: u64) -> Vec<ConsumerName> {
        let unused = |consumer: &Consumer| consumer.used_ms.saturating_add(self.ttl_ms) < now_ms;
        let gone = table.active.iter().filter(|(_, consumer)| unused(consumer));
        let note = |consumer: &Consumer| Expired { position: consumer.file.state.position, at_ms: now_ms };
        let gone: Vec<_> = gone.map(|(name, consumer)| (name.clone(), note(consumer))).collect();
        if gone.is_empty() {
            return Vec::new();
        }
        let names: Vec<ConsumerName> = gone.iter().map(|(name, _)| name.clone()).collect();
        // List it before removing it: after a crash between the two it expires at the next start.
        if let Err(e) = table.expired.add(&self.dir, gone) {
            tracing::warn!(%e, "failed to record expired consumers");
            return Vec::new();
        }
        let gone: Vec<Consumer> = names.iter().filter_map(|name| table.active.remove(name)).collect();
        lock_ignoring_poison(&self.listed).retain(|name, _| table.active.contains_key(name));
        // A consumer leaves the list before its file goes.
        self.store_names(table);
        gone.iter().for_each(|consumer| consumer.file.remove());
        names
    }
}
