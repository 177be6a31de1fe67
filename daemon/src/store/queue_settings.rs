//! The file of the queues that `queues.set` changed: one line of JSON after its checksum, replaced as a whole.

use super::checked_file;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use toold_shim::hooks;

/// Maximum length of the file. `MAX_QUEUES` of the longest names do not reach it.
const MAX_LEN: u64 = 4 << 20;

/// The settings of one queue as `queues.set` left them. None: as the config has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct StoredQueue {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slots: Option<u64>,
    pub paused: bool,
}

pub type StoredQueues = BTreeMap<String, StoredQueue>;

/// Reads the settings. A file that does not exist has none.
pub fn read(path: &Path) -> io::Result<StoredQueues> {
    match checked_file::read(path, MAX_LEN) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(StoredQueues::new()),
        read => read,
    }
}

/// Replaces the settings. They are durable when this returns.
pub fn write(path: &Path, queues: &StoredQueues) -> io::Result<()> {
    let fresh = path.with_extension("tmp");
    let _ = std::fs::remove_file(&fresh);
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&fresh)?;
    let written = file.write_all(&checked_file::encode(queues)?).and_then(|()| file.sync_all());
    hooks::at("queues.written");
    let replaced = written.and_then(|()| std::fs::rename(&fresh, path));
    if replaced.is_err() {
        let _ = std::fs::remove_file(&fresh);
    }
    replaced?;
    hooks::at("queues.replaced");
    path.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}

#[cfg(test)]
mod tests {
    use super::*;
    use checked_file::{SUM_LEN, decode, encode};

    #[test]
    fn the_file_is_as_recorded_and_any_change_is_found() {
        let queues = StoredQueues::from([
            ("build".into(), StoredQueue { slots: Some(4), paused: false }),
            ("night".into(), StoredQueue { slots: None, paused: true }),
        ]);
        let bytes = encode(&queues).expect("encodes");
        let text = r#"{"build":{"slots":4,"paused":false},"night":{"paused":true}}"#;
        assert_eq!(&bytes[SUM_LEN..], format!("{text}\n").as_bytes());
        assert_eq!(decode(&bytes), Some(queues));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(decode::<StoredQueues>(&changed), None, "byte {at}");
            assert_eq!(decode::<StoredQueues>(&bytes[..at]), None, "cut at {at}");
        }
    }
}
