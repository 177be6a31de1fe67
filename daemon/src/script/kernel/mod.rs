//! Kernels: scripts that keep their state and run cells. `cells` has the state of the cells, `serve` deals with the driver,
//! `run` with callers, `stop` ends cells, `supervise` has the clocks.

mod cells;
mod open;
mod result;
mod run;
mod serve;
mod stop;
mod supervise;

pub use serve::{CellReport, NextCell};
pub use stop::Stopper;

use super::{LiveScript, Scripts};
use crate::call_error::find_error;
use crate::disk;
use crate::proc::Proc;
use crate::proc::script::ScriptCalls;
use crate::tools::journal::{CallEntry, CallJournal, FoundCalls, Place};
use cells::Cells;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;
use toold_proto::{ErrorKind, RpcError};

/// The delay before an entry is written again that the disk refused. The driver waits meanwhile.
const RECORD_RETRY_DELAY: Duration = Duration::from_secs(1);

/// The part of a live script that only a kernel has.
pub struct Kernel {
    cells: Mutex<Cells>,
    /// Changes whenever a cell does.
    changed: watch::Sender<()>,
    /// Shown in the description of the process.
    started: Arc<AtomicU64>,
    busy: Arc<AtomicBool>,
}

impl Kernel {
    /// Makes a kernel from its journal.
    pub(super) fn new(found: &FoundCalls, calls: &ScriptCalls) -> Kernel {
        let kernel = Kernel {
            cells: Mutex::new(Cells::restore(found)),
            changed: watch::Sender::new(()),
            started: calls.cells.clone(),
            busy: calls.busy.clone(),
        };
        kernel.update(|_| ());
        kernel
    }

    fn read<T>(&self, read: impl FnOnce(&Cells) -> T) -> T {
        read(&self.cells.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes nothing that anyone waits for.
    fn update_quietly<T>(&self, change: impl FnOnce(&mut Cells) -> T) -> T {
        change(&mut self.cells.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Changes the cells, and wakes everyone who waits for a change.
    fn update<T>(&self, change: impl FnOnce(&mut Cells) -> T) -> T {
        let mut cells = self.cells.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = change(&mut cells);
        self.started.store(cells.started(), Relaxed);
        self.busy.store(cells.is_busy(), Relaxed);
        drop(cells);
        self.changed.send_replace(());
        changed
    }

    /// Waits until a cell has ended.
    async fn ended(&self, number: u64) {
        let mut changes = self.changed.subscribe();
        while !self.read(|cells| cells.has_ended(number)) {
            if changes.changed().await.is_err() {
                return;
            }
        }
    }

    /// Gives back the authority that the cell has which an earlier daemon handed out.
    pub(super) fn resume(&self, live: &LiveScript) {
        match self.read(|cells| cells.running().map(|running| running.cell.clone())) {
            Some(cell) => live.owner.begin_cell(cell.number, cell.max_calls),
            None => drop(live.owner.end_cell(0)),
        }
    }
}

impl Scripts {
    /// Finds the process of a kernel, by `id` or `name`.
    fn find_kernel(&self, id: Option<&str>, name: Option<&str>) -> Result<Arc<Proc>, RpcError> {
        let (param, text) = match (id, name) {
            (Some(id), None) => ("id", id),
            (None, Some(name)) => ("name", name),
            (Some(_), Some(_)) => return Err(RpcError::param("id", "give either `id` or `name`")),
            (None, None) => return Err(RpcError::param("id", "name a kernel by `id` or `name`")),
        };
        let proc = self.approvals.registry.find(text).map_err(|e| find_error(param, e))?;
        match proc.spec.script.as_ref().is_some_and(|script| script.kernel.is_some()) {
            true => Ok(proc),
            false => Err(RpcError::param(param, format!("{} is not a kernel", proc.spec.id))),
        }
    }

    /// Reads all cells of a kernel from its journal.
    async fn all_cells(&self, proc: &Arc<Proc>) -> Result<Cells, RpcError> {
        let path = proc.dir.join(super::live::CALLS);
        let found = disk::blocking(move || CallJournal::read_all(&path)).await.flatten();
        found.map(|found| Cells::restore_all(&found)).map_err(|e| unreadable(&e))
    }
}

fn unreadable(e: &io::Error) -> RpcError {
    RpcError::new(ErrorKind::Unavailable, format!("read the journal of the kernel: {e}"))
}

fn unwritable(e: &io::Error) -> RpcError {
    let message = format!("the journal of the kernel cannot be written: {e}; free some disk space");
    RpcError::new(ErrorKind::Unavailable, message)
}

/// Records a step of a cell, and makes it, unless another caller was faster, by `is_due`. Tries until the disk takes the
/// entry: the driver would take an error for the end of the kernel.
async fn record(
    live: &LiveScript,
    entry: &CallEntry,
    is_due: impl Fn(&Cells) -> bool,
    step: impl Fn(&mut Cells, Place),
) -> bool {
    let Some(kernel) = &live.kernel else { return false };
    loop {
        let recorded = kernel.update(|cells| {
            if !is_due(cells) {
                return Ok(false);
            }
            step(cells, live.owner.record(entry)?);
            Ok::<bool, io::Error>(true)
        });
        match recorded {
            Ok(is_done) => return is_done,
            Err(_) if live.owner.is_retired() => return false,
            Err(e) => {
                tracing::warn!(id = %live.id, %e, "failed to record a cell; it is tried again");
                tokio::time::sleep(RECORD_RETRY_DELAY).await;
            }
        }
    }
}
