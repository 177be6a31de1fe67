//! A consumer's file: facts are appended, and from time to time it is replaced by a shorter, equivalent one.

use super::super::disk::{ignore_not_found, open_regular, quarantine_path};
use super::ConsumerName;
use super::state::{self, ConsumerState, Fact};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A shorter file is not compacted: about five hundred facts.
const COMPACT_ABOVE_BYTES: u64 = 16 << 10;

/// A consumer on disk.
#[derive(Debug)]
pub struct ConsumerFile {
    pub name: ConsumerName,
    pub state: ConsumerState,
    path: PathBuf,
    /// The offset of the next fact. Bytes of a failed write there are overwritten.
    len: u64,
    /// Its path, if a change still needs writeback, or is not known to be durable.
    pub needs_writeback: Option<PathBuf>,
    pub needs_sync: Option<PathBuf>,
}

impl ConsumerFile {
    fn new(name: ConsumerName, state: ConsumerState, path: PathBuf, len: u64) -> ConsumerFile {
        ConsumerFile { name, state, path, len, needs_writeback: None, needs_sync: None }
    }

    fn changed(&mut self) {
        self.needs_writeback.get_or_insert_with(|| self.path.clone());
        self.needs_sync.get_or_insert_with(|| self.path.clone());
    }

    /// Creates the file atomically.
    pub fn create(dir: &Path, name: &ConsumerName, position: u64, at_ms: u64) -> io::Result<ConsumerFile> {
        let mut state = ConsumerState::default();
        state.apply(Fact::Created { position, at_ms });
        let mut kept = ConsumerFile::new(name.clone(), state, dir.join(name.file_name()), 0);
        kept.rewrite()?;
        Ok(kept)
    }

    /// Reads a file. Quarantines one that is not a consumer's, and returns None.
    pub fn load(path: &Path, damage: &mut Vec<String>) -> Option<ConsumerFile> {
        let bytes = open_regular(path, File::options().read(true)).and_then(|mut file| {
            let mut bytes = Vec::new();
            io::Read::read_to_end(&mut file, &mut bytes).map(|_| bytes)
        });
        let read = bytes.as_ref().ok().and_then(|bytes| state::decode(bytes));
        // Under another consumer's file name it would never be found.
        let Some(read) = read.filter(|read| path.file_name().is_some_and(|file| *read.name.file_name() == *file))
        else {
            let why = bytes.err().map_or("it is damaged".into(), |e| e.to_string());
            damage.push(format!("the consumer in {} is unknown: {why}", path.display()));
            let _ = std::fs::rename(path, quarantine_path(path));
            return None;
        };
        let mut kept = ConsumerFile::new(read.name, read.state, path.into(), read.len);
        kept.state.tidy(0);
        if read.damaged > 0 {
            damage.push(format!("{} facts about the consumer {} are damaged", read.damaged, kept.name));
            let _ = std::fs::hard_link(path, quarantine_path(path));
            if let Err(e) = kept.rewrite() {
                damage.push(format!("rewrite {}: {e}", path.display()));
            }
        }
        Some(kept)
    }

    /// Appends a fact to the file, then applies it in memory.
    pub fn append(&mut self, fact: Fact) -> io::Result<()> {
        let file = match open_regular(&self.path, File::options().write(true)) {
            // Another program removed the file: create it again.
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                self.rewrite()?;
                open_regular(&self.path, File::options().write(true))
            }
            opened => opened,
        }?;
        file.write_all_at(&fact.bytes(), self.len)?;
        self.len += state::FACT_LEN as u64;
        self.changed();
        self.state.apply(fact);
        Ok(())
    }

    /// Shortens the file if that saves enough. A failure only costs disk space.
    pub fn compact(&mut self) {
        if self.len > COMPACT_ABOVE_BYTES.max(2 * self.state.file_len(&self.name))
            && let Err(e) = self.rewrite()
        {
            tracing::debug!(%e, path = %self.path.display(), "failed to compact a consumer's file");
        }
    }

    fn rewrite(&mut self) -> io::Result<()> {
        let bytes = self.state.file(&self.name);
        replace(&self.path, &bytes)?;
        self.len = bytes.len() as u64;
        self.changed();
        Ok(())
    }

    pub fn remove(&self) {
        if let Err(e) = std::fs::remove_file(&self.path) {
            tracing::warn!(%e, path = %self.path.display(), "failed to remove a consumer's file");
        }
    }
}

/// Replaces the file at `path` atomically.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let fresh = path.with_extension("tmp");
    let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(&fresh)?;
    let written = file.write_all_at(bytes, 0).and_then(|()| std::fs::rename(&fresh, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&fresh);
    }
    written
}

/// Starts the writeback of a file, without waiting.
pub fn start_writeback(path: &Path) -> io::Result<()> {
    ignore_not_found(
        open_regular(path, File::options().read(true)).and_then(|file| Ok(crate::sys::start_writeback(&file)?)),
    )
}

pub fn sync(path: &Path) -> io::Result<()> {
    ignore_not_found(open_regular(path, File::options().read(true)).and_then(|file| file.sync_data()))
}
