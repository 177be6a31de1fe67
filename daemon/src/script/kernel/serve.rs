//! The side of the driver: it asks for the next cell, and reports the end of each. Both are repeated after a restart of the
//! daemon, so every step is journalled before it is answered, and made once.

use super::super::report::{cut, cut_start};
use super::super::{LiveScript, Scripts};
use super::cells::{Cell, CellStep};
use super::{Kernel, record, unreadable};
use crate::clock::wall_ms;
use crate::proc::Proc;
use crate::proc::state::State;
use crate::proc::view;
use crate::tools::dispatcher::cancel_all;
use crate::tools::journal::{CallEntry, EndedCell, StopCause};
use crate::tools::owner::retired;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;
use toold_proto::RpcError;
use toold_proto::script::{ScriptError, ScriptStatus};
use toold_shim::hooks;

/// The longest text of a value. The driver cuts it before.
const MAX_VALUE_BYTES: usize = 1 << 20;

/// A cell for the driver.
#[derive(Debug, Serialize)]
pub struct NextCell {
    cell: u64,
    /// None: replace the interpreter.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<String>,
    max_calls: u64,
    reset: bool,
}

/// The news of a cell, from the driver.
#[derive(Debug, Deserialize)]
pub struct CellReport {
    number: u64,
    status: ReportedStatus,
    #[serde(default)]
    value: Option<Value>,
    #[serde(default)]
    error: Option<ScriptError>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ReportedStatus {
    /// Its code runs from now on, and an interrupt reaches it.
    Running,
    Ok,
    Error,
    Interrupted,
}

/// Returns the status of a cell whose end was reported. One that was interrupted because its time was over, and then failed in
/// any way, has run out of time.
fn status(reported: ReportedStatus, stop: Option<StopCause>) -> ScriptStatus {
    match (reported, stop) {
        (ReportedStatus::Ok | ReportedStatus::Running, _) => ScriptStatus::Ok,
        (ReportedStatus::Error | ReportedStatus::Interrupted, Some(StopCause::Timeout)) => ScriptStatus::Timeout,
        (ReportedStatus::Error, _) => ScriptStatus::Error,
        (ReportedStatus::Interrupted, _) => ScriptStatus::Interrupted,
    }
}

/// Returns the status of a cell whose interpreter ended in it.
fn status_of_death(stop: Option<StopCause>, process: ScriptStatus) -> ScriptStatus {
    match (stop, process) {
        (Some(StopCause::Timeout), _) => ScriptStatus::Timeout,
        (Some(StopCause::Client | StopCause::Reset), _) => ScriptStatus::Interrupted,
        // It did not reach its end, whatever the code.
        (None, ScriptStatus::Ok) => ScriptStatus::Error,
        (None, other) => other,
    }
}

fn error(kind: &str, message: String) -> Option<ScriptError> {
    Some(ScriptError { kind: kind.into(), message, line: None, traceback: String::new() })
}

/// Returns the exact end of the output, or the end of what is known of it.
async fn position(proc: &Proc) -> u64 {
    match proc.position().await {
        Ok(end) => end,
        Err(e) => {
            tracing::debug!(id = %proc.spec.id, ?e, "the shim did not give the end of the output");
            proc.state().progress.counts.end
        }
    }
}

impl Scripts {
    /// `kernel.next`: waits for the next cell after those that the driver has finished or runs, and begins it.
    pub async fn next_cell(self: &Arc<Self>, live: &Arc<LiveScript>, after: u64) -> Result<NextCell, RpcError> {
        let kernel = kernel_of(live)?;
        let proc = self.find(&live.id.to_string())?;
        let mut changes = kernel.changed.subscribe();
        loop {
            if live.owner.is_retired() {
                return Err(retired());
            }
            changes.mark_unchanged();
            match kernel.update_quietly(|cells| cells.step(after)) {
                CellStep::HandOut(cell) => return hand_out(live, cell),
                CellStep::Over(cell) => self.end_replaced(&proc, live, cell).await,
                CellStep::Begin(cell) => begin(&proc, live, &cell).await,
                CellStep::Wait => {
                    let _ = changes.changed().await;
                }
            }
        }
    }

