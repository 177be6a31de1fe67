//! `patch.revert`: the pre-images of a patch put back, all at once.

use super::bounds::refused_path;
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

    /// Checks that a patch may be undone within these bounds. Returns the files, and the change as text.
    pub(super) async fn check_revert(
        self: &Arc<Self>,
        patch_id: &str,
        bounds: Bounds,
    ) -> Result<(Vec<PatchFile>, String), ApplyError> {
        let (patches, patch_id) = (self.clone(), patch_id.to_owned());
        let check = move || -> Result<(Vec<PatchFile>, String), ApplyError> {
            let kept = patches.changes.kept(&patch_id)?;
            let applied = Note::parse(&kept.note).map_err(ApplyError::Internal)?;
            for file in &kept.files {
                let judged = bounds.judge(&file.path, &file.path);
                judged.map_err(|refused| refused_path(file.path.clone(), refused))?;
            }
            let files = applied.result.files.iter().rev().map(inverse).collect();
            Ok((files, inverse_diff(&applied.result.diff)))
        };
        disk::blocking(check).await.map_err(ApplyError::Internal)?
    }

    fn revert_now(&self, call: PatchRevertParams, bounds: Bounds) -> Result<PatchRevertResult, ApplyError> {
        let kept = self.changes.kept(&call.patch_id)?;
        let applied = Note::parse(&kept.note).map_err(ApplyError::Internal)?;
        for file in &kept.files {
            let judged = bounds.judge(&file.path, &file.path);
            judged.map_err(|refused| refused_path(file.path.clone(), refused))?;
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

/// Returns a unified diff backwards: removed lines are added, and added ones removed.
fn inverse_diff(diff: &str) -> String {
    let (mut out, mut added, mut header) = (String::new(), String::new(), "");
    for line in diff.split_inclusive('\n') {
        // A file begins, and `+++` follows.
        if let Some(name) = line.strip_prefix("--- ") {
            header = name;
        } else if let Some(name) = line.strip_prefix("+++ ") {
            out += &std::mem::take(&mut added);
            out += &format!("--- {name}+++ {header}");
        } else if let Some(removed) = line.strip_prefix('+') {
            out += &format!("-{removed}");
        } else if let Some(text) = line.strip_prefix('-') {
            added += &format!("+{text}");
        } else {
            out += &std::mem::take(&mut added);
            out += &inverse_range(line).unwrap_or_else(|| line.to_owned());
        }
    }
    out + &added
}

/// Returns the head of a hunk backwards.
fn inverse_range(line: &str) -> Option<String> {
    let (old, rest) = line.strip_prefix("@@ -")?.split_once(" +")?;
    let (new, rest) = rest.split_once(" @@")?;
    Some(format!("@@ -{new} +{old} @@{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_backwards_removes_what_it_added() {
        let diff = "--- a/x\n+++ b/x\n@@ -1,3 +1,2 @@\n same\n-old\n-older\n+new\n";
        let back = "--- b/x\n+++ a/x\n@@ -1,2 +1,3 @@\n same\n-new\n+old\n+older\n";
        assert_eq!(inverse_diff(diff), back);
        assert_eq!(inverse_diff(&(diff.to_owned() + diff)), back.to_owned() + back);
        assert_eq!(inverse_diff(""), "");
    }
}
