//! Finds the file that a path means, judges it, and opens the way to it without following anything again.
//!
//! The path is resolved once, links included. What came out is judged, and then opened from the root's own descriptor
//! without links: what was swapped in between is another file, or none, and the call ends.

use super::error::FsError;
use super::names::Similar;
use super::roots::{Access, Limits, RootPlace, check};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

/// Names of a directory that are compared with one that is missing.
const MAX_COMPARED_NAMES: usize = 10_000;
/// Links after each other, as the kernel limits them.
const MAX_LINKS: usize = 40;

/// A path that was judged.
#[derive(Debug)]
pub struct Resolved {
    /// Absolute, without links.
    pub path: PathBuf,
    /// The directory of the last name that exists, opened with `O_PATH`.
    pub parent: OwnedFd,
    /// Directories beneath `parent` that do not exist.
    pub missing_dirs: Vec<OsString>,
    pub name: OsString,
    /// The file. None: it does not exist.
    pub stat: Option<Stat>,
}

/// Returns the absolute form of a path that a caller gave, with its links and `..`.
pub fn absolute(path: &str, cwd: Option<&str>) -> Result<PathBuf, FsError> {
    if path.is_empty() || path.contains('\0') {
        return Err(FsError::param("path", "must be a path, without NUL"));
    }
    let path = Path::new(path);
    if path.is_absolute() {
        return Ok(path.into());
    }
    match cwd {
        Some(cwd) if cwd.starts_with('/') && !cwd.contains('\0') => Ok(Path::new(cwd).join(path)),
        Some(_) => Err(FsError::param("cwd", "must be absolute")),
        None => Err(FsError::param("path", "is relative; give cwd, or an absolute path")),
    }
}

/// Resolves a path and judges it.
pub fn resolve(limits: Option<&Limits>, asked: &Path, access: Access) -> Result<Resolved, FsError> {
    let mut existing = asked.to_owned();
    let mut missing: Vec<OsString> = Vec::new();
    let found = loop {
        match open_path(&existing) {
            Ok(fd) => break fd,
            Err(Errno::NOENT) => {
                if is_link(&existing) {
                    return Err(FsError::WrongType { path: existing, found: "a link to nothing", hint: "" });
                }
                let last = existing.components().next_back();
                let (Some(Component::Normal(name)), Some(parent)) = (last, existing.parent()) else {
                    return Err(not_found(asked, None));
                };
                missing.push(name.to_owned());
                existing = parent.to_owned();
            }
            Err(e) => return Err(open_error(asked, e)),
        }
    };
    missing.reverse();
    let found_stat = rustix::fs::fstat(&found).map_err(|e| FsError::io("stat", asked, e))?;
    let is_dir = FileType::from_raw_mode(found_stat.st_mode) == FileType::Directory;
    let base = if is_dir { real_path(&found) } else { real_file(&existing) };
    let base = base.map_err(|e| FsError::io("resolve", asked, e))?;
    let real = missing.iter().fold(base.clone(), |path, name| path.join(name));
    let inside =
        check(limits, asked, &real, access).map_err(|refusal| FsError::Refused { path: real.clone(), refusal })?;
    let (root, root_path) = match (inside, limits) {
        (RootPlace::Root(index), Some(limits)) => {
            (Some(limits.roots[index].fd.as_fd()), limits.roots[index].path.as_path())
        }
        _ => (None, Path::new("/")),
    };
    let swapped = || FsError::Conflict {
        path: real.clone(),
        why: "a directory on the way was swapped meanwhile; nothing was done".into(),
        sha256: None,
    };
    if !missing.is_empty() {
        if !is_dir {
            return Err(FsError::WrongType { path: base, found: "not a directory", hint: "" });
        }
        let parent = open_beneath(root, root_path, &base).map_err(|e| beneath_error(&base, e, swapped()))?;
        if !is_same(&parent, &found_stat)? {
            return Err(swapped());
        }
        let name = missing.pop().unwrap_or_default();
        return Ok(Resolved { path: real, parent, missing_dirs: missing, name, stat: None });
    }
    let (dir, name) = match (real.parent(), real.file_name()) {
        // The root directory itself, and a root of the call, have no parent that may be used.
        (Some(dir), Some(name)) if real != root_path => (dir, name.to_owned()),
        _ => (real.as_path(), OsString::from(".")),
    };
    let parent = open_beneath(root, root_path, dir).map_err(|e| beneath_error(dir, e, swapped()))?;
    let stat = rustix::fs::statat(&parent, &name, AtFlags::SYMLINK_NOFOLLOW).map_err(|_| swapped())?;
    // A file may be replaced at any moment, as editors do, and is the file of that name then. A directory may not: neither the
    // one that is named, nor that of a file beneath a root.
    if is_dir && (stat.st_dev, stat.st_ino) != (found_stat.st_dev, found_stat.st_ino) {
        return Err(swapped());
    }
    if !is_dir && root.is_some() {
        let by_name = rustix::fs::statat(CWD, dir, AtFlags::SYMLINK_NOFOLLOW).map_err(|_| swapped())?;
        if !is_same(&parent, &by_name)? {
            return Err(swapped());
        }
    }
    Ok(Resolved { path: real, parent, missing_dirs: Vec::new(), name, stat: Some(stat) })
}

