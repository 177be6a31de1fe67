//! The list of expired consumers. A consumer that returns is informed once.

use super::ConsumerName;
use super::file::replace;
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
    /// Reads the list. Drops and reports a damaged entry and everything after it.
    pub fn load(dir: &Path, damage: &mut Vec<String>) -> ExpiredList {
        let path = dir.join(FILE_NAME);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return ExpiredList::default(),
            Err(e) => {
                damage.push(format!("read {}: {e}", path.display()));
                let _ = std::fs::rename(&path, super::super::disk::quarantine_path(&path));
                return ExpiredList::default();
            }
        };
        let (mut list, mut rest) = (ExpiredList::default(), bytes.as_slice());
        while let Some((entry, after)) = read(rest) {
            list.0.push(entry);
            rest = after;
        }
        if !rest.is_empty() {
            damage.push(format!("{} is damaged: some expired consumers will not be informed", path.display()));
            let _ = std::fs::rename(&path, super::super::disk::quarantine_path(&path));
            let _ = list.store(dir);
        }
        list
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
fn read(bytes: &[u8]) -> Option<((ConsumerName, Expired), &[u8])> {
    let number = |at: usize| bytes.get(at..)?.first_chunk().map(|b| u64::from_le_bytes(*b));
    let len = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?) as usize;
    let (entry, rest) = bytes.split_at_checked(ENTRY_HEADER_LEN.checked_add(len)?)?;
    if crc32fast::hash(&entry[4..]).to_le_bytes() != entry[..4] {
        return None;
    }
    let name = ConsumerName::parse(str::from_utf8(&entry[ENTRY_HEADER_LEN..]).ok()?).ok()?;
    Some(((name, Expired { position: number(8)?, at_ms: number(16)? }), rest))
}
