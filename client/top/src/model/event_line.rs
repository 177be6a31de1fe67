//! One event in the strip of events: its time, its process and a few letters about it.

use serde_json::Value;
use toold_client::text::{cut, escape_control, unix_ms};

/// The columns that the text of one event may take.
const MAX_COLUMNS: usize = 60;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventLine {
    pub seq: u64,
    pub at_ms: u64,
    /// `build exit 2`.
    pub text: String,
    pub id: Option<String>,
    pub is_failure: bool,
}

/// Reads an event. None: a push that is not stored, as output is.
pub fn read(event: &Value) -> Option<EventLine> {
    let seq = event["seq"].as_u64()?;
    let at_ms = event["at"].as_str().and_then(unix_ms).unwrap_or(0);
    let id = event["id"].as_str().map(str::to_owned);
    let short = id.as_deref().map(|id| id.chars().take(9).collect::<String>());
    let name = event["name"].as_str().map(str::to_owned).or(short).unwrap_or_default();
    let (what, is_failure) = describe(event);
    let text = cut(&escape_control(format!("{name} {what}").trim()), MAX_COLUMNS);
    Some(EventLine { seq, at_ms, text, id, is_failure })
}

fn describe(event: &Value) -> (String, bool) {
    let kind = event["type"].as_str().unwrap_or_default();
    match kind {
        "exited" | "completion" => match (event["signal"].as_str(), event["exit_code"].as_i64()) {
            (Some(signal), _) => (signal.to_owned(), event["reason"] != "killed"),
            (None, Some(code)) => (format!("exit {code}"), code != 0),
            (None, None) => (event["reason"].as_str().unwrap_or("lost").to_owned(), true),
        },
        "needs_input" => ("asks".into(), false),
        "watch_match" => (format!("matched {}", event["pattern"].as_str().unwrap_or_default()), false),
        "restart_gave_up" => ("not restarted again".into(), true),
        "approval_requested" => ("waits for approval".into(), false),
        "approval_decided" => (event["state"].as_str().unwrap_or_default().to_owned(), false),
        "denied" | "denial" | "inside_refused" => (kind.replace('_', " "), true),
        // Every other type by its name.
        other => (other.replace('_', " "), false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_event_is_a_name_and_what_happened() {
        let text = |event: Value| read(&event).map(|line| line.text);
        let base = json!({"seq": 1, "at": "2026-11-16T03:28:50.123Z", "id": "proc_0123456789ab"});
        let with = |more: Value| {
            let mut event = base.clone();
            event.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
            event
        };
        assert_eq!(
            text(with(json!({"type": "exited", "name": "build", "exit_code": 2}))).as_deref(),
            Some("build exit 2")
        );
        assert_eq!(text(with(json!({"type": "needs_input", "name": "setup"}))).as_deref(), Some("setup asks"));
        assert_eq!(
            text(with(json!({"type": "exited", "signal": "SIGKILL", "exit_code": 137}))).as_deref(),
            Some("proc_0123 SIGKILL")
        );
        assert_eq!(text(json!({"type": "output", "data": "x"})), None);
    }
}
