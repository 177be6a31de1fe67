//! Tests the log against a naive model: a vector with every byte written.

mod damage;
mod hold;
mod lines;
mod reader;
mod text;
mod writer;

use super::{Log, from_wire, to_wire};
use proptest::prelude::*;
use rustix::io::Errno;
use std::ffi::CStr;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use toold_format::Stream;
use toold_format::log::parse_log_name;
use toold_format::log::{Counts, LogSums, LogWriter};
use toold_format::log::{Dir, Files};
use toold_proto::process::Gap;

/// One append.
#[derive(Clone)]
pub struct Step {
    pub stream: Stream,
    pub bytes: Vec<u8>,
    /// Milliseconds since the step before.
    pub later: u64,
}

impl std::fmt::Debug for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:?} +{}ms {}x \"{}\"", self.stream, self.later, self.bytes.len(), self.bytes.escape_ascii())
    }
}

/// The result of a create or write on a scripted disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskResult {
    Full,
    Half,
    Error,
}

pub struct ScriptedDisk {
    dir: Dir,
    script: Vec<DiskResult>,
    at: usize,
}

impl ScriptedDisk {
    fn next(&mut self) -> DiskResult {
        let result = self.script.get(self.at % self.script.len().max(1)).copied().unwrap_or(DiskResult::Full);
        self.at += 1;
        result
    }
}

impl Files for ScriptedDisk {
    fn create(&mut self, name: &CStr) -> Result<OwnedFd, Errno> {
        if self.next() == DiskResult::Error { Err(Errno::NOSPC) } else { self.dir.create(name) }
    }

    fn write(&mut self, fd: &OwnedFd, bytes: &[u8]) -> Result<usize, Errno> {
        match self.next() {
            DiskResult::Full => self.dir.write(fd, bytes),
            DiskResult::Half => self.dir.write(fd, bytes.get(..bytes.len() / 2).unwrap_or_default()),
            DiskResult::Error => Err(Errno::IO),
        }
    }

    fn reserve(&mut self, fd: &OwnedFd, from: u64, len: u64) -> Result<(), Errno> {
        if self.next() == DiskResult::Error { Err(Errno::NOSPC) } else { self.dir.reserve(fd, from, len) }
    }

    fn release(&mut self, fd: &OwnedFd) {
        self.dir.release(fd);
    }

    fn remove(&mut self, name: &CStr) {
        self.dir.remove(name);
    }
}

/// All written bytes, and a directory with the log.
pub struct Model {
    pub dir: tempfile::TempDir,
    pub bytes: Vec<u8>,
    pub streams: Vec<Stream>,
    pub kept: Vec<bool>,
    pub counts: Counts,
    pub sums: LogSums,
    /// The checksums after each step.
    pub history: Vec<LogSums>,
}

impl Model {
    /// Runs the steps and compares every file with the written bytes.
    pub fn write(steps: &[Step], cap: u64, script: &[DiskResult]) -> Model {
        Model::watch(steps, cap, script, |_| {})
    }

    /// Does the same, and calls `look` after every step.
    pub fn watch(steps: &[Step], cap: u64, script: &[DiskResult], look: impl Fn(&Path)) -> Model {
        let dir = temporary();
        let fd = File::open(dir.path()).expect("the directory opens");
        let files = ScriptedDisk { dir: Dir::new(fd.into()), script: script.to_vec(), at: 0 };
        let mut writer = LogWriter::with_files(files, cap);
        let (mut bytes, mut streams, mut now) = (Vec::new(), Vec::new(), 1_700_000_000_000);
        let mut history = Vec::new();
        for step in steps {
            now += step.later;
            writer.append(step.stream, &step.bytes, now);
            bytes.extend_from_slice(&step.bytes);
            streams.resize(bytes.len(), step.stream);
            history.push(writer.sums());
            look(dir.path());
        }
        writer.release_reserved();
        let (counts, sums) = (writer.counts(), writer.sums());
        let mut model = Model { kept: vec![false; bytes.len()], dir, bytes, streams, counts, sums, history };
        model.update_kept();
        model
    }

    /// Updates `kept` from the files.
    pub fn update_kept(&mut self) {
        self.kept.fill(false);
        for (start, content) in segments(self.dir.path()) {
            let range = start as usize..start as usize + content.len();
            assert_eq!(Some(&*content), self.bytes.get(range.clone()), "the bytes of the segment at {start}");
            self.kept.get_mut(range).expect("a segment is within the written bytes").fill(true);
        }
    }

