//! The mounts of a namespace: everything read-only, the roots writable, protected paths read-only inside them, hidden ones
//! masked. Each step that fails ends it: there is no namespace with fewer mounts.

use crate::start::StepFailed;
use crate::sys::{self, check};
use rustix::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::{CStr, c_int, c_uint};
use std::io::Write;
use toold_format::sandbox::{FileId, MountList, MountStep};
use toold_format::step;

/// The largest number of trees that are taken before everything becomes read-only.
const MAX_TREES: usize = 256;
/// The largest number of overlays: each has a descriptor beside the answer.
pub const MAX_OVERLAYS: usize = 24;
/// The longest name of a directory that is made.
const MAX_NAME_LEN: usize = 255;

const AT_RECURSIVE: c_uint = 0x8000;
const NO_PRIVILEGES: u64 = libc::MOUNT_ATTR_NOSUID | libc::MOUNT_ATTR_NODEV;
/// The devices of the host that a program can use.
const DEVICES: [&CStr; 6] = [c"null", c"zero", c"full", c"random", c"urandom", c"tty"];
const LINKS: [(&CStr, &CStr); 5] = [
    (c"fd", c"/proc/self/fd"),
    (c"stdin", c"/proc/self/fd/0"),
    (c"stdout", c"/proc/self/fd/1"),
    (c"stderr", c"/proc/self/fd/2"),
    (c"ptmx", c"pts/ptmx"),
];

type Step<T> = Result<T, StepFailed>;

fn at(step: u32) -> impl Fn(Errno) -> StepFailed {
    move |errno| StepFailed(step, errno)
}

/// Trees in the order in which they were taken.
struct Trees {
    fds: [Option<OwnedFd>; MAX_TREES],
    taken: usize,
    put: usize,
}

/// Runs the steps in this mount namespace. `pts`: a file system of terminals of its own. Returns the overlays.
pub fn build(steps: &MountList<'_>, pts: Option<OwnedFd>) -> Step<[Option<OwnedFd>; MAX_OVERLAYS]> {
    let mounts = at(step::MOUNTS);
    // Mounts that the host makes later are writable, and are not to appear here.
    set_attr(CWD, c"/", AT_RECURSIVE, 0, libc::MS_PRIVATE).map_err(&mounts)?;
    let mut trees = Trees { fds: [const { None }; MAX_TREES], taken: 0, put: 0 };
    let mut devices = [const { None }; DEVICES.len()];
    let mut empty = EmptyFile::None;
    let mut pts = pts;
    let (mut layers, mut overlays, mut made) = ([None, None], [const { None }; MAX_OVERLAYS], 0);
    for step in steps.iter() {
        let Some((step, id, path)) = step else { return Err(StepFailed(step::MOUNTS, Errno::INVAL)) };
        match step {
            MountStep::Take => trees.push(take(path, id, NO_PRIVILEGES)?)?,
            MountStep::TakeReadOnly => trees.push(take(path, id, NO_PRIVILEGES | libc::MOUNT_ATTR_RDONLY)?)?,
            MountStep::ReadOnly => {
                devices = take_devices()?;
                let all = NO_PRIVILEGES | libc::MOUNT_ATTR_RDONLY;
                set_attr(CWD, c"/", AT_RECURSIVE, all, 0).map_err(&mounts)?;
            }
            MountStep::Put => put(trees.next()?.as_fd(), &open(path).map_err(&mounts)?)?,
            MountStep::PutNew => put(trees.next()?.as_fd(), &make(path, false).map_err(&mounts)?)?,
            MountStep::PutFile => put(trees.next()?.as_fd(), &make(path, true).map_err(&mounts)?)?,
            MountStep::Anchor => {
                let here = open(path).map_err(&mounts)?;
                put(clone_tree(&here).map_err(&mounts)?.as_fd(), &here)?;
            }
            MountStep::Protect => {
                let tree = take(path, id, libc::MOUNT_ATTR_RDONLY)?;
                put(tree.as_fd(), &open(path).map_err(&mounts)?)?;
            }
            MountStep::MaskDir => mask(path, || new_tmpfs(c"0755", c"64k"))?,
            MountStep::MaskNew => {
                let place = make(path, false).map_err(&mounts)?;
                put(new_tmpfs(c"0755", c"64k").map_err(&mounts)?.as_fd(), &place)?;
            }
            MountStep::MaskFile => mask_file(path, &mut empty)?,
            MountStep::Seal => seal(path)?,
            MountStep::Dev => put_dev(&mut devices, pts.take())?,
            MountStep::Layer => {
                let layer = open(path).map_err(at(step::OVERLAY))?;
                layers = [layers[1].take(), Some(layer)];
            }
            MountStep::TakeOverlay => {
                let [Some(upper), Some(work)] = [layers[0].take(), layers[1].take()] else {
                    return Err(StepFailed(step::OVERLAY, Errno::INVAL));
                };
                let overlay = new_overlay(path, id, &upper, &work)?;
                let place = overlays.get_mut(made).ok_or(StepFailed(step::OVERLAY, Errno::TOOBIG))?;
                // A second descriptor of the same mount: the first one goes where the overlay is put.
                let second = rustix::io::fcntl_dupfd_cloexec(&overlay, 0).map_err(at(step::OVERLAY))?;
                *place = Some(second);
                made += 1;
                trees.push(overlay)?;
            }
        }
    }
    Ok(overlays)
}

