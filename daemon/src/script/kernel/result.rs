//! The result of one cell, made from the log and the cell's part of the journal. It is the same for every caller, after the end
//! of the kernel and after a restart.

use super::super::live::CALLS;
use super::super::result::Outline;
use super::super::{LiveScript, Scripts};
use super::cells::{CellState, Pruned};
use super::unreadable;
use crate::clock::wall_ms;
use crate::disk;
use crate::proc::Proc;
use crate::proc::completion::output_end;
use crate::text::PageEnd;
use crate::tools::journal::{CallEntry, CallJournal, FoundCalls};
use std::io;
use std::sync::Arc;
use toold_proto::script::{ScriptResult, ScriptStatus};
use toold_proto::{ErrorKind, RpcError};

impl Scripts {
    /// Returns the last cell of a kernel.
    pub(in super::super) async fn last_cell(&self, proc: &Arc<Proc>) -> Result<Option<u64>, RpcError> {
        match self.live(proc.spec.id).as_ref().and_then(|live| live.kernel.as_ref()) {
            Some(kernel) => Ok(kernel.read(|cells| cells.last())),
            None => Ok(self.all_cells(proc).await?.last()),
        }
    }

    /// Describes a cell.
    pub(super) async fn describe_cell(self: &Arc<Self>, proc: &Arc<Proc>, cell: u64) -> Result<ScriptResult, RpcError> {
        let live: Option<Arc<LiveScript>> = self.live(proc.spec.id);
        let known = match live.as_ref().and_then(|live| live.kernel.as_ref()) {
            Some(kernel) => kernel.read(|cells| cells.state(cell)),
            None => Err(Pruned),
        };
        let state = match known {
            Ok(state) => state,
            Err(Pruned) => self.all_cells(proc).await?.state(cell).unwrap_or_default(),
        };
        let Some(state) = state else {
            let message = format!("{} has no cell {cell}", proc.spec.id);
            return Err(RpcError::new(ErrorKind::NotFound, message).with("cell", cell));
        };
        let (scripts, proc) = (self.clone(), proc.clone());
        let made = disk::blocking(move || scripts.make_cell_result(&proc, cell, state)).await;
        made.flatten().map_err(|e| unreadable(&e))
    }

    /// Makes the result of a cell. Blocks.
    fn make_cell_result(&self, proc: &Arc<Proc>, cell: u64, state: CellState) -> io::Result<ScriptResult> {
        let path = proc.dir.join(CALLS);
        let FoundCalls { entries, .. } = match state {
            CellState::Queued => FoundCalls::default(),
            CellState::Running { journal_from } => CallJournal::read_part(&path, journal_from, None)?,
            CellState::Ended { journal: (from, to) } => CallJournal::read_part(&path, from, Some(to))?,
        };
        let mut entries: Vec<CallEntry> = entries.into_iter().map(|(entry, _)| entry).collect();
        let is_end = |entry: &CallEntry| matches!(entry, CallEntry::CellEnded(ended) if ended.cell == cell);
        let ended = entries.iter().position(is_end).map(|at| {
            let last = entries.remove(at);
            // It may have ended since its state was read, and others may have started.
            entries.truncate(at);
            last
        });
        let ended = ended.and_then(|entry| if let CallEntry::CellEnded(ended) = entry { Some(ended) } else { None });
        let started = entries.iter().find_map(|entry| match entry {
            CallEntry::CellStarted { cell: of, from, at } if *of == cell => Some((*from, *at)),
            _ => None,
        });
        let state = proc.state();
        let now = wall_ms();
        let ended_at = ended.as_ref().map_or(now, |ended| ended.at);
        let from = started.map(|(from, _)| from);
        let to =
            ended.as_ref().map_or_else(|| Some(output_end(&state)), |ended| ended.to).filter(|_| started.is_some());
        let range = from.zip(to).unwrap_or_default();
        let outline = Outline {
            status: ended.as_ref().map_or(ScriptStatus::Running, |ended| ended.status),
            exit_code: ended.as_ref().and_then(|ended| ended.exit_code),
            signal: ended.as_ref().and_then(|ended| ended.signal.clone()),
            value: ended.as_ref().and_then(|ended| ended.value.clone()),
            error: ended.as_ref().and_then(|ended| ended.error.clone()),
            cell: Some(cell),
            range,
            end: if ended.is_some() { PageEnd::Last } else { PageEnd::More },
            is_over: ended.is_some(),
            refused: None,
            duration_ms: started.map_or(0, |(_, at)| ended_at.saturating_sub(at)),
        };
        let result = self.fill(proc, &state, &entries, outline)?;
        Ok(ScriptResult { cell: Some(cell), from, to, ..result })
    }
}
