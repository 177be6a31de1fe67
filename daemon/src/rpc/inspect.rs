//! `inspect`.

use super::context::Daemon;
use super::process_response::PreviewedResponse;
use super::wire::Peer;
use crate::clock::wall_ms;
use crate::disk::call_on_disk;
use crate::proc::cut::{self, cut_list};
use crate::proc::tree;
use std::sync::Arc;
use toold_proto::fields::FieldSet;
use toold_proto::{RpcError, params, results};

pub async fn inspect(
    call: params::InspectParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<PreviewedResponse<results::InspectResult>, RpcError> {
    let fields = FieldSet::of::<results::InspectResult>(&call)?;
    let proc = daemon.find(&call.id)?;
    let state = proc.state();
    let alive = !state.is_final() && state.shim_pid > 0;
    let members = if alive { tree::members(state.shim_pid) } else { Vec::new() };
    // The first file is missing only if the first bytes could not be written.
    let log = proc.dir.join("log");
    let log_exists = call_on_disk(async { log.exists() }).await;
    let mut process = proc.view_of(&state, wall_ms());
    let mut env_names = proc.spec.env_names.clone();
    if cut_list(&mut env_names, cut::SINGLE.text) {
        process.cut.get_or_insert_default().push("env_names".into());
    }
    let result = results::InspectResult {
        process,
        usage: tree::usage(&members),
        tree: members,
        log_path: log_exists.then(|| log.display().to_string()),
        state_path: proc.dir.display().to_string(),
        env_names,
        shim_pid: alive.then_some(state.shim_pid),
        timeout_ms: proc.spec.timeout_ms,
        heartbeat_ms: proc.spec.heartbeat_ms,
    };
    Ok(PreviewedResponse::new(result, fields, &proc).await)
}
