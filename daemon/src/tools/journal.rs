//! The journal of the calls of one caller: a file to which records are appended, a line each. A script's is `calls` in the
//! directory of its process. Nothing is synced: a power cut ends the caller too, and a killed daemon loses no `write(2)`.
//!
//! A line is the CRC-32 of its JSON in eight hex digits, a space, the JSON. A last line that is not whole was never answered,
//! and is cut off. A damaged line before it is skipped and reported.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use toold_proto::script::{Artifact, CallStatus, ResultFile, ScriptError, ScriptStatus};
use toold_proto::{ErrorKind, RpcError};

/// Length of the checksum and the space before the JSON of a line.
const PREFIX_LEN: usize = 9;

/// One fact about the calls of a caller. Fields are only added.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "t", rename_all = "snake_case")]
pub enum CallEntry {
    /// A call was accepted. It counts.
    Call(Accepted),
    /// The provider recorded facts before an effect.
    Facts { call: String, facts: Value },
    /// A call has ended.
    End(Ended),
    /// A call was refused. It does not count.
    Refused {
        tool: String,
        kind: String,
        at: u64,
        #[serde(default, skip_serializing_if = "is_zero")]
        cell: u64,
    },
    /// All refusals, when more were counted than journalled.
    Refusals { total: u64 },
    /// The script gave its value.
    Value {
        value: Value,
        #[serde(default, skip_serializing_if = "is_zero")]
        cell: u64,
    },
    /// The script reported its error.
    Error {
        error: ScriptError,
        #[serde(default, skip_serializing_if = "is_zero")]
        cell: u64,
    },
    /// The script named a file as its product.
    Artifact(Artifact),
    /// The script published a note.
    Note { text: String, at: u64 },
    /// A kernel got a cell.
    Cell(QueuedCell),
    /// The cell is handed to the driver from now on. `from`: the end of the output before it.
    CellStarted { cell: u64, from: u64, at: u64 },
    /// The cell is about to be interrupted.
    CellStopped { cell: u64, cause: StopCause, at: u64 },
    /// The cell has ended.
    CellEnded(EndedCell),
    /// Something that a later version records.
    #[serde(other)]
    Unknown,
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// An accepted call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Accepted {
    pub call: String,
    pub tool: String,
    pub args: Value,
    /// Milliseconds since 1970.
    pub at: u64,
    /// The cell of a kernel. 0: none.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cell: u64,
}

/// The end of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    pub call: String,
    pub at: u64,
    pub outcome: CallOutcome,
    /// The process that the call started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub process: Option<String>,
}

/// A cell of a kernel, as it was queued.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueuedCell {
    /// The first is 1.
    pub cell: u64,
    /// None: the interpreter is to be replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// None: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    pub max_calls: u64,
    pub at: u64,
}

/// The reason why a cell is interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StopCause {
    Client,
    Timeout,
    Reset,
}

/// The end of a cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EndedCell {
    pub cell: u64,
    pub status: ScriptStatus,
    /// The text of its last expression.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ScriptError>,
    /// The end of its output. None: it never began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// The exit of the interpreter, if that ended the cell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    pub at: u64,
}

/// The outcome of a call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallOutcome {
    Result(Value),
    /// A result that is too long for an answer.
    File(ResultFile),
    Error(RpcError),
    /// A verdict refused the call before it did anything. It does not count.
    Refused(RpcError),
}

impl CallOutcome {
    pub fn status(&self) -> CallStatus {
        match self.error().map(|error| (error.kind(), error)) {
            None => CallStatus::Ok,
            Some((Some(ErrorKind::OutcomeUnknown), _)) => CallStatus::Unknown,
            Some((Some(ErrorKind::Cancelled), _)) => CallStatus::Cancelled,
            Some((Some(ErrorKind::Denied), error)) if error.data.get("reason") == Some(&"retired".into()) => {
                CallStatus::Cancelled
            }
            Some(_) => CallStatus::Failed,
        }
    }

    /// Returns the length of the result as JSON.
    pub fn bytes(&self) -> u64 {
        match self {
            CallOutcome::Result(result) => result.to_string().len() as u64,
            CallOutcome::File(file) => file.bytes,
            CallOutcome::Error(_) | CallOutcome::Refused(_) => 0,
        }
    }

