//! Simulates an automaton byte by byte. Slower than every engine of the library, and can be stopped at each byte.

use super::Meter;
use regex_automata::nfa::thompson::{NFA, State};
use regex_automata::util::primitives::StateID;
use std::mem;
use std::ops::Range;

/// Steps that are charged at once.
const CHARGED_STEPS: u64 = 1 << 16;

/// Returns the first expression that matches within `span`. Returns None also if the meter stopped the search.
pub fn first(nfa: &NFA, text: &[u8], span: Range<usize>, meter: &Meter) -> Option<usize> {
    let mut found: Option<usize> = None;
    let (mut current, mut next) = (StateSet::new(nfa), StateSet::new(nfa));
    current.add(nfa, nfa.start_unanchored(), text, span.start);
    for at in span.start..=span.end {
        let byte = text.get(at).copied().filter(|_| at < span.end);
        for i in 0..current.states.len() {
            let Some(id) = current.states.get(i).copied() else { break };
            let to = match (nfa.state(id), byte) {
                (State::Match { pattern_id }, _) => {
                    let this = pattern_id.as_usize();
                    found = Some(found.map_or(this, |found| found.min(this)));
                    None
                }
                (State::ByteRange { trans }, Some(byte)) => trans.matches_byte(byte).then_some(trans.next),
                (State::Sparse(sparse), Some(byte)) => sparse.matches_byte(byte),
                (State::Dense(dense), Some(byte)) => dense.matches_byte(byte),
                // The others were followed when the set was made, and at the end there is no byte.
                _ => None,
            };
            if let Some(to) = to {
                next.add(nfa, to, text, at + 1);
            }
        }
        current.steps += current.states.len() as u64;
        if found == Some(0) {
            break;
        }
        if current.steps + next.steps >= CHARGED_STEPS
            && !meter.charge(0, mem::take(&mut current.steps) + mem::take(&mut next.steps))
        {
            return None;
        }
        mem::swap(&mut current, &mut next);
        next.clear();
    }
    found
}

/// The states at one position, each once.
struct StateSet {
    /// States that take a byte or match.
    states: Vec<StateID>,
    /// The round in which each state was added last.
    added: Vec<u32>,
    round: u32,
    pending: Vec<StateID>,
    steps: u64,
}

impl StateSet {
    fn new(nfa: &NFA) -> StateSet {
        StateSet { states: Vec::new(), added: vec![0; nfa.states().len()], round: 1, pending: Vec::new(), steps: 0 }
    }

    fn clear(&mut self) {
        self.states.clear();
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.added.fill(0);
            self.round = 1;
        }
    }

    /// Adds a state, and all that it leads to without a byte.
    fn add(&mut self, nfa: &NFA, id: StateID, text: &[u8], at: usize) {
        self.pending.push(id);
        while let Some(id) = self.pending.pop() {
            let Some(added) = self.added.get_mut(id.as_usize()).filter(|added| **added != self.round) else { continue };
            *added = self.round;
            self.steps += 1;
            match nfa.state(id) {
                State::ByteRange { .. } | State::Sparse(_) | State::Dense(_) | State::Match { .. } => {
                    self.states.push(id);
                }
                State::Look { look, next } => {
                    if nfa.look_matcher().matches(*look, text, at) {
                        self.pending.push(*next);
                    }
                }
                State::Union { alternates } => self.pending.extend(alternates.iter().copied()),
                State::BinaryUnion { alt1, alt2 } => self.pending.extend([*alt1, *alt2]),
                State::Capture { next, .. } => self.pending.push(*next),
                State::Fail => {}
            }
        }
    }
}
