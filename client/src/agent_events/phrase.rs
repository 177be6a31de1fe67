//! The phrase of an event for an agent: a subject and a verb, the last line in quotes, the age.

use super::AgentEvent;
use crate::render::status;
use crate::render::text::{cut, escape_control, last_line};
use crate::render::time::unix_ms;
use toold_proto::approval::ApprovalState;
use toold_proto::event::{EventBody, Outcome};
use toold_proto::params::Status;
use toold_proto::process::Reason;

/// The most columns of a quoted line.
const MAX_QUOTED_WIDTH: usize = 80;
/// The most columns of a name.
const MAX_NAME_WIDTH: usize = 40;

/// Returns the phrase.
pub fn phrase(event: &AgentEvent, now_ms: u64) -> String {
    let age = unix_ms(&event.at).map_or_else(|| "0s".to_owned(), |at| short_time(now_ms.saturating_sub(at)));
    let who = |name: &Option<String>| subject(name.as_deref().or(event.id.as_deref()).unwrap_or("a process"));
    match &event.body {
        EventBody::Completion(end) => {
            let output = end.summary.as_ref().and_then(|summary| last_line(&summary.output));
            let detail = output.or_else(|| failure(&end.outcome));
            format!("{} {} {age} ago{}", who(&end.outcome.name), outcome(&end.outcome, Status::Exited), quoted(detail))
        }
        EventBody::Exited(end) => {
            let detail = quoted(failure(&end.outcome));
            format!("{} {} {age} ago{detail}", who(&end.outcome.name), outcome(&end.outcome, end.status))
        }
        EventBody::NeedsInput(event) => {
            format!("{} asks{} {age} ago", who(&event.name), quoted(Some(event.prompt.trim().to_owned())))
        }
        EventBody::WatchMatch(event) => {
            format!("{} printed{} {age} ago", who(&event.name), quoted(last_line(&event.output)))
        }
        EventBody::WatchDisabled(event) => {
            format!("{} is not watched any more {age} ago{}", who(&event.name), quoted(Some(event.message.clone())))
        }
        EventBody::RestartGaveUp(event) => {
            format!("{} is not restarted any more {age} ago{}", who(&event.name), quoted(Some(event.message.clone())))
        }
        EventBody::StageReady(event) => {
            let files = event.files.map(|files| format!(" {files} changed files")).unwrap_or_default();
            format!("{} staged{files} {age} ago", who(&event.name))
        }
        EventBody::ApprovalRequested(event) => {
            let command = quoted(Some(event.command.clone()));
            format!("{} waits for a person's approval{command} {age} ago", event.approval)
        }
        EventBody::ApprovalDecided(event) => {
            let (state, command) = (decided(event.state), quoted(Some(event.command.clone())));
            format!("{} {state}{command} {age} ago", event.approval)
        }
        // Only the types of `AGENT_EVENTS` are read.
        _ => format!("{} changed {age} ago", who(&None)),
    }
}

/// Formats a time with one unit: `0.4s`, `12s`, `3m`, `2h`, `5d`.
pub fn short_time(ms: u64) -> String {
    match ms {
        0..1000 => format!("0.{}s", ms / 100),
        _ => crate::render::time::duration(ms),
    }
}

fn subject(name: &str) -> String {
    cut(&escape_control(name), MAX_NAME_WIDTH)
}

/// Returns ` "text"` in one line, or nothing.
fn quoted(text: Option<String>) -> String {
    match text.map(|text| cut(&escape_control(&text), MAX_QUOTED_WIDTH)) {
        Some(text) if !text.is_empty() => format!(" \"{text}\""),
        Some(_) | None => String::new(),
    }
}

/// Formats an end: `exited 2`, `SIGKILL (oom)`, `lost`, `failed to start`.
fn outcome(outcome: &Outcome, status: Status) -> String {
    match (outcome.reason, &outcome.signal, outcome.exit_code) {
        (Some(Reason::FailedStart), ..) => "failed to start".into(),
        (Some(Reason::Denied), ..) => "was denied".into(),
        (Some(Reason::Dependency), ..) => "did not run".into(),
        (Some(Reason::Lost), ..) => "lost".into(),
        (reason, Some(signal), _) => match reason {
            Some(Reason::Oom | Reason::Timeout | Reason::Killed) => {
                format!("{signal} ({})", reason.map(status::reason).unwrap_or_default())
            }
            _ => signal.clone(),
        },
        (Some(Reason::Timeout), None, Some(code)) => format!("exited {code} (timeout)"),
        (_, None, Some(code)) => format!("exited {code}"),
        (_, None, None) if status == Status::Lost => "lost".into(),
        (_, None, None) => "ended".into(),
    }
}

fn failure(outcome: &Outcome) -> Option<String> {
    outcome.failure.as_ref().map(status::failure)
}

fn decided(state: ApprovalState) -> &'static str {
    match state {
        ApprovalState::Pending => "waits",
        ApprovalState::Approved => "was approved",
        ApprovalState::Denied => "was denied",
        ApprovalState::Aborted => "was aborted",
        ApprovalState::Timeout => "was not decided in time",
        ApprovalState::Withdrawn => "was withdrawn",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_has_one_unit() {
        let shown = [0, 449, 999, 1000, 12_900, 59_999, 60_000, 7_200_000].map(short_time);
        assert_eq!(shown, ["0.0s", "0.4s", "0.9s", "1s", "12s", "59s", "1m", "2h"]);
    }
}
