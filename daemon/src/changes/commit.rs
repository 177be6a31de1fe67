//! Commits a set: plan, journal, new files, then one rename per step, then the mark.

use super::dirs::Dirs;
use super::identity::{Kind, Seen};
use super::journal::{ChangeJournal, ChangeState, Form, Head, Step};
use super::plan::{StepPlan, plan};
use super::prepare::{keep_before, make_temps, record, split, stale};
use super::walk::stat_at;
use super::walk_back::{remove_temps, walk_back};
use super::{ChangeError, ChangeSet, Changes, Committed};
use rustix::fs::{AtFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use toold_shim::hooks;

impl Changes {
    /// Commits a set on this thread, which waits for the disk.
    pub fn commit_now(&self, set: ChangeSet) -> Result<Committed, ChangeError> {
        self.commit_reverting(set, None)
    }

    /// Commits a set that may undo another one.
    pub(super) fn commit_reverting(&self, set: ChangeSet, reverts: Option<String>) -> Result<Committed, ChangeError> {
        let head = Head {
            id: set.id.clone(),
            at_ms: crate::clock::retention_ms(),
            request: set.request.clone(),
            reverts,
            keeps_before: set.keep_before,
        };
        let roots = set.roots.clone();
        let StepPlan { steps, contents } = plan(set)?;
        let mut dirs = Dirs::new(&roots, &steps);
        let dir = self.dir.join(&head.id);
        make_own_dir(&self.dir, &dir).map_err(ChangeError::Journal)?;
        let mut journal = ChangeJournal { state: ChangeState::Planned, head, steps };
        let prepared = (|| {
            if journal.head.keeps_before {
                keep_before(&mut journal, &mut dirs, &dir)?;
            }
            record(&mut journal, &dir, ChangeState::Planned)?;
            hooks::at("changes.planned");
            make_temps(&mut journal, contents, &mut dirs)?;
            hooks::at("changes.temps");
            record(&mut journal, &dir, ChangeState::Prepared)?;
            hooks::at("changes.prepared");
            Ok(())
        })();
        if let Err(error) = prepared {
            remove_temps(&journal, &mut dirs);
            let _ = ChangeJournal::remove(&dir);
            return Err(error);
        }
        // Paths are walked again: a directory that was swapped since is refused. The walk back has the ones from before.
        let mut now = Dirs::new(&roots, &journal.steps);
        let done = run_steps(&journal, &mut now).and_then(|()| mark(&journal, &mut now, &dir));
        if let Err(error) = done {
            return Err(self.undo(&journal, &mut dirs, &dir, error));
        }
        hooks::at("changes.committed");
        self.finish(&mut journal, &mut dirs);
        Ok(Committed { id: journal.head.id.clone(), made_dirs: made_dirs(&journal) })
    }

    /// Walks a failed set back.
    fn undo(&self, journal: &ChangeJournal, dirs: &mut Dirs, dir: &Path, cause: ChangeError) -> ChangeError {
        let files = walk_back(journal, dirs);
        if let Err(e) = dirs.sync(&journal.steps).and_then(|()| ChangeJournal::remove(dir)) {
            // The next start walks it back once more, and finds nothing to do.
            tracing::error!(id = journal.head.id, %e, "failed to end the journal of changes that were walked back");
        }
        if files.is_empty() { cause } else { ChangeError::LeftAlone { cause: Box::new(cause), files } }
    }

    /// Removes the old files of a set that is committed, and notes it. Errors leave work for the next start.
    pub(super) fn finish(&self, journal: &mut ChangeJournal, dirs: &mut Dirs) {
        remove_temps(journal, dirs);
        hooks::at("changes.cleaned");
        if let Some(id) = &journal.head.reverts {
            self.mark_reverted(id);
            hooks::at("changes.reverted");
        }
        journal.state = ChangeState::Cleaned;
        if let Err(e) = ChangeJournal::set_state(&self.dir.join(&journal.head.id), ChangeState::Cleaned, false) {
            tracing::error!(id = journal.head.id, %e, "failed to note that the old files of a change are removed");
        }
        self.kept.insert(&journal.head, ChangeState::Cleaned);
    }
}

fn make_own_dir(all: &Path, dir: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = std::fs::DirBuilder::new();
    builder.mode(0o700);
    match builder.create(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            builder.recursive(true).create(all)?;
            builder.recursive(false).create(dir)
        }
        made => made,
    }?;
    std::fs::File::open(all)?.sync_all()
}

