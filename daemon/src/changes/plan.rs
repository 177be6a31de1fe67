//! Plans the steps of a set: looks at every path, and changes nothing.

use super::identity::{FileId, Kind, Seen};
use super::journal::{Form, JournalDir, JournalRoot, New, Old, Step, Steps};
use super::walk::{ChangePlace, LastLink, Root, WalkError};
use super::{Action, Attributes, Before, Change, ChangeError, ChangeSet, Content, HardLinks, Sha256};
use rustix::fs::Stat;
use rustix::io::Errno;
use sha2::Digest;
use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A path with its root.
type At = (usize, PathBuf);

/// The steps of a set, and what each puts there.
pub struct StepPlan {
    pub steps: Steps,
    /// By the index of the step.
    pub contents: Vec<Option<Fresh>>,
}

/// A thing that a step puts there.
pub enum Fresh {
    File { content: Content, attributes: Attributes },
    Dir { mode: Option<u32> },
    Link { target: PathBuf },
}

/// Plans a set. All paths that are not as expected are named in one conflict.
pub fn plan(set: ChangeSet) -> Result<StepPlan, ChangeError> {
    let removed = set.changes.iter().filter(|change| matches!(change.action, Action::Remove));
    let removed: HashSet<At> = removed.map(|change| (change.root, change.path.clone())).collect();
    let roots = set.roots.iter().map(|root| JournalRoot { path: root.path.clone(), id: root.id }).collect();
    let boot = boot_name();
    let mut planner = Planner {
        id: set.id,
        roots: set.roots,
        removed,
        hard_links: set.hard_links,
        steps: Steps { boot, roots, dirs: Vec::new(), steps: Vec::new(), note: set.note },
        dirs: HashMap::new(),
        made: HashSet::new(),
        contents: Vec::new(),
        conflicts: Vec::new(),
    };
    for change in in_order(set.changes) {
        planner.add(change)?;
    }
    match planner.conflicts.is_empty() {
        true => Ok(StepPlan { steps: planner.steps, contents: planner.contents }),
        false => Err(ChangeError::Conflict(planner.conflicts)),
    }
}

