//! `inspect`.

use super::context::Daemon;
use super::process_response::PreviewedResponse;
use super::wire::Peer;
use crate::clock::wall_ms;
use crate::disk::call_on_disk;
use crate::proc::cut::{self, cut_list};
use crate::proc::{listening_port, tree};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toold_format::log::parse_log_name;
use toold_proto::fields::FieldSet;
use toold_proto::process::Member;
use toold_proto::{ErrorKind, RpcError, params, results};

pub async fn inspect(
    call: params::InspectParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<PreviewedResponse<results::InspectResult>, RpcError> {
    let fields = FieldSet::of::<results::InspectResult>(&call)?;
    let proc = daemon.find(&call.id)?;
    let state = proc.state();
    let alive = !state.is_final() && state.shim_pid > 0;
    let (members, listeners) = if alive { read_tree(state.shim_pid).await? } else { Default::default() };
    // The first file is missing only if the first bytes could not be written.
    let log = proc.dir.join("log");
    let log_files = call_on_disk(async { log_files(&proc.dir) }).await;
    let log_exists = log_files.contains(&log);
    let mut process = proc.view_of(&state, wall_ms());
    let mut env_names = proc.spec.env_names.clone();
    if cut_list(&mut env_names, cut::SINGLE.text) {
        process.cut.get_or_insert_default().push("env_names".into());
    }
    let result = results::InspectResult {
        process,
        usage: tree::usage(&members),
        tree: members,
        listeners,
        log_path: log_exists.then(|| log.display().to_string()),
        log_files: log_files.iter().map(|path| path.display().to_string()).collect(),
        state_path: proc.dir.display().to_string(),
        env_names,
        shim_pid: alive.then_some(state.shim_pid),
        timeout_ms: proc.spec.timeout_ms,
        heartbeat_ms: proc.spec.heartbeat_ms,
        allowed_by: daemon.approvals.allowed_by(&proc).map(Box::new),
    };
    Ok(PreviewedResponse::new(result, fields, &proc).await)
}

/// Reads the members of the tree below a shim and their listeners, on a blocking thread: a large tree takes long.
async fn read_tree(shim: i32) -> Result<(Vec<Member>, Vec<results::Listener>), RpcError> {
    let read = move || (tree::members(shim), listening_port::listeners(shim));
    let failed = |e| RpcError::new(ErrorKind::Internal, format!("internal error while reading a process tree: {e}"));
    tokio::task::spawn_blocking(read).await.map_err(failed)
}

/// Returns the files of output in a process's directory, in the order of their offsets.
fn log_files(dir: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    let offset = |entry: std::fs::DirEntry| Some((parse_log_name(entry.file_name().as_bytes())?, entry.path()));
    let mut files: Vec<(u64, PathBuf)> = entries.filter_map(offset).collect();
    files.sort();
    files.into_iter().map(|(_, path)| path).collect()
}
