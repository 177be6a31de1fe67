//! `fs.list`: the names in a directory, in order, page by page. Memory is bounded whatever the directory has: of a directory
//! only the next names are kept.

use super::error::FsError;
use super::resolve::{absolute, open_dir_at, resolve};
use super::roots::{Access, Limits};
use super::stop::Stop;
use globset::{GlobBuilder, GlobMatcher};
use ignore::{IncrementalIgnore, WalkBuilder};
use rustix::fs::{AtFlags, Dir, FileType, Stat};
use std::collections::BTreeSet;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toold_proto::files::{Entry, EntryType, FsListParams, FsListResult, Unreadable};
use toold_proto::time::rfc3339;

const DEFAULT_DEPTH: u64 = 1;
pub const MAX_DEPTH: u64 = 64;
const DEFAULT_ENTRIES: u64 = 1000;
pub const MAX_ENTRIES: u64 = 10_000;
/// Names of one directory that are sorted at a time. A larger directory is read again for the next ones.
const MAX_SORTED_NAMES: usize = 16_384;
pub const MAX_UNREADABLE: usize = 10;
/// Time for one page. What is left is on the next one.
pub const PAGE_TIMEOUT: Duration = Duration::from_secs(5);

/// Lists a directory.
pub fn list(call: &FsListParams, limits: Option<&Limits>, stop: &Stop) -> Result<FsListResult, FsError> {
    let bounded = |param: &'static str, given: Option<u64>, default: u64, max: u64| match given.unwrap_or(default) {
        given if (1..=max).contains(&given) => Ok(given as usize),
        given => Err(FsError::param(param, format!("must be 1 to {max}, not {given}"))),
    };
    let depth = bounded("depth", call.depth, DEFAULT_DEPTH, MAX_DEPTH)?;
    let limit = bounded("limit", call.limit, DEFAULT_ENTRIES, MAX_ENTRIES)?;
    let glob = call.glob.as_deref().map(glob_matcher).transpose()?;
    let asked = absolute(&call.path, call.cwd.as_deref())?;
    let dir = resolve(limits, &asked, Access::Read)?;
    let fd = dir.open_dir()?;
    let mut lister = Lister {
        real: &dir.path,
        shown: shown_base(&call.path),
        ignored: ignore_matcher(&dir.path, call.ignore.unwrap_or(true), call.hidden),
        glob,
        limits,
        depth,
        limit,
        stop,
        entries: Vec::new(),
        next: None,
        last: None,
        unreadable: Vec::new(),
    };
    let after: Vec<OsString> = call.after.iter().flat_map(|after| after.split('/')).map(OsString::from).collect();
    lister.walk(&fd, Path::new(""), &after, 1);
    Ok(FsListResult {
        path: dir.path.to_string_lossy().into_owned(),
        entries: lister.entries,
        next: lister.next,
        unreadable: lister.unreadable,
    })
}

/// Returns the part of a result's path before the path below the directory.
pub(super) fn shown_base(path: &str) -> PathBuf {
    let path = Path::new(path);
    if path == Path::new(".") { PathBuf::new() } else { path.into() }
}

fn glob_matcher(glob: &str) -> Result<GlobMatcher, FsError> {
    let built = GlobBuilder::new(glob).literal_separator(true).backslash_escape(true).build();
    built.map(|glob| glob.compile_matcher()).map_err(|e| FsError::param("glob", e.to_string()))
}

/// Returns the matcher of ignore files and hidden names. None: everything is shown.
fn ignore_matcher(dir: &Path, ignore: bool, hidden: bool) -> Option<IncrementalIgnore> {
    if !ignore && hidden {
        return None;
    }
    let mut builder = WalkBuilder::new(dir);
    builder.standard_filters(ignore).hidden(!hidden).current_dir(dir);
    builder.build_matchers().pop()
}

struct Lister<'a> {
    real: &'a Path,
    shown: PathBuf,
    ignored: Option<IncrementalIgnore>,
    glob: Option<GlobMatcher>,
    limits: Option<&'a Limits>,
    depth: usize,
    limit: usize,
    stop: &'a Stop,
    entries: Vec<Entry>,
    next: Option<String>,
    /// The last path that was looked at.
    last: Option<String>,
    unreadable: Vec<Unreadable>,
}

