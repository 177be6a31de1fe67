//! `daemon.shutdown`.

use super::context::Daemon;
use super::wire::Peer;
use crate::proc::Proc;
use crate::proc::handle::Kill;
use crate::proc::kill::{GRACE_MS, kill_all};
use crate::proc::state::State;
use crate::registry::Selector;
use futures_util::future::join_all;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use toold_format::slots::Cause;
use toold_proto::{RpcError, params, results};

/// Time for the shims of killed processes to end. Some have kept an environment for a restart, and are let go first.
const SHIMS_END_WAIT: Duration = Duration::from_secs(5);

pub async fn shutdown(
    call: params::ShutdownParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<results::ShutdownResult, RpcError> {
    let mut killed = Vec::new();
    if call.kill {
        let procs = daemon.registry.select_unfinished(&Selector::default());
        let (signal, cause) = (libc::SIGTERM, Cause::Shutdown);
        killed =
            kill_all(procs.clone(), Kill { signal, grace_ms: GRACE_MS, cause, uid: peer.uid, pid: peer.pid }).await;
        let survives = |proc: &Proc| killed.iter().any(|one| one.id == proc.spec.id && !one.survivors.is_empty());
        let ends = procs.iter().filter(|proc| !survives(proc)).map(|proc| {
            let mut state = proc.subscribe();
            async move { state.wait_for(State::is_final).await.is_ok() }
        });
        let _ = timeout(SHIMS_END_WAIT, join_all(ends)).await;
    }
    tracing::info!(uid = peer.uid, pid = peer.pid, kill = call.kill, "shutdown requested");
    // The wire writes this answer before it closes the connection.
    let _ = daemon.stop.send(true);
    Ok(results::ShutdownResult { stopping: true, killed })
}
