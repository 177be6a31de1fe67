//! The files that a call of another process names, as that process sees them.

use rustix::fd::{AsRawFd, OwnedFd};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use std::ffi::CStr;
use std::io::Write;
use std::ops::Range;

/// The longest path, with its end.
const MAX_PATH_LEN: usize = 4096;
/// Room for the strings of one call: two paths as they are named and resolved, and what leads to them.
pub const TEXT_LEN: usize = 6 * MAX_PATH_LEN;
const PAGE_LEN: u64 = 4096;
/// Most paths are shorter.
const SHORT_PATH_LEN: usize = 256;

/// Strings of one call.
pub struct Text<'a> {
    bytes: &'a mut [u8],
    len: usize,
}

/// A place in a text.
pub type Span = Range<usize>;

impl<'a> Text<'a> {
    pub fn new(bytes: &'a mut [u8]) -> Text<'a> {
        Text { bytes, len: 0 }
    }

    pub fn get(&self, span: &Span) -> &[u8] {
        self.bytes.get(span.clone()).unwrap_or_default()
    }

    /// Adds a string. None: there is no room.
    pub fn push(&mut self, bytes: &[u8]) -> Option<Span> {
        let span = self.len..self.len + bytes.len();
        self.bytes.get_mut(span.clone())?.copy_from_slice(bytes);
        self.len = span.end;
        Some(span)
    }

    /// Adds what `format` prints.
    pub fn print(&mut self, format: std::fmt::Arguments<'_>) -> Option<Span> {
        let start = self.len;
        let mut rest = self.bytes.get_mut(start..)?;
        let room = rest.len();
        rest.write_fmt(format).ok()?;
        self.len += room - rest.len();
        Some(start..self.len)
    }
}

/// Reads memory of another process. Returns the number of bytes before the first that cannot be read.
pub fn read_memory(pid: u32, address: u64, into: &mut [u8]) -> Option<usize> {
    let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
    let remote = libc::iovec { iov_base: address as *mut _, iov_len: into.len() };
    // SAFETY: the kernel writes to the live buffer, and only reads of the other process.
    let read = unsafe { libc::process_vm_readv(pid as i32, &local, 1, &remote, 1, 0) };
    usize::try_from(read).ok().filter(|read| *read > 0)
}

/// Reads a C string of another process, without its end. None: it cannot be read, is empty, or too long.
fn read_string(pid: u32, address: u64, into: &mut [u8; MAX_PATH_LEN]) -> Option<usize> {
    let mut len = 0;
    while len < MAX_PATH_LEN {
        let at = address.checked_add(len as u64)?;
        // Not across a page: the next one may not be there.
        let limit = if len == 0 { SHORT_PATH_LEN } else { MAX_PATH_LEN - len };
        let room = ((PAGE_LEN - at % PAGE_LEN) as usize).min(limit);
        let read = read_memory(pid, at, &mut into[len..len + room])?;
        if let Some(end) = into[len..len + read].iter().position(|byte| *byte == 0) {
            return Some(len + end).filter(|len| *len > 0);
        }
        len += read;
    }
    None
}

/// A file that a call names: its absolute path, as it was named.
pub struct NamedFile<'a> {
    /// Ended by a zero.
    path: [u8; MAX_PATH_LEN],
    len: usize,
    root: &'a OwnedFd,
}

