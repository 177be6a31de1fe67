//! Removes a directory that a program filled as it liked: with directories that have no permissions, and deeper than any path
//! is long. `std::fs::remove_dir_all` needs a descriptor for each level and stops at a directory that cannot be listed.

use rustix::fs::{AtFlags, Dir, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::{CString, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Removes a directory and everything in it. A directory that is not there is removed.
pub fn remove_tree(path: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let parent = match rustix::fs::open(parent, dir_flags(), Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    let name = CString::new(OsStr::as_bytes(name))?;
    match open_dir(&parent, &name) {
        Ok(top) => empty(&top)?,
        Err(Errno::NOENT) => return Ok(()),
        Err(e) => return Err(e.into()),
    }
    Ok(rustix::fs::unlinkat(&parent, &name, AtFlags::REMOVEDIR)?)
}

/// Removes everything in a directory. Directories move up to it before they are emptied, so that depth costs nothing.
fn empty(top: &OwnedFd) -> io::Result<()> {
    let mut moved = 0u64;
    loop {
        let names = names(top)?;
        if names.is_empty() {
            return Ok(());
        }
        for name in &names {
            if unlink(top, name)? {
                continue;
            }
            let dir = match open_dir(top, name) {
                Err(Errno::NOENT) => continue,
                opened => opened?,
            };
            for child in self::names(&dir)? {
                if !unlink(&dir, &child)? {
                    move_up(&dir, &child, top, &mut moved)?;
                }
            }
            rustix::fs::unlinkat(top, name, AtFlags::REMOVEDIR)?;
        }
    }
}

fn dir_flags() -> OFlags {
    OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC
}

/// Opens a directory, and gives its owner every permission for it.
fn open_dir(at: &OwnedFd, name: &CString) -> Result<OwnedFd, Errno> {
    let handle = rustix::fs::openat(at, name, dir_flags() | OFlags::PATH, Mode::empty())?;
    if rustix::fs::fstat(&handle)?.st_mode & 0o700 != 0o700 {
        // A descriptor of this kind cannot be changed itself, but its name in /proc can.
        let link = format!("/proc/self/fd/{}", handle.as_fd().as_raw_fd());
        rustix::fs::chmod(link, Mode::RWXU)?;
    }
    rustix::fs::openat(&handle, c".", dir_flags(), Mode::empty())
}

fn names(dir: &OwnedFd) -> io::Result<Vec<CString>> {
    let mut names = Vec::new();
    for entry in Dir::read_from(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        if name != c"." && name != c".." {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

/// Removes a name. Returns false for a directory.
fn unlink(dir: &OwnedFd, name: &CString) -> io::Result<bool> {
    match rustix::fs::unlinkat(dir, name, AtFlags::empty()) {
        Ok(()) | Err(Errno::NOENT) => Ok(true),
        Err(Errno::ISDIR) => Ok(false),
        Err(e) => Err(e.into()),
    }
}

/// Moves a directory to the top, under a name that nothing has.
fn move_up(dir: &OwnedFd, name: &CString, top: &OwnedFd, moved: &mut u64) -> io::Result<()> {
    // A rename changes the directory's own entry `..`, which needs its permissions.
    drop(open_dir(dir, name)?);
    loop {
        let free = format!(".moved-{moved}");
        *moved += 1;
        match rustix::fs::renameat_with(dir, name, top, &free, RenameFlags::NOREPLACE) {
            Err(Errno::EXIST) => {}
            renamed => return Ok(renamed?),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_tree_without_permissions_and_deeper_than_any_path_is_removed_and_nothing_beside_it() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (tree, beside) = (dir.path().join("tree"), dir.path().join("beside"));
        std::fs::create_dir(&beside).expect("writable");
        std::fs::write(beside.join("kept"), "x").expect("writable");
        std::fs::create_dir_all(tree.join("locked/inner")).expect("writable");
        std::fs::write(tree.join("locked/inner/file"), "x").expect("writable");
        std::os::unix::fs::symlink(&beside, tree.join("locked/inner/link")).expect("writable");
        let mut at = rustix::fs::open(&tree, dir_flags(), Mode::empty()).expect("a directory");
        for _ in 0..3000 {
            rustix::fs::mkdirat(&at, "deep", Mode::RWXU).expect("writable");
            at = rustix::fs::openat(&at, "deep", dir_flags(), Mode::empty()).expect("a directory");
        }
        for locked in ["locked/inner", "locked"] {
            std::fs::set_permissions(tree.join(locked), std::fs::Permissions::from_mode(0o000)).expect("ours");
        }
        remove_tree(&tree).expect("removed");
        assert!(!tree.exists());
        assert!(beside.join("kept").exists());
        remove_tree(&tree).expect("there is nothing to remove");
    }
}
