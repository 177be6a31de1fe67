//! `tools.register` and `tools.unregister`: clients that serve tools.

use super::context::Daemon;
use super::wire::{OnDelivery, Peer, WithReceipt};
use crate::tools::clients::link::ClientLink;
use std::sync::Arc;
use toold_proto::RpcError;
use toold_proto::tools::{ToolsRegisterParams, ToolsRegisterResult, ToolsUnregisterParams, ToolsUnregisterResult};

/// Opens the link when the answer to the registration is about to be written, or when there will be none.
struct OpenLink(Arc<dyn ClientLink>);

impl OnDelivery for OpenLink {
    fn begin(&self) {
        self.0.open();
    }

    fn delivered(&self) {}
}

impl Drop for OpenLink {
    fn drop(&mut self) {
        self.0.open();
    }
}

pub async fn register(
    call: ToolsRegisterParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<WithReceipt<ToolsRegisterResult>, RpcError> {
    daemon.refuse_inside(&peer, "tools.register")?;
    let link = peer.client_link()?;
    let result = daemon.client_tools.register(call, link.clone()).await?;
    Ok(WithReceipt { result, receipt: Some(Arc::new(OpenLink(link))) })
}

pub async fn unregister(
    call: ToolsUnregisterParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<ToolsUnregisterResult, RpcError> {
    daemon.refuse_inside(&peer, "tools.unregister")?;
    daemon.client_tools.unregister(&call.provider, peer.connection).await
}
