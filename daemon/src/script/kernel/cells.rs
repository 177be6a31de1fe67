//! The cells of a kernel: the one that runs, those that wait, those that have ended. Each step has its entry in the journal,
//! from which a later daemon makes the same table.

use crate::tools::journal::{CallEntry, EndedCell, FoundCalls, Place, QueuedCell, StopCause};
use std::collections::{BTreeMap, HashMap, VecDeque};

/// The most cells that wait.
pub const MAX_QUEUED_CELLS: usize = 64;
/// The ended cells that are found without reading the whole journal.
const MAX_KNOWN_CELLS: usize = 4096;

/// A cell that has not ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    pub number: u64,
    /// Its entry in the journal, with the code.
    pub place: Place,
    /// It replaces the interpreter, in place of running code.
    pub is_reset: bool,
    pub timeout_ms: Option<u64>,
    pub max_calls: u64,
}

/// The cell that runs: the driver has it, or gets it when it asks.
#[derive(Debug, Clone, PartialEq)]
pub struct RunningCell {
    pub cell: Cell,
    pub started_ms: u64,
    /// The offset of its begin in the journal.
    journal_from: u64,
    pub stop: Option<StopCause>,
    /// The driver has reported that its code runs, so that a signal reaches it.
    pub is_executing: bool,
}

/// The state of a cell, with the part of the journal that is about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CellState {
    Queued,
    Running { journal_from: u64 },
    Ended { journal: (u64, u64) },
}

/// The next thing to do for a driver that asks for a cell.
#[derive(Debug, Clone, PartialEq)]
pub enum CellStep {
    /// There is none.
    Wait,
    /// The cell runs, and the answer that handed it out was lost.
    HandOut(Cell),
    Begin(Cell),
    /// The cell is over, and the interpreter that ran it is gone.
    Over(u64),
}

/// A cell that is known by its number.
#[derive(Debug, Default)]
struct KnownCell {
    request_id: Option<String>,
    /// None: it has not ended.
    journal: Option<(u64, u64)>,
}

/// The cells of one kernel.
#[derive(Debug, Default)]
pub struct Cells {
    last: u64,
    started: u64,
    queue: VecDeque<Cell>,
    running: Option<RunningCell>,
    known: BTreeMap<u64, KnownCell>,
    by_request: HashMap<String, u64>,
    /// Some cells are known only to the journal.
    is_pruned: bool,
    /// Everything in the journal is known here.
    keeps_all: bool,
    /// The last cell was queued, started or ended at this time, in milliseconds since 1970.
    pub active_ms: u64,
    /// Signals to the interpreter that are on their way: no cell begins.
    pub signals: usize,
    /// The reason why no cell is accepted any more.
    pub closed: Option<&'static str>,
}

impl Cells {
    /// Makes the table from a journal.
    pub fn restore(found: &FoundCalls) -> Cells {
        let mut cells = Cells::default();
        cells.apply_all(found);
        cells
    }

    /// Makes the table from a journal, with all cells that ever were.
    pub fn restore_all(found: &FoundCalls) -> Cells {
        let mut cells = Cells { keeps_all: true, ..Cells::default() };
        cells.apply_all(found);
        cells
    }

    fn apply_all(&mut self, found: &FoundCalls) {
        for (entry, place) in &found.entries {
            match entry {
                CallEntry::Cell(cell) => self.queue(cell, *place),
                CallEntry::CellStarted { cell, at, .. } => self.begin(*cell, *place, *at),
                CallEntry::CellStopped { cell, cause, .. } => self.stop(*cell, *cause),
                CallEntry::CellEnded(ended) => self.end(ended, *place),
                CallEntry::Call(_)
                | CallEntry::Facts { .. }
                | CallEntry::End(_)
                | CallEntry::Refused { .. }
                | CallEntry::Refusals { .. }
                | CallEntry::Value { .. }
                | CallEntry::Error { .. }
                | CallEntry::Artifact(_)
                | CallEntry::Note { .. }
                | CallEntry::Unknown => {}
            }
        }
    }

    /// Returns the number of the next cell.
    pub fn next_number(&self) -> u64 {
        self.last + 1
    }

    /// Returns the last cell, if there was one.
    pub fn last(&self) -> Option<u64> {
        (self.last > 0).then_some(self.last)
    }

    /// Returns the number of cells that have started.
    pub fn started(&self) -> u64 {
        self.started
    }

    pub fn is_busy(&self) -> bool {
        self.running.is_some() || !self.queue.is_empty()
    }

    pub fn queued(&self) -> usize {
        self.queue.len()
    }

    pub fn running(&self) -> Option<&RunningCell> {
        self.running.as_ref()
    }

    /// Returns the reset that has not ended.
    pub fn reset(&self) -> Option<u64> {
        let running = self.running.iter().map(|running| &running.cell);
        running.chain(&self.queue).find(|cell| cell.is_reset).map(|cell| cell.number)
    }

