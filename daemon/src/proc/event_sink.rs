//! What processes speak through: the journal, and the breaker over all watches.

use crate::config::Config;
use crate::events::{Draft, Journal, Now};
use crate::shim::run::{mono_ms, wall_ms};
use crate::store::slots::sum;
use crate::watch::{Breaker, Gate, GlobalRules, Rules};
use serde_json::json;
use std::fs::File;
use std::io;
use std::ops::{Deref, DerefMut};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use toold_proto::event::EventType;
use toold_proto::results;

/// Between two tries to tell what the disk refused.
pub const RETRY_DELAY: Duration = Duration::from_secs(1);

pub struct EventSink {
    pub journal: Journal,
    pub rules: Rules,
    breaker_rules: GlobalRules,
    breaker: Mutex<Kept>,
    file: File,
    boot: [u8; 16],
    /// The breaker opened: somebody has to close it in time.
    opened: Notify,
    /// Memory to read output into, for who is looking at some now.
    buffers: Mutex<Vec<Vec<u8>>>,
}

/// How much output is read in one go. A fresh piece of memory of this size would cost as much as the reading.
const READ: usize = 256 * 1024;
/// Buffers that are kept: as many as there are threads to use them.
const BUFFERS: usize = 2;

/// A buffer on loan.
pub struct Buffer<'a> {
    sink: &'a EventSink,
    bytes: Vec<u8>,
}

impl Deref for Buffer<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl DerefMut for Buffer<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }
}

impl Drop for Buffer<'_> {
    fn drop(&mut self) {
        if let Ok(mut buffers) = self.sink.buffers.lock()
            && buffers.len() < BUFFERS
        {
            buffers.push(std::mem::take(&mut self.bytes));
        }
    }
}

/// The breaker, and the last event that it made.
#[derive(Default)]
struct Kept {
    breaker: Breaker,
    seq: u64,
}

/// Now, on both clocks.
pub fn now() -> Now {
    Now { wall_ms: wall_ms(), mono_ms: mono_ms() }
}

impl EventSink {
    /// `dir` is the journal's. What an earlier daemon's breaker did in this boot goes on; `last` is the breaker's last
    /// event in the journal with its state, which may be ahead of the file.
    pub fn new(
        journal: Journal,
        dir: &Path,
        config: &Config,
        boot: [u8; 16],
        last: Option<(u64, Vec<u8>)>,
    ) -> io::Result<(EventSink, Option<String>)> {
        let mut open = File::options();
        let file = open.read(true).write(true).create(true).truncate(false).mode(0o600).open(dir.join("breaker"))?;
        let watch = &config.watch;
        let whole = read(&file);
        let flaw =
            whole.is_none().then(|| format!("{} was damaged; the breaker begins anew", dir.join("breaker").display()));
        // The times of another boot mean nothing.
        let mut kept =
            whole.flatten().filter(|(made_in, _)| *made_in == boot).map(|(_, kept)| kept).unwrap_or_default();
        if let Some((seq, state)) = last.filter(|(seq, _)| *seq > kept.seq)
            && let Some((made_in, state)) = state.split_first_chunk::<16>()
            && *made_in == boot
            && let Some(breaker) = Breaker::from_bytes(state)
        {
            kept = Kept { breaker, seq };
        }
        let sink = EventSink {
            journal,
            rules: Rules { min_interval_ms: watch.min_interval_ms, strike_limit: watch.strike_limit },
            breaker_rules: GlobalRules {
                global_max: watch.global_max,
                global_window_ms: watch.global_window_ms,
                global_cooldown_ms: watch.global_cooldown_ms,
            },
            breaker: Mutex::new(kept),
            file,
            boot,
            opened: Notify::new(),
            buffers: Mutex::new(Vec::new()),
        };
        Ok((sink, flaw))
    }