impl Resolved {
    pub fn file_type(&self) -> Option<FileType> {
        self.stat.as_ref().map(|stat| FileType::from_raw_mode(stat.st_mode))
    }

    /// Returns the error for a file that does not exist, with similar names.
    pub fn not_found(&self) -> FsError {
        not_found(&self.path, self.missing_dirs.is_empty().then_some(&self.parent))
    }

    /// Opens the file for reading if it is a regular one. Does not block, and a device is not even opened.
    pub fn open_regular(&self) -> Result<(OwnedFd, Stat), FsError> {
        let Some(stat) = &self.stat else { return Err(self.not_found()) };
        self.check_regular(stat)?;
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY;
        let fd = rustix::fs::openat(&self.parent, &self.name, flags, Mode::empty())
            .map_err(|e| FsError::io("open", &self.path, e))?;
        let opened = rustix::fs::fstat(&fd).map_err(|e| FsError::io("stat", &self.path, e))?;
        self.check_regular(&opened)?;
        Ok((fd, opened))
    }

    pub fn check_regular(&self, stat: &Stat) -> Result<(), FsError> {
        let (found, hint) = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => return Ok(()),
            FileType::Directory => ("a directory", "; fs.list lists it"),
            FileType::Fifo => ("a FIFO", ""),
            FileType::Socket => ("a socket", ""),
            FileType::CharacterDevice | FileType::BlockDevice => ("a device", ""),
            FileType::Symlink => ("a link", ""),
            // The kernel has no others.
            FileType::Unknown => ("of an unknown type", ""),
        };
        Err(FsError::WrongType { path: self.path.clone(), found, hint })
    }

    /// Opens the directory for reading.
    pub fn open_dir(&self) -> Result<OwnedFd, FsError> {
        match self.file_type() {
            None => return Err(self.not_found()),
            Some(FileType::Directory) => {}
            Some(_) => {
                let path = self.path.clone();
                return Err(FsError::WrongType { path, found: "not a directory", hint: "; fs.read reads a file" });
            }
        }
        open_dir_at(self.parent.as_fd(), &self.name).map_err(|e| FsError::io("open", &self.path, e))
    }
}

/// Opens a directory for reading, not through a link.
pub fn open_dir_at(parent: BorrowedFd<'_>, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    rustix::fs::openat(parent, name, flags, Mode::empty())
}

/// Opens a path with its links, but not through those of /proc that lead to descriptors.
fn open_path(path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    match rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
        // Before Linux 5.6, or a filter forbids it.
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::open(path, flags, Mode::empty()),
        opened => opened,
    }
}

