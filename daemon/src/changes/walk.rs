//! Finds places beneath a root. Every directory is opened by its name in the one before, and no call of the kernel follows
//! a link: a path that is changed meanwhile leads nowhere else.
//!
//! Links are read and followed here, as long as they stay beneath the root. That needs no `openat2`, which some kernels and
//! filters do not have, and gives the real path on the way.

use super::FileId;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Links that one path may lead through, as in the kernel.
const MAX_LINKS: usize = 40;

/// An open directory beneath which changes stay.
#[derive(Debug)]
pub struct Root {
    /// Its real path.
    pub path: PathBuf,
    pub id: FileId,
    fd: OwnedFd,
}

/// The place of a name beneath a root.
#[derive(Debug)]
pub struct ChangePlace {
    /// The deepest directory on the way that exists.
    pub dir: OwnedFd,
    pub dir_id: FileId,
    /// Its real path, from the root.
    pub dir_path: PathBuf,
    /// Directories between it and the name that do not exist yet.
    pub missing: Vec<OsString>,
    pub name: OsString,
}

/// The treatment of a link at the end of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastLink {
    Follow,
    /// The place is that of the link.
    Keep,
}

/// The reason why a path has no place beneath a root.
#[derive(Debug)]
pub enum WalkError {
    /// It leads out of the root, by `..` or through a link.
    Escapes {
        link: Option<PathBuf>,
    },
    /// It names a directory.
    Directory,
    Io(io::Error),
}

impl From<Errno> for WalkError {
    fn from(e: Errno) -> WalkError {
        WalkError::Io(e.into())
    }
}

impl Root {
    /// Opens the directory at `path`, through links.
    pub fn open(path: &Path) -> io::Result<Root> {
        Root::reopen(&std::fs::canonicalize(path)?)
    }

    /// Opens the directory at a real path.
    pub fn reopen(path: &Path) -> io::Result<Root> {
        let fd = rustix::fs::open(path, way_flags(), Mode::empty())?;
        Root::of(path.into(), fd)
    }

    /// Takes an open directory with its real path.
    pub fn of(path: PathBuf, fd: OwnedFd) -> io::Result<Root> {
        let id = FileId::of(&rustix::fs::fstat(&fd)?);
        Ok(Root { path, id, fd })
    }

    /// Returns the part of an absolute path beneath this root. None: it is elsewhere.
    pub fn relative<'p>(&self, path: &'p Path) -> Option<&'p Path> {
        path.strip_prefix(&self.path).ok()
    }

    /// Finds the place of a path from the root.
    pub fn find(&self, path: &Path, last: LastLink) -> Result<ChangePlace, WalkError> {
        let mut walk = Walk { root: self, dirs: Vec::new(), names: VecDeque::new(), links: 0 };
        walk.push(path)?;
        walk.run(last)
    }

    /// Opens a directory by its real path from the root. A link on the way is refused.
    pub fn open_dir(&self, path: &Path) -> io::Result<OwnedFd> {
        let mut dir: Option<OwnedFd> = None;
        for component in path.components() {
            let Component::Normal(name) = component else { return Err(Errno::XDEV.into()) };
            let at = dir.as_ref().map_or(self.fd.as_fd(), AsFd::as_fd);
            dir = Some(rustix::fs::openat(at, name, way_flags(), Mode::empty())?);
        }
        let at = dir.as_ref().map_or(self.fd.as_fd(), AsFd::as_fd);
        Ok(rustix::fs::openat(at, ".", dir_flags(), Mode::empty())?)
    }
}

impl AsFd for Root {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl ChangePlace {
    /// The path from the root.
    pub fn path(&self) -> PathBuf {
        let dir = self.missing.iter().fold(self.dir_path.clone(), |path, name| path.join(name));
        dir.join(&self.name)
    }

    /// Looks at what has the name. None: nothing.
    pub fn stat(&self) -> io::Result<Option<Stat>> {
        if self.missing.is_empty() { stat_at(&self.dir, &self.name) } else { Ok(None) }
    }

    /// Opens the regular file at this place for reading.
    pub fn open(&self) -> io::Result<OwnedFd> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        Ok(rustix::fs::openat(&self.dir, &self.name, flags, Mode::empty())?)
    }
}

/// Looks at a name in a directory, and does not follow a link.
pub fn stat_at(dir: &OwnedFd, name: &OsStr) -> io::Result<Option<Stat>> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// A directory on the way need not be readable.
fn way_flags() -> OFlags {
    OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

fn dir_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

struct Walk<'r> {
    root: &'r Root,
    /// The directories on the way, without the root.
    dirs: Vec<(OsString, OwnedFd)>,
    /// The rest of the path.
    names: VecDeque<OsString>,
    links: usize,
}

