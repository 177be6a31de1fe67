//! The end of a script: its authority ends, then its calls, then that is published, each once.

use super::{LiveScript, Scripts, run_dir};
use crate::disk;
use crate::proc::Proc;
use crate::proc::control::TimeoutExtension;
use crate::proc::handle::Kill;
use crate::proc::kill::{GRACE_MS, kill_all};
use crate::proc::state::State;
use crate::tools::dispatcher::{Dispatcher, cancel_all};
use crate::tools::journal::{Accepted, CallEntry};
use crate::tools::native::command;
use crate::tools::owner::retired;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use toold_format::slots::Cause;
use toold_proto::event::{ScriptFinished, ScriptStarted};
use toold_proto::script::{CallCounts, FinishedCalls, ScriptCancelParams, ScriptCancelResult};
use toold_proto::{ErrorKind, RpcError};
use toold_shim::hooks;

/// The time that is added to the clock of a shim at once while a person is asked. With no daemon the clock runs on.
const EXTENSION: Duration = Duration::from_secs(5);

/// The most characters of output in the event of an end.
const MAX_EVENT_CHARS: usize = 2000;

/// Returns the end of a text.
fn last_chars(text: String) -> String {
    match text.char_indices().rev().nth(MAX_EVENT_CHARS - 1) {
        Some((from, _)) => text[from..].to_owned(),
        None => text,
    }
}

/// Waits until the program runs, then publishes that.
pub(super) async fn started(proc: &Arc<Proc>) {
    let mut state = proc.subscribe();
    let _ = state.wait_for(|state| state.pid > 0 || state.has_ended()).await;
    let Some(script) = &proc.spec.script else { return };
    if proc.published_state().pid == 0 || proc.checkpoint().script_started {
        return;
    }
    let event = ScriptStarted {
        name: proc.spec.name.clone(),
        language: script.language,
        tools: script.tools.clone(),
        max_calls: script.max_calls,
    };
    if let Err(e) = proc.publish_event(&event, |_| {}) {
        tracing::error!(id = %proc.spec.id, %e, "failed to store an event");
    }
}

pub(super) async fn wait_end(proc: &Proc) {
    let _ = proc.subscribe().wait_for(State::has_ended).await;
}

/// Moves the end of a script's time while its calls wait for a person. Never returns.
pub(super) async fn extend_while_asking(proc: &Arc<Proc>, live: &LiveScript) {
    let mut asking = live.owner.asking.subscribe();
    loop {
        if asking.wait_for(|open| !open.is_empty()).await.is_err() {
            return std::future::pending().await;
        }
        let (began, by_ms) = (Instant::now(), EXTENSION.as_millis() as i64);
        let extended = proc.extend_timeout(by_ms).await;
        if !matches!(extended, Ok(TimeoutExtension::Extended)) {
            tracing::debug!(id = %proc.spec.id, ?extended, "the time of a script that waits for a person is not moved");
            return std::future::pending().await;
        }
        let answered = async { asking.wait_for(|open| open.is_empty()).await.is_ok() };
        if tokio::time::timeout(EXTENSION, answered).await.is_ok_and(|is_answered| is_answered) {
            // Takes back what was not needed.
            let _ = proc.extend_timeout(began.elapsed().as_millis() as i64 - by_ms).await;
        }
    }
}

impl Scripts {
    /// Ends the authority of a script whose process has ended, and what its calls still run, then publishes the end.
    pub(super) async fn finish(self: &Arc<Self>, proc: &Arc<Proc>, live: &Arc<LiveScript>) {
        hooks::at("script.ended");
        let running = live.owner.retire();
        cancel_all(running, &retired()).await;
        self.end_unanswered(live, None).await;
        self.end_cells(proc, live).await;
        self.approvals.end_script(live.id).await;
        live.closing.send_replace(true);
        hooks::at("script.retired");
        let (scripts, ended) = (self.clone(), proc.clone());
        let owner = live.owner.clone();
        let published = disk::blocking(move || scripts.publish_finished(&ended, &owner)).await;
        match published {
            Ok(()) => {}
            Err(e) => tracing::error!(id = %proc.spec.id, %e, "the end of a script was not published"),
        }
        let dir = live.spec.run_dir.clone();
        let _ = disk::blocking(move || run_dir::clean(&dir)).await;
        live.ended.send_replace(true);
        self.remove(live.id);
    }

