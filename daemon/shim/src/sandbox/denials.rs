//! The table of refused calls, and its file.

use crate::sys;
use rustix::fd::BorrowedFd;
use rustix::fs::{Mode, OFlags};
use toold_format::denials::{self, COUNT_AT, DenialEntry, MAX_ENTRIES, Op};
use toold_format::frame::Sink;

/// The bytes of all entries. Most paths are short; what does not fit is only counted.
const TABLE_LEN: usize = 128 * 1024;

/// Refused calls that differ, in the order of their first time.
pub struct DenialTable {
    /// Mapped with the first refusal: most jobs have none.
    memory: Option<&'static mut [u8]>,
    len: usize,
    entries: usize,
    count: u64,
    /// The file lacks something.
    dirty: bool,
}

struct Buffer<'a> {
    bytes: &'a mut [u8],
    len: usize,
}

impl Sink for Buffer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        if let Some(place) = self.bytes.get_mut(self.len..self.len + bytes.len()) {
            place.copy_from_slice(bytes);
        }
        self.len += bytes.len();
    }
}

impl DenialTable {
    pub fn new() -> DenialTable {
        DenialTable { memory: None, len: 0, entries: 0, count: 0, dirty: false }
    }

    pub fn count(&self) -> u64 {
        self.count
    }

    pub fn entries(&self) -> usize {
        self.entries
    }

    pub fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// Counts a refusal. Returns true if it is a new one that is kept.
    pub fn add(&mut self, op: Op, errno: i32, target: &[u8], via: &[u8], now_ms: u64) -> bool {
        self.count += 1;
        self.dirty = true;
        if self.memory.is_none() {
            self.memory = sys::map_anonymous(TABLE_LEN);
        }
        let Some(memory) = self.memory.as_deref_mut() else { return false };
        let mut at = 0;
        while let Some((entry, len)) = denials::read_entry(&memory[at..self.len]) {
            if (entry.op, entry.errno, entry.target) == (op, errno, target) {
                let count = (entry.count + 1).to_le_bytes();
                memory[at + COUNT_AT..at + COUNT_AT + count.len()].copy_from_slice(&count);
                return false;
            }
            at += len;
        }
        if self.entries == MAX_ENTRIES {
            return false;
        }
        let mut rest = Buffer { bytes: &mut memory[self.len..], len: 0 };
        denials::put_entry(&mut rest, &DenialEntry { op, errno, count: 1, first_ms: now_ms, target, via });
        if self.len + rest.len > TABLE_LEN {
            return false;
        }
        self.len += rest.len;
        self.entries += 1;
        true
    }

    /// Writes the file: a reader sees the one before or this one. Nothing waits for the disk.
    pub fn write(&mut self, dir: BorrowedFd<'_>, observes: (bool, bool)) {
        self.dirty = false;
        let entries = self.memory.as_deref().map_or(&[][..], |memory| &memory[..self.len]);
        let mut head = [0u8; 64];
        let mut buffer = Buffer { bytes: &mut head, len: 0 };
        denials::put_head(&mut buffer, observes, self.count, self.entries, entries);
        let len = buffer.len;
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::WRONLY | OFlags::CLOEXEC;
        let Ok(file) = rustix::fs::openat(dir, c"denials.new", flags, Mode::RUSR | Mode::WUSR) else { return };
        let is_whole = |bytes: &[u8]| rustix::io::write(&file, bytes) == Ok(bytes.len());
        if is_whole(&head[..len]) && is_whole(entries) {
            let _ = rustix::fs::renameat(dir, c"denials.new", dir, c"denials");
        }
    }
}

impl Drop for DenialTable {
    fn drop(&mut self) {
        if let Some(memory) = self.memory.take() {
            // SAFETY: all of a mapping from `map_anonymous`, made in `add`.
            unsafe { sys::unmap(memory) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fd::AsFd;
    use toold_format::denials::DenialFile;

    fn written(table: &mut DenialTable) -> Vec<u8> {
        let dir = std::env::temp_dir().join(format!("toold-denials-{}-{:?}", std::process::id(), table.count()));
        std::fs::create_dir_all(&dir).expect("writable");
        let open = rustix::fs::open(&dir, OFlags::PATH | OFlags::DIRECTORY, Mode::empty()).expect("a directory");
        table.write(open.as_fd(), (true, false));
        let bytes = std::fs::read(dir.join("denials")).expect("written");
        std::fs::remove_dir_all(&dir).expect("removable");
        bytes
    }

    #[test]
    fn equal_refusals_are_counted_and_the_first_64_that_differ_are_kept() {
        let mut table = DenialTable::new();
        assert!(table.add(Op::Open, 30, b"/etc/x", b"", 5));
        assert!(!table.add(Op::Open, 30, b"/etc/x", b"", 6));
        assert!(table.add(Op::Unlink, 30, b"/etc/x", b"", 7));
        for number in 0..100 {
            let is_new = table.add(Op::Open, 30, format!("/etc/{number}").as_bytes(), b"/link", 8);
            assert_eq!(is_new, number < 62);
        }
        let bytes = written(&mut table);
        let file = DenialFile::read(&bytes).expect("whole");
        assert_eq!((file.count, file.entries().count(), file.observes_network), (103, 64, false));
        let first = file.entries().next().expect("an entry");
        assert_eq!((first.count, first.first_ms, first.target), (2, 5, b"/etc/x".as_slice()));
    }

    #[test]
    fn long_paths_fill_the_table_and_are_counted_all_the_same() {
        let mut table = DenialTable::new();
        for number in 0..64u8 {
            table.add(Op::Open, 30, &[number; 4096], &[number; 4096], 1);
        }
        let bytes = written(&mut table);
        let file = DenialFile::read(&bytes).expect("whole");
        assert_eq!((file.count, file.entries().count()), (64, 15));
    }
}
