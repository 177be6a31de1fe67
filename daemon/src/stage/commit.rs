//! Commits a stage: the changes of its upper layers happen below, all or none.

use super::digest::digest;
use super::print::{MAX_FILES, describe};
use super::scan::StagedChange;
use super::tree::{Entry, EntryKind, Tree};
use super::{OpenStage, Scanned, StageError, Stages};
use crate::changes::{Action, Attributes, Before, Change, ChangeError, ChangeSet, Content, HardLinks, Root, Seen};
use crate::disk;
use crate::proc::Proc;
use crate::store::stage::StageEnd;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toold_proto::stage::{StageCommitResult, StageState};
use toold_shim::hooks;

pub const COMMIT_FILE: &str = "commit";

/// The note about a commit that was started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct CommitNote {
    /// The id of the set of changes.
    set: String,
    /// Nothing is left after it.
    all: bool,
    /// Permissions of directories, by root and path. They are set after all the rest: a directory may be one that nothing can be
    /// put into.
    dir_modes: Vec<(usize, Vec<u8>, u32)>,
}

impl Stages {
    /// Commits the changes with this digest; with `paths` only those at and below them.
    pub async fn commit(
        &self,
        proc: &Arc<Proc>,
        wanted: &str,
        paths: Option<Vec<String>>,
    ) -> Result<StageCommitResult, StageError> {
        let stage = OpenStage::of(proc)?;
        self.wait_final(proc).await;
        let _guard = self.lock(proc).await;
        self.check_ready(proc)?;
        let base = self.make_ready(proc, &stage).await?.base;
        let (worker, wanted) = (stage.clone(), wanted.to_owned());
        let planned = disk::blocking(move || {
            let scanned = worker.scan()?;
            let selected = select(&worker, &scanned.changes, paths.as_deref())?;
            let conflicts = worker.conflicts(&scanned, &base)?;
            let in_conflict: Vec<PathBuf> = conflicts
                .into_iter()
                .filter(|index| selected.contains(index))
                .map(|index| shown(&scanned, &scanned.changes[index]))
                .collect();
            if !in_conflict.is_empty() {
                return Err(StageError::Conflict { id: worker.id, paths: in_conflict });
            }
            let found = digest(&scanned.changes);
            if found != wanted {
                return Err(StageError::Stale { id: worker.id, digest: found });
            }
            Planned::new(&worker, scanned, &selected)
        })
        .await??;
        let Planned { set, result, note } = planned;
        let (dir, written) = (stage.dir.clone(), note.clone());
        disk::blocking(move || dir.write(COMMIT_FILE, &written)).await??;
        hooks::at("stage.commit_noted");
        match self.changes.commit(set).await {
            Ok(_) => {}
            Err(e) => {
                self.take_back(&stage).await?;
                return Err(match e {
                    ChangeError::Conflict(paths) => StageError::Conflict { id: stage.id, paths },
                    e => StageError::Changes(e),
                });
            }
        }
        hooks::at("stage.committed");
        self.after_commit(proc, &stage, note).await?;
        Ok(result)
    }

    /// Does the rest of a commit that happened: the permissions of directories, and the end of a stage of which nothing is left.
    /// Every step may be done again.
    async fn after_commit(&self, proc: &Arc<Proc>, stage: &OpenStage, note: CommitNote) -> Result<(), StageError> {
        let roots: Vec<PathBuf> = stage.spec.roots.iter().map(|root| root.path.clone()).collect();
        let dir_modes = note.dir_modes;
        disk::blocking(move || {
            for (root, path, mode) in dir_modes {
                Tree::open(&roots[root])?.set_dir_mode(Path::new(OsStr::from_bytes(&path)), mode)?;
            }
            Ok::<_, StageError>(())
        })
        .await??;
        hooks::at("stage.modes");
        if note.all {
            self.end(proc, stage, StageEnd::Committed).await?;
        }
        stage.dir.remove(COMMIT_FILE)?;
        let changes = self.changes.clone();
        Ok(disk::blocking(move || changes.forget(&note.set)).await?)
    }

    /// Finishes a commit that a crash interrupted: `changes` has brought it to its end or walked it back.
    pub(super) async fn finish_commit(&self, proc: &Arc<Proc>, stage: &OpenStage) -> Result<(), StageError> {
        let Some(note) = stage.dir.read::<CommitNote>(COMMIT_FILE)? else { return Ok(()) };
        if !self.changes.is_committed(&note.set) {
            return self.take_back(stage).await;
        }
        self.after_commit(proc, stage, note).await
    }
}

fn shown(scanned: &Scanned, change: &StagedChange) -> PathBuf {
    scanned.layers.lower[change.root].path.join(&change.path)
}

/// Returns the indexes of the changes at and below paths, with the directories that they need.
fn select(stage: &OpenStage, changes: &[StagedChange], paths: Option<&[String]>) -> Result<HashSet<usize>, StageError> {
    let Some(paths) = paths else { return Ok((0..changes.len()).collect()) };
    let at = |change: &StagedChange| stage.spec.roots[change.root].path.join(&change.path);
    let mut selected = HashSet::new();
    for (index, given) in paths.iter().enumerate() {
        let path = clean(&stage.cwd.join(given));
        let is_at = |i: &usize| !given.is_empty() && at(&changes[*i]).starts_with(&path);
        let found: Vec<usize> = (0..changes.len()).filter(is_at).collect();
        if found.is_empty() {
            return Err(StageError::NoChangeAt { index, path: given.clone() });
        }
        selected.extend(found);
    }
    let chosen: Vec<PathBuf> = selected.iter().map(|i| at(&changes[*i])).collect();
    let above: HashSet<&Path> = chosen.iter().flat_map(|path| path.ancestors().skip(1)).collect();
    let makes_dir = |change: &StagedChange| {
        let is_dir = change.after.as_ref().is_some_and(|after| after.entry.kind == EntryKind::Dir);
        is_dir && !change.same_content
    };
    selected
        .extend((0..changes.len()).filter(|i| makes_dir(&changes[*i]) && above.contains(at(&changes[*i]).as_path())));
    Ok(selected)
}

