//! Describes the changes of a stage: a list for programs, and a diff as git prints it.

use super::digest::hex;
use super::scan::{ChangeForm, Side, StagedChange};
use super::tree::{EntryKind, Tree, TreeResult};
use crate::text::{NO_FILE, UnifiedDiff, unified_diff};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use toold_proto::stage::{StagedFile, StagedKind, StagedOp};

/// Changes in one answer.
pub const MAX_FILES: usize = 10_000;
/// Bytes of a file up to which its text is compared.
const MAX_FILE_LEN: u64 = 1 << 20;
/// Bytes of the diff in one answer. The file that passes it is the last one.
const MAX_DIFF_LEN: usize = 1 << 20;

/// The trees of all roots.
pub struct Layers {
    pub upper: Vec<Tree>,
    pub lower: Vec<Tree>,
}

/// The diff of a stage.
#[derive(Debug, Default)]
pub struct StageText {
    pub files: Vec<StagedFile>,
    pub diff: String,
    pub truncated: bool,
}

/// Describes changes. `conflicts`: their indexes, sorted.
pub fn print(layers: &Layers, changes: &[StagedChange], conflicts: &[usize]) -> TreeResult<StageText> {
    let mut printed = StageText { truncated: changes.len() > MAX_FILES, ..StageText::default() };
    for (index, change) in changes.iter().enumerate().take(MAX_FILES) {
        let mut file = describe(layers, change);
        file.conflict = conflicts.binary_search(&index).is_ok();
        if printed.diff.len() < MAX_DIFF_LEN {
            let diff = diff_of(layers, change)?;
            if let Some(diff) = diff {
                file.binary = diff.binary;
                if !diff.binary {
                    (file.added, file.removed) = (Some(diff.added), Some(diff.removed));
                }
                printed.diff.push_str(&diff.text);
            } else {
                printed.truncated = true;
            }
        } else {
            printed.truncated = true;
        }
        printed.files.push(file);
    }
    Ok(printed)
}

/// Describes one change, without its diff.
pub fn describe(layers: &Layers, change: &StagedChange) -> StagedFile {
    let (before, after) = (change.before.as_ref(), change.after.as_ref());
    let op = match change.form() {
        ChangeForm::Add => StagedOp::Add,
        ChangeForm::Update => StagedOp::Update,
        ChangeForm::Metadata => StagedOp::Metadata,
        ChangeForm::Delete => StagedOp::Delete,
    };
    let kind = match after.or(before).map(|side| side.entry.kind) {
        Some(EntryKind::File) => StagedKind::File,
        Some(EntryKind::Dir) => StagedKind::Dir,
        Some(EntryKind::Link) => StagedKind::Symlink,
        Some(EntryKind::Whiteout | EntryKind::Special) | None => StagedKind::Special,
    };
    let mode = |side: Option<&Side>| {
        side.filter(|side| side.entry.kind != EntryKind::Link).map(|side| format!("{:o}", side.entry.mode()))
    };
    let sha256 = |side: Option<&Side>| side.and_then(|side| side.sha256.as_ref()).map(hex);
    StagedFile {
        path: layers.lower[change.root].path.join(&change.path).to_string_lossy().into_owned(),
        op,
        kind,
        mode: mode(after),
        before_mode: mode(before),
        bytes: after.filter(|side| side.entry.kind == EntryKind::File).map(|side| side.entry.size()),
        sha256: sha256(after),
        before_sha256: sha256(before),
        added: None,
        removed: None,
        binary: false,
        conflict: false,
    }
}

/// Prints one change. None: it is too long to be shown.
fn diff_of(layers: &Layers, change: &StagedChange) -> TreeResult<Option<UnifiedDiff>> {
    let name = name(layers, change);
    let (before, after) = (change.before.as_ref(), change.after.as_ref());
    let is_shown = |side: &&Side| matches!(side.entry.kind, EntryKind::File | EntryKind::Link);
    let (before, after) = (before.filter(is_shown), after.filter(is_shown));
    if before.is_none() && after.is_none() {
        // A directory has no text; its name is in the list.
        return Ok(Some(UnifiedDiff::default()));
    }
    let old = content(&layers.lower[change.root], change, before)?;
    let new = content(&layers.upper[change.root], change, after)?;
    let (Some(old), Some(new)) = (old, new) else { return Ok(None) };
    let mut header = format!("diff --git a/{name} b/{name}\n");
    let _ = match (before.map(git_mode), after.map(git_mode)) {
        (None, Some(mode)) => writeln!(header, "new file mode {mode:06o}"),
        (Some(mode), None) => writeln!(header, "deleted file mode {mode:06o}"),
        (Some(old), Some(new)) if old != new => writeln!(header, "old mode {old:06o}\nnew mode {new:06o}"),
        _ => Ok(()),
    };
    let (before_name, after_name) = (format!("a/{name}"), format!("b/{name}"));
    let before_name = if before.is_some() { &before_name } else { NO_FILE };
    let after_name = if after.is_some() { &after_name } else { NO_FILE };
    let mut diff = unified_diff(before_name, after_name, &old, &new);
    diff.text.insert_str(0, &header);
    Ok(Some(diff))
}

/// Returns the name in the diff: from the root, or the whole path if there are several roots.
fn name(layers: &Layers, change: &StagedChange) -> String {
    let path = match layers.lower.as_slice() {
        [_] => change.path.clone(),
        roots => roots[change.root].path.join(&change.path),
    };
    path.to_string_lossy().trim_start_matches('/').replace('\n', "\\n")
}

/// Returns the type and permissions as git counts them.
fn git_mode(side: &Side) -> u32 {
    match side.entry.kind {
        EntryKind::Link => 0o120_000,
        _ => 0o100_000 | side.entry.mode(),
    }
}

/// Returns the text of a side; of a link its target. None: it is too long.
fn content(tree: &Tree, change: &StagedChange, side: Option<&Side>) -> TreeResult<Option<Vec<u8>>> {
    match side {
        None => Ok(Some(Vec::new())),
        Some(Side { target: Some(target), .. }) => Ok(Some(target.as_os_str().as_bytes().to_vec())),
        Some(_) => tree.read(&change.path, MAX_FILE_LEN),
    }
}
