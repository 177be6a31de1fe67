//! The limiter: windows, strikes, the end, and a count that is told once and never lost.

use super::super::{Decision, Limiter, LimiterConfig};
use Decision::{Disable, Drop, Emit, Ended};
use proptest::prelude::*;

const RULES: LimiterConfig = LimiterConfig { min_interval_ms: 15_000, strike_limit: 3 };

fn run(rules: &LimiterConfig, matches: &[(u64, u64)]) -> (Vec<Decision>, Limiter) {
    let mut limiter = Limiter::default();
    (matches.iter().map(|(now, lines)| limiter.matched(rules, *now, *lines)).collect(), limiter)
}

#[test]
fn one_match_speaks_in_a_window_and_the_next_tells_what_was_dropped() {
    let (verdicts, limiter) = run(&RULES, &[(0, 1), (1, 2), (14_999, 3), (15_000, 1), (30_000, 1)]);
    assert_eq!(verdicts, [Emit { suppressed: 0 }, Drop, Drop, Emit { suppressed: 5 }, Emit { suppressed: 0 }]);
    assert_eq!((limiter.hits, limiter.suppressed, limiter.pending, limiter.quiet_until), (8, 5, 0, 45_000));
}

#[test]
fn three_windows_in_a_row_with_a_drop_end_the_watching_once() {
    let (verdicts, limiter) = run(
        &RULES,
        &[(0, 1), (1, 1), (2, 1), (15_000, 1), (15_001, 1), (30_000, 1), (30_001, 4), (30_002, 1), (90_000, 1)],
    );
    let first = [Emit { suppressed: 0 }, Drop, Drop, Emit { suppressed: 2 }, Drop, Emit { suppressed: 1 }];
    assert_eq!(verdicts.get(..6), Some(first.as_slice()));
    assert_eq!(verdicts.get(6..), Some([Disable { suppressed: 4 }, Ended, Ended].as_slice()));
    let end =
        Limiter { quiet_until: 45_000, strikes: 3, struck: true, pending: 0, suppressed: 7, hits: 10, disabled: true };
    assert_eq!(limiter, end);
    assert!(!limiter.would_emit(&RULES, 90_000));
}

#[test]
fn a_window_without_a_drop_forgives() {
    let (verdicts, limiter) =
        run(&RULES, &[(0, 1), (1, 1), (15_000, 1), (15_001, 1), (30_000, 1), (45_000, 1), (45_001, 1)]);
    assert_eq!(verdicts.last(), Some(&Drop));
    assert_eq!((limiter.strikes, limiter.struck, limiter.disabled), (1, true, false));
}

#[test]
fn the_first_strike_ends_it_with_a_limit_of_one_and_none_does_with_zero() {
    let (verdicts, _) = run(&LimiterConfig { strike_limit: 1, ..RULES }, &[(7, 1), (15_006, 2), (15_007, 1)]);
    assert_eq!(verdicts, [Emit { suppressed: 0 }, Disable { suppressed: 2 }, Ended]);
    let busy: Vec<(u64, u64)> = (0..1000).map(|i| (i * 5_000, 1)).collect();
    let (_, limiter) = run(&LimiterConfig { strike_limit: 0, ..RULES }, &busy);
    assert_eq!((limiter.disabled, limiter.hits, limiter.suppressed), (false, 1000, 666));
}

#[test]
fn without_an_interval_every_match_speaks() {
    let (verdicts, _) = run(&LimiterConfig { min_interval_ms: 0, ..RULES }, &[(5, 1), (5, 1), (5, 1)]);
    assert_eq!(verdicts, [Emit { suppressed: 0 }; 3]);
}

#[test]
fn a_refusal_of_the_breaker_costs_no_window_and_no_strike_and_its_lines_are_told_later() {
    // The window and the count were spent before the breaker was asked, and the count was lost.
    let mut limiter = Limiter::default();
    assert!(limiter.would_emit(&RULES, 100));
    limiter.refused(3);
    assert_eq!(limiter, Limiter { pending: 3, suppressed: 3, hits: 3, ..Limiter::default() });
    assert!(limiter.would_emit(&RULES, 101));
    assert_eq!(limiter.matched(&RULES, 101, 1), Emit { suppressed: 3 });
}