impl Walk<'_> {
    /// Puts a path before the rest.
    fn push(&mut self, path: &Path) -> Result<(), WalkError> {
        let path = match path.is_absolute() {
            false => path,
            true => {
                self.dirs.clear();
                self.root.relative(path).ok_or(WalkError::Escapes { link: None })?
            }
        };
        for component in path.components().rev() {
            match component {
                Component::Normal(name) => self.names.push_front(name.into()),
                Component::ParentDir => self.names.push_front("..".into()),
                Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
            }
        }
        Ok(())
    }

    fn at(&self) -> BorrowedFd<'_> {
        self.dirs.last().map_or(self.root.fd.as_fd(), |(_, fd)| fd.as_fd())
    }

    fn path(&self) -> PathBuf {
        self.dirs.iter().map(|(name, _)| name).collect()
    }

    fn run(mut self, last: LastLink) -> Result<ChangePlace, WalkError> {
        while let Some(name) = self.names.pop_front() {
            if name == ".." {
                // The root of the file system is its own parent.
                if self.dirs.pop().is_none() && self.root.path != Path::new("/") {
                    return Err(WalkError::Escapes { link: None });
                }
                continue;
            }
            let is_last = self.names.is_empty();
            let fd = match rustix::fs::openat(
                self.at(),
                &name,
                OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
                Mode::empty(),
            ) {
                Ok(fd) => fd,
                Err(Errno::NOENT) => return self.missing(name),
                Err(e) => return Err(e.into()),
            };
            match FileType::from_raw_mode(rustix::fs::fstat(&fd)?.st_mode) {
                FileType::Symlink if !is_last || last == LastLink::Follow => self.follow(&name, &fd)?,
                _ if is_last => return self.place(Vec::new(), name),
                FileType::Directory => self.dirs.push((name, fd)),
                _ => return Err(Errno::NOTDIR.into()),
            }
        }
        // The path ends in `..`, or is empty.
        Err(WalkError::Directory)
    }

    fn follow(&mut self, name: &OsStr, link: &OwnedFd) -> Result<(), WalkError> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(Errno::LOOP.into());
        }
        let target = rustix::fs::readlinkat(link, "", Vec::new())?;
        let at = self.path().join(name);
        let target = Path::new(OsStr::from_bytes(target.as_bytes()));
        self.push(target).map_err(|_| WalkError::Escapes { link: Some(at) })
    }

    /// Ends at the first name that does not exist.
    fn missing(mut self, first: OsString) -> Result<ChangePlace, WalkError> {
        let mut names: Vec<OsString> = std::iter::once(first).chain(self.names.drain(..)).collect();
        if names.iter().any(|name| name == "..") {
            return Err(Errno::NOENT.into());
        }
        let name = names.pop().ok_or(WalkError::Directory)?;
        self.place(names, name)
    }

    fn place(mut self, missing: Vec<OsString>, name: OsString) -> Result<ChangePlace, WalkError> {
        let dir_path = self.path();
        // Opened for reading: it is synced later.
        let dir = rustix::fs::openat(self.at(), ".", dir_flags(), Mode::empty())?;
        self.dirs.clear();
        let dir_id = FileId::of(&rustix::fs::fstat(&dir)?);
        Ok(ChangePlace { dir, dir_id, dir_path, missing, name })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn tree() -> tempfile::TempDir {
        let dir = tempfile::tempdir().expect("a directory");
        std::fs::create_dir_all(dir.path().join("root/sub")).expect("a fresh path");
        std::fs::write(dir.path().join("root/sub/f"), "").expect("a fresh path");
        std::fs::write(dir.path().join("secret"), "").expect("a fresh path");
        for (target, link) in [
            ("sub", "root/in"),
            ("../secret", "root/out"),
            ("../../secret", "root/sub/out"),
            ("..", "root/up"),
            ("loop", "root/loop"),
            ("sub/new", "root/dangling"),
        ] {
            symlink(target, dir.path().join(link)).expect("a fresh path");
        }
        symlink(dir.path().join("root/sub"), dir.path().join("root/abs")).expect("a fresh path");
        symlink("/etc", dir.path().join("root/etc")).expect("a fresh path");
        dir
    }

    #[test]
    fn places_beneath_a_root_have_their_real_path() {
        let dir = tree();
        let root = Root::open(&dir.path().join("root")).expect("it is there");
        let found = |path: &str| root.find(Path::new(path), LastLink::Follow).map(|place| place.path());
        for (path, real) in [
            ("sub/f", "sub/f"),
            ("./in/f", "sub/f"),
            ("abs/f", "sub/f"),
            ("sub/../in/../sub/f", "sub/f"),
            ("new/deep/f", "new/deep/f"),
            ("dangling", "sub/new"),
        ] {
            assert_eq!(found(path).expect(path), Path::new(real), "{path}");
        }
        let link = root.find(Path::new("dangling"), LastLink::Keep).expect("it is there");
        assert_eq!(link.path(), Path::new("dangling"));
        assert_eq!(root.find(Path::new("new/deep/f"), LastLink::Keep).expect("a place").missing, ["new", "deep"]);
    }

    #[test]
    fn a_path_that_leads_out_of_a_root_is_refused() {
        let dir = tree();
        let root = Root::open(&dir.path().join("root")).expect("it is there");
        for path in ["../secret", "sub/../../secret", "out", "sub/out", "up/secret", "etc/passwd", "/etc/passwd"] {
            let error = root.find(Path::new(path), LastLink::Follow).expect_err(path);
            assert!(matches!(error, WalkError::Escapes { .. }), "{path}: {error:?}");
        }
        for path in ["loop", "new/../x", "sub/f/x"] {
            assert!(matches!(root.find(Path::new(path), LastLink::Follow), Err(WalkError::Io(_))), "{path}");
        }
        for path in ["", ".", "sub/.."] {
            assert!(matches!(root.find(Path::new(path), LastLink::Follow), Err(WalkError::Directory)), "{path}");
        }
    }
}
