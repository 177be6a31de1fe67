//! Regular expressions whose work is bounded: a search counts its steps, and can be stopped at any of them.
//!
//! A step is one state of the automaton at one byte. A search of `n` bytes takes at most `cost × n` steps, about 5 ns
//! each, and nearly always far fewer. One that might take more than `MAX_PLAIN_STEPS` does not go to the usual engines,
//! which cannot be stopped: a lazy DFA that gives up early tries first, then a simulation that asks its meter.

mod meter;
mod simulation;

pub use meter::{Meter, SearchEnd};

use memchr::memrchr;
use regex_automata::hybrid::dfa::{Cache, DFA};
use regex_automata::meta::Regex;
use regex_automata::nfa::thompson::{self, NFA};
use regex_automata::{Input, MatchKind, PatternSet};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;
use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

/// The maximum length of a pattern.
pub const MAX_PATTERN_LEN: usize = 4096;
/// The maximum size of all compiled regular expressions.
const MAX_REGEX_BYTES: usize = 2 << 20;
/// The size of the cache of a lazy DFA. A search that fills it clears it and continues.
const MAX_REGEX_CACHE_BYTES: usize = 1 << 20;
/// The memory of a state in a compiled expression, forwards and backwards. Transitions of large classes count as states,
/// for they take time like states.
const BYTES_PER_STATE: u64 = 48;
/// The most steps of a search that cannot be stopped: a sixth of a second if all are taken.
const MAX_PLAIN_STEPS: u64 = 1 << 25;
/// The cost up to which no search needs a meter, since a window of 64 KiB stays below `MAX_PLAIN_STEPS`.
const MAX_UNMETERED_COST: u64 = MAX_PLAIN_STEPS >> 16;
/// Clears of its cache after which a lazy DFA may give up.
const MIN_CACHE_CLEARS: usize = 2;

/// One or more regular expressions, searched together.
#[derive(Debug)]
pub struct BoundedRegex {
    regex: Regex,
    kind: MatchKind,
    cost: u64,
    /// Kept if a search may have to be stopped.
    hirs: Vec<Hir>,
    stoppable: OnceLock<Option<Stoppable>>,
}

/// Engines for a search that may have to be stopped, built when the first one is needed.
#[derive(Debug)]
struct Stoppable {
    nfa: NFA,
    dfa: Option<DFA>,
    cache: Mutex<Option<Cache>>,
}

/// Parses a pattern. Output need not be UTF-8, so matches need not be either.
pub fn parse(pattern: &str) -> Result<Hir, String> {
    if pattern.len() > MAX_PATTERN_LEN {
        return Err(format!("must be at most {MAX_PATTERN_LEN} bytes, not {}", pattern.len()));
    }
    ParserBuilder::new().utf8(false).build().parse(pattern).map_err(|e| e.to_string())
}

impl BoundedRegex {
    /// Compiles expressions with bounded memory.
    pub fn new(hirs: &[Hir], kind: MatchKind) -> Result<BoundedRegex, String> {
        let config = Regex::config()
            .match_kind(kind)
            .utf8_empty(false)
            .nfa_size_limit(Some(MAX_REGEX_BYTES))
            .hybrid_cache_capacity(MAX_REGEX_CACHE_BYTES)
            .onepass(false)
            .dfa(false);
        let regex = Regex::builder().configure(config).build_many_from_hir(hirs).map_err(|e| match e.size_limit() {
            Some(limit) => format!("the regular expressions are too large: compiled they take more than {limit} bytes"),
            None => e.to_string(),
        })?;
        let cost = (regex.memory_usage() as u64 / BYTES_PER_STATE).max(1);
        let hirs = if cost > MAX_UNMETERED_COST { hirs.to_vec() } else { Vec::new() };
        Ok(BoundedRegex { regex, kind, cost, hirs, stoppable: OnceLock::new() })
    }

    /// Compiles one expression, for `is_match`.
    pub fn one(pattern: &str) -> Result<BoundedRegex, String> {
        BoundedRegex::new(&[parse(pattern)?], MatchKind::LeftmostFirst)
    }

    /// Returns the most steps that a search takes per byte.
    pub fn cost(&self) -> u64 {
        self.cost
    }

    pub fn is_match(&self, text: &[u8], meter: &Meter) -> bool {
        self.first(text, 0..text.len(), meter).is_some()
    }

