//! `kill`, `signal` and the sessions: ending things, and proving it.

use super::context::Daemon;
use super::wire::Peer;
use crate::proc::handle::{Kill, NoReply};
use crate::proc::kill::{GRACE_MS, kill_all};
use crate::proc::{Proc, view};
use crate::store::slots::Cause;
use std::sync::Arc;
use toold_proto::results::KillStatus;
use toold_proto::{ErrorKind, RpcError, params, results};

/// The number of a signal that was named.
fn signal_number(name: &str) -> Result<i32, RpcError> {
    view::signal_number(name)
        .ok_or_else(|| RpcError::param("signal", format!("there is no signal {name:?}; SIGTERM is one")))
}

pub async fn kill(call: params::Kill, daemon: Arc<Daemon>, peer: Arc<Peer>) -> Result<results::Kill, RpcError> {
    let signal = signal_number(call.signal.as_deref().unwrap_or("SIGTERM"))?;
    let grace_ms = call.grace_ms.unwrap_or(GRACE_MS).min(daemon.registry.config.max_wait_ms);
    let procs = chosen(&call, &daemon)?;
    let kill = Kill { signal, grace_ms, cause: Cause::Client, uid: peer.uid, pid: peer.pid };
    let results = kill_all(procs, kill).await;
    let status = results.iter().map(|r| r.status).max().unwrap_or(KillStatus::AlreadyExited);
    Ok(results::Kill { status, results })
}

/// The processes that a call means. By task, session or `all`: those of which something is left.
fn chosen(call: &params::Kill, daemon: &Daemon) -> Result<Vec<Arc<Proc>>, RpcError> {
    let given = [
        call.id.is_some(),
        call.ids.is_some(),
        call.task_id.is_some(),
        call.session_key.is_some(),
        call.all == Some(true),
    ];
    if given.iter().filter(|g| **g).count() != 1 {
        return Err(RpcError::param("id", "give exactly one of id, ids, task_id, session_key, all: true"));
    }
    if let Some(id) = &call.id {
        return Ok(vec![daemon.find(id)?]);
    }
    if let Some(ids) = &call.ids {
        if ids.is_empty() {
            return Err(RpcError::param("ids", "must not be empty"));
        }
        let mut procs = ids.iter().map(|id| daemon.registry.find("ids", id)).collect::<Result<Vec<_>, _>>()?;
        let mut seen = std::collections::HashSet::new();
        procs.retain(|p| seen.insert(p.spec.id));
        return Ok(procs);
    }
    let ours = |p: &Arc<Proc>| {
        let spec = &p.spec;
        let task = call.task_id.as_ref().is_none_or(|t| spec.task_id.as_ref() == Some(t));
        let session = call.session_key.as_ref().is_none_or(|s| spec.session_key.as_ref() == Some(s));
        task && session && !p.published_state().is_final()
    };
    Ok(daemon.registry.newest_first().into_iter().filter(ours).collect())
}

/// The error for a call that got no answer.
pub fn unanswered(proc: &Proc, why: NoReply) -> RpcError {
    match why {
        NoReply::Gone => already_exited(proc),
        NoReply::Unresponsive => {
            let (id, shim) = (proc.spec.id, proc.published_state().shim_pid);
            let message =
                format!("the shim of {id} (pid {shim}) does not answer; it is stopped, frozen or waits for its disk");
            RpcError::new(ErrorKind::Unavailable, message).with("shim_pid", shim)
        }
    }
}

pub async fn signal(call: params::Signal, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<results::Signal, RpcError> {
    let number = signal_number(&call.signal)?;
    let proc = daemon.find(&call.id)?;
    refuse_ended(&proc)?;
    match proc.signal(number).await {
        Ok(0) => Ok(results::Signal { id: proc.spec.id, signal: view::signal_name(number) }),
        Ok(libc::ESRCH) => Err(already_exited(&proc)),
        Err(e) => Err(unanswered(&proc, e)),
        Ok(errno) => {
            let why = std::io::Error::from_raw_os_error(errno);
            Err(RpcError::new(ErrorKind::Internal, format!("signal {}: {why}", proc.spec.id)))
        }
    }
}

/// The error for a process that has ended, with how.
pub fn already_exited(proc: &Proc) -> RpcError {
    let process = proc.view(crate::proc::task::now_ms());
    let message = match (&process.signal, process.exit_code) {
        (Some(signal), _) => format!("{} has ended, by {signal}", proc.spec.id),
        (None, Some(code)) => format!("{} has exited with code {code}", proc.spec.id),
        (None, None) => format!("{} has ended", proc.spec.id),
    };
    let (code, signal) = (process.exit_code, process.signal.clone());
    RpcError::new(ErrorKind::AlreadyExited, message)
        .with("exit_code", code)
        .with("signal", signal)
        .with("process", serde_json::to_value(process).unwrap_or_default())
}

pub fn refuse_ended(proc: &Proc) -> Result<(), RpcError> {
    if proc.published_state().has_ended() { Err(already_exited(proc)) } else { Ok(()) }
}

pub async fn session_active(
    call: params::SessionActive,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<results::SessionActive, RpcError> {
    if call.session_key.is_some() == call.task_id.is_some() {
        return Err(RpcError::param("session_key", "give either session_key or task_id"));
    }
    let ours = |p: &Arc<Proc>| match (&call.session_key, &call.task_id) {
        (Some(key), _) => p.spec.session_key.as_ref() == Some(key),
        (None, task) => p.spec.task_id == *task,
    };
    let running = daemon.registry.newest_first().into_iter().filter(|p| ours(p) && !p.published_state().has_ended());
    let ids: Vec<_> = running.map(|p| p.spec.id).collect();
    Ok(results::SessionActive { count: ids.len() as u64, ids })
}

pub async fn session_end(
    call: params::SessionEnd,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<results::SessionEnd, RpcError> {
    if call.session_key.is_empty() {
        return Err(RpcError::param("session_key", "must not be empty"));
    }
    let all = daemon.registry.newest_first().into_iter();
    let procs = all
        .filter(|p| p.spec.session_key.as_ref() == Some(&call.session_key) && !p.published_state().is_final())
        .collect();
    let (signal, cause) = (libc::SIGTERM, Cause::SessionEnd);
    let mut killed = kill_all(procs, Kill { signal, grace_ms: GRACE_MS, cause, uid: peer.uid, pid: peer.pid }).await;
    // One that was over already, and whose shim was about to leave, was not killed.
    killed.retain(|one| one.status != KillStatus::AlreadyExited);
    Ok(results::SessionEnd { session_key: call.session_key, count: killed.len() as u64, killed })
}
