//! `session.active`, `session.end`, `session.configure` and `session.get`.

use super::context::Daemon;
use super::wire::Peer;
use crate::approvals::caller;
use crate::disk;
use crate::policy::{SessionDefaults, SessionError, SessionSettings};
use crate::registry::Selector;
use std::sync::Arc;
use toold_proto::approval::{ApprovalsListParams, GrantsListParams};
use toold_proto::policy::{SessionConfigureParams, SessionGetParams};
use toold_proto::{ErrorKind, RpcError, params, results};

pub async fn active(
    call: params::SessionActiveParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<results::SessionActiveResult, RpcError> {
    if call.session_key.is_some() == call.task_id.is_some() {
        return Err(RpcError::param("session_key", "give either session_key or task_id"));
    }
    let selector = Selector { session_key: call.session_key, task_id: call.task_id, ..Selector::default() };
    let ids: Vec<_> = daemon.registry.select_running(&selector).iter().map(|proc| proc.spec.id).collect();
    Ok(results::SessionActiveResult { count: ids.len() as u64, ids })
}

pub async fn end(
    call: params::SessionEndParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<results::SessionEndResult, RpcError> {
    if call.session_key.is_empty() {
        return Err(RpcError::param("session_key", "must not be empty"));
    }
    daemon.approvals.end_session(&call.session_key, &caller(peer.uid, peer.pid)).await;
    let killed = daemon.registry.end_session(&call.session_key, peer.uid, peer.pid).await;
    Ok(results::SessionEndResult { session_key: call.session_key, count: killed.len() as u64, killed })
}

pub async fn configure(
    call: SessionConfigureParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<results::SessionGetResult, RpcError> {
    check_key(&call.session_key, &daemon)?;
    let settings = SessionSettings::from(call);
    settings.check()?;
    SessionDefaults::of(&settings, &daemon.registry.config)?;
    let key = settings.session_key.clone();
    let judge = daemon.judge.clone();
    let stored = disk::blocking(move || judge.sessions.set(settings)).await;
    let stored = stored.map_err(|e| RpcError::new(ErrorKind::Internal, format!("store the session: {e}")))?;
    stored.map_err(|e| match e {
        SessionError::TooMany(max) => {
            let message = format!("{max} sessions have settings already; remove some with `session.configure`");
            RpcError::new(ErrorKind::Limit, message).with("limit", "sessions")
        }
        SessionError::Store { path, source } => {
            RpcError::new(ErrorKind::Internal, format!("store the session in {}: {source}", path.display()))
        }
    })?;
    Ok(view(&key, &daemon))
}

pub async fn get(
    call: SessionGetParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<results::SessionGetResult, RpcError> {
    check_key(&call.session_key, &daemon)?;
    Ok(view(&call.session_key, &daemon))
}

/// Checks the key of a session.
pub fn check_key(key: &str, daemon: &Daemon) -> Result<(), RpcError> {
    let max = daemon.registry.config.exec.max_key_bytes;
    if key.is_empty() {
        return Err(RpcError::param("session_key", "must not be empty"));
    }
    if key.contains('\0') {
        return Err(RpcError::param("session_key", "must not contain a NUL character"));
    }
    if key.len() as u64 > max {
        let problem = format!("must be at most {max} bytes, not {} (config key `exec.max_key_bytes`)", key.len());
        return Err(RpcError::param("session_key", problem));
    }
    Ok(())
}

fn view(key: &str, daemon: &Daemon) -> results::SessionGetResult {
    let found = daemon.judge.sessions.get(Some(key));
    let configured = found.is_some();
    let SessionSettings { cwd, sandbox, approval, roots, env_pass, .. } = found.as_deref().cloned().unwrap_or_default();
    let pending = ApprovalsListParams { session_key: Some(key.into()), ..ApprovalsListParams::default() };
    let grants = daemon.approvals.list_grants(&GrantsListParams { session_key: Some(key.into()), all: false });
    let selector = Selector { session_key: Some(key.into()), ..Selector::default() };
    results::SessionGetResult {
        session_key: key.into(),
        configured,
        cwd,
        sandbox,
        approval: approval.unwrap_or(daemon.registry.config.policy.approval),
        roots,
        env_pass,
        running: daemon.registry.select_running(&selector).iter().map(|proc| proc.spec.id).collect(),
        grants,
        approvals: daemon.approvals.list(&pending).0,
    }
}