impl<'a> NamedFile<'a> {
    /// Reads the path at `address`, relative to the directory `dir` of the process. None: it is not known.
    pub fn read(pid: u32, dir: i32, address: u64, root: &'a OwnedFd) -> Option<NamedFile<'a>> {
        let mut file = NamedFile { path: [0; MAX_PATH_LEN], len: 0, root };
        file.len = read_string(pid, address, &mut file.path)?;
        if file.path[0] != b'/' {
            file.put_before(pid, dir)?;
        }
        // A slash at the end changes nothing here.
        while file.len > 1 && file.path[file.len - 1] == b'/' {
            file.len -= 1;
        }
        *file.path.get_mut(file.len)? = 0;
        (file.path[0] == b'/').then_some(file)
    }

    /// Puts the path of a directory of the process before a relative one.
    fn put_before(&mut self, pid: u32, dir: i32) -> Option<()> {
        let mut link = [0u8; 48];
        match dir {
            libc::AT_FDCWD => write!(&mut link[..], "/proc/{pid}/cwd\0").ok()?,
            fd => write!(&mut link[..], "/proc/{pid}/fd/{fd}\0").ok()?,
        }
        // The name waits at the end of the memory.
        let at = MAX_PATH_LEN - self.len;
        self.path.copy_within(..self.len, at);
        let dir_len = read_link(CStr::from_bytes_until_nul(&link).ok()?, &mut self.path[..at])?;
        // A slash follows, and a zero at the end.
        if dir_len + 1 >= at {
            return None;
        }
        self.path[dir_len] = b'/';
        self.path.copy_within(at.., dir_len + 1);
        self.len += dir_len + 1;
        Some(())
    }

    /// Returns true for a path in /proc, where a name means something else to every process.
    pub fn is_in_proc(&self) -> bool {
        super::listener::is_at_or_below(self.path(), b"/proc")
    }

    /// Returns true if the way to a path that could not be followed may be another one for its process: it goes through /proc, or
    /// through a link that leads nowhere from here.
    pub fn is_unclear(&self) -> bool {
        let mut len = self.len - self.name().len();
        while len > 1 {
            len -= 1;
            if let Ok(there) = self.open_len(len, false) {
                let is_link =
                    rustix::fs::fstat(&there).is_ok_and(|found| found.st_mode & libc::S_IFMT == libc::S_IFLNK);
                let is_proc =
                    rustix::fs::fstatfs(&there).is_ok_and(|found| found.f_type == rustix::fs::PROC_SUPER_MAGIC);
                return is_link || is_proc;
            }
            // The part before it.
            while len > 1 && self.path[len - 1] != b'/' {
                len -= 1;
            }
        }
        true
    }

    fn add(&mut self, bytes: &[u8]) -> Option<()> {
        // One byte is left for the end.
        if self.len + bytes.len() >= MAX_PATH_LEN {
            return None;
        }
        self.path[self.len..self.len + bytes.len()].copy_from_slice(bytes);
        self.len += bytes.len();
        self.path[self.len] = 0;
        Some(())
    }

    pub fn path(&self) -> &[u8] {
        &self.path[..self.len]
    }

    /// Returns the last part of the path.
    pub fn name(&self) -> &[u8] {
        self.path().rsplit(|byte| *byte == b'/').next().unwrap_or_default()
    }

    /// Returns the file that a link at this path names, which may not be there.
    #[cold]
    #[inline(never)]
    pub fn through(&self, link: &OwnedFd) -> Option<NamedFile<'a>> {
        let mut name = [0u8; MAX_PATH_LEN];
        let (fd, room) = (link.as_raw_fd(), name.as_mut_ptr().cast());
        // SAFETY: an open descriptor, a C string, and a live buffer of this length.
        let len = unsafe { libc::readlinkat(fd, c"".as_ptr(), room, MAX_PATH_LEN - 1) };
        let len = usize::try_from(len).ok().filter(|len| *len > 0)?;
        let mut file = NamedFile { path: [0; MAX_PATH_LEN], len: 0, root: self.root };
        if name[0] != b'/' {
            file.add(&self.path()[..self.len - self.name().len()])?;
        }
        file.add(&name[..len])?;
        Some(file)
    }

    /// Opens the file as its process sees it.
    pub fn open(&self, follow: bool) -> Result<OwnedFd, Errno> {
        open_in(self.root, &self.path, follow)
    }

    /// Opens the directory that it is in.
    pub fn open_parent(&self) -> Result<OwnedFd, Errno> {
        let len = self.len - self.name().len();
        self.open_len(len.max(1), true)
    }

    /// Opens the beginning of the path. Apart, because of the memory that it needs on the stack.
    #[inline(never)]
    fn open_len(&self, len: usize, follow: bool) -> Result<OwnedFd, Errno> {
        let mut path = self.path;
        path[len] = 0;
        open_in(self.root, &path, follow)
    }
}

fn open_in(root: &OwnedFd, path: &[u8], follow: bool) -> Result<OwnedFd, Errno> {
    let path = CStr::from_bytes_until_nul(path).map_err(|_| Errno::INVAL)?;
    let flags = OFlags::PATH | OFlags::CLOEXEC | if follow { OFlags::empty() } else { OFlags::NOFOLLOW };
    let resolve = ResolveFlags::IN_ROOT | ResolveFlags::NO_MAGICLINKS;
    rustix::fs::openat2(root, path, flags, Mode::empty(), resolve)
}

/// Reads where a link leads.
fn read_link(path: &CStr, into: &mut [u8]) -> Option<usize> {
    // SAFETY: a C string, and a live buffer of this length.
    let len = unsafe { libc::readlink(path.as_ptr(), into.as_mut_ptr().cast(), into.len()) };
    usize::try_from(len).ok().filter(|len| *len > 0)
}

/// Adds the path of an open file to the text.
pub fn path_of(file: &OwnedFd, text: &mut Text<'_>) -> Option<Span> {
    let mut link = [0u8; 40];
    write!(&mut link[..], "/proc/self/fd/{}\0", file.as_raw_fd()).ok()?;
    let start = text.len;
    let room = text.bytes.get_mut(start..start + MAX_PATH_LEN)?;
    text.len += read_link(CStr::from_bytes_until_nul(&link).ok()?, room)?;
    Some(start..text.len)
}

/// Returns the error of a write to a file, by the kernel's own answer. None: it may be written.
pub fn write_error(file: &OwnedFd) -> Option<i32> {
    let flags = libc::AT_EMPTY_PATH | libc::AT_EACCESS;
    // SAFETY: an open descriptor and a C string.
    let allowed = unsafe { libc::syscall(libc::SYS_faccessat2, file.as_raw_fd(), c"".as_ptr(), libc::W_OK, flags) };
    (allowed != 0).then(|| crate::sys::last_errno().raw_os_error())
}

/// Returns true if the mount of a file is read-only.
pub fn is_read_only(file: &OwnedFd) -> bool {
    rustix::fs::fstatvfs(file).is_ok_and(|stat| stat.f_flag.contains(rustix::fs::StatVfsMountFlags::RDONLY))
}

/// Returns true if a file is the root of a mount.
pub fn is_mount_root(file: &OwnedFd) -> bool {
    use rustix::fs::{AtFlags, StatxAttributes, StatxFlags, statx};
    let found = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::TYPE);
    found.is_ok_and(|found| found.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}
