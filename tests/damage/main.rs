//! The damage run: one random damage to one file of a state directory, a start, and a comparison with the state before.
//!
//! `every_kind_of_damage_to_every_kind_of_file` runs a fixed set. `TOOLD_DAMAGE_ROUNDS=2000` runs that many random rounds of
//! `random_damage` instead of a few, from `TOOLD_DAMAGE_SEED`; `TOOLD_DAMAGE_ROUND=17` repeats one of them, and
//! `TOOLD_DAMAGE_FILES=events/` selects files by the beginning of their path. `TOOLD_DAMAGE_LIVE_INTERVAL=1` has running
//! processes in every round.
// A test that unwraps a None has failed, and the panic names the line: there is no caller to return an error to.
#![allow(clippy::unwrap_used)]

mod decided;
mod harm;
mod judge;
mod live;
mod snapshot;
mod template;

use harm::{Damage, Random};
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use template::Template;

/// Rounds that run at once. A round mostly waits for a daemon to start and to stop.
const MAX_CONCURRENT: usize = 4;
const DEFAULT_SEED: u64 = 13;
/// Random rounds without `TOOLD_DAMAGE_ROUNDS`.
const DEFAULT_ROUNDS: u64 = 8;
/// One random round of this many has running processes, whose state directory cannot be copied. Without
/// `TOOLD_DAMAGE_LIVE_INTERVAL`.
const LIVE_INTERVAL: u64 = 20;

fn variable(name: &str) -> Option<u64> {
    Some(std::env::var(name).ok()?.parse().unwrap_or_else(|_| panic!("{name} is not a number")))
}

/// Returns true if `TOOLD_DAMAGE_FILES` selects this file. Without it all are selected.
fn is_selected(file: &str) -> bool {
    std::env::var("TOOLD_DAMAGE_FILES").map_or(true, |parts| parts.split(',').any(|part| file.starts_with(part)))
}

#[test]
fn every_kind_of_damage_to_every_kind_of_file_is_reported_and_costs_nothing_else() {
    let template = &Template::build();
    let mut kinds: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for file in template.files.iter().filter(|file| is_selected(file)) {
        kinds.entry(template.kind(file)).or_default().push(file);
    }
    let mut rounds = Vec::new();
    for (i, (_, files)) in kinds.iter().enumerate() {
        for (j, damage) in Damage::ALL.into_iter().enumerate() {
            let mut random = Random::new((i * Damage::ALL.len() + j) as u64);
            rounds.push((random.pick(files).to_string(), damage, random));
        }
    }
    let count = rounds.len();
    let failed = run(count, |i| {
        let (file, damage, random) = &rounds[i];
        template::round(template, file, *damage, random.clone())
    });
    finish(count, &failed);
}

#[test]
fn every_kind_of_damage_to_decisions_fails_closed_and_costs_nothing_else() {
    let cases: Vec<_> = decided::KINDS.iter().flat_map(|kind| Damage::ALL.map(|damage| (*kind, damage))).collect();
    let failed = run(cases.len(), |i| decided::round(cases[i].0, cases[i].1, Random::new(i as u64)));
    finish(cases.len(), &failed);
}

#[test]
fn random_damage_to_decisions_fails_closed_and_costs_nothing_else() {
    let seed = variable("TOOLD_DAMAGE_SEED").unwrap_or(DEFAULT_SEED);
    let rounds: Vec<u64> = match variable("TOOLD_DAMAGE_ROUND") {
        Some(round) => vec![round],
        None => (0..variable("TOOLD_DAMAGE_ROUNDS").unwrap_or(DEFAULT_ROUNDS)).collect(),
    };
    let failed = run(rounds.len(), |i| {
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(rounds[i]));
        let kind = *random.pick(&decided::KINDS);
        let damage = *random.pick(&Damage::ALL);
        decided::round(kind, damage, random).map_err(|why| format!("round {}: {why}", rounds[i]))
    });
    finish(rounds.len(), &failed);
}

#[test]
fn random_damage_is_reported_and_costs_nothing_else() {
    let seed = variable("TOOLD_DAMAGE_SEED").unwrap_or(DEFAULT_SEED);
    let rounds: Vec<u64> = match variable("TOOLD_DAMAGE_ROUND") {
        Some(round) => vec![round],
        None => (0..variable("TOOLD_DAMAGE_ROUNDS").unwrap_or(DEFAULT_ROUNDS)).collect(),
    };
    let live_interval = variable("TOOLD_DAMAGE_LIVE_INTERVAL").unwrap_or(LIVE_INTERVAL).max(1);
    let template = &Template::build();
    let files: Vec<&str> = template.files.iter().map(String::as_str).filter(|file| is_selected(file)).collect();
    let failed = run(rounds.len(), |i| {
        let round = rounds[i];
        let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(round));
        let damage = *random.pick(&Damage::ALL);
        if round % live_interval == live_interval - 1 {
            return live::round(damage, random).map_err(|why| format!("round {round} of seed {seed}, {why}"));
        }
        let file = random.pick(&files).to_string();
        template::round(template, &file, damage, random).map_err(|why| format!("round {round} of seed {seed}, {why}"))
    });
    finish(rounds.len(), &failed);
}

/// Runs the rounds, several at a time. Returns the failures.
fn run(count: usize, round: impl Fn(usize) -> Result<(), String> + Sync) -> Vec<String> {
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..MAX_CONCURRENT {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= count {
                        return;
                    }
                    let ran = catch_unwind(AssertUnwindSafe(|| round(i)));
                    let why = match ran {
                        Ok(Ok(())) => continue,
                        Ok(Err(why)) => why,
                        Err(panic) => format!("round {i}: {}", panic_text(panic.as_ref())),
                    };
                    eprintln!("FAILED {why}");
                    failed.lock().unwrap().push(why);
                }
            });
        }
    });
    failed.into_inner().unwrap()
}

pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(ToString::to_string)).unwrap_or_default()
}

fn finish(count: usize, failed: &[String]) {
    assert!(failed.is_empty(), "{} of {count} rounds failed:\n{}", failed.len(), failed.join("\n"));
    println!("{count} rounds");
}
