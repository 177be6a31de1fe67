//! The caller of tools: a script, a kernel, or one call over the socket. It has the authority, the budget and the journal of
//! its calls, and answers a repeated call from that journal.

use super::journal::{Accepted, CallEntry, CallJournal, CallOutcome, Ended, FoundCalls, Place};
use super::provider::{CallFacts, CallScope, Resumed};
use super::running_call::{Cancel, Running};
use crate::call_clock::Questions;
use crate::clock::wall_ms;
use serde_json::Value;
use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{Semaphore, watch};
use toold_proto::approval::Caller;
use toold_proto::{ErrorKind, RpcError};
use toold_shim::hooks;

/// The most refusals that are journalled. More are only counted: a script that floods its channel must not fill the disk.
const MAX_JOURNALLED_REFUSALS: u64 = 200;

/// The tools that a caller may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllowedTools {
    /// Those that its session may use.
    Session,
    /// These only. None, if the list is empty.
    Only(Vec<String>),
}

/// The bounds of a caller.
#[derive(Debug, Clone, Copy)]
pub struct CallBounds {
    /// The most calls; of a kernel, in one cell. None: no bound.
    pub max_calls: Option<u64>,
    pub max_parallel: usize,
    /// The time of a call without one of its own. None: no limit.
    pub call_timeout_ms: Option<u64>,
    pub max_result_bytes: u64,
}

/// A caller of tools.
pub struct Owner {
    /// Before the id of each call, so that it is unique for ever: the id of a process.
    key: String,
    pub scope: CallScope,
    pub by: Caller,
    pub tools: AllowedTools,
    pub bounds: CallBounds,
    /// The process that calls. None: a client of the socket.
    pub script: Option<toold_proto::ProcId>,
    /// The directory for results that are too long. None: such a result is an error.
    pub result_dir: Option<PathBuf>,
    /// Calls that may run at the same time.
    pub parallel: Semaphore,
    /// Calls that were accepted, for the view of the process.
    pub made: Arc<AtomicU64>,
    /// The questions that its calls wait for.
    pub asking: Questions,
    state: Mutex<OwnerState>,
}

/// A call in memory.
struct KnownCall {
    place: Option<Place>,
    accepted_ms: u64,
    cell: u64,
    /// The facts that an earlier daemon recorded. None in a call of this one.
    facts: Option<Value>,
    ended: Option<EndedCall>,
    /// It runs, in this daemon.
    running: Option<Running>,
}

#[derive(Clone)]
struct EndedCall {
    /// A verdict refused it: it does not count.
    is_refused: bool,
    /// None: the journal could not be written, or there is none.
    place: Option<Place>,
    outcome: Option<Arc<CallOutcome>>,
}

#[derive(Default)]
struct OwnerState {
    /// None: no caller can come back for the answer.
    journal: Option<CallJournal>,
    calls: HashMap<String, KnownCall>,
    /// Calls accepted in the present cell, or of all.
    counted: u64,
    refused: u64,
    /// Those before the present cell.
    refused_before: u64,
    /// Its authority has ended.
    is_retired: bool,
    /// The cell whose calls are accepted. 0: it has no cells.
    cell: u64,
    /// The most calls of that cell. None: those of `bounds`.
    max_calls: Option<u64>,
}

/// The state of a call that a caller makes.
pub enum Begin {
    /// It is new, or an earlier daemon accepted it: the caller of this function runs it, and calls `end`.
    Run {
        resumed: Option<Resumed>,
        done: watch::Sender<Option<Arc<CallOutcome>>>,
        cancel: Arc<Cancel>,
    },
    /// It runs already.
    Attach(Running),
    Answered(Arc<CallOutcome>),
}

/// The parts of a new owner.
pub struct OwnerInit {
    pub key: String,
    pub scope: CallScope,
    pub by: Caller,
    pub tools: AllowedTools,
    pub bounds: CallBounds,
    pub script: Option<toold_proto::ProcId>,
    pub result_dir: Option<PathBuf>,
    pub journal: Option<CallJournal>,
    pub made: Arc<AtomicU64>,
    pub asking: Questions,
}

