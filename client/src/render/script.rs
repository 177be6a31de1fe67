//! Scripts, their calls and their results.

use super::sanitize::{Keep, Sanitizer};
use super::table::{Cell, table};
use super::text::{bytes, count, escape_control, last_line};
use super::time::elapsed;
use super::{Style, Tint};
use serde_json::Value;
use toold_proto::event::{ScriptCall, ScriptFinished, ScriptStarted};
use toold_proto::script::{CallStatus, JournalledCall, ScriptCancelResult, ScriptResult, ScriptStatus};

/// Renders the start of a script.
pub fn started(event: &ScriptStarted) -> String {
    let language = event.language.map_or("program", |language| language.name());
    let tools = if event.tools.is_empty() { "no tools".to_owned() } else { event.tools.join(", ") };
    format!("{language} with {tools}")
}

/// Renders one call.
pub fn call(event: &ScriptCall) -> String {
    let how = call_status(event.status);
    let kind = event.error.as_ref().map(|kind| format!(" ({kind})")).unwrap_or_default();
    format!("{} {how}{kind} after {}", event.tool, elapsed(event.ms))
}

/// Renders the end of a script.
pub fn finished(event: &ScriptFinished) -> String {
    let calls = count(event.calls.made, "call");
    let unknown = match event.calls.unknown {
        0 => String::new(),
        more => format!(", {more} of them may have happened"),
    };
    let output = last_line(&event.output).map(|line| format!(": {line}")).unwrap_or_default();
    format!("{} after {}, {calls}{unknown}{output}", event.status.name(), elapsed(event.duration_ms))
}

fn call_status(status: CallStatus) -> &'static str {
    match status {
        CallStatus::Running => "running",
        CallStatus::Ok => "ok",
        CallStatus::Failed => "failed",
        CallStatus::Cancelled => "cancelled",
        CallStatus::Unknown => "may have happened",
    }
}

/// Renders one line per call, the oldest first.
pub fn calls(calls: &[JournalledCall], style: Style) -> String {
    let row = |call: &JournalledCall| {
        let tint = match call.status {
            CallStatus::Ok => Tint::Good,
            CallStatus::Running => Tint::Busy,
            CallStatus::Failed | CallStatus::Cancelled | CallStatus::Unknown => Tint::Bad,
        };
        let status = match &call.error {
            Some(kind) => format!("{} ({kind})", call_status(call.status)),
            None => call_status(call.status).to_owned(),
        };
        let args = match &call.args {
            Value::String(preview) => preview.clone(),
            full => full.to_string(),
        };
        let time = call.ms.map(elapsed).unwrap_or_default();
        let size = Cell::number(&bytes(call.bytes));
        [
            Cell::new(&call.call),
            Cell::new(&call.tool),
            Cell::tinted(&status, tint),
            Cell::number(&time),
            size,
            Cell::new(&args),
        ]
    };
    table(["CALL", "TOOL", "STATUS", "TIME", "RESULT", "ARGUMENTS"], calls.iter().map(row).collect(), style)
}

/// Renders the result of a script or a cell: its output, then its error and value, then its status.
pub fn result(result: &ScriptResult, style: Style) -> String {
    let mut out = output(&result.output);
    out.push_str(&output(&result.stderr));
    if let Some(value) = &result.value {
        out.push_str(&format!("value   {}\n", escape_control(&value.to_string())));
    }
    for artifact in &result.artifacts {
        out.push_str(&format!("file    {} ({})\n", escape_control(&artifact.path), bytes(artifact.bytes)));
    }
    for hint in &result.hints {
        out.push_str(&format!("hint    {}\n", escape_control(hint)));
    }
    out.push_str(&summary(result, style));
    out
}

/// Renders the status of a script in one line.
fn summary(result: &ScriptResult, style: Style) -> String {
    let tint = match result.status {
        ScriptStatus::Ok => Tint::Good,
        ScriptStatus::Running => Tint::Busy,
        ScriptStatus::Error
        | ScriptStatus::Timeout
        | ScriptStatus::Interrupted
        | ScriptStatus::Killed
        | ScriptStatus::Lost => Tint::Bad,
    };
    let status = tint.paint(result.status.name(), style);
    let unknown = match result.calls.unknown {
        0 => String::new(),
        more => format!(", {more} of them may have happened"),
    };
    let calls = count(result.calls.made, "call");
    format!("{} {status} after {}, {calls}{unknown}\n", result.id, elapsed(result.duration_ms))
}

/// Returns output in whole lines, without what would act on a terminal.
pub fn output(text: &str) -> String {
    let mut text = Sanitizer::new(Keep::Nothing).sanitize(text);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text
}

/// Renders the answer to a cancellation.
pub fn cancelled(result: &ScriptCancelResult) -> String {
    let calls = match result.calls.len() as u64 {
        0 => String::new(),
        n => format!(" with {}", count(n, "call")),
    };
    format!("{} {}{calls}\n", result.id, escape_control(&result.status))
}
