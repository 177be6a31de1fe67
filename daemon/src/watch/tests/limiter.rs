//! The limiter: windows, strikes, the end of watching, and a count that is reported once and never lost.

use super::super::{Decision, Limiter, LimiterConfig};
use Decision::{Disable, Drop, Emit, Ended};
use proptest::prelude::*;

const CONFIG: LimiterConfig = LimiterConfig { min_interval_ms: 15_000, strike_limit: 3 };

fn run(config: &LimiterConfig, matches: &[(u64, u64)]) -> (Vec<Decision>, Limiter) {
    let mut limiter = Limiter::default();
    (matches.iter().map(|(now, lines)| limiter.matched(config, *now, *lines)).collect(), limiter)
}

#[test]
fn one_match_passes_per_window_and_the_next_one_reports_the_suppressed_lines() {
    let (decisions, limiter) = run(&CONFIG, &[(0, 1), (1, 2), (14_999, 3), (15_000, 1), (30_000, 1)]);
    assert_eq!(decisions, [Emit { suppressed: 0 }, Drop, Drop, Emit { suppressed: 5 }, Emit { suppressed: 0 }]);
    assert_eq!((limiter.hits, limiter.suppressed, limiter.pending, limiter.quiet_until), (8, 5, 0, 45_000));
}

#[test]
fn three_consecutive_windows_with_suppressed_matches_end_watching_once() {
    let (decisions, limiter) = run(
        &CONFIG,
        &[(0, 1), (1, 1), (2, 1), (15_000, 1), (15_001, 1), (30_000, 1), (30_001, 4), (30_002, 1), (90_000, 1)],
    );
    let first = [Emit { suppressed: 0 }, Drop, Drop, Emit { suppressed: 2 }, Drop, Emit { suppressed: 1 }];
    assert_eq!(decisions.get(..6), Some(first.as_slice()));
    assert_eq!(decisions.get(6..), Some([Disable { suppressed: 4 }, Ended, Ended].as_slice()));
    let end =
        Limiter { quiet_until: 45_000, strikes: 3, struck: true, pending: 0, suppressed: 7, hits: 10, disabled: true };
    assert_eq!(limiter, end);
    assert!(!limiter.would_emit(&CONFIG, 90_000));
}

#[test]
fn a_window_without_suppressed_matches_resets_the_strikes() {
    let (decisions, limiter) =
        run(&CONFIG, &[(0, 1), (1, 1), (15_000, 1), (15_001, 1), (30_000, 1), (45_000, 1), (45_001, 1)]);
    assert_eq!(decisions.last(), Some(&Drop));
    assert_eq!((limiter.strikes, limiter.struck, limiter.disabled), (1, true, false));
}

#[test]
fn a_strike_limit_of_one_ends_watching_at_the_first_strike_and_zero_never() {
    let (decisions, _) = run(&LimiterConfig { strike_limit: 1, ..CONFIG }, &[(7, 1), (15_006, 2), (15_007, 1)]);
    assert_eq!(decisions, [Emit { suppressed: 0 }, Disable { suppressed: 2 }, Ended]);
    let busy: Vec<(u64, u64)> = (0..1000).map(|i| (i * 5_000, 1)).collect();
    let (_, limiter) = run(&LimiterConfig { strike_limit: 0, ..CONFIG }, &busy);
    assert_eq!((limiter.disabled, limiter.hits, limiter.suppressed), (false, 1000, 666));
}

#[test]
fn without_an_interval_every_match_passes() {
    let (decisions, _) = run(&LimiterConfig { min_interval_ms: 0, ..CONFIG }, &[(5, 1), (5, 1), (5, 1)]);
    assert_eq!(decisions, [Emit { suppressed: 0 }; 3]);
}

#[test]
fn a_refusal_by_the_breaker_costs_no_window_and_no_strike_and_its_lines_are_reported_later() {
    // The broken code used up the window and the count before it asked the breaker, and lost the count.
    let mut limiter = Limiter::default();
    assert!(limiter.would_emit(&CONFIG, 100));
    limiter.refused(3);
    assert_eq!(limiter, Limiter { pending: 3, suppressed: 3, hits: 3, ..Limiter::default() });
    assert!(limiter.would_emit(&CONFIG, 101));
    assert_eq!(limiter.matched(&CONFIG, 101, 1), Emit { suppressed: 3 });
}