    pub fn is_refused(&self) -> bool {
        matches!(self, CallOutcome::Refused(_))
    }

    pub fn error(&self) -> Option<&RpcError> {
        match self {
            CallOutcome::Error(error) | CallOutcome::Refused(error) => Some(error),
            CallOutcome::Result(_) | CallOutcome::File(_) => None,
        }
    }
}

/// The place of an entry in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    at: u64,
    len: usize,
}

impl Place {
    /// Returns the offset of its first byte.
    pub fn start(self) -> u64 {
        self.at
    }

    /// Returns the offset after its last byte.
    pub fn end(self) -> u64 {
        self.at + self.len as u64
    }
}

/// An open journal.
#[derive(Debug)]
pub struct CallJournal {
    path: PathBuf,
    /// None until the first entry: most scripts make no call.
    file: Option<File>,
    end: u64,
}

/// The content of a journal that was found.
#[derive(Debug, Default)]
pub struct FoundCalls {
    pub entries: Vec<(CallEntry, Place)>,
    /// Number of lines that could not be read.
    pub damaged: usize,
}

impl CallJournal {
    /// Returns the journal of a new caller. Makes no file.
    pub fn new(path: PathBuf) -> CallJournal {
        CallJournal { path, file: None, end: 0 }
    }

    /// Reads the journal of a caller that an earlier daemon knew. Cuts off what a crash left of a last line.
    pub fn open(path: &Path) -> io::Result<(CallJournal, FoundCalls)> {
        let mut journal = CallJournal::new(path.into());
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((journal, FoundCalls::default())),
            Err(e) => return Err(e),
        };
        let (found, end) = parse(&bytes);
        let file = OpenOptions::new().write(true).read(true).open(path)?;
        if end < bytes.len() as u64 {
            file.set_len(end)?;
        }
        (journal.file, journal.end) = (Some(file), end);
        Ok((journal, found))
    }

    /// Reads the entries of a journal that another holder may append to.
    pub fn read_all(path: &Path) -> io::Result<FoundCalls> {
        match std::fs::read(path) {
            Ok(bytes) => Ok(parse(&bytes).0),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(FoundCalls::default()),
            Err(e) => Err(e),
        }
    }

    /// Reads the whole entries of a part, which begins at an entry. Without an end: up to the last.
    pub fn read_part(path: &Path, from: u64, to: Option<u64>) -> io::Result<FoundCalls> {
        let file = File::open(path)?;
        let end = to.map_or_else(|| file.metadata().map(|found| found.len()), Ok)?;
        let mut bytes = vec![0; end.saturating_sub(from) as usize];
        file.read_exact_at(&mut bytes, from)?;
        Ok(parse(&bytes).0)
    }

    /// Appends an entry. If the disk takes only a part of it, the next entry takes its place.
    pub fn append(&mut self, entry: &CallEntry) -> io::Result<Place> {
        let line = line_of(entry)?;
        let file = match &self.file {
            Some(file) => file,
            None => {
                let options = OpenOptions::new()
                    .write(true)
                    .read(true)
                    .create(true)
                    .mode(0o600)
                    .truncate(false)
                    .open(&self.path)?;
                self.file.insert(options)
            }
        };
        if let Err(e) = file.write_all_at(&line, self.end) {
            let _ = file.set_len(self.end);
            return Err(e);
        }
        let place = Place { at: self.end, len: line.len() };
        self.end += line.len() as u64;
        Ok(place)
    }

    /// Reads an entry again.
    pub fn read(&self, place: Place) -> io::Result<CallEntry> {
        let file = self.file.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let mut line = vec![0; place.len];
        file.read_exact_at(&mut line, place.at)?;
        parse_line(&line)
            .ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, "a damaged entry of the call journal"))
    }
}

/// Returns an entry as its line.
pub fn line_of(entry: &CallEntry) -> io::Result<Vec<u8>> {
    let mut line = vec![b' '; PREFIX_LEN];
    serde_json::to_writer(&mut line, entry)?;
    let checksum = crc32fast::hash(&line[PREFIX_LEN..]);
    write!(&mut line[..PREFIX_LEN - 1], "{checksum:08x}")?;
    line.push(b'\n');
    Ok(line)
}