impl Trees {
    fn push(&mut self, tree: OwnedFd) -> Step<()> {
        let place = self.fds.get_mut(self.taken).ok_or(StepFailed(step::MOUNTS, Errno::TOOBIG))?;
        *place = Some(tree);
        self.taken += 1;
        Ok(())
    }

    fn next(&mut self) -> Step<OwnedFd> {
        let tree = self.fds.get_mut(self.put).and_then(Option::take);
        self.put += 1;
        tree.ok_or(StepFailed(step::MOUNTS, Errno::INVAL))
    }
}

/// Opens what a path without links leads to.
fn open(path: &CStr) -> Result<OwnedFd, Errno> {
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(CWD, path, OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW, Mode::empty(), resolve)
}

/// Takes a copy of the tree at a path, if it is the file that was judged, and sets attributes of the copy.
fn take(path: &CStr, id: FileId, attributes: u64) -> Step<OwnedFd> {
    let file = open(path).map_err(at(step::PATH_IDENTITY))?;
    let found = rustix::fs::fstat(&file).map_err(at(step::PATH_IDENTITY))?;
    if id != FileId::default() && id != (FileId { dev: found.st_dev, ino: found.st_ino }) {
        return Err(StepFailed(step::PATH_IDENTITY, Errno::STALE));
    }
    let tree = clone_tree(&file).map_err(at(step::MOUNTS))?;
    set_attr(tree.as_fd(), c"", AT_RECURSIVE | AtFlags::EMPTY_PATH.bits(), attributes, 0).map_err(at(step::MOUNTS))?;
    Ok(tree)
}

/// Copies the mounts at and below a file. Always with those below: the kernel refuses to uncover what they cover.
fn clone_tree(file: &OwnedFd) -> Result<OwnedFd, Errno> {
    let flags = libc::OPEN_TREE_CLONE | libc::OPEN_TREE_CLOEXEC | AT_RECURSIVE | AtFlags::EMPTY_PATH.bits();
    // SAFETY: an open descriptor and a C string.
    let tree = unsafe { libc::syscall(libc::SYS_open_tree, file.as_raw_fd(), c"".as_ptr(), flags) };
    // SAFETY: the kernel just made it for us.
    check(tree as c_int).map(|fd| unsafe { sys::own(fd) })
}

fn set_attr(dir: BorrowedFd<'_>, path: &CStr, flags: c_uint, set: u64, propagation: u64) -> Result<(), Errno> {
    let attr = libc::mount_attr { attr_set: set, attr_clr: 0, propagation, userns_fd: 0 };
    let (fd, size) = (dir.as_raw_fd(), size_of::<libc::mount_attr>());
    // SAFETY: the kernel reads the live local of this size, and a C string.
    let done = unsafe { libc::syscall(libc::SYS_mount_setattr, fd, path.as_ptr(), flags, &attr, size) };
    check(done as c_int).map(drop)
}

/// Mounts a tree over a file.
fn put(tree: BorrowedFd<'_>, over: &OwnedFd) -> Step<()> {
    let flags = libc::MOVE_MOUNT_F_EMPTY_PATH | libc::MOVE_MOUNT_T_EMPTY_PATH;
    let (from, to, empty) = (tree.as_raw_fd(), over.as_raw_fd(), c"".as_ptr());
    // SAFETY: open descriptors and C strings.
    let done = unsafe { libc::syscall(libc::SYS_move_mount, from, empty, to, empty, flags) };
    check(done as c_int).map(drop).map_err(at(step::MOUNTS))
}