#[test]
fn a_window_that_ends_too_late_ends_after_an_interval() {
    let mut limiter = Limiter { quiet_until: u64::MAX, ..Limiter::default() };
    assert!(!limiter.would_emit(&CONFIG, 1_000));
    assert_eq!(limiter.matched(&CONFIG, 1_000, 1), Drop);
    assert_eq!((limiter.quiet_until, limiter.would_emit(&CONFIG, 15_999)), (16_000, false));
    assert_eq!(limiter.matched(&CONFIG, 16_000, 1), Emit { suppressed: 1 });
}

/// A model that keeps all past matches, and computes every answer from them.
struct Model {
    config: LimiterConfig,
    past: Vec<(u64, u64, Outcome)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    Emitted,
    Dropped,
    Refused,
    Ended,
}

impl Model {
    fn ready(&self, now: u64) -> bool {
        let last = self.past.iter().rev().find(|(_, _, outcome)| *outcome == Outcome::Emitted);
        !self.ended() && last.is_none_or(|(time, _, _)| now - time >= self.config.min_interval_ms)
    }

    /// Returns the number of consecutive last windows with suppressed matches.
    fn strikes(&self) -> u64 {
        let windows = self.past.split(|(_, _, outcome)| *outcome == Outcome::Emitted).skip(1);
        let struck: Vec<bool> = windows.map(|w| w.iter().any(|(_, _, outcome)| *outcome == Outcome::Dropped)).collect();
        struck.iter().rev().take_while(|struck| **struck).count() as u64
    }

    fn ended(&self) -> bool {
        self.config.strike_limit > 0 && self.strikes() >= self.config.strike_limit
    }

    fn lines(&self, of: &[Outcome]) -> u64 {
        self.past.iter().filter(|(_, _, outcome)| of.contains(outcome)).map(|(_, lines, _)| lines).sum()
    }

    /// Returns the number of lines suppressed since the last event.
    fn unreported(&self) -> u64 {
        let since = self.past.iter().rev().take_while(|(_, _, outcome)| *outcome != Outcome::Emitted);
        since
            .filter(|(_, _, outcome)| matches!(outcome, Outcome::Dropped | Outcome::Refused))
            .map(|(_, lines, _)| lines)
            .sum()
    }

    fn matched(&mut self, now: u64, lines: u64, passes: bool) -> Option<Decision> {
        if self.ended() {
            self.past.push((now, lines, Outcome::Ended));
            return Some(Ended);
        }
        if !self.ready(now) {
            self.past.push((now, lines, Outcome::Dropped));
            return Some(if self.ended() { Disable { suppressed: self.unreported() } } else { Drop });
        }
        let suppressed = self.unreported();
        self.past.push((now, lines, if passes { Outcome::Emitted } else { Outcome::Refused }));
        passes.then_some(Emit { suppressed })
    }
}

proptest! {
    #[test]
    fn a_model_that_keeps_all_matches_decides_the_same(
        min_interval_ms in 0u64..12,
        strike_limit in 0u64..5,
        steps in prop::collection::vec((0u64..9, 0u64..4, prop::bool::weighted(0.8)), 0..80),
    ) {
        let config = LimiterConfig { min_interval_ms, strike_limit };
        let mut model = Model { config, past: Vec::new() };
        let mut limiter = Limiter::default();
        let (mut now, mut reported) = (0, 0);
        for (pause, lines, passes) in steps {
            now += pause;
            let ready = limiter.would_emit(&config, now);
            prop_assert_eq!(ready, model.ready(now));
            let decision = if ready && !passes {
                limiter.refused(lines);
                None
            } else {
                Some(limiter.matched(&config, now, lines))
            };
            prop_assert_eq!(decision, model.matched(now, lines, passes));
            if let Some(Emit { suppressed } | Disable { suppressed }) = decision {
                reported += suppressed;
            }
            let dropped = model.lines(&[Outcome::Dropped, Outcome::Refused]);
            prop_assert_eq!(limiter.suppressed, dropped);
            prop_assert_eq!(reported + limiter.pending, dropped);
            prop_assert_eq!(limiter.hits, dropped + model.lines(&[Outcome::Emitted]));
            prop_assert_eq!(limiter.disabled, model.ended());
        }
    }
}
