//! Consumers that were not used for too long: who they were, until they come back and are told.

use super::ConsumerName;
use super::file::replace;
use std::io;
use std::path::Path;

/// How many are remembered, the newest.
const MOST: usize = 1024;
pub const FILE: &str = "forgotten";
const HEAD: usize = 24;

/// How far a consumer had come when it was forgotten, and when that was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forgotten {
    pub position: u64,
    pub at_ms: u64,
}

/// The list, oldest first.
#[derive(Debug, Default)]
pub struct List(Vec<(ConsumerName, Forgotten)>);

impl List {
    /// Reads the list. What is damaged, and what comes after it, is lost and told.
    pub fn load(dir: &Path, flaws: &mut Vec<String>) -> List {
        let path = dir.join(FILE);
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return List::default(),
            Err(e) => {
                flaws.push(format!("read {}: {e}", path.display()));
                let _ = std::fs::rename(&path, super::super::disk::aside(&path));
                return List::default();
            }
        };
        let (mut list, mut rest) = (List::default(), bytes.as_slice());
        while let Some((entry, after)) = read(rest) {
            list.0.push(entry);
            rest = after;
        }
        if !rest.is_empty() {
            flaws.push(format!("{} is damaged: some forgotten consumers will not be told", path.display()));
            let _ = std::fs::rename(&path, super::super::disk::aside(&path));
            let _ = list.store(dir);
        }
        list
    }

    pub fn get(&self, name: &ConsumerName) -> Option<Forgotten> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, forgotten)| *forgotten)
    }

    pub fn highest(&self) -> u64 {
        self.0.iter().map(|(_, forgotten)| forgotten.position).max().unwrap_or(0)
    }

    pub fn add(&mut self, dir: &Path, new: Vec<(ConsumerName, Forgotten)>) -> io::Result<()> {
        self.0.retain(|(name, _)| !new.iter().any(|(added, _)| added == name));
        self.0.extend(new);
        self.0.drain(..self.0.len().saturating_sub(MOST));
        self.store(dir)
    }

    pub fn remove(&mut self, dir: &Path, name: &ConsumerName) -> io::Result<()> {
        self.0.retain(|(known, _)| known != name);
        self.store(dir)
    }

    fn store(&self, dir: &Path) -> io::Result<()> {
        let mut out = Vec::new();
        for (name, forgotten) in &self.0 {
            let text = name.as_str().as_bytes();
            let start = out.len();
            out.extend_from_slice(&[0; 4]);
            out.extend_from_slice(&(text.len() as u32).to_le_bytes());
            out.extend_from_slice(&forgotten.position.to_le_bytes());
            out.extend_from_slice(&forgotten.at_ms.to_le_bytes());
            out.extend_from_slice(text);
            let sum = crc32fast::hash(&out[start + 4..]).to_le_bytes();
            out[start..start + 4].copy_from_slice(&sum);
        }
        replace(&dir.join(FILE), &out)
    }
}

/// The first entry, and what follows it.
fn read(bytes: &[u8]) -> Option<((ConsumerName, Forgotten), &[u8])> {
    let number = |at: usize| bytes.get(at..)?.first_chunk().map(|b| u64::from_le_bytes(*b));
    let len = u32::from_le_bytes(*bytes.get(4..)?.first_chunk()?) as usize;
    let (entry, rest) = bytes.split_at_checked(HEAD.checked_add(len)?)?;
    if crc32fast::hash(&entry[4..]).to_le_bytes() != entry[..4] {
        return None;
    }
    let name = ConsumerName::parse(str::from_utf8(&entry[HEAD..]).ok()?).ok()?;
    Some(((name, Forgotten { position: number(8)?, at_ms: number(16)? }), rest))
}
