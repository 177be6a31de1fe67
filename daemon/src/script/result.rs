//! `script.result`: the result of a script, made from its log, its journal and its record whenever it is asked for. It is the
//! same for every caller, after the end and after a restart.

use super::calls::{counts, pair};
use super::excerpt::{ResultRedaction, StreamText, read_stream};
use super::live::CALLS;
use super::{Scripts, hints};
use crate::clock::wall_ms;
use crate::disk;
use crate::proc::Proc;
use crate::proc::completion::output_end;
use crate::proc::state::State;
use crate::proc::view;
use crate::text::PageEnd;
use crate::tools::journal::{CallEntry, CallJournal};
use crate::tools::owner::Owner;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use toold_format::Stream;
use toold_proto::process::Reason;
use toold_proto::script::{ScriptError, ScriptResult, ScriptResultParams, ScriptStatus};
use toold_proto::{ErrorKind, RpcError};

/// The time in which the calls of a script that has ended, end too.
pub(super) const FINISH_TIMEOUT: Duration = Duration::from_secs(10);

/// The facts of a result that the process has, or the end of a cell.
pub(super) struct Outline {
    pub status: ScriptStatus,
    pub exit_code: Option<i32>,
    pub signal: Option<String>,
    /// The value, unless the script gave one.
    pub value: Option<serde_json::Value>,
    pub error: Option<ScriptError>,
    /// The cell of a kernel. None: all of it.
    pub cell: Option<u64>,
    /// The range of the output.
    pub range: (u64, u64),
    pub end: PageEnd,
    /// No more will be known about its calls.
    pub is_over: bool,
    /// The number of calls that were refused. None: those of the journal.
    pub refused: Option<u64>,
    pub duration_ms: u64,
}

impl Scripts {
    /// `script.result`.
    pub async fn result(self: &Arc<Self>, call: ScriptResultParams) -> Result<ScriptResult, RpcError> {
        let proc = self.find(&call.id)?;
        let wait_ms = call.wait_ms.min(self.approvals.registry.config.max_wait_ms);
        let is_kernel = proc.spec.script.as_ref().is_some_and(|script| script.kernel.is_some());
        let cell = match call.cell {
            Some(_) if !is_kernel => return Err(RpcError::param("cell", "only a kernel has cells")),
            None if is_kernel => self.last_cell(&proc).await?,
            cell => cell,
        };
        match cell {
            Some(cell) => self.cell_result(&proc, cell, wait_ms).await,
            None => self.result_of(&proc, wait_ms).await,
        }
    }

    /// Waits for the end of a script, and describes it.
    pub async fn result_of(self: &Arc<Self>, proc: &Arc<Proc>, wait_ms: u64) -> Result<ScriptResult, RpcError> {
        let ended = async {
            if proc.published_state().asking {
                // The time of an approval is not counted.
                proc.answered().await;
            }
            let timeout = Duration::from_millis(wait_ms);
            let _ = tokio::time::timeout(timeout, proc.subscribe().wait_for(State::has_ended)).await;
        };
        if wait_ms > 0 {
            ended.await;
        }
        if proc.published_state().has_ended()
            && let Some(live) = self.live(proc.spec.id)
        {
            let mut ended = live.ended.subscribe();
            let _ = tokio::time::timeout(FINISH_TIMEOUT, ended.wait_for(|ended| *ended)).await;
        }
        let state = proc.published_state();
        if view::outcome(&proc.spec, &state).reason == Some(Reason::Denied) {
            let approval = proc.spec.policy.as_ref().and_then(|policy| policy.approval);
            let approval = approval.and_then(|id| self.approvals.get(id));
            return Err(crate::call_error::denied(proc, approval.as_ref()));
        }
        let (scripts, proc) = (self.clone(), proc.clone());
        let owner = self.live(proc.spec.id).map(|live| live.owner.clone());
        let made = disk::blocking(move || scripts.describe(&proc, owner.as_deref())).await;
        made.flatten().map_err(|e| RpcError::new(ErrorKind::Unavailable, format!("read the result of the script: {e}")))
    }