    /// Returns the cell of a request. An error: only the journal may know it.
    pub fn by_request(&self, request_id: &str) -> Result<Option<u64>, Pruned> {
        match self.by_request.get(request_id) {
            Some(number) => Ok(Some(*number)),
            None if self.is_pruned => Err(Pruned),
            None => Ok(None),
        }
    }

    /// Returns the state of a cell. An error: only the journal may know it.
    pub fn state(&self, number: u64) -> Result<Option<CellState>, Pruned> {
        if let Some(running) = self.running.as_ref().filter(|running| running.cell.number == number) {
            return Ok(Some(CellState::Running { journal_from: running.journal_from }));
        }
        match self.known.get(&number) {
            Some(KnownCell { journal: Some(journal), .. }) => Ok(Some(CellState::Ended { journal: *journal })),
            Some(KnownCell { journal: None, .. }) => Ok(Some(CellState::Queued)),
            None if self.is_pruned && number > 0 && number <= self.last => Err(Pruned),
            None => Ok(None),
        }
    }

    /// Returns the entry of a cell that has not ended.
    pub fn place(&self, number: u64) -> Option<Place> {
        let running = self.running.iter().map(|running| &running.cell);
        running.chain(&self.queue).find(|cell| cell.number == number).map(|cell| cell.place)
    }

    /// Returns true if a cell neither runs nor waits.
    pub fn has_ended(&self, number: u64) -> bool {
        self.place(number).is_none()
    }

    /// Decides what a driver gets that has finished, or runs, cells up to `after`. Changes only the next number: a journal that
    /// lost lines must not give a number again that the driver knows.
    pub fn step(&mut self, after: u64) -> CellStep {
        self.last = self.last.max(after);
        match &self.running {
            Some(running) if running.cell.number > after => CellStep::HandOut(running.cell.clone()),
            // Its driver reports the end of a cell before it asks: this one is another.
            Some(running) => CellStep::Over(running.cell.number),
            None if self.signals > 0 => CellStep::Wait,
            None => self.queue.front().map_or(CellStep::Wait, |cell| CellStep::Begin(cell.clone())),
        }
    }

    /// Returns true if this cell is the next and nothing keeps it from beginning.
    pub fn can_begin(&self, number: u64) -> bool {
        self.running.is_none() && self.signals == 0 && self.queue.front().is_some_and(|cell| cell.number == number)
    }

    /// Queues a cell that was journalled.
    pub fn queue(&mut self, cell: &QueuedCell, place: Place) {
        let QueuedCell { cell: number, code, request_id, timeout_ms, max_calls, at } = cell;
        self.last = self.last.max(*number);
        self.active_ms = self.active_ms.max(*at);
        if let Some(request_id) = request_id {
            self.by_request.insert(request_id.clone(), *number);
        }
        self.known.insert(*number, KnownCell { request_id: request_id.clone(), journal: None });
        self.queue.push_back(Cell {
            number: *number,
            place,
            is_reset: code.is_none(),
            timeout_ms: *timeout_ms,
            max_calls: *max_calls,
        });
        self.prune();
    }

    /// Begins a cell that waits.
    pub fn begin(&mut self, number: u64, place: Place, at: u64) {
        let Some(index) = self.queue.iter().position(|cell| cell.number == number) else { return };
        let Some(cell) = self.queue.remove(index) else { return };
        self.started += u64::from(!cell.is_reset);
        self.active_ms = self.active_ms.max(at);
        let (journal_from, stop) = (place.start(), None);
        self.running = Some(RunningCell { cell, started_ms: at, journal_from, stop, is_executing: false });
    }

    /// Notes that a cell is interrupted. The first cause counts.
    pub fn stop(&mut self, number: u64, cause: StopCause) {
        if let Some(running) = self.running.as_mut().filter(|running| running.cell.number == number) {
            running.stop.get_or_insert(cause);
        }
    }

    /// Notes that the code of a cell runs.
    pub fn set_executing(&mut self, number: u64) {
        if let Some(running) = self.running.as_mut().filter(|running| running.cell.number == number) {
            running.is_executing = true;
        }
    }

    /// Ends a cell, also one that never began.
    pub fn end(&mut self, ended: &EndedCell, place: Place) {
        let mut journal = (place.start(), place.end());
        if let Some(running) = self.running.take_if(|running| running.cell.number == ended.cell) {
            journal.0 = running.journal_from;
        }
        self.queue.retain(|cell| cell.number != ended.cell);
        self.active_ms = self.active_ms.max(ended.at);
        self.known.entry(ended.cell).or_default().journal = Some(journal);
    }

    /// Accepts no cell any more. The first reason counts.
    pub fn close(&mut self, why: &'static str) {
        self.closed.get_or_insert(why);
    }

    /// Returns the cells that wait.
    pub fn waiting(&self) -> Vec<u64> {
        self.queue.iter().map(|cell| cell.number).collect()
    }

