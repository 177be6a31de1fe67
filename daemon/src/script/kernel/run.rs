//! `kernel.run`: queues a cell and waits for its end.

use super::super::live::CALLS;
use super::super::result::FINISH_TIMEOUT;
use super::super::{LiveScript, Scripts};
use super::cells::{MAX_QUEUED_CELLS, Pruned};
use super::{Kernel, unreadable, unwritable};
use crate::call_error::already_exited;
use crate::clock::wall_ms;
use crate::disk;
use crate::proc::Proc;
use crate::proc::state::State;
use crate::store::script::ScriptSpec;
use crate::tools::journal::{CallEntry, CallJournal, QueuedCell};
use std::sync::Arc;
use std::time::Duration;
use toold_proto::kernel::{IfBusy, KernelRunParams};
use toold_proto::script::ScriptResult;
use toold_proto::{ErrorKind, RpcError};
use toold_shim::hooks;

/// A cell that was queued, or found by its `request_id`.
pub struct StartedCell {
    pub proc: Arc<Proc>,
    pub cell: u64,
    pub existing: bool,
}

impl Scripts {
    /// Queues a cell.
    pub async fn queue_cell(self: &Arc<Self>, call: KernelRunParams) -> Result<StartedCell, RpcError> {
        let proc = self.find_kernel(call.id.as_deref(), call.name.as_deref())?;
        let Some(spec) = &proc.spec.script else { return Err(RpcError::param("id", "is not a kernel")) };
        let queued = self.queued_cell(&call, spec)?;
        if call.request_id.as_ref().is_some_and(String::is_empty) {
            return Err(RpcError::param("request_id", "must not be empty"));
        }
        loop {
            let live = self.live(proc.spec.id);
            if let Some(request_id) = &call.request_id
                && let Some(cell) = self.cell_of_request(&proc, live.as_deref(), request_id, &call.code).await?
            {
                return Ok(StartedCell { proc, cell, existing: true });
            }
            let Some((live, kernel)) = live.as_ref().and_then(|live| Some((live, live.kernel.as_ref()?))) else {
                return Err(already_exited(&proc));
            };
            // None: the same request on another connection was faster, and is found now.
            if let Some(cell) = accept(kernel, live, &proc, &queued, call.if_busy)? {
                hooks::at("cell.queued");
                return Ok(StartedCell { proc, cell, existing: false });
            }
        }
    }

    /// Checks the parameters of a cell. Its number comes later.
    fn queued_cell(&self, call: &KernelRunParams, spec: &ScriptSpec) -> Result<QueuedCell, RpcError> {
        if call.code.trim().is_empty() {
            return Err(RpcError::param("code", "must not be empty"));
        }
        let timeout_ms = match call.timeout_ms {
            None => self.approvals.registry.config.script.timeout_ms,
            Some(ms) => u64::try_from(ms).map_err(|_| RpcError::too_small("timeout_ms", 0, ms))?,
        };
        Ok(QueuedCell {
            cell: 0,
            code: Some(call.code.clone()),
            request_id: call.request_id.clone(),
            timeout_ms: Some(timeout_ms).filter(|ms| *ms > 0),
            max_calls: call.max_calls.unwrap_or(spec.max_calls),
            at: wall_ms(),
        })
    }

    /// Finds the cell that the same request got before. One with other code is a conflict.
    async fn cell_of_request(
        &self,
        proc: &Arc<Proc>,
        live: Option<&LiveScript>,
        request_id: &str,
        code: &str,
    ) -> Result<Option<u64>, RpcError> {
        let known = match live.and_then(|live| live.kernel.as_ref()) {
            Some(kernel) => kernel.read(|cells| cells.by_request(request_id)),
            None => Err(Pruned),
        };
        let found = match known {
            Ok(found) => found,
            Err(Pruned) => self.all_cells(proc).await?.by_request(request_id).unwrap_or_default(),
        };
        let Some(number) = found else { return Ok(None) };
        let path = proc.dir.join(CALLS);
        let earlier =
            disk::blocking(move || CallJournal::read_all(&path)).await.flatten().map_err(|e| unreadable(&e))?;
        let is_same = |entry: &CallEntry| matches!(entry, CallEntry::Cell(cell) if cell.cell == number && cell.code.as_deref() == Some(code));
        match earlier.entries.iter().any(|(entry, _)| is_same(entry)) {
            true => Ok(Some(number)),
            false => Err(other_code(request_id, number)),
        }
    }

    /// Waits for the end of a cell, and describes it.
    pub async fn cell_result(
        self: &Arc<Self>,
        proc: &Arc<Proc>,
        cell: u64,
        wait_ms: u64,
    ) -> Result<ScriptResult, RpcError> {
        if let Some(live) = self.live(proc.spec.id)
            && let Some(kernel) = &live.kernel
            && wait_ms > 0
        {
            if proc.published_state().asking {
                // The time of an approval is not counted.
                proc.answered().await;
            }
            let _ = tokio::time::timeout(Duration::from_millis(wait_ms), kernel.ended(cell)).await;
        }
        if proc.published_state().has_ended() {
            self.wait_finished(proc).await;
        }
        self.describe_cell(proc, cell).await
    }

    /// Waits until the end of a script that has ended was dealt with.
    async fn wait_finished(&self, proc: &Proc) {
        let _ = proc.subscribe().wait_for(State::has_ended).await;
        if let Some(live) = self.live(proc.spec.id) {
            let mut ended = live.ended.subscribe();
            let _ = tokio::time::timeout(FINISH_TIMEOUT, ended.wait_for(|ended| *ended)).await;
        }
    }
}

/// Journals a cell and queues it, unless the kernel is busy and that is an error. Returns None if its request has a cell by now.
fn accept(
    kernel: &Kernel,
    live: &LiveScript,
    proc: &Proc,
    queued: &QueuedCell,
    if_busy: IfBusy,
) -> Result<Option<u64>, RpcError> {
    kernel.update(|cells| {
        let is_known = |id: &String| matches!(cells.by_request(id), Ok(Some(_)));
        if queued.request_id.as_ref().is_some_and(is_known) {
            return Ok(None);
        }
        if let Some(why) = cells.closed {
            let message = format!("{} is ending: {why}; open another kernel", proc.spec.id);
            return Err(RpcError::new(ErrorKind::AlreadyExited, message).with("reason", "closed"));
        }
        if proc.published_state().has_ended() {
            return Err(already_exited(proc));
        }
        if if_busy == IfBusy::Error && cells.is_busy() {
            let running = cells.running().map(|running| running.cell.number);
            let message = "the kernel is busy; wait for its cells, or give `if_busy: \"queue\"`";
            return Err(RpcError::new(ErrorKind::Unavailable, message).with("reason", "busy").with("cell", running));
        }
        if cells.queued() >= MAX_QUEUED_CELLS {
            let message = format!("{MAX_QUEUED_CELLS} cells wait already; wait for one");
            return Err(RpcError::new(ErrorKind::Limit, message).with("limit", "kernel.queue"));
        }
        let queued = QueuedCell { cell: cells.next_number(), ..queued.clone() };
        let place = live.owner.record(&CallEntry::Cell(queued.clone())).map_err(|e| unwritable(&e))?;
        cells.queue(&queued, place);
        Ok(Some(queued.cell))
    })
}

fn other_code(request_id: &str, cell: u64) -> RpcError {
    let message = format!(
        "the request_id {request_id:?} belongs to cell {cell}, which has other code; repeat that call unchanged, or use another \
         request_id"
    );
    RpcError::new(ErrorKind::Conflict, message).with("cell", cell)
}
