//! Limits the matches of one process: one event per interval, and an end of watching for a process that never stops.
//!
//! The caller passes monotonic milliseconds. The state is plain numbers, so that it survives the daemon.

/// The limits of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimiterConfig {
    /// A match opens a window of this length; further matches in it are only counted.
    pub min_interval_ms: u64,
    /// Watching ends after this many consecutive windows with suppressed matches. 0 means never.
    pub strike_limit: u64,
}

/// The action for matched lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    /// Publish them, with the number of lines suppressed since the last event.
    Emit { suppressed: u64 },
    /// Suppress them. They are counted.
    Drop,
    /// Publish once that watching has ended, with the number of suppressed lines that were not reported.
    Disable { suppressed: u64 },
    /// Ignore them: watching ended before. They are not counted.
    Ended,
}

/// The limiter of one process.
///
/// For each match the caller first calls `would_emit`. If it returns true, the caller asks the global breaker, and calls
/// `matched` if the breaker passes the match, or `refused` if it does not. If `would_emit` returns false, the caller only
/// calls `matched`. A refusal costs neither a window nor a strike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limiter {
    /// The end of the window that the last emission opened.
    pub quiet_until: u64,
    /// Consecutive windows with suppressed matches, including the current one.
    pub strikes: u32,
    /// A match was suppressed in the current window.
    pub struck: bool,
    /// Suppressed lines that were not reported yet.
    pub pending: u64,
    /// All suppressed lines.
    pub suppressed: u64,
    /// All lines that matched while watching.
    pub hits: u64,
    /// Watching has ended.
    pub disabled: bool,
}

impl Limiter {
    /// Returns true if a match now would be published, provided that the breaker passes it.
    pub fn would_emit(&self, config: &LimiterConfig, now: u64) -> bool {
        !self.disabled && now >= self.quiet_end(config, now)
    }

    /// Takes `lines` matched lines, and returns the decision.
    pub fn matched(&mut self, config: &LimiterConfig, now: u64, lines: u64) -> Decision {
        if self.disabled {
            return Decision::Ended;
        }
        self.quiet_until = self.quiet_end(config, now);
        if now < self.quiet_until {
            return self.dropped(config, lines);
        }
        self.hits = self.hits.saturating_add(lines);
        if !self.struck {
            self.strikes = 0;
        }
        self.struck = false;
        self.quiet_until = now.saturating_add(config.min_interval_ms);
        Decision::Emit { suppressed: std::mem::take(&mut self.pending) }
    }

    /// Suppresses `lines` that the breaker refused. Starts no window and adds no strike: other processes caused the refusal.
    pub fn refused(&mut self, lines: u64) {
        if !self.disabled {
            self.suppress(lines);
        }
    }

    fn dropped(&mut self, config: &LimiterConfig, lines: u64) -> Decision {
        self.suppress(lines);
        if !self.struck {
            self.struck = true;
            self.strikes = self.strikes.saturating_add(1);
        }
        if config.strike_limit == 0 || u64::from(self.strikes) < config.strike_limit {
            return Decision::Drop;
        }
        self.disabled = true;
        Decision::Disable { suppressed: std::mem::take(&mut self.pending) }
    }

    fn suppress(&mut self, lines: u64) {
        self.hits = self.hits.saturating_add(lines);
        self.pending = self.pending.saturating_add(lines);
        self.suppressed = self.suppressed.saturating_add(lines);
    }

    /// Returns the end of the window. A window that ends too late comes from a damaged record or a restarted clock, and would
    /// suppress the process forever.
    fn quiet_end(&self, config: &LimiterConfig, now: u64) -> u64 {
        self.quiet_until.min(now.saturating_add(config.min_interval_ms))
    }
}