    fn prune(&mut self) {
        while !self.keeps_all && self.known.len() > MAX_KNOWN_CELLS + MAX_QUEUED_CELLS {
            let Some((_, oldest)) = self.known.pop_first() else { return };
            self.is_pruned = true;
            if let Some(request_id) = oldest.request_id {
                self.by_request.remove(&request_id);
            }
        }
    }
}

/// The table has forgotten old cells, and the one that is asked for may be one of them.
#[derive(Debug, PartialEq, Eq)]
pub struct Pruned;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::journal::CallJournal;
    use toold_proto::script::ScriptStatus;

    fn queued(cell: u64, request_id: Option<&str>) -> CallEntry {
        let (code, request_id) = (Some("1".into()), request_id.map(String::from));
        CallEntry::Cell(QueuedCell { cell, code, request_id, timeout_ms: None, max_calls: 5, at: cell })
    }

    fn reset(cell: u64) -> CallEntry {
        CallEntry::Cell(QueuedCell { cell, code: None, request_id: None, timeout_ms: None, max_calls: 0, at: cell })
    }

    fn started(cell: u64) -> CallEntry {
        CallEntry::CellStarted { cell, from: 0, at: cell }
    }

    fn ended(cell: u64) -> CallEntry {
        let (value, error, to) = (None, None, Some(7));
        let status = ScriptStatus::Ok;
        CallEntry::CellEnded(EndedCell { cell, status, value, error, to, exit_code: None, signal: None, at: cell })
    }

    /// Makes the table of a journal with these entries.
    fn table(entries: &[CallEntry]) -> (Cells, Vec<Place>) {
        let dir = tempfile::tempdir().expect("a directory");
        let mut journal = CallJournal::new(dir.path().join("calls"));
        let places: Vec<Place> = entries.iter().map(|entry| journal.append(entry).expect("written")).collect();
        let found = FoundCalls { entries: entries.iter().cloned().zip(places.iter().copied()).collect(), damaged: 0 };
        (Cells::restore(&found), places)
    }

    fn number(step: CellStep) -> (&'static str, u64) {
        match step {
            CellStep::Wait => ("wait", 0),
            CellStep::HandOut(cell) => ("hand out", cell.number),
            CellStep::Begin(cell) => ("begin", cell.number),
            CellStep::Over(number) => ("over", number),
        }
    }

    #[test]
    fn cells_begin_in_order_and_a_lost_answer_is_given_again() {
        let mut entries = vec![queued(1, None), queued(2, None)];
        assert_eq!(number(table(&entries).0.step(0)), ("begin", 1));
        entries.push(started(1));
        assert_eq!(number(table(&entries).0.step(0)), ("hand out", 1));
        entries.push(ended(1));
        assert_eq!(number(table(&entries).0.step(1)), ("begin", 2));
        entries.extend([started(2), ended(2)]);
        let (mut cells, _) = table(&entries);
        assert_eq!(number(cells.step(2)), ("wait", 0));
        assert_eq!((cells.started(), cells.is_busy(), cells.next_number()), (2, false, 3));
    }

    #[test]
    fn an_interpreter_that_was_replaced_leaves_no_cell_behind() {
        let (mut cells, _) = table(&[queued(1, None), started(1), reset(2)]);
        assert_eq!(cells.reset(), Some(2));
        assert_eq!(number(cells.step(1)), ("over", 1));
        let (mut cells, _) = table(&[reset(1), started(1)]);
        assert_eq!((number(cells.step(0)), number(cells.step(1))), (("hand out", 1), ("over", 1)));
    }

    #[test]
    fn a_number_that_the_driver_knows_is_not_given_again() {
        let (mut cells, _) = table(&[]);
        assert_eq!(number(cells.step(5)), ("wait", 0));
        assert_eq!(cells.next_number(), 6);
    }

    #[test]
    fn a_cell_has_its_part_of_the_journal() {
        let (cells, places) = table(&[queued(1, Some("a")), queued(2, None), started(1), ended(1), started(2)]);
        let ended = CellState::Ended { journal: (places[2].start(), places[3].end()) };
        assert_eq!(cells.state(1), Ok(Some(ended)));
        assert_eq!(cells.state(2), Ok(Some(CellState::Running { journal_from: places[4].start() })));
        assert_eq!((cells.state(3), cells.by_request("a"), cells.by_request("b")), (Ok(None), Ok(Some(1)), Ok(None)));
    }

    #[test]
    fn old_cells_are_left_to_the_journal() {
        let entries: Vec<CallEntry> =
            (1..=5000).flat_map(|n| [queued(n, Some(&n.to_string())), started(n), ended(n)]).collect();
        let (cells, _) = table(&entries);
        assert_eq!((cells.by_request("1"), cells.state(1)), (Err(Pruned), Err(Pruned)));
        assert_eq!((cells.by_request("5000"), cells.state(5001)), (Ok(Some(5000)), Ok(None)));
        assert!(cells.known.len() <= MAX_KNOWN_CELLS + MAX_QUEUED_CELLS);
    }
}
