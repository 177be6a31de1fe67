//! Walks the steps of a journal back, as far as each was done. A step is looked at, not remembered: the names of its two
//! files show how far it came. Whatever is not this set's own is left alone.

use super::commit::second_name;
use super::dirs::Dirs;
use super::error::LeftAlone;
use super::identity::{FileId, Kind};
use super::journal::{ChangeJournal, ChangeState, Form, Step};
use super::plan::{hash_of, hex};
use super::prepare::{split, temp_path};
use super::walk::stat_at;
use rustix::fs::{AtFlags, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// Walks every step back, the last one first. Returns the files that another program has changed.
pub fn walk_back(journal: &ChangeJournal, dirs: &mut Dirs) -> Vec<LeftAlone> {
    let mut left = Vec::new();
    if journal.state == ChangeState::Planned {
        remove_temps(journal, dirs);
        return left;
    }
    for step in journal.steps.steps.iter().rev() {
        let path = journal.steps.roots[step.root].path.join(&step.path);
        match Undo::open(journal, dirs, step).and_then(|undo| undo.run(dirs)) {
            Ok(Undone::Whole) => {}
            Ok(Undone::Left { has_old }) => {
                let before = has_old.then(|| temp_path(journal, step));
                left.push(LeftAlone { path, before });
            }
            Err(e) => {
                tracing::error!(path = %path.display(), %e, "failed to walk a change back");
                left.push(LeftAlone { path, before: Some(temp_path(journal, step)) });
            }
        }
    }
    left.reverse();
    left
}

/// Removes everything that has a temporary name. A directory is removed only if it is empty.
pub fn remove_temps(journal: &ChangeJournal, dirs: &mut Dirs) {
    for step in journal.steps.steps.iter().rev() {
        let at = &journal.steps.dirs[step.temp_dir];
        let Ok(dir) = dirs.get(at.root, &at.path) else { continue };
        let temp = OsStr::new(&step.temp);
        for name in [temp.to_os_string(), second_name(temp)] {
            if let Err(e) = remove(&dir, &name) {
                tracing::warn!(path = %temp_path(journal, step).display(), %e, "failed to remove a temporary file");
            }
        }
    }
}

fn remove(dir: &OwnedFd, name: &OsStr) -> io::Result<()> {
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        Err(Errno::NOENT) | Ok(()) => Ok(()),
        Err(Errno::ISDIR | Errno::PERM) => Ok(rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR)?),
        Err(e) => Err(e.into()),
    }
}

/// The extent to which a step was walked back.
enum Undone {
    Whole,
    /// The target is not this set's. `has_old`: the temporary name has the old bytes.
    Left {
        has_old: bool,
    },
}

/// One step that is looked at.
struct Undo<'a> {
    step: &'a Step,
    /// None: the directory does not exist.
    dir: Option<Arc<OwnedFd>>,
    name: OsString,
    temp_dir: Arc<OwnedFd>,
    temp: OsString,
    second: OsString,
}

impl<'a> Undo<'a> {
    fn open(journal: &'a ChangeJournal, dirs: &mut Dirs, step: &'a Step) -> io::Result<Undo<'a>> {
        let (parent, name) = split(&step.path);
        let dir = match dirs.get(step.root, parent) {
            Ok(dir) => Some(dir),
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => None,
            Err(e) => return Err(e),
        };
        let at = &journal.steps.dirs[step.temp_dir];
        let temp_dir = dirs.get(at.root, &at.path)?;
        let temp = OsString::from(&step.temp);
        Ok(Undo { step, dir, name: name.into(), temp_dir, second: second_name(&temp), temp })
    }

    fn run(self, dirs: &Dirs) -> io::Result<Undone> {
        let is = |found: Option<FileId>, known: Option<FileId>| {
            found.zip(known).is_some_and(|(found, known)| dirs.is_same(found, known))
        };
        let new = self.step.new.as_ref().and_then(|new| new.id);
        let target = match &self.dir {
            Some(dir) => id_at(dir, &self.name)?,
            None => None,
        };
        let temp = id_at(&self.temp_dir, &self.temp)?;
        match self.step.form {
            // The target was not replaced yet.
            Form::Replace if is(temp, new) => {
                remove(&self.temp_dir, &self.temp)?;
                remove(&self.temp_dir, &self.second)?;
            }
            Form::Replace => {
                // Whatever has one of these names was the target when the step ran.
                let backup = match temp {
                    Some(_) => Some(&self.temp),
                    None => id_at(&self.temp_dir, &self.second)?.map(|_| &self.second),
                };
                match (backup, &self.dir) {
                    (Some(backup), Some(dir)) if is(target, new) && self.has_our_bytes(dir)? => {
                        rustix::fs::renameat(&self.temp_dir, backup, dir, &self.name)?;
                    }
                    (Some(_), _) => return Ok(Undone::Left { has_old: true }),
                    (None, _) if is(target, new) => return Ok(Undone::Left { has_old: false }),
                    (None, _) => {}
                }
            }
            Form::Place => {
                if let (true, Some(dir)) = (is(target, new), &self.dir) {
                    if !self.has_our_bytes(dir)? {
                        return Ok(Undone::Left { has_old: false });
                    }
                    match remove(dir, &self.name) {
                        // Another program has put something in it.
                        Err(e) if e.kind() == io::ErrorKind::DirectoryNotEmpty => {
                            return Ok(Undone::Left { has_old: false });
                        }
                        removed => removed?,
                    }
                } else if temp.is_none() && target.is_some() {
                    return Ok(Undone::Left { has_old: false });
                }
                remove(&self.temp_dir, &self.temp)?;
            }
            Form::Take if temp.is_some() => {
                let Some(dir) = &self.dir else { return Ok(Undone::Left { has_old: true }) };
                if target.is_some() {
                    return Ok(Undone::Left { has_old: true });
                }
                let back = RenameFlags::NOREPLACE;
                match rustix::fs::renameat_with(&self.temp_dir, &self.temp, dir, &self.name, back) {
                    Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                        rustix::fs::renameat(&self.temp_dir, &self.temp, dir, &self.name)?;
                    }
                    Err(Errno::EXIST) => return Ok(Undone::Left { has_old: true }),
                    renamed => renamed?,
                }
            }
            Form::Take => {}
        }
        Ok(Undone::Whole)
    }

    /// Returns true if the target still has the bytes that the step put there.
    fn has_our_bytes(&self, dir: &OwnedFd) -> io::Result<bool> {
        let Some(new) = self.step.new.as_ref().filter(|new| new.kind == Kind::File) else { return Ok(true) };
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(dir, &self.name, flags, Mode::empty())?;
        Ok(new.sha256.as_deref() == Some(hex(&hash_of(file)?).as_str()))
    }
}

fn id_at(dir: &OwnedFd, name: &OsStr) -> io::Result<Option<FileId>> {
    Ok(stat_at(dir, name)?.as_ref().map(FileId::of))
}
