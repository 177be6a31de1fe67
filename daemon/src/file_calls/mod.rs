//! Calls on files, as every caller makes them: `fs.*` and `patch.*`, judged by the session and the roots of the call. The work
//! on the files is in `files` and `patch`.

mod change;
mod find;
mod patch;
#[cfg(test)]
mod tests;

pub use find::NewestMatches;

use crate::approvals::Approvals;
use crate::disk;
use crate::files::roots::Limits;
use crate::files::search::{DEFAULT_TIMEOUT_MS, FileSearch};
use crate::files::{Files, Stop, in_memory, list, read, resolve};
use crate::patch::Patches;
use crate::policy::Judge;
use crate::sandbox::plan::Plan;
use crate::sandbox::profile;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};
use toold_proto::files as api;
use toold_proto::params::ExecParams;
use toold_proto::sandbox::SandboxSetting;
use toold_proto::{ErrorKind, RpcError};

/// Time after the end of a search in which its threads notice it. Then the answer goes out without them.
const STOP_GRACE: Duration = Duration::from_millis(500);

/// The state that calls on files work on.
pub struct FileCalls {
    approvals: Arc<Approvals>,
    judge: Arc<Judge>,
    patches: Arc<Patches>,
    files: Files,
}

impl FileCalls {
    pub fn new(approvals: Arc<Approvals>, judge: Arc<Judge>, patches: Arc<Patches>) -> Arc<FileCalls> {
        Arc::new(FileCalls { approvals, judge, patches, files: Files::default() })
    }

    pub async fn read(self: &Arc<Self>, mut call: api::FsReadParams) -> Result<api::FsReadResult, RpcError> {
        let is_at_once = self.is_in_memory(&call);
        let calls = self.clone();
        let mut read = move || {
            let limits = calls.limits(call.sandbox.as_ref(), &mut call.cwd, call.session_key.as_deref())?;
            Ok(read::read(&call, limits.as_ref(), &calls.approvals.registry.config.fs)?)
        };
        if is_at_once { disk::on_disk(async move { read() }).await } else { blocking(read).await }
    }

    /// Returns true if a read has no limits that the disk has a part in, and finds its file in memory.
    fn is_in_memory(&self, call: &api::FsReadParams) -> bool {
        let is_unlimited = call.sandbox.is_none()
            && profile::is_unconfined_by_default(&self.approvals.registry.config)
            && matches!(self.judge.sessions.find(call.session_key.as_deref()), Ok(None));
        let asked = is_unlimited.then(|| resolve::absolute(&call.path, call.cwd.as_deref()).ok()).flatten();
        asked.is_some_and(|path| in_memory::is_in_memory(&path))
    }

    /// Returns the hash of a whole file. None: there is no such file. Of the call only the path and its judgement count.
    pub async fn sha256(self: &Arc<Self>, mut call: api::FsReadParams) -> Result<Option<String>, RpcError> {
        let calls = self.clone();
        blocking(move || {
            let limits = calls.limits(call.sandbox.as_ref(), &mut call.cwd, call.session_key.as_deref())?;
            Ok(read::sha256(&call, limits.as_ref(), &calls.approvals.registry.config.fs)?)
        })
        .await
    }

    pub async fn list(self: &Arc<Self>, mut call: api::FsListParams) -> Result<api::FsListResult, RpcError> {
        let (stop, _cancel) = Stop::at(Instant::now() + list::PAGE_TIMEOUT);
        let calls = self.clone();
        blocking(move || {
            let limits = calls.limits(call.sandbox.as_ref(), &mut call.cwd, call.session_key.as_deref())?;
            Ok(list::list(&call, limits.as_ref(), &stop)?)
        })
        .await
    }

    pub async fn search(self: &Arc<Self>, mut call: api::FsSearchParams) -> Result<api::FsSearchResult, RpcError> {
        let timeout_ms = call.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS);
        if timeout_ms == 0 {
            return Err(RpcError::too_small("timeout_ms", 1, 0));
        }
        let timeout_ms = timeout_ms.min(self.approvals.registry.config.max_wait_ms);
        let deadline = Instant::now() + Duration::from_millis(timeout_ms);
        let mode = call.mode;
        let calls = self.clone();
        let (search, found) = blocking(move || {
            let limits = calls.limits(call.sandbox.as_ref(), &mut call.cwd, call.session_key.as_deref())?;
            Ok(FileSearch::new(&call, limits.map(Arc::new))?)
        })
        .await?;
        let (stop, _cancel) = Stop::at(deadline);
        let run = async {
            let _turn = self.files.searches.acquire().await.map_err(|e| thread_error(io::Error::other(e)))?;
            disk::blocking(move || search.run(&stop)).await.map_err(thread_error)
        };
        match tokio::time::timeout_at((deadline + STOP_GRACE).into(), run).await {
            Ok(ran) => ran?,
            // It waited for its turn, or a thread hangs on the disk.
            Err(_) => found.stop(),
        }
        Ok(found.result(mode, timeout_ms))
    }

    /// Returns the limits of a call, with what its session decides. None: it may touch everything. Reads the disk.
    fn limits(
        &self,
        sandbox: Option<&SandboxSetting>,
        cwd: &mut Option<String>,
        session_key: Option<&str>,
    ) -> Result<Option<Limits>, RpcError> {
        let max = self.approvals.registry.config.exec.max_key_bytes;
        if session_key.is_some_and(|key| key.len() as u64 > max || key.contains('\0')) {
            let problem = format!("must be at most {max} bytes (config key `exec.max_key_bytes`), without NUL");
            return Err(RpcError::param("session_key", problem));
        }
        Ok(self.plan(sandbox, cwd, session_key)?.map(Limits::from))
    }

    /// Judges the profile of a call, with the defaults and the ceiling of its session, and fills in the directory of the session.
    fn plan(
        &self,
        sandbox: Option<&SandboxSetting>,
        cwd: &mut Option<String>,
        session_key: Option<&str>,
    ) -> Result<Option<Plan>, RpcError> {
        let (registry, sandbox, key) = (&self.approvals.registry, sandbox.cloned(), session_key.map(String::from));
        let mut scope = ExecParams { cwd: cwd.take(), sandbox, session_key: key, ..ExecParams::default() };
        let session = self.judge.apply_session(&mut scope, &registry.config)?;
        *cwd = scope.cwd;
        Ok(registry.plan(scope.sandbox.as_ref(), session.ceiling.as_ref(), cwd.as_deref(), session_key)?)
    }
}

/// Runs blocking work, and answers with its error.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, RpcError> + Send + 'static,
) -> Result<T, RpcError> {
    disk::blocking(work).await.map_err(thread_error)?
}

fn thread_error(e: io::Error) -> RpcError {
    RpcError::new(ErrorKind::Unavailable, format!("run the call on a thread: {e}"))
}
