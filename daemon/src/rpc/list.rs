//! `list`, `inspect`, `forget`: which processes there are, and one of them closely.

use super::context::{Daemon, unreadable};
use super::read::tail;
use super::wire::Peer;
use crate::proc::Proc;
use crate::proc::state::State;
use crate::proc::task::now_ms;
use crate::proc::tree;
use std::sync::Arc;
use std::time::Duration;
use toold_proto::results::Listed;
use toold_proto::{RpcError, params, results};

const LIMIT: u64 = 200;
/// How long a shim may take to leave after the end of its process.
const LEAVING: Duration = Duration::from_secs(1);
/// The end of the output that a list shows, in characters.
const PREVIEW: usize = 200;

pub async fn list(call: params::List, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<results::List, RpcError> {
    let limit = call.limit.unwrap_or(LIMIT);
    if limit == 0 {
        return Err(RpcError::param("limit", "must be at least 1"));
    }
    let now = now_ms();
    let wanted: Vec<Arc<Proc>> = daemon.registry.newest_first().into_iter().filter(|p| fits(p, &call, now)).collect();
    let total = wanted.len() as u64;
    let one = |proc: Arc<Proc>| {
        let state = proc.state();
        let (preview, _) = tail(&proc, &state, PREVIEW).map_err(|e| unreadable(&proc, e))?;
        Ok(Listed { process: proc.view_of(&state, now), preview })
    };
    let processes = wanted.into_iter().take(limit as usize).map(one).collect::<Result<_, RpcError>>()?;
    Ok(results::List { processes, total })
}

fn fits(proc: &Proc, call: &params::List, now: u64) -> bool {
    let spec = &proc.spec;
    let label = |wanted: &String| match wanted.split_once('=') {
        Some((key, value)) => spec.labels.get(key).is_some_and(|v| v == value),
        None => spec.labels.contains_key(wanted),
    };
    call.task_id.as_ref().is_none_or(|t| spec.task_id.as_ref() == Some(t))
        && call.session_key.as_ref().is_none_or(|s| spec.session_key.as_ref() == Some(s))
        && call.label.as_ref().is_none_or(label)
        && call.status.is_none_or(|s| proc.view_of(&proc.peek(), now).status == s)
}

pub async fn inspect(call: params::Inspect, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<results::Inspect, RpcError> {
    let proc = daemon.find(&call.id)?;
    let state = proc.state();
    let alive = !state.over() && state.shim_pid > 0;
    let members = if alive { tree::members(state.shim_pid) } else { Vec::new() };
    // The first file is missing only if the disk refused the first bytes.
    let log = proc.dir.join("log");
    Ok(results::Inspect {
        process: proc.view_of(&state, now_ms()),
        usage: tree::usage(&members),
        tree: members,
        log_path: log.exists().then(|| log.display().to_string()),
        state_path: proc.dir.display().to_string(),
        env_names: proc.spec.env_names.clone(),
        shim_pid: alive.then_some(state.shim_pid),
        timeout_ms: proc.spec.timeout_ms,
        heartbeat_ms: proc.spec.heartbeat_ms,
    })
}

pub async fn forget(call: params::Forget, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<results::Forget, RpcError> {
    let procs: Vec<Arc<Proc>> = match (&call.ids, call.older_than_ms) {
        (Some(_), Some(_)) => return Err(RpcError::param("ids", "give either ids or older_than_ms, not both")),
        (None, None) => return Err(RpcError::param("ids", "give ids or older_than_ms")),
        (Some(ids), None) => ids.iter().map(|id| daemon.registry.find("ids", id)).collect::<Result<_, _>>()?,
        (None, Some(age)) => {
            let before = now_ms().saturating_sub(age);
            let old = |p: &Arc<Proc>| p.peek().closed && p.peek().ended_ms().is_some_and(|at| at <= before);
            daemon.registry.newest_first().into_iter().filter(old).collect()
        }
    };
    let mut result = results::Forget { forgotten: Vec::new(), skipped: Vec::new() };
    for proc in procs {
        let id = proc.spec.id;
        if proc.peek().ended() && proc.peek().closed {
            // Its shim is about to leave.
            let mut state = proc.subscribe();
            let _ = tokio::time::timeout(LEAVING, state.wait_for(State::over)).await;
        }
        let list = if daemon.registry.forget(id).await { &mut result.forgotten } else { &mut result.skipped };
        list.push(id);
    }
    Ok(result)
}