    /// Makes the result of a script. Blocks.
    pub(super) fn describe(&self, proc: &Arc<Proc>, owner: Option<&Owner>) -> io::Result<ScriptResult> {
        let found = CallJournal::read_all(&proc.dir.join(CALLS))?;
        let entries: Vec<CallEntry> = found.entries.into_iter().map(|(entry, _)| entry).collect();
        let state = proc.state();
        let outcome = view::outcome(&proc.spec, &state);
        let outline = Outline {
            status: status(&state, &outcome),
            exit_code: outcome.exit_code,
            signal: outcome.signal,
            value: None,
            error: None,
            cell: None,
            range: (0, output_end(&state)),
            end: if state.has_ended() { PageEnd::Last } else { PageEnd::More },
            is_over: state.has_ended(),
            refused: owner.map(Owner::refused),
            duration_ms: proc.uptime_ms(&state, wall_ms()),
        };
        self.fill(proc, &state, &entries, outline)
    }

    /// Makes a result of its outline, the log and entries of the journal. Blocks.
    pub(super) fn fill(
        &self,
        proc: &Arc<Proc>,
        state: &State,
        entries: &[CallEntry],
        outline: Outline,
    ) -> io::Result<ScriptResult> {
        let Some(spec) = &proc.spec.script else { return Err(io::ErrorKind::InvalidInput.into()) };
        let Outline { status, cell: part, range, end, .. } = outline;
        let (calls, refused) = pair(entries.iter().cloned(), part);
        let (mut value, mut error, mut artifacts) = (outline.value, outline.error, Vec::new());
        for entry in entries {
            match entry {
                CallEntry::Value { value: given, cell } if part.is_none_or(|of| of == *cell) => {
                    value = Some(given.clone())
                }
                CallEntry::Error { error: reported, cell } if part.is_none_or(|of| of == *cell) => {
                    error = Some(reported.clone())
                }
                CallEntry::Artifact(artifact) => artifacts.push(artifact.clone()),
                // A call, or of another cell.
                _ => {}
            }
        }
        let mut redaction = ResultRedaction::new(proc);
        let stdout = read_stream(proc, end, Stream::Stdout, range, spec.max_output_bytes, &mut redaction)?;
        let stderr = read_stream(proc, end, Stream::Stderr, range, spec.max_stderr_bytes, &mut redaction)?;
        let StreamText { text: output, cut: output_truncated } = stdout;
        let StreamText { text: stderr, cut: stderr_truncated } = stderr;
        let hints = hints::hints(status, error.as_ref(), &stderr, &calls);
        let log = proc.dir.join("log");
        let (value, error) = (value.map(|value| redaction.value(value)), error.map(|error| redaction.error(error)));
        let mut calls = counts(&calls, outline.refused.unwrap_or(refused), outline.is_over);
        redaction.previews(&mut calls.log);
        let (redacted, redacted_without) = redaction.counts();
        Ok(ScriptResult {
            id: proc.spec.id,
            status,
            exit_code: outline.exit_code,
            signal: outline.signal,
            output,
            stderr,
            output_truncated,
            stderr_truncated,
            value,
            error,
            calls,
            artifacts,
            redacted,
            redacted_without,
            hints,
            duration_ms: outline.duration_ms,
            log_path: log.to_string_lossy().into_owned(),
            process: proc.view_of(state, wall_ms()),
            existing: false,
            cell: None,
            from: None,
            to: None,
        })
    }
}

/// Returns the state of a script.
pub(super) fn status(state: &State, outcome: &view::Outcome) -> ScriptStatus {
    if !state.has_ended() {
        return ScriptStatus::Running;
    }
    match outcome.reason {
        Some(Reason::Exited) if outcome.exit_code == Some(0) => ScriptStatus::Ok,
        Some(Reason::Exited | Reason::FailedStart | Reason::Dependency | Reason::Denied) | None => ScriptStatus::Error,
        Some(Reason::Timeout) => ScriptStatus::Timeout,
        Some(Reason::Killed) => ScriptStatus::Interrupted,
        Some(Reason::Signaled | Reason::Oom) => ScriptStatus::Killed,
        Some(Reason::Lost) => ScriptStatus::Lost,
    }
}