/// Removes `.` and `..` from a path, without a look at the disk: the paths of changes have no links.
fn clean(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => {
                cleaned.pop();
            }
            std::path::Component::CurDir => {}
            part => cleaned.push(part),
        }
    }
    cleaned
}

/// A commit that was checked.
struct Planned {
    set: ChangeSet,
    result: StageCommitResult,
    note: CommitNote,
}

impl Planned {
    fn new(stage: &OpenStage, scanned: Scanned, selected: &HashSet<usize>) -> Result<Planned, StageError> {
        let (chosen, left): (Vec<_>, Vec<_>) =
            scanned.changes.iter().enumerate().partition(|(index, _)| selected.contains(index));
        let left: Vec<StagedChange> = left.into_iter().map(|(_, change)| change.clone()).collect();
        let chosen: Vec<&StagedChange> = chosen.into_iter().map(|(_, change)| change).collect();
        let (mut changes, mut dir_modes) = (Vec::with_capacity(chosen.len()), Vec::new());
        for change in &chosen {
            push_change(&scanned, change, &mut changes)?;
            if let Some(after) = change.after.as_ref().filter(|after| after.entry.kind == EntryKind::Dir) {
                let path = change.path.as_os_str().as_bytes().to_vec();
                dir_modes.push((change.root, path, after.entry.mode()));
            }
        }
        // Deepest first: one may be a directory that cannot be passed then.
        dir_modes.reverse();
        let mut roots = Vec::new();
        for root in &stage.spec.roots {
            let open = Root::reopen(&root.path)?;
            if (open.id.dev, open.id.ino) != (root.dev, root.ino) {
                return Err(StageError::RootReplaced(root.path.clone()));
            }
            roots.push(Arc::new(open));
        }
        let all = left.is_empty();
        let files: Vec<_> = chosen.iter().take(MAX_FILES).map(|change| describe(&scanned.layers, change)).collect();
        let result = StageCommitResult {
            id: stage.id,
            state: if all { StageState::Committed } else { StageState::Ready },
            truncated: files.len() < chosen.len(),
            total: chosen.len() as u64,
            files,
            left: left.len() as u64,
            digest: (!all).then(|| digest(&left)),
        };
        let mut random = [0u8; 6];
        getrandom::fill(&mut random).map_err(std::io::Error::other)?;
        let id: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let set = ChangeSet {
            id: format!("stage_{id}"),
            roots,
            changes,
            keep_before: false,
            hard_links: HardLinks::Break,
            note: String::new(),
            request: None,
        };
        let note = CommitNote { set: set.id.clone(), all, dir_modes };
        Ok(Planned { set, result, note })
    }
}

/// Adds the steps of one change. What was there is removed first if it is of another kind.
fn push_change(scanned: &Scanned, change: &StagedChange, all: &mut Vec<Change>) -> Result<(), StageError> {
    let (root, path) = (change.root, change.path.clone());
    let before = change.before.as_ref().map(|side| side.entry);
    if before.is_some_and(|entry| matches!(entry.kind, EntryKind::Special | EntryKind::Whiteout)) {
        return Err(StageError::Special(shown(scanned, change)));
    }
    let expect = |entry: Option<Entry>| match entry {
        // Its entries come and go with the other steps.
        Some(entry) if entry.kind == EntryKind::Dir => Before::Any,
        Some(entry) => Before::Same(Seen::of(&entry.stat)),
        None => Before::Absent,
    };
    let Some(after) = &change.after else {
        all.push(Change { root, path, expect: expect(before), action: Action::Remove });
        return Ok(());
    };
    let is_dir = |kind: EntryKind| kind == EntryKind::Dir;
    let mut expected = expect(before);
    if before.is_some_and(|before| is_dir(before.kind) != is_dir(after.entry.kind)) {
        let removed = std::mem::replace(&mut expected, Before::Any);
        all.push(Change { root, path: path.clone(), expect: removed, action: Action::Remove });
    }
    let owner = (before.map(|before| before.owner()) != Some(after.entry.owner())).then(|| after.entry.owner());
    let attributes = Attributes { mode: Some(after.entry.mode()), owner, xattrs: Some(after.xattrs.clone()) };
    let action = match (after.entry.kind, &after.target) {
        // It gets its own permissions when everything is in it.
        (EntryKind::Dir, _) => Action::MakeDir { mode: Some(after.entry.mode() | 0o700) },
        (_, Some(target)) => Action::SymLink { target: target.clone() },
        _ => {
            let content = Content::Beneath { dir: scanned.layers.upper[root].fd.clone(), path: path.clone() };
            Action::Write { content, attributes }
        }
    };
    all.push(Change { root, path, expect: expected, action });
    Ok(())
}