/// Opens a directory beneath a root. `path` has no links, and none is followed.
fn open_beneath(root: Option<BorrowedFd<'_>>, root_path: &Path, path: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let slash;
    let root = match root {
        Some(root) => root,
        None => {
            slash = rustix::fs::open("/", flags, Mode::empty())?;
            slash.as_fd()
        }
    };
    let below = path.strip_prefix(root_path).map_err(|_| Errno::XDEV)?;
    let below = if below.as_os_str().is_empty() { Path::new(".") } else { below };
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    match rustix::fs::openat2(root, below, flags, Mode::empty(), resolve) {
        Err(Errno::NOSYS | Errno::PERM) => open_by_component(root, below),
        opened => opened,
    }
}

/// Does the same on kernels without `openat2`.
fn open_by_component(root: BorrowedFd<'_>, below: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut dir = rustix::fs::openat(root, ".", flags, Mode::empty())?;
    for component in below.components() {
        match component {
            Component::CurDir => {}
            Component::Normal(name) => dir = rustix::fs::openat(&dir, name, flags, Mode::empty())?,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return Err(Errno::XDEV),
        }
    }
    Ok(dir)
}

/// Returns the path of an open file, without links.
pub fn real_path(fd: &OwnedFd) -> io::Result<PathBuf> {
    let link = rustix::fs::readlink(format!("/proc/self/fd/{}", fd.as_raw_fd()), Vec::new())?;
    let path = PathBuf::from(OsString::from_vec(link.into_bytes()));
    // A removed file has a mark after its name; a name that ends so exists.
    if path.as_os_str().as_bytes().ends_with(b" (deleted)") && !path.exists() {
        return Err(io::ErrorKind::NotFound.into());
    }
    Ok(path)
}

/// Returns the path of a file that is not a directory, without links. The file itself is not asked: one that is replaced at
/// this moment would name itself by another name, or by none.
fn real_file(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_owned();
    for _ in 0..MAX_LINKS {
        let (Some(dir), Some(name)) = (path.parent(), path.file_name()) else { break };
        let dir = if dir.as_os_str().is_empty() { Path::new(".") } else { dir };
        let real = real_path(&open_path(dir)?)?.join(name);
        match rustix::fs::readlinkat(CWD, &real, Vec::new()) {
            Ok(to) => path = real.with_file_name(OsStr::from_bytes(to.as_bytes())),
            Err(Errno::INVAL) => return Ok(real),
            Err(e) => return Err(e.into()),
        }
    }
    Err(Errno::LOOP.into())
}

fn is_link(path: &Path) -> bool {
    path.symlink_metadata().is_ok_and(|found| found.is_symlink())
}

fn is_same(fd: &OwnedFd, stat: &Stat) -> Result<bool, FsError> {
    let opened = rustix::fs::fstat(fd).map_err(|e| FsError::io("stat", "a directory", e))?;
    Ok((opened.st_dev, opened.st_ino) == (stat.st_dev, stat.st_ino))
}

fn open_error(path: &Path, e: Errno) -> FsError {
    match e {
        Errno::NOTDIR => FsError::WrongType { path: path.into(), found: "beneath a file", hint: "" },
        Errno::LOOP => FsError::param("path", "leads through a loop of links, or a link of /proc to a descriptor"),
        Errno::NAMETOOLONG => FsError::param("path", "is too long for the file system"),
        e => FsError::io("open", path, e),
    }
}

fn beneath_error(path: &Path, e: Errno, swapped: FsError) -> FsError {
    match e {
        Errno::LOOP | Errno::XDEV | Errno::NOENT | Errno::NOTDIR | Errno::AGAIN => swapped,
        e => FsError::io("open", path, e),
    }
}

