//! Measures one search, turn by turn, and ends it when it is too slow or its caller has gone.

use std::cell::Cell;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The length that a limit is given for. A shorter search may take as long.
const MIB: u64 = 1 << 20;
/// The steps after which the clock is read.
const CHECK_STEPS: u64 = 1 << 22;

/// The reason why a search was ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchEnd {
    /// It took more computing time than the limit allows for what it searched.
    TooSlow,
    /// Its caller has gone.
    Cancelled,
}

/// The work of one search, in computing time of the threads that run it: a busy machine does not make a pattern slow.
pub struct Meter {
    /// None: unlimited.
    limit: Option<Limit>,
    cancelled: Arc<AtomicBool>,
    turn_start_ns: Cell<u64>,
    spent_ns: Cell<u64>,
    /// The length of all text that was searched.
    bytes: Cell<u64>,
    /// Steps since the clock was read.
    steps: Cell<u64>,
    ended: Cell<Option<SearchEnd>>,
}

struct Limit {
    ms_per_mib: u64,
    /// Reads the computing time of the current thread.
    clock_ns: fn() -> u64,
}

impl Meter {
    pub fn new(ms_per_mib: u64, clock_ns: fn() -> u64) -> Meter {
        Meter { limit: Some(Limit { ms_per_mib, clock_ns }), ..Meter::unlimited() }
    }

    pub fn unlimited() -> Meter {
        Meter {
            limit: None,
            cancelled: Arc::default(),
            turn_start_ns: Cell::new(0),
            spent_ns: Cell::new(0),
            bytes: Cell::new(0),
            steps: Cell::new(0),
            ended: Cell::new(None),
        }
    }

    /// Starts a turn on the current thread. The search ends when `cancelled` is set.
    pub fn begin_turn(&mut self, cancelled: Arc<AtomicBool>) {
        self.cancelled = cancelled;
        self.turn_start_ns.set(self.now_ns());
    }

    /// Ends the turn, on the same thread.
    pub fn end_turn(&self) {
        self.spent_ns.set(self.spent_ns.get() + self.turn_ns());
        self.turn_start_ns.set(self.now_ns());
        self.check();
    }

    /// Returns the computing time of this turn.
    pub fn turn_ns(&self) -> u64 {
        self.now_ns().saturating_sub(self.turn_start_ns.get())
    }

    /// Counts text that is searched, and steps. Returns false if the search has ended.
    pub fn charge(&self, bytes: u64, steps: u64) -> bool {
        self.bytes.set(self.bytes.get().saturating_add(bytes));
        self.steps.set(self.steps.get().saturating_add(steps));
        if self.steps.get() >= CHECK_STEPS {
            self.steps.set(0);
            self.check();
        }
        self.ended.get().is_none()
    }

    /// Returns the reason if the search was ended. Its results are then incomplete.
    pub fn ended(&self) -> Option<SearchEnd> {
        self.ended.get()
    }

    fn check(&self) {
        let Some(limit) = &self.limit else { return };
        let allowed_ns =
            u128::from(limit.ms_per_mib) * 1_000_000 * u128::from(self.bytes.get().max(MIB)) / u128::from(MIB);
        if self.cancelled.load(Ordering::Relaxed) {
            self.ended.set(Some(SearchEnd::Cancelled));
        } else if u128::from(self.spent_ns.get() + self.turn_ns()) > allowed_ns {
            self.ended.set(Some(SearchEnd::TooSlow));
        }
    }

    fn now_ns(&self) -> u64 {
        self.limit.as_ref().map_or(0, |limit| (limit.clock_ns)())
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter").field("spent_ns", &self.spent_ns).field("ended", &self.ended).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    thread_local!(static NOW_NS: Cell<u64> = const { Cell::new(0) });

    fn meter() -> Meter {
        let mut meter = Meter::new(100, || NOW_NS.get());
        meter.begin_turn(Arc::default());
        meter
    }

    #[test]
    fn a_search_may_take_the_limit_per_mebibyte_and_the_first_one_at_once() {
        let meter = meter();
        NOW_NS.set(NOW_NS.get() + 100_000_000);
        assert!(meter.charge(10, CHECK_STEPS));
        NOW_NS.set(NOW_NS.get() + 1);
        assert!(!meter.charge(10, CHECK_STEPS));
        assert_eq!(meter.ended(), Some(SearchEnd::TooSlow));
        let meter = self::meter();
        NOW_NS.set(NOW_NS.get() + 1_000_000_000);
        assert!(meter.charge(10 * MIB, CHECK_STEPS));
        meter.end_turn();
        assert_eq!(meter.ended(), None);
    }

    #[test]
    fn time_between_turns_does_not_count_and_a_cancelled_search_ends() {
        let mut meter = meter();
        NOW_NS.set(NOW_NS.get() + 60_000_000);
        meter.end_turn();
        NOW_NS.set(NOW_NS.get() + 900_000_000);
        meter.begin_turn(Arc::default());
        NOW_NS.set(NOW_NS.get() + 40_000_000);
        assert!(meter.charge(1, CHECK_STEPS));
        meter.begin_turn(Arc::new(AtomicBool::new(true)));
        assert!(!meter.charge(1, CHECK_STEPS));
        assert_eq!(meter.ended(), Some(SearchEnd::Cancelled));
    }
}
