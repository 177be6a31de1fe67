//! `restart`.

use super::context::Daemon;
use super::process_response::PreviewedResponse;
use super::wire::Peer;
use crate::clock::wall_ms;
use crate::disk::call_on_disk;
use crate::policy::JudgedCaller;
use crate::proc::kill::GRACE_MS;
use crate::registry::RestartCall;
use crate::spec;
use std::sync::Arc;
use toold_proto::fields::FieldSet;
use toold_proto::params::ExecParams;
use toold_proto::{RpcError, params, results};

pub async fn restart(
    call: params::RestartParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<PreviewedResponse<results::RestartResult>, RpcError> {
    let fields = FieldSet::of::<results::RestartResult>(&call)?;
    let has_env = call.env.is_some() || call.env_base64.is_some();
    let (env, env_base64) = (call.env.unwrap_or_default(), call.env_base64.unwrap_or_default());
    let given = spec::given(&env, &env_base64)?;
    let old = daemon.find(&call.id)?;
    if old.spec.script.is_some() {
        return Err(RpcError::param(
            "id",
            "is a script or a kernel, whose calls belong to one run; start another with script.run or kernel.open",
        ));
    }
    daemon.approvals.check_restart(&old)?;
    if has_env {
        let judged = ExecParams { env, env_base64, ..ExecParams::default() };
        daemon.approvals.judge_restart(&old, &judged, JudgedCaller { uid: peer.uid, pid: peer.pid })?;
    }
    let grace_ms = call.grace_ms.unwrap_or(GRACE_MS).min(daemon.registry.config.max_wait_ms);
    let restart = RestartCall { env: has_env.then_some(given), grace_ms, uid: peer.uid, pid: peer.pid };
    let proc = call_on_disk(daemon.registry.restart(&old, restart)).await?;
    daemon.approvals.follow_retry(&proc);
    let result = results::RestartResult { process: proc.view(wall_ms()) };
    Ok(PreviewedResponse::new(result, fields, &proc).await)
}
