//! The journal of one set: `changes/<id>/journal` in the state directory, with the old bytes in `before` beside it.
//!
//! Three lines: the state, the head, the steps. The state is 40 bytes that are written again in place, so that a full disk
//! cannot keep a commit from being marked. The other lines are a checksum in 16 hex digits, a space, and JSON.

use super::identity::{FileId, Kind, Seen};
use super::{Request, paths};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use toold_format::fnv1a;

const FILE: &str = "journal";
const NEW_FILE: &str = "journal.new";
pub const BEFORE_FILE: &str = "before";
const MAGIC: &str = "toold-changes-1";
/// Magic, state and checksum, each with what ends it.
const STATE_LEN: usize = 40;
/// The longest head: its request id is bounded by the config.
const MAX_HEAD_LEN: u64 = 1 << 20;
/// The longest journal that is read. A set is bounded by `patch.max_bytes`, its note has a diff of it.
const MAX_LEN: u64 = 1 << 30;

/// The progress of a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeState {
    /// Nothing has changed. Files beside the targets may exist.
    Planned,
    /// Everything is there; any number of steps may be done.
    Prepared,
    /// All steps are done.
    Committed,
    /// The files beside the targets are removed.
    Cleaned,
    /// The owner has published the event.
    Published,
    /// Another set has undone this one, and its event was published before.
    Reverted,
}

impl ChangeState {
    const ALL: [(ChangeState, &str); 6] = [
        (ChangeState::Planned, "planned"),
        (ChangeState::Prepared, "prepared"),
        (ChangeState::Committed, "committed"),
        (ChangeState::Cleaned, "cleaned"),
        (ChangeState::Published, "published"),
        (ChangeState::Reverted, "reverted"),
    ];

    fn line(self) -> [u8; STATE_LEN] {
        let name = ChangeState::ALL.iter().find(|(state, _)| *state == self).map_or("", |(_, name)| name);
        let text = format!("{MAGIC} {name:<14}");
        let line = format!("{text} {:08x}\n", fnv1a(text.as_bytes()) as u32);
        let mut bytes = [b' '; STATE_LEN];
        bytes.copy_from_slice(line.as_bytes());
        bytes
    }

    fn parse(line: &[u8]) -> Option<ChangeState> {
        ChangeState::ALL.iter().map(|(state, _)| *state).find(|state| state.line() == line)
    }
}

/// The part of a journal that is read for every set at the start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Head {
    pub id: String,
    /// On the clock of retention.
    pub at_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Request>,
    /// The set that this one undoes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reverts: Option<String>,
    pub keeps_before: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Steps {
    /// Identities hold as they are as long as this is the boot.
    pub boot: String,
    pub roots: Vec<JournalRoot>,
    pub dirs: Vec<JournalDir>,
    pub steps: Vec<Step>,
    pub note: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalRoot {
    #[serde(with = "paths")]
    pub path: PathBuf,
    pub id: FileId,
}

/// A directory that existed before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalDir {
    pub root: usize,
    #[serde(with = "paths")]
    pub path: PathBuf,
    pub id: FileId,
}

/// The form of a step. Each is one rename.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Form {
    /// Exchanges target and temporary file: the temporary name has the old bytes then.
    Replace,
    /// Gives the temporary file the name of the target, which nothing has.
    Place,
    /// Gives the target the temporary name.
    Take,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    pub form: Form,
    pub root: usize,
    /// The real path of the target from the root.
    #[serde(with = "paths")]
    pub path: PathBuf,
    /// The directory of the temporary name, by its index.
    pub temp_dir: usize,
    pub temp: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old: Option<Old>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new: Option<New>,
}

/// The thing that has the name before the step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Old {
    pub kind: Kind,
    pub seen: Seen,
    pub mode: u32,
    pub uid: u32,
    pub gid: u32,
    /// Names and values, of files whose bytes are kept.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub xattrs: Vec<(Vec<u8>, Vec<u8>)>,
    /// The target of a link that is kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<Vec<u8>>,
    /// Of a file whose bytes are kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Their place in the file `before`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at: Option<u64>,
}

/// The thing that has the name after the step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct New {
    pub kind: Kind,
    /// Of a file, once it is written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Once it is there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<FileId>,
}

/// A whole journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeJournal {
    pub state: ChangeState,
    pub head: Head,
    pub steps: Steps,
}

fn line<T: Serialize>(value: &T) -> io::Result<Vec<u8>> {
    let json = serde_json::to_string(value)?;
    Ok(format!("{:016x} {json}\n", fnv1a(json.as_bytes())).into_bytes())
}

