//! `fs.read`, `fs.write`, `fs.edit`, `fs.list` and `fs.search`.

use super::context::Daemon;
use super::files_ask::{ask_outside, widen};
use super::wire::Peer;
use crate::disk;
use crate::files::roots::Limits;
use crate::files::search::{DEFAULT_TIMEOUT_MS, FileSearch};
use crate::files::{FsError, Refusal, Stop, edit_file, list, read, write};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use toold_proto::files as api;
use toold_proto::params::ExecParams;
use toold_proto::sandbox::SandboxSetting;
use toold_proto::{ErrorKind, RpcError};

/// Time after the end of a search in which its threads notice it. Then the answer goes out without them.
const STOP_GRACE: Duration = Duration::from_millis(500);

/// Runs blocking work, and answers with its error.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RpcError> + Send + 'static,
) -> Result<T, RpcError> {
    disk::blocking(work).await.map_err(thread_error)?
}

fn thread_error(e: io::Error) -> RpcError {
    RpcError::new(ErrorKind::Unavailable, format!("run the call on a thread: {e}"))
}

/// Returns the limits of a call, with what its session decides. None: it may touch everything. Reads the disk.
macro_rules! limits {
    ($daemon:expr, $call:expr) => {
        limits(&$daemon, &mut $call.sandbox, &mut $call.cwd, $call.session_key.as_deref())
    };
}

fn limits(
    daemon: &Daemon,
    sandbox: &mut Option<SandboxSetting>,
    cwd: &mut Option<String>,
    session_key: Option<&str>,
) -> Result<Option<Limits>, RpcError> {
    let (registry, key) = (&daemon.registry, session_key.map(str::to_owned));
    let max = registry.config.exec.max_key_bytes;
    if session_key.is_some_and(|key| key.len() as u64 > max || key.contains('\0')) {
        let problem = format!("must be at most {max} bytes (config key `exec.max_key_bytes`), without NUL");
        return Err(RpcError::param("session_key", problem));
    }
    let mut scope = ExecParams { cwd: cwd.take(), sandbox: sandbox.take(), session_key: key, ..ExecParams::default() };
    let session = daemon.judge.apply_session(&mut scope, &registry.config)?;
    (*cwd, *sandbox) = (scope.cwd, scope.sandbox);
    let plan = registry.plan(sandbox.as_ref(), session.ceiling.as_ref(), cwd.as_deref(), session_key)?;
    Ok(plan.map(Limits::from))
}