    /// Ends what calls still run or ask that an earlier daemon accepted and that no caller has asked for again. `cell`: only of this one.
    pub(super) async fn end_unanswered(&self, live: &LiveScript, cell: Option<u64>) {
        for (_, entry) in live.owner.unanswered() {
            let CallEntry::Call(Accepted { call, tool, args, cell: of, .. }) = entry else { continue };
            let in_background = args.get("background").and_then(Value::as_bool) == Some(true);
            if cell.is_some_and(|cell| cell != of) {
                continue;
            }
            let request = command::request_id(&live.owner.unique(&call));
            self.approvals.withdraw_call(&request).await;
            if tool != "terminal" || in_background {
                continue;
            }
            if let Some(proc) = self.approvals.registry.started_by_request(&request) {
                command::kill_call(proc, live.owner.by.uid, live.owner.by.pid).await;
            }
        }
    }

    fn publish_finished(&self, proc: &Arc<Proc>, owner: &crate::tools::owner::Owner) {
        if proc.checkpoint().script_finished {
            return;
        }
        let result = match self.describe(proc, Some(owner)) {
            Ok(result) => result,
            Err(e) => return tracing::error!(id = %proc.spec.id, %e, "the result of a script cannot be read"),
        };
        let CallCounts { made, refused, failed, unknown, .. } = result.calls;
        let event = ScriptFinished {
            name: proc.spec.name.clone(),
            status: result.status,
            exit_code: result.exit_code,
            signal: result.signal,
            calls: FinishedCalls { made, refused, failed, unknown },
            redacted: result.redacted,
            output: last_chars(result.output),
            duration_ms: result.duration_ms,
        };
        if let Err(e) = proc.publish_event(&event, |_| {}) {
            tracing::error!(id = %proc.spec.id, %e, "failed to store an event");
        }
    }

    /// `script.cancel`: ends the authority, then the calls, then the tree, then answers.
    pub async fn cancel(
        self: &Arc<Self>,
        call: ScriptCancelParams,
        uid: u32,
        pid: i32,
    ) -> Result<ScriptCancelResult, RpcError> {
        let proc = self.find(&call.id)?;
        let id = proc.spec.id;
        let ended = ScriptCancelResult { id, status: "ended".into(), calls: Vec::new(), survivors: Vec::new() };
        let live = self.live(id);
        let reason = RpcError::new(ErrorKind::Cancelled, "the call was cancelled by script.cancel");
        if let Some(one) = &call.call {
            let dispatcher: &Arc<Dispatcher> = &self.dispatcher;
            let Some(live) = live else { return Ok(ended) };
            return Ok(match dispatcher.cancel(&live.owner, one, reason).await {
                true => ScriptCancelResult { status: "cancelled".into(), calls: vec![one.clone()], ..ended },
                false => ended,
            });
        }
        let mut calls = Vec::new();
        if let Some(live) = &live {
            calls = cancel_all(live.owner.retire(), &reason).await;
        }
        if proc.published_state().is_final() {
            return Ok(ended);
        }
        let kill = Kill { signal: libc::SIGTERM, grace_ms: GRACE_MS, cause: Cause::Client, uid, pid };
        let killed = kill_all(vec![proc.clone()], kill).await;
        let survivors = killed.iter().flat_map(|killed| killed.survivors.iter().map(|member| member.pid)).collect();
        if let Some(live) = live {
            let _ = live.ended.subscribe().wait_for(|ended| *ended).await;
        }
        Ok(ScriptCancelResult { id, status: "cancelled".into(), calls, survivors })
    }
}