fn parse<T: for<'de> Deserialize<'de>>(line: &[u8]) -> io::Result<T> {
    let checked = line.strip_suffix(b"\n").and_then(|line| line.split_at_checked(17)).and_then(|(sum, json)| {
        let wanted = format!("{:016x} ", fnv1a(json));
        (sum == wanted.as_bytes()).then_some(json)
    });
    Ok(serde_json::from_slice(checked.ok_or_else(|| bad("does not match its checksum"))?)?)
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

impl ChangeJournal {
    /// Writes the journal whole, and waits until it is durable.
    pub fn write(&self, dir: &Path) -> io::Result<()> {
        let fresh = dir.join(NEW_FILE);
        let _ = std::fs::remove_file(&fresh);
        let mut file = File::options().write(true).create_new(true).mode(0o600).open(&fresh)?;
        file.write_all(&self.encode()?)?;
        file.sync_data()?;
        std::fs::rename(&fresh, dir.join(FILE))?;
        File::open(dir)?.sync_all()
    }

    pub fn encode(&self) -> io::Result<Vec<u8>> {
        let mut bytes = self.state.line().to_vec();
        bytes.extend(line(&self.head)?);
        bytes.extend(line(&self.steps)?);
        Ok(bytes)
    }

    pub fn decode(bytes: &[u8]) -> io::Result<ChangeJournal> {
        let mut reader = bytes;
        let (state, head) = read_start(&mut reader)?;
        Ok(ChangeJournal { state, head, steps: parse(reader)? })
    }

    pub fn read(dir: &Path) -> io::Result<ChangeJournal> {
        let mut bytes = Vec::new();
        open(dir)?.take(MAX_LEN).read_to_end(&mut bytes)?;
        ChangeJournal::decode(&bytes)
    }

    /// Reads the state and the head only.
    pub fn read_head(dir: &Path) -> io::Result<(ChangeState, Head)> {
        read_start(&mut BufReader::new(open(dir)?))
    }

    /// Writes the state of a journal again. `durable`: waits until it is on the disk.
    pub fn set_state(dir: &Path, state: ChangeState, durable: bool) -> io::Result<()> {
        let file = File::options().write(true).custom_flags(libc::O_NOFOLLOW).open(dir.join(FILE))?;
        file.write_all_at(&state.line(), 0)?;
        if durable { file.sync_data() } else { Ok(()) }
    }

    /// Removes the journal first: what is left then belongs to no set.
    pub fn remove(dir: &Path) -> io::Result<()> {
        match std::fs::remove_file(dir.join(FILE)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
            _ => std::fs::remove_dir_all(dir),
        }
    }
}

fn open(dir: &Path) -> io::Result<File> {
    crate::events::open_regular(&dir.join(FILE), File::options().read(true))
}

fn read_start(reader: &mut impl BufRead) -> io::Result<(ChangeState, Head)> {
    let mut state = [0; STATE_LEN];
    reader.read_exact(&mut state).map_err(|_| bad("is too short"))?;
    let state = ChangeState::parse(&state).ok_or_else(|| bad("has no state"))?;
    let mut head = Vec::new();
    reader.take(MAX_HEAD_LEN).read_until(b'\n', &mut head)?;
    Ok((state, parse(&head)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal() -> ChangeJournal {
        let id = FileId { dev: 1, ino: 2 };
        let seen = Seen { id, size: 3, mtime_ns: 4, ctime_ns: 5 };
        let old = Old {
            kind: Kind::File,
            seen,
            mode: 0o644,
            uid: 0,
            gid: 0,
            xattrs: vec![(b"user.a".to_vec(), vec![255])],
            link: None,
            sha256: Some("ab".into()),
            at: Some(0),
        };
        let new = New { kind: Kind::File, sha256: Some("cd".into()), id: Some(id) };
        let path = std::os::unix::ffi::OsStringExt::from_vec(vec![b'f', 255]);
        let path: std::ffi::OsString = path;
        ChangeJournal {
            state: ChangeState::Prepared,
            head: Head {
                id: "patch_1".into(),
                at_ms: 7,
                request: Some(Request { id: "r".into(), digest: 8 }),
                reverts: None,
                keeps_before: true,
            },
            steps: Steps {
                boot: "b".into(),
                roots: vec![JournalRoot { path: "/".into(), id }],
                dirs: vec![JournalDir { root: 0, path: "tmp".into(), id }],
                steps: vec![Step {
                    form: Form::Replace,
                    root: 0,
                    path: path.into(),
                    temp_dir: 0,
                    temp: ".toold-patch_1-0".into(),
                    old: Some(old),
                    new: Some(new),
                }],
                note: "{\"a\":1}".into(),
            },
        }
    }

    /// The bytes are on disks in use: they only grow.
    #[test]
    fn a_journal_is_as_recorded_and_any_change_is_found() {
        let journal = journal();
        let bytes = journal.encode().expect("encodes");
        let text = concat!(
            r#"{"id":"patch_1","at_ms":7,"request":{"id":"r","digest":8},"keeps_before":true}"#,
            "\n",
            r#"{"boot":"b","roots":[{"path":"/","id":{"dev":1,"ino":2}}],"dirs":[{"root":0,"path":"tmp","id":{"dev":1,"ino":2}}],"#,
            r#""steps":[{"form":"replace","root":0,"path":[102,255],"temp_dir":0,"temp":".toold-patch_1-0","#,
            r#""old":{"kind":"file","seen":{"id":{"dev":1,"ino":2},"size":3,"mtime_ns":4,"ctime_ns":5},"mode":420,"uid":0,"gid":0,"#,
            r#""xattrs":[[[117,115,101,114,46,97],[255]]],"sha256":"ab","at":0},"#,
            r#""new":{"kind":"file","sha256":"cd","id":{"dev":1,"ino":2}}}],"note":"{\"a\":1}"}"#,
            "\n",
        );
        let (state, rest) = bytes.split_at(STATE_LEN);
        assert_eq!(String::from_utf8_lossy(state), "toold-changes-1 prepared       04983b14\n");
        let lines: Vec<u8> = rest.split_inclusive(|b| *b == b'\n').flat_map(|line| line[17..].to_vec()).collect();
        assert_eq!(String::from_utf8_lossy(&lines), text);
        assert_eq!(ChangeJournal::decode(&bytes).expect("decodes"), journal);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert!(ChangeJournal::decode(&changed).is_err(), "byte {at}");
            assert!(ChangeJournal::decode(&bytes[..at]).is_err(), "cut at {at}");
        }
    }
}
