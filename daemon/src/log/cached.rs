//! Reads of a log that never wait for the disk: what is not in memory is an error, and the caller reads it elsewhere.

use rustix::fs::{CWD, Mode, OFlags, ResolveFlags};
use rustix::io::{Errno, ReadWriteFlags};
use std::cell::Cell;
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

thread_local! {
    static CACHED_ONLY: Cell<bool> = const { Cell::new(false) };
}

/// The kernel can open a file without waiting for the disk: 5.12 and later.
static OPENS_CACHED: AtomicBool = AtomicBool::new(true);

/// Runs `read`. A read of a log in it fails with `WouldBlock` if it had to wait for the disk.
pub fn cached_only<T>(read: impl FnOnce() -> T) -> T {
    struct Reset;
    impl Drop for Reset {
        fn drop(&mut self) {
            CACHED_ONLY.set(false);
        }
    }
    CACHED_ONLY.set(true);
    let _reset = Reset;
    read()
}

/// Fails where a read of the disk follows whose part in memory is not known.
pub(super) fn check_may_wait() -> io::Result<()> {
    if CACHED_ONLY.get() { Err(Errno::AGAIN.into()) } else { Ok(()) }
}

/// Opens a file for reading, not through a link.
pub(super) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    if CACHED_ONLY.get() && OPENS_CACHED.load(Relaxed) {
        match rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::CACHED) {
            // An earlier kernel, or a filter of system calls.
            Err(Errno::INVAL | Errno::NOSYS | Errno::PERM) => OPENS_CACHED.store(false, Relaxed),
            opened => return Ok(opened?.into()),
        }
    }
    Ok(rustix::fs::open(path, flags, Mode::empty())?.into())
}

/// Reads at an offset, as `FileExt::read_at` does.
pub(super) fn read_at(file: &File, buf: &mut [u8], at: u64) -> io::Result<usize> {
    if !CACHED_ONLY.get() {
        return file.read_at(buf, at);
    }
    match rustix::io::preadv2(file, &mut [IoSliceMut::new(buf)], at, ReadWriteFlags::NOWAIT) {
        // A file system without this, as those over a network.
        Err(Errno::OPNOTSUPP | Errno::NOSYS) => Err(Errno::AGAIN.into()),
        read => Ok(read?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_is_in_memory_is_read_and_the_rest_is_an_error() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("file");
        File::create(&path).and_then(|mut file| file.write_all(b"text").and(file.sync_all())).expect("a file");
        let mut buf = [0; 4];
        let read = |buf: &mut [u8]| cached_only(|| open(&path).and_then(|file| read_at(&file, buf, 0)));
        match read(&mut buf) {
            Ok(len) => assert_eq!(&buf[..len], b"text"),
            // The file system is without it.
            Err(e) => assert_eq!(e.kind(), io::ErrorKind::WouldBlock),
        }
        assert_eq!(check_may_wait().map_err(|e| e.kind()), Ok(()));
        assert_eq!(cached_only(check_may_wait).map_err(|e| e.kind()), Err(io::ErrorKind::WouldBlock));
        let file = File::open(&path).expect("it is there");
        rustix::fs::fadvise(&file, 0, None, rustix::fs::Advice::DontNeed).expect("advice");
        // A file system in memory keeps it.
        if let Err(e) = read(&mut buf) {
            assert_eq!(e.kind(), io::ErrorKind::WouldBlock);
        }
        assert_eq!(open(&path).and_then(|file| read_at(&file, &mut buf, 0)).expect("read from the disk"), 4);
    }
}