    pub fn open(&self) -> Log {
        Log::open(self.dir.path(), self.counts.end).expect("the log opens")
    }

    pub fn end(&self) -> usize {
        self.bytes.len()
    }

    pub fn is_in(&self, at: usize, stream: Option<Stream>) -> bool {
        stream.is_none_or(|stream| self.streams.get(at) == Some(&stream))
    }

    /// Returns the gap at `at`, if there is one.
    pub fn gap(&self, at: usize) -> Option<Gap> {
        let len = self.kept.get(at..)?.iter().take_while(|kept| !**kept).count();
        (len > 0).then_some(Gap { from: at as u64, to: (at + len) as u64 })
    }

    pub fn newlines(&self, to: usize, stream: Option<Stream>) -> u64 {
        (0..to).filter(|at| self.bytes.get(*at) == Some(&b'\n') && self.is_in(*at, stream)).count() as u64
    }

    /// Counts everything byte by byte.
    pub fn naive_counts(&self) -> Counts {
        let open = |stream| {
            let last = (0..self.end()).rev().find(|at| self.is_in(*at, stream));
            last.is_some_and(|at| self.bytes.get(at) != Some(&b'\n'))
        };
        let kept = self.kept.iter().filter(|kept| **kept).count() as u64;
        Counts {
            end: self.end() as u64,
            out_newlines: self.newlines(self.end(), Some(Stream::Stdout)),
            err_newlines: self.newlines(self.end(), Some(Stream::Stderr)),
            out_open: open(Some(Stream::Stdout)),
            err_open: open(Some(Stream::Stderr)),
            last_open: open(None),
            dropped: self.end() as u64 - kept - self.counts.unstored,
            unstored: self.counts.unstored,
        }
    }
}

pub fn segments(dir: &Path) -> Vec<(u64, Vec<u8>)> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).expect("the directory lists") {
        let entry = entry.expect("an entry");
        if let Some(start) = parse_log_name(entry.file_name().as_bytes()) {
            found.push((start, std::fs::read(entry.path()).expect("a segment reads")));
        }
    }
    found.sort();
    found
}

/// Returns a directory, in memory if possible: these tests create thousands of files.
pub fn temporary() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a temporary directory")
}

/// Returns the size of all files whose names start with `prefix`.
pub fn sizes(dir: &Path, prefix: &str) -> u64 {
    let entries = std::fs::read_dir(dir).expect("the directory lists").map(|entry| entry.expect("an entry"));
    let ours = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    ours.map(|entry| entry.metadata().map_or(0, |m| m.len())).sum()
}

pub fn stream() -> impl Strategy<Value = Stream> {
    prop_oneof![Just(Stream::Stdout), Just(Stream::Stderr)]
}

pub fn view() -> impl Strategy<Value = Option<Stream>> {
    prop_oneof![Just(None), stream().prop_map(Some)]
}

/// Generates output of a program: lines, bursts, alternating streams, pauses.
pub fn steps() -> impl Strategy<Value = Vec<Step>> {
    let text = prop_oneof![
        3 => "[ab\n]{0,30}".prop_map(String::into_bytes),
        1 => (1_usize..600).prop_map(|n| vec![b'x'; n]),
        1 => (1_usize..300).prop_map(|n| b"\n".repeat(n)),
    ];
    let later = prop_oneof![3 => Just(0_u64), 1 => 0_u64..300];
    let one = (stream(), text, later).prop_map(|(stream, bytes, later)| vec![Step { stream, bytes, later }]);
    let turns = (1_usize..200).prop_map(|n| {
        let step = |i: usize| Step {
            stream: if i.is_multiple_of(2) { Stream::Stdout } else { Stream::Stderr },
            bytes: vec![if i.is_multiple_of(5) { b'\n' } else { b'y' }],
            later: 0,
        };
        (0..n).map(step).collect()
    });
    proptest::collection::vec(prop_oneof![8 => one, 1 => turns], 0..20).prop_map(|steps| steps.concat())
}

pub fn caps() -> impl Strategy<Value = u64> {
    prop_oneof![Just(0), Just(1), 2_u64..64, 64_u64..4000, Just(1 << 20)]
}

pub fn disks() -> impl Strategy<Value = Vec<DiskResult>> {
    let result = prop_oneof![12 => Just(DiskResult::Full), 1 => Just(DiskResult::Half), 1 => Just(DiskResult::Error)];
    prop_oneof![Just(Vec::new()), proptest::collection::vec(result, 1..40)]
}
