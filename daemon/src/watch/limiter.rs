//! How often one process's matches may speak: one per interval, and silence for one that never stops.
//!
//! Time is monotonic milliseconds, given by the caller. The state is plain numbers, so that it survives the daemon.

/// The limits in force.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LimiterConfig {
    /// A match opens a window of this length; what matches inside of it is only counted.
    pub min_interval_ms: u64,
    /// So many windows in a row with something dropped, and watching ends. 0: never.
    pub strike_limit: u64,
}

/// What is to be done about matched lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use]
pub enum Decision {
    /// Tell of them, and of so many lines suppressed since the last time something was told.
    Emit { suppressed: u64 },
    /// Say nothing. They are counted.
    Drop,
    /// Say once that watching has ended, and that so many lines were suppressed and not told of.
    Disable { suppressed: u64 },
    /// Watching ended before. They are not counted.
    Ended,
}

/// One process's limiter.
///
/// A match is first asked about with `would_emit`. If so, the global breaker is asked, and only when it lets the match
/// pass `matched` is called; when it does not, `refused` is. Else `matched` alone. Nothing is spent on a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limiter {
    /// The end of the window that the last emission opened.
    pub quiet_until: u64,
    /// Windows in a row in which something was dropped, with this one.
    pub strikes: u32,
    /// Something was dropped in this window.
    pub struck: bool,
    /// Lines suppressed that nobody was told of yet.
    pub pending: u64,
    /// All lines ever suppressed.
    pub suppressed: u64,
    /// All lines that matched while watching.
    pub hits: u64,
    /// Watching has ended.
    pub disabled: bool,
}

impl Limiter {
    /// Whether a match now would be told of, if the breaker lets it pass.
    pub fn would_emit(&self, rules: &LimiterConfig, now: u64) -> bool {
        !self.disabled && now >= self.quiet_end(rules, now)
    }

    /// Takes `lines` matched lines, and decides.
    pub fn matched(&mut self, rules: &LimiterConfig, now: u64, lines: u64) -> Decision {
        if self.disabled {
            return Decision::Ended;
        }
        self.quiet_until = self.quiet_end(rules, now);
        if now < self.quiet_until {
            return self.dropped(rules, lines);
        }
        self.hits = self.hits.saturating_add(lines);
        if !self.struck {
            self.strikes = 0;
        }
        self.struck = false;
        self.quiet_until = now.saturating_add(rules.min_interval_ms);
        Decision::Emit { suppressed: std::mem::take(&mut self.pending) }
    }

    /// Takes `lines` that would have been told of, had the breaker not refused. No window begins and no strike falls:
    /// the process is not to blame for the others.
    pub fn refused(&mut self, lines: u64) {
        if !self.disabled {
            self.suppress(lines);
        }
    }

    fn dropped(&mut self, rules: &LimiterConfig, lines: u64) -> Decision {
        self.suppress(lines);
        if !self.struck {
            self.struck = true;
            self.strikes = self.strikes.saturating_add(1);
        }
        if rules.strike_limit == 0 || u64::from(self.strikes) < rules.strike_limit {
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

    /// A window further away than any could be comes from a damaged record or a clock that began anew. It would
    /// silence the process for ever.
    fn quiet_end(&self, rules: &LimiterConfig, now: u64) -> u64 {
        self.quiet_until.min(now.saturating_add(rules.min_interval_ms))
    }
}
