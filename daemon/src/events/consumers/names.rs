//! The list of all consumers beside their files: one whose file is gone or damaged is informed instead of starting again in
//! silence. The layout is stable: `docs/events.md`.

use super::super::disk::{can_pass, open_regular, quarantine, replace};
use super::ConsumerName;
use super::expired::Expired;
use std::fs::File;
use std::io;
use std::path::Path;

pub const FILE_NAME: &str = "names";
const MAGIC: &[u8; 8] = b"toolnam1";
/// Magic, checksum of the rest, number of entries.
const FILE_HEADER_LEN: usize = 16;
/// Kind, length of the name, position, time.
const ENTRY_HEADER_LEN: usize = 24;
const ACTIVE: u32 = 1;
const EXPIRED: u32 = 2;

/// The names of all consumers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NameList {
    pub active: Vec<ConsumerName>,
    pub expired: Vec<(ConsumerName, Expired)>,
}

impl NameList {
    /// Reads the list in `dir`. Quarantines and reports a damaged one. A new directory has none.
    pub fn load(dir: &Path, damage: &mut Vec<String>) -> io::Result<NameList> {
        let path = dir.join(FILE_NAME);
        let read = open_regular(&path, File::options().read(true)).and_then(|mut file| {
            let mut bytes = Vec::new();
            io::Read::read_to_end(&mut file, &mut bytes).map(|_| NameList::decode(&bytes))
        });
        let why = match read {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(NameList::default()),
            Err(e) if can_pass(&e) => return Err(e),
            Ok(Some(list)) => return Ok(list),
            Err(e) => e.to_string(),
            Ok(None) => "its checksum is wrong".into(),
        };
        damage.push(format!("the list of consumers in {} is damaged: {why}; it was written again", path.display()));
        quarantine(&path, damage);
        Ok(NameList::default())
    }

    pub fn store(&self, dir: &Path) -> io::Result<()> {
        replace(&dir.join(FILE_NAME), &self.encode())
    }

    pub fn encode(&self) -> Vec<u8> {
        let mut out = MAGIC.to_vec();
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&((self.active.len() + self.expired.len()) as u32).to_le_bytes());
        let active = self.active.iter().map(|name| (ACTIVE, name, Expired { position: 0, at_ms: 0 }));
        let expired = self.expired.iter().map(|(name, expired)| (EXPIRED, name, *expired));
        for (kind, name, expired) in active.chain(expired) {
            out.extend_from_slice(&kind.to_le_bytes());
            out.extend_from_slice(&(name.as_str().len() as u32).to_le_bytes());
            out.extend_from_slice(&expired.position.to_le_bytes());
            out.extend_from_slice(&expired.at_ms.to_le_bytes());
            out.extend_from_slice(name.as_str().as_bytes());
        }
        let sum = crc32fast::hash(&out[12..]).to_le_bytes();
        out[8..12].copy_from_slice(&sum);
        out
    }

    /// Decodes a list. Returns None if any part of it is damaged.
    pub fn decode(bytes: &[u8]) -> Option<NameList> {
        let head: &[u8; FILE_HEADER_LEN] = bytes.first_chunk()?;
        let count = u32::from_le_bytes(*head[12..].first_chunk()?);
        if !head.starts_with(MAGIC) {
            return None;
        }
        let (mut list, mut rest) = (NameList::default(), &bytes[FILE_HEADER_LEN..]);
        for _ in 0..count {
            let (header, after) = rest.split_first_chunk::<ENTRY_HEADER_LEN>()?;
            let number = |at: usize| header[at..].first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
            let kind = u32::from_le_bytes(*header.first_chunk()?);
            let len = u32::from_le_bytes(*header[4..].first_chunk()?) as usize;
            let (name, after) = after.split_at_checked(len)?;
            let name = ConsumerName::parse(str::from_utf8(name).ok()?).ok()?;
            match kind {
                ACTIVE => list.active.push(name),
                EXPIRED => list.expired.push((name, Expired { position: number(8), at_ms: number(16) })),
                _ => return None,
            }
            rest = after;
        }
        // Bytes after the last entry are not part of the list.
        let end = bytes.len() - rest.len();
        (crc32fast::hash(&bytes[12..end]).to_le_bytes() == head[8..12]).then_some(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_reads_back_and_one_flipped_bit_is_noticed() {
        let name = |text| ConsumerName::parse(text).expect("a name");
        let list = NameList {
            active: vec![name("a"), name("b\u{e9}")],
            expired: vec![(name("c"), Expired { position: 5, at_ms: 6 })],
        };
        let bytes = list.encode();
        assert_eq!(NameList::decode(&bytes), Some(list));
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(NameList::decode(&damaged), None, "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert_eq!(NameList::decode(&bytes[..len]), None, "cut to {len}");
        }
    }
}