/// Makes the directories to a path that is below a private directory, and what is at its end. Follows no link: the directory
/// belongs to jobs.
fn make(path: &CStr, is_file: bool) -> Result<OwnedFd, Errno> {
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let mut here = rustix::fs::open(c"/", flags, Mode::empty())?;
    let mut names = path.to_bytes().split(|byte| *byte == b'/').filter(|name| !name.is_empty()).peekable();
    while let Some(name) = names.next() {
        let mut buffer = [0u8; MAX_NAME_LEN + 1];
        buffer.get_mut(..name.len()).ok_or(Errno::NAMETOOLONG)?.copy_from_slice(name);
        let name = CStr::from_bytes_until_nul(&buffer).map_err(|_| Errno::NAMETOOLONG)?;
        let next = match rustix::fs::openat(&here, name, flags, Mode::empty()) {
            Err(Errno::NOENT) if is_file && names.peek().is_none() => {
                let create = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
                rustix::fs::openat(&here, name, create, Mode::RUSR)?;
                rustix::fs::openat(&here, name, flags, Mode::empty())?
            }
            Err(Errno::NOENT) => {
                rustix::fs::mkdirat(&here, name, Mode::RWXU)?;
                rustix::fs::openat(&here, name, flags, Mode::empty())?
            }
            found => found?,
        };
        here = next;
    }
    Ok(here)
}

/// Covers a path. One that is not there needs no cover: a private directory is over it.
fn mask(path: &CStr, cover: impl FnOnce() -> Result<OwnedFd, Errno>) -> Step<()> {
    match open(path) {
        Ok(file) => put(cover().map_err(at(step::MOUNTS))?.as_fd(), &file),
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(StepFailed(step::MOUNTS, errno)),
    }
}

fn seal(path: &CStr) -> Step<()> {
    match open(path) {
        Ok(file) => set_attr(file.as_fd(), c"", AtFlags::EMPTY_PATH.bits(), libc::MOUNT_ATTR_RDONLY, 0)
            .map_err(at(step::MOUNTS)),
        Err(Errno::NOENT) => Ok(()),
        Err(errno) => Err(StepFailed(step::MOUNTS, errno)),
    }
}

// ---- file systems of its own ----

const FSCONFIG_SET_FLAG: c_uint = 0;
const FSCONFIG_SET_STRING: c_uint = 1;
const FSCONFIG_CMD_CREATE: c_uint = 6;

/// Makes a file system that is mounted nowhere yet.
fn new_file_system(kind: &CStr, options: &[(&CStr, &CStr)], attributes: u64) -> Result<OwnedFd, Errno> {
    let cloexec: c_uint = 1;
    // SAFETY: a C string and a number.
    let context = check(unsafe { libc::syscall(libc::SYS_fsopen, kind.as_ptr(), cloexec) } as c_int)?;
    // SAFETY: the kernel just made it for us.
    let context = unsafe { sys::own(context) };
    let fd = context.as_raw_fd();
    for (key, value) in options {
        let null = std::ptr::null();
        let (command, value) =
            if value.is_empty() { (FSCONFIG_SET_FLAG, null) } else { (FSCONFIG_SET_STRING, value.as_ptr()) };
        // SAFETY: an open descriptor and C strings.
        check(unsafe { libc::syscall(libc::SYS_fsconfig, fd, command, key.as_ptr(), value, 0) } as c_int)?;
    }
    let null = std::ptr::null::<u8>();
    // SAFETY: the command takes neither key nor value.
    check(unsafe { libc::syscall(libc::SYS_fsconfig, fd, FSCONFIG_CMD_CREATE, null, null, 0) } as c_int)?;
    // SAFETY: an open descriptor and numbers.
    let mount = unsafe { libc::syscall(libc::SYS_fsmount, fd, cloexec, attributes as c_uint) };
    // SAFETY: the kernel just made it for us.
    check(mount as c_int).map(|fd| unsafe { sys::own(fd) })
}

fn new_tmpfs(mode: &CStr, size: &CStr) -> Result<OwnedFd, Errno> {
    new_file_system(c"tmpfs", &[(c"mode", mode), (c"size", size)], NO_PRIVILEGES)
}

/// Makes an overlay on a directory that is mounted nowhere yet. The layers are named by their descriptors: what was opened is what
/// is mounted, and no path has characters that an option cannot have.
fn new_overlay(path: &CStr, id: FileId, upper: &OwnedFd, work: &OwnedFd) -> Step<OwnedFd> {
    let lower = open(path).map_err(at(step::PATH_IDENTITY))?;
    let found = rustix::fs::fstat(&lower).map_err(at(step::PATH_IDENTITY))?;
    if id != (FileId { dev: found.st_dev, ino: found.st_ino }) {
        return Err(StepFailed(step::PATH_IDENTITY, Errno::STALE));
    }
    let mut names = [[0u8; 32]; 3];
    for (name, fd) in names.iter_mut().zip([&lower, upper, work]) {
        write!(&mut name[..], "/proc/self/fd/{}\0", fd.as_raw_fd())
            .map_err(|_| StepFailed(step::OVERLAY, Errno::INVAL))?;
    }
    let name = |at: usize| CStr::from_bytes_until_nul(&names[at]).unwrap_or(c"");
    let options = [
        (c"source", c"toold"),
        (c"lowerdir", name(0)),
        (c"upperdir", name(1)),
        (c"workdir", name(2)),
        // Marks that an ordinary user may write.
        (c"userxattr", c""),
    ];
    new_file_system(c"overlay", &options, NO_PRIVILEGES).map_err(at(step::OVERLAY))
}

