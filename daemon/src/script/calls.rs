//! `script.calls`, and the counts of calls in a result: both are read from the journal, so they are the same after a restart.

use super::Scripts;
use super::live::CALLS;
use crate::disk;
use crate::proc::Proc;
use crate::tools::journal::{Accepted, CallEntry, CallJournal, Ended};
use crate::tools::native::command::request_id;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::Arc;
use toold_proto::approval::ApprovalId;
use toold_proto::script::{
    CallCounts, CallDetail, CallStatus, CallSummary, JournalledCall, ScriptCallsParams, ScriptCallsResult,
};
use toold_proto::time::rfc3339;
use toold_proto::{ErrorKind, RpcError};

/// The length of a preview of arguments, in characters.
const PREVIEW_CHARS: usize = 80;
/// The calls at the beginning and at the end that a result lists.
const LISTED: usize = 50;
const DEFAULT_LIMIT: u64 = 200;
/// The most calls of one page.
const MAX_LIMIT: u64 = 10_000;

/// A call and its end.
pub(super) struct CallPair {
    pub accepted: Accepted,
    pub ended: Option<Ended>,
}

/// Pairs calls with their ends, in the order of the calls. Returns the number of refusals too.
pub(super) fn pair(entries: impl Iterator<Item = CallEntry>, cell: Option<u64>) -> (Vec<CallPair>, u64) {
    let (mut calls, mut by_id, mut refused): (Vec<CallPair>, HashMap<String, usize>, u64) = Default::default();
    for entry in entries {
        match entry {
            CallEntry::Call(accepted) if cell.is_none_or(|cell| accepted.cell == cell) => {
                by_id.insert(accepted.call.clone(), calls.len());
                calls.push(CallPair { accepted, ended: None });
            }
            CallEntry::End(ended) => {
                if let Some(at) = by_id.get(&ended.call) {
                    refused += u64::from(ended.outcome.is_refused());
                    calls[*at].ended = Some(ended);
                }
            }
            CallEntry::Refused { cell: of, .. } if cell.is_none_or(|cell| of == cell) => refused += 1,
            CallEntry::Refusals { total } if cell.is_none() => refused = total,
            // Not about calls, or of another cell.
            _ => {}
        }
    }
    calls.retain(|call| !call.ended.as_ref().is_some_and(|ended| ended.outcome.is_refused()));
    (calls, refused)
}

impl CallPair {
    /// Returns the state of the call. `is_over`: its caller has ended, so that no caller asks for it again.
    fn status(&self, is_over: bool) -> CallStatus {
        match &self.ended {
            None if is_over => CallStatus::Unknown,
            None => CallStatus::Running,
            Some(ended) => ended.outcome.status(),
        }
    }

    fn ms(&self) -> Option<u64> {
        self.ended.as_ref().map(|ended| ended.at.saturating_sub(self.accepted.at))
    }

    fn bytes(&self) -> u64 {
        self.ended.as_ref().map_or(0, |ended| ended.outcome.bytes())
    }

    fn preview(&self) -> String {
        let text = self.accepted.args.to_string();
        match text.char_indices().nth(PREVIEW_CHARS) {
            Some((end, _)) => text[..end].to_owned(),
            None => text,
        }
    }

    fn summary(&self, is_over: bool) -> CallSummary {
        CallSummary {
            call: self.accepted.call.clone(),
            tool: self.accepted.tool.clone(),
            args_preview: self.preview(),
            status: self.status(is_over),
            ms: self.ms(),
            bytes: self.bytes(),
        }
    }

    fn journalled(&self, detail: CallDetail, is_over: bool) -> JournalledCall {
        let error = self.ended.as_ref().and_then(|ended| ended.outcome.error());
        let approval = error.and_then(|error| serde_json::from_value(error.data.get("approval")?.clone()).ok());
        JournalledCall {
            call: self.accepted.call.clone(),
            tool: self.accepted.tool.clone(),
            args: match detail {
                CallDetail::Preview => Value::String(self.preview()),
                CallDetail::Full => self.accepted.args.clone(),
            },
            status: self.status(is_over),
            at: rfc3339(self.accepted.at),
            ended_at: self.ended.as_ref().map(|ended| rfc3339(ended.at)),
            ms: self.ms(),
            bytes: self.bytes(),
            error: error.and_then(|error| error.kind()).map(|kind| kind.name().to_owned()),
            process: self.ended.as_ref().and_then(|ended| ended.process.clone()),
            approval,
            cell: Some(self.accepted.cell).filter(|cell| *cell > 0),
        }
    }
}

/// Counts calls, and lists the first and the last.
pub(super) fn counts(calls: &[CallPair], refused: u64, is_over: bool) -> CallCounts {
    let count = |status: CallStatus| calls.iter().filter(|call| call.status(is_over) == status).count() as u64;
    let listed = calls.iter().enumerate().filter(|(at, _)| *at < LISTED || *at + LISTED >= calls.len());
    CallCounts {
        made: calls.len() as u64,
        refused,
        failed: count(CallStatus::Failed),
        unknown: count(CallStatus::Unknown),
        log: listed.map(|(_, call)| call.summary(is_over)).collect(),
    }
}

impl Scripts {
    /// `script.calls`: the calls after one of them, the oldest first.
    pub async fn calls(self: &Arc<Self>, call: ScriptCallsParams) -> Result<ScriptCallsResult, RpcError> {
        let proc = self.find(&call.id)?;
        let (path, is_over) = (proc.dir.join(CALLS), proc.published_state().has_ended());
        let found = disk::blocking(move || CallJournal::read_all(&path)).await.flatten();
        let found =
            found.map_err(|e| RpcError::new(ErrorKind::Unavailable, format!("read the journal of calls: {e}")))?;
        let (all, _) = pair(found.entries.into_iter().map(|(entry, _)| entry), call.cell);
        let from = match &call.after {
            None => 0,
            Some(after) => {
                let at = all.iter().position(|pair| pair.accepted.call == *after);
                at.ok_or_else(|| RpcError::param("after", format!("there is no call {after:?}")))? + 1
            }
        };
        let limit = call.limit.unwrap_or(DEFAULT_LIMIT).clamp(1, MAX_LIMIT) as usize;
        let page = &all[from..all.len().min(from + limit)];
        let asked = self.approvals.by_request(&request_id(&format!("{}/", proc.spec.id)));
        let next = page.last().filter(|_| from + page.len() < all.len()).map(|pair| pair.accepted.call.clone());
        Ok(ScriptCallsResult {
            id: proc.spec.id,
            calls: page
                .iter()
                .map(|pair| self.with_approval(&proc, &asked, pair.journalled(call.detail, is_over)))
                .collect(),
            total: all.len() as u64,
            next,
        })
    }

    /// Adds the approval of a call: of its process, or of the call itself, by `asked`.
    fn with_approval(
        &self,
        script: &Proc,
        asked: &HashMap<String, ApprovalId>,
        mut call: JournalledCall,
    ) -> JournalledCall {
        let by_process = || {
            let request = request_id(&format!("{}/{}", script.spec.id, call.call));
            self.approvals.registry.started_by_request(&request)?.spec.policy.as_ref()?.approval
        };
        call.approval = call.approval.or_else(|| asked.get(&call.call).copied()).or_else(by_process);
        call
    }
}