    /// Memory to read output into.
    pub fn buffer(&self) -> Buffer<'_> {
        let kept = self.buffers.lock().ok().and_then(|mut buffers| buffers.pop());
        Buffer { sink: self, bytes: kept.unwrap_or_else(|| vec![0; READ]) }
    }

    /// Held for a decision, never across an await.
    fn breaker(&self) -> MutexGuard<'_, Kept> {
        self.breaker.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn keep(&self, breaker: &Breaker, seq: u64) {
        let state = breaker.to_bytes();
        let mut bytes = self.boot.to_vec();
        bytes.extend(seq.to_le_bytes());
        bytes.extend((state.len() as u32).to_le_bytes());
        bytes.extend(state);
        let check = sum(&bytes);
        bytes.extend(check.to_le_bytes());
        if let Err(e) = self.file.write_all_at(&bytes, 0) {
            tracing::warn!(%e, "the state of the watch breaker could not be stored");
        }
    }

    /// Whether a match may be told, as far as all processes together are concerned. If not, `refused` is called before
    /// anything else is known of it: a crash in between counts a match once too few, and never silences twice.
    pub fn admit(&self, now_ms: u64, lines: u64, refused: impl FnOnce()) -> bool {
        let mut kept = self.breaker();
        self.release(&mut kept, now_ms);
        let gate = kept.breaker.admit(&self.breaker_rules, now_ms, lines);
        match gate {
            // It was released a moment ago, under the same lock: there is nothing left to release.
            Gate::Pass | Gate::ReleaseFirst => {}
            Gate::Refuse => refused(),
            Gate::Trip => {
                refused();
                self.tripped(&mut kept);
                self.opened.notify_one();
                return false;
            }
        }
        self.keep(&kept.breaker, kept.seq);
        gate == Gate::Pass
    }

    fn tripped(&self, kept: &mut Kept) {
        let rules = &self.breaker_rules;
        let facts = json!({
            "limit": rules.global_max,
            "window_ms": rules.global_window_ms,
            "cooldown_ms": rules.global_cooldown_ms,
            "message": format!(
                "more than {} matches in {} ms over all processes: none is told for {} ms",
                rules.global_max, rules.global_window_ms, rules.global_cooldown_ms
            ),
        });
        self.say(EventType::WatchOverflowTripped, facts, kept);
    }

    /// Closes the breaker if it is time, and tells how much it dropped.
    fn release(&self, kept: &mut Kept, now_ms: u64) {
        let Some(dropped) = kept.breaker.release(&self.breaker_rules, now_ms) else { return };
        let message = format!("matches are told again; {dropped} were not");
        self.say(EventType::WatchOverflowReleased, json!({ "suppressed": dropped, "message": message }), kept);
    }

    /// An event of the breaker's own, and its state, together.
    fn say(&self, kind: EventType, facts: serde_json::Value, kept: &mut Kept) {
        // Nothing is in the window at either of these moments, so the state is short.
        let state = [&self.boot[..], &kept.breaker.to_bytes()].concat();
        let Some(facts) = facts.as_object() else { return };
        let draft = Draft { kind, id: None, session_key: None, task_id: None, facts, state: &state, cancelled: false };
        match self.journal.publish(&draft, now(), |seq| self.keep(&kept.breaker, seq)) {
            Ok(seq) => kept.seq = seq,
            Err(e) => tracing::error!(%e, kind = kind.name(), "an event could not be stored"),
        }
    }

    /// Closes the breaker by the clock. Never returns.
    pub async fn run_release_timer(&self) {
        loop {
            let due = self.breaker().breaker.release_at();
            let Some(due) = due else {
                self.opened.notified().await;
                continue;
            };
            tokio::time::sleep(Duration::from_millis(due.saturating_sub(mono_ms()))).await;
            self.release(&mut self.breaker(), mono_ms());
        }
    }

    /// The breaker, for people.
    pub fn breaker_view(&self) -> results::Breaker {
        let (kept, now) = (self.breaker(), mono_ms());
        let breaker = &kept.breaker;
        let release = breaker.release_at();
        results::Breaker {
            state: if release.is_some() { results::BreakerState::Silent } else { results::BreakerState::Passing },
            recent: breaker.recent(&self.breaker_rules, now),
            dropped: breaker.dropped(),
            release_ms: release.map(|at| at.saturating_sub(now)),
        }
    }
}

/// The breaker of an earlier daemon with the boot it was made in. None: damaged. Some(None): there is none.
fn read(file: &File) -> Option<Option<([u8; 16], Kept)>> {
    let mut bytes = vec![0u8; 8192];
    let n = file.read_at(&mut bytes, 0).ok()?;
    if n == 0 {
        return Some(None);
    }
    let bytes = bytes.get(..n)?;
    let length = u32::from_le_bytes(bytes.get(24..28)?.try_into().ok()?) as usize;
    let (facts, check) = bytes.get(..length.checked_add(36)?)?.split_at_checked(28 + length)?;
    if sum(facts).to_le_bytes() != check {
        return None;
    }
    let seq = u64::from_le_bytes(facts[16..24].try_into().ok()?);
    let made_in = facts[..16].try_into().ok()?;
    Some(Some((made_in, Kept { breaker: Breaker::from_bytes(&facts[28..])?, seq })))
}
