//! A script that runs: its authority, and the end of that.

use super::kernel::Kernel;
use super::{Scripts, end, run_dir};
use crate::clock::wall_ms;
use crate::disk;
use crate::proc::Proc;
use crate::proc::script::ScriptCalls;
use crate::store::script::ScriptSpec;
use crate::tools::journal::{CallJournal, FoundCalls};
use crate::tools::owner::{AllowedTools, CallBounds, Owner, OwnerInit};
use crate::tools::provider::CallScope;
use sha2::{Digest, Sha256};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::sync::watch;
use toold_proto::approval::Caller;
use toold_proto::sandbox::SandboxSetting;
use toold_proto::{ErrorKind, ProcId, RpcError};

/// The journal of calls in the directory of a process.
pub const CALLS: &str = "calls";

/// A script whose authority has not ended.
pub struct LiveScript {
    pub id: ProcId,
    pub spec: ScriptSpec,
    pub cwd: String,
    pub owner: Arc<Owner>,
    /// True: its channel closes.
    pub closing: watch::Sender<bool>,
    /// Its end was dealt with: its calls have ended, and that was published.
    pub ended: watch::Sender<bool>,
    pub since_ms: u64,
    /// None: it is not a kernel.
    pub kernel: Option<Kernel>,
}

impl LiveScript {
    /// Checks the token of a client of the channel, in constant time.
    pub fn check_token(&self, token: &str) -> Result<(), RpcError> {
        let given = format!("{:x}", Sha256::digest(token.as_bytes()));
        let (given, known) = (given.as_bytes(), self.spec.token_sha256.as_bytes());
        let differs =
            given.len() != known.len() || given.iter().zip(known).fold(0, |differs, (a, b)| differs | (a ^ b)) != 0;
        if differs {
            let message = "denied: the token is not that of this script; it is in TOOLD_TOKEN of its environment";
            return Err(RpcError::new(ErrorKind::Denied, message).with("reason", "token"));
        }
        Ok(())
    }
}

/// The facts about a script that a live one is made of.
pub(super) struct LiveInit<'a> {
    pub id: ProcId,
    pub spec: &'a ScriptSpec,
    pub cwd: String,
    pub session_key: Option<String>,
    pub task_id: Option<String>,
    pub sandbox: Option<SandboxSetting>,
    pub by: Caller,
    pub calls: &'a ScriptCalls,
}

impl Scripts {
    /// Makes the authority of a script.
    pub(super) fn make_live(&self, init: LiveInit<'_>, journal: CallJournal, found: &FoundCalls) -> LiveScript {
        let config = &self.approvals.registry.config;
        let LiveInit { id, spec, cwd, session_key, task_id, sandbox, by, calls } = init;
        let bounds = CallBounds {
            max_calls: Some(spec.max_calls),
            max_parallel: spec.max_parallel as usize,
            call_timeout_ms: Some(spec.call_timeout_ms).filter(|ms| *ms > 0),
            max_result_bytes: config.script.max_result_bytes,
        };
        let owner = Owner::new(OwnerInit {
            key: id.to_string(),
            scope: CallScope { session_key, task_id, cwd: Some(cwd.clone()), sandbox },
            by,
            tools: AllowedTools::Only(spec.tools.clone()),
            bounds,
            script: Some(id),
            result_dir: Some(spec.run_dir.join(run_dir::RESULTS)),
            journal: Some(journal),
            made: calls.made.clone(),
            asking: calls.asking.clone(),
        });
        owner.restore(found);
        let live = LiveScript {
            id,
            spec: spec.clone(),
            cwd,
            owner: Arc::new(owner),
            closing: watch::Sender::new(false),
            ended: watch::Sender::new(false),
            since_ms: wall_ms(),
            kernel: spec.kernel.is_some().then(|| Kernel::new(found, calls)),
        };
        if let Some(kernel) = &live.kernel {
            kernel.resume(&live);
        }
        live
    }

    /// Takes over a script that an earlier daemon started: its channel if it runs, what its end left to do if it has ended.
    pub(super) async fn adopt(self: &Arc<Self>, proc: Arc<Proc>) {
        let Some(spec) = proc.spec.script.clone() else { return };
        let path = proc.dir.join(CALLS);
        let opened = disk::blocking(move || CallJournal::open(&path)).await.flatten();
        let (journal, found) = match opened {
            Ok(opened) => opened,
            Err(e) => {
                proc.report_damage(format!("{CALLS}: {e}"));
                (CallJournal::new(proc.dir.join(CALLS)), Default::default())
            }
        };
        if found.damaged > 0 {
            proc.report_damage(format!("{CALLS}: {} damaged lines were skipped", found.damaged));
        }
        let by = Caller { uid: nix::unistd::getuid().as_raw(), pid: proc.published_state().pid, program: None };
        let calls = ScriptCalls::default();
        let init = LiveInit {
            id: proc.spec.id,
            spec: &spec,
            cwd: proc.spec.cwd.clone(),
            session_key: proc.spec.session_key.clone(),
            task_id: proc.spec.task_id.clone(),
            sandbox: spec.sandbox.clone(),
            by,
            calls: &calls,
        };
        proc.show_calls(calls.clone());
        let live = self.make_live(init, journal, &found);
        if proc.checkpoint().script_finished {
            return;
        }
        let live = Arc::new(live);
        self.table().insert(proc.spec.id, live.clone());
        if !proc.published_state().has_ended() {
            self.approvals.registry.note_script();
            match self.listen(&spec.run_dir).await {
                Ok(listener) => self.serve(listener, &live),
                Err(e) => proc.report_damage(format!("the channel of the script cannot be opened again: {e}")),
            }
        }
        self.follow(proc, live);
    }

    pub(super) async fn listen(&self, run_dir: &Path) -> io::Result<std::os::unix::net::UnixListener> {
        let dir: PathBuf = run_dir.into();
        disk::blocking(move || run_dir::listen(&dir)).await.flatten()
    }

    pub(super) fn serve(&self, listener: std::os::unix::net::UnixListener, live: &Arc<LiveScript>) {
        if let Some(serve) = self.serve.get() {
            serve(listener, live.clone());
        }
    }

    /// Deals with the end of a script, when it comes.
    pub(super) fn follow(self: &Arc<Self>, proc: Arc<Proc>, live: Arc<LiveScript>) {
        let scripts = self.clone();
        tokio::spawn(disk::on_disk(async move {
            end::started(&proc).await;
            tokio::select! {
                () = end::wait_end(&proc) => {}
                () = end::extend_while_asking(&proc, &live) => {}
                () = scripts.supervise(&proc, &live) => {}
            }
            scripts.finish(&proc, &live).await;
        }));
    }

    /// Puts a script into the table. `max_kernels`: the most kernels of its session.
    pub(super) fn insert(&self, live: &Arc<LiveScript>, max_kernels: Option<u64>) -> Result<(), RpcError> {
        let mut table = self.table();
        if let Some(max) = max_kernels {
            let session = &live.owner.scope.session_key;
            let is_of_session =
                |other: &&Arc<LiveScript>| other.kernel.is_some() && other.owner.scope.session_key == *session;
            if table.values().filter(is_of_session).count() as u64 >= max {
                return Err(RpcError::limit("kernel.max", format!("the session has {max} kernels; close one")));
            }
        }
        table.insert(live.id, live.clone());
        Ok(())
    }

    pub(super) fn remove(&self, id: ProcId) {
        self.table().remove(&id);
    }

    /// Returns the number of scripts that run.
    pub(super) fn running(&self) -> usize {
        self.table().len()
    }
}
