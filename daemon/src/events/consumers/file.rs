//! A consumer's file: facts are appended, and from time to time it is replaced by a shorter, equivalent one.

use super::super::disk::{can_pass, ignore_not_found, open_regular, quarantine, quarantine_path, replace};
use super::ConsumerName;
use super::state::{self, ConsumerState, Fact};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use toold_shim::hooks;

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
    /// The number of facts after the summary. None for a file of a version without summaries that could not be rewritten.
    count: Option<u64>,
    /// Its path, if a change still needs writeback, or is not known to be durable.
    pub needs_writeback: Option<PathBuf>,
    pub needs_sync: Option<PathBuf>,
}

impl ConsumerFile {
    fn new(name: ConsumerName, state: ConsumerState, path: PathBuf) -> ConsumerFile {
        ConsumerFile { name, state, path, len: 0, count: None, needs_writeback: None, needs_sync: None }
    }

    fn changed(&mut self) {
        self.needs_writeback.get_or_insert_with(|| self.path.clone());
        self.needs_sync.get_or_insert_with(|| self.path.clone());
    }

    /// Creates the file atomically. `damaged_ms` is the time at which the loss of an earlier file was found.
    pub fn create(
        dir: &Path,
        name: &ConsumerName,
        position: u64,
        at_ms: u64,
        damaged_ms: Option<u64>,
    ) -> io::Result<ConsumerFile> {
        let mut state = ConsumerState::default();
        state.apply(Fact::Created { position, at_ms });
        state.damaged_ms = damaged_ms;
        let mut kept = ConsumerFile::new(name.clone(), state, dir.join(name.file_name()));
        kept.rewrite()?;
        Ok(kept)
    }

    /// Reads a file. Quarantines one that is not a consumer's, and returns None. `listed` has the name that belongs to the
    /// file's name.
    pub fn load(
        path: &Path,
        listed: Option<&ConsumerName>,
        now_ms: u64,
        damage: &mut Vec<String>,
    ) -> io::Result<Option<ConsumerFile>> {
        let bytes = open_regular(path, File::options().read(true)).and_then(|mut file| {
            let mut bytes = Vec::new();
            io::Read::read_to_end(&mut file, &mut bytes).map(|_| bytes)
        });
        if let Err(e) = &bytes
            && can_pass(e)
        {
            return Err(io::Error::new(e.kind(), format!("read {}: {e}", path.display())));
        }
        let read = bytes.as_ref().ok().and_then(|bytes| state::decode(bytes, listed));
        // Under another consumer's file name it would never be found.
        let Some(read) = read.filter(|read| path.file_name().is_some_and(|file| *read.name.file_name() == *file))
        else {
            let why = bytes.err().map_or("it is damaged".into(), |e| e.to_string());
            if listed.is_none() {
                damage.push(format!("the consumer in {} is unknown: {why}", path.display()));
            }
            quarantine(path, damage);
            return Ok(None);
        };
        let mut kept = ConsumerFile::new(read.name, read.state, path.into());
        (kept.len, kept.count) = (read.len, read.count);
        kept.state.tidy(0);
        if read.damaged > 0 {
            kept.state.damaged_ms = Some(now_ms);
            let (name, position) = (&kept.name, kept.state.position);
            damage.push(format!(
                "{} parts of the file of consumer {name} are damaged; it continues at {position} and may receive events again",
                read.damaged
            ));
            let _ = std::fs::hard_link(path, quarantine_path(path));
        }
        if (read.damaged > 0 || kept.count.is_none())
            && let Err(e) = kept.rewrite()
        {
            // A file of an earlier version stays as it is.
            if read.damaged > 0 {
                damage.push(format!("rewrite {}: {e}", path.display()));
            }
        }
        Ok(Some(kept))
    }

    /// Appends a fact to the file, then applies it in memory. The summary follows: it never counts a fact that is not there.
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
        hooks::at("position.appended");
        if let Some(count) = &mut self.count {
            *count += 1;
            // A failure leaves an older summary, which is true too.
            let _ = file.write_all_at(&self.state.summary(*count).bytes(), state::summary_at(&self.name));
        }
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
        let (bytes, count) = self.state.file(&self.name);
        replace(&self.path, &bytes)?;
        self.count = Some(count);
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

/// Starts the writeback of a file, without waiting.
pub fn start_writeback(path: &Path) -> io::Result<()> {
    ignore_not_found(
        open_regular(path, File::options().read(true)).and_then(|file| Ok(crate::sys::start_writeback(&file)?)),
    )
}

pub fn sync(path: &Path) -> io::Result<()> {
    ignore_not_found(open_regular(path, File::options().read(true)).and_then(|file| file.sync_data()))
}
