//! `write` and `submit`.

use super::context::Daemon;
use super::wire::Peer;
use crate::call_error::{screen_error, stdin_error};
use crate::proc::Proc;
use crate::proc::keys::{KeysError, key_bytes};
use crate::proc::stdin::{self, Written};
use base64::Engine;
use std::sync::Arc;
use toold_proto::keys::Key;
use toold_proto::{RpcError, params, results};

/// The end of what is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Open,
    Newline,
}

pub async fn write(
    call: params::WriteParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<results::WriteResult, RpcError> {
    write_stdin(call, &daemon, End::Open).await
}

pub async fn submit(
    call: params::WriteParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<results::WriteResult, RpcError> {
    write_stdin(call, &daemon, End::Newline).await
}

async fn write_stdin(call: params::WriteParams, daemon: &Daemon, end: End) -> Result<results::WriteResult, RpcError> {
    check(&call, end)?;
    let proc = daemon.find(&call.id)?;
    let timeout_ms = call.timeout_ms.unwrap_or(stdin::WRITE_TIMEOUT_MS).min(daemon.registry.config.max_wait_ms);
    let data = input(&call, &proc, end).await?;
    if call.secret {
        stdin::wait_until_hidden(&proc, timeout_ms).await.map_err(|e| stdin_error(&proc, e))?;
        proc.add_secret(&data);
    }
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

/// Checks what needs no process.
fn check(call: &params::WriteParams, end: End) -> Result<(), RpcError> {
    let given = [call.data.is_some(), call.data_base64.is_some(), call.keys.is_some()];
    match given.iter().filter(|given| **given).count() {
        0 => return Err(RpcError::param("data", "give data, data_base64 or keys")),
        1 => {}
        _ => return Err(RpcError::param("data", "give one of data, data_base64 and keys, not more")),
    }
    if end == End::Newline && call.keys.is_some() {
        return Err(RpcError::param("keys", "`submit` takes text; `write` types keys, and `Enter` is one of them"));
    }
    if call.keys.as_ref().is_some_and(Vec::is_empty) {
        return Err(RpcError::param("keys", "must not be empty"));
    }
    if call.write_id.as_deref() == Some("") {
        return Err(RpcError::param("write_id", "must not be empty"));
    }
    Ok(())
}

/// Returns the bytes to write.
async fn input(call: &params::WriteParams, proc: &Arc<Proc>, end: End) -> Result<Vec<u8>, RpcError> {
    if let Some(keys) = &call.keys {
        return key_bytes(proc, keys).await.map_err(|e| keys_error(proc, keys, e));
    }
    let mut data = match (&call.data, &call.data_base64) {
        (Some(text), _) => text.clone().into_bytes(),
        (None, Some(text)) => base64::engine::general_purpose::STANDARD
            .decode(text)
            .map_err(|e| RpcError::param("data_base64", format!("is not base64: {e}")))?,
        (None, None) => Vec::new(),
    };
    if end == End::Newline {
        data.push(b'\n');
    }
    Ok(data)
}

fn keys_error(proc: &Proc, keys: &[Key], error: KeysError) -> RpcError {
    match error {
        KeysError::NotOnPipe(n) => {
            let name = match keys.get(n) {
                Some(Key::Named(name)) => name.as_str(),
                Some(Key::Text(_)) | None => "",
            };
            let problem = format!(
                "{} reads from a pipe, which has no key {name}: text, Enter and control keys as C-d can be written",
                proc.spec.id
            );
            RpcError::param(&format!("keys[{n}]"), problem).with("reason", "no_pty")
        }
        KeysError::Screen(e) => screen_error(proc, e),
    }
}
