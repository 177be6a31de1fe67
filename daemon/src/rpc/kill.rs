//! `kill`, `signal` and the sessions: ending things, and proving it.

use super::context::Daemon;
use super::wire::Peer;
use crate::proc::handle::{Kill, KillEnd, Unanswered};
use crate::proc::state::State;
use crate::proc::{Proc, tree, view};
use crate::store::slots::Cause;
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use toold_proto::results::{KillStatus, Killed};
use toold_proto::{Kind, RpcError, params, results};

const GRACE_MS: u64 = 5000;
/// Tries to kill a tree without its shim.
const BY_HAND: usize = 50;

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
        task && session && !p.peek().over()
    };
    Ok(daemon.registry.newest_first().into_iter().filter(ours).collect())
}

/// Kills trees at the same time, and answers when each is proven.
pub async fn kill_all(procs: Vec<Arc<Proc>>, kill: Kill) -> Vec<Killed> {
    join_all(procs.into_iter().map(|proc| async move { kill_one(&proc, kill).await })).await
}

async fn kill_one(proc: &Proc, kill: Kill) -> Killed {
    let mut news = proc.subscribe();
    let mut proven = true;
    let end = loop {
        match proc.kill(kill).await {
            Ok(end) => break end,
            Err(_) if proc.peek().over() => break KillEnd::default(),
            // The connection to its shim broke meanwhile: asked again on the next.
            Err(Unanswered::Over) => {
                let _ = tokio::time::timeout(Duration::from_millis(50), news.changed()).await;
            }
            Err(Unanswered::Silent) => {
                // A shim that cannot act is not waited for. The exit is known when it can.
                proven = false;
                break KillEnd { signals: 1 << libc::SIGKILL, survivors: kill_by_hand(proc).await };
            }
        }
    };
    if proven && end.survivors.is_empty() {
        // The exit was told before the end of the kill, so it is there.
        let _ = news.wait_for(State::ended).await;
    }
    let survivors: Vec<_> =
        end.survivors.iter().filter_map(|pid| tree::member(*pid)).filter(|m| m.state != "Z").collect();
    let status = match (survivors.is_empty(), end.signals) {
        (false, _) => KillStatus::Survivors,
        (true, 0) => KillStatus::AlreadyExited,
        (true, _) => KillStatus::Killed,
    };
    let signals_sent = (1..64).filter(|n| end.signals & (1 << n) != 0).collect::<Vec<i32>>();
    let ending = view::ending(&proc.spec, &proc.peek());
    Killed {
        id: proc.spec.id,
        status,
        signals_sent: in_order(&signals_sent, kill.signal),
        survivors,
        exit_code: ending.exit_code,
        signal: ending.signal,
        reason: ending.reason,
    }
}

/// Kills a tree whose shim is frozen, again and again until it is empty or that does not help.
async fn kill_by_hand(proc: &Proc) -> Vec<i32> {
    let mut alive = Vec::new();
    for _ in 0..BY_HAND {
        alive = tree::kill_below(proc.peek().shim_pid);
        if alive.is_empty() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    alive
}

/// The error for a call that got no answer.
pub fn unanswered(proc: &Proc, why: Unanswered) -> RpcError {
    match why {
        Unanswered::Over => already_exited(proc),
        Unanswered::Silent => {
            let (id, shim) = (proc.spec.id, proc.peek().shim_pid);
            let message =
                format!("the shim of {id} (pid {shim}) does not answer; it is stopped, frozen or waits for its disk");
            RpcError::new(Kind::Unavailable, message).with("shim_pid", shim)
        }
    }
}

/// The first signal first: the bits of a report have no order, a kill has.
fn in_order(sent: &[i32], first: i32) -> Vec<String> {
    let (mut early, late): (Vec<i32>, Vec<i32>) = sent.iter().partition(|s| **s == first);
    early.extend(late);
    early.into_iter().map(view::signal_name).collect()
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
            Err(RpcError::new(Kind::Internal, format!("signal {}: {why}", proc.spec.id)))
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
    RpcError::new(Kind::AlreadyExited, message)
        .with("exit_code", code)
        .with("signal", signal)
        .with("process", serde_json::to_value(process).unwrap_or_default())
}

pub fn refuse_ended(proc: &Proc) -> Result<(), RpcError> {
    if proc.peek().ended() { Err(already_exited(proc)) } else { Ok(()) }
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
    let running = daemon.registry.newest_first().into_iter().filter(|p| ours(p) && !p.peek().ended());
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
    let procs = all.filter(|p| p.spec.session_key.as_ref() == Some(&call.session_key) && !p.peek().over()).collect();
    let (signal, cause) = (libc::SIGTERM, Cause::SessionEnd);
    let killed = kill_all(procs, Kill { signal, grace_ms: GRACE_MS, cause, uid: peer.uid, pid: peer.pid }).await;
    Ok(results::SessionEnd { session_key: call.session_key, count: killed.len() as u64, killed })
}