    /// Ends a cell whose interpreter was replaced by the one that asks now.
    async fn end_replaced(&self, proc: &Arc<Proc>, live: &LiveScript, cell: u64) {
        let Ok(kernel) = kernel_of(live) else { return };
        let running = kernel.read(|cells| cells.running().filter(|running| running.cell.number == cell).cloned());
        let Some(running) = running else { return };
        let reset = kernel.read(|cells| cells.reset());
        let (status, error) = match running.cell.is_reset {
            true => (ScriptStatus::Ok, None),
            false => (
                status_of_death(running.stop, ScriptStatus::Error),
                error("KernelReset", "the interpreter was replaced while the cell ran".into()),
            ),
        };
        self.end_cell(proc, live, Ending { cell, status, value: None, error, outcome: None }).await;
        // It was replaced by force: what the reset asks for is done.
        if let Some(reset) = reset.filter(|reset| *reset != cell && !running.cell.is_reset) {
            let ending = Ending { cell: reset, status: ScriptStatus::Ok, value: None, error: None, outcome: None };
            self.end_cell(proc, live, ending).await;
        }
    }

    /// `script.report` about a cell. Acknowledged when it is journalled; the same one again changes nothing.
    pub async fn report_cell(self: &Arc<Self>, live: &Arc<LiveScript>, report: CellReport) -> Result<(), RpcError> {
        let kernel = kernel_of(live)?;
        if live.owner.is_retired() {
            return Err(retired());
        }
        let CellReport { number, status: reported, value, error } = report;
        let proc = self.find(&live.id.to_string())?;
        let running = kernel.read(|cells| cells.running().cloned());
        let Some(running) = running.filter(|running| running.cell.number == number) else {
            return match kernel.read(|cells| cells.has_ended(number) && cells.last().is_some_and(|last| number <= last))
            {
                true => Ok(()),
                false => Err(RpcError::param("cell.number", format!("cell {number} does not run"))),
            };
        };
        if reported == ReportedStatus::Running {
            kernel.update(|cells| cells.set_executing(number));
            return Ok(());
        }
        let error = error.map(|mut error| {
            cut(&mut error.message);
            cut_start(&mut error.traceback);
            error
        });
        let value = value.map(|value| match value {
            Value::String(mut text) if text.len() > MAX_VALUE_BYTES => {
                text.truncate(crate::text::last_char_end(&text, MAX_VALUE_BYTES));
                Value::String(text)
            }
            value => value,
        });
        let status = status(reported, running.stop);
        self.end_cell(&proc, live, Ending { cell: number, status, value, error, outcome: None }).await;
        Ok(())
    }

    /// Ends a cell: its authority, then its calls, then its output, then that is recorded.
    async fn end_cell(&self, proc: &Arc<Proc>, live: &LiveScript, ending: Ending) {
        let Ending { cell, status, value, error, outcome } = ending;
        let has_started = live.kernel.as_ref().is_some_and(|kernel| {
            kernel.read(|cells| cells.running().is_some_and(|running| running.cell.number == cell))
        });
        let mut to = None;
        if has_started {
            hooks::at("cell.reported");
            cancel_all(live.owner.end_cell(cell), &retired()).await;
            self.end_unanswered(live, Some(cell)).await;
            to = Some(position(proc).await);
        }
        let (exit_code, signal) = outcome.unwrap_or_default();
        let ended = EndedCell { cell, status, value, error, to, exit_code, signal, at: wall_ms() };
        let entry = CallEntry::CellEnded(ended.clone());
        let is_due = |cells: &super::Cells| !cells.has_ended(cell);
        record(live, &entry, is_due, |cells, place| cells.end(&ended, place)).await;
        hooks::at("cell.ended");
    }

    /// Ends cells that wait, for a reason.
    pub(super) async fn drop_waiting(
        &self,
        proc: &Arc<Proc>,
        live: &LiveScript,
        cells: &[u64],
        (status, why): (ScriptStatus, &str),
    ) {
        for cell in cells {
            let error = error("KernelEnded", format!("the cell did not run: {why}"));
            self.end_cell(proc, live, Ending { cell: *cell, status, value: None, error, outcome: None }).await;
        }
    }

