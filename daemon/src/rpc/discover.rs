//! `rpc.discover`.

use super::context::Daemon;
use super::wire::Peer;
use serde_json::Value;
use std::sync::Arc;
use toold_proto::{RpcError, openrpc, params};

pub async fn discover(_: params::Empty, _: Arc<Daemon>, _: Arc<Peer>) -> Result<Value, RpcError> {
    Ok(openrpc::document())
}
