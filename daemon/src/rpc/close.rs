//! `close`.

use super::context::Daemon;
use super::error::{check_running, no_reply, stdin_unavailable};
use super::wire::Peer;
use std::sync::Arc;
use toold_proto::{RpcError, params, results};

pub async fn close(call: params::Close, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<results::Close, RpcError> {
    let proc = daemon.find(&call.id)?;
    check_running(&proc)?;
    match proc.close().await {
        Ok(0) => Ok(results::Close { id: proc.spec.id, stdin: proc.view(0).stdin }),
        Ok(_) => Err(stdin_unavailable(&proc)),
        Err(e) => Err(no_reply(&proc, e)),
    }
}
