//! `kernel.open`: a script without code of its own.

use super::super::{Scripts, StartedScript, Starter};
use crate::store::script::KernelSpec;
use std::sync::Arc;
use toold_proto::kernel::KernelOpenParams;
use toold_proto::script::ScriptRunParams;
use toold_proto::{ErrorKind, RpcError};

impl Scripts {
    /// Starts a kernel, or finds the one of the same `request_id`.
    pub async fn open_kernel(
        self: &Arc<Self>,
        call: KernelOpenParams,
        starter: Starter,
    ) -> Result<StartedScript, RpcError> {
        let idle_ms = call.idle_ms.unwrap_or(self.approvals.registry.config.kernel.idle_ms);
        let started = self.start_kernel(as_script(call), KernelSpec { idle_ms }, starter).await?;
        match started.proc.spec.script.as_ref().is_some_and(|script| script.kernel.is_some()) {
            true => Ok(started),
            false => Err(RpcError::new(ErrorKind::Conflict, "the request_id was used for a script")),
        }
    }
}

fn as_script(call: KernelOpenParams) -> ScriptRunParams {
    ScriptRunParams {
        language: call.language,
        tools: call.tools,
        args: call.args,
        cwd: call.cwd,
        env: call.env,
        env_mode: call.env_mode,
        sandbox: call.sandbox,
        limits: call.limits,
        timeout_ms: call.timeout_ms,
        call_timeout_ms: call.call_timeout_ms,
        max_calls: call.max_calls,
        max_parallel: call.max_parallel,
        max_output_bytes: call.max_output_bytes,
        max_stderr_bytes: call.max_stderr_bytes,
        redact: call.redact,
        name: call.name,
        task_id: call.task_id,
        session_key: call.session_key,
        labels: call.labels,
        notify: call.notify,
        watch: call.watch,
        backend: call.backend,
        request_id: call.request_id,
        ..ScriptRunParams::default()
    }
}