/// The name of this boot: identities of files are compared whole only within one.
pub fn boot_name() -> String {
    crate::clock::boot_id().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Orders changes: what is in the way of something new is removed first, then directories are made, then files are written,
/// then the rest is removed. So a moved file is never missing.
fn in_order(changes: Vec<Change>) -> Vec<Change> {
    let made = changes.iter().filter(|change| !matches!(change.action, Action::Remove));
    let made: HashSet<At> = made.map(|change| (change.root, change.path.clone())).collect();
    let above: HashSet<At> =
        made.iter().flat_map(|(root, path)| path.ancestors().skip(1).map(|dir| (*root, dir.to_path_buf()))).collect();
    let is_in_the_way = |change: &Change| {
        let at = |path: &Path| (change.root, path.to_path_buf());
        above.contains(&at(&change.path)) || change.path.ancestors().any(|path| made.contains(&at(path)))
    };
    let mut keyed: Vec<((u8, usize), Change)> = changes
        .into_iter()
        .map(|change| {
            let depth = change.path.components().count();
            let key = match change.action {
                Action::Remove if is_in_the_way(&change) => (0, usize::MAX - depth),
                Action::MakeDir { .. } => (1, depth),
                Action::Write { .. } | Action::SymLink { .. } => (2, 0),
                Action::Remove => (3, usize::MAX - depth),
            };
            (key, change)
        })
        .collect();
    // Stable: files are written in the order of the set.
    keyed.sort_by_key(|(key, _)| *key);
    keyed.into_iter().map(|(_, change)| change).collect()
}

struct Planner {
    id: String,
    roots: Vec<Arc<Root>>,
    removed: HashSet<At>,
    hard_links: HardLinks,
    steps: Steps,
    /// Existing directories by their index in the steps.
    dirs: HashMap<At, usize>,
    /// Directories that a step makes.
    made: HashSet<At>,
    contents: Vec<Option<Fresh>>,
    conflicts: Vec<PathBuf>,
}

impl Planner {
    fn add(&mut self, change: Change) -> Result<(), ChangeError> {
        let Change { root, path, expect, action } = change;
        let shown = self.roots[root].path.join(&path);
        let place = self.find(root, &path, &shown)?;
        let is_replaced = !matches!(action, Action::Remove) && self.removed.contains(&(root, path.clone()));
        let stat = match is_replaced {
            true => None,
            false => place.stat().map_err(ChangeError::io("look at", &shown))?,
        };
        if !is_replaced && !is_expected(&place, stat.as_ref(), &expect, &shown)? {
            self.conflicts.push(shown);
            return Ok(());
        }
        let old = stat.as_ref().map(|stat| self.old(stat, &shown)).transpose()?;
        match action {
            Action::Remove => match old {
                Some(old) => self.push(root, &path, &place, Form::Take, Some(old), None),
                None => self.conflicts.push(shown),
            },
            Action::MakeDir { mode } => {
                self.make_missing(root, &place);
                match old {
                    None => self.push(root, &path, &place, Form::Place, None, Some(Fresh::Dir { mode })),
                    Some(Old { kind: Kind::Dir, .. }) => {}
                    Some(_) => return Err(exists(shown)),
                }
            }
            Action::Write { content, attributes } => {
                self.put(root, &path, &place, old, shown, Fresh::File { content, attributes })?;
            }
            Action::SymLink { target } => self.put(root, &path, &place, old, shown, Fresh::Link { target })?,
        }
        Ok(())
    }

    fn put(
        &mut self,
        root: usize,
        path: &Path,
        place: &ChangePlace,
        old: Option<Old>,
        shown: PathBuf,
        fresh: Fresh,
    ) -> Result<(), ChangeError> {
        self.make_missing(root, place);
        let form = match &old {
            None => Form::Place,
            Some(Old { kind: Kind::Dir, .. }) => return Err(exists(shown)),
            Some(_) => Form::Replace,
        };
        self.push(root, path, place, form, old, Some(fresh));
        Ok(())
    }

    /// Finds a place that the set itself may make possible: what is above may be removed and made again.
    fn find(&self, root: usize, path: &Path, shown: &Path) -> Result<ChangePlace, ChangeError> {
        let above: Vec<&Path> = path.ancestors().skip(1).filter(|dir| !dir.as_os_str().is_empty()).collect();
        let top = above.iter().rev().find(|dir| self.removed.contains(&(root, dir.to_path_buf())));
        let is_removed = self.removed.contains(&(root, path.to_path_buf()));
        let failed = |error: WalkError| match error {
            WalkError::Escapes { .. } => ChangeError::Escapes(shown.into()),
            WalkError::Directory => exists(shown.into()),
            WalkError::Io(source) => ChangeError::Io { doing: "find", path: shown.into(), source },
        };
        let place = match top {
            Some(top) if !is_removed => {
                let mut place = self.roots[root].find(top, LastLink::Keep).map_err(failed)?;
                let mut names: Vec<OsString> = path.iter().map(Into::into).collect();
                names.drain(..place.dir_path.components().count());
                place.name = names.pop().unwrap_or_default();
                place.missing = names;
                place
            }
            _ => self.roots[root].find(path, LastLink::Keep).map_err(failed)?,
        };
        match place.path() == path {
            true => Ok(place),
            // A directory has become a link.
            false => Err(ChangeError::Conflict(vec![shown.into()])),
        }
    }

    fn old(&self, stat: &Stat, shown: &Path) -> Result<Old, ChangeError> {
        let Some(kind) = Kind::of(stat) else { return Err(ChangeError::NotAFile(shown.into())) };
        if kind == Kind::File && stat.st_nlink > 1 && self.hard_links == HardLinks::Refuse {
            return Err(ChangeError::HardLinks(shown.into()));
        }
        Ok(Old {
            kind,
            seen: Seen::of(stat),
            mode: stat.st_mode & 0o7777,
            uid: stat.st_uid,
            gid: stat.st_gid,
            xattrs: Vec::new(),
            link: None,
            sha256: None,
            at: None,
        })
    }

    /// Adds a step for every directory on the way that does not exist.
    fn make_missing(&mut self, root: usize, place: &ChangePlace) {
        let mut path = place.dir_path.clone();
        for name in &place.missing {
            path.push(name);
            if !self.made.contains(&(root, path.clone())) {
                let dir = path.clone();
                self.push(root, &dir, place, Form::Place, None, Some(Fresh::Dir { mode: None }));
            }
        }
    }

    fn push(
        &mut self,
        root: usize,
        path: &Path,
        place: &ChangePlace,
        form: Form,
        old: Option<Old>,
        fresh: Option<Fresh>,
    ) {
        self.dir(root, &place.dir_path, place.dir_id);
        // A directory that is removed has no room for names that outlive it.
        let top = place.dir_path.ancestors().filter(|dir| !dir.as_os_str().is_empty());
        let top = top.filter(|dir| self.removed.contains(&(root, dir.to_path_buf()))).last();
        let temp_dir = match top.map(|top| self.roots[root].find(top, LastLink::Keep)) {
            Some(Ok(above)) => self.dir(root, &above.dir_path, above.dir_id),
            Some(Err(_)) | None => self.dir(root, &place.dir_path, place.dir_id),
        };
        let kind = |fresh: &Fresh| match fresh {
            Fresh::File { .. } => Kind::File,
            Fresh::Dir { .. } => Kind::Dir,
            Fresh::Link { .. } => Kind::Link,
        };
        let new = fresh.as_ref().map(|fresh| New { kind: kind(fresh), sha256: None, id: None });
        if matches!(fresh, Some(Fresh::Dir { .. })) {
            self.made.insert((root, path.to_path_buf()));
        }
        let temp = format!(".toold-{}-{}", self.id, self.steps.steps.len());
        self.steps.steps.push(Step { form, root, path: path.into(), temp_dir, temp, old, new });
        self.contents.push(fresh);
    }

    fn dir(&mut self, root: usize, path: &Path, id: FileId) -> usize {
        let dirs = &mut self.steps.dirs;
        *self.dirs.entry((root, path.to_path_buf())).or_insert_with(|| {
            dirs.push(JournalDir { root, path: path.into(), id });
            dirs.len() - 1
        })
    }
}

fn exists(path: PathBuf) -> ChangeError {
    ChangeError::Io { doing: "write", path, source: Errno::ISDIR.into() }
}

fn is_expected(place: &ChangePlace, stat: Option<&Stat>, expect: &Before, shown: &Path) -> Result<bool, ChangeError> {
    Ok(match (expect, stat) {
        (Before::Any, _) | (Before::Absent, None) => true,
        (Before::Absent, Some(_)) | (_, None) => false,
        (Before::Same(seen), Some(stat)) => Seen::of(stat) == *seen,
        (Before::Hash(_), Some(stat)) if Kind::of(stat) != Some(Kind::File) => false,
        (Before::Hash(wanted), Some(_)) => {
            let hash = place.open().and_then(hash_of).map_err(ChangeError::io("read", shown))?;
            hash == *wanted
        }
    })
}

/// Hashes all bytes of an open file.
pub fn hash_of(file: OwnedFd) -> io::Result<Sha256> {
    let mut file = File::from(file);
    let mut hash = sha2::Sha256::new();
    let mut buf = vec![0; 64 * 1024];
    loop {
        match file.read(&mut buf) {
            Ok(0) => return Ok(hash.finalize().into()),
            Ok(n) => hash.update(&buf[..n]),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// A hash in hexadecimal digits.
pub fn hex(hash: &Sha256) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}
