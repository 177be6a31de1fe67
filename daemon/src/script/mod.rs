//! Scripts: processes that call tools over a channel of their own. `start` starts one, `live` has its authority while it runs,
//! `result` describes it at any time.

mod calls;
mod end;
mod excerpt;
mod hints;
mod inside;
mod interpreter;
mod kernel;
mod live;
mod report;
mod result;
pub mod run_dir;
mod start;

pub use inside::check_toolset;
pub use kernel::{CellReport, NextCell, Stopper};
pub use live::LiveScript;
pub use report::Report;
pub use run_dir::channel_path;
pub use start::{StartedScript, Starter};

use crate::admission::StartExtras;
use crate::approvals::Approvals;
use crate::call_error::find_error;
use crate::patch::Patches;
use crate::policy::Judge;
use crate::proc::Proc;
use crate::registry::FindError;
use crate::tools::dispatcher::Dispatcher;
use interpreter::Interpreters;
use std::collections::HashMap;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use toold_proto::{ProcId, RpcError};

/// Serves the channel of a script. `rpc` provides it.
pub type ServeChannel = Box<dyn Fn(UnixListener, Arc<LiveScript>) + Send + Sync>;

/// All scripts.
pub struct Scripts {
    pub approvals: Arc<Approvals>,
    pub judge: Arc<Judge>,
    pub patches: Arc<Patches>,
    pub dispatcher: Arc<Dispatcher>,
    /// The directory of the run directories.
    runs: PathBuf,
    live: Mutex<HashMap<ProcId, Arc<LiveScript>>>,
    serve: OnceLock<ServeChannel>,
    interpreters: Interpreters,
    inside: inside::InsideCalls,
}

impl Scripts {
    /// Makes the table of scripts. `runtime_dir`: the directory of the daemon's socket.
    pub fn new(
        approvals: Arc<Approvals>,
        judge: Arc<Judge>,
        patches: Arc<Patches>,
        dispatcher: Arc<Dispatcher>,
        runtime_dir: &std::path::Path,
    ) -> Arc<Scripts> {
        Arc::new(Scripts {
            approvals,
            judge,
            patches,
            dispatcher,
            runs: run_dir::base(runtime_dir),
            live: Mutex::default(),
            serve: OnceLock::new(),
            interpreters: Interpreters::default(),
            inside: inside::InsideCalls::default(),
        })
    }

    /// Serves the channels of scripts by `serve` from now on, and of those that an earlier daemon started.
    pub async fn open(self: &Arc<Self>, serve: ServeChannel) {
        let _ = self.serve.set(serve);
        let (scripts, registry) = (self.clone(), self.approvals.registry.clone());
        let sweep = move || run_dir::sweep(&scripts.runs, &registry.procs_dir, |id| registry.find(id).is_ok());
        if let Err(error) = crate::disk::blocking(sweep).await {
            tracing::warn!(%error, "run directories of scripts are left");
        }
        for proc in self.approvals.registry.newest_first() {
            if proc.spec.script.is_some() {
                self.adopt(proc).await;
            }
        }
        // The record of a script may be gone, and nothing can use its grants then.
        for id in self.approvals.granted_scripts() {
            if matches!(self.approvals.registry.find(&id.to_string()), Err(FindError::NotFound(_))) {
                self.approvals.end_script(id).await;
            }
        }
    }

    fn table(&self) -> MutexGuard<'_, HashMap<ProcId, Arc<LiveScript>>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a script whose authority has not ended.
    pub fn live(&self, id: ProcId) -> Option<Arc<LiveScript>> {
        self.table().get(&id).cloned()
    }

    /// Finds the process of a script.
    fn find(&self, id: &str) -> Result<Arc<Proc>, RpcError> {
        let proc = self.approvals.registry.find(id).map_err(|e| find_error("id", e))?;
        match proc.spec.script {
            Some(_) => Ok(proc),
            None => Err(RpcError::param("id", format!("{} is not a script", proc.spec.id))),
        }
    }

    fn extras(id: ProcId, script: Box<crate::store::script::ScriptSpec>, digest: start::Digest) -> StartExtras {
        StartExtras { as_script: Some((id, script, digest)) }
    }
}
