//! The file of a server, `mcp/NAME` in the state directory: a cache of its last list of tools, and the state of its running process.
//! Nothing is lost with it but time: a damaged one is reported, and the server is asked again.

use super::tool_list::ServerTool;
use crate::store::checked_file;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use toold_proto::ProcId;
use toold_shim::hooks;

/// The longest file. A list of tools has a bound of its own; a message may be as long as a call.
const MAX_LEN: u64 = 64 << 20;

/// The protocol of a server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "era", content = "version", rename_all = "snake_case")]
pub enum Era {
    /// Every request names its version.
    Modern(String),
    /// It begins with `initialize`.
    Legacy(String),
}

/// The process that is the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedProcess {
    pub id: ProcId,
    /// The handshake is done and must not be made again.
    pub ready: bool,
    /// The offset in its log up to which everything was read and acted on.
    pub cursor: u64,
}

/// The state of a server.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct SavedServer {
    /// The digest of its config. With another config it is another server.
    pub config: u64,
    pub era: Option<Era>,
    pub process: Option<SavedProcess>,
    /// None: it has not listed them yet.
    pub tools: Option<Vec<ServerTool>>,
}

/// A long message that is being written to a server. If the daemon dies meanwhile, the next one writes the rest, before anything
/// else: the server would take another message for the end of this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LongWrite {
    pub process: ProcId,
    pub write_id: String,
    pub data: String,
}

/// Reads a file. None: there is none.
pub fn read<T: DeserializeOwned>(path: &Path) -> io::Result<Option<T>> {
    match checked_file::read(path, MAX_LEN) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

/// Replaces a file. Not synced: a power cut ends the server too.
pub fn write(path: &Path, content: &impl Serialize) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    }
    let fresh = path.with_extension("tmp");
    let _ = std::fs::remove_file(&fresh);
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&fresh)?;
    let written = file.write_all(&checked_file::encode(content)?);
    hooks::at("mcp.state_written");
    let replaced = written.and_then(|()| std::fs::rename(&fresh, path));
    if replaced.is_err() {
        let _ = std::fs::remove_file(&fresh);
    }
    replaced
}

/// Removes a file, if it is there.
pub fn remove(path: &Path) {
    match std::fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => {
            tracing::warn!(path = %path.display(), %e, "failed to remove a file of an MCP server");
        }
        Ok(()) | Err(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_as_recorded_and_damage_is_found() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("mcp/files.json");
        assert_eq!(read::<SavedServer>(&path).expect("none"), None);
        let saved = SavedServer {
            config: 7,
            era: Some(Era::Legacy("2025-11-25".into())),
            process: Some(SavedProcess { id: ProcId::from_bits(1), ready: true, cursor: 9 }),
            tools: Some(Vec::new()),
        };
        write(&path, &saved).expect("written");
        let bytes = std::fs::read(&path).expect("there");
        let text = r#"{"config":7,"era":{"era":"legacy","version":"2025-11-25"},"process":{"id":"proc_000000000001","ready":true,"cursor":9},"tools":[]}"#;
        assert_eq!(String::from_utf8_lossy(&bytes[checked_file::SUM_LEN..]), format!("{text}\n"));
        assert_eq!(read::<SavedServer>(&path).expect("readable"), Some(saved));
        std::fs::write(&path, &bytes[..bytes.len() - 2]).expect("writable");
        assert!(read::<SavedServer>(&path).is_err());
        remove(&path);
        remove(&path);
        assert_eq!(read::<SavedServer>(&path).expect("none"), None);
    }
}
