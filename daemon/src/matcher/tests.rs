//! Tests bounded expressions against the library's own search, and that a slow one ends.

use super::*;
use proptest::prelude::*;
use std::cell::Cell;
use std::sync::Arc;

/// Takes a minute per mebibyte in the library: its states at each byte are nearly all that it has.
const SLOW: &str = "(?:[ab]{1,30}a){1,30}[c-z]";

thread_local!(static NOW_NS: Cell<u64> = const { Cell::new(0) });

/// Passes a millisecond at each reading.
fn ticking() -> u64 {
    NOW_NS.set(NOW_NS.get() + 1_000_000);
    NOW_NS.get()
}

fn metered(ms_per_mib: u64) -> Meter {
    let mut meter = Meter::new(ms_per_mib, ticking);
    meter.begin_turn(Arc::default());
    meter
}

/// Letters in an order that does not repeat.
fn ab(len: usize) -> Vec<u8> {
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        if state & 1 == 0 { b'a' } else { b'b' }
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn a_slow_search_ends_at_its_limit_and_every_later_one_at_once() {
    let regex = BoundedRegex::new(&[parse(SLOW).expect("valid")], MatchKind::All).expect("it compiles");
    assert!(regex.cost() > MAX_UNMETERED_COST);
    let meter = metered(3);
    assert_eq!(regex.first(&ab(64 * 1024), 0..64 * 1024, &meter), None);
    assert_eq!(meter.ended(), Some(SearchEnd::TooSlow));
    assert_eq!(regex.first(b"abac", 0..4, &meter), None);
    assert_eq!(regex.candidate(b"abac\n", 0, &meter), None);
    assert_eq!(regex.first(b"abac", 0..4, &Meter::unlimited()), Some(0));
}

#[test]
fn a_line_too_long_for_one_search_is_a_candidate() {
    let regex = BoundedRegex::new(&[parse(SLOW).expect("valid")], MatchKind::LeftmostFirst).expect("it compiles");
    let mut lines = b"x\ny\n".to_vec();
    lines.extend(ab(64 * 1024));
    lines.extend(b"\nabac\n");
    assert_eq!(regex.candidate(&lines, 0, &Meter::unlimited()), Some(4));
    let after = 4 + 64 * 1024 + 1;
    assert_eq!(regex.candidate(&lines, after, &Meter::unlimited()), Some(after + 4));
    assert_eq!(regex.candidate(&lines, lines.len(), &Meter::unlimited()), None);
}

#[test]
fn usual_patterns_need_no_meter() {
    for pattern in ["error", "ERROR|panic|warn", r"\berror\b", "^[0-9]+-[0-9]+ (INFO|WARN) .*$", "error.*failed"] {
        let regex = BoundedRegex::one(pattern).expect("it compiles");
        assert!(is_unmetered(regex.cost()), "{pattern}: {}", regex.cost());
    }
}

proptest! {
    #[test]
    fn the_stoppable_search_finds_what_the_library_finds(
        text in "[abc é\u{1b}\n]{0,40}", from in 0_usize..10, cut in 0_usize..10,
        pick in proptest::collection::vec(0_usize..8, 1..4),
    ) {
        let all = [r"\bab", "a{2,5}b$", "^c|é+c", r"[^a]\B.", "(?:a|b)*c", r"\w+ \w+", "(?m)^a$", ""];
        let hirs: Vec<Hir> = pick.iter().map(|i| parse(all[*i]).expect("valid")).collect();
        let text = text.as_bytes();
        let span = from.min(text.len())..text.len().saturating_sub(cut).max(from.min(text.len()));
        let regex = BoundedRegex::new(&hirs, MatchKind::All).expect("it compiles");
        let expected = regex.first(text, span.clone(), &Meter::unlimited());
        let stoppable = Stoppable::new(&hirs, 100).expect("it compiles");
        prop_assert_eq!(simulation::first(&stoppable.nfa, text, span.clone(), &Meter::unlimited()), expected);
        prop_assert_eq!(stoppable.first(text, span, &Meter::unlimited()), expected);
    }
}
