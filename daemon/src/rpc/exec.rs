//! `exec`.

use super::context::Daemon;
use super::error::unreadable;
use super::events::{acknowledge, consumer};
use super::poll::remember_exit;
use super::wire::Peer;
use crate::clock::wall_ms;
use crate::log::Log;
use crate::proc::Proc;
use crate::proc::condition::Readiness;
use crate::proc::state::State;
use crate::registry::{NamePolicy, SpawnError, Spawned, spawn_failed};
use crate::{spec, text};
use std::sync::Arc;
use std::time::Duration;
use toold_proto::params::{self, Ansi};
use toold_proto::{RpcError, results};

/// Output that an answer carries when nobody says.
const DEFAULT_OUTPUT_TOKENS: u64 = 10_000;
/// The most that an answer carries; what is beyond is cut and told, and read with `poll`.
const MAX_OUTPUT_TOKENS: u64 = 1 << 20;

pub async fn exec(call: params::Exec, daemon: Arc<Daemon>, peer: Arc<Peer>) -> Result<results::Exec, RpcError> {
    let config = &daemon.registry.config;
    let readiness = Readiness::from_call(&call, config.max_wait_ms)?;
    let order = spec::build(&call, config)?;
    let consumer = consumer(&daemon, call.consumer.as_deref())?;
    let single = NamePolicy { if_running: call.if_running, uid: peer.uid, pid: peer.pid };
    let Spawned { proc, existing } = match daemon.registry.spawn(order, single).await {
        Ok(spawned) => spawned,
        Err(SpawnError::Refused(error)) => return Err(error),
        Err(SpawnError::Failed(proc)) => return Err(spawn_failed(&proc)),
    };
    let mut ready = None;
    if let Some(readiness) = readiness {
        ready = Some(readiness.wait(&proc).await.map_err(|e| unreadable(&proc, e))?);
    } else if call.yield_ms > 0 {
        let patience = Duration::from_millis(call.yield_ms.min(config.max_wait_ms));
        let mut state = proc.subscribe();
        // Whichever is first; the exit does not wait for whoever still holds a pipe.
        let _ = tokio::time::timeout(patience, state.wait_for(State::has_ended)).await;
    }
    let answer = answer(&proc, &peer, call.max_output_tokens.unwrap_or(DEFAULT_OUTPUT_TOKENS).min(MAX_OUTPUT_TOKENS))?;
    let ended = answer.process.exited_at.is_some();
    acknowledge(&daemon, consumer.as_ref(), ended.then_some(&proc).into_iter())?;
    Ok(results::Exec { existing, ready, ..answer })
}

fn answer(proc: &Proc, peer: &Peer, tokens: u64) -> Result<results::Exec, RpcError> {
    let state = proc.state();
    remember_exit(peer, proc, &state);
    let mut log = Log::open(&proc.dir, state.progress.counts.end).map_err(|e| unreadable(proc, e))?;
    if !state.closed {
        // What of a character has yet to come is left for who goes on from here.
        let whole = log.char_boundary_end().map_err(|e| unreadable(proc, e))?;
        log = Log::open(&proc.dir, whole).map_err(|e| unreadable(proc, e))?;
    }
    let end = log.end();
    let (output, truncated) = text::fit_tokens(&log, 0, tokens, Ansi::Strip).map_err(|e| unreadable(proc, e))?;
    let gap = log.first_gap(0).map_err(|e| unreadable(proc, e))?;
    Ok(results::Exec {
        process: proc.view_of(&state, wall_ms()),
        output,
        next_cursor: end,
        truncated,
        gap,
        existing: false,
        ready: None,
    })
}
