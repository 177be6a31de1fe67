//! Compares the upper layer of an overlay with the directory below it: the list of changes. It changes nothing.

use super::tree::{Entry, EntryKind, Tree, TreeResult};
use std::path::{Path, PathBuf};

/// A difference between the layers.
#[derive(Debug, Clone)]
pub struct StagedChange {
    /// The index of the root.
    pub root: usize,
    /// From the root.
    pub path: PathBuf,
    /// The entry below the overlay.
    pub before: Option<Side>,
    /// The entry that the job left.
    pub after: Option<Side>,
    /// Both have the same bytes or the same target: only mode, owner or attributes differ.
    pub same_content: bool,
    /// The overlay copied it from below, and there is nothing below now.
    pub lost_origin: bool,
}

/// One side of a difference.
#[derive(Debug, Clone)]
pub struct Side {
    pub entry: Entry,
    /// Of a file; not of one that is only removed.
    pub sha256: Option<[u8; 32]>,
    /// Of a link.
    pub target: Option<PathBuf>,
    /// Of a file or directory of the upper layer.
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The form of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeForm {
    Add,
    Update,
    Metadata,
    Delete,
}

impl StagedChange {
    pub fn form(&self) -> ChangeForm {
        match (&self.before, &self.after) {
            (None, _) => ChangeForm::Add,
            (Some(_), None) => ChangeForm::Delete,
            (Some(_), Some(_)) if self.same_content => ChangeForm::Metadata,
            (Some(_), Some(_)) => ChangeForm::Update,
        }
    }
}

/// The differences of one root.
#[derive(Debug, Default)]
pub struct Scan {
    /// In the order of paths; a directory comes before what is in it.
    pub changes: Vec<StagedChange>,
    /// Pipes, sockets and devices that the job made: they are not carried over.
    pub skipped: Vec<PathBuf>,
    /// Bytes of the upper layer on the disk.
    pub bytes: u64,
}

/// Scans one root. Every file that the job may have changed is read.
pub fn scan(root: usize, upper: &Tree, lower: &Tree) -> TreeResult<Scan> {
    let mut walk = Walk { root, upper, lower, scan: Scan::default() };
    // Paths and not descriptors, so that depth costs nothing. None: nothing below shows through.
    let mut dirs = vec![(PathBuf::new(), true)];
    while let Some((dir, has_lower)) = dirs.pop() {
        walk.dir(&dir, has_lower, &mut dirs)?;
    }
    let mut scan = walk.scan;
    scan.changes.sort_by(|a, b| a.path.cmp(&b.path));
    scan.skipped.sort();
    Ok(scan)
}

struct Walk<'a> {
    root: usize,
    upper: &'a Tree,
    lower: &'a Tree,
    scan: Scan,
}

impl Walk<'_> {
    /// Compares the entries of one directory of the upper layer.
    fn dir(&mut self, dir: &Path, has_lower: bool, dirs: &mut Vec<(PathBuf, bool)>) -> TreeResult<()> {
        let entries = self.upper.list(dir)?;
        let is_opaque = has_lower && self.upper.is_opaque(dir)?;
        if is_opaque {
            for (name, below) in self.lower.list(dir)? {
                if entries.binary_search_by(|(other, _)| other.cmp(&name)).is_err() {
                    self.removed(&dir.join(&name), below)?;
                }
            }
        }
        for (name, entry) in entries {
            let path = dir.join(&name);
            self.scan.bytes += entry.stat.st_blocks.cast_unsigned() * 512;
            let below = if has_lower { self.lower.entry(&path)? } else { None };
            match entry.kind {
                EntryKind::Whiteout => {
                    if let Some(below) = below {
                        self.removed(&path, below)?;
                    }
                }
                EntryKind::Special => self.scan.skipped.push(path),
                EntryKind::Dir => {
                    let merges = below.is_some_and(|below| below.kind == EntryKind::Dir);
                    self.compared(&path, below, entry)?;
                    dirs.push((path, merges));
                }
                EntryKind::File | EntryKind::Link => {
                    if let Some(below) = below.filter(|below| below.kind == EntryKind::Dir) {
                        self.removed_in(&path)?;
                        self.push(&path, Some(below), Some(entry), false)?;
                    } else {
                        self.compared(&path, below, entry)?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Adds a removed entry, with everything in it.
    fn removed(&mut self, path: &Path, below: Entry) -> TreeResult<()> {
        if below.kind == EntryKind::Dir {
            self.removed_in(path)?;
        }
        self.push(path, Some(below), None, false)
    }

    /// Adds everything in a removed directory.
    fn removed_in(&mut self, dir: &Path) -> TreeResult<()> {
        let mut dirs = vec![dir.to_path_buf()];
        while let Some(dir) = dirs.pop() {
            for (name, below) in self.lower.list(&dir)? {
                let path = dir.join(name);
                self.push(&path, Some(below), None, false)?;
                if below.kind == EntryKind::Dir {
                    dirs.push(path);
                }
            }
        }
        Ok(())
    }

    /// Adds an entry if it differs from the one below. Times do not count.
    fn compared(&mut self, path: &Path, below: Option<Entry>, entry: Entry) -> TreeResult<()> {
        let same_kind = below.filter(|below| below.kind == entry.kind);
        let same_content = match (same_kind, entry.kind) {
            (Some(_), EntryKind::Dir) => true,
            (Some(below), EntryKind::File) => {
                below.size() == entry.size() && self.lower.hash(path)? == self.upper.hash(path)?
            }
            (Some(_), EntryKind::Link) => self.lower.read_link(path)? == self.upper.read_link(path)?,
            _ => false,
        };
        if let (true, Some(below)) = (same_content, below) {
            let same_mode = entry.kind == EntryKind::Link || below.mode() == entry.mode();
            let is_same =
                same_mode && below.owner() == entry.owner() && self.lower.xattrs(path)? == self.upper.xattrs(path)?;
            if is_same {
                return Ok(());
            }
        }
        self.push(path, below, Some(entry), same_content)
    }

    fn push(&mut self, path: &Path, below: Option<Entry>, entry: Option<Entry>, same_content: bool) -> TreeResult<()> {
        let lost_origin = match (below, entry) {
            (None, Some(entry)) if entry.kind == EntryKind::File => self.upper.is_copied_up(path)?,
            _ => false,
        };
        let before = match below {
            Some(below) => Some(side(self.lower, path, below, entry.is_some())?),
            None => None,
        };
        let after = match entry {
            Some(entry) => Some(side(self.upper, path, entry, true)?),
            None => None,
        };
        self.scan.changes.push(StagedChange {
            root: self.root,
            path: path.into(),
            before,
            after,
            same_content,
            lost_origin,
        });
        Ok(())
    }
}

fn side(tree: &Tree, path: &Path, entry: Entry, hashes: bool) -> TreeResult<Side> {
    let sha256 = if hashes && entry.kind == EntryKind::File { Some(tree.hash(path)?) } else { None };
    let target = if entry.kind == EntryKind::Link { Some(tree.read_link(path)?) } else { None };
    let xattrs = if hashes { tree.xattrs(path)? } else { Vec::new() };
    Ok(Side { entry, sha256, target, xattrs })
}