fn made_dirs(journal: &ChangeJournal) -> Vec<PathBuf> {
    let made = journal.steps.steps.iter().filter(|step| is_new_dir(step));
    made.map(|step| journal.steps.roots[step.root].path.join(&step.path)).collect()
}

fn is_new_dir(step: &Step) -> bool {
    step.form == Form::Place && step.new.as_ref().is_some_and(|new| new.kind == Kind::Dir)
}

/// Makes the names durable, then the mark.
fn mark(journal: &ChangeJournal, dirs: &mut Dirs, dir: &Path) -> Result<(), ChangeError> {
    dirs.sync(&journal.steps).map_err(ChangeError::Journal)?;
    hooks::at("changes.synced");
    ChangeJournal::set_state(dir, ChangeState::Committed, true).map_err(ChangeError::Journal)
}

pub fn run_steps(journal: &ChangeJournal, dirs: &mut Dirs) -> Result<(), ChangeError> {
    let count = journal.steps.steps.len();
    for (at, step) in journal.steps.steps.iter().enumerate() {
        let shown = journal.steps.roots[step.root].path.join(&step.path);
        run_step(journal, dirs, step, &shown)?;
        if let Some(id) = step.new.as_ref().and_then(|new| new.id).filter(|_| is_new_dir(step)) {
            dirs.expect(step.root, &step.path, id);
        }
        if at == 0 {
            hooks::at("changes.first");
        }
        if at + 2 == count {
            hooks::at("changes.last_but_one");
        }
    }
    hooks::at("changes.renamed");
    Ok(())
}

/// The two names of a step.
struct Names<'a> {
    dir: &'a OwnedFd,
    name: &'a OsStr,
    temp_dir: &'a OwnedFd,
    temp: &'a OsStr,
}

fn run_step(journal: &ChangeJournal, dirs: &mut Dirs, step: &Step, shown: &Path) -> Result<(), ChangeError> {
    let (parent, name) = split(&step.path);
    let temp_at = &journal.steps.dirs[step.temp_dir];
    let dir = dirs.get(step.root, parent).map_err(|e| stale(e, shown))?;
    let temp_dir = dirs.get(temp_at.root, &temp_at.path).map_err(|e| stale(e, shown))?;
    let names = Names { dir: &dir, name, temp_dir: &temp_dir, temp: OsStr::new(&step.temp) };
    let conflict = || ChangeError::Conflict(vec![shown.into()]);
    let rename = ChangeError::io("rename", shown);
    if let Some(old) = &step.old {
        let now = stat_at(&dir, name).map_err(ChangeError::io("look at", shown))?;
        // The entries of a directory may have been removed by steps before.
        let is_old = |now: &rustix::fs::Stat| match old.kind {
            Kind::Dir => Seen::of(now).id == old.seen.id,
            // An earlier step may have taken another name of the same file, which changes its time.
            Kind::File if now.st_nlink > 1 => Seen::of(now).has_same_bytes(&old.seen),
            Kind::File | Kind::Link => Seen::of(now) == old.seen,
        };
        if !now.as_ref().is_some_and(is_old) {
            return Err(conflict());
        }
    }
    match step.form {
        Form::Replace => match names.exchange() {
            Ok(()) => {}
            Err(e) if is_unsupported(&e) => {
                return Err(ChangeError::Unsupported { path: shown.into(), source: e });
            }
            Err(e) => return Err(rename(e)),
        },
        Form::Place => match names.place() {
            Ok(()) => return Ok(()),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(conflict()),
            Err(e) if is_unsupported(&e) => {
                return Err(ChangeError::Unsupported { path: shown.into(), source: e });
            }
            Err(e) => return Err(rename(e)),
        },
        Form::Take => names.take().map_err(rename)?,
    }
    // Another program may have written between the look and the rename. That shows in the file that was taken, and the walk back returns it.
    let taken = stat_at(&temp_dir, names.temp).map_err(ChangeError::io("look at", shown))?;
    let (Some(old), Some(taken)) = (&step.old, taken) else { return Err(conflict()) };
    match old.kind {
        Kind::Dir if !is_empty(&temp_dir, names.temp).map_err(ChangeError::io("list", shown))? => {
            Err(ChangeError::NotEmpty(shown.into()))
        }
        Kind::Dir => Ok(()),
        Kind::File | Kind::Link if Seen::of(&taken).has_same_bytes(&old.seen) => Ok(()),
        Kind::File | Kind::Link => Err(conflict()),
    }
}

