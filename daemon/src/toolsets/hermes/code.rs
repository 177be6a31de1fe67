//! `execute_code`: a Python script, as `script.run` runs it.

use crate::script::Starter;
use crate::tools::native::command::request_id;
use crate::tools::provider::Invocation;
use crate::toolsets::Toolsets;
use crate::toolsets::answer::ToolsetAnswer;
use std::time::Duration;
use toold_proto::RpcError;
use toold_proto::script::{Language, ScriptCancelParams, ScriptResult, ScriptRunParams, ScriptStatus};
use toold_tools::toolset::hermes::{ScriptEnd, ScriptOutcome, execute_code};

impl Toolsets {
    /// Runs a script to its end. The same call again, after a crash, finds the same script.
    pub(in super::super) async fn execute_code(
        &self,
        code: String,
        invocation: &Invocation,
    ) -> Result<ToolsetAnswer, RpcError> {
        let scope = invocation.scope.clone();
        let call = ScriptRunParams {
            code: Some(code),
            language: Some(Language::Python),
            cwd: scope.cwd,
            session_key: scope.session_key,
            task_id: scope.task_id,
            request_id: Some(request_id(&invocation.call)),
            ..ScriptRunParams::default()
        };
        let started = self.scripts.start(call, Starter { by: invocation.by.clone() }).await?;
        let max_wait_ms = self.native.approvals.registry.config.max_wait_ms;
        let result = self.scripts.result_of(&started.proc, max_wait_ms).await?;
        Ok(ToolsetAnswer { process: Some(result.id.to_string().into()), ..ToolsetAnswer::new(rendered(&result)) })
    }

    /// Ends the script of a call that is cancelled.
    pub(in super::super) async fn cancel_code(&self, invocation: &Invocation) {
        let registry = &self.native.approvals.registry;
        if let Some(proc) = registry.started_by_request(&request_id(&invocation.call)) {
            let call = ScriptCancelParams { id: proc.spec.id.to_string(), call: None };
            let _ = self.scripts.cancel(call, invocation.by.uid, invocation.by.pid).await;
        }
    }
}

fn rendered(result: &ScriptResult) -> serde_json::Value {
    let (process, duration) = (result.id.to_string(), Duration::from_millis(result.duration_ms));
    let end = match result.status {
        ScriptStatus::Ok => ScriptEnd::Ok,
        ScriptStatus::Error => ScriptEnd::Failed { exit_code: result.exit_code },
        ScriptStatus::Timeout => ScriptEnd::Timeout { after: duration },
        ScriptStatus::Interrupted => ScriptEnd::Interrupted,
        ScriptStatus::Killed => ScriptEnd::Killed { signal: result.signal.as_deref().unwrap_or("a signal") },
        ScriptStatus::Lost => ScriptEnd::Lost,
        ScriptStatus::Running => ScriptEnd::Running { process: &process },
    };
    let error = result.error.as_ref().map(|error| format!("{}: {}", error.kind, error.message));
    execute_code(&ScriptOutcome {
        end,
        output: &result.output,
        stderr: &result.stderr,
        tool_calls: result.calls.made,
        duration,
        error: error.as_deref(),
    })
}
