//! `daemon.shutdown`.

use super::context::Daemon;
use super::wire::Peer;
use crate::proc::handle::Kill;
use crate::proc::kill::{GRACE_MS, kill_all};
use crate::registry::Selector;
use std::sync::Arc;
use toold_format::slots::Cause;
use toold_proto::{RpcError, params, results};

pub async fn shutdown(
    call: params::ShutdownParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<results::ShutdownResult, RpcError> {
    let mut killed = Vec::new();
    if call.kill {
        let procs = daemon.registry.select_unfinished(&Selector::default());
        let (signal, cause) = (libc::SIGTERM, Cause::Shutdown);
        killed = kill_all(procs, Kill { signal, grace_ms: GRACE_MS, cause, uid: peer.uid, pid: peer.pid }).await;
    }
    tracing::info!(uid = peer.uid, pid = peer.pid, kill = call.kill, "shutdown requested");
    // The wire writes this answer before it closes the connection.
    let _ = daemon.stop.send(true);
    Ok(results::ShutdownResult { stopping: true, killed })
}