impl Names<'_> {
    /// Exchanges both. Without `RENAME_EXCHANGE` in the file system: the old file gets a second name, then the new one replaces it,
    /// so the target is never missing.
    fn exchange(&self) -> io::Result<()> {
        let exchanged = rustix::fs::renameat_with(self.temp_dir, self.temp, self.dir, self.name, RenameFlags::EXCHANGE);
        match exchanged {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => self.exchange_by_link(),
            other => Ok(other?),
        }
    }

    pub(super) fn exchange_by_link(&self) -> io::Result<()> {
        let second = second_name(self.temp);
        rustix::fs::linkat(self.dir, self.name, self.temp_dir, &second, AtFlags::empty())?;
        rustix::fs::renameat(self.temp_dir, self.temp, self.dir, self.name)?;
        Ok(rustix::fs::renameat(self.temp_dir, &second, self.temp_dir, self.temp)?)
    }

    /// Gives the temporary file the name of the target, which nothing has.
    fn place(&self) -> io::Result<()> {
        let placed = rustix::fs::renameat_with(self.temp_dir, self.temp, self.dir, self.name, RenameFlags::NOREPLACE);
        match placed {
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => self.place_by_link(),
            other => Ok(other?),
        }
    }

    pub(super) fn place_by_link(&self) -> io::Result<()> {
        match rustix::fs::linkat(self.temp_dir, self.temp, self.dir, self.name, AtFlags::empty()) {
            // A directory. One that is there and empty would be replaced, which changes nothing in it.
            Err(Errno::PERM) if stat_at(self.dir, self.name)?.is_none() => {
                Ok(rustix::fs::renameat(self.temp_dir, self.temp, self.dir, self.name)?)
            }
            Err(e) => Err(e.into()),
            Ok(()) => Ok(rustix::fs::unlinkat(self.temp_dir, self.temp, AtFlags::empty())?),
        }
    }

    /// Gives the target the temporary name, which is this set's own.
    fn take(&self) -> io::Result<()> {
        Ok(rustix::fs::renameat(self.dir, self.name, self.temp_dir, self.temp)?)
    }
}

/// The second name of the old file while the new one replaces it without an exchange.
pub fn second_name(temp: &OsStr) -> std::ffi::OsString {
    let mut second = temp.to_os_string();
    second.push(".old");
    second
}

fn is_unsupported(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::EPERM | libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL | libc::EMLINK))
}

fn is_empty(dir: &OwnedFd, name: &OsStr) -> io::Result<bool> {
    use rustix::fs::{Dir, Mode, OFlags};
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let opened = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    for entry in Dir::read_from(&opened)? {
        let entry = entry?;
        if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
            return Ok(false);
        }
    }
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs both forms for file systems without exchange.
    #[test]
    fn a_file_system_without_exchange_is_served_by_links() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = |name: &str| dir.path().join(name);
        std::fs::write(path("f"), "old").expect("a fresh path");
        std::fs::write(path("t"), "new").expect("a fresh path");
        std::fs::write(path("u"), "added").expect("a fresh path");
        std::fs::create_dir(path("d")).expect("a fresh path");
        let fd = OwnedFd::from(std::fs::File::open(dir.path()).expect("it is there"));
        let names = |name: &'static str, temp: &'static str| Names {
            dir: &fd,
            name: OsStr::new(name),
            temp_dir: &fd,
            temp: OsStr::new(temp),
        };
        names("f", "t").exchange_by_link().expect("links work here");
        let read = |name: &str| std::fs::read_to_string(path(name)).expect("a file");
        assert_eq!((read("f"), read("t")), ("new".into(), "old".into()));
        names("g", "u").place_by_link().expect("links work here");
        assert_eq!((read("g"), path("u").exists()), ("added".into(), false));
        names("e", "d").place_by_link().expect("a directory is renamed");
        assert!(path("e").is_dir());
        let error = names("f", "t").place_by_link().expect_err("it is there");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert!(!path("t.old").exists());
    }
}
