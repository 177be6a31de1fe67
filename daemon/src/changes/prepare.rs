//! Writes what a set needs before its first step: the old bytes that are kept, the journal, and the new files beside their
//! targets.

use super::dirs::Dirs;
use super::identity::{FileId, Kind, Seen};
use super::journal::{BEFORE_FILE, ChangeJournal, ChangeState, Step};
use super::plan::{Fresh, hex};
use super::{Attributes, ChangeError, Content};
use crate::sys;
use rustix::fs::{AtFlags, Gid, Mode, OFlags, ResolveFlags, Uid, XattrFlags};
use sha2::Digest;
use std::ffi::CString;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use toold_shim::hooks;

/// The longest list of names, and the longest value, of extended attributes in Linux.
const MAX_XATTR_LEN: usize = 65_536;

/// The files that are open until they are synced.
const MAX_UNSYNCED: usize = 64;

/// Copies the old bytes of all files into one file, with their attributes into the steps.
pub fn keep_before(journal: &mut ChangeJournal, dirs: &mut Dirs, dir: &Path) -> Result<(), ChangeError> {
    let file = File::options().write(true).create_new(true).mode(0o600).open(dir.join(BEFORE_FILE));
    let mut file = file.map_err(ChangeError::Journal)?;
    let mut at = 0;
    for step in &mut journal.steps.steps {
        let shown = journal.steps.roots[step.root].path.join(&step.path);
        let read = ChangeError::io("read", &shown);
        let Some(old) = &mut step.old else { continue };
        let (parent, name) = split(&step.path);
        let parent = dirs.get(step.root, parent).map_err(ChangeError::io("open", &shown))?;
        match old.kind {
            Kind::Dir => {}
            Kind::Link => {
                let target = rustix::fs::readlinkat(&*parent, name, Vec::new()).map_err(|e| read(e.into()))?;
                old.link = Some(target.into_bytes());
            }
            Kind::File => {
                let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
                let source = rustix::fs::openat(&*parent, name, flags, Mode::empty()).map_err(io::Error::from);
                let source = source.and_then(|source| Ok((Seen::of(&rustix::fs::fstat(&source)?), source)));
                let (seen, source) = source.map_err(read)?;
                if seen != old.seen {
                    return Err(ChangeError::Conflict(vec![shown]));
                }
                old.xattrs = xattrs(&source);
                let (hash, len) = copy(&mut File::from(source), &mut file).map_err(ChangeError::io("keep", &shown))?;
                (old.sha256, old.at) = (Some(hash), Some(at));
                at += len;
            }
        }
    }
    file.sync_data().map_err(ChangeError::Journal)
}

/// Makes the new things beside their targets, durable. `journal` gets their identities.
pub fn make_temps(
    journal: &mut ChangeJournal,
    contents: Vec<Option<Fresh>>,
    dirs: &mut Dirs,
) -> Result<(), ChangeError> {
    // Synced together: the first sync makes most of the others durable too.
    let mut unsynced: Vec<(File, PathBuf)> = Vec::new();
    for (at, fresh) in contents.into_iter().enumerate() {
        let Some(fresh) = fresh else { continue };
        if unsynced.len() >= MAX_UNSYNCED {
            sync(&mut unsynced)?;
        }
        let step = &mut journal.steps.steps[at];
        let shown = journal.steps.roots[step.root].path.join(&step.path);
        let temp_dir = &journal.steps.dirs[step.temp_dir];
        let dir = dirs.get(temp_dir.root, &temp_dir.path).map_err(|source| stale(source, &shown))?;
        let NewThing { id, sha256, file } = make(&dir, step, fresh).map_err(ChangeError::io("write", &shown))?;
        if let Some(new) = &mut step.new {
            (new.id, new.sha256) = (Some(id), sha256);
        }
        unsynced.extend(file.map(|file| (file, shown)));
        if at == 0 {
            hooks::at("changes.temp");
        }
    }
    sync(&mut unsynced)
}

/// A new thing.
struct NewThing {
    id: FileId,
    sha256: Option<String>,
    /// A file that is not durable yet.
    file: Option<File>,
}

/// Makes files durable: all are on their way to the disk before the first is waited for.
fn sync(files: &mut Vec<(File, PathBuf)>) -> Result<(), ChangeError> {
    if files.len() > 1 {
        for (file, _) in files.iter() {
            // Only to be faster: the sync below is what counts.
            let _ = sys::start_writeback(file);
        }
    }
    for (file, shown) in files.drain(..) {
        file.sync_all().map_err(ChangeError::io("sync", &shown))?;
    }
    Ok(())
}

/// A directory that is another one now is a conflict.
pub fn stale(source: io::Error, shown: &Path) -> ChangeError {
    match source.raw_os_error() {
        Some(libc::ESTALE | libc::ELOOP | libc::ENOTDIR | libc::ENOENT) => ChangeError::Conflict(vec![shown.into()]),
        _ => ChangeError::Io { doing: "open", path: shown.into(), source },
    }
}

/// Writes the journal in a state.
pub fn record(journal: &mut ChangeJournal, dir: &Path, state: ChangeState) -> Result<(), ChangeError> {
    journal.state = state;
    journal.write(dir).map_err(ChangeError::Journal)
}

