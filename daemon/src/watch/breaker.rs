//! Limits the matches of all processes together: too many within a window suppress all of them for a while.
//!
//! The caller passes monotonic milliseconds. The state can be encoded, so that it survives the daemon.

use std::collections::VecDeque;

/// The maximum length of an encoded state.
pub const MAX_BREAKER_LEN: usize = 4096;
/// The length of the encoded release time (all ones if it has not tripped) and of the count of suppressed lines.
const HEADER_LEN: usize = 16;
const NOT_TRIPPED: u64 = u64::MAX;

/// The limits of all processes together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerConfig {
    /// The number of matches that pass within a window. With 0 every match trips the breaker.
    pub global_max: u64,
    /// The length of the window: a match of exactly this age does not count.
    pub global_window_ms: u64,
    pub global_cooldown_ms: u64,
}

/// The decision about a match.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Admission {
    Pass,
    /// The match trips the breaker: publish once that all matches are suppressed now. It is the first suppressed one.
    Trip,
    /// All matches are suppressed. This one is counted.
    Refuse,
    /// The suppression has ended and the end is not published yet. The match is neither counted nor passed: call `release`,
    /// publish its count, and call `admit` again. So no match is published before the event that matches have resumed.
    ReleaseFirst,
}

/// The breaker for all processes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Breaker {
    /// The times of the matches that passed within the window, oldest first.
    pub(super) passed: VecDeque<u64>,
    pub(super) open_until: Option<u64>,
    /// Lines suppressed since it tripped.
    pub(super) dropped: u64,
}

impl Breaker {
    /// Decides about one match of `lines` lines.
    pub fn admit(&mut self, config: &BreakerConfig, now: u64, lines: u64) -> Admission {
        self.drop_expired(config, now);
        match self.open_until {
            Some(until) if now >= until => Admission::ReleaseFirst,
            Some(_) => {
                self.dropped = self.dropped.saturating_add(lines);
                Admission::Refuse
            }
            None if (self.passed.len() as u64) < config.global_max => {
                self.passed.push_back(now);
                Admission::Pass
            }
            None => {
                self.passed.clear();
                self.open_until = Some(now.saturating_add(config.global_cooldown_ms));
                self.dropped = lines;
                Admission::Trip
            }
        }
    }

    /// Returns the time at which to call `release`. It may change with every `admit` and with a restart.
    pub fn release_at(&self) -> Option<u64> {
        self.open_until
    }

    /// Ends the suppression if its time is over. Returns the number of suppressed lines, and starts a new window.
    pub fn release(&mut self, config: &BreakerConfig, now: u64) -> Option<u64> {
        self.drop_expired(config, now);
        self.open_until.take_if(|until| now >= *until)?;
        Some(std::mem::take(&mut self.dropped))
    }

    /// Returns the number of matches that passed within the window.
    pub fn recent(&self, config: &BreakerConfig, now: u64) -> u64 {
        self.passed.iter().filter(|time| **time <= now && now - **time < config.global_window_ms).count() as u64
    }

    /// Returns the number of lines suppressed since it tripped.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Encodes the state in at most `MAX_BREAKER_LEN` bytes, with the newest times that fit. The caller adds a checksum.
    pub fn to_bytes(&self) -> Vec<u8> {
        let kept = self.passed.len().min((MAX_BREAKER_LEN - HEADER_LEN) / 8);
        let times = self.passed.iter().skip(self.passed.len() - kept);
        let numbers = [self.open_until.unwrap_or(NOT_TRIPPED), self.dropped];
        numbers.iter().chain(times).flat_map(|number| number.to_le_bytes()).collect()
    }

    /// Decodes a state. Returns None if the bytes are not valid.
    pub fn from_bytes(bytes: &[u8]) -> Option<Breaker> {
        let (numbers, []) = bytes.as_chunks::<8>() else { return None };
        let [open_until, dropped, times @ ..] = numbers else { return None };
        let passed: VecDeque<u64> = times.iter().map(|time| u64::from_le_bytes(*time)).collect();
        let open_until = Some(u64::from_le_bytes(*open_until)).filter(|until| *until != NOT_TRIPPED);
        let ordered = passed.iter().is_sorted() && bytes.len() <= MAX_BREAKER_LEN;
        ordered.then_some(Breaker { passed, open_until, dropped: u64::from_le_bytes(*dropped) })
    }

    /// Drops times that have left the window. The record may be from an earlier boot with a later clock: drops future times
    /// too, and limits the suppression to its maximum.
    fn drop_expired(&mut self, config: &BreakerConfig, now: u64) {
        self.passed.retain(|time| *time <= now && now - *time < config.global_window_ms);
        let furthest = now.saturating_add(config.global_cooldown_ms);
        self.open_until = self.open_until.map(|until| until.min(furthest));
    }
}
