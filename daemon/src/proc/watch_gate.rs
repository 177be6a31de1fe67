//! Decides whether watch matches may be published: the limiter's configuration, and the breaker over all processes.

use super::event_sink::now;
use crate::clock::mono_ms;
use crate::config;
use crate::events::{Journal, NewEvent, can_pass, open_regular, quarantine_path};
use crate::watch::{Admission, Breaker, BreakerConfig, LimiterConfig};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::Notify;
use toold_format::fnv1a;
use toold_proto::event::{EventFields, WatchOverflowReleased, WatchOverflowTripped};
use toold_proto::results;

/// The name of the breaker's file in the journal's directory.
const BREAKER_FILE: &str = "breaker";

/// Limits watch matches. Its own events go into the journal together with the breaker's state.
pub struct WatchGate {
    pub limiter: LimiterConfig,
    breaker_rules: BreakerConfig,
    breaker: Mutex<BreakerState>,
    /// The breaker as `daemon.info` shows it, which never waits for the disk.
    shown: Mutex<Breaker>,
    journal: Arc<Journal>,
    file: File,
    boot: [u8; 16],
    /// Notified when the breaker trips, so that the timer closes it later.
    tripped: Notify,
}

/// The breaker and the number of its last event.
#[derive(Default)]
struct BreakerState {
    breaker: Breaker,
    seq: u64,
}

impl WatchGate {
    /// Opens the breaker's file in `dir`, the journal's directory. The state that an earlier daemon left in this boot
    /// stays in force. `last` is the breaker's last event in the journal with its state: it may be newer than the file.
    /// The second value reports damage.
    pub fn open(
        journal: Arc<Journal>,
        dir: &Path,
        config: &config::Watch,
        boot: [u8; 16],
        last: Option<(u64, Vec<u8>)>,
    ) -> io::Result<(WatchGate, Option<String>)> {
        let path = dir.join(BREAKER_FILE);
        let (file, stored, damage) = open_file(&path)?;
        let is_new = stored.is_none();
        // Monotonic times of another boot are meaningless.
        let mut state =
            stored.filter(|(saved_boot, _)| *saved_boot == boot).map(|(_, state)| state).unwrap_or_default();
        if let Some((seq, bytes)) = last.filter(|(seq, _)| *seq > state.seq)
            && let Some((saved_boot, bytes)) = bytes.split_first_chunk::<16>()
            && *saved_boot == boot
            && let Some(breaker) = Breaker::from_bytes(bytes)
        {
            state = BreakerState { breaker, seq };
        }
        let gate = WatchGate {
            limiter: LimiterConfig { min_interval_ms: config.min_interval_ms, strike_limit: config.strike_limit },
            breaker_rules: BreakerConfig {
                global_max: config.global_max,
                global_window_ms: config.global_window_ms,
                global_cooldown_ms: config.global_cooldown_ms,
            },
            shown: Mutex::new(state.breaker.clone()),
            breaker: Mutex::new(state),
            journal,
            file,
            boot,
            tripped: Notify::new(),
        };
        if is_new {
            // The file is never empty: one that is was cut.
            let state = gate.lock();
            gate.store(&state.breaker, state.seq);
        }
        Ok((gate, damage))
    }

    /// Returns the number of the breaker's last event.
    pub fn last_seq(&self) -> u64 {
        self.lock().seq
    }

    /// Locks the breaker for one decision, never across an await.
    fn lock(&self) -> MutexGuard<'_, BreakerState> {
        self.breaker.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn show(&self, breaker: &Breaker) {
        self.shown.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone_from(breaker);
    }

    fn store(&self, breaker: &Breaker, seq: u64) {
        let state = breaker.to_bytes();
        let mut bytes = self.boot.to_vec();
        bytes.extend(seq.to_le_bytes());
        bytes.extend((state.len() as u32).to_le_bytes());
        bytes.extend(state);
        let check = fnv1a(&bytes);
        bytes.extend(check.to_le_bytes());
        if let Err(e) = self.file.write_all_at(&bytes, 0) {
            tracing::warn!(%e, "failed to store the state of the watch breaker");
        }
    }

    /// Returns true if the breaker lets a match of `lines` lines pass. If not, calls `refused` before the breaker's own
    /// state is stored: a crash in between counts one match too few, and never suppresses a match twice.
    pub fn admit(&self, now_ms: u64, lines: u64, refused: impl FnOnce()) -> bool {
        let mut state = self.lock();
        self.release(&mut state, now_ms);
        let gate = state.breaker.admit(&self.breaker_rules, now_ms, lines);
        match gate {
            // The line above released it under the same lock, so nothing is left to release.
            Admission::Pass | Admission::ReleaseFirst => {}
            Admission::Refuse => refused(),
            Admission::Trip => {
                refused();
                self.publish_tripped(&mut state);
                self.show(&state.breaker);
                self.tripped.notify_one();
                return false;
            }
        }
        self.show(&state.breaker);
        self.store(&state.breaker, state.seq);
        gate == Admission::Pass
    }

