//! Limits the starts of a server that fails: each failure delays the next start, and too many refuse it for a while. Pure.

use std::collections::VecDeque;
use std::time::Duration;
use tokio::time::Instant;

/// Failures within `WINDOW` after which starts are refused.
const MAX_FAILURES: usize = 5;
const WINDOW: Duration = Duration::from_secs(60);
/// The delay after the first failure. Each further one doubles it.
const FIRST_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(5);

/// The last failures of a server.
#[derive(Debug, Default)]
pub struct Backoff {
    failures: VecDeque<Instant>,
    /// The reason of the last one.
    why: String,
}

/// The answer to a wish to start.
#[derive(Debug, PartialEq, Eq)]
pub enum StartVerdict {
    Now,
    At(Instant),
    /// Too many starts failed. The next one is possible at this time.
    Refused {
        until: Instant,
        why: String,
    },
}

impl Backoff {
    pub fn failed(&mut self, now: Instant, why: String) {
        self.failures.push_back(now);
        if self.failures.len() > MAX_FAILURES {
            self.failures.pop_front();
        }
        self.why = why;
    }

    /// Forgets the failures: a call was answered.
    pub fn succeeded(&mut self) {
        self.failures.clear();
    }

    pub fn verdict(&self, now: Instant) -> StartVerdict {
        let recent: Vec<Instant> = self.failures.iter().copied().filter(|at| now < *at + WINDOW).collect();
        let (Some(first), Some(last)) = (recent.first(), recent.last()) else { return StartVerdict::Now };
        if recent.len() >= MAX_FAILURES {
            return StartVerdict::Refused { until: *first + WINDOW, why: self.why.clone() };
        }
        let delay = FIRST_DELAY.saturating_mul(1 << (recent.len() - 1)).min(MAX_DELAY);
        let at = *last + delay;
        if at <= now { StartVerdict::Now } else { StartVerdict::At(at) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_waits_longer_after_each_failure_and_is_refused_after_the_fifth() {
        let (mut backoff, start) = (Backoff::default(), Instant::now());
        let ms = |n| start + Duration::from_millis(n);
        assert_eq!(backoff.verdict(start), StartVerdict::Now);
        for (n, delay) in [100, 200, 400, 800].into_iter().enumerate() {
            let at = ms(n as u64 * 10_000);
            backoff.failed(at, format!("failure {n}"));
            assert_eq!(backoff.verdict(at), StartVerdict::At(at + Duration::from_millis(delay)));
            assert_eq!(backoff.verdict(at + Duration::from_millis(delay)), StartVerdict::Now);
        }
        backoff.failed(ms(40_000), "failure 4".into());
        let refused = StartVerdict::Refused { until: ms(60_000), why: "failure 4".into() };
        assert_eq!(backoff.verdict(ms(59_999)), refused);
        assert_eq!(
            backoff.verdict(ms(60_000)),
            StartVerdict::Now,
            "the first failure is forgotten, and the delay is over"
        );
        backoff.failed(ms(60_000), "failure 5".into());
        assert!(matches!(backoff.verdict(ms(60_000)), StartVerdict::Refused { .. }));
        backoff.succeeded();
        assert_eq!(backoff.verdict(ms(60_000)), StartVerdict::Now);
    }
}
