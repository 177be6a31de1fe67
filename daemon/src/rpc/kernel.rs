//! `kernel.open`, `kernel.run`, `kernel.interrupt`, `kernel.reset` and `kernel.close`.

use super::context::Daemon;
use super::process_response::ProcessResponse;
use super::wire::{Peer, cancel};
use crate::approvals::caller;
use crate::call_error::denied;
use crate::clock::wall_ms;
use crate::proc::view;
use crate::script::{Starter, Stopper};
use std::sync::Arc;
use toold_proto::RpcError;
use toold_proto::fields::FieldSet;
use toold_proto::kernel as api;
use toold_proto::process::Reason;
use toold_proto::script::{ScriptProcess, ScriptResult};

/// The time for which `kernel.run` waits by default.
const DEFAULT_YIELD_MS: u64 = 60_000;

pub async fn open(
    call: api::KernelOpenParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<ProcessResponse<api::KernelOpenResult>, RpcError> {
    daemon.refuse_script(&peer, "kernel.open")?;
    daemon.sessions.add_use(&peer.sessions, call.session_key.as_deref());
    let fields = FieldSet::of::<api::KernelOpenResult>(&call)?;
    let started = daemon.scripts.open_kernel(call, Starter { by: caller(peer.uid, peer.pid) }).await?;
    let (proc, state) = (&started.proc, started.proc.state());
    if view::outcome(&proc.spec, &state).reason == Some(Reason::Denied) {
        let approval = proc.spec.policy.as_ref().and_then(|policy| policy.approval);
        return Err(denied(proc, approval.and_then(|id| daemon.approvals.get(id)).as_ref()));
    }
    let result = api::KernelOpenResult { process: proc.view_of(&state, wall_ms()), existing: started.existing };
    Ok(ProcessResponse { result, fields, receipt: None })
}

pub async fn run(
    call: api::KernelRunParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<ProcessResponse<ScriptResult>, RpcError> {
    daemon.refuse_script(&peer, "kernel.run")?;
    let fields = FieldSet::of::<ScriptProcess<'_>>(&call)?;
    let yield_ms = call.yield_ms.unwrap_or(DEFAULT_YIELD_MS).min(daemon.registry.config.max_wait_ms);
    let started = daemon.scripts.queue_cell(call).await?;
    let result = tokio::select! {
        biased;
        result = daemon.scripts.cell_result(&started.proc, started.cell, yield_ms) => result?,
        // The cell runs on, and `script.result` has it.
        () = cancel::requested() => {
            return Err(cancel::cancelled().with("id", started.proc.spec.id.to_string()).with("cell", started.cell));
        }
    };
    let result = ScriptResult { existing: started.existing, ..result };
    Ok(ProcessResponse { result, fields, receipt: None })
}

pub async fn interrupt(
    call: api::KernelInterruptParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<api::KernelInterruptResult, RpcError> {
    daemon.refuse_script(&peer, "kernel.interrupt")?;
    daemon.scripts.interrupt_kernel(call, stopper(&peer)).await
}

pub async fn reset(
    call: api::KernelResetParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<api::KernelResetResult, RpcError> {
    daemon.refuse_script(&peer, "kernel.reset")?;
    daemon.scripts.reset_kernel(call, stopper(&peer)).await
}

pub async fn close(
    call: api::KernelCloseParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<api::KernelCloseResult, RpcError> {
    daemon.refuse_script(&peer, "kernel.close")?;
    daemon.scripts.close_kernel(call, stopper(&peer)).await
}

fn stopper(peer: &Peer) -> Stopper {
    Stopper { uid: peer.uid, pid: peer.pid }
}
