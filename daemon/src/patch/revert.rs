//! `patch.revert`: the pre-images of a patch put back, all at once.

use super::bounds::describe;
use super::published::Note;
use super::{ApplyError, Bounds, Patches, REVERT_PREFIX, new_id};
use crate::disk;
use std::sync::Arc;
use toold_proto::patch::{PatchFile, PatchOp, PatchResult, PatchRevertParams, PatchRevertResult, PatchStatus};

impl Patches {
    /// Undoes a patch. A file that has changed since: conflict, and nothing is done.
    pub async fn revert(
        self: &Arc<Self>,
        call: PatchRevertParams,
        bounds: Bounds,
    ) -> Result<PatchRevertResult, ApplyError> {
        let patches = self.clone();
        disk::blocking(move || patches.revert_now(call, bounds)).await.map_err(ApplyError::Internal)?
    }

    /// Returns the directory that a patch was applied in, if its call had one.
    pub async fn working_dir(self: &Arc<Self>, patch_id: &str) -> Result<Option<String>, ApplyError> {
        let (patches, patch_id) = (self.clone(), patch_id.to_owned());
        let note = disk::blocking(move || patches.changes.note(&patch_id)).await.map_err(ApplyError::Internal)??;
        let cwd = Note::parse(&note).map_err(ApplyError::Internal)?.cwd;
        Ok(Some(cwd).filter(|cwd| !cwd.is_empty()))
    }

    fn revert_now(&self, call: PatchRevertParams, bounds: Bounds) -> Result<PatchRevertResult, ApplyError> {
        let kept = self.changes.kept(&call.patch_id)?;
        let applied = Note::parse(&kept.note).map_err(ApplyError::Internal)?;
        for file in &kept.files {
            let judged = bounds.judge(&file.path, &file.path);
            judged.map_err(|refused| ApplyError::Denied { path: file.path.clone(), why: describe(&refused) })?;
        }
        let files: Vec<PatchFile> = applied.result.files.iter().rev().map(inverse).collect();
        let result = PatchResult {
            patch_id: Some(call.patch_id.clone()),
            status: PatchStatus::Reverted,
            files: files.clone(),
            diff: String::new(),
            diff_truncated: false,
            failed: None,
        };
        let note = Note {
            cwd: applied.cwd,
            session_key: call.session_key.or(applied.session_key),
            task_id: call.task_id.or(applied.task_id),
            after_seq: self.journal.last(),
            reverts: Some(call.patch_id.clone()),
            result,
        };
        let id = new_id(REVERT_PREFIX).map_err(ApplyError::Internal)?;
        let text = note.to_text().map_err(ApplyError::Internal)?;
        self.changes.revert_now(&call.patch_id, id.clone(), bounds.roots, text)?;
        self.publish(&id, &note);
        Ok(PatchRevertResult { patch_id: call.patch_id, status: PatchStatus::Reverted, files })
    }
}

/// The operation that undoes one of a patch.
fn inverse(file: &PatchFile) -> PatchFile {
    let op = match (file.op, &file.before_sha256) {
        (PatchOp::Add, None) => PatchOp::Delete,
        (PatchOp::Add, Some(_)) | (PatchOp::Update, _) => PatchOp::Update,
        (PatchOp::Delete, _) => PatchOp::Add,
    };
    let (path, to) = match &file.to {
        Some(to) => (to.clone(), Some(file.path.clone())),
        None => (file.path.clone(), None),
    };
    PatchFile {
        path,
        op,
        to,
        before_sha256: file.after_sha256.clone(),
        after_sha256: file.before_sha256.clone(),
        added: file.removed,
        removed: file.added,
        fuzz: 0,
    }
}