/// Makes the error for a missing file. `dir` is its directory, if that exists.
fn not_found(path: &Path, dir: Option<&OwnedFd>) -> FsError {
    let names = |dir: &OwnedFd| {
        let wanted = path.file_name().unwrap_or_default().to_string_lossy();
        let mut similar = Similar::to(&wanted);
        let opened = open_dir_at(dir.as_fd(), OsStr::new(".")).ok()?;
        let entries = Dir::new(opened).ok()?.take(MAX_COMPARED_NAMES).map_while(Result::ok);
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        names.filter(|name| name != "." && name != "..").for_each(|name| similar.add(&name));
        Some(similar.into_names())
    };
    FsError::NotFound { path: path.into(), similar: dir.and_then(names).unwrap_or_default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::error::Refusal;
    use crate::sandbox::plan::Judged;
    use std::os::unix::fs::symlink;

    fn tree() -> (tempfile::TempDir, PathBuf) {
        let dir = tempfile::tempdir().expect("a directory");
        let base = dir.path().canonicalize().expect("a path");
        std::fs::create_dir_all(base.join("root/sub")).expect("directories");
        std::fs::write(base.join("root/sub/file"), "x").expect("a file");
        std::fs::write(base.join("outside"), "x").expect("a file");
        (dir, base)
    }

    fn limits(base: &Path) -> Limits {
        Limits { roots: vec![Judged::open(&base.join("root")).expect("a root")], ..Limits::default() }
    }

    #[test]
    fn links_inside_a_root_are_followed_and_those_out_of_it_are_refused() {
        let (_dir, base) = tree();
        symlink("sub", base.join("root/relative")).expect("a link");
        symlink(base.join("root/sub"), base.join("root/absolute")).expect("a link");
        symlink(base.join("outside"), base.join("root/out")).expect("a link");
        symlink(&base, base.join("root/up")).expect("a link");
        let limits = limits(&base);
        let resolve = |path: &str| resolve(Some(&limits), &base.join(path), Access::Write);
        for path in ["root/relative/file", "root/absolute/file", "root/sub/../sub/file"] {
            assert_eq!(resolve(path).expect(path).path, base.join("root/sub/file"));
        }
        for path in ["root/out", "root/up/outside", "root/../outside", "root/sub/../../outside", "root/up/new"] {
            let error = resolve(path).expect_err(path);
            assert!(matches!(error, FsError::Refused { refusal: Refusal::Escapes, .. }), "{path}: {error:?}");
        }
    }

    #[test]
    fn a_new_file_has_the_directories_that_are_missing() {
        let (_dir, base) = tree();
        let new = resolve(None, &base.join("root/a/b/c"), Access::Write).expect("a place");
        assert_eq!((new.missing_dirs, new.name), (vec!["a".into(), "b".into()], "c".into()));
        assert_eq!(new.path, base.join("root/a/b/c"));
        let error = resolve(None, &base.join("root/a/../b"), Access::Write).expect_err("not through a missing one");
        assert!(matches!(error, FsError::NotFound { .. }), "{error:?}");
        let error = resolve(None, &base.join("outside/x"), Access::Write).expect_err("a file on the way");
        assert!(matches!(error, FsError::WrongType { .. }), "{error:?}");
    }

    #[test]
    fn a_root_whose_name_was_given_to_another_directory_is_refused() {
        let (_dir, base) = tree();
        let limits = limits(&base);
        std::fs::rename(base.join("root"), base.join("moved")).expect("renamed");
        std::fs::create_dir_all(base.join("root/sub")).expect("directories");
        std::fs::write(base.join("root/sub/file"), "other").expect("a file");
        for path in ["root/sub/file", "root/sub/new"] {
            let error = resolve(Some(&limits), &base.join(path), Access::Write).expect_err(path);
            assert!(matches!(error, FsError::Conflict { .. }), "{path}: {error:?}");
        }
    }

    #[test]
    fn directories_are_opened_by_component_where_the_kernel_lacks_more() {
        let (_dir, base) = tree();
        symlink("sub", base.join("root/link")).expect("a link");
        let root = rustix::fs::open(base.join("root"), OFlags::PATH, Mode::empty()).expect("a directory");
        assert!(open_by_component(root.as_fd(), Path::new("sub")).is_ok());
        for path in ["link", "..", "sub/.."] {
            assert!(open_by_component(root.as_fd(), Path::new(path)).is_err(), "{path}");
        }
    }
}
