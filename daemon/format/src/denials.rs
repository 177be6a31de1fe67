//! The file of refused calls, `procs/<id>/denials`: written whole by the shim, read by daemons of every later version.
//!
//! `tooldden`, FNV-1a checksum of the rest u64, what is observed u32 (bit 0 writes, bit 1 the network), number of entries
//! u32, all refusals u64, then the entries: operation u16, length of the target u16, of the link u16, 0 u16, errno i32, 0 u32,
//! count u64, first time ms u64, target, link.

use crate::fnv1a;
use crate::frame::Sink;

pub const MAGIC: &[u8; 8] = b"tooldden";
/// The number of refusals that differ and are kept.
pub const MAX_ENTRIES: usize = 64;
const HEAD_LEN: usize = 32;
const ENTRY_LEN: usize = 32;
const WRITES: u32 = 1;
const NETWORK: u32 = 2;

/// A refused call, borrowed from a file or from a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DenialEntry<'a> {
    pub op: Op,
    pub errno: i32,
    pub count: u64,
    /// Milliseconds since 1970.
    pub first_ms: u64,
    /// The file, or the address of a network call.
    pub target: &'a [u8],
    /// The path that the program named, if a link led from it to the target.
    pub via: &'a [u8],
}

/// Declares the operations with their numbers and names, in one list. The numbers are on disk: frozen.
macro_rules! ops {
    ($($variant:ident = $code:literal $name:literal,)*) => {
        /// A system call that was refused.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Op { $($variant,)* /** One of a later version. */ Unknown(u16) }

        impl Op {
            pub fn code(self) -> u16 {
                match self { $(Op::$variant => $code,)* Op::Unknown(code) => code }
            }

            pub fn from_code(code: u16) -> Op {
                match code { $($code => Op::$variant,)* code => Op::Unknown(code) }
            }

            pub fn name(self) -> &'static str {
                match self { $(Op::$variant => $name,)* Op::Unknown(_) => "unknown" }
            }
        }
    };
}

ops! {
    Open = 1 "open",
    Create = 2 "create",
    Mkdir = 3 "mkdir",
    Mknod = 4 "mknod",
    Unlink = 5 "unlink",
    Rmdir = 6 "rmdir",
    Rename = 7 "rename",
    HardLink = 8 "link",
    Symlink = 9 "symlink",
    Truncate = 10 "truncate",
    Chmod = 11 "chmod",
    Chown = 12 "chown",
    Utime = 13 "utime",
    Setxattr = 14 "setxattr",
    Removexattr = 15 "removexattr",
    Socket = 32 "socket",
    Connect = 33 "connect",
    Sendto = 34 "sendto",
    Bind = 35 "bind",
}

impl Op {
    /// Returns true if the target is an address.
    pub fn is_network(self) -> bool {
        self.code() >= Op::Socket.code()
    }
}

/// The content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DenialFile<'a> {
    pub observes_writes: bool,
    pub observes_network: bool,
    pub count: u64,
    entries: &'a [u8],
}

/// Writes what a file has before its entries.
pub fn put_head(out: &mut dyn Sink, observes: (bool, bool), count: u64, number: usize, entries: &[u8]) {
    let observed = if observes.0 { WRITES } else { 0 } | if observes.1 { NETWORK } else { 0 };
    let mut head = [0u8; HEAD_LEN - 16];
    head[..4].copy_from_slice(&observed.to_le_bytes());
    head[4..8].copy_from_slice(&(number as u32).to_le_bytes());
    head[8..].copy_from_slice(&count.to_le_bytes());
    out.put(MAGIC);
    out.put(&checksum(&head, entries).to_le_bytes());
    out.put(&head);
}

/// Writes an entry.
pub fn put_entry(out: &mut dyn Sink, entry: &DenialEntry<'_>) {
    out.put(&entry.op.code().to_le_bytes());
    out.put(&(entry.target.len() as u16).to_le_bytes());
    out.put(&(entry.via.len() as u16).to_le_bytes());
    out.put(&[0; 2]);
    out.put(&entry.errno.to_le_bytes());
    out.put(&[0; 4]);
    out.put(&entry.count.to_le_bytes());
    out.put(&entry.first_ms.to_le_bytes());
    out.put(entry.target);
    out.put(entry.via);
}

