//! Named consumers: how far each has come, on disk, and what it is still to be told.

mod expired;
mod file;
mod name;
mod next;
mod state;

pub use expired::Forgotten;
pub use name::{ConsumerName, NotAName};
pub use next::Next;
pub use state::View;

use super::recover::make_dir;
use super::segment::hold;
use crate::hooks;
use file::Kept;
use next::Seen;
use state::{Fact, Skip};
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use toold_proto::ProcId;

/// The time of last use is written at most so often: asking again and again costs no writes.
const USED_EVERY_MS: u64 = 60_000;

/// Where a new consumer begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Start {
    /// With the oldest event that is kept.
    Oldest,
    /// With the next one.
    Now,
}

/// A consumer that may go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entered {
    pub position: u64,
    pub created: bool,
    /// It was unused for too long and begins again: told once.
    pub forgotten: Option<Forgotten>,
}

#[derive(Debug)]
pub enum ConsumerError {
    /// There are as many as the config allows.
    TooMany {
        max: usize,
    },
    /// Nobody of that name, or not any more.
    Unknown,
    Io(io::Error),
}

impl fmt::Display for ConsumerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConsumerError::TooMany { max } => write!(f, "there are {max} consumers already"),
            ConsumerError::Unknown => f.write_str("no such consumer"),
            ConsumerError::Io(e) => write!(f, "keep a consumer's position: {e}"),
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
    table: Mutex<Table>,
}

#[derive(Debug)]
struct Table {
    known: HashMap<ConsumerName, Consumer>,
    forgotten: expired::List,
}

#[derive(Debug)]
struct Consumer {
    kept: Kept,
    /// The newest use, which the disk may not know yet.
    used_ms: u64,
    seen: Seen,
}

impl Consumer {
    fn new(kept: Kept) -> Consumer {
        Consumer { used_ms: kept.state.used_ms, kept, seen: Seen::default() }
    }
}

impl Consumers {
    /// Opens what is in `dir`. What was damaged is put aside, and told in the second part.
    pub fn open(dir: &Path, ttl_ms: u64, max: usize, now_ms: u64) -> io::Result<(Consumers, Vec<String>)> {
        let mut flaws = Vec::new();
        make_dir(dir, &mut flaws)?;
        let mut known = HashMap::new();
        for entry in std::fs::read_dir(dir)? {
            let path = entry?.path();
            if path.extension().is_some_and(|ext| ext == "tmp") {
                let _ = std::fs::remove_file(&path);
            } else if path.extension().is_some_and(|ext| ext == "pos")
                && let Some(kept) = Kept::load(&path, &mut flaws)
            {
                known.insert(kept.name.clone(), Consumer::new(kept));
            }
        }
        let forgotten = expired::List::load(dir, &mut flaws);
        let consumers = Consumers { dir: dir.into(), ttl_ms, max, table: Mutex::new(Table { known, forgotten }) };
        consumers.expire(now_ms);
        Ok((consumers, flaws))
    }

    /// The consumer's position. Makes the consumer if there is none.
    pub fn enter(
        &self,
        name: &ConsumerName,
        start: Start,
        oldest: u64,
        last: u64,
        now_ms: u64,
    ) -> Result<Entered, ConsumerError> {
        let mut table = hold(&self.table);
        let forgotten = table.forgotten.get(name);
        let begin = match start {
            // One that comes back was promised what it had not seen yet.
            Start::Now if forgotten.is_none() => last,
            Start::Now | Start::Oldest => oldest.saturating_sub(1),
        };
        let created = self.make(&mut table, name, begin, now_ms)?;
        self.note_used(&mut table, name, now_ms)?;
        if forgotten.is_some() {
            // After the consumer is made: a crash between the two tells it again.
            table.forgotten.remove(&self.dir, name)?;
        }
        let position = table.known.get(name).map_or(begin, |consumer| consumer.kept.state.position);
        Ok(Entered { position, created, forgotten })
    }

    /// Acknowledges the events up to `seq`, of which `last` is the newest. Gives the position, which never goes back.
    pub fn ack(&self, name: &ConsumerName, seq: u64, last: u64, now_ms: u64) -> Result<u64, ConsumerError> {
        let mut table = hold(&self.table);
        let consumer = table.known.get_mut(name).ok_or(ConsumerError::Unknown)?;
        let seq = seq.min(last);
        if seq > consumer.kept.state.position {
            hooks::at("ack.write");
            consumer.kept.append(Fact::Ack { seq, at_ms: now_ms })?;
            hooks::at("ack.written");
            consumer.used_ms = consumer.used_ms.max(now_ms);
            consumer.kept.state.tidy(0);
            consumer.kept.compact();
        }
        let position = consumer.kept.state.position;
        self.note_used(&mut table, name, now_ms)?;
        Ok(position)
    }

    /// Notes that the consumer was told the exit of `id` by a call, when `noted` was the newest event. `upto`: the
    /// last event about that exit, 0 when it is not journaled yet. Makes the consumer if there is none.
    #[expect(clippy::too_many_arguments, reason = "four of them are numbers of the journal's that it does not know")]
    pub fn skip_exit(
        &self,
        name: &ConsumerName,
        id: ProcId,
        noted: u64,
        upto: u64,
        oldest: u64,
        last: u64,
        now_ms: u64,
    ) -> Result<(), ConsumerError> {
        let mut table = hold(&self.table);
        self.make(&mut table, name, oldest.saturating_sub(1), now_ms)?;
        let consumer = table.known.get_mut(name).ok_or(ConsumerError::Unknown)?;
        let skip = Skip { noted: noted.min(last), upto: upto.min(last) };
        let known = consumer.kept.state.skips.get(&id.bits());
        if known != Some(&skip) && consumer.kept.state.position < skip.bound() {
            consumer.kept.append(Fact::Skip { process: id.bits(), skip })?;
            consumer.kept.state.tidy(oldest);
            consumer.kept.compact();
        }
        self.note_used(&mut table, name, now_ms)
    }