impl Owner {
    pub fn new(init: OwnerInit) -> Owner {
        let OwnerInit { key, scope, by, tools, bounds, script, result_dir, journal, made, asking } = init;
        Owner {
            key,
            scope,
            by,
            tools,
            bounds,
            script,
            result_dir,
            parallel: Semaphore::new(bounds.max_parallel.clamp(1, Semaphore::MAX_PERMITS)),
            made,
            asking,
            state: Mutex::new(OwnerState { journal, ..OwnerState::default() }),
        }
    }

    /// Takes over what an earlier daemon journalled.
    pub fn restore(&self, found: &FoundCalls) {
        let mut state = self.lock();
        let mut made = 0;
        for (entry, place) in &found.entries {
            match entry {
                CallEntry::Call(accepted) => {
                    made += 1;
                    let (place, accepted_ms, cell) = (Some(*place), accepted.at, accepted.cell);
                    let known = KnownCall { place, accepted_ms, cell, facts: None, ended: None, running: None };
                    state.calls.insert(accepted.call.clone(), known);
                }
                CallEntry::Facts { call, facts } => {
                    if let Some(known) = state.calls.get_mut(call) {
                        known.facts = Some(facts.clone());
                    }
                }
                CallEntry::End(ended) => {
                    if let Some(known) = state.calls.get_mut(&ended.call) {
                        let is_refused = ended.outcome.is_refused();
                        known.ended = Some(EndedCall { is_refused, place: Some(*place), outcome: None });
                        if is_refused {
                            made -= 1;
                            state.refused += 1;
                        }
                    }
                }
                CallEntry::Refused { .. } => state.refused += 1,
                CallEntry::Refusals { total } => state.refused = *total,
                CallEntry::Value { .. }
                | CallEntry::Error { .. }
                | CallEntry::Artifact(_)
                | CallEntry::Note { .. }
                | CallEntry::Cell(_)
                | CallEntry::CellStarted { .. }
                | CallEntry::CellStopped { .. }
                | CallEntry::CellEnded(_)
                | CallEntry::Unknown => {}
            }
        }
        state.counted = made;
        self.made.store(made, Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, OwnerState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the id of a call that no other caller has.
    pub fn unique(&self, call: &str) -> Arc<str> {
        format!("{}/{call}", self.key).into()
    }

    /// Returns a call that is known already: its answer, or the run that answers it. None: it is new, or must be resumed.
    pub fn known(&self, call: &str, tool: &str, args: &Value) -> Result<Option<Begin>, RpcError> {
        let state = self.lock();
        let Some(known) = state.calls.get(call) else { return Ok(None) };
        check_same(&state, known, call, tool, args)?;
        match (&known.ended, &known.running) {
            (Some(ended), _) => answer(&state, call, ended).map(|outcome| Some(Begin::Answered(outcome))),
            (None, Some(running)) => Ok(Some(Begin::Attach(running.clone()))),
            (None, None) => Ok(None),
        }
    }

    /// Returns true if a call was accepted before: by an earlier daemon, if it does not run.
    pub fn has_accepted(&self, call: &str) -> bool {
        self.lock().calls.contains_key(call)
    }

    /// Accepts a call: counts it and records it. A call that an earlier daemon accepted does not count again.
    pub fn accept(&self, call: &str, tool: &str, args: &Value, cell: u64) -> Result<Begin, RpcError> {
        let mut state = self.lock();
        if state.is_retired || state.cell != cell {
            return Err(retired());
        }
        let (sender, done) = watch::channel(None);
        let cancel = Arc::new(Cancel::default());
        let running = Running { done, cancel: cancel.clone() };
        if let Some(known) = state.calls.get_mut(call) {
            if let Some(running) = &known.running {
                return Ok(Begin::Attach(running.clone()));
            }
            if let Some(ended) = known.ended.clone() {
                return answer(&state, call, &ended).map(Begin::Answered);
            }
            known.running = Some(running);
            let resumed = Some(Resumed { accepted_ms: known.accepted_ms, facts: known.facts.clone() });
            return Ok(Begin::Run { resumed, done: sender, cancel });
        }
        if state.max_calls.or(self.bounds.max_calls).is_some_and(|max| state.counted >= max) {
            let max = state.counted;
            let unit = if cell == 0 { "script" } else { "cell" };
            return Err(RpcError::limit("script.max_calls", format!("the {unit} has made its {max} calls")));
        }
        let accepted_ms = wall_ms();
        let entry = CallEntry::Call(Accepted {
            call: call.into(),
            tool: tool.into(),
            args: args.clone(),
            at: accepted_ms,
            cell,
        });
        let place = state.journal.as_mut().map(|journal| journal.append(&entry)).transpose().map_err(journal_error)?;
        state.counted += 1;
        self.made.fetch_add(1, Relaxed);
        let known = KnownCall { place, accepted_ms, cell, facts: None, ended: None, running: Some(running) };
        state.calls.insert(call.into(), known);
        drop(state);
        hooks::at("call.accepted");
        Ok(Begin::Run { resumed: None, done: sender, cancel })
    }

    /// Records the end of a call, before it is answered. Returns the milliseconds since it was accepted.
    pub fn end(&self, call: &str, outcome: &Arc<CallOutcome>, process: Option<String>) -> u64 {
        hooks::at("call.done");
        let mut state = self.lock();
        let at = wall_ms();
        let entry = CallEntry::End(Ended { call: call.into(), at, outcome: (**outcome).clone(), process });
        let place = match state.journal.as_mut().map(|journal| journal.append(&entry)).transpose() {
            Ok(place) => place,
            // The answer goes out all the same; after a crash the call would be resumed.
            Err(e) => {
                tracing::error!(%e, call, "failed to journal the end of a call");
                None
            }
        };
        let is_refused = outcome.is_refused();
        let outcome = place.is_none().then(|| outcome.clone());
        let (mut ms, mut cell) = (0, None);
        if let Some(known) = state.calls.get_mut(call) {
            (known.ended, known.running) = (Some(EndedCall { is_refused, place, outcome }), None);
            (ms, cell) = (at.saturating_sub(known.accepted_ms), Some(known.cell));
        }
        if is_refused {
            state.refused += 1;
            self.made.fetch_sub(1, Relaxed);
            state.counted -= u64::from(cell == Some(state.cell) && state.counted > 0);
        }
        drop(state);
        hooks::at("call.ended");
        ms
    }

    /// Counts a call that was refused.
    pub fn note_refusal(&self, tool: &str, kind: &str, cell: u64) {
        let mut state = self.lock();
        state.refused += 1;
        if state.refused - state.refused_before <= MAX_JOURNALLED_REFUSALS
            && let Some(journal) = &mut state.journal
        {
            let entry = CallEntry::Refused { tool: tool.into(), kind: kind.into(), at: wall_ms(), cell };
            let _ = journal.append(&entry);
        }
    }

    /// Returns the number of calls that were refused.
    pub fn refused(&self) -> u64 {
        self.lock().refused
    }

    /// Records something that the caller reports.
    pub fn report(&self, entry: &CallEntry) -> io::Result<()> {
        match &mut self.lock().journal {
            Some(journal) => journal.append(entry).map(|_| ()),
            None => Ok(()),
        }
    }

    /// Records a fact that is read again by its place.
    pub fn record(&self, entry: &CallEntry) -> io::Result<Place> {
        self.lock().journal.as_mut().ok_or(io::ErrorKind::NotFound)?.append(entry)
    }

    /// Reads a fact again.
    pub fn read(&self, place: Place) -> io::Result<CallEntry> {
        self.lock().journal.as_ref().ok_or(io::ErrorKind::NotFound)?.read(place)
    }

    /// Ends the authority: every later call is refused. Returns the calls that run.
    pub fn retire(&self) -> Vec<(String, Running)> {
        let mut state = self.lock();
        let total = state.refused;
        if !state.is_retired
            && total > MAX_JOURNALLED_REFUSALS
            && let Some(journal) = &mut state.journal
        {
            let _ = journal.append(&CallEntry::Refusals { total });
        }
        state.is_retired = true;
        running_calls(&state, None)
    }

    pub fn is_retired(&self) -> bool {
        self.lock().is_retired
    }

    /// Returns the cell whose calls are accepted. 0: it has no cells.
    pub fn present_cell(&self) -> u64 {
        self.lock().cell
    }

    /// Begins a cell with its own budget: calls of earlier ones are refused from now on.
    pub fn begin_cell(&self, cell: u64, max_calls: u64) {
        let mut state = self.lock();
        // The answers of earlier cells are not asked for any more.
        state.calls.retain(|_, known| known.cell == cell || known.running.is_some());
        // An earlier daemon may have accepted calls of this one.
        let counts =
            |known: &&KnownCall| known.cell == cell && !known.ended.as_ref().is_some_and(|ended| ended.is_refused);
        let counted = state.calls.values().filter(counts).count() as u64;
        (state.cell, state.counted, state.max_calls) = (cell, counted, Some(max_calls));
        state.refused_before = state.refused;
    }

    /// Ends a cell: its calls are refused from now on. Returns those that run.
    pub fn end_cell(&self, cell: u64) -> Vec<(String, Running)> {
        let mut state = self.lock();
        if state.cell == cell {
            // No call names this cell.
            state.cell = u64::MAX;
        }
        running_calls(&state, Some(cell))
    }

    /// Returns a call that runs.
    pub fn running(&self, call: &str) -> Option<Running> {
        self.lock().calls.get(call)?.running.clone()
    }

    /// Returns the calls that an earlier daemon accepted and no caller has asked for again.
    pub fn unanswered(&self) -> Vec<(String, CallEntry)> {
        let state = self.lock();
        let open = state.calls.iter().filter(|(_, known)| known.ended.is_none() && known.running.is_none());
        let read = |(call, known): (&String, &KnownCall)| {
            Some((call.clone(), state.journal.as_ref()?.read(known.place?).ok()?))
        };
        open.filter_map(read).collect()
    }
}

fn running_calls(state: &OwnerState, cell: Option<u64>) -> Vec<(String, Running)> {
    let of_cell = |known: &&KnownCall| cell.is_none_or(|cell| known.cell == cell);
    let running = |(call, known): (&String, &KnownCall)| Some((call.clone(), known.running.clone()?));
    state.calls.iter().filter(|(_, known)| of_cell(known)).filter_map(running).collect()
}

/// Refuses a call whose id was used for another one.
fn check_same(state: &OwnerState, known: &KnownCall, call: &str, tool: &str, args: &Value) -> Result<(), RpcError> {
    let (Some(place), Some(journal)) = (known.place, &state.journal) else { return Ok(()) };
    match journal.read(place).map_err(journal_error)? {
        CallEntry::Call(earlier) if earlier.tool == tool && earlier.args == *args => Ok(()),
        _ => {
            let message = format!("the call {call} was made before with another tool or other arguments");
            Err(RpcError::new(ErrorKind::Conflict, message).with("call", call))
        }
    }
}

fn answer(state: &OwnerState, call: &str, ended: &EndedCall) -> Result<Arc<CallOutcome>, RpcError> {
    if let Some(outcome) = &ended.outcome {
        return Ok(outcome.clone());
    }
    let read = ended.place.zip(state.journal.as_ref()).map(|(place, journal)| journal.read(place));
    match read.transpose().map_err(journal_error)? {
        Some(CallEntry::End(ended)) => Ok(Arc::new(ended.outcome)),
        _ => {
            Err(RpcError::new(ErrorKind::OutcomeUnknown, "the journal has lost the answer of the call")
                .with("call", call))
        }
    }
}

fn journal_error(e: io::Error) -> RpcError {
    RpcError::new(ErrorKind::Unavailable, format!("the journal of calls cannot be written: {e}; free some disk space"))
}

/// Returns the error of a call after the end of its authority.
pub fn retired() -> RpcError {
    let message = "denied: the script or cell that made the call has ended, and its authority with it";
    RpcError::new(ErrorKind::Denied, message).with("reason", "retired")
}

/// Records the facts of one call in the journal of its owner.
pub struct OwnerFacts {
    pub owner: Arc<Owner>,
    pub call: String,
}

impl CallFacts for OwnerFacts {
    fn record(&self, facts: Value) -> io::Result<()> {
        let entry = CallEntry::Facts { call: self.call.clone(), facts };
        self.owner.report(&entry)?;
        hooks::at("call.facts");
        Ok(())
    }
}
