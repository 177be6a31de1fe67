//! `tools.list`, `tools.call` and `tools.refresh`.

use super::context::Daemon;
use super::wire::{OnDelivery, Peer, Receipt, WithReceipt, cancel};
use crate::approvals::caller;
use crate::script::check_toolset;
use crate::tools::journal::CallOutcome;
use crate::tools::owner::retired;
use crate::toolsets::{ReadDelivery, error_for_model, is_own};
use std::sync::Arc;
use toold_proto::tools as api;
use toold_proto::{ErrorKind, RpcError};

pub async fn list(
    mut call: api::ToolsListParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<api::ToolsListResult, RpcError> {
    let dispatcher = &daemon.scripts.dispatcher;
    let Some(script) = daemon.script_of(&peer)? else { return dispatcher.list(&call, None).await };
    // It has the tools of the script, whatever session it names.
    check_toolset(call.toolset)?;
    let live = daemon.scripts.live(script.spec.id).ok_or_else(retired)?;
    call.session_key = live.owner.scope.session_key.clone();
    dispatcher.list(&call, Some(&live.spec.tools)).await
}

pub async fn call(
    call: api::ToolsCallParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<WithReceipt<api::ToolsCallResult>, RpcError> {
    let (toolset, name) = (call.toolset, call.name.clone());
    let answered = run(call, &daemon, &peer).await;
    if !is_own(toolset, &name) {
        return answered.map(|result| WithReceipt { result, receipt: None });
    }
    let api::ToolsCallResult { result, call } = answered.map_err(|error| {
        let text = error_for_model(toolset, &name, &error);
        error.with("text", text)
    })?;
    let opened = daemon.toolsets.open(&result);
    let (result, delivery) = opened.map_err(|e| RpcError::new(ErrorKind::Internal, e.to_string()))?;
    let receipt = delivery.map(|delivery| Arc::new(delivery) as Receipt);
    Ok(WithReceipt { result: api::ToolsCallResult { result, call }, receipt })
}

async fn run(call: api::ToolsCallParams, daemon: &Daemon, peer: &Peer) -> Result<api::ToolsCallResult, RpcError> {
    let dispatcher = &daemon.scripts.dispatcher;
    let by = caller(peer.uid, peer.pid);
    let prepared = match daemon.script_of(peer)? {
        // It has the authority of the script, whatever session it names.
        Some(script) => daemon.scripts.prepare_call(&script, call)?,
        None => {
            daemon.sessions.add_use(&peer.sessions, call.session_key.as_deref());
            daemon.direct_calls.prepare(call, by, &daemon.registry.config).await?
        }
    };
    let (owner, id) = (prepared.owner.clone(), prepared.request.id.clone());
    let answered = dispatcher.call_direct(prepared);
    tokio::pin!(answered);
    let (outcome, call) = tokio::select! {
        biased;
        answered = &mut answered => answered,
        () = cancel::requested() => {
            dispatcher.cancel(&owner, &id, RpcError::new(ErrorKind::Cancelled, "the client cancelled the call")).await;
            answered.await
        }
    };
    match &*outcome {
        CallOutcome::Result(result) => Ok(api::ToolsCallResult { result: result.clone(), call }),
        CallOutcome::Error(error) | CallOutcome::Refused(error) => Err(error.clone()),
        // Only the results of scripts are files.
        CallOutcome::File(file) => Err(RpcError::new(ErrorKind::Internal, format!("the result is in {}", file.path))),
    }
}

pub async fn refresh(
    call: api::ToolsRefreshParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<api::ToolsRefreshResult, RpcError> {
    daemon.scripts.dispatcher.refresh(&call.provider).await
}

impl OnDelivery for ReadDelivery {
    fn begin(&self) {
        ReadDelivery::begin(self);
    }

    fn delivered(&self) {
        ReadDelivery::delivered(self);
    }
}
