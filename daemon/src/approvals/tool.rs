//! Asks about calls of tools that run outside the sandbox of their caller, and waits for the answers.

use super::question::{Question, script_offer};
use super::{Approvals, Entry, caller};
use crate::call_clock::{self, ScriptCall};
use crate::disk::on_disk;
use crate::spec::AskError;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io;
use std::sync::Arc;
use tokio::sync::oneshot;
use toold_proto::approval::{
    Action, Approval, ApprovalId, ApprovalKind, ApprovalState, Caller, Covers, Offer, Scope, Why,
};

/// The most characters of arguments that a person is shown. The digest is of all.
const MAX_ARGS_CHARS: usize = 4000;

/// A call of a tool that a person must be asked about.
pub struct ToolQuestion<'a> {
    pub kind: ApprovalKind,
    pub why: Vec<Why>,
    /// The full name of the tool.
    pub tool: &'a str,
    pub args: &'a Value,
    pub session_key: Option<String>,
    pub task_id: Option<String>,
    /// The same for the same call, also when it is made again after a crash.
    pub request_id: String,
    pub by: Caller,
}

/// The reason why a call of a tool is not made.
#[derive(Debug)]
pub enum ToolRefused {
    /// A person did not allow it, or no person answered.
    Denied(Box<Approval>),
    /// The answer is lost.
    Lost,
    Ask(AskError),
}

impl Approvals {
    /// Returns when a person allows a call of a tool: by a grant of its session or script, or by an answer, which it waits for.
    pub async fn ask_for_tool(self: &Arc<Self>, ask: ToolQuestion<'_>) -> Result<(), ToolRefused> {
        let script_call = call_clock::script_call();
        let question = self.tool_question(ask, script_call.as_ref());
        // A call that asked before an earlier daemon died has its answer, or gets it: no grant takes its place.
        if self.repeated(&question).is_none() {
            let (approvals, covers) = (self.clone(), covers(&question.action));
            let (session_key, script_call) = (question.session_key.clone(), script_call.clone());
            // In a task of its own, like the question.
            let used = tokio::spawn(on_disk(async move {
                approvals.use_grant(session_key.as_deref(), &covers).await.is_some()
                    || approvals.use_script_grant(script_call.as_ref()).await.is_some()
            }));
            if used.await.unwrap_or(false) {
                return Ok(());
            }
        }
        let answer = self.ask_and_wait(&question).await.map_err(ToolRefused::Ask)?;
        match answer.ok_or(ToolRefused::Lost)? {
            Approval { state: ApprovalState::Approved, .. } => Ok(()),
            answer => Err(ToolRefused::Denied(Box::new(answer))),
        }
    }

    fn tool_question(&self, ask: ToolQuestion<'_>, script_call: Option<&ScriptCall>) -> Question {
        let action = Action {
            tool: Some(ask.tool.into()),
            args: Some(ask.args.to_string().chars().take(MAX_ARGS_CHARS).collect()),
            args_sha256: Some(args_sha256(ask.args)),
            ..Action::default()
        };
        let mut offers = vec![Offer { scope: Scope::Once, grant: None }];
        if ask.session_key.is_some() {
            offers.push(Offer { scope: Scope::Session, grant: Some(covers(&action)) });
        }
        offers.extend(script_call.map(script_offer));
        Question {
            kind: ask.kind,
            why: ask.why,
            action,
            session_key: ask.session_key,
            task_id: ask.task_id,
            requested_by: ask.by,
            timeout_ms: self.registry.config.policy.approval_timeout_ms,
            offers,
            request_id: Some(ask.request_id),
            script: script_call.map(|call| call.script),
        }
    }

    /// Asks, and waits for the answer. The clock of the call stands still meanwhile. The same `request_id` with the same action
    /// waits for the same answer. None: it is lost.
    pub(super) async fn ask_and_wait(self: &Arc<Self>, question: &Question) -> Result<Option<Approval>, AskError> {
        let id = match self.repeated(question) {
            Some(id) => id,
            None => self.ask_in_background(question.clone()).await?,
        };
        let _paused = call_clock::pause(id);
        let answer = self.decision(id).await;
        // Who decides holds the lock until the grant and the events are there: the next call of a loop must find the grant.
        drop(self.changing.lock().await);
        Ok(answer)
    }

    /// Records and publishes a question in a task of its own: a call that is cancelled meanwhile would leave a write of its file
    /// that goes on beside the next one. Withdraws it if no caller is left.
    async fn ask_in_background(self: &Arc<Self>, question: Question) -> Result<ApprovalId, AskError> {
        let (approvals, (sender, asked)) = (self.clone(), oneshot::channel());
        tokio::spawn(on_disk(async move {
            let asked = approvals.record(&question, None).await;
            if let Ok(id) = asked {
                approvals.publish_question(id).await;
            }
            if let Err(Ok(unanswered)) = sender.send(asked) {
                let is_it = |approval: &Approval| approval.id == unanswered;
                approvals.withdraw(&caller::daemon(), "its call was ended", is_it).await;
            }
        }));
        let path = self.dir.clone();
        let ended = || AskError::Store { path, source: io::Error::other("the task that asks has ended") };
        asked.await.unwrap_or_else(|_| Err(ended()))
    }

    /// Returns the question of an earlier call with the same `request_id` and the same action.
    fn repeated(&self, question: &Question) -> Option<ApprovalId> {
        let request_id = question.request_id.as_ref()?;
        let digest = super::question::digest(&question.action);
        let is_it = |entry: &Arc<Entry>| {
            let stored = entry.get();
            let approval = &stored.approval;
            stored.request_id.as_ref() == Some(request_id)
                && approval.session_key == question.session_key
                && approval.digest == digest
        };
        self.entries().into_iter().find(is_it).map(|entry| entry.get().approval.id)
    }

    /// Returns the approvals of calls whose `request_id` begins with a text, by what follows.
    pub fn by_request(&self, prefix: &str) -> HashMap<String, ApprovalId> {
        let of_call = |entry: Arc<Entry>| {
            let stored = entry.get();
            let call = stored.request_id.as_deref()?.strip_prefix(prefix)?.to_owned();
            Some((call, stored.approval.id))
        };
        self.entries().into_iter().filter_map(of_call).collect()
    }
}

/// Returns the calls that a grant for a session covers: the same tool with the same arguments.
fn covers(action: &Action) -> Covers {
    Covers { tool: action.tool.clone(), args_sha256: action.args_sha256.clone(), ..Covers::default() }
}

/// Returns the hash of arguments, whatever the order of their names.
fn args_sha256(args: &Value) -> String {
    let mut sorted = args.clone();
    sorted.sort_all_objects();
    format!("{:x}", Sha256::digest(sorted.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_order_of_names_does_not_change_the_hash_of_arguments() {
        let (one, two) = (r#"{"a":{"x":1,"y":2},"b":3}"#, r#"{"b":3,"a":{"y":2,"x":1}}"#);
        let hash = |text: &str| args_sha256(&serde_json::from_str(text).expect("JSON"));
        assert_eq!(hash(one), hash(two));
        assert_ne!(hash(one), args_sha256(&json!({ "a": { "x": 1, "y": 2 }, "b": "3" })));
    }
}
