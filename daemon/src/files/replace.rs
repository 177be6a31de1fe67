//! Gives a name new content, all or nothing: a temporary file beside it is written, made durable and takes its place.
//!
//! A crash leaves the old or the new content, and at most the temporary file. Its name follows from that of the target, and
//! its lock ends with the daemon, so the next write of the same file removes it.

use super::content::hex_sha256;
use super::error::FsError;
use super::resolve::{Resolved, open_dir_at};
use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags, RenameFlags, Stat, XattrFlags};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, PoisonError};
use toold_proto::files::HardLinks;
use toold_shim::hooks;

/// Files that are being written. Two calls on one file take turns.
#[derive(Debug, Default)]
pub struct Writers {
    busy: Mutex<HashSet<PathBuf>>,
    freed: Condvar,
}

/// The turn of one call. Dropped: the next one has it.
pub struct Turn<'a> {
    writers: &'a Writers,
    path: PathBuf,
}

impl Writers {
    /// Waits until no other call writes the file.
    pub fn turn(&self, path: &Path) -> Turn<'_> {
        let mut busy = self.busy.lock().unwrap_or_else(PoisonError::into_inner);
        while !busy.insert(path.to_owned()) {
            busy = self.freed.wait(busy).unwrap_or_else(PoisonError::into_inner);
        }
        Turn { writers: self, path: path.to_owned() }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.writers.busy.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.path);
        self.writers.freed.notify_all();
    }
}

/// The content that the file must have when it is replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Before {
    Any,
    Absent,
    /// Hexadecimal.
    Sha256(String),
}

/// The new content of a file.
pub struct NewContent<'a> {
    pub bytes: &'a [u8],
    /// Permissions. None: those of the old file, or the usual ones.
    pub mode: Option<u32>,
    pub before: Before,
    pub create_dirs: bool,
}

/// Refuses a file with several names, unless its link is to be broken.
pub fn check_links(target: &Resolved, hard_links: HardLinks) -> Result<(), FsError> {
    let links = target.stat.as_ref().map_or(1, |stat| stat.st_nlink);
    if links <= 1 || hard_links == HardLinks::Break {
        return Ok(());
    }
    let why = format!(
        "it has {links} hard links, and the others would keep the old content; hard_links: \"break\" allows that"
    );
    Err(FsError::Conflict { path: target.path.clone(), why, sha256: None })
}

/// Replaces the file. Returns the properties that the new file could not get.
pub fn replace(target: &Resolved, new: &NewContent<'_>) -> Result<Vec<String>, FsError> {
    let failed = |doing: &'static str| move |e: Errno| FsError::io(doing, &target.path, e);
    let created;
    let dir: &OwnedFd = if target.missing_dirs.is_empty() {
        &target.parent
    } else if new.create_dirs {
        created = create_dirs(target)?;
        &created
    } else {
        return Err(target.not_found());
    };
    let name = temp_name(&target.name);
    let mut temp = create_temp(dir, &name, target)?;
    let remove_temp = RemoveOnDrop { dir, name: &name };
    temp.write_all(new.bytes).map_err(|e| FsError::io("write", &target.path, e))?;
    let not_kept = set_properties(&temp, target, new.mode)?;
    rustix::fs::fsync(&temp).map_err(failed("sync"))?;
    hooks::at("fs.written");
    swap(dir, &name, target, &new.before)?;
    hooks::at("fs.swapped");
    drop(remove_temp);
    // Without the right to read the directory its names cannot be synced, but they are written.
    if let Ok(readable) = open_dir_at(dir.as_fd(), OsStr::new(".")) {
        rustix::fs::fsync(&readable).map_err(failed("sync the directory of"))?;
    }
    Ok(not_kept)
}

/// Removes the temporary file, whatever it is now.
struct RemoveOnDrop<'a> {
    dir: &'a OwnedFd,
    name: &'a OsStr,
}

impl Drop for RemoveOnDrop<'_> {
    fn drop(&mut self) {
        // It is gone if it was renamed.
        let _ = rustix::fs::unlinkat(self.dir, self.name, AtFlags::empty());
    }
}

/// Returns the name of the temporary file: short, and always the same for a target.
fn temp_name(target: &OsStr) -> OsString {
    format!(".toold-{}.tmp", &hex_sha256(target.as_bytes())[..16]).into()
}

