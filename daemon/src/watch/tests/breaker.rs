//! The breaker: the trip, the silence, the release, and what survives a restart.

use super::super::{Admission, Breaker, BreakerConfig};
use Admission::{Pass, Refuse, ReleaseFirst, Trip};
use proptest::prelude::*;

const RULES: BreakerConfig = BreakerConfig { global_max: 15, global_window_ms: 10_000, global_cooldown_ms: 30_000 };

fn run(rules: &BreakerConfig, breaker: &mut Breaker, times: impl IntoIterator<Item = u64>) -> Vec<Admission> {
    times.into_iter().map(|now| breaker.admit(rules, now, 1)).collect()
}

#[test]
fn the_sixteenth_match_in_ten_seconds_trips_it_and_all_are_counted_until_the_release() {
    let mut breaker = Breaker::default();
    assert_eq!(run(&RULES, &mut breaker, 0..15), [Pass; 15]);
    assert_eq!(breaker.release_at(), None);
    assert_eq!(run(&RULES, &mut breaker, [9_999, 10_000, 39_998]), [Trip, Refuse, Refuse]);
    assert_eq!((breaker.release_at(), breaker.release(&RULES, 39_998)), (Some(39_999), None));
    assert_eq!((breaker.release(&RULES, 39_999), breaker.release(&RULES, 39_999)), (Some(3), None));
    assert_eq!(run(&RULES, &mut breaker, 39_999..40_015), [[Pass; 15].as_slice(), &[Trip]].concat());
}

#[test]
fn a_match_that_is_ten_seconds_old_makes_room() {
    let mut breaker = Breaker::default();
    assert_eq!(run(&RULES, &mut breaker, 0..15), [Pass; 15]);
    assert_eq!(run(&RULES, &mut breaker, [10_000, 10_000]), [Pass, Trip]);
}

#[test]
fn a_match_after_the_silence_waits_for_the_release_and_is_not_counted() {
    let mut breaker = Breaker::default();
    let rules = BreakerConfig { global_max: 1, ..RULES };
    assert_eq!(run(&rules, &mut breaker, [0, 1, 30_001, 30_001]), [Pass, Trip, ReleaseFirst, ReleaseFirst]);
    assert_eq!((breaker.release(&rules, 30_001), breaker.admit(&rules, 30_001, 1)), (Some(1), Pass));
}

#[test]
fn with_a_maximum_of_nothing_every_match_trips() {
    let mut breaker = Breaker::default();
    let rules = BreakerConfig { global_max: 0, ..RULES };
    assert_eq!(run(&rules, &mut breaker, [5, 6, 30_005]), [Trip, Refuse, ReleaseFirst]);
    assert_eq!((breaker.release(&rules, 30_005), breaker.admit(&rules, 30_005, 1)), (Some(2), Trip));
}

#[test]
fn a_restart_changes_nothing() {
    let mut breaker = Breaker::default();
    assert_eq!(run(&RULES, &mut breaker, 0..15), [Pass; 15]);
    assert_eq!(Breaker::from_bytes(&breaker.to_bytes()), Some(breaker.clone()));
    assert_eq!(run(&RULES, &mut breaker, [20, 21]), [Trip, Refuse]);
    assert_eq!(Breaker::from_bytes(&breaker.to_bytes()), Some(breaker));
}

#[test]
fn of_more_times_than_fit_the_newest_are_kept_and_bytes_of_something_else_are_refused() {
    let mut breaker = Breaker::default();
    let rules = BreakerConfig { global_max: 2_000, ..RULES };
    assert_eq!(run(&rules, &mut breaker, 0..1_000), [Pass; 1_000]);
    let bytes = breaker.to_bytes();
    let kept = Breaker::from_bytes(&bytes).map(|kept| (kept.passed.len(), kept.passed.back().copied()));
    assert_eq!((bytes.len(), kept), (4096, Some((510, Some(999)))));
    let strange: [&[u8]; 4] = [b"", &[0; 15], &[0; 17], &[0; 4104]];
    assert_eq!(strange.map(Breaker::from_bytes), [None, None, None, None]);
}

#[test]
fn a_clock_that_began_anew_does_not_silence_all_for_ever() {
    let mut breaker = Breaker { passed: [900_000; 15].into(), open_until: None, dropped: 0 };
    assert_eq!(breaker.admit(&RULES, 5, 1), Pass);
    let mut breaker = Breaker { passed: [].into(), open_until: Some(900_000), dropped: 7 };
    assert_eq!((breaker.release(&RULES, 5), breaker.release_at()), (None, Some(30_005)));
    assert_eq!(breaker.release(&RULES, 30_005), Some(7));
}

/// Every match and every release, from which all is computed anew.
#[derive(Default)]
struct Model {
    past: Vec<(u64, What)>,
}

#[derive(Clone, Copy, PartialEq)]
enum What {
    Asked(Admission),
    Released,
}

impl Model {
    /// What came after the last release.
    fn period(&self) -> &[(u64, What)] {
        let last = self.past.iter().rposition(|(_, what)| *what == What::Released);
        self.past.get(last.map_or(0, |i| i + 1)..).unwrap_or_default()
    }

    fn open_until(&self, rules: &BreakerConfig) -> Option<u64> {
        let trip = self.period().iter().find(|(_, what)| *what == What::Asked(Trip));
        trip.map(|(time, _)| time + rules.global_cooldown_ms)
    }

    fn count(&self, of: &[Admission], since: impl Fn(u64) -> bool) -> u64 {
        let asked = |what: &What| matches!(what, What::Asked(gate) if of.contains(gate));
        self.period().iter().filter(|(time, what)| asked(what) && since(*time)).count() as u64
    }

    fn admit(&mut self, rules: &BreakerConfig, now: u64) -> Admission {
        let recent = self.count(&[Pass], |time| now - time < rules.global_window_ms);
        let gate = match self.open_until(rules) {
            Some(until) if now >= until => ReleaseFirst,
            Some(_) => Refuse,
            None if recent + 1 > rules.global_max => Trip,
            None => Pass,
        };
        self.past.push((now, What::Asked(gate)));
        gate
    }

    fn release(&mut self, rules: &BreakerConfig, now: u64) -> Option<u64> {
        let dropped = self.count(&[Trip, Refuse], |_| true);
        self.open_until(rules).filter(|until| now >= *until)?;
        self.past.push((now, What::Released));
        Some(dropped)
    }
}

proptest! {
    #[test]
    fn a_model_with_all_of_the_past_decides_the_same(
        global_max in 0u64..5,
        global_window_ms in 0u64..12,
        global_cooldown_ms in 0u64..15,
        steps in prop::collection::vec((0u64..5, 0u8..6), 0..120),
    ) {
        let rules = BreakerConfig { global_max, global_window_ms, global_cooldown_ms };
        let (mut model, mut breaker, mut now) = (Model::default(), Breaker::default(), 0);
        for (pause, step) in steps {
            now += pause;
            match step {
                0 => prop_assert_eq!(breaker.release(&rules, now), model.release(&rules, now)),
                1 => breaker = Breaker::from_bytes(&breaker.to_bytes()).expect("its own bytes"),
                // Most of what happens is matches.
                _ => prop_assert_eq!(breaker.admit(&rules, now, 1), model.admit(&rules, now)),
            }
            prop_assert_eq!(breaker.release_at(), model.open_until(&rules));
            prop_assert!(breaker.passed.len() as u64 <= global_max);
        }
    }
}
