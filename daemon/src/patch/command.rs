//! `apply_patch <<'EOF' … EOF` given to `exec`: applied here, and kept as a process that prints the result.

use super::request::RequestTurn;
use super::{ApplyError, Bounds, PatchCall, Patches};
use crate::approvals::Approvals;
use crate::spec::{InvalidParam, SpawnRequest};
use crate::text::last_char_end;
use std::path::Path;
use std::sync::Arc;
use toold_patch::{Invocation, Recognised, recognise_argv};
use toold_proto::approval::Caller;
use toold_proto::params::{ExecParams, IfRunning};
use toold_proto::patch::{PatchApplyParams, PatchFailure, PatchOp, PatchResult, PatchRevertParams, PatchStatus};

/// The longest text that the process prints: an argument has at most 128 KiB.
const MAX_TEXT_BYTES: usize = 100_000;
/// The longest diff that the record of the process keeps.
const MAX_KEPT_DIFF_BYTES: usize = 64 * 1024;
const SHELL: &str = "/bin/sh";
const PRINT_AND_SUCCEED: &str = "printf '%s' \"$1\"";
const PRINT_AND_FAIL: &str = "printf '%s' \"$1\" >&2; exit 1";

/// A call of `exec` that applies a patch.
#[derive(Debug)]
pub struct PatchCommand {
    invocation: Invocation,
}

/// Recognises a call that applies a patch. A patch without a command is an error that shows the way.
pub fn recognise(call: &ExecParams) -> Result<Option<PatchCommand>, InvalidParam> {
    let (param, recognised) = match (&call.command, &call.argv) {
        (Some(command), _) => ("command", toold_patch::recognise(command)),
        (None, Some(argv)) => ("argv", recognise_argv(argv)),
        (None, None) => return Ok(None),
    };
    let invocation = match recognised {
        Recognised::Other => return Ok(None),
        Recognised::Bare => {
            let problem = "is a patch, not a command; give it to `patch.apply`, or to `exec` as \
                           `apply_patch <<'EOF'`, a newline, the patch, a newline and `EOF`";
            return Err(InvalidParam::new(param, problem));
        }
        Recognised::Apply(invocation) => invocation,
    };
    // It is applied at once, and once.
    let (is_queued, restarts) = (call.queue.is_some() || !call.after.is_empty(), call.restart != Default::default());
    if call.if_running == IfRunning::Return {
        return Err(InvalidParam::new(
            "if_running",
            "a patch is applied or refused; it does not return a running process",
        ));
    }
    if call.escalate.is_some() {
        return Err(InvalidParam::new("escalate", "is not for a patch in a command; give the patch to `patch.apply`"));
    }
    match (is_queued, restarts) {
        (true, _) => Err(InvalidParam::new(param, "a patch is applied at once: `queue` and `after` are not for it")),
        (_, true) => Err(InvalidParam::new(param, "a patch is applied once: `restart` is not for it")),
        (false, false) => Ok(Some(PatchCommand { invocation })),
    }
}

impl Patches {
    /// Waits until no other call applies the patch of the same request.
    pub async fn command_turn(&self, request_id: Option<&str>) -> Option<RequestTurn<'_>> {
        match request_id {
            Some(id) => Some(self.requests.lock(&format!("command:{id}")).await),
            None => None,
        }
    }

    /// Undoes the patch of a command that got no process, and forgets its request.
    pub async fn undo(self: &Arc<Self>, patch_id: &str) -> Result<(), ApplyError> {
        let call = PatchRevertParams { patch_id: patch_id.into(), ..PatchRevertParams::default() };
        self.revert(call, Bounds::new(None, &[], &[]).map_err(ApplyError::Internal)?).await?;
        self.changes.forget(patch_id);
        Ok(())
    }

    /// Applies the patch of a command, and makes the request one that prints the result. A patch that does not fit makes a
    /// process that fails. Returns the id of one that was applied.
    pub async fn run_command(
        self: &Arc<Self>,
        command: PatchCommand,
        approvals: &Arc<Approvals>,
        timeout_ms: Option<u64>,
        by: Caller,
        request: &mut SpawnRequest,
    ) -> Result<Option<String>, ApplyError> {
        let spec = &request.spec;
        let is_repeated = spec.request_id.as_ref().is_some_and(|id| approvals.registry.knows_request(id));
        if is_repeated {
            // The registry finds the process that the first call got.
            return Ok(None);
        }
        let Invocation { cd, patch } = command.invocation;
        let cwd = cd.map_or_else(|| spec.cwd.clone(), |cd| Path::new(&spec.cwd).join(cd).display().to_string());
        let call = PatchApplyParams {
            patch,
            cwd: Some(cwd),
            // The ids of `patch.apply` are others.
            request_id: spec.request_id.as_ref().map(|id| format!("exec:{id}")),
            session_key: spec.session_key.clone(),
            task_id: spec.task_id.clone(),
            approval_timeout_ms: timeout_ms,
            ..PatchApplyParams::default()
        };
        let within = PatchCall { approvals, plan: request.plan.as_deref(), by };
        let (result, text) = match self.apply_or_ask(call, within).await {
            Ok(result) => {
                let text = applied_text(&result);
                (result, text)
            }
            Err(
                error @ (ApplyError::RequestConflict { .. } | ApplyError::Internal(_) | ApplyError::NotApproved { .. }),
            ) => return Err(error),
            Err(error) => {
                let text = format!("the patch was not applied: {error}\n");
                (failed(error), text)
            }
        };
        let script = if result.status == PatchStatus::Applied { PRINT_AND_SUCCEED } else { PRINT_AND_FAIL };
        let text = cut(text, MAX_TEXT_BYTES).0;
        request.spec.argv = vec!["sh".into(), "-c".into(), script.into(), "apply_patch".into(), text];
        request.spec.program = SHELL.into();
        request.unresolved = None;
        let patch_id = result.patch_id.clone();
        request.spec.patch = Some(Box::new(kept(result)));
        Ok(patch_id)
    }
}

/// The result in a few lines, for the log of the process.
fn applied_text(result: &PatchResult) -> String {
    let count = result.files.len();
    let id = result.patch_id.as_deref().unwrap_or_default();
    let mut text = format!("applied {id}: {count} {}\n", if count == 1 { "file" } else { "files" });
    for file in &result.files {
        let op = match file.op {
            PatchOp::Add => 'A',
            PatchOp::Update => 'M',
            PatchOp::Delete => 'D',
        };
        let to = file.to.as_ref().map(|to| format!(" -> {to}")).unwrap_or_default();
        text += &format!("{op} {}{to}\n", file.path);
    }
    text
}

fn failed(error: ApplyError) -> PatchResult {
    let failure = match error {
        ApplyError::Invalid(failure) => failure,
        other => PatchFailure { message: other.to_string(), line: None, path: None, nearest: Vec::new() },
    };
    PatchResult {
        patch_id: None,
        status: PatchStatus::Failed,
        files: Vec::new(),
        diff: String::new(),
        diff_truncated: false,
        failed: Some(failure),
    }
}

/// The result with a diff that a record has room for.
fn kept(mut result: PatchResult) -> PatchResult {
    let (diff, is_cut) = cut(result.diff, MAX_KEPT_DIFF_BYTES);
    result.diff = diff;
    result.diff_truncated |= is_cut;
    result
}

fn cut(mut text: String, max: usize) -> (String, bool) {
    if text.len() <= max {
        return (text, false);
    }
    text.truncate(last_char_end(&text, max));
    (text, true)
}
