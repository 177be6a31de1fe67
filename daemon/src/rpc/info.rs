//! `daemon.info`.

use super::context::Daemon;
use super::wire::Peer;
use crate::backend::cgroup;
use crate::events::ConsumerName;
use crate::proc::state::Phase;
use crate::proc::tree;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use toold_proto::process::Usage;
use toold_proto::time::rfc3339;
use toold_proto::{ErrorKind, RpcError, params, results};

/// The version of the protocol. It changes only if clients have to change.
const PROTOCOL_VERSION: u32 = 1;
/// The most process trees that are read on the thread of the call. More go to a blocking thread: they take long.
const MAX_INLINE_TREES: usize = 16;

pub async fn info(_: params::Empty, daemon: Arc<Daemon>, _: Arc<Peer>) -> Result<results::DaemonInfoResult, RpcError> {
    let mut counts = results::Counts {
        pending: 0,
        starting: 0,
        running: 0,
        exited: 0,
        lost: 0,
        connections: daemon.connections.load(Ordering::Relaxed) as u64,
    };
    let mut shims = Vec::new();
    // The number of processes that run, and whether it has a client.
    let mut sessions: BTreeMap<String, (u64, bool)> =
        daemon.sessions.keys().into_iter().map(|key| (key, (0, true))).collect();
    for proc in daemon.registry.newest_first() {
        let state = proc.published_state();
        match state.phase {
            Phase::Pending => counts.pending += 1,
            Phase::Starting => counts.starting += 1,
            Phase::Running => counts.running += 1,
            Phase::Exited { .. } | Phase::Failed { .. } => counts.exited += 1,
            Phase::Lost { .. } => counts.lost += 1,
        }
        if !state.has_ended()
            && let Some(key) = &proc.spec.session_key
        {
            sessions.entry(key.clone()).or_default().0 += 1;
        }
        if !state.is_final() && state.shim_pid > 0 {
            shims.push(state.shim_pid);
        }
    }
    let usage = total_usage(shims).await?;
    let session = |(session_key, (running, live))| results::SessionInfo { session_key, live, running };
    Ok(results::DaemonInfoResult {
        version: env!("CARGO_PKG_VERSION").into(),
        protocol: PROTOCOL_VERSION,
        pid: std::process::id(),
        started_at: rfc3339(daemon.started_ms),
        uptime_ms: daemon.started.elapsed().as_millis() as u64,
        counts,
        usage,
        daemon: tree::own_usage(),
        limits: daemon.registry.config.effective(),
        features: features(&daemon),
        paths: results::DaemonPaths {
            socket: daemon.paths.socket.display().to_string(),
            state_dir: daemon.paths.state_dir.display().to_string(),
            config: daemon.paths.config.as_ref().map(|p| p.display().to_string()),
        },
        damaged: [daemon.registry.damaged(), daemon.journal.found_damage()].concat(),
        events: journal(&daemon),
        watch: daemon.registry.sink.watch_gate.breaker_view(),
        policy: daemon.judge.report(),
        sandbox: daemon.registry.last_probe().as_deref().cloned(),
        tool_providers: daemon.client_tools.info(),
        sessions: sessions.into_iter().map(session).collect(),
    })
}

/// Adds up the usage of the trees below these shims.
async fn total_usage(shims: Vec<i32>) -> Result<Usage, RpcError> {
    let few = shims.len() <= MAX_INLINE_TREES;
    let add_up = move || shims.into_iter().map(tree::usage_below).fold(Usage::default(), add);
    if few {
        return Ok(add_up());
    }
    let failed = |e| RpcError::new(ErrorKind::Internal, format!("internal error while adding up the usage: {e}"));
    tokio::task::spawn_blocking(add_up).await.map_err(failed)
}

fn add(sum: Usage, one: Usage) -> Usage {
    let (processes, cpu_ms) = (sum.processes + one.processes, sum.cpu_ms + one.cpu_ms);
    Usage { processes, cpu_ms, rss_bytes: sum.rss_bytes + one.rss_bytes }
}

fn journal(daemon: &Daemon) -> results::Journal {
    let journal = &daemon.journal;
    let consumer = |(name, position, used_ms): (ConsumerName, u64, u64)| {
        let (name, used_at) = (name.as_str().to_string(), rfc3339(used_ms));
        results::Consumer { name, position, used_at }
    };
    results::Journal {
        oldest: journal.oldest(),
        last: journal.last(),
        bytes: journal.bytes(),
        consumers: daemon.consumers.list().into_iter().map(consumer).collect(),
    }
}

/// Returns the features of this system, found by trying them.
fn features(daemon: &Daemon) -> BTreeMap<String, Value> {
    let own = std::process::id() as i32;
    let children = format!("/proc/{own}/task/{own}/children");
    let zygote = daemon.registry.launcher.zygote_pid();
    let cgroups = cgroup::available_controllers().map(|all| -> serde_json::Map<String, Value> {
        all.into_iter().map(|(name, version)| (name.to_string(), json!(format!("cgroup{version}")))).collect()
    });
    [
        ("proc", json!(tree::has_proc())),
        ("pidfd", json!(crate::sys::pidfd_open(own).is_ok())),
        ("pidfd_exit", json!(crate::sys::has_pidfd_info())),
        ("proc_children", json!(std::path::Path::new(&children).exists())),
        ("landlock_abi", json!(crate::sys::landlock_abi())),
        ("cgroup", json!(cgroups)),
        ("zygote", json!(zygote.is_some())),
        ("zygote_pid", json!(zygote)),
    ]
    .into_iter()
    .map(|(name, value)| (name.to_string(), value))
    .collect()
}
