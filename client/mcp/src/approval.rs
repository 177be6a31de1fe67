//! Questions for a person that a call waits for: asked by the form of the client where it has one, else in the text.

use crate::call::Call;
use crate::daemon_link::{DaemonLink, Failure};
use crate::message::Era;
use crate::server::Server;
use crate::view::one_line;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// The most characters of a command in a form.
const MAX_COMMAND_CHARS: usize = 1000;

/// The answer of the user of the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    Approve,
    Deny,
    /// The form was closed: the question goes on, and someone else may answer it.
    Open,
}

/// A pending approval.
#[derive(Debug, Clone)]
pub struct Question {
    pub id: String,
    digest: String,
    message: String,
}

/// Returns the pending approval with this id.
pub fn question(link: &mut DaemonLink<'_>, id: &str) -> Result<Option<Question>, Failure> {
    Ok(read(&link.call("approvals.get", &json!({ "id": id }))?))
}

/// Returns the oldest pending approval of a session that is not in `known`.
pub fn next_question(link: &mut DaemonLink<'_>, session: &str, known: &[String]) -> Option<Question> {
    let listed = link.call("approvals.list", &json!({"session_key": session, "state": "pending"})).ok()?;
    listed["approvals"].as_array()?.iter().filter_map(read).find(|question| !known.contains(&question.id))
}

fn read(approval: &Value) -> Option<Question> {
    if approval["state"] != "pending" {
        return None;
    }
    let action = &approval["action"];
    let what = action["command"].as_str().or_else(|| action["tool"].as_str()).unwrap_or("an action");
    let what: String = one_line(what).chars().take(MAX_COMMAND_CHARS).collect();
    let why: Vec<&str> =
        approval["why"].as_array().into_iter().flatten().filter_map(|why| why["text"].as_str()).collect();
    let place = action["cwd"].as_str().map(|cwd| format!(" in {}", one_line(cwd))).unwrap_or_default();
    let why = if why.is_empty() { String::new() } else { format!(" ({})", one_line(&why.join("; "))) };
    Some(Question {
        id: approval["id"].as_str()?.to_owned(),
        digest: approval["digest"].as_str()?.to_owned(),
        message: format!("toold: may this run?{why}\n{what}{place}"),
    })
}

impl Question {
    /// Returns the parameters of the form.
    pub fn form(&self) -> Value {
        json!({
            "mode": "form",
            "message": self.message,
            "requestedSchema": {
                "type": "object",
                "properties": {"decision": {"type": "string", "title": "Decision", "enum": ["approve", "deny"]}},
                "required": ["decision"],
            },
        })
    }

    /// Returns the line for an agent whose client has no form.
    pub fn line(&self) -> String {
        format!("[waits for a person: `toolctl approve {0}` or `toolctl deny {0}`]", self.id)
    }

    /// Passes the answer on to the daemon. One that comes too late changes nothing.
    pub fn decide(&self, link: &mut DaemonLink<'_>, decision: Decision) -> Result<(), Failure> {
        let decision = match decision {
            Decision::Approve => "approve",
            Decision::Deny => "deny",
            Decision::Open => return Ok(()),
        };
        let params = json!({"id": self.id, "decision": decision, "digest": self.digest, "message": "by the form of the MCP client"});
        match link.call("approvals.decide", &params) {
            Err(failure) if failure.kind() == Some("already_decided") => Ok(()),
            decided => decided.map(drop),
        }
    }
}

/// Reads the answer of a form.
pub fn read_answer(answer: &Value) -> Decision {
    match (answer["action"].as_str(), answer["content"]["decision"].as_str()) {
        (Some("accept"), Some("approve")) => Decision::Approve,
        (Some("accept"), _) | (Some("decline"), _) => Decision::Deny,
        _ => Decision::Open,
    }
}

/// Asks the user by a request of ours, in the older era. Returns `Open` if the client has no form or does not answer in time.
pub fn ask(server: &Server, call: &Call<'_>, question: &Question, time: Duration) -> Decision {
    if !call.client.has_elicitation() || call.era == Era::Modern {
        return Decision::Open;
    }
    server
        .ask_client("elicitation/create", question.form(), time, call.cancel)
        .map_or(Decision::Open, |answer| read_answer(&answer))
}

/// Builds the result that asks for input, in the newer era: the client makes the call again with the answer and `state`.
pub fn input_required(question: &Question, state: &str) -> Value {
    json!({
        "resultType": "input_required",
        "inputRequests": {question.id.clone(): {"method": "elicitation/create", "params": question.form()}},
        "requestState": state,
    })
}

/// Applies the answers with which a call is made again. Only approvals of this session are decided.
pub fn apply_answers(call: &mut Call<'_>, answers: &Map<String, Value>) -> Result<(), Failure> {
    for (id, answer) in answers {
        let listed = call.link.call("approvals.list", &json!({"session_key": call.session, "state": "pending"}))?;
        let pending = listed["approvals"].as_array().into_iter().flatten().filter_map(read);
        if let Some(question) = pending.into_iter().find(|question| question.id == *id) {
            question.decide(&mut call.link, read_answer(answer))?;
        }
    }
    Ok(())
}
