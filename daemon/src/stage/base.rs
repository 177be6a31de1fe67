//! Finds changes below an overlay that the job has not seen. Until the job's end they are found by the time of a file's last
//! change; from then on by comparison with a list of what was there at the end.

use super::scan::StagedChange;
use super::tree::{Entry, EntryKind, Tree, TreeResult};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The entries below an overlay at the end of the job, by root and path. Only those that the job changed.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Base {
    entries: Vec<BaseLine>,
}

/// A path that the job changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct BaseLine {
    root: usize,
    path: Vec<u8>,
    below: Option<BaseEntry>,
    /// It was changed below while the job ran.
    conflict: bool,
}

/// An entry below the overlay. None of its fields changes over a boot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct BaseEntry {
    ino: u64,
    mode: u32,
    /// Size and times. None for a directory: its content is compared by itself.
    file: Option<(u64, i64, i64)>,
}

impl BaseEntry {
    fn of(entry: &Entry) -> BaseEntry {
        let file = (entry.kind != EntryKind::Dir).then(|| (entry.size(), entry.mtime_ns(), entry.ctime_ns()));
        BaseEntry { ino: entry.stat.st_ino, mode: entry.stat.st_mode, file }
    }

    /// Returns true if only the time of the last change differs, which a rename changes too.
    fn has_same_bytes(&self, other: &BaseEntry) -> bool {
        let file = |entry: &BaseEntry| entry.file.map(|(size, mtime, _)| (size, mtime));
        (self.ino, self.mode, file(self)) == (other.ino, other.mode, file(other))
    }
}

impl Base {
    /// Lists the changes of a job that has ended. `conflicts`: the indexes of those that were changed below meanwhile, sorted.
    pub fn of(changes: &[StagedChange], conflicts: &[usize]) -> Base {
        let line = |(index, change): (usize, &StagedChange)| BaseLine {
            root: change.root,
            path: change.path.as_os_str().as_bytes().to_vec(),
            below: change.before.as_ref().map(|side| BaseEntry::of(&side.entry)),
            conflict: conflicts.binary_search(&index).is_ok(),
        };
        Base { entries: changes.iter().enumerate().map(line).collect() }
    }

    /// Takes over the times that a commit has changed which was walked back: it renames files, and leaves their bytes alone.
    pub fn refresh(&mut self, changes: &[StagedChange]) {
        let now: HashMap<(usize, &[u8]), BaseEntry> = changes
            .iter()
            .filter_map(|change| {
                let below = BaseEntry::of(&change.before.as_ref()?.entry);
                Some(((change.root, change.path.as_os_str().as_bytes()), below))
            })
            .collect();
        for line in &mut self.entries {
            let found = now.get(&(line.root, line.path.as_slice()));
            if let (Some(was), Some(found)) = (&mut line.below, found)
                && was.has_same_bytes(found)
            {
                *was = found.clone();
            }
        }
    }

    /// Returns the indexes of changes whose entry below is not what the job has seen. `limit_ns`: the time of the last change
    /// that it has seen for certain.
    pub fn conflicts(&self, changes: &[StagedChange], lower: &[Tree], limit_ns: i64) -> TreeResult<Vec<usize>> {
        let known: HashMap<(usize, &[u8]), &BaseLine> =
            self.entries.iter().map(|line| ((line.root, line.path.as_slice()), line)).collect();
        let mut conflicts = Vec::new();
        for (index, change) in changes.iter().enumerate() {
            let now = change.before.as_ref().map(|side| BaseEntry::of(&side.entry));
            let is_conflict = match known.get(&(change.root, change.path.as_os_str().as_bytes())) {
                Some(line) => line.conflict || line.below != now,
                None => is_later(change, limit_ns) || is_gone(change, &lower[change.root], limit_ns)?,
            };
            if is_conflict {
                conflicts.push(index);
            }
        }
        Ok(conflicts)
    }
}

/// Returns true if the entry below was changed after the limit.
fn is_later(change: &StagedChange, limit_ns: i64) -> bool {
    let Some(before) = &change.before else { return false };
    let (mtime, ctime) = (before.entry.mtime_ns(), before.entry.ctime_ns());
    match before.entry.kind {
        // Names that come and go change both times at once; what comes is compared by itself. A change of the mode changes one.
        EntryKind::Dir => change.after.is_some() && ctime > limit_ns && ctime > mtime,
        _ => ctime > limit_ns,
    }
}

/// Returns true if a file that the job had copied from below was removed there. The job may also have moved it there itself:
/// then nothing changed in the directory below.
fn is_gone(change: &StagedChange, lower: &Tree, limit_ns: i64) -> TreeResult<bool> {
    if !change.lost_origin {
        return Ok(false);
    }
    let parent = lower.entry(change.path.parent().unwrap_or(Path::new("")))?;
    Ok(parent.is_some_and(|parent| parent.mtime_ns() > limit_ns))
}