fn make(dir: &OwnedFd, step: &Step, fresh: Fresh) -> io::Result<NewThing> {
    let name = step.temp.as_str();
    let made = match fresh {
        Fresh::Dir { mode } => {
            rustix::fs::mkdirat(dir, name, Mode::from_raw_mode(0o777))?;
            if let Some(mode) = mode {
                rustix::fs::chmodat(dir, name, Mode::from_raw_mode(mode), AtFlags::empty())?;
            }
            None
        }
        Fresh::Link { target } => {
            rustix::fs::symlinkat(&target, dir, name)?;
            None
        }
        Fresh::File { content, attributes } => Some(make_file(dir, step, content, attributes)?),
    };
    let stat = rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW)?;
    let (sha256, file) = made.map_or((None, None), |(sha256, file)| (Some(sha256), Some(file)));
    Ok(NewThing { id: FileId::of(&stat), sha256, file })
}

fn make_file(dir: &OwnedFd, step: &Step, content: Content, attributes: Attributes) -> io::Result<(String, File)> {
    let before = step.old.as_ref().filter(|old| old.kind == Kind::File);
    let mode = attributes.mode.or(before.map(|old| old.mode));
    // A file with a mode of its own is open to no other user until it has it.
    let first = if mode.is_some() { 0o600 } else { 0o666 };
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(dir, step.temp.as_str(), flags, Mode::from_raw_mode(first))?);
    let hash = match content {
        Content::Bytes(bytes) => {
            file.write_all(&bytes)?;
            hex(&sha2::Sha256::digest(&bytes).into())
        }
        Content::Beneath { dir, path } => copy(&mut open_beneath(&dir, &path)?, &mut file)?.0,
    };
    let owner = attributes.owner.or(before.map(|old| (old.uid, old.gid)));
    if let Some((uid, gid)) = owner {
        let stat = rustix::fs::fstat(&file)?;
        if (stat.st_uid, stat.st_gid) != (uid, gid) {
            // Where it may: only root gives files away. The group alone may be possible.
            let group = Some(Gid::from_raw(gid));
            let _ = rustix::fs::fchown(&file, Some(Uid::from_raw(uid)), group)
                .or_else(|_| rustix::fs::fchown(&file, None, group));
        }
    }
    let kept = match attributes.xattrs {
        Some(xattrs) => xattrs,
        None => match before {
            None => Vec::new(),
            Some(_) => old_xattrs(dir, step)?,
        },
    };
    for (name, value) in kept {
        // Some belong to the system, and the file has its own.
        let _ = CString::new(name).map(|name| rustix::fs::fsetxattr(&file, &name, &value, XattrFlags::empty()));
    }
    if let Some(mode) = mode {
        // Last: a change of the owner clears bits of it.
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
    }
    Ok((hash, file))
}

/// Opens a regular file. No link is followed.
fn open_beneath(dir: &OwnedFd, path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    let file = File::from(rustix::fs::openat2(dir, path, flags, Mode::empty(), resolve)?);
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")),
    }
}

/// The attributes of the file that a step replaces, which is beside its temporary name.
fn old_xattrs(dir: &OwnedFd, step: &Step) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    if let Some(old) = step.old.as_ref().filter(|old| old.at.is_some()) {
        return Ok(old.xattrs.clone());
    }
    let (_, name) = split(&step.path);
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(xattrs(&rustix::fs::openat(dir, name, flags, Mode::empty())?))
}

fn xattrs(file: &impl AsFd) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = Vec::new();
    // Most files have none: the size is asked for first, without a buffer.
    match rustix::fs::flistxattr(file, &mut [] as &mut [u8]) {
        Ok(0) | Err(_) => return Vec::new(),
        Ok(len) => names.resize(len.min(MAX_XATTR_LEN), 0),
    }
    let Ok(len) = rustix::fs::flistxattr(file, &mut names[..]) else { return Vec::new() };
    let mut all = Vec::new();
    for name in names[..len].split(|byte| *byte == 0).filter(|name| !name.is_empty()) {
        let mut value = vec![0; MAX_XATTR_LEN];
        let Ok(c_name) = CString::new(name) else { continue };
        if let Ok(len) = rustix::fs::fgetxattr(file, &c_name, &mut value[..]) {
            value.truncate(len);
            all.push((name.to_vec(), value));
        }
    }
    all
}

/// Copies all bytes, and returns their hash and number.
fn copy(from: &mut File, to: &mut File) -> io::Result<(String, u64)> {
    let (mut hash, mut total, mut buf) = (sha2::Sha256::new(), 0, vec![0; 64 * 1024]);
    loop {
        match from.read(&mut buf) {
            Ok(0) => return Ok((hex(&hash.finalize().into()), total)),
            Ok(n) => {
                hash.update(&buf[..n]);
                to.write_all(&buf[..n])?;
                total += n as u64;
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// The directory and the name of a target.
pub fn split(path: &Path) -> (&Path, &std::ffi::OsStr) {
    (path.parent().unwrap_or(Path::new("")), path.file_name().unwrap_or_default())
}

/// The path of a temporary name, for messages.
pub fn temp_path(journal: &ChangeJournal, step: &Step) -> PathBuf {
    let dir = &journal.steps.dirs[step.temp_dir];
    journal.steps.roots[dir.root].path.join(&dir.path).join(&step.temp)
}
