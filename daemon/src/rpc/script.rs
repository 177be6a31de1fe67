//! `script.run`, `script.result`, `script.calls` and `script.cancel`.

use super::context::Daemon;
use super::process_response::ProcessResponse;
use super::wire::{Peer, cancel};
use crate::approvals::caller;
use crate::script::Starter;
use std::sync::Arc;
use toold_proto::RpcError;
use toold_proto::fields::FieldSet;
use toold_proto::script as api;

/// The time for which `script.run` waits by default.
const DEFAULT_YIELD_MS: u64 = 60_000;

/// The result of a script, with the fields of its process that the call selects.
type Response = ProcessResponse<api::ScriptResult>;

pub async fn run(call: api::ScriptRunParams, daemon: Arc<Daemon>, peer: Arc<Peer>) -> Result<Response, RpcError> {
    daemon.refuse_script(&peer, "script.run")?;
    daemon.sessions.add_use(&peer.sessions, call.session_key.as_deref());
    let fields = FieldSet::of::<api::ScriptProcess<'_>>(&call)?;
    let yield_ms = call.yield_ms.unwrap_or(DEFAULT_YIELD_MS).min(daemon.registry.config.max_wait_ms);
    let started = daemon.scripts.start(call, Starter { by: caller(peer.uid, peer.pid) }).await?;
    let existing = started.existing;
    let result = tokio::select! {
        biased;
        result = daemon.scripts.result_of(&started.proc, yield_ms) => result?,
        () = cancel::requested() => return Err(cancel::cancelled().with("id", started.proc.spec.id.to_string())),
    };
    Ok(ProcessResponse { result: api::ScriptResult { existing, ..result }, fields, receipt: None })
}

pub async fn result(call: api::ScriptResultParams, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<Response, RpcError> {
    let fields = FieldSet::of::<api::ScriptProcess<'_>>(&call)?;
    let result = daemon.scripts.result(call).await?;
    Ok(ProcessResponse { result, fields, receipt: None })
}

pub async fn calls(
    call: api::ScriptCallsParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<api::ScriptCallsResult, RpcError> {
    daemon.scripts.calls(call).await
}

pub async fn cancel_script(
    call: api::ScriptCancelParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<api::ScriptCancelResult, RpcError> {
    daemon.refuse_script(&peer, "script.cancel")?;
    daemon.scripts.cancel(call, peer.uid, peer.pid).await
}