fn checksum(head: &[u8], entries: &[u8]) -> u64 {
    fnv1a(entries) ^ fnv1a(head).rotate_left(1)
}

/// The place of the count in an entry.
pub const COUNT_AT: usize = 16;

impl<'a> DenialFile<'a> {
    /// Reads a file. None: damaged, or not written to its end.
    pub fn read(bytes: &'a [u8]) -> Option<DenialFile<'a>> {
        let (head, entries) = bytes.split_first_chunk::<HEAD_LEN>()?;
        let (magic, rest) = head.split_first_chunk::<8>()?;
        let (sum, facts) = rest.split_first_chunk::<8>()?;
        if magic != MAGIC || u64::from_le_bytes(*sum) != checksum(facts, entries) {
            return None;
        }
        let u32_at = |at: usize| facts.get(at..at + 4).and_then(|b| b.try_into().ok()).map(u32::from_le_bytes);
        let observed = u32_at(0)?;
        let count = u64::from_le_bytes(facts.get(8..16)?.try_into().ok()?);
        let file = DenialFile {
            observes_writes: observed & WRITES != 0,
            observes_network: observed & NETWORK != 0,
            count,
            entries,
        };
        (file.entries().count() == u32_at(4)? as usize).then_some(file)
    }

    /// Returns the refusals, the oldest first.
    pub fn entries(&self) -> impl Iterator<Item = DenialEntry<'a>> + use<'a> {
        let mut rest = self.entries;
        std::iter::from_fn(move || {
            let (entry, len) = read_entry(rest)?;
            rest = &rest[len..];
            Some(entry)
        })
    }
}

/// Reads the entry at the start of `bytes`, and its length.
pub fn read_entry(bytes: &[u8]) -> Option<(DenialEntry<'_>, usize)> {
    let (head, rest) = bytes.split_first_chunk::<ENTRY_LEN>()?;
    let u16_at = |at: usize| u16::from_le_bytes([head[at], head[at + 1]]);
    let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|byte| head[at + byte]));
    let (target_len, via_len) = (usize::from(u16_at(2)), usize::from(u16_at(4)));
    let target = rest.get(..target_len)?;
    let via = rest.get(target_len..target_len + via_len)?;
    let errno = i32::from_le_bytes([head[8], head[9], head[10], head[11]]);
    let op = Op::from_code(u16_at(0));
    let entry = DenialEntry { op, errno, count: u64_at(COUNT_AT), first_ms: u64_at(24), target, via };
    Some((entry, ENTRY_LEN + target_len + via_len))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file() -> Vec<u8> {
        let mut entries = Vec::new();
        let open = DenialEntry {
            op: Op::Open,
            errno: 30,
            count: 3,
            first_ms: 1_700_000_000_000,
            target: b"/etc/x",
            via: b"/home/u/link",
        };
        put_entry(&mut entries, &open);
        put_entry(
            &mut entries,
            &DenialEntry { op: Op::Connect, errno: 101, target: b"10.0.0.1:443", via: b"", ..open },
        );
        let mut bytes = Vec::new();
        put_head(&mut bytes, (true, true), 4, 2, &entries);
        [bytes, entries].concat()
    }

    #[test]
    fn a_file_reads_back_and_any_change_of_it_is_seen() {
        let bytes = file();
        let read = DenialFile::read(&bytes).expect("whole");
        assert_eq!((read.count, read.observes_writes, read.observes_network), (4, true, true));
        let ops: Vec<_> = read.entries().map(|entry| (entry.op.name(), entry.target.to_vec())).collect();
        assert_eq!(ops, [("open", b"/etc/x".to_vec()), ("connect", b"10.0.0.1:443".to_vec())]);
        for cut in 0..bytes.len() {
            assert_eq!(DenialFile::read(&bytes[..cut]), None, "{cut}");
        }
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(DenialFile::read(&changed), None, "{at}");
        }
    }

    #[test]
    fn the_bytes_of_version_1_stay() {
        let hex: String = file().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, include_str!("../golden/denials-v1.txt").trim());
    }
}
