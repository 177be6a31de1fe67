//! The named writes of a process: each is made at most once, so the shim remembers the last ones until the exit, and the
//! record and the file `writes` have them afterwards.

use super::run::Shim;
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use toold_format::slots;
use toold_format::writes::{self, ENTRY_LEN, FINISHED, MAX_WRITES};

/// Pages of it that no write reached cost no memory: a process without named writes has none.
pub const MEMORY_LEN: usize = MAX_WRITES * ENTRY_LEN;
const _: () = assert!(MEMORY_LEN.is_multiple_of(4096), "the arena is cleared by whole pages");

/// The name of a write without a `write_id`.
const UNNAMED: [u8; 16] = [0; 16];

pub struct NamedWrites {
    /// The entries, the oldest overwritten first.
    memory: &'static mut [u8],
    /// Number of entries ever made.
    made: usize,
    /// The entry that was changed last: a write is recorded with every piece.
    last: usize,
}

impl NamedWrites {
    /// `memory` has `MEMORY_LEN` bytes, all zero.
    pub fn new(memory: &'static mut [u8]) -> NamedWrites {
        NamedWrites { memory, made: 0, last: 0 }
    }

    /// Returns the entries that are in use. Those beyond were never touched, and are not to be read: that would map them.
    fn used(&self) -> &[u8] {
        &self.memory[..self.made.min(MAX_WRITES) * ENTRY_LEN]
    }

    /// Finds a named write: the bytes done, and true when it is finished. None: not remembered, or unnamed.
    pub fn find(&self, id: &[u8; 16]) -> Option<(u64, bool)> {
        if *id == UNNAMED { None } else { writes::find(self.used(), id) }
    }

    pub fn record(&mut self, id: &[u8; 16], done: u64, finished: bool) {
        if *id == UNNAMED {
            return;
        }
        let (entries, _) = self.used().as_chunks::<ENTRY_LEN>();
        let is_it = |entry: &[u8; ENTRY_LEN]| entry[..16] == id[..];
        let known = match entries.get(self.last) {
            Some(entry) if is_it(entry) => Some(self.last),
            Some(_) | None => entries.iter().position(is_it),
        };
        self.last = known.unwrap_or_else(|| {
            self.made += 1;
            (self.made - 1) % MAX_WRITES
        });
        if let Some(entry) = self.memory.as_chunks_mut::<ENTRY_LEN>().0.get_mut(self.last) {
            entry[..16].copy_from_slice(id);
            let done = if finished { done | FINISHED } else { done };
            entry[16..].copy_from_slice(&done.to_le_bytes());
        }
    }

    /// Copies the newest entries as the record has them: newest first, without the mark of a finished write.
    fn copy_newest(&self, out: &mut [u8]) {
        let count = self.made.min(MAX_WRITES);
        let newest = (0..count).map(|back| (self.made - 1 - back) % MAX_WRITES);
        for (at, place) in newest.zip(out.as_chunks_mut::<{ slots::WRITE_ENTRY_LEN }>().0) {
            place.copy_from_slice(&self.memory[at * ENTRY_LEN..(at + 1) * ENTRY_LEN]);
            place[23] &= 0x7f;
        }
    }
}

impl Shim {
    /// Stores the named writes, for a client that repeats one after the exit: the newest in the record, whose blocks are
    /// allocated, and all of them in a file if there are more.
    pub fn record_writes(&self) {
        let named = &self.stdin.named;
        if named.made == 0 {
            return;
        }
        let mut out = [0u8; slots::WRITE_ENTRY_LEN * slots::MAX_WRITES];
        named.copy_newest(&mut out);
        let _ = rustix::io::pwrite(&self.record, &out, slots::WRITES_AT);
        if named.made > slots::MAX_WRITES {
            // If the disk refuses, those in the record are left. A file that is cut is noticed by its checksum.
            let _ = self.write_file(named.used());
        }
    }

    fn write_file(&self, entries: &[u8]) -> Result<(), Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        let file = rustix::fs::openat(self.log.dir(), writes::FILE_NAME, flags, Mode::RUSR | Mode::WUSR)?;
        write_all(&file, &writes::header(entries))?;
        write_all(&file, entries)
    }
}

fn write_all(file: &OwnedFd, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        match rustix::io::write(file, bytes) {
            Ok(0) => return Err(Errno::IO),
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(Errno::INTR) => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: u64) -> [u8; 16] {
        let mut id = [1; 16];
        id[8..].copy_from_slice(&n.to_le_bytes());
        id
    }

    #[test]
    fn the_last_writes_are_remembered_and_the_oldest_goes_first() {
        let memory = crate::sys::map_anonymous(MEMORY_LEN).expect("there is memory");
        let mut named = NamedWrites::new(memory);
        assert_eq!(named.find(&id(0)), None);
        named.record(&UNNAMED, 5, true);
        assert_eq!((named.made, named.find(&UNNAMED)), (0, None), "an unnamed write is not remembered");
        for n in 0..MAX_WRITES as u64 {
            named.record(&id(n), n, false);
            named.record(&id(n), n + 1, true);
        }
        assert!((0..MAX_WRITES as u64).all(|n| named.find(&id(n)) == Some((n + 1, true))));
        named.record(&id(1 << 32), 9, false);
        assert_eq!((named.find(&id(0)), named.find(&id(1))), (None, Some((2, true))));
        let mut out = [0u8; slots::WRITE_ENTRY_LEN * slots::MAX_WRITES];
        named.copy_newest(&mut out);
        assert_eq!((&out[..16], &out[16..24]), (&id(1 << 32)[..], &9u64.to_le_bytes()[..]), "the newest first");
        assert_eq!(&out[40..48], &(MAX_WRITES as u64).to_le_bytes(), "without the mark");
    }
}