/// Creates the temporary file and locks it. Removes one that a crash left: no process has its lock.
fn create_temp(dir: &OwnedFd, name: &OsStr, target: &Resolved) -> Result<File, FsError> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    // A new file gets the usual permissions, less what the daemon's umask takes; another one those of the old file.
    let mode = if target.stat.is_some() { Mode::from_raw_mode(0o600) } else { Mode::from_raw_mode(0o666) };
    let failed = |doing: &'static str| move |e: Errno| FsError::io(doing, &target.path, e);
    for _ in 0..2 {
        match rustix::fs::openat(dir, name, flags, mode) {
            Ok(fd) => {
                rustix::fs::flock(&fd, FlockOperation::NonBlockingLockExclusive).map_err(failed("lock"))?;
                return Ok(fd.into());
            }
            Err(Errno::EXIST) => {}
            Err(e) => return Err(failed("create a temporary file beside")(e)),
        }
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let left = rustix::fs::openat(dir, name, flags, Mode::empty());
        if let Ok(left) = left
            && rustix::fs::flock(&left, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK)
        {
            break;
        }
        match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => {}
            Err(e) => return Err(failed("remove the left temporary file beside")(e)),
        }
    }
    let why = "another daemon writes it at this moment; try again".into();
    Err(FsError::Conflict { path: target.path.clone(), why, sha256: None })
}

/// Gives the new file the properties of the old one.
fn set_properties(temp: &File, target: &Resolved, mode: Option<u32>) -> Result<Vec<String>, FsError> {
    let failed = |doing: &'static str| move |e: Errno| FsError::io(doing, &target.path, e);
    let mut not_kept = Vec::new();
    let set_mode = |mode: u32| rustix::fs::fchmod(temp, Mode::from_raw_mode(mode)).map_err(failed("set the mode of"));
    let Some(stat) = &target.stat else {
        return mode.map_or(Ok(()), set_mode).map(|()| not_kept);
    };
    let own = rustix::fs::fstat(temp).map_err(failed("stat"))?;
    if (own.st_uid, own.st_gid) != (stat.st_uid, stat.st_gid) {
        let (uid, gid) = (rustix::fs::Uid::from_raw(stat.st_uid), rustix::fs::Gid::from_raw(stat.st_gid));
        if rustix::fs::fchown(temp, Some(uid), Some(gid)).is_err() {
            let _ = rustix::fs::fchown(temp, None, Some(gid));
            not_kept.push("owner".into());
        }
    }
    copy_xattrs(temp, target, &mut not_kept);
    // As the kernel does at a write: other content does not get the rights of the old one.
    let old = stat.st_mode & 0o7777;
    if mode.is_none() && old & 0o6000 != 0 {
        not_kept.push("set-user-ID and set-group-ID".into());
    }
    set_mode(mode.unwrap_or(old & 0o1777))?;
    Ok(not_kept)
}

fn copy_xattrs(temp: &File, target: &Resolved, not_kept: &mut Vec<String>) {
    // A file that cannot be read does not show its attributes.
    let Ok((old, _)) = target.open_regular() else { return };
    let Ok(len) = rustix::fs::flistxattr_query(&old) else { return };
    let mut names = vec![0; len];
    let Ok(len) = rustix::fs::flistxattr(&old, &mut names[..]) else { return };
    for name in names[..len].split(|b| *b == 0).filter(|name| !name.is_empty()) {
        let name = OsStr::from_bytes(name);
        let copied = rustix::fs::fgetxattr_query(&old, name).and_then(|len| {
            let mut value = vec![0; len];
            let len = rustix::fs::fgetxattr(&old, name, &mut value[..])?;
            rustix::fs::fsetxattr(temp, name, &value[..len], XattrFlags::empty())
        });
        if copied.is_err() {
            not_kept.push(format!("xattr {}", name.to_string_lossy()));
        }
    }
}

/// Puts the temporary file in the place of the target, if that is as it must be.
fn swap(dir: &OwnedFd, temp: &OsStr, target: &Resolved, before: &Before) -> Result<(), FsError> {
    let name = target.name.as_os_str();
    let failed = |e: Errno| FsError::io("replace", &target.path, e);
    match before {
        Before::Any => rustix::fs::renameat(dir, temp, dir, name).map_err(failed),
        Before::Absent => {
            let renamed = match rustix::fs::renameat_with(dir, temp, dir, name, RenameFlags::NOREPLACE) {
                Err(Errno::INVAL | Errno::NOSYS) => rustix::fs::linkat(dir, temp, dir, name, AtFlags::empty()),
                renamed => renamed,
            };
            renamed.map_err(|e| match e {
                Errno::EXIST => appeared(target),
                e => failed(e),
            })
        }
        Before::Sha256(expected) => match rustix::fs::renameat_with(dir, temp, dir, name, RenameFlags::EXCHANGE) {
            Ok(()) => {
                // The temporary name is that of the old file now, and no process can change which file it was.
                let found = hash_at(dir, temp);
                if found.as_ref() == Some(expected) {
                    return Ok(());
                }
                rustix::fs::renameat_with(dir, temp, dir, name, RenameFlags::EXCHANGE).map_err(failed)?;
                Err(changed(target, found))
            }
            Err(Errno::NOENT) => Err(changed(target, None)),
            // A file system that cannot exchange names: the moment between look and rename stays.
            Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
                let found = hash_at(dir, name);
                if found.as_ref() != Some(expected) {
                    return Err(changed(target, found));
                }
                rustix::fs::renameat(dir, temp, dir, name).map_err(failed)
            }
            Err(e) => Err(failed(e)),
        },
    }
}

