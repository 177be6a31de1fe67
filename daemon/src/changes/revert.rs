//! Undoes a set from its old bytes, as a set of its own.

use super::identity::Kind;
use super::journal::{BEFORE_FILE, ChangeJournal, Form, Old};
use super::walk::Root;
use super::{
    Action, Attributes, Before, Change, ChangeError, ChangeSet, Changes, Committed, Content, HardLinks, Sha256,
};
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

impl Changes {
    /// Undoes a set on this thread. `roots`: the directories in which the caller may change files.
    pub fn revert_now(
        &self,
        id: &str,
        new_id: String,
        roots: Vec<Arc<Root>>,
        note: String,
    ) -> Result<Committed, ChangeError> {
        let journal = self.journal(id)?;
        let before = self.dir.join(id).join(BEFORE_FILE);
        let before = match crate::events::open_regular(&before, File::options().read(true)) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Err(ChangeError::NotFound(id.into())),
            opened => opened.map_err(ChangeError::Journal)?,
        };
        let mut changes = Vec::new();
        let taken: HashSet<(usize, &Path)> = journal
            .steps
            .steps
            .iter()
            .filter(|step| step.form == Form::Take)
            .map(|step| (step.root, &*step.path))
            .collect();
        for step in &journal.steps.steps {
            let path = journal.steps.roots[step.root].path.join(&step.path);
            let (root, path) = beneath(&roots, &path).ok_or_else(|| ChangeError::Escapes(path.clone()))?;
            let new = step.new.as_ref();
            let expect = match new.map(|new| (new.kind, new.sha256.as_deref())) {
                Some((Kind::File, Some(hash))) => Before::Hash(unhex(hash).ok_or_else(damaged)?),
                Some(_) => Before::Any,
                None => Before::Absent,
            };
            let action = match (&step.old, step.form) {
                // It is removed afterwards if it is empty, unless it is in the way.
                (None, _)
                    if new.is_some_and(|new| new.kind == Kind::Dir) && !taken.contains(&(step.root, &step.path)) =>
                {
                    continue;
                }
                (None, _) => Action::Remove,
                (Some(old), Form::Replace | Form::Take | Form::Place) => put_back(old, &before)?,
            };
            changes.push(Change { root, path, expect, action });
        }
        let set = ChangeSet {
            id: new_id,
            roots,
            changes,
            keep_before: false,
            hard_links: HardLinks::Break,
            note,
            request: None,
        };
        let committed = self.commit_reverting(set, Some(id.into()))?;
        remove_made_dirs(&journal);
        Ok(committed)
    }
}

fn beneath(roots: &[Arc<Root>], path: &Path) -> Option<(usize, PathBuf)> {
    roots.iter().enumerate().find_map(|(at, root)| Some((at, root.relative(path)?.to_path_buf())))
}

fn put_back(old: &Old, before: &File) -> Result<Action, ChangeError> {
    match (old.kind, &old.link, old.at) {
        (Kind::Dir, ..) => Ok(Action::MakeDir { mode: Some(old.mode) }),
        (Kind::Link, Some(target), _) => {
            Ok(Action::SymLink { target: std::ffi::OsString::from_vec(target.clone()).into() })
        }
        (Kind::File, _, Some(at)) => {
            let mut bytes = vec![0; usize::try_from(old.seen.size).map_err(|_| damaged())?];
            before.read_exact_at(&mut bytes, at).map_err(ChangeError::Journal)?;
            let hash = super::plan::hex(&<sha2::Sha256 as sha2::Digest>::digest(&bytes).into());
            if old.sha256.as_deref() != Some(&hash) {
                return Err(damaged());
            }
            let attributes =
                Attributes { mode: Some(old.mode), owner: Some((old.uid, old.gid)), xattrs: Some(old.xattrs.clone()) };
            Ok(Action::Write { content: Content::Bytes(bytes), attributes })
        }
        (Kind::Link | Kind::File, ..) => Err(damaged()),
    }
}

fn damaged() -> ChangeError {
    ChangeError::Journal(io::Error::new(io::ErrorKind::InvalidData, "the kept bytes do not match their checksum"))
}

fn unhex(text: &str) -> Option<Sha256> {
    let mut hash = [0; 32];
    if text.len() != 64 {
        return None;
    }
    for (at, byte) in hash.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(hash)
}

/// Removes the directories that the set had made, the deepest first, if nothing is in them.
fn remove_made_dirs(journal: &ChangeJournal) {
    let mut dirs = super::dirs::Dirs::reopen(&journal.steps);
    for step in journal.steps.steps.iter().rev() {
        let Some(id) = step.new.as_ref().filter(|new| new.kind == Kind::Dir).and_then(|new| new.id) else { continue };
        let (parent, name) = super::prepare::split(&step.path);
        let Ok(dir) = dirs.get(step.root, parent) else { continue };
        let found = super::walk::stat_at(&dir, name).ok().flatten();
        if found.is_some_and(|found| dirs.is_same(super::FileId::of(&found), id)) {
            // Not empty: another program uses it.
            let _ = rustix::fs::unlinkat(&*dir, name, rustix::fs::AtFlags::REMOVEDIR);
        }
    }
}
