//! Directories made ahead, so that a start finds one. To make them takes a file system 0.06 ms, and ten times that while it
//! remembers many deletions; to rename one takes it 0.02 ms.

use std::fs::File;
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// As many are kept, once half of them were used up: what a burst of starts needs is there before it.
const MADE: usize = 64;
/// With so few left as many are made at once. Before that it can wait for a pause: in a burst it would take the time of the starts.
const FEW: usize = 8;

/// A directory with an empty record in it.
#[derive(Debug)]
pub struct Made {
    pub dir: PathBuf,
    pub record: File,
}

/// Makes a directory and the record in it.
pub fn make(dir: PathBuf) -> io::Result<Made> {
    std::fs::DirBuilder::new().mode(0o700).create(&dir)?;
    let options = File::options().read(true).write(true).create_new(true).mode(0o600).open(dir.join("record"));
    match options {
        Ok(record) => Ok(Made { dir, record }),
        Err(e) => {
            let _ = std::fs::remove_dir(&dir);
            Err(e)
        }
    }
}

/// The directories that wait.
#[derive(Debug)]
pub struct Ahead {
    dir: PathBuf,
    made: Mutex<Vec<Made>>,
    next: AtomicU64,
    taken: AtomicU64,
    making: AtomicBool,
}

impl Ahead {
    /// Takes over what an earlier daemon left unused in `dir`, and clears away what it had begun to use.
    pub fn open(dir: PathBuf) -> Ahead {
        let (mut made, mut next) = (Vec::new(), 0);
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            match unused(&entry.path()) {
                Some((number, record)) if made.len() < MADE => {
                    next = next.max(number + 1);
                    made.push(Made { dir: entry.path(), record });
                }
                Some(_) | None => clear(&entry.path()),
            }
        }
        let (made, next) = (Mutex::new(made), AtomicU64::new(next));
        Ahead { dir, made, next, taken: AtomicU64::new(0), making: AtomicBool::new(false) }
    }

    /// One of them. None: there is none.
    pub fn take(&self) -> Option<Made> {
        self.taken.fetch_add(1, Ordering::Relaxed);
        self.made.lock().ok()?.pop()
    }

    /// How often one was asked for.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Whether more are needed without delay.
    pub fn is_pressing(&self) -> bool {
        self.made.lock().is_ok_and(|made| made.len() <= FEW)
    }

    /// Whether it is time to make more. True for one caller, who then makes them.
    pub fn is_low(&self) -> bool {
        self.made.lock().is_ok_and(|made| made.len() <= MADE / 2) && !self.making.swap(true, Ordering::AcqRel)
    }

    /// Makes a few, or as many as the disk allows. False: there are enough, or there is no place for more.
    pub fn make_some(&self) -> bool {
        // Where there is no place for them a start makes its own directory, and says what is wrong.
        let _ = std::fs::DirBuilder::new().mode(0o700).recursive(true).create(&self.dir);
        for _ in 0..FEW {
            if self.made.lock().is_ok_and(|made| made.len() >= MADE) {
                return false;
            }
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            let Ok(one) = make(self.dir.join(number.to_string())) else { return false };
            if let Ok(mut made) = self.made.lock() {
                made.push(one);
            }
        }
        true
    }

    /// Who was told that they are low has made what was to be made.
    pub fn is_done(&self) {
        self.making.store(false, Ordering::Release);
    }
}

/// A directory that was made and never used, by its number.
fn unused(dir: &Path) -> Option<(u64, File)> {
    let number = dir.file_name()?.to_str()?.parse().ok()?;
    let record = File::options().read(true).write(true).open(dir.join("record")).ok()?;
    let alone = std::fs::read_dir(dir).ok()?.count() == 1;
    (alone && record.metadata().ok()?.len() == 0).then_some((number, record))
}

fn clear(path: &Path) {
    let cleared = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
    if let Err(e) = cleared {
        tracing::warn!(path = %path.display(), %e, "clear away what was made ahead");
    }
}

#[cfg(test)]
mod tests {
    use super::{Ahead, MADE};
    use std::os::unix::fs::FileExt;

    #[test]
    fn what_was_made_and_not_used_is_used_by_the_next_daemon() {
        let root = tempfile::tempdir().expect("the disk takes it");
        let dir = root.path().join("ready");
        let ahead = Ahead::open(dir.clone());
        assert!(ahead.take().is_none());
        assert!(ahead.is_low());
        assert!(!ahead.is_low(), "one makes them, not two");
        assert!(ahead.is_pressing(), "there is none");
        while ahead.make_some() {}
        ahead.is_done();
        assert!(!ahead.is_pressing() && !ahead.is_low(), "a burst can come");
        let used = ahead.take().expect("the disk takes it");
        used.record.write_all_at(b"begun", 0).expect("the disk takes it");
        std::fs::write(dir.join("stray"), "x").expect("the disk takes it");
        let again = Ahead::open(dir.clone());
        assert!(!used.dir.exists() && !dir.join("stray").exists());
        let all: Vec<_> = std::iter::from_fn(|| again.take()).collect();
        assert_eq!(all.len(), MADE - 1);
        assert!(all.iter().all(|made| made.dir.join("record").exists()));
        while again.make_some() {}
        assert_eq!(std::iter::from_fn(|| again.take()).count(), MADE, "no number is used twice");
        while again.make_some() {}
        (0..MADE / 2).for_each(|_| drop(again.take()));
        assert!(again.is_low() && !again.is_pressing(), "it is time, and it can wait for a pause");
    }
}
