//! Makes a stage ready when nothing of its job is left: notes what is below the overlay, and publishes `stage_ready` once.

use super::base::Base;
use super::commit::COMMIT_FILE;
use super::{OpenStage, StageError, Stages};
use crate::disk::{self, on_disk};
use crate::proc::Proc;
use crate::proc::state::Phase;
use crate::store::stage::StageEnd;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use toold_proto::event::StageReady;
use toold_proto::stage::StageState;
use toold_shim::hooks;

pub const READY_FILE: &str = "ready";

/// The note about a stage that is ready.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReadyNote {
    pub files: u64,
    /// Bytes of the upper layers.
    pub bytes: u64,
    pub base: Base,
}

impl Stages {
    /// Makes stages ready as their jobs end. Never returns.
    pub async fn run(self: Arc<Self>) {
        loop {
            for proc in self.registry.take_ended_stages().await {
                on_disk(self.settle(&proc)).await;
            }
        }
    }

    /// Brings the stage of an ended process to where it belongs, also after a crash at any step.
    async fn settle(&self, proc: &Arc<Proc>) {
        let Ok(stage) = OpenStage::of(proc) else { return };
        let _guard = self.lock(proc).await;
        let settled = match proc.stage_state() {
            StageState::Running => Ok(()),
            StageState::Committed | StageState::Discarded => {
                let (dir, roots) = (stage.dir.clone(), stage.spec.roots.len());
                disk::blocking(move || dir.remove_layers(roots)).await.flatten().map_err(StageError::Io)
            }
            StageState::Ready if matches!(proc.published_state().phase, Phase::Failed { .. }) => {
                self.end(proc, &stage, StageEnd::Discarded).await
            }
            StageState::Ready => self.finish_commit(proc, &stage).await,
        };
        if let Err(e) = settled {
            tracing::warn!(id = %stage.id, ?e, "failed to tidy a stage");
        }
        if !matches!(proc.published_state().phase, Phase::Failed { .. }) {
            self.publish_ready(proc, &stage).await;
        }
    }

    async fn publish_ready(&self, proc: &Arc<Proc>, stage: &OpenStage) {
        let note = match proc.stage_state() {
            StageState::Ready => self.make_ready(proc, stage).await,
            // Committed before a power cut took the event.
            _ => Ok(ReadyNote::default()),
        };
        if let Ok(note) = &note {
            self.registry.set_staged_bytes(stage.id, note.bytes);
        }
        if proc.checkpoint().stage_ready {
            return;
        }
        hooks::at("stage.noted");
        let event = StageReady {
            name: proc.spec.name.clone(),
            roots: stage.roots(),
            files: note.as_ref().ok().map(|note| note.files),
            bytes: note.as_ref().ok().map(|note| note.bytes),
            message: note.as_ref().err().map(ToString::to_string),
        };
        if let Err(e) = proc.publish_event(&event, |_| {}) {
            tracing::error!(id = %stage.id, %e, "failed to store an event; the next start publishes it");
        }
    }

    /// Takes a commit back that was walked back: its files have their old bytes, and new times.
    pub(super) async fn take_back(&self, stage: &OpenStage) -> Result<(), StageError> {
        let stage = stage.clone();
        disk::blocking(move || {
            if let Some(mut note) = stage.dir.read::<ReadyNote>(READY_FILE)? {
                note.base.refresh(&stage.scan()?.changes);
                stage.dir.write(READY_FILE, &note)?;
            }
            Ok::<_, StageError>(stage.dir.remove(COMMIT_FILE)?)
        })
        .await?
    }

    /// Returns the note about a ready stage. The first call makes it. The caller holds the lock.
    pub(super) async fn make_ready(&self, proc: &Arc<Proc>, stage: &OpenStage) -> Result<ReadyNote, StageError> {
        debug_assert_eq!(proc.stage_state(), StageState::Ready);
        let stage = stage.clone();
        disk::blocking(move || {
            if let Some(note) = stage.dir.read(READY_FILE)? {
                return Ok(note);
            }
            let scanned = stage.scan()?;
            let files = scanned.changes.len() as u64;
            let conflicts = stage.conflicts(&scanned, &Base::default())?;
            let base = Base::of(&scanned.changes, &conflicts);
            let note = ReadyNote { files, bytes: scanned.bytes, base };
            stage.dir.write(READY_FILE, &note)?;
            Ok(note)
        })
        .await?
    }
}
