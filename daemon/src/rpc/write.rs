//! `write` and `submit`.

use super::context::Daemon;
use super::error::{already_exited, check_running, no_reply, stdin_unavailable};
use super::wire::Peer;
use base64::Engine;
use std::sync::Arc;
use toold_format::frame::Wrote;
use toold_proto::process::Stdin;
use toold_proto::{ProcId, RpcError, params, results};

const DEFAULT_TIMEOUT_MS: u64 = 5000;

pub async fn write(call: params::Write, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<results::Write, RpcError> {
    write_stdin(call, &daemon, b"").await
}

pub async fn submit(call: params::Write, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<results::Write, RpcError> {
    write_stdin(call, &daemon, b"\n").await
}

async fn write_stdin(call: params::Write, daemon: &Daemon, ending: &[u8]) -> Result<results::Write, RpcError> {
    let mut data = match (&call.data, &call.data_base64) {
        (Some(_), Some(_)) => return Err(RpcError::param("data", "give either data or data_base64, not both")),
        (None, None) => return Err(RpcError::param("data", "give data or data_base64")),
        (Some(text), None) => text.clone().into_bytes(),
        (None, Some(text)) => base64::engine::general_purpose::STANDARD
            .decode(text)
            .map_err(|e| RpcError::param("data_base64", format!("is not base64: {e}")))?,
    };
    data.extend_from_slice(ending);
    let name = match call.write_id.as_deref() {
        Some("") => return Err(RpcError::param("write_id", "must not be empty")),
        Some(id) => fingerprint(id),
        None => [0; 16],
    };
    let proc = daemon.find(&call.id)?;
    let total = data.len() as u64;
    if proc.published_state().has_ended()
        && let Some(done) = proc.written(&name)
    {
        return Ok(repeated(proc.spec.id, done, total));
    }
    check_running(&proc)?;
    if proc.view(0).stdin == Stdin::Null {
        return Err(stdin_unavailable(&proc));
    }
    let timeout = call.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS).min(daemon.registry.config.max_wait_ms);
    let id = proc.spec.id;
    let end = proc.write(name, data, timeout).await.map_err(|e| no_reply(&proc, e))?;
    match end.state {
        Wrote::Complete => Ok(results::Write { id, bytes_written: end.done, complete: true, duplicate: false }),
        Wrote::Duplicate => Ok(repeated(id, end.done, total)),
        Wrote::More | Wrote::Stopped => {
            Ok(results::Write { id, bytes_written: end.done, complete: false, duplicate: false })
        }
        Wrote::Broken if proc.published_state().has_ended() => {
            Err(already_exited(&proc).with("bytes_written", end.done))
        }
        Wrote::Broken => Err(stdin_unavailable(&proc).with("bytes_written", end.done)),
    }
}

/// The answer to a write that was made before: what it wrote then.
fn repeated(id: ProcId, done: u64, total: u64) -> results::Write {
    results::Write { id, bytes_written: done, complete: done >= total, duplicate: true }
}

/// A name of any length as 16 bytes that are never all zero: two FNV sums with different beginnings.
fn fingerprint(id: &str) -> [u8; 16] {
    let mut salted = vec![0x5a];
    salted.extend_from_slice(id.as_bytes());
    let mut name = [0u8; 16];
    name[..8].copy_from_slice(&toold_format::fnv1a(id.as_bytes()).to_le_bytes());
    name[8..].copy_from_slice(&toold_format::fnv1a(&salted).to_le_bytes());
    name[0] |= 1;
    name
}