impl Lister<'_> {
    /// Lists a directory from the cursor on. Returns false when the page is full.
    fn walk(&mut self, dir: &OwnedFd, below: &Path, after: &[OsString], depth: usize) -> bool {
        let mut from = after.first().cloned();
        let mut is_cursor = from.is_some();
        loop {
            let names = match next_names(dir, from.as_deref(), is_cursor) {
                Ok(names) => names,
                Err(e) => {
                    self.note_unreadable(below, &e.into());
                    return true;
                }
            };
            let is_last = names.len() < MAX_SORTED_NAMES;
            for name in names {
                // The cursor's own entry was on the page before; what is beneath it was not.
                let rest = match after.first() {
                    Some(first) if is_cursor && *first == name => Some(&after[1..]),
                    _ => None,
                };
                if !self.entry(dir, below, &name, rest, depth) {
                    return false;
                }
                from = Some(name);
            }
            if is_last {
                return true;
            }
            is_cursor = false;
        }
    }

    /// Adds one name and what is beneath it. With `cursor` the name itself was added before.
    fn entry(&mut self, dir: &OwnedFd, below: &Path, name: &OsStr, cursor: Option<&[OsString]>, depth: usize) -> bool {
        let path = below.join(name);
        if cursor.is_none() && (self.entries.len() >= self.limit || self.stop.is_reached()) {
            self.next = self.last.clone();
            // Without a last path nothing was looked at, so the first page has at least one entry.
            if self.next.is_some() {
                return false;
            }
        }
        self.last = Some(path.to_string_lossy().into_owned());
        let Ok(stat) = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) else { return true };
        let kind = FileType::from_raw_mode(stat.st_mode);
        let is_dir = kind == FileType::Directory;
        let hidden = |limits: &Limits| limits.hide.iter().any(|hidden| self.real.join(&path).starts_with(hidden));
        if self.limits.is_some_and(hidden) {
            return true;
        }
        if self.ignored.as_mut().is_some_and(|matcher| matcher.matched(&path, is_dir).is_ignore()) {
            return true;
        }
        if cursor.is_none() && self.glob.as_ref().is_none_or(|glob| matches(glob, &path)) {
            self.entries.push(entry(dir, name, self.shown.join(&path), kind, &stat));
        }
        if !is_dir || depth >= self.depth {
            return true;
        }
        match open_dir_at(dir.as_fd(), name) {
            Ok(inner) => self.walk(&inner, &path, cursor.unwrap_or_default(), depth + 1),
            Err(e) => {
                self.note_unreadable(&path, &e.into());
                true
            }
        }
    }

    fn note_unreadable(&mut self, below: &Path, why: &std::io::Error) {
        if self.unreadable.len() < MAX_UNREADABLE {
            let path = self.shown.join(below).to_string_lossy().into_owned();
            self.unreadable.push(Unreadable { path, why: why.to_string() });
        }
    }
}

/// Matches the name; a glob with a slash matches the path.
fn matches(glob: &GlobMatcher, path: &Path) -> bool {
    match glob.glob().glob().contains('/') {
        true => glob.is_match(path),
        false => glob.is_match(path.file_name().unwrap_or_default()),
    }
}

/// Returns the next names of a directory in order: those after `from`, or from it on.
fn next_names(dir: &OwnedFd, from: Option<&OsStr>, inclusive: bool) -> rustix::io::Result<Vec<OsString>> {
    let mut names: BTreeSet<OsString> = BTreeSet::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        let is_wanted = from.is_none_or(|from| name > from || (inclusive && name == from));
        if name == "." || name == ".." || !is_wanted {
            continue;
        }
        if names.len() < MAX_SORTED_NAMES || names.last().is_some_and(|last| name < last.as_os_str()) {
            names.insert(name.to_owned());
            if names.len() > MAX_SORTED_NAMES {
                names.pop_last();
            }
        }
    }
    Ok(names.into_iter().collect())
}

fn entry(dir: &OwnedFd, name: &OsStr, path: PathBuf, kind: FileType, stat: &Stat) -> Entry {
    let target = (kind == FileType::Symlink)
        .then(|| rustix::fs::readlinkat(dir, name, Vec::new()).ok())
        .flatten()
        .map(|target| target.to_string_lossy().into_owned());
    let seconds = u64::try_from(stat.st_mtime).ok();
    let modified = seconds.map(|seconds| seconds * 1000 + u64::from(stat.st_mtime_nsec as u32) / 1_000_000);
    Entry {
        path: path.to_string_lossy().into_owned(),
        name: name.to_string_lossy().into_owned(),
        kind: match kind {
            FileType::RegularFile => EntryType::File,
            FileType::Directory => EntryType::Dir,
            FileType::Symlink => EntryType::Symlink,
            FileType::Fifo => EntryType::Fifo,
            FileType::Socket => EntryType::Socket,
            FileType::CharacterDevice | FileType::BlockDevice => EntryType::Device,
            // The kernel has no others.
            FileType::Unknown => EntryType::Other,
        },
        bytes: (kind == FileType::RegularFile).then_some(stat.st_size as u64),
        modified_at: modified.map(rfc3339),
        target,
    }
}
