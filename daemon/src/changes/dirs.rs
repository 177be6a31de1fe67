//! The open directories of a set. Each is opened by its real path and must be the one that was planned: a directory that
//! was replaced meanwhile is refused.

use super::identity::FileId;
use super::journal::{JournalRoot, Steps};
use super::plan::boot_name;
use super::walk::Root;
use rustix::io::Errno;
use std::collections::HashMap;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Directories that are open at a time.
const MAX_OPEN: usize = 64;

pub struct Dirs {
    roots: Vec<Option<Arc<Root>>>,
    known: HashMap<(usize, PathBuf), FileId>,
    open: HashMap<(usize, PathBuf), Arc<OwnedFd>>,
    /// Device numbers are those of this boot.
    same_boot: bool,
}

impl Dirs {
    /// The directories of a set whose roots are open.
    pub fn new(roots: &[Arc<Root>], steps: &Steps) -> Dirs {
        Dirs::with(roots.iter().cloned().map(Some).collect(), steps)
    }

    /// Opens the roots again. One that is another directory now is not used.
    pub fn reopen(steps: &Steps) -> Dirs {
        let same_boot = steps.boot == boot_name();
        let open = |root: &JournalRoot| {
            Root::reopen(&root.path).ok().filter(|found| is_same(found.id, root.id, same_boot)).map(Arc::new)
        };
        Dirs::with(steps.roots.iter().map(open).collect(), steps)
    }

    fn with(roots: Vec<Option<Arc<Root>>>, steps: &Steps) -> Dirs {
        let known = steps.dirs.iter().map(|dir| ((dir.root, dir.path.clone()), dir.id));
        let same_boot = steps.boot == boot_name();
        Dirs { roots, known: known.collect(), open: HashMap::new(), same_boot }
    }

    /// Expects a directory that a step has made.
    pub fn expect(&mut self, root: usize, path: &Path, id: FileId) {
        self.known.insert((root, path.into()), id);
    }

    /// Opens a directory.
    pub fn get(&mut self, root: usize, path: &Path) -> io::Result<Arc<OwnedFd>> {
        let at = (root, path.to_path_buf());
        if let Some(dir) = self.open.get(&at) {
            return Ok(dir.clone());
        }
        let from = self.roots.get(root).and_then(Option::as_ref).ok_or(Errno::STALE)?;
        let dir = from.open_dir(path)?;
        let id = FileId::of(&rustix::fs::fstat(&dir)?);
        if self.known.get(&at).is_some_and(|known| !self.is_same(id, *known)) {
            return Err(Errno::STALE.into());
        }
        if self.open.len() >= MAX_OPEN {
            self.open.clear();
        }
        let dir = Arc::new(dir);
        self.open.insert(at, dir.clone());
        Ok(dir)
    }

    /// Waits until the names in these directories are durable.
    pub fn sync(&mut self, steps: &Steps) -> io::Result<()> {
        let parents = steps.steps.iter().filter_map(|step| Some((step.root, step.path.parent()?)));
        let temps = steps.dirs.iter().map(|dir| (dir.root, dir.path.as_path()));
        let mut all: Vec<(usize, &Path)> = parents.chain(temps).collect();
        all.sort_unstable();
        all.dedup();
        for (root, path) in all {
            match self.get(root, path) {
                Ok(dir) => rustix::fs::fsync(&*dir)?,
                // It was removed by the set, or never made.
                Err(e) if matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    pub fn is_same(&self, found: FileId, known: FileId) -> bool {
        is_same(found, known, self.same_boot)
    }
}

/// Device numbers may differ after a boot.
fn is_same(found: FileId, known: FileId, same_boot: bool) -> bool {
    found.ino == known.ino && (!same_boot || found.dev == known.dev)
}
