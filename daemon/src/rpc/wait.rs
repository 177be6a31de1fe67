//! `wait`: for one process or several, for what `ready` can tell.

use super::context::Daemon;
use super::error::unreadable;
use super::events::{acknowledge, consumer};
use super::poll::{remember_exit, tail};
use super::wire::Peer;
use crate::clock::wall_ms;
use crate::proc::Proc;
use crate::proc::condition::{Condition, Reached, wait_for};
use futures_util::future::{FutureExt, join_all, select_all};
use std::sync::Arc;
use std::time::Duration;
use toold_proto::params::{self, WaitMode};
use toold_proto::results::{WaitStatus, Waited};
use toold_proto::{RpcError, results};

const DEFAULT_TIMEOUT_MS: i64 = 180_000;
/// What each process shows of its output, in characters.
const TAIL_CHARS: usize = 2000;
/// Processes in one wait.
const MAX_PROCESSES: usize = 4096;

pub async fn wait(call: params::Wait, daemon: Arc<Daemon>, peer: Arc<Peer>) -> Result<results::Wait, RpcError> {
    let asked = call.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS);
    if asked <= 0 {
        return Err(RpcError::too_small("timeout_ms", 1, asked));
    }
    let procs = selected(&call, &daemon)?;
    let max = daemon.registry.config.max_wait_ms;
    let timeout_ms = (asked as u64).min(max);
    let clamped = asked as u64 > max;
    let condition = Condition::new("until", &call.until)?;
    let consumer = consumer(&daemon, call.consumer.as_deref())?;
    let waits = procs.iter().map(|p| wait_for(p.clone(), condition.clone()).boxed());
    let all = async {
        match call.mode {
            WaitMode::All => join_all(waits).await.into_iter().enumerate().collect::<Vec<_>>(),
            WaitMode::Any => {
                let (end, at, _) = select_all(waits).await;
                vec![(at, end)]
            }
        }
    };
    let ends = tokio::time::timeout(Duration::from_millis(timeout_ms), all).await;
    let mut reports = vec![Reached::Exit; procs.len()];
    let status = match ends {
        Err(_) => WaitStatus::Timeout,
        Ok(ends) => {
            for (at, end) in ends {
                reports[at] = end.map_err(|e| unreadable(&procs[at], e))?;
            }
            if reports.iter().any(|end| *end != Reached::Exit) { WaitStatus::Matched } else { WaitStatus::Exited }
        }
    };
    let shown = procs.iter().zip(reports).map(|(p, end)| shown(p, &peer, end));
    let processes: Vec<Waited> = shown.collect::<Result<_, _>>()?;
    let told = procs.iter().zip(&processes).filter(|(_, shown)| shown.process.exited_at.is_some());
    acknowledge(&daemon, consumer.as_ref(), told.map(|(proc, _)| proc))?;
    let note = clamped.then(|| format!("the timeout of {asked} ms was cut to max_wait_ms, {max} ms"));
    Ok(results::Wait { status, processes, timeout_ms, clamped, note })
}

fn selected(call: &params::Wait, daemon: &Daemon) -> Result<Vec<Arc<Proc>>, RpcError> {
    let ids = match (&call.id, &call.ids) {
        (Some(_), Some(_)) => return Err(RpcError::param("id", "give either id or ids, not both")),
        (None, None) => return Err(RpcError::param("id", "give id or ids")),
        (Some(id), None) => std::slice::from_ref(id),
        (None, Some(ids)) if ids.is_empty() => return Err(RpcError::param("ids", "must not be empty")),
        (None, Some(ids)) if ids.len() > MAX_PROCESSES => {
            return Err(RpcError::param("ids", format!("must be at most {MAX_PROCESSES}, not {}", ids.len())));
        }
        (None, Some(ids)) => ids.as_slice(),
    };
    ids.iter().map(|id| daemon.registry.find(if call.id.is_some() { "id" } else { "ids" }, id)).collect()
}

fn shown(proc: &Proc, peer: &Peer, end: Reached) -> Result<Waited, RpcError> {
    let state = proc.state();
    remember_exit(peer, proc, &state);
    let (output, next_cursor) = tail(proc, &state, TAIL_CHARS).map_err(|e| unreadable(proc, e))?;
    let (matched, listener) = match end {
        Reached::Match(line) => (Some(line), None),
        Reached::Port(listener) => (None, Some(listener)),
        Reached::Quiet | Reached::Exit => (None, None),
    };
    Ok(Waited { process: proc.view_of(&state, wall_ms()), output, next_cursor, matched, listener })
}
