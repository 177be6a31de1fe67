//! A process that waits for an approval: its question is on stderr, and Ctrl-C withdraws it.

use super::{RecordFate, Request, Session};
use crate::error::CliError;
use crate::render::approval;
use crate::render::text::count;
use std::time::Duration;
use toold_proto::approval::ApprovalsGetParams;
use toold_proto::params::{KillParams, WaitParams};
use toold_proto::process::Process;
use toold_proto::{RpcError, api};

/// Returns true if a signal was refused because the process waits for an approval.
pub fn is_asking(error: &RpcError) -> bool {
    error.data.get("process").is_some_and(|process| process["pending_on"]["approval"].is_string())
}

impl Session<'_, '_> {
    /// Prints that the process waits for a person, for what, and how to answer.
    pub(super) fn report_question(&mut self, process: &Process) {
        let Some(id) = process.pending_on.as_ref().and_then(|pending| pending.approval) else { return };
        let params = ApprovalsGetParams { id: id.to_string() };
        let why = self.cx.connection.call_with_retry::<api::ApprovalsGet>(&params).map(|found| approval::why(&found));
        let why = why.map(|why| format!(" ({why})")).unwrap_or_default();
        self.message(&format!("{} waits for an approval{why}", process.id));
        self.message(&format!(
            "answer with: toolctl approve {id}, or toolctl deny {id}; Ctrl-C withdraws the question"
        ));
    }

    /// Prints that a person is asked to run a process again without the sandbox that made it fail, and how to answer.
    pub(super) fn report_retry(&mut self, process: &Process) {
        let refused = process.sandbox.denials.as_ref().map_or(0, |denials| denials.count);
        if refused == 0 || !process.has_failed() || self.options.record != RecordFate::Kept {
            return;
        }
        // The question comes a moment after the end, and `wait` returns with it.
        let params = WaitParams { id: Some(self.id()), ..Default::default() };
        let Ok(waited) = self.cx.connection.call_with_retry::<api::Wait>(&params) else { return };
        let retry = waited.processes.into_iter().find_map(|waited| waited.process.retry);
        if let Some(id) = retry.and_then(|retry| retry.approval) {
            let calls = count(refused, "call");
            self.cx.console.message(&format!("its sandbox refused {calls}; {id} asks to run it again without it"));
            self.cx.console.message(&format!("answer with: toolctl approve {id}, or toolctl deny {id}"));
        }
    }

    /// Withdraws the question, and so ends the process that never ran.
    pub(super) fn withdraw(&mut self) -> Result<(), CliError> {
        let params = KillParams { id: Some(self.id()), ..Default::default() };
        self.ask::<api::Kill>(Request::Kill, &params, Duration::ZERO)
    }
}
