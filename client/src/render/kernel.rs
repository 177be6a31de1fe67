//! Kernels and the ends of their cells.

use super::Style;
use super::table::{Cell, table};
use super::text::count;
use super::time::elapsed;
use serde_json::Value;
use toold_proto::kernel::{KernelCloseResult, KernelInterruptResult, KernelResetResult};
use toold_proto::process::Process;
use toold_proto::results::KillStatus;
use toold_proto::script::{ScriptResult, ScriptStatus};

/// Renders one line per kernel.
pub fn list(kernels: &[Process], style: Style) -> String {
    let row = |process: &Process| {
        let kernel = process.kernel.as_ref();
        let language = kernel.and_then(|kernel| kernel.language).map_or("", |language| language.name());
        let state = if kernel.is_some_and(|kernel| kernel.busy) { "busy" } else { "idle" };
        [
            Cell::new(&process.id.to_string()),
            Cell::new(process.name.as_deref().unwrap_or("")),
            Cell::new(language),
            Cell::new(state),
            Cell::number(&kernel.map_or(0, |kernel| kernel.cells).to_string()),
            Cell::new(&process.cwd),
        ]
    };
    table(["ID", "NAME", "LANGUAGE", "STATE", "CELLS", "DIRECTORY"], kernels.iter().map(row).collect(), style)
}

/// Returns the value of a cell as text. None: it has none.
pub fn value(result: &ScriptResult) -> Option<String> {
    match result.value.as_ref()? {
        Value::Null => None,
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

/// Returns the reason why a cell did not end well, unless its own error output has it.
pub fn problem(result: &ScriptResult) -> Option<String> {
    let after = elapsed(result.duration_ms);
    match (result.status, &result.error) {
        (ScriptStatus::Ok | ScriptStatus::Running, _) => None,
        (ScriptStatus::Error, Some(error)) if result.stderr.contains(&error.message) => None,
        (ScriptStatus::Error, Some(error)) => Some(format!("{}: {}", error.kind, error.message)),
        (ScriptStatus::Error, None) => Some("the cell failed".into()),
        (ScriptStatus::Timeout, _) => Some(format!("the cell was interrupted by --timeout after {after}")),
        (ScriptStatus::Interrupted, _) => Some(format!("the cell was interrupted after {after}")),
        (ScriptStatus::Killed, _) => Some(format!("the interpreter was killed after {after}")),
        (ScriptStatus::Lost, _) => Some("the end of the cell was not observed".into()),
    }
}

/// Renders the answer to an interrupt.
pub fn interrupted(result: &KernelInterruptResult) -> String {
    let id = &result.id;
    match (result.cell, result.state_kept) {
        (None, _) => format!("{id} runs no cell\n"),
        (Some(cell), true) => format!("{id} cell {cell} interrupted, state kept\n"),
        (Some(cell), false) => {
            format!("{id} cell {cell} interrupted, state lost: the interpreter did not stop in time\n")
        }
    }
}

/// Renders the answer to a reset.
pub fn reset(result: &KernelResetResult) -> String {
    let interrupted = result.interrupted.map(|cell| format!(", cell {cell} interrupted")).unwrap_or_default();
    let dropped = match result.dropped.len() as u64 {
        0 => String::new(),
        n => format!(", {} dropped", count(n, "cell")),
    };
    format!("{} reset{interrupted}{dropped}\n", result.id)
}

/// Renders the answer to a close.
pub fn closed(result: &KernelCloseResult) -> String {
    let end = match result.status {
        KillStatus::AlreadyExited => "had ended already",
        KillStatus::Killed => "closed",
        KillStatus::Starting => "is starting, and ends then",
        KillStatus::Survivors => "closed, but processes that it started survive",
    };
    format!("{} {end}\n", result.id)
}
