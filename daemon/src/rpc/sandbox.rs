//! `sandbox.probe`.

use super::context::Daemon;
use super::wire::Peer;
use std::sync::Arc;
use toold_proto::sandbox_probe::SandboxProbeResult;
use toold_proto::{RpcError, params};

pub async fn probe(_: params::Empty, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<SandboxProbeResult, RpcError> {
    Ok((*daemon.registry.probe().await).clone())
}
