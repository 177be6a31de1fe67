//! The process of a call: started under the id of the call, so that a call that is made again after a crash finds it.

use super::Native;
use crate::admission::{self, StartExtras};
use crate::call_clock;
use crate::proc::Proc;
use crate::proc::handle::Kill;
use crate::proc::kill::{GRACE_MS, kill_all};
use crate::proc::readers::Reader;
use crate::proc::view;
use crate::registry::{NamePolicy, Spawned};
use crate::spec::resolve_path;
use crate::tools::provider::Invocation;
use std::sync::Arc;
use toold_format::slots::Cause;
use toold_proto::RpcError;
use toold_proto::params::{ExecParams, IfRunning};
use toold_proto::process::Reason;

/// The label by which a person sees that a call started the process.
pub const CALL_LABEL: &str = "toold.call";

/// The label of a process that outlives the call that started it.
pub const BACKGROUND_LABEL: &str = "toold.background";
/// The start of the `request_id` of the process of a call.
const REQUEST_PREFIX: &str = "tool/";

/// Returns the `request_id` of the process of a call.
pub fn request_id(call: &str) -> String {
    format!("{REQUEST_PREFIX}{call}")
}

/// Returns true if a call of a tool started the process.
pub fn is_of_call(proc: &Proc) -> bool {
    proc.spec.request_id.as_ref().is_some_and(|id| id.starts_with(REQUEST_PREFIX))
}

impl Native {
    /// Starts the process of a call, judged for its caller, and waits for the person who is asked about it.
    pub async fn start_command(&self, call: &mut ExecParams, invocation: &Invocation) -> Result<Reader, RpcError> {
        let by = || invocation.by.clone();
        let policy = NamePolicy { if_running: IfRunning::Error, uid: invocation.by.uid, pid: invocation.by.pid };
        let extras = StartExtras::default();
        let started = admission::exec(&self.approvals, &self.judge, &self.patches, call, policy, extras, by).await;
        let Spawned { proc, .. } = started.map_err(RpcError::from)?;
        if proc.published_state().asking
            && let Some(approval) = approval_of(&proc)
        {
            let _paused = call_clock::pause(approval);
            proc.answered().await;
        }
        Ok(proc)
    }

    /// Returns the directory of a command: `workdir`, meant from the directory of the call or else of its session.
    pub fn working_dir(&self, invocation: &Invocation, workdir: Option<&str>) -> Option<String> {
        let scope = &invocation.scope;
        let Some(workdir) = workdir else { return scope.cwd.clone() };
        let session = || self.judge.sessions.get(scope.session_key.as_deref())?.cwd.clone();
        let base = scope.cwd.clone().or_else(session);
        Some(resolve_path(base.as_deref(), workdir))
    }

    /// Returns the error for a process that a person did not allow.
    pub fn refusal(&self, proc: &Arc<Proc>) -> Option<RpcError> {
        let is_denied = view::outcome(&proc.spec, &proc.published_state()).reason == Some(Reason::Denied);
        let approval = approval_of(proc).and_then(|id| self.approvals.get(id));
        is_denied.then(|| crate::call_error::denied(proc, approval.as_ref()))
    }

    /// Kills the tree of a call that is cancelled.
    pub async fn cancel_command(&self, invocation: &Invocation) {
        if let Some(proc) = self.approvals.registry.started_by_request(&request_id(&invocation.call)) {
            kill_call(proc, invocation.by.uid, invocation.by.pid).await;
        }
    }
}

/// Kills the tree of a call.
pub async fn kill_call(proc: Arc<Proc>, uid: u32, pid: i32) {
    let kill = Kill { signal: libc::SIGTERM, grace_ms: GRACE_MS, cause: Cause::Client, uid, pid };
    kill_all(vec![proc], kill).await;
}

fn approval_of(proc: &Proc) -> Option<toold_proto::approval::ApprovalId> {
    proc.spec.policy.as_ref().and_then(|policy| policy.approval)
}