#[test]
fn a_window_that_ends_too_far_away_ends_after_an_interval() {
    let mut limiter = Limiter { quiet_until: u64::MAX, ..Limiter::default() };
    assert!(!limiter.would_emit(&RULES, 1_000));
    assert_eq!(limiter.matched(&RULES, 1_000, 1), Drop);
    assert_eq!((limiter.quiet_until, limiter.would_emit(&RULES, 15_999)), (16_000, false));
    assert_eq!(limiter.matched(&RULES, 16_000, 1), Emit { suppressed: 1 });
}

/// Everything that ever happened. Nothing is kept but this, and every question is answered from it.
struct Model {
    rules: LimiterConfig,
    past: Vec<(u64, u64, What)>,
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    Emitted,
    Dropped,
    Refused,
    Ended,
}

impl Model {
    fn ready(&self, now: u64) -> bool {
        let last = self.past.iter().rev().find(|(_, _, what)| *what == What::Emitted);
        !self.ended() && last.is_none_or(|(time, _, _)| now - time >= self.rules.min_interval_ms)
    }

    /// Windows with a drop, counted back from the last one to the first without.
    fn strikes(&self) -> u64 {
        let windows = self.past.split(|(_, _, what)| *what == What::Emitted).skip(1);
        let struck: Vec<bool> = windows.map(|w| w.iter().any(|(_, _, what)| *what == What::Dropped)).collect();
        struck.iter().rev().take_while(|struck| **struck).count() as u64
    }

    fn ended(&self) -> bool {
        self.rules.strike_limit > 0 && self.strikes() >= self.rules.strike_limit
    }

    fn lines(&self, of: &[What]) -> u64 {
        self.past.iter().filter(|(_, _, what)| of.contains(what)).map(|(_, lines, _)| lines).sum()
    }

    /// What was suppressed since something was told.
    fn untold(&self) -> u64 {
        let since = self.past.iter().rev().take_while(|(_, _, what)| *what != What::Emitted);
        since.filter(|(_, _, what)| matches!(what, What::Dropped | What::Refused)).map(|(_, lines, _)| lines).sum()
    }

    fn matched(&mut self, now: u64, lines: u64, passes: bool) -> Option<Decision> {
        if self.ended() {
            self.past.push((now, lines, What::Ended));
            return Some(Ended);
        }
        if !self.ready(now) {
            self.past.push((now, lines, What::Dropped));
            return Some(if self.ended() { Disable { suppressed: self.untold() } } else { Drop });
        }
        let suppressed = self.untold();
        self.past.push((now, lines, if passes { What::Emitted } else { What::Refused }));
        passes.then_some(Emit { suppressed })
    }
}

proptest! {
    #[test]
    fn a_model_with_all_of_the_past_decides_the_same(
        min_interval_ms in 0u64..12,
        strike_limit in 0u64..5,
        steps in prop::collection::vec((0u64..9, 0u64..4, prop::bool::weighted(0.8)), 0..80),
    ) {
        let rules = LimiterConfig { min_interval_ms, strike_limit };
        let mut model = Model { rules, past: Vec::new() };
        let mut limiter = Limiter::default();
        let (mut now, mut told) = (0, 0);
        for (pause, lines, passes) in steps {
            now += pause;
            let ready = limiter.would_emit(&rules, now);
            prop_assert_eq!(ready, model.ready(now));
            let verdict = if ready && !passes {
                limiter.refused(lines);
                None
            } else {
                Some(limiter.matched(&rules, now, lines))
            };
            prop_assert_eq!(verdict, model.matched(now, lines, passes));
            if let Some(Emit { suppressed } | Disable { suppressed }) = verdict {
                told += suppressed;
            }
            let dropped = model.lines(&[What::Dropped, What::Refused]);
            prop_assert_eq!(limiter.suppressed, dropped);
            prop_assert_eq!(told + limiter.pending, dropped);
            prop_assert_eq!(limiter.hits, dropped + model.lines(&[What::Emitted]));
            prop_assert_eq!(limiter.disabled, model.ended());
        }
    }
}