pub fn appeared(target: &Resolved) -> FsError {
    let why = "it exists; nothing was written".into();
    FsError::Conflict { path: target.path.clone(), why, sha256: None }
}

pub fn changed(target: &Resolved, sha256: Option<String>) -> FsError {
    let why = match &sha256 {
        Some(_) => "it is not as expected: it was changed meanwhile; read it again; nothing was written",
        None => "it is not as expected: it does not exist; nothing was written",
    };
    FsError::Conflict { path: target.path.clone(), why: why.into(), sha256 }
}

fn hash_at(dir: &OwnedFd, name: &OsStr) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let mut file = File::from(rustix::fs::openat(dir, name, flags, Mode::empty()).ok()?);
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 64 * 1024]);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(read) => hash.update(&buffer[..read]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    Some(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Creates the missing directories, durable from the first on. Returns the last one.
fn create_dirs(target: &Resolved) -> Result<OwnedFd, FsError> {
    let failed = |doing: &'static str| move |e: Errno| FsError::io(doing, &target.path, e);
    let mut dir = open_dir_at(target.parent.as_fd(), OsStr::new(".")).map_err(failed("open the directory of"))?;
    for name in &target.missing_dirs {
        match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o777)) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(e) => return Err(failed("create the directory of")(e)),
        }
        let inner = open_dir_at(dir.as_fd(), name).map_err(failed("open the directory of"))?;
        rustix::fs::fsync(&dir).map_err(failed("sync the directory of"))?;
        dir = inner;
    }
    Ok(dir)
}

/// Returns the size of the file.
pub fn size(stat: &Stat) -> u64 {
    stat.st_size as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::resolve::resolve;
    use crate::files::roots::Access;

    fn target(path: &Path) -> Resolved {
        resolve(None, path, Access::Write).expect("a place")
    }

    fn content(bytes: &[u8], before: Before) -> NewContent<'_> {
        NewContent { bytes, mode: None, before, create_dirs: true }
    }

    #[test]
    fn a_file_that_changes_between_the_judgement_and_the_swap_is_left_alone() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        std::fs::write(&path, "one").expect("written");
        let judged = target(&path);
        std::fs::write(&path, "other").expect("written");
        let error = replace(&judged, &content(b"new", Before::Sha256(hex_sha256(b"one")))).expect_err("changed");
        let other = hex_sha256(b"other");
        assert!(matches!(&error, FsError::Conflict { sha256: Some(found), .. } if *found == other), "{error:?}");
        assert_eq!(std::fs::read(&path).expect("there"), b"other");
        let absent = replace(&judged, &content(b"new", Before::Absent)).expect_err("there");
        assert!(matches!(absent, FsError::Conflict { .. }), "{absent:?}");
        assert_eq!(std::fs::read_dir(dir.path()).expect("listed").count(), 1, "no temporary file is left");
    }

    #[test]
    fn a_temporary_file_of_a_crash_is_removed_and_one_in_use_is_not() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        let left = dir.path().join(temp_name(OsStr::new("file")));
        std::fs::write(&left, "left").expect("written");
        replace(&target(&path), &content(b"new", Before::Any)).expect("replaced");
        assert!(!left.exists());
        let used = File::create(&left).expect("created");
        rustix::fs::flock(&used, FlockOperation::LockExclusive).expect("locked");
        let error = replace(&target(&path), &content(b"newer", Before::Any)).expect_err("in use");
        assert!(matches!(error, FsError::Conflict { .. }), "{error:?}");
        assert_eq!((left.exists(), std::fs::read(&path).expect("there")), (true, b"new".to_vec()));
    }

    #[test]
    fn calls_on_one_file_take_turns_and_others_do_not_wait() {
        let writers = Writers::default();
        let first = writers.turn(Path::new("/a"));
        drop(writers.turn(Path::new("/b")));
        std::thread::scope(|scope| {
            let second = scope.spawn(|| drop(writers.turn(Path::new("/a"))));
            drop(first);
            second.join().expect("it had its turn");
        });
        assert!(writers.busy.lock().expect("free").is_empty());
    }
}
