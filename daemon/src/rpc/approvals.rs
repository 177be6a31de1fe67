//! `approvals.list`, `approvals.get`, `approvals.decide`, `grants.list` and `grants.revoke`.

use super::context::Daemon;
use super::wire::Peer;
use crate::approvals::{DecideError, Decided, RevokeError, caller};
use crate::proc::handle::Kill;
use crate::proc::kill::{GRACE_MS, kill_all};
use std::sync::Arc;
use toold_format::slots::Cause;
use toold_proto::approval::{
    Approval, ApprovalId, ApprovalsDecideParams, ApprovalsDecideResult, ApprovalsGetParams, ApprovalsListParams,
    ApprovalsListResult, GrantId, GrantsListParams, GrantsListResult, GrantsRevokeParams, GrantsRevokeResult, Scope,
};
use toold_proto::{ErrorKind, RpcError};

pub async fn list(
    call: ApprovalsListParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<ApprovalsListResult, RpcError> {
    let (approvals, total) = daemon.approvals.list(&call);
    Ok(ApprovalsListResult { approvals, total })
}

pub async fn get(call: ApprovalsGetParams, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<Approval, RpcError> {
    let id = approval_id(&call.id)?;
    daemon.approvals.get(id).ok_or_else(|| decide_error(DecideError::NotFound(id)))
}

pub async fn decide(
    call: ApprovalsDecideParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<ApprovalsDecideResult, RpcError> {
    let id = approval_id(&call.id)?;
    daemon.refuse_inside(&peer, "approvals.decide")?;
    let decided = Decided {
        decision: call.decision,
        scope: call.scope,
        digest: call.digest,
        terms: call.grant.unwrap_or_default(),
        message: call.message,
        by: caller(peer.uid, peer.pid),
    };
    let (approval, withdrawn, grant) = daemon.approvals.decide(id, decided).await.map_err(decide_error)?;
    Ok(ApprovalsDecideResult { approval, withdrawn, grant })
}

pub async fn list_grants(
    call: GrantsListParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<GrantsListResult, RpcError> {
    Ok(GrantsListResult { grants: daemon.approvals.list_grants(&call) })
}

pub async fn revoke(
    call: GrantsRevokeParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<GrantsRevokeResult, RpcError> {
    daemon.refuse_inside(&peer, "grants.revoke")?;
    let by = caller(peer.uid, peer.pid);
    let revoked = match (&call.id, &call.session_key) {
        (Some(id), None) => {
            let id: GrantId = id.parse().map_err(|why| RpcError::param("id", why))?;
            let revoked = daemon.approvals.revoke(id, &by).await.map_err(|e| match e {
                RevokeError::NotFound(id) => {
                    let message = format!("no grant {id}; `grants.list` shows what there is");
                    RpcError::new(ErrorKind::NotFound, message).with("id", id.to_string())
                }
                RevokeError::Store { path, source } => {
                    let message = format!("record the end of the grant in {}: {source}; it holds", path.display());
                    RpcError::new(ErrorKind::Internal, message)
                }
            })?;
            revoked.into_iter().collect()
        }
        (None, Some(session_key)) => daemon.approvals.revoke_session(session_key, &by).await,
        (Some(_), Some(_)) | (None, None) => {
            return Err(RpcError::param("id", "give either id or session_key"));
        }
    };
    let procs = daemon.approvals.running_under(&revoked);
    let running = procs.iter().map(|proc| proc.spec.id).collect();
    let mut killed = Vec::new();
    if call.kill {
        let (signal, grace_ms, cause) = (libc::SIGTERM, GRACE_MS, Cause::Client);
        killed = kill_all(procs, Kill { signal, grace_ms, cause, uid: peer.uid, pid: peer.pid }).await;
    }
    Ok(GrantsRevokeResult { revoked, running, killed })
}

fn approval_id(text: &str) -> Result<ApprovalId, RpcError> {
    text.parse().map_err(|why| RpcError::param("id", why))
}

fn decide_error(error: DecideError) -> RpcError {
    match error {
        DecideError::NotFound(id) => {
            let message = format!("no approval {id}; `approvals.list` shows what there is");
            RpcError::new(ErrorKind::NotFound, message).with("id", id.to_string())
        }
        DecideError::Stale(approval) => {
            let message =
                format!("{} is about another action than the one with this digest; look at it again", approval.id);
            RpcError::new(ErrorKind::Conflict, message)
                .with("digest", approval.digest.clone())
                .with("approval", serde_json::to_value(&*approval).unwrap_or_default())
        }
        DecideError::AlreadyDecided(approval) => {
            let state = serde_json::to_value(approval.state).unwrap_or_default();
            let message = format!("{} is {} already", approval.id, state.as_str().unwrap_or_default());
            RpcError::new(ErrorKind::AlreadyDecided, message)
                .with("state", state)
                .with("decided_by", serde_json::to_value(&approval.decided_by).unwrap_or_default())
                .with("approval", serde_json::to_value(&*approval).unwrap_or_default())
        }
        DecideError::NotOffered(scope) => {
            let scope = match scope {
                Scope::Once => "once",
                Scope::Session => "session",
                Scope::Always => "always",
                Scope::Script => "script",
            };
            RpcError::param("scope", format!("`{scope}` is not offered; `offers` of the approval lists the scopes"))
        }
        DecideError::Terms(why) => RpcError::param("grant", why),
        DecideError::Unread(why) => RpcError::new(ErrorKind::Unavailable, why),
        DecideError::Store { path, source } => {
            let message = format!("record the decision in {}: {source}; nothing was decided", path.display());
            RpcError::new(ErrorKind::Internal, message)
        }
        DecideError::Random(e) => RpcError::new(ErrorKind::Internal, format!("no random bytes: {e}")),
    }
}
