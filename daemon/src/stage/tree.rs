//! Reads a directory tree that others may change meanwhile. No link is followed, and no path leads out of it.

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use sha2::{Digest, Sha256};
use std::ffi::{CStr, OsString};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Names of extended attributes that belong to the overlay, and labels that a new file gets from its directory.
const OVERLAY_XATTRS: [&[u8]; 3] = [b"user.overlay.", b"trusted.overlay.", b"security.selinux"];

/// An error with the path that it is about.
#[derive(Debug)]
pub struct TreeError {
    pub doing: &'static str,
    pub path: PathBuf,
    pub source: io::Error,
}

pub type TreeResult<T> = Result<T, TreeError>;

/// An open directory and its path.
#[derive(Debug)]
pub struct Tree {
    pub path: PathBuf,
    pub fd: Arc<OwnedFd>,
}

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    File,
    Dir,
    Link,
    /// The mark of the overlay for a name that was removed.
    Whiteout,
    /// A pipe, a socket or a device.
    Special,
}

/// An entry as it was seen.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    pub kind: EntryKind,
    pub stat: Stat,
}

impl Entry {
    fn of(stat: Stat) -> Entry {
        let kind = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => EntryKind::File,
            FileType::Directory => EntryKind::Dir,
            FileType::Symlink => EntryKind::Link,
            FileType::CharacterDevice if stat.st_rdev == 0 => EntryKind::Whiteout,
            _ => EntryKind::Special,
        };
        Entry { kind, stat }
    }

    /// Returns the permissions.
    pub fn mode(&self) -> u32 {
        self.stat.st_mode & 0o7777
    }

    pub fn owner(&self) -> (u32, u32) {
        (self.stat.st_uid, self.stat.st_gid)
    }

    pub fn size(&self) -> u64 {
        self.stat.st_size.cast_unsigned()
    }

    pub fn mtime_ns(&self) -> i64 {
        nanoseconds(self.stat.st_mtime, self.stat.st_mtime_nsec)
    }

    pub fn ctime_ns(&self) -> i64 {
        nanoseconds(self.stat.st_ctime, self.stat.st_ctime_nsec)
    }
}

fn nanoseconds(seconds: impl TryInto<i64>, nanoseconds: impl TryInto<i64>) -> i64 {
    let seconds = seconds.try_into().unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds.try_into().unwrap_or(0))
}

