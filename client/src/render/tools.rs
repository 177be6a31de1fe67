//! Tools as `tools` prints them, and the result of a call.

use super::sanitize::{Keep, Sanitizer};
use super::table::{Cell, table};
use super::text::{escape_control, escape_json, first_line};
use super::{Style, Tint};
use serde_json::Value;
use toold_proto::tools::{Effect, ListedTool, ToolState};

/// Renders one line per tool.
pub fn list(tools: &[ListedTool], style: Style) -> String {
    let row = |tool: &ListedTool| {
        let about = tool.why.as_deref().or(tool.description.as_deref()).and_then(first_line).unwrap_or_default();
        [Cell::new(&tool.name), Cell::new(tool.effect.map_or("", effect)), state(tool.state), Cell::new(&about)]
    };
    table(["NAME", "EFFECT", "STATE", "DESCRIPTION"], tools.iter().map(row).collect(), style)
}

/// Renders each tool with its signatures and its whole description.
pub fn details(tools: &[ListedTool], style: Style) -> String {
    tools.iter().map(|tool| detail(tool, style)).collect::<Vec<_>>().join("\n")
}

fn detail(tool: &ListedTool, style: Style) -> String {
    let facts = [
        tool.effect.map(effect),
        tool.idempotent.and_then(|idempotent| idempotent.then_some("idempotent")),
        tool.state.filter(|state| *state != ToolState::Ready).map(state_name),
    ];
    let facts = facts.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let mut out = format!("{}  {facts}\n", Tint::Heading.paint(&escape_control(&tool.name), style));
    let signatures = tool.signatures.iter().flat_map(|all| [&all.python, &all.javascript, &all.shell]);
    let texts = tool.why.iter().chain(tool.description.iter()).chain(signatures);
    for line in texts.flat_map(|text| text.lines()) {
        out.push_str(&format!("    {}\n", escape_control(line)));
    }
    out
}

fn effect(effect: Effect) -> &'static str {
    match effect {
        Effect::Read => "read",
        Effect::Write => "write",
        Effect::Exec => "exec",
        Effect::Network => "network",
    }
}

fn state(state: Option<ToolState>) -> Cell {
    match state {
        Some(ToolState::Unavailable) => Cell::tinted("unavailable", Tint::Bad),
        Some(state) => Cell::new(state_name(state)),
        None => Cell::new(""),
    }
}

fn state_name(state: ToolState) -> &'static str {
    match state {
        ToolState::Ready => "ready",
        ToolState::Starting => "starting",
        ToolState::Unavailable => "unavailable",
    }
}

/// Renders the result of a call: a text as it is, anything else as JSON.
pub fn value(result: &Value) -> String {
    match result {
        Value::String(text) => Sanitizer::new(Keep::Nothing).sanitize(text) + "\n",
        other => escape_json(&serde_json::to_string_pretty(other).unwrap_or_default()) + "\n",
    }
}