    /// Returns the first expression of the list that matches within `span`; it sees the text around it. Returns None also
    /// if the meter stopped the search.
    pub fn first(&self, text: &[u8], span: Range<usize>, meter: &Meter) -> Option<usize> {
        let len = span.len() as u64;
        let steps = len.saturating_mul(self.cost);
        if self.cost > MAX_UNMETERED_COST {
            let plain = steps <= MAX_PLAIN_STEPS;
            if !meter.charge(len, if plain { steps } else { 0 }) {
                return None;
            }
            if !plain {
                return self.stoppable()?.first(text, span, meter);
            }
        }
        let input = Input::new(text).span(span);
        if self.kind == MatchKind::LeftmostFirst {
            return self.regex.search_half(&input.earliest(true)).map(|found| found.pattern().as_usize());
        }
        let mut which = PatternSet::new(self.regex.pattern_len());
        self.regex.which_overlapping_matches(&input, &mut which);
        which.iter().next().map(|first| first.as_usize())
    }

    /// Returns a position at or after `from`, which starts a line, in a line that may match. No line before it matches.
    /// A match must be within one line.
    pub fn candidate(&self, lines: &[u8], from: usize, meter: &Meter) -> Option<usize> {
        // A match is within one line, so its end identifies the line like its start, and costs one search less.
        let search = |range: Range<usize>| {
            let found = self.regex.search_half(&Input::new(lines).range(range).earliest(true));
            found.map(|found| found.offset())
        };
        if self.cost <= MAX_UNMETERED_COST {
            return search(from..lines.len());
        }
        let max = (MAX_PLAIN_STEPS / self.cost).max(1) as usize;
        let mut at = from;
        while at < lines.len() {
            let rest = lines.get(at..).unwrap_or_default();
            let len = match rest.get(..max) {
                None => rest.len(),
                // A line that is too long to be searched here is a candidate.
                Some(some) => match memrchr(b'\n', some) {
                    None => return Some(at),
                    Some(newline) => newline + 1,
                },
            };
            if !meter.charge(len as u64, self.cost.saturating_mul(len as u64)) {
                return None;
            }
            let found = search(at..at + len);
            if found.is_some() {
                return found;
            }
            at += len;
        }
        None
    }

    fn stoppable(&self) -> Option<&Stoppable> {
        self.stoppable.get_or_init(|| Stoppable::new(&self.hirs, self.cost)).as_ref()
    }
}

/// Returns the length of text to read for one search of a pattern of this cost, at most `max`.
pub fn piece_len(cost: u64, max: usize) -> usize {
    const MIN_PIECE_LEN: usize = 4096;
    usize::try_from(MAX_PLAIN_STEPS / cost.max(1)).unwrap_or(max).clamp(MIN_PIECE_LEN.min(max), max)
}

/// Returns true if a pattern of this cost needs no meter.
pub fn is_unmetered(cost: u64) -> bool {
    cost <= MAX_UNMETERED_COST
}

impl Stoppable {
    fn new(hirs: &[Hir], cost: u64) -> Option<Stoppable> {
        let config = thompson::Config::new().utf8(false).nfa_size_limit(Some(MAX_REGEX_BYTES));
        // It was compiled before, within the same bounds.
        let nfa = thompson::Compiler::new().configure(config).build_many_from_hir(hirs).ok()?;
        // A new state takes as long as `cost` bytes: a DFA that finds too few bytes for each is slower than it looks.
        let bytes_per_state = usize::try_from(cost / 8).unwrap_or(usize::MAX).max(10);
        let config = DFA::config()
            .match_kind(MatchKind::All)
            .unicode_word_boundary(true)
            .cache_capacity(MAX_REGEX_CACHE_BYTES)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(MIN_CACHE_CLEARS))
            .minimum_bytes_per_state(Some(bytes_per_state));
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa.clone()).ok();
        Some(Stoppable { nfa, dfa, cache: Mutex::new(None) })
    }

    fn first(&self, text: &[u8], span: Range<usize>, meter: &Meter) -> Option<usize> {
        if let Some(dfa) = &self.dfa {
            let kept = self.cache.lock().unwrap_or_else(PoisonError::into_inner).take();
            let mut cache = kept.unwrap_or_else(|| dfa.create_cache());
            let mut which = PatternSet::new(dfa.pattern_len());
            let decided =
                dfa.try_which_overlapping_matches(&mut cache, &Input::new(text).span(span.clone()), &mut which);
            *self.cache.lock().unwrap_or_else(PoisonError::into_inner) = Some(cache);
            if decided.is_ok() {
                return which.iter().next().map(|first| first.as_usize());
            }
        }
        simulation::first(&self.nfa, text, span, meter)
    }
}

#[cfg(test)]
mod tests;