impl Tree {
    pub fn open(path: &Path) -> TreeResult<Tree> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = rustix::fs::open(path, flags, Mode::empty()).map_err(failed("open", path))?;
        Ok(Tree { path: path.into(), fd: Arc::new(fd) })
    }

    /// Returns the identity of the directory itself.
    pub fn id(&self) -> TreeResult<(u64, u64)> {
        let stat = rustix::fs::fstat(&self.fd).map_err(failed("look at", &self.path))?;
        Ok((stat.st_dev, stat.st_ino))
    }

    fn open_at(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let resolve =
            ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS | ResolveFlags::NO_XDEV;
        rustix::fs::openat2(&self.fd, path, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty(), resolve)
    }

    /// Returns the entry at a path. None: there is nothing, or something above it is not a directory.
    pub fn entry(&self, path: &Path) -> TreeResult<Option<Entry>> {
        match self.open_at(path, OFlags::PATH) {
            Ok(fd) => Ok(Some(Entry::of(rustix::fs::fstat(fd).map_err(self.failed("look at", path))?))),
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
            Err(e) => Err(self.failed("look at", path)(e)),
        }
    }

    /// Lists a directory in the order of names.
    pub fn list(&self, path: &Path) -> TreeResult<Vec<(OsString, Entry)>> {
        let dir = self.open_at(path, OFlags::RDONLY | OFlags::DIRECTORY).map_err(self.failed("list", path))?;
        let mut all = Vec::new();
        for entry in Dir::read_from(&dir).map_err(self.failed("list", path))? {
            let entry = entry.map_err(self.failed("list", path))?;
            let name: &CStr = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            match rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) => all.push((OsString::from_vec(name.to_bytes().to_vec()), Entry::of(stat))),
                // It was removed meanwhile.
                Err(Errno::NOENT) => {}
                Err(e) => return Err(self.failed("look at", path)(e)),
            }
        }
        all.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(all)
    }

    /// Opens a regular file for reading.
    pub fn open_file(&self, path: &Path) -> TreeResult<OwnedFd> {
        let fd = self.open_at(path, OFlags::RDONLY | OFlags::NONBLOCK).map_err(self.failed("open", path))?;
        let stat = rustix::fs::fstat(&fd).map_err(self.failed("look at", path))?;
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Ok(fd),
            _ => Err(self.failed("open", path)(Errno::INVAL)),
        }
    }

    /// Hashes the bytes of a regular file.
    pub fn hash(&self, path: &Path) -> TreeResult<[u8; 32]> {
        let mut file = File::from(self.open_file(path)?);
        let (mut hash, mut buf) = (Sha256::new(), vec![0; 64 * 1024]);
        loop {
            match file.read(&mut buf) {
                Ok(0) => return Ok(hash.finalize().into()),
                Ok(n) => hash.update(&buf[..n]),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(TreeError { doing: "read", path: self.path.join(path), source }),
            }
        }
    }

    /// Reads a regular file. None: it is longer than `max_len`.
    pub fn read(&self, path: &Path, max_len: u64) -> TreeResult<Option<Vec<u8>>> {
        let mut bytes = Vec::new();
        let file = File::from(self.open_file(path)?);
        let read = file.take(max_len + 1).read_to_end(&mut bytes);
        read.map_err(|source| TreeError { doing: "read", path: self.path.join(path), source })?;
        Ok((bytes.len() as u64 <= max_len).then_some(bytes))
    }

    /// Returns the target of a link.
    pub fn read_link(&self, path: &Path) -> TreeResult<PathBuf> {
        let fd = self.open_at(path, OFlags::PATH).map_err(self.failed("open", path))?;
        let target = rustix::fs::readlinkat(&fd, c"", Vec::new()).map_err(self.failed("read", path))?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    }

    /// Returns the extended attributes that a commit carries over, in the order of their names. Not those of links.
    pub fn xattrs(&self, path: &Path) -> TreeResult<Vec<(Vec<u8>, Vec<u8>)>> {
        let Some(link) = self.name_in_proc(path)? else { return Ok(Vec::new()) };
        let all = match read_grown(|buf| rustix::fs::listxattr(&link.1, buf)) {
            Err(Errno::NOTSUP) => return Ok(Vec::new()),
            read => read.map_err(self.failed("read", path))?,
        };
        let names = all.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let mut xattrs = Vec::new();
        for name in names.filter(|name| !OVERLAY_XATTRS.iter().any(|prefix| name.starts_with(prefix))) {
            let shown = std::ffi::OsStr::from_bytes(name);
            match read_grown(|buf| rustix::fs::getxattr(&link.1, shown, buf)) {
                Ok(value) => xattrs.push((name.to_vec(), value)),
                Err(Errno::NODATA | Errno::NOTSUP) => {}
                Err(e) => return Err(self.failed("read", path)(e)),
            }
        }
        xattrs.sort();
        Ok(xattrs)
    }

    /// Sets the permissions of a directory. One that is not there any more is left alone.
    pub fn set_dir_mode(&self, path: &Path, mode: u32) -> TreeResult<()> {
        let dir = match self.open_at(path, OFlags::PATH | OFlags::DIRECTORY) {
            Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
            opened => opened.map_err(self.failed("open", path))?,
        };
        let link = format!("/proc/self/fd/{}", dir.as_raw_fd());
        rustix::fs::chmod(link, Mode::from_raw_mode(mode)).map_err(self.failed("change the mode of", path))
    }

    /// Returns true if the overlay hides everything below this directory of its upper layer.
    pub fn is_opaque(&self, path: &Path) -> TreeResult<bool> {
        let Some(link) = self.name_in_proc(path)? else { return Ok(false) };
        for name in ["user.overlay.opaque", "trusted.overlay.opaque"] {
            match read_grown(|buf| rustix::fs::getxattr(&link.1, name, buf)) {
                Ok(value) => return Ok(value == b"y"),
                Err(Errno::NODATA | Errno::NOTSUP) => {}
                Err(e) => return Err(self.failed("read", path)(e)),
            }
        }
        Ok(false)
    }

    /// Returns true if the overlay copied this from the layer below before it was changed.
    pub fn is_copied_up(&self, path: &Path) -> TreeResult<bool> {
        let Some(link) = self.name_in_proc(path)? else { return Ok(false) };
        let names = ["user.overlay.origin", "trusted.overlay.origin"];
        Ok(names.iter().any(|name| read_grown(|buf| rustix::fs::getxattr(&link.1, *name, buf)).is_ok()))
    }

    /// Opens a path without any permission for it, and returns a name by which its attributes can be read. None for a link.
    fn name_in_proc(&self, path: &Path) -> TreeResult<Option<(OwnedFd, String)>> {
        let fd = self.open_at(path, OFlags::PATH).map_err(self.failed("open", path))?;
        let stat = rustix::fs::fstat(&fd).map_err(self.failed("look at", path))?;
        let is_link = FileType::from_raw_mode(stat.st_mode) == FileType::Symlink;
        let name = format!("/proc/self/fd/{}", fd.as_raw_fd());
        Ok((!is_link).then_some((fd, name)))
    }

    fn failed(&self, doing: &'static str, path: &Path) -> impl FnOnce(Errno) -> TreeError + use<> {
        failed(doing, &self.path.join(path))
    }
}

fn failed(doing: &'static str, path: &Path) -> impl FnOnce(Errno) -> TreeError + use<> {
    let path = path.to_path_buf();
    move |errno| TreeError { doing, path, source: errno.into() }
}

/// Calls `read` with a buffer that grows until the answer has room.
fn read_grown(read: impl Fn(&mut [u8]) -> Result<usize, Errno>) -> Result<Vec<u8>, Errno> {
    let mut buf = vec![0; 256];
    loop {
        match read(&mut buf) {
            Ok(len) => {
                buf.truncate(len);
                return Ok(buf);
            }
            Err(Errno::RANGE) if buf.len() < 1 << 20 => buf.resize(buf.len() * 4, 0),
            Err(e) => return Err(e),
        }
    }
}