/// Makes terminals that are not those of the host: a job could read from and write to the terminals of its user.
pub fn new_terminals() -> Result<OwnedFd, Errno> {
    new_file_system(c"devpts", &[(c"ptmxmode", c"0666"), (c"mode", c"0600")], libc::MOUNT_ATTR_NOSUID)
}

/// An empty file that no program can read.
enum EmptyFile {
    None,
    /// It is over a file already. The kernel copies only what is mounted.
    Put(OwnedFd),
}

/// Covers a file by an empty one.
fn mask_file(path: &CStr, empty: &mut EmptyFile) -> Step<()> {
    mask(path, || match empty {
        EmptyFile::None => new_empty_file(),
        EmptyFile::Put(earlier) => clone_tree(earlier),
    })?;
    if matches!(empty, EmptyFile::None)
        && let Ok(put) = open(path)
    {
        *empty = EmptyFile::Put(put);
    }
    Ok(())
}

/// Makes an empty file that no program can read, as a tree of its own.
fn new_empty_file() -> Result<OwnedFd, Errno> {
    let dir = new_tmpfs(c"0700", c"4k")?;
    let flags = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(&dir, c"empty", flags, Mode::empty())?;
    set_attr(dir.as_fd(), c"", AtFlags::EMPTY_PATH.bits(), libc::MOUNT_ATTR_RDONLY, 0)?;
    // Mounted for a moment: the kernel copies nothing from a file system that is mounted nowhere.
    put(dir.as_fd(), &open(c"/dev")?).map_err(|StepFailed(_, errno)| errno)?;
    let file = rustix::fs::openat(&dir, c"empty", OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let tree = file.and_then(|file| clone_tree(&file));
    // SAFETY: a C string and a number.
    check(unsafe { libc::umount2(c"/dev".as_ptr(), libc::MNT_DETACH) })?;
    tree
}

fn take_devices() -> Step<[Option<OwnedFd>; DEVICES.len()]> {
    let mut devices = [const { None }; DEVICES.len()];
    let flags = OFlags::PATH | OFlags::CLOEXEC;
    let dev = rustix::fs::open(c"/dev", flags | OFlags::DIRECTORY, Mode::empty()).map_err(at(step::MOUNTS))?;
    for (place, name) in devices.iter_mut().zip(DEVICES) {
        // A container may have fewer of them.
        let Ok(device) = rustix::fs::openat(&dev, name, flags, Mode::empty()) else { continue };
        *place = Some(clone_tree(&device).map_err(at(step::MOUNTS))?);
    }
    Ok(devices)
}

/// Puts a small `/dev` over that of the host: some devices, terminals and shared memory of its own.
fn put_dev(devices: &mut [Option<OwnedFd>; DEVICES.len()], pts: Option<OwnedFd>) -> Step<()> {
    let mounts = at(step::MOUNTS);
    let dev = new_tmpfs(c"0755", c"64k").map_err(&mounts)?;
    let flags = OFlags::PATH | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let find = |name: &CStr| rustix::fs::openat(&dev, name, flags, Mode::empty()).map_err(at(step::MOUNTS));
    for (name, target) in LINKS {
        rustix::fs::symlinkat(target, &dev, name).map_err(&mounts)?;
    }
    for name in [c"pts", c"shm"] {
        rustix::fs::mkdirat(&dev, name, Mode::RWXU | Mode::RGRP | Mode::XGRP | Mode::ROTH | Mode::XOTH)
            .map_err(&mounts)?;
    }
    put(dev.as_fd(), &open(c"/dev").map_err(&mounts)?)?;
    for (device, name) in devices.iter_mut().zip(DEVICES) {
        let Some(device) = device.take() else { continue };
        let create = OFlags::CREATE | OFlags::WRONLY | OFlags::CLOEXEC;
        rustix::fs::openat(&dev, name, create, Mode::RUSR | Mode::WUSR).map_err(&mounts)?;
        put(device.as_fd(), &find(name)?)?;
    }
    if let Some(pts) = pts {
        put(pts.as_fd(), &find(c"pts")?)?;
    }
    put(new_tmpfs(c"1777", c"50%").map_err(&mounts)?.as_fd(), &find(c"shm")?)?;
    set_attr(dev.as_fd(), c"", AtFlags::EMPTY_PATH.bits(), libc::MOUNT_ATTR_RDONLY, 0).map_err(&mounts)
}