    /// What decides whether an event is for the consumer.
    pub fn view(&self, name: &ConsumerName) -> Option<View> {
        hold(&self.table).known.get(name).map(|consumer| consumer.kept.state.view())
    }

    /// Notes that somebody of that name is there.
    pub fn used(&self, name: &ConsumerName, now_ms: u64) -> Result<(), ConsumerError> {
        self.note_used(&mut hold(&self.table), name, now_ms)
    }

    /// Forgets the consumers that nobody used for too long. Gives their names.
    pub fn expire(&self, now_ms: u64) -> Vec<ConsumerName> {
        self.forget_unused(&mut hold(&self.table), now_ms)
    }

    /// All of them: name, position, last use.
    pub fn list(&self) -> Vec<(ConsumerName, u64, u64)> {
        let table = hold(&self.table);
        let all = table.known.iter().map(|(name, c)| (name.clone(), c.kept.state.position, c.used_ms));
        let mut all: Vec<_> = all.collect();
        all.sort();
        all
    }

    /// The highest number of an event that any of them knows of.
    pub fn highest(&self) -> u64 {
        let table = hold(&self.table);
        let known = table.known.values().map(|consumer| consumer.kept.state.highest());
        known.max().unwrap_or(0).max(table.forgotten.highest())
    }

    /// Begins to write to the disk what changed lately, without waiting.
    pub fn begin_sync(&self) -> io::Result<()> {
        self.changed(|kept| kept.unbegun.take()).iter().try_for_each(|path| file::begin_sync(path))
    }

    /// Waits until everything is on the disk.
    pub fn sync(&self) -> io::Result<()> {
        let changed = self.changed(|kept| kept.unsynced.take());
        changed.iter().try_for_each(|path| file::sync(path))?;
        if changed.is_empty() { Ok(()) } else { std::fs::File::open(&self.dir)?.sync_all() }
    }

    /// The files that are marked, whose mark is taken. The disk is waited for without the lock.
    fn changed(&self, take: impl Fn(&mut Kept) -> Option<PathBuf>) -> Vec<PathBuf> {
        hold(&self.table).known.values_mut().filter_map(|consumer| take(&mut consumer.kept)).collect()
    }

    /// How many exits are remembered for a consumer.
    #[cfg(test)]
    pub(super) fn skips(&self, name: &ConsumerName) -> usize {
        hold(&self.table).known.get(name).map_or(0, |consumer| consumer.kept.state.skips.len())
    }

    /// Makes the consumer, if there is none. Says whether it did.
    fn make(&self, table: &mut Table, name: &ConsumerName, position: u64, now_ms: u64) -> Result<bool, ConsumerError> {
        if table.known.contains_key(name) {
            return Ok(false);
        }
        if table.known.len() >= self.max {
            self.forget_unused(table, now_ms);
        }
        if table.known.len() >= self.max {
            return Err(ConsumerError::TooMany { max: self.max });
        }
        let kept = Kept::create(&self.dir, name, position, now_ms)?;
        table.known.insert(name.clone(), Consumer::new(kept));
        Ok(true)
    }

    fn note_used(&self, table: &mut Table, name: &ConsumerName, now_ms: u64) -> Result<(), ConsumerError> {
        let consumer = table.known.get_mut(name).ok_or(ConsumerError::Unknown)?;
        consumer.used_ms = consumer.used_ms.max(now_ms);
        let every = USED_EVERY_MS.min(self.ttl_ms / 10);
        if now_ms.saturating_sub(consumer.kept.state.used_ms) > every {
            // A full disk must not keep anybody from reading: the next use tries again.
            if let Err(e) = consumer.kept.append(Fact::Used { at_ms: now_ms }) {
                tracing::debug!(%e, "note that a consumer was used");
            }
            consumer.kept.compact();
        }
        Ok(())
    }

    fn forget_unused(&self, table: &mut Table, now_ms: u64) -> Vec<ConsumerName> {
        let unused = |consumer: &Consumer| consumer.used_ms.saturating_add(self.ttl_ms) < now_ms;
        let gone = table.known.iter().filter(|(_, consumer)| unused(consumer));
        let note = |consumer: &Consumer| Forgotten { position: consumer.kept.state.position, at_ms: now_ms };
        let gone: Vec<_> = gone.map(|(name, consumer)| (name.clone(), note(consumer))).collect();
        if gone.is_empty() {
            return Vec::new();
        }
        let names: Vec<ConsumerName> = gone.iter().map(|(name, _)| name.clone()).collect();
        // First the note, then the end: a crash between the two ends it at the next start.
        if let Err(e) = table.forgotten.add(&self.dir, gone) {
            tracing::warn!(%e, "note the consumers that are forgotten");
            return Vec::new();
        }
        for consumer in names.iter().filter_map(|name| table.known.remove(name)) {
            consumer.kept.remove();
        }
        names
    }
}
