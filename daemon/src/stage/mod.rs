//! Stages: jobs that run on an overlay, whose changes are shown, committed or discarded. See `docs/stage.md`.
//!
//! The upper layer is read only after nothing of the job is left, so it does not change any more. A commit goes through
//! `changes`: all of it or nothing, also over a crash.

mod base;
mod commit;
mod digest;
mod error;
mod print;
mod ready;
mod scan;
#[cfg(test)]
mod tests;
mod tree;

pub use error::StageError;

use crate::changes::Changes;
use crate::disk;
use crate::proc::Proc;
use crate::proc::state::State;
use crate::registry::{NameGuard, NameLocks, Registry};
use crate::store::stage::{StageDir, StageEnd, StageSpec};
use base::Base;
use digest::digest;
use print::{Layers, print};
use scan::{StagedChange, scan};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use toold_proto::ProcId;
use toold_proto::stage::{StageDiffResult, StageDiscardResult, StageState};
use tree::Tree;

/// Time that a shim has to exit after its process has ended.
const SHIM_EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// The stages of all processes.
pub struct Stages {
    registry: Arc<Registry>,
    changes: Arc<Changes>,
    /// Held while a stage is made ready, committed or discarded, by the id of its process.
    locks: NameLocks,
}

/// A stage with everything that the work on it needs.
#[derive(Debug, Clone)]
struct OpenStage {
    id: ProcId,
    dir: StageDir,
    spec: StageSpec,
    cwd: PathBuf,
}

/// All changes of a stage.
struct Scanned {
    layers: Layers,
    changes: Vec<StagedChange>,
    skipped: Vec<PathBuf>,
    bytes: u64,
}

impl OpenStage {
    fn of(proc: &Proc) -> Result<OpenStage, StageError> {
        let spec = proc.spec.stage.as_deref().ok_or(StageError::NotStaged(proc.spec.id))?;
        let (dir, cwd) = (StageDir::of(&proc.dir), PathBuf::from(&proc.spec.cwd));
        Ok(OpenStage { id: proc.spec.id, dir, spec: spec.clone(), cwd })
    }

    /// Compares the layers of every root.
    fn scan(&self) -> Result<Scanned, StageError> {
        let mut scanned = Scanned {
            layers: Layers { upper: Vec::new(), lower: Vec::new() },
            changes: Vec::new(),
            skipped: Vec::new(),
            bytes: 0,
        };
        for (index, root) in self.spec.roots.iter().enumerate() {
            let lower = Tree::open(&root.path)?;
            if lower.id()? != (root.dev, root.ino) {
                return Err(StageError::RootReplaced(root.path.clone()));
            }
            let upper = Tree::open(&self.dir.upper(index))?;
            let found = scan(index, &upper, &lower)?;
            scanned.changes.extend(found.changes);
            scanned.skipped.extend(found.skipped.iter().map(|path| root.path.join(path)));
            scanned.bytes += found.bytes;
            scanned.layers.upper.push(upper);
            scanned.layers.lower.push(lower);
        }
        Ok(scanned)
    }

    /// Returns the indexes of changes that are not as the job has seen them.
    fn conflicts(&self, scanned: &Scanned, base: &Base) -> Result<Vec<usize>, StageError> {
        // Without its start, which a power cut may take, nothing below is known to be as the job has seen it.
        let limit_ns = self.dir.start()?.map_or(0, |start| start.limit_ns());
        Ok(base.conflicts(&scanned.changes, &scanned.layers.lower, limit_ns)?)
    }

    fn roots(&self) -> Vec<String> {
        self.spec.shown_roots()
    }
}

impl Stages {
    pub fn new(registry: Arc<Registry>, changes: Arc<Changes>) -> Arc<Stages> {
        Arc::new(Stages { registry, changes, locks: NameLocks::default() })
    }

    async fn lock(&self, proc: &Proc) -> NameGuard<'_> {
        self.locks.lock(&proc.spec.id.to_string()).await
    }

    /// Waits a moment for a process that has ended: its shim is about to exit.
    async fn wait_final(&self, proc: &Proc) {
        if proc.published_state().has_ended() {
            let _ = tokio::time::timeout(SHIM_EXIT_TIMEOUT, proc.subscribe().wait_for(State::is_final)).await;
        }
    }

    /// Returns the changes of a stage. While the job runs they are those so far, and have no digest.
    pub async fn diff(&self, proc: &Arc<Proc>) -> Result<StageDiffResult, StageError> {
        let stage = OpenStage::of(proc)?;
        self.wait_final(proc).await;
        let _guard = self.lock(proc).await;
        let state = proc.stage_state();
        let empty = StageDiffResult {
            id: stage.id,
            state,
            roots: stage.roots(),
            digest: None,
            files: Vec::new(),
            total: 0,
            diff: String::new(),
            truncated: false,
            skipped: Vec::new(),
        };
        let base = match state {
            StageState::Committed | StageState::Discarded => return Ok(empty),
            StageState::Running => Base::default(),
            StageState::Ready => self.make_ready(proc, &stage).await?.base,
        };
        disk::blocking(move || {
            let scanned = stage.scan()?;
            let conflicts = stage.conflicts(&scanned, &base)?;
            let printed = print(&scanned.layers, &scanned.changes, &conflicts)?;
            Ok(StageDiffResult {
                digest: (state == StageState::Ready).then(|| digest(&scanned.changes)),
                files: printed.files,
                total: scanned.changes.len() as u64,
                diff: printed.diff,
                truncated: printed.truncated,
                skipped: scanned.skipped.iter().map(|path| path.to_string_lossy().into_owned()).collect(),
                ..empty
            })
        })
        .await?
    }

    /// Removes the changes of a stage.
    pub async fn discard(&self, proc: &Arc<Proc>) -> Result<StageDiscardResult, StageError> {
        let stage = OpenStage::of(proc)?;
        self.wait_final(proc).await;
        let _guard = self.lock(proc).await;
        self.check_ready(proc)?;
        self.end(proc, &stage, StageEnd::Discarded).await?;
        Ok(StageDiscardResult { id: stage.id, state: StageState::Discarded })
    }

    /// Refuses what needs the end of the job, and a stage that has ended.
    fn check_ready(&self, proc: &Proc) -> Result<(), StageError> {
        match proc.stage_state() {
            StageState::Ready => Ok(()),
            StageState::Running => Err(StageError::Running(proc.spec.id)),
            StageState::Committed => Err(StageError::Ended { id: proc.spec.id, end: StageEnd::Committed }),
            StageState::Discarded => Err(StageError::Ended { id: proc.spec.id, end: StageEnd::Discarded }),
        }
    }

    /// Records the end of a stage, and removes its layers.
    async fn end(&self, proc: &Arc<Proc>, stage: &OpenStage, end: StageEnd) -> Result<(), StageError> {
        let (dir, roots) = (stage.dir.clone(), stage.spec.roots.len());
        disk::blocking(move || dir.finish(roots, end)).await??;
        if let Some(spec) = &proc.spec.stage {
            spec.end.set(end);
        }
        self.registry.set_staged_bytes(stage.id, 0);
        Ok(())
    }
}
