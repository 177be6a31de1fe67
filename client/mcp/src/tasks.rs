//! Durable tasks: a process is a task, and its id the task's. They need no state here: they outlive this server and the daemon.

use crate::call::Call;
use crate::carrier::now_ms;
use crate::daemon_link::Failure;
use crate::message::ProtocolError;
use crate::reply::Reply;
use crate::view::Process;
use serde_json::{Map, Value, json};
use toold_proto::time::rfc3339;

/// The interval in which a client should ask.
const POLL_INTERVAL_MS: u64 = 2000;
/// The output in the result of a task.
const SHOWN_LINES: u64 = 40;
const SHOWN_CHARS: usize = 4000;

/// Returns the common fields of a task.
fn task(process: &Process, status: &str) -> Value {
    let updated = process.exited_at.clone().unwrap_or_else(|| rfc3339(now_ms()));
    json!({
        "taskId": process.id,
        "status": status,
        "statusMessage": process.first_line(&[]),
        "createdAt": process.started_at,
        "lastUpdatedAt": updated,
        "ttlMs": null,
        "pollIntervalMs": POLL_INTERVAL_MS,
    })
}

/// Returns the result of a call that goes on as a task.
pub fn created(process: &Process) -> Value {
    let mut created = task(process, "working");
    created["resultType"] = json!("task");
    created
}

/// Returns the task in full, and the reply that is its result if it has ended.
pub fn get(call: &mut Call<'_>, id: &str) -> Result<(Value, Option<Reply>), ProtocolError> {
    let process = find(call, id)?;
    if process.has_ended() {
        if process.reason.as_deref() == Some("killed") {
            return Ok((task(&process, "cancelled"), None));
        }
        let mut reply = Reply::default();
        call.show(&mut reply, &process.id, SHOWN_LINES, SHOWN_CHARS, &[]).map_err(protocol_error)?;
        let mut completed = task(&process, "completed");
        completed["result"] = reply.call_result(None);
        return Ok((completed, Some(reply)));
    }
    let question = process.needs_input.clone().filter(|question| question.echo != Some(false));
    match question.filter(|_| call.client.has_elicitation() && !call.options.read_only) {
        None => Ok((task(&process, "working"), None)),
        Some(question) => {
            let mut waiting = task(&process, "input_required");
            let form = json!({
                "mode": "form",
                "message": format!("{} asks: {}", process.title(), question.prompt.trim()),
                "requestedSchema": {"type": "object", "properties": {"text": {"type": "string", "title": "Answer"}}, "required": ["text"]},
            });
            waiting["inputRequests"] =
                json!({question_key(&process): {"method": "elicitation/create", "params": form}});
            Ok((waiting, None))
        }
    }
}

/// Returns the key of the question that a process asks now. Output moves on, so no two questions have the same.
fn question_key(process: &Process) -> String {
    format!("input-{}", process.cursor)
}

/// Types the answers of the user. Those to earlier questions are ignored.
pub fn update(call: &mut Call<'_>, id: &str, answers: &Map<String, Value>) -> Result<(), ProtocolError> {
    let process = find(call, id)?;
    let key = question_key(&process);
    let Some(answer) = answers.get(&key).filter(|_| process.needs_input.is_some()) else { return Ok(()) };
    let (action, text) = (answer["action"].as_str(), answer["content"]["text"].as_str());
    if let (Some("accept"), Some(text)) = (action, text) {
        let params = json!({"id": process.id, "keys": [{"text": text}, "Enter"], "write_id": format!("task-{key}")});
        call.link.call("write", &params).map_err(protocol_error)?;
    }
    Ok(())
}

/// Kills the process.
pub fn cancel(call: &mut Call<'_>, id: &str) -> Result<(), ProtocolError> {
    let process = find(call, id)?;
    call.link.call("kill", &json!({"ids": [process.id]})).map(drop).map_err(protocol_error)
}

fn find(call: &mut Call<'_>, id: &str) -> Result<Process, ProtocolError> {
    if !call.client.has_tasks() {
        return Err(ProtocolError::missing_tasks());
    }
    call.tail(id, 1).map_err(protocol_error)
}

fn protocol_error(failure: Failure) -> ProtocolError {
    match failure.kind() {
        Some("not_found" | "ambiguous_id") => ProtocolError::params(format!("Failed to retrieve task: {failure}")),
        Some(_) | None => ProtocolError::new(crate::message::INTERNAL_ERROR, failure.to_string()),
    }
}
