//! How often all processes' matches together may speak: too many within a window, and all are silent for a while.
//!
//! Time is monotonic milliseconds, given by the caller. The state goes into bytes, so that it survives the daemon.

use std::collections::VecDeque;

/// What the state takes as bytes, at most.
pub const MAX_BREAKER_LEN: usize = 4096;
/// The time it opens again (all ones: it is not open) and the count of what was dropped.
const HEADER_LEN: usize = 16;
const NOT_OPEN: u64 = u64::MAX;

/// The limits in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerConfig {
    /// Matches that may pass within a window. With 0 every match trips.
    pub global_max: u64,
    /// A match counts for less than this long: at the very end of it there is room again.
    pub global_window_ms: u64,
    pub global_cooldown_ms: u64,
}

/// What becomes of a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Admission {
    Pass,
    /// One too many: say once that all are silent now. The match itself is the first one dropped.
    Trip,
    /// All are silent. The match is counted.
    Refuse,
    /// The silence is over and nobody was told. The match is neither counted nor let through: call `release`, tell
    /// its count, and ask again. So a match never comes before the news that there are matches again.
    ReleaseFirst,
}

/// The breaker over all processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Breaker {
    /// When matches passed, oldest first: those of the window, never more than may pass within one.
    pub(super) passed: VecDeque<u64>,
    pub(super) open_until: Option<u64>,
    /// Matches dropped since it tripped.
    pub(super) dropped: u64,
}

impl Breaker {
    /// Decides over one match.
    pub fn admit(&mut self, rules: &BreakerConfig, now: u64, lines: u64) -> Admission {
        self.drop_expired(rules, now);
        match self.open_until {
            Some(until) if now >= until => Admission::ReleaseFirst,
            Some(_) => {
                self.dropped = self.dropped.saturating_add(lines);
                Admission::Refuse
            }
            None if (self.passed.len() as u64) < rules.global_max => {
                self.passed.push_back(now);
                Admission::Pass
            }
            None => {
                self.passed.clear();
                self.open_until = Some(now.saturating_add(rules.global_cooldown_ms));
                self.dropped = lines;
                Admission::Trip
            }
        }
    }

    /// When to call `release`. Ask again after every `admit` and after a restart.
    pub fn release_at(&self) -> Option<u64> {
        self.open_until
    }

    /// How many matches were dropped, once, when the silence is over. The window begins anew.
    pub fn release(&mut self, rules: &BreakerConfig, now: u64) -> Option<u64> {
        self.drop_expired(rules, now);
        self.open_until.take_if(|until| now >= *until)?;
        Some(std::mem::take(&mut self.dropped))
    }

    /// How many matches passed within the window.
    pub fn recent(&self, rules: &BreakerConfig, now: u64) -> u64 {
        self.passed.iter().filter(|time| **time <= now && now - **time < rules.global_window_ms).count() as u64
    }

    /// How many lines were dropped since it tripped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// The state, at most `MAX_BREAKER_LEN`: of more times than fit only the newest. A checksum is the caller's.
    pub fn to_bytes(&self) -> Vec<u8> {
        let kept = self.passed.len().min((MAX_BREAKER_LEN - HEADER_LEN) / 8);
        let times = self.passed.iter().skip(self.passed.len() - kept);
        let numbers = [self.open_until.unwrap_or(NOT_OPEN), self.dropped];
        numbers.iter().chain(times).flat_map(|number| number.to_le_bytes()).collect()
    }

    /// The state from its bytes. None: they are not of a breaker.
    pub fn from_bytes(bytes: &[u8]) -> Option<Breaker> {
        let (numbers, []) = bytes.as_chunks::<8>() else { return None };
        let [open_until, dropped, times @ ..] = numbers else { return None };
        let passed: VecDeque<u64> = times.iter().map(|time| u64::from_le_bytes(*time)).collect();
        let open_until = Some(u64::from_le_bytes(*open_until)).filter(|until| *until != NOT_OPEN);
        let ordered = passed.iter().is_sorted() && bytes.len() <= MAX_BREAKER_LEN;
        ordered.then_some(Breaker { passed, open_until, dropped: u64::from_le_bytes(*dropped) })
    }

    /// Forgets what has left the window. The record may be of an earlier boot, whose clock was further on: times to
    /// come are not believed, and no silence lasts longer than one could.
    fn drop_expired(&mut self, rules: &BreakerConfig, now: u64) {
        self.passed.retain(|time| *time <= now && now - *time < rules.global_window_ms);
        let furthest = now.saturating_add(rules.global_cooldown_ms);
        self.open_until = self.open_until.map(|until| until.min(furthest));
    }
}