    /// Ends the cells of a kernel whose process has ended.
    pub(in super::super) async fn end_cells(&self, proc: &Arc<Proc>, live: &LiveScript) {
        let Some(kernel) = &live.kernel else { return };
        kernel.update(|cells| cells.close("its interpreter has ended"));
        let state = proc.state();
        let outcome = view::outcome(&proc.spec, &state);
        let how = death(&state, &outcome);
        if let Some(running) = kernel.read(|cells| cells.running().cloned()) {
            let (cell, process) = (running.cell.number, super::super::result::status(&state, &outcome));
            let ending = Ending {
                cell,
                status: status_of_death(running.stop, process),
                value: None,
                error: error("KernelDied", format!("the interpreter {how} while the cell ran; its state is gone")),
                outcome: Some((outcome.exit_code, outcome.signal.clone())),
            };
            self.end_cell(proc, live, ending).await;
        }
        let waiting = kernel.read(|cells| cells.waiting());
        let why = format!("the interpreter {how} before");
        self.drop_waiting(proc, live, &waiting, (ScriptStatus::Error, &why)).await;
    }
}

/// The end of a cell.
struct Ending {
    cell: u64,
    status: ScriptStatus,
    value: Option<Value>,
    error: Option<ScriptError>,
    /// The exit code and the signal of the interpreter, if they ended it.
    outcome: Option<(Option<i32>, Option<String>)>,
}

/// Describes the end of an interpreter, for a person.
fn death(state: &State, outcome: &view::Outcome) -> String {
    let by = outcome.killed_by.as_ref().map(|by| format!(" ({by})")).unwrap_or_default();
    match (&outcome.signal, outcome.exit_code) {
        _ if outcome.reason == Some(toold_proto::process::Reason::Oom) => "was killed for its memory".into(),
        (Some(signal), _) => format!("was ended by {signal}{by}"),
        (None, Some(code)) => format!("exited with code {code}{by}"),
        (None, None) if state.pid == 0 => "did not start".into(),
        (None, None) => format!("ended{by}"),
    }
}

impl LiveScript {
    /// `kernel.stopping`: waits until a cell is to be interrupted, or has ended. Returns true if it is to be interrupted.
    pub async fn stopping(&self, cell: u64) -> Result<bool, RpcError> {
        let kernel = kernel_of(self)?;
        let mut changes = kernel.changed.subscribe();
        loop {
            changes.mark_unchanged();
            let running = kernel.read(|cells| cells.running().filter(|running| running.cell.number == cell).cloned());
            match running {
                Some(running) if running.stop.is_none() => {}
                running => return Ok(running.is_some()),
            }
            if changes.changed().await.is_err() {
                return Ok(false);
            }
        }
    }
}

fn kernel_of(live: &LiveScript) -> Result<&Kernel, RpcError> {
    live.kernel.as_ref().ok_or_else(|| RpcError::param("cell", "this script is not a kernel"))
}

/// Begins a cell, unless another request of the driver was faster.
async fn begin(proc: &Arc<Proc>, live: &LiveScript, cell: &Cell) {
    let from = position(proc).await;
    let at = wall_ms();
    let number = cell.number;
    let entry = CallEntry::CellStarted { cell: number, from, at };
    let is_due = |cells: &super::Cells| cells.can_begin(number);
    let step = |cells: &mut super::Cells, place| {
        cells.begin(number, place, at);
        live.owner.begin_cell(number, cell.max_calls);
    };
    if record(live, &entry, is_due, step).await {
        hooks::at("cell.started");
    }
}

/// Reads the code of a cell that has started.
fn hand_out(live: &LiveScript, cell: Cell) -> Result<NextCell, RpcError> {
    let entry = live.owner.read(cell.place).map_err(|e| unreadable(&e))?;
    let code = if let CallEntry::Cell(queued) = entry { queued.code } else { None };
    Ok(NextCell { cell: cell.number, reset: code.is_none(), code, max_calls: cell.max_calls })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_that_was_over_is_the_reason_whatever_the_interrupt_led_to() {
        use ReportedStatus::*;
        for (reported, stop, expected) in [
            (Ok, None, ScriptStatus::Ok),
            (Ok, Some(StopCause::Timeout), ScriptStatus::Ok),
            (Interrupted, Some(StopCause::Timeout), ScriptStatus::Timeout),
            (Error, Some(StopCause::Timeout), ScriptStatus::Timeout),
            (Interrupted, Some(StopCause::Client), ScriptStatus::Interrupted),
            (Interrupted, None, ScriptStatus::Interrupted),
            (Error, Some(StopCause::Client), ScriptStatus::Error),
        ] {
            assert_eq!(status(reported, stop), expected, "{reported:?} {stop:?}");
        }
        assert_eq!(status_of_death(None, ScriptStatus::Ok), ScriptStatus::Error);
        assert_eq!(status_of_death(None, ScriptStatus::Killed), ScriptStatus::Killed);
        assert_eq!(status_of_death(Some(StopCause::Client), ScriptStatus::Killed), ScriptStatus::Interrupted);
    }
}
