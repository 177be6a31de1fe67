//! `write` and `submit`.

use super::context::Daemon;
use super::error::stdin_error;
use super::wire::Peer;
use crate::proc::stdin::{self, Written};
use base64::Engine;
use std::sync::Arc;
use toold_proto::{RpcError, params, results};

const DEFAULT_TIMEOUT_MS: u64 = 5000;

pub async fn write(
    call: params::WriteParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<results::WriteResult, RpcError> {
    write_stdin(call, &daemon, b"").await
}

pub async fn submit(
    call: params::WriteParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<results::WriteResult, RpcError> {
    write_stdin(call, &daemon, b"\n").await
}

async fn write_stdin(
    call: params::WriteParams,
    daemon: &Daemon,
    suffix: &[u8],
) -> Result<results::WriteResult, RpcError> {
    let mut data = match (&call.data, &call.data_base64) {
        (Some(_), Some(_)) => return Err(RpcError::param("data", "give either data or data_base64, not both")),
        (None, None) => return Err(RpcError::param("data", "give data or data_base64")),
        (Some(text), None) => text.clone().into_bytes(),
        (None, Some(text)) => base64::engine::general_purpose::STANDARD
            .decode(text)
            .map_err(|e| RpcError::param("data_base64", format!("is not base64: {e}")))?,
    };
    data.extend_from_slice(suffix);
    if call.write_id.as_deref() == Some("") {
        return Err(RpcError::param("write_id", "must not be empty"));
    }
    let proc = daemon.find(&call.id)?;
    let timeout_ms = call.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS).min(daemon.registry.config.max_wait_ms);
    let written = stdin::write(&proc, call.write_id.as_deref(), data, timeout_ms).await;
    let remembered = call.write_id.is_some().then(|| stdin::remembered_writes(&proc));
    let Written { bytes, complete, duplicate } = written.map_err(|e| match remembered {
        Some(count) => stdin_error(&proc, e).with("remembered_write_ids", count),
        None => stdin_error(&proc, e),
    })?;
    Ok(results::WriteResult {
        id: proc.spec.id,
        bytes_written: bytes,
        complete,
        duplicate,
        remembered_write_ids: remembered,
    })
}