/// Parses whole lines. Returns the end of the last one.
pub fn parse(bytes: &[u8]) -> (FoundCalls, u64) {
    let (mut found, mut at) = (FoundCalls::default(), 0);
    for line in bytes.split_inclusive(|byte| *byte == b'\n') {
        if !line.ends_with(b"\n") {
            break;
        }
        let place = Place { at, len: line.len() };
        at += line.len() as u64;
        match parse_line(line) {
            Some(CallEntry::Unknown) => {}
            Some(entry) => found.entries.push((entry, place)),
            None => found.damaged += 1,
        }
    }
    (found, at)
}

fn parse_line(line: &[u8]) -> Option<CallEntry> {
    let (prefix, json) = line.strip_suffix(b"\n")?.split_at_checked(PREFIX_LEN)?;
    let checksum = u32::from_str_radix(std::str::from_utf8(prefix).ok()?.strip_suffix(' ')?, 16).ok()?;
    if crc32fast::hash(json) != checksum {
        return None;
    }
    serde_json::from_slice(json).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn call(n: u64) -> CallEntry {
        CallEntry::Call(Accepted {
            call: format!("00000000-{n}"),
            tool: "terminal".into(),
            args: json!({"command": "x"}),
            at: n,
            cell: 0,
        })
    }

    fn end(n: u64) -> CallEntry {
        let outcome = CallOutcome::Result(json!({"n": n, "text": "a\nb"}));
        CallEntry::End(Ended { call: format!("00000000-{n}"), at: n, outcome, process: None })
    }

    #[test]
    fn entries_come_back_in_order_and_by_place() {
        let dir = tempfile::tempdir().expect("a directory");
        let path = dir.path().join("calls");
        let mut journal = CallJournal::new(path.clone());
        assert!(!path.exists(), "no call, no file");
        let entries = [call(1), end(1), call(2)];
        let places: Vec<Place> = entries.iter().map(|entry| journal.append(entry).expect("written")).collect();
        let (again, found) = CallJournal::open(&path).expect("it opens");
        assert_eq!(found.damaged, 0);
        assert_eq!(found.entries, entries.iter().cloned().zip(places.iter().copied()).collect::<Vec<_>>());
        assert_eq!(again.read(places[1]).expect("read"), entries[1]);
    }

    proptest! {
        #[test]
        fn any_cut_leaves_a_prefix_and_the_journal_goes_on(cut in 0usize..400) {
            let dir = tempfile::tempdir().expect("a directory");
            let path = dir.path().join("calls");
            let mut journal = CallJournal::new(path.clone());
            let all = [call(1), end(1), call(2), end(2)];
            all.iter().for_each(|entry| { journal.append(entry).expect("written"); });
            let bytes = std::fs::read(&path).expect("read");
            std::fs::write(&path, &bytes[..cut.min(bytes.len())]).expect("cut");
            let (mut journal, found) = CallJournal::open(&path).expect("it opens");
            let kept: Vec<CallEntry> = found.entries.into_iter().map(|(entry, _)| entry).collect();
            prop_assert_eq!(&kept[..], &all[..kept.len()]);
            journal.append(&call(9)).expect("written");
            let (_, found) = CallJournal::open(&path).expect("it opens");
            prop_assert_eq!(found.damaged, 0);
            prop_assert_eq!(found.entries.last().map(|(entry, _)| entry.clone()), Some(call(9)));
        }

        #[test]
        fn a_damaged_byte_costs_no_other_line(at in 0usize..300, byte: u8) {
            let dir = tempfile::tempdir().expect("a directory");
            let path = dir.path().join("calls");
            let mut journal = CallJournal::new(path.clone());
            let all = [call(1), end(1), call(2), end(2)];
            all.iter().for_each(|entry| { journal.append(entry).expect("written"); });
            let mut bytes = std::fs::read(&path).expect("read");
            let at = at % bytes.len();
            bytes[at] = byte;
            std::fs::write(&path, &bytes).expect("damaged");
            let (_, found) = CallJournal::open(&path).expect("it opens");
            // A newline that is damaged joins two lines, or cuts off the last.
            prop_assert!(found.entries.len() >= 2, "{:?}", found);
        }
    }
}
