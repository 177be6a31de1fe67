//! Stages of processes: their roots, their overlays before a start, and those whose processes have ended.

use super::Registry;
use crate::disk;
use crate::proc::Proc;
use crate::sandbox::SandboxError;
use crate::sandbox::namespaces::MakeError;
use crate::sandbox::plan::{Judged, Plan};
use crate::sandbox::staged::{Overlay, describe_refusal};
use crate::sandbox::wall::{Prepared, Unavailable};
use crate::spec::SpawnRequest;
use crate::store::remove_tree::remove_tree;
use crate::store::stage::{FreshStage, StageSpec, StagedRoot};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::Notify;
use toold_format::step;

/// Chooses the directories on which a staged job sees an overlay: the roots of its profile, or its working directory if it may
/// write everywhere.
pub fn choose_roots(request: &mut SpawnRequest) -> Result<(), SandboxError> {
    let Some(stage) = request.spec.stage.as_deref_mut() else { return Ok(()) };
    let staged = |root: &Judged| StagedRoot { path: root.path.clone(), dev: root.dev, ino: root.ino };
    stage.roots = match request.plan.as_deref() {
        Some(plan) => plan.roots.iter().filter(|root| root.is_dir).map(staged).collect(),
        None => {
            let cwd = Judged::open(Path::new(&request.spec.cwd));
            let cwd = cwd.map_err(|e| SandboxError::NoStage(format!("open {}: {e}", request.spec.cwd)))?;
            vec![staged(&cwd)]
        }
    };
    // One inside another is a part of it.
    let all = stage.roots.clone();
    stage.roots.retain(|root| !all.iter().any(|other| root.path != other.path && root.path.starts_with(&other.path)));
    stage.roots.dedup_by(|a, b| a.path == b.path);
    if stage.roots.is_empty() { Err(SandboxError::NothingToStage) } else { Ok(()) }
}

impl Registry {
    /// Directory of stages whose processes are not recorded yet.
    fn fresh_stages(&self) -> PathBuf {
        self.procs_dir.with_file_name("stages")
    }

    /// Removes the stages that a daemon left which died before it recorded their processes.
    pub fn remove_fresh_stages(&self) {
        if let Err(e) = remove_tree(&self.fresh_stages()) {
            tracing::warn!(%e, "failed to remove stages that no process has");
        }
    }

    /// Makes the overlays of a staged process, with its confinement. None: it is not staged.
    pub(super) async fn prepare_staged(
        &self,
        plan: Option<&Plan>,
        stage: Option<&StageSpec>,
    ) -> Result<Option<Box<Prepared>>, Unavailable> {
        let Some(stage) = stage else { return Ok(None) };
        let (all, count) = (self.fresh_stages(), stage.roots.len());
        let name = self.stages.next_name();
        let failed = |e: io::Error| Unavailable::NoStage(format!("{}: {e}", self.fresh_stages().display()));
        let fresh = disk::blocking(move || FreshStage::create(&all, &name, count)).await.flatten().map_err(failed)?;
        let overlays = Overlay::all(&stage.roots, &fresh.dir);
        if let Err(e) = check_xattrs(&overlays) {
            return Err(Unavailable::NoStage(describe_refusal(&overlays, &e)));
        }
        let living = || plan.map(|plan| self.confined_pids(plan)).unwrap_or_default();
        match self.walls.prepare_staged(plan, &overlays, living).await {
            Ok(mut prepared) => {
                prepared.stage = Some(fresh);
                Ok(Some(Box::new(prepared)))
            }
            Err(Unavailable::Failed(e)) if e.step == step::OVERLAY => {
                Err(Unavailable::NoStage(describe_refusal(&overlays, &e)))
            }
            Err(Unavailable::Failed(e)) if plan.is_none() => {
                Err(Unavailable::NoStage(format!("a stage needs namespaces: {e}")))
            }
            Err(e) => Err(e),
        }
    }
}

/// Checks that the kernel can mark the directories of a layer. It mounts an overlay without, and then some changes fail.
fn check_xattrs(overlays: &[Overlay]) -> Result<(), MakeError> {
    for overlay in overlays {
        let set = rustix::fs::setxattr(&overlay.upper, "user.overlay.toold", b"y", rustix::fs::XattrFlags::empty());
        set.map_err(|e| MakeError { step: step::OVERLAY, errno: e.raw_os_error() })?;
        let _ = rustix::fs::removexattr(&overlay.upper, "user.overlay.toold");
    }
    Ok(())
}

#[derive(Default)]
pub struct StageQueue {
    procs: Mutex<Vec<Arc<Proc>>>,
    added: Notify,
    /// Number of stages that were made.
    made: AtomicU64,
}

impl StageQueue {
    fn next_name(&self) -> String {
        self.made.fetch_add(1, Ordering::Relaxed).to_string()
    }
}

impl Registry {
    /// Queues a process in its final state if it is staged.
    pub(super) fn queue_ended_stage(&self, proc: &Arc<Proc>) {
        if proc.spec.stage.is_none() || !proc.published_state().is_final() {
            return;
        }
        if let Ok(mut procs) = self.stages.procs.lock() {
            procs.push(proc.clone());
        }
        self.stages.added.notify_one();
    }

    /// Waits for staged processes that have ended. Each is returned once.
    pub async fn take_ended_stages(&self) -> Vec<Arc<Proc>> {
        loop {
            let procs = self.stages.procs.lock().map(|mut procs| std::mem::take(&mut *procs)).unwrap_or_default();
            if !procs.is_empty() {
                return procs;
            }
            self.stages.added.notified().await;
        }
    }
}