pub async fn read(
    mut call: api::FsReadParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<api::FsReadResult, RpcError> {
    blocking(move || {
        let limits = limits!(daemon, call)?;
        Ok(read::read(&call, limits.as_ref(), &daemon.registry.config.fs)?)
    })
    .await
}

pub async fn write(
    call: api::FsWriteParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<api::FsWriteResult, RpcError> {
    ask_outside(daemon, &peer, call, |call, daemon, root, apply| {
        let (mut limits, config) = (limits!(daemon, call)?, &daemon.registry.config);
        widen(&mut limits, root, &config.sandbox.protect);
        Ok(write::write(call, limits.as_ref(), &config.fs, &daemon.files.writers, apply)?)
    })
    .await
}

pub async fn edit(
    call: api::FsEditParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<api::FsEditResult, RpcError> {
    ask_outside(daemon, &peer, call, |call, daemon, root, apply| {
        let (mut limits, config) = (limits!(daemon, call)?, &daemon.registry.config);
        widen(&mut limits, root, &config.sandbox.protect);
        Ok(edit_file::edit_file(call, limits.as_ref(), &config.fs, &daemon.files.writers, apply)?)
    })
    .await
}

pub async fn list(
    mut call: api::FsListParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<api::FsListResult, RpcError> {
    let (stop, _cancel) = Stop::at(Instant::now() + list::PAGE_TIMEOUT);
    blocking(move || {
        let limits = limits!(daemon, call)?;
        Ok(list::list(&call, limits.as_ref(), &stop)?)
    })
    .await
}

pub async fn search(
    mut call: api::FsSearchParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<api::FsSearchResult, RpcError> {
    let timeout_ms = call.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS);
    if timeout_ms == 0 {
        return Err(RpcError::too_small("timeout_ms", 1, 0));
    }
    let timeout_ms = timeout_ms.min(daemon.registry.config.max_wait_ms);
    let deadline = Instant::now() + Duration::from_millis(timeout_ms);
    let mode = call.mode;
    let of_call = daemon.clone();
    let (search, found) = blocking(move || {
        let limits = limits!(of_call, call)?;
        Ok(FileSearch::new(&call, limits.map(Arc::new))?)
    })
    .await?;
    let (stop, _cancel) = Stop::at(deadline);
    let run = async {
        let _turn = daemon.files.searches.acquire().await.map_err(|e| thread_error(io::Error::other(e)))?;
        disk::blocking(move || search.run(&stop)).await.map_err(thread_error)
    };
    match tokio::time::timeout_at((deadline + STOP_GRACE).into(), run).await {
        Ok(ran) => ran?,
        // It waited for its turn, or a thread hangs on the disk.
        Err(_) => found.stop(),
    }
    Ok(found.result(mode, timeout_ms))
}

impl From<FsError> for RpcError {
    fn from(error: FsError) -> RpcError {
        match error {
            FsError::Param { param, why } => RpcError::param(param, why),
            FsError::NotFound { path, similar } => {
                let hint =
                    if similar.is_empty() { String::new() } else { format!("; similar: {}", similar.join(", ")) };
                RpcError::new(ErrorKind::NotFound, format!("{} does not exist{hint}", path.display()))
                    .with("path", path.to_string_lossy())
                    .with("similar", similar)
            }
            FsError::WrongType { path, found, hint } => {
                RpcError::param("path", format!("{} is {found}{hint}", path.display())).with("file_type", found)
            }
            FsError::Refused { path, refusal } => refused(&path, refusal),
            FsError::PageTooLong { first_line, lines, chars, max, fitting_lines } => {
                let way = match fitting_lines {
                    0 => "read it with encoding: \"base64\" and from_byte".to_owned(),
                    n => format!("give limit: {n}"),
                };
                let message = format!("the {lines} lines from line {first_line} on have {chars} characters; {way}");
                RpcError::limit("fs.read_max_chars", message)
                    .with("chars", chars)
                    .with("max", max)
                    .with("fitting_lines", fitting_lines)
            }
            FsError::TooLarge { path, bytes, max } => {
                let message = format!(
                    "{} has {bytes} bytes, and files up to {max} are read whole; \
                     read a part with encoding: \"base64\" and from_byte, or search it with fs.search",
                    path.display()
                );
                RpcError::limit("fs.max_file_bytes", message).with("bytes", bytes).with("max", max)
            }
            FsError::Conflict { path, why, sha256 } => {
                RpcError::new(ErrorKind::Conflict, format!("{}: {why}", path.display()))
                    .with("path", path.to_string_lossy())
                    .with("sha256", sha256)
            }
            FsError::NoMatch { path, sha256, nearest, why } => {
                let lines: Vec<String> = nearest.iter().map(|place| place.line.to_string()).collect();
                let hint = match (why, lines.is_empty()) {
                    (Some(why), _) => format!("; {why}"),
                    (None, true) => String::new(),
                    (None, false) => format!("; nearest: line {}", lines.join(", ")),
                };
                RpcError::new(ErrorKind::NoMatch, format!("{} does not have the old text{hint}", path.display()))
                    .with("path", path.to_string_lossy())
                    .with("sha256", sha256)
                    .with("nearest", places(&nearest))
            }
            FsError::Ambiguous { path, strategy, count, places: found } => {
                let lines: Vec<String> = found.iter().map(|place| place.line.to_string()).collect();
                let message = format!(
                    "{} has the old text {count} times, on line {}; give more of its lines, or replace_all: true",
                    path.display(),
                    lines.join(", ")
                );
                RpcError::new(ErrorKind::AmbiguousMatch, message)
                    .with("path", path.to_string_lossy())
                    .with("strategy", serde_json::to_value(strategy).unwrap_or_default())
                    .with("count", count)
                    .with("matches", places(&found))
            }
            FsError::Io { doing, path, source } => {
                let kind = match source.kind() {
                    io::ErrorKind::PermissionDenied => ErrorKind::Denied,
                    // A disk that is full, read-only or broken.
                    _ => ErrorKind::Unavailable,
                };
                RpcError::new(kind, format!("{doing} {}: {source}", path.display()))
                    .with("path", path.to_string_lossy())
                    .with("errno", source.raw_os_error())
                    .with("reason", source.to_string())
            }
        }
    }
}

fn refused(path: &std::path::Path, refusal: Refusal) -> RpcError {
    let (reason, message) = match &refusal {
        Refusal::Outside { .. } => ("outside_roots", "is outside the roots of the sandbox"),
        Refusal::Hidden => ("hidden", "is hidden by the sandbox"),
        Refusal::Protected => ("protected", "is protected by the sandbox"),
        Refusal::Escapes => ("escapes", "is where the path leads, out of the roots of the sandbox; give that path"),
        Refusal::Kernel => ("kernel", "is a file of the kernel that is not given to callers"),
        Refusal::SetId => ("set_id", "cannot get a set-user-ID or set-group-ID bit from inside a sandbox"),
    };
    let error = RpcError::new(ErrorKind::Denied, format!("{} {message}", path.display()))
        .with("path", path.to_string_lossy())
        .with("reason", reason);
    match refusal {
        Refusal::Outside { offer } => error.with("root", offer.to_string_lossy()),
        Refusal::Hidden | Refusal::Protected | Refusal::Escapes | Refusal::Kernel | Refusal::SetId => error,
    }
}

fn places(places: &[crate::files::edit::EditPlace]) -> Vec<serde_json::Value> {
    let place = |place: &crate::files::edit::EditPlace| {
        let mut shown = serde_json::json!({ "line": place.line, "text": place.text });
        if let Some(similarity) = place.similarity {
            shown["similarity"] = similarity.into();
        }
        shown
    };
    places.iter().map(place).collect()
}
