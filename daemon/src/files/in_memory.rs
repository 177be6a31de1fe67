//! Recognizes a small file that is in memory: to read it at once takes less than to hand it to another thread.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, ResolveFlags, StatxFlags};
use rustix::io::{Errno, ReadWriteFlags};
use std::io::IoSliceMut;
use std::path::Path;

/// The length up to which a file is small. To hash more would hold up other calls.
const MAX_LEN: u64 = 32 * 1024;
/// The major number of file systems without a block device: those over a network and of programs, which can take any time.
const NO_DEVICE: u32 = 0;

/// Returns true if the path and the content of the file at its end are in memory now, so that reading it waits for nothing.
/// Waits for nothing itself. False also if the kernel does not know: before 5.12.
pub fn is_in_memory(path: &Path) -> bool {
    look(path).unwrap_or(false)
}

fn look(path: &Path) -> rustix::io::Result<bool> {
    let open = |flags| {
        let resolve = ResolveFlags::CACHED | ResolveFlags::NO_MAGICLINKS;
        rustix::fs::openat2(CWD, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
    };
    // Without opening it: that could wait for a device or the other end of a FIFO.
    let place = open(OFlags::PATH)?;
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let stat = rustix::fs::statx(&place, "", flags, StatxFlags::TYPE | StatxFlags::SIZE)?;
    let is_regular = FileType::from_raw_mode(u32::from(stat.stx_mode)) == FileType::RegularFile;
    if !is_regular || stat.stx_size > MAX_LEN || stat.stx_dev_major == NO_DEVICE {
        return Ok(false);
    }
    let file = open(OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY)?;
    let mut buffer = vec![0; MAX_LEN as usize];
    match rustix::io::preadv2(&file, &mut [IoSliceMut::new(&mut buffer)], 0, ReadWriteFlags::NOWAIT) {
        Ok(read) => Ok(read as u64 == stat.stx_size),
        Err(Errno::AGAIN | Errno::OPNOTSUPP) => Ok(false),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_small_regular_file_of_a_device_is_read_at_once() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = |name: &str, len: u64| {
            std::fs::write(dir.path().join(name), vec![b'x'; len as usize]).expect("a file");
            dir.path().join(name)
        };
        let (small, large) = (file("small", 6), file("large", MAX_LEN + 1));
        let fifo = dir.path().join("fifo");
        rustix::fs::mknodat(CWD, &fifo, FileType::Fifo, Mode::RWXU, 0).expect("a FIFO");
        assert!([&large, &fifo, &dir.path().join("none"), dir.path()].iter().all(|path| !is_in_memory(path)));
        assert!(!is_in_memory(Path::new("/proc/self/stat")), "it has no device");
        match look(&small) {
            Ok(true) => {}
            // A directory for temporary files in memory, a kernel before 5.12, or a file system that does not know.
            other => println!("skipped: no such file system here: {other:?}"),
        }
    }
}