    fn publish_tripped(&self, state: &mut BreakerState) {
        let rules = &self.breaker_rules;
        let tripped = WatchOverflowTripped {
            limit: rules.global_max,
            window_ms: rules.global_window_ms,
            cooldown_ms: rules.global_cooldown_ms,
            message: format!(
                "more than {} matches in {} ms over all processes: watch matches are suppressed for {} ms",
                rules.global_max, rules.global_window_ms, rules.global_cooldown_ms
            ),
        };
        self.publish(&tripped, state);
    }

    /// Closes the breaker when its cooldown is over, and publishes how many matches it suppressed.
    fn release(&self, state: &mut BreakerState, now_ms: u64) {
        let Some(dropped) = state.breaker.release(&self.breaker_rules, now_ms) else { return };
        let message = format!("watch matches resumed; {dropped} were suppressed");
        self.publish(&WatchOverflowReleased { suppressed: dropped, message }, state);
        self.show(&state.breaker);
    }

    /// Publishes an event of the breaker and its state in one journal record.
    fn publish(&self, event: &dyn EventFields, state: &mut BreakerState) {
        // The window is empty at both moments, so the state is short.
        let bytes = [&self.boot[..], &state.breaker.to_bytes()].concat();
        let draft =
            NewEvent { fields: event, id: None, session_key: None, task_id: None, state: &bytes, cancelled: false };
        match self.journal.publish(&draft, now(), |seq| self.store(&state.breaker, seq)) {
            Ok(seq) => state.seq = seq,
            Err(e) => {
                tracing::error!(%e, kind = event.event_type().name(), "failed to store an event of the watch breaker")
            }
        }
    }

    /// Publishes an event that belongs to no process. Such events share a place in the journal with those of the breaker, whose state
    /// is in the last of them.
    pub fn publish_of_daemon(&self, event: &dyn EventFields) {
        self.publish(event, &mut self.lock());
    }

    /// Closes the breaker when its time comes, also without a match. Never returns.
    pub async fn run_release_timer(&self) {
        loop {
            let release_at = self.lock().breaker.release_at();
            let Some(release_at) = release_at else {
                self.tripped.notified().await;
                continue;
            };
            tokio::time::sleep(Duration::from_millis(release_at.saturating_sub(mono_ms()))).await;
            self.release(&mut self.lock(), mono_ms());
        }
    }

    /// Describes the breaker for `daemon.info`.
    pub fn breaker_view(&self) -> results::Breaker {
        let (breaker, now) = (self.shown.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone(), mono_ms());
        let release = breaker.release_at();
        results::Breaker {
            state: if release.is_some() { results::BreakerState::Silent } else { results::BreakerState::Passing },
            recent: breaker.recent(&self.breaker_rules, now),
            dropped: breaker.dropped(),
            release_ms: release.map(|at| at.saturating_sub(now)),
        }
    }
}

/// The content of the breaker's file: its boot id and state.
type Stored = ([u8; 16], BreakerState);

/// Opens or creates the breaker's file. Quarantines a damaged one and creates another. Returns the state in it, if any, and a
/// description of the damage.
fn open_file(path: &Path) -> io::Result<(File, Option<Stored>, Option<String>)> {
    let open = || {
        let mut options = File::options();
        open_regular(path, options.read(true).write(true).create(true).truncate(false).mode(0o600))
    };
    let why = match open() {
        Err(e) if can_pass(&e) => return Err(e),
        Err(e) => e.to_string(),
        Ok(file) => match read(&file) {
            Some(stored) => return Ok((file, stored, None)),
            None => "its checksum is wrong".into(),
        },
    };
    std::fs::rename(path, quarantine_path(path))?;
    Ok((open()?, None, Some(format!("{} was damaged: {why}; the breaker was reset", path.display()))))
}

/// Reads the breaker's file: its boot id and state. Returns None if it is damaged, Some(None) if it is empty.
fn read(file: &File) -> Option<Option<Stored>> {
    let mut bytes = vec![0u8; 8192];
    let n = file.read_at(&mut bytes, 0).ok()?;
    if n == 0 {
        return Some(None);
    }
    let bytes = bytes.get(..n)?;
    let length = u32::from_le_bytes(bytes.get(24..28)?.try_into().ok()?) as usize;
    let (facts, check) = bytes.get(..length.checked_add(36)?)?.split_at_checked(28 + length)?;
    if fnv1a(facts).to_le_bytes() != check {
        return None;
    }
    let seq = u64::from_le_bytes(facts[16..24].try_into().ok()?);
    let boot = facts[..16].try_into().ok()?;
    Some(Some((boot, BreakerState { breaker: Breaker::from_bytes(&facts[28..])?, seq })))
}
