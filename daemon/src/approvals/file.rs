//! The files of approvals and grants: one line of JSON after its checksum, replaced as a whole. A file is durable when it was
//! written.

use crate::store::checked_file;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;
use toold_proto::approval::{Approval, Grant};
use toold_shim::hooks;

/// Maximum length of a file. An action comes from one message, so no approval reaches this.
const MAX_LEN: u64 = 64 << 20;
/// The ending of a file that is being written.
const FRESH: &str = "tmp";

/// The numbers of the two events of an approval or a grant: its beginning and its end. An event that is due and has no number
/// is in the journal after `after`, or nowhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Published {
    pub first: Option<u64>,
    pub last: Option<u64>,
    pub after: u64,
}

impl Published {
    /// Forgets the numbers of events that the journal has lost at its end, `last`: they are published again.
    pub fn without_lost(self, last: u64) -> Published {
        let kept = |seq: Option<u64>| seq.filter(|seq| *seq <= last);
        Published { first: kept(self.first), last: kept(self.last), after: self.after.min(last) }
    }

    /// Returns the highest number.
    pub fn highest(&self) -> u64 {
        self.first.max(self.last).unwrap_or(0)
    }
}

/// An approval as its file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredApproval {
    pub approval: Approval,
    /// Milliseconds since 1970.
    pub at_ms: u64,
    pub expires_ms: u64,
    /// The `request_id` of a call that waits for it without a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The time after the decision at which its grant ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_ms: Option<u64>,
    /// The root of its grant, if it is not the one that was offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_root: Option<String>,
    /// The arguments and the number of uses to which a grant for a script is limited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_args_like: Option<serde_json::Map<String, serde_json::Value>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant_uses: Option<u64>,
    #[serde(default)]
    pub published: Published,
}

/// A grant as its file has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredGrant {
    pub grant: Grant,
    pub at_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_ms: Option<u64>,
    /// The last calls of its script that used it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub used_by: Vec<String>,
    #[serde(default)]
    pub published: Published,
}

/// The content of a directory, and descriptions of the damage in it.
pub struct Found<T> {
    pub all: Vec<T>,
    pub damage: Vec<String>,
}

/// Reads every file of a directory whose name `is_name` accepts. A damaged one is renamed and reported.
pub fn read_all<T: DeserializeOwned>(dir: &Path, is_name: impl Fn(&str) -> bool) -> io::Result<Found<T>> {
    let mut found = Found { all: Vec::new(), damage: Vec::new() };
    let entries = match std::fs::read_dir(dir) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(found),
        listed => listed?,
    };
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if path.extension().is_some_and(|ending| ending == FRESH) {
            let _ = std::fs::remove_file(&path);
        } else if is_name(name) {
            match checked_file::read(&path, MAX_LEN) {
                Ok(one) => found.all.push(one),
                Err(e) => {
                    let away = path.with_extension(format!("damaged-{}", std::process::id()));
                    let place = if std::fs::rename(&path, &away).is_ok() { &away } else { &path };
                    found.damage.push(format!("{}: {e}", place.display()));
                }
            }
        }
    }
    Ok(found)
}

/// Replaces a file, or makes it. It is durable when this returns.
pub fn write(dir: &Path, name: &str, content: &impl Serialize) -> io::Result<()> {
    let bytes = checked_file::encode(content)?;
    let (path, fresh) = (dir.join(name), dir.join(name).with_extension(FRESH));
    match DirBuilder::new().mode(0o700).create(dir) {
        Ok(()) => dir.parent().map_or(Ok(()), |parent| File::open(parent)?.sync_all())?,
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(e),
    }
    let _ = std::fs::remove_file(&fresh);
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&fresh)?;
    let written = file.write_all(&bytes).and_then(|()| file.sync_all());
    hooks::at("approval.written");
    if let Err(e) = written.and_then(|()| std::fs::rename(&fresh, &path)) {
        let _ = std::fs::remove_file(&fresh);
        return Err(e);
    }
    hooks::at("approval.replaced");
    File::open(dir)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;
    use checked_file::{SUM_LEN, decode, encode};

    /// The file of an approval as this version wrote it first: later ones read it.
    const RECORDED: &str = r#"{"approval":{"id":"appr_0123456789ab","state":"approved","kind":"exec","process":"proc_0123456789ab","session_key":"s","task_id":null,"requested_by":{"uid":1,"pid":2,"program":"/bin/a"},"at":"2026-11-16T03:28:50.123Z","expires_at":"2026-11-16T03:38:50.123Z","why":[{"label":"danger","text":"forced removal"}],"action":{"argv":["rm","-f","x"],"command":"rm -f x","cwd":"/"},"digest":"00","offers":[{"scope":"once","grant":null}],"decided_by":{"uid":1,"pid":3,"program":null},"decided_at":"2026-11-16T03:29:02.000Z","decision":"approve","scope":"once","grant":null,"message":null},"at_ms":1,"expires_ms":2,"published":{"first":7,"last":null,"after":9}}"#;

    #[test]
    fn the_file_is_as_recorded_and_any_change_is_found() {
        let stored: StoredApproval = serde_json::from_str(RECORDED).expect("it reads");
        let bytes = encode(&stored).expect("it prints");
        assert_eq!(std::str::from_utf8(&bytes[SUM_LEN..]), Ok(&*format!("{RECORDED}\n")));
        assert_eq!(decode(&bytes), Some(stored));
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_eq!(decode::<StoredApproval>(&changed), None, "byte {at}");
            assert_eq!(decode::<StoredApproval>(&bytes[..at]), None, "cut at {at}");
        }
    }

    #[test]
    fn an_event_that_the_journal_lost_at_its_end_is_published_again() {
        let all = Published { first: Some(4), last: Some(9), after: 8 };
        assert_eq!(all.without_lost(9), all);
        assert_eq!(all.without_lost(5), Published { first: Some(4), last: None, after: 5 });
        assert_eq!(all.highest(), 9);
    }
}
