//! The identity of a file at one moment.

use rustix::fs::{FileType, Stat};
use serde::{Deserialize, Serialize};

/// A file, whatever its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FileId {
    pub dev: u64,
    pub ino: u64,
}

impl FileId {
    pub fn of(stat: &Stat) -> FileId {
        FileId { dev: stat.st_dev, ino: stat.st_ino }
    }
}

/// A file as it was seen. A change of its bytes, its mode or its names changes this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Seen {
    pub id: FileId,
    pub size: u64,
    pub mtime_ns: i64,
    pub ctime_ns: i64,
}

impl Seen {
    pub fn of(stat: &Stat) -> Seen {
        Seen {
            id: FileId::of(stat),
            size: stat.st_size.cast_unsigned(),
            mtime_ns: nanoseconds(stat.st_mtime, stat.st_mtime_nsec),
            ctime_ns: nanoseconds(stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// Returns true for the same file with the same bytes. A rename changes the time of the last change, which does not count.
    pub fn has_same_bytes(&self, other: &Seen) -> bool {
        (self.id, self.size, self.mtime_ns) == (other.id, other.size, other.mtime_ns)
    }
}

/// The kinds of things that a step handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    File,
    Dir,
    Link,
}

impl Kind {
    /// None: a device, a pipe or a socket.
    pub fn of(stat: &Stat) -> Option<Kind> {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Some(Kind::File),
            FileType::Directory => Some(Kind::Dir),
            FileType::Symlink => Some(Kind::Link),
            _ => None,
        }
    }
}

fn nanoseconds(seconds: impl TryInto<i64>, nanoseconds: impl TryInto<i64>) -> i64 {
    let seconds = seconds.try_into().unwrap_or(0);
    seconds.saturating_mul(1_000_000_000).saturating_add(nanoseconds.try_into().unwrap_or(0))
}
