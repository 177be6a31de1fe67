//! The list of expired consumers. A consumer that returns is informed once.

use super::super::disk::{can_pass, open_regular, quarantine, replace};
use super::ConsumerName;
use std::fs::File;
use std::io;
use std::path::Path;

/// The maximum length of the list. The oldest entries are dropped.
const MAX_EXPIRED: usize = 1024;
pub const FILE_NAME: &str = "forgotten";
const ENTRY_HEADER_LEN: usize = 24;

/// The position of a consumer when it expired, and the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expired {
    pub position: u64,
    pub at_ms: u64,
}

/// Expired consumers, oldest first.
#[derive(Debug, Default)]
pub struct ExpiredList(Vec<(ConsumerName, Expired)>);

impl ExpiredList {
    /// Reads the list. Entries that are damaged here are taken from `listed`, the copy in the list of all consumers.
    pub fn load(dir: &Path, listed: &[(ConsumerName, Expired)], damage: &mut Vec<String>) -> io::Result<ExpiredList> {
        let path = dir.join(FILE_NAME);
        let read = open_regular(&path, File::options().read(true)).and_then(|mut file| {
            let mut bytes = Vec::new();
            io::Read::read_to_end(&mut file, &mut bytes).map(|_| bytes)
        });
        let bytes = match read {
            Ok(bytes) => bytes,
            Err(e) if can_pass(&e) => return Err(e),
            Err(e) => {
                if e.kind() != io::ErrorKind::NotFound {
                    damage.push(format!("the list of expired consumers in {}: {e}", path.display()));
                    quarantine(&path, damage);
                }
                Vec::new()
            }
        };
        let (mut list, mut rest) = (ExpiredList::default(), bytes.as_slice());
        while let Some((entry, after)) = decode_first(rest) {
            list.0.push(entry);
            rest = after;
        }
        let lost: Vec<_> = listed.iter().filter(|(name, _)| list.get(name).is_none()).cloned().collect();
        if !rest.is_empty() || !lost.is_empty() {
            damage.push(format!("the list of expired consumers in {} is damaged", path.display()));
            let _ = std::fs::rename(&path, super::super::disk::quarantine_path(&path));
            list.0.splice(0..0, lost);
            let _ = list.store(dir);
        }
        Ok(list)
    }

    /// Returns the entries, oldest first.
    pub fn entries(&self) -> &[(ConsumerName, Expired)] {
        &self.0
    }

    pub fn get(&self, name: &ConsumerName) -> Option<Expired> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, expired)| *expired)
    }

    pub fn max_seq(&self) -> u64 {
        self.0.iter().map(|(_, expired)| expired.position).max().unwrap_or(0)
    }

    pub fn add(&mut self, dir: &Path, new: Vec<(ConsumerName, Expired)>) -> io::Result<()> {
        self.0.retain(|(name, _)| !new.iter().any(|(added, _)| added == name));
        self.0.extend(new);
        self.0.drain(..self.0.len().saturating_sub(MAX_EXPIRED));
        self.store(dir)
    }

    pub fn remove(&mut self, dir: &Path, name: &ConsumerName) -> io::Result<()> {
        self.0.retain(|(known, _)| known != name);
        self.store(dir)
    }

    fn store(&self, dir: &Path) -> io::Result<()> {
        let mut out = Vec::new();
        for (name, expired) in &self.0 {
            let text = name.as_str().as_bytes();
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&(text.len() as u32).to_le_bytes());
            out.extend_from_slice(&expired.position.to_le_bytes());
            out.extend_from_slice(&expired.at_ms.to_le_bytes());
            out.extend_from_slice(text);
            let sum = crc32fast::hash(&out[start + 4..]).to_le_bytes();
            out[start..start + 4].copy_from_slice(&sum);
        }
        replace(&dir.join(FILE_NAME), &out)
    }
}

/// Decodes the first entry. Returns it and the rest.
pub fn decode_first(bytes: &[u8]) -> Option<((ConsumerName, Expired), &[u8])> {
    let number = |at: usize| bytes.get(at..)?.first_chunk().map(|b| u64::from_le_bytes(*b));
    let len = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?) as usize;
    let (entry, rest) = bytes.split_at_checked(ENTRY_HEADER_LEN.checked_add(len)?)?;
    if crc32fast::hash(&entry[4..]).to_le_bytes() != entry[..4] {
        return None;
    }
    let name = ConsumerName::parse(str::from_utf8(&entry[ENTRY_HEADER_LEN..]).ok()?).ok()?;
    Some(((name, Expired { position: number(8)?, at_ms: number(16)? }), rest))
}
