//! The breaker: trip, suppression, release, and the state after a restart.

use super::super::{Admission, Breaker, BreakerConfig};
use Admission::{Pass, Refuse, ReleaseFirst, Trip};
use proptest::prelude::*;

const CONFIG: BreakerConfig = BreakerConfig { global_max: 15, global_window_ms: 10_000, global_cooldown_ms: 30_000 };

fn run(config: &BreakerConfig, breaker: &mut Breaker, times: impl IntoIterator<Item = u64>) -> Vec<Admission> {
    times.into_iter().map(|now| breaker.admit(config, now, 1)).collect()
}

#[test]
fn the_sixteenth_match_in_ten_seconds_trips_the_breaker_and_all_are_counted_until_the_release() {
    let mut breaker = Breaker::default();
    assert_eq!(run(&CONFIG, &mut breaker, 0..15), [Pass; 15]);
    assert_eq!(breaker.release_at(), None);
    assert_eq!(run(&CONFIG, &mut breaker, [9_999, 10_000, 39_998]), [Trip, Refuse, Refuse]);
    assert_eq!((breaker.release_at(), breaker.release(&CONFIG, 39_998)), (Some(39_999), None));
    assert_eq!((breaker.release(&CONFIG, 39_999), breaker.release(&CONFIG, 39_999)), (Some(3), None));
    assert_eq!(run(&CONFIG, &mut breaker, 39_999..40_015), [[Pass; 15].as_slice(), &[Trip]].concat());
}

#[test]
fn a_match_that_is_ten_seconds_old_does_not_count() {
    let mut breaker = Breaker::default();
    assert_eq!(run(&CONFIG, &mut breaker, 0..15), [Pass; 15]);
    assert_eq!(run(&CONFIG, &mut breaker, [10_000, 10_000]), [Pass, Trip]);
}

#[test]
fn a_match_after_the_suppression_waits_for_the_release_and_is_not_counted() {
    let mut breaker = Breaker::default();
    let config = BreakerConfig { global_max: 1, ..CONFIG };
    assert_eq!(run(&config, &mut breaker, [0, 1, 30_001, 30_001]), [Pass, Trip, ReleaseFirst, ReleaseFirst]);
    assert_eq!((breaker.release(&config, 30_001), breaker.admit(&config, 30_001, 1)), (Some(1), Pass));
}

#[test]
fn with_a_maximum_of_zero_every_match_trips_the_breaker() {
    let mut breaker = Breaker::default();
    let config = BreakerConfig { global_max: 0, ..CONFIG };
    assert_eq!(run(&config, &mut breaker, [5, 6, 30_005]), [Trip, Refuse, ReleaseFirst]);
    assert_eq!((breaker.release(&config, 30_005), breaker.admit(&config, 30_005, 1)), (Some(2), Trip));
}

#[test]
fn a_restart_changes_nothing() {
    let mut breaker = Breaker::default();
    assert_eq!(run(&CONFIG, &mut breaker, 0..15), [Pass; 15]);
    assert_eq!(Breaker::from_bytes(&breaker.to_bytes()), Some(breaker.clone()));
    assert_eq!(run(&CONFIG, &mut breaker, [20, 21]), [Trip, Refuse]);
    assert_eq!(Breaker::from_bytes(&breaker.to_bytes()), Some(breaker));
}

#[test]
fn the_newest_times_that_fit_are_encoded_and_other_bytes_are_rejected() {
    let mut breaker = Breaker::default();
    let config = BreakerConfig { global_max: 2_000, ..CONFIG };
    assert_eq!(run(&config, &mut breaker, 0..1_000), [Pass; 1_000]);
    let bytes = breaker.to_bytes();
    let kept = Breaker::from_bytes(&bytes).map(|kept| (kept.passed.len(), kept.passed.back().copied()));
    assert_eq!((bytes.len(), kept), (4096, Some((510, Some(999)))));
    let invalid: [&[u8]; 4] = [b"", &[0; 15], &[0; 17], &[0; 4104]];
    assert_eq!(invalid.map(Breaker::from_bytes), [None, None, None, None]);
}

#[test]
fn a_restarted_clock_does_not_suppress_all_matches_forever() {
    let mut breaker = Breaker { passed: [900_000; 15].into(), open_until: None, dropped: 0 };
    assert_eq!(breaker.admit(&CONFIG, 5, 1), Pass);
    let mut breaker = Breaker { passed: [].into(), open_until: Some(900_000), dropped: 7 };
    assert_eq!((breaker.release(&CONFIG, 5), breaker.release_at()), (None, Some(30_005)));
    assert_eq!(breaker.release(&CONFIG, 30_005), Some(7));
}

/// A model that keeps every match and release, and computes every answer from them.
#[derive(Default)]
struct Model {
    past: Vec<(u64, Step)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Step {
    Admitted(Admission),
    Released,
}

impl Model {
    /// Returns the matches after the last release.
    fn period(&self) -> &[(u64, Step)] {
        let last = self.past.iter().rposition(|(_, step)| *step == Step::Released);
        self.past.get(last.map_or(0, |i| i + 1)..).unwrap_or_default()
    }

    fn open_until(&self, config: &BreakerConfig) -> Option<u64> {
        let trip = self.period().iter().find(|(_, step)| *step == Step::Admitted(Trip));
        trip.map(|(time, _)| time + config.global_cooldown_ms)
    }

    fn count(&self, of: &[Admission], since: impl Fn(u64) -> bool) -> u64 {
        let admitted = |step: &Step| matches!(step, Step::Admitted(admission) if of.contains(admission));
        self.period().iter().filter(|(time, step)| admitted(step) && since(*time)).count() as u64
    }

    fn admit(&mut self, config: &BreakerConfig, now: u64) -> Admission {
        let recent = self.count(&[Pass], |time| now - time < config.global_window_ms);
        let admission = match self.open_until(config) {
            Some(until) if now >= until => ReleaseFirst,
            Some(_) => Refuse,
            None if recent + 1 > config.global_max => Trip,
            None => Pass,
        };
        self.past.push((now, Step::Admitted(admission)));
        admission
    }

    fn release(&mut self, config: &BreakerConfig, now: u64) -> Option<u64> {
        let dropped = self.count(&[Trip, Refuse], |_| true);
        self.open_until(config).filter(|until| now >= *until)?;
        self.past.push((now, Step::Released));
        Some(dropped)
    }
}

proptest! {
    #[test]
    fn a_model_that_keeps_all_matches_decides_the_same(
        global_max in 0u64..5,
        global_window_ms in 0u64..12,
        global_cooldown_ms in 0u64..15,
        steps in prop::collection::vec((0u64..5, 0u8..6), 0..120),
    ) {
        let config = BreakerConfig { global_max, global_window_ms, global_cooldown_ms };
        let (mut model, mut breaker, mut now) = (Model::default(), Breaker::default(), 0);
        for (pause, step) in steps {
            now += pause;
            match step {
                0 => prop_assert_eq!(breaker.release(&config, now), model.release(&config, now)),
                1 => breaker = Breaker::from_bytes(&breaker.to_bytes()).expect("its own bytes"),
                // Most steps are matches.
                _ => prop_assert_eq!(breaker.admit(&config, now, 1), model.admit(&config, now)),
            }
            prop_assert_eq!(breaker.release_at(), model.open_until(&config));
            prop_assert!(breaker.passed.len() as u64 <= global_max);
        }
    }
}
