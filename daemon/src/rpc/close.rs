//! `close`.

use super::context::Daemon;
use super::wire::Peer;
use crate::call_error::stdin_error;
use crate::proc::stdin;
use std::sync::Arc;
use toold_proto::{RpcError, params, results};

pub async fn close(
    call: params::CloseParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<results::CloseResult, RpcError> {
    let proc = daemon.find(&call.id)?;
    stdin::close(&proc).await.map_err(|e| stdin_error(&proc, e))?;
    Ok(results::CloseResult { id: proc.spec.id, stdin: proc.stdin() })
}
