//! The rules of the house that a machine can check: layers, sizes, openings, unsafe, marks, sleeps, coverage.

mod layers;

use std::fs;
use std::path::{Path, PathBuf};
use toold_proto::api::METHODS;

/// A file is one thing; more lines than this are two.
const MOST_LINES: usize = 450;
/// Where Rust sources of ours are.
const SOURCES: [&str; 6] = ["proto", "daemon", "client", "tests", "fuzz/src", "fuzz/fuzz_targets"];
/// Unfinished work. In halves, so that this file passes its own check.
const MARKS: [&str; 4] =
    [concat!("to", "do!"), concat!("unimpl", "emented!"), concat!("TO", "DO"), concat!("FIX", "ME")];
const SLEEPS: [&str; 2] = [concat!("thread::", "sleep"), concat!("time::", "sleep")];
/// What a sleep in a test must say about itself: a rate that is measured, or the rig's own pace.
const REASONS: [&str; 2] = ["// measured:", "// rig:"];

/// A source file of ours.
pub struct Source {
    /// From the repository's root, with `/`.
    pub path: String,
    pub text: String,
}

impl Source {
    /// Its lines, counted from 1, without comments. A `//` in a string cuts a line short: that hides, and never accuses.
    pub fn code(&self) -> impl Iterator<Item = (usize, &str)> {
        let lines = self.text.lines().enumerate();
        lines.map(|(i, line)| (i + 1, line.split_once("//").map_or(line, |(code, _)| code)))
    }

    /// The first line that is only built for tests. A file of tests is from its first line on.
    fn tests_from(&self) -> Option<usize> {
        let parts: Vec<&str> = self.path.split('/').collect();
        if parts.iter().any(|part| matches!(*part, "tests" | "tests.rs" | "testing.rs")) {
            return Some(1);
        }
        self.text.lines().position(|line| line.trim() == "#[cfg(test)]").map(|i| i + 1)
    }
}

pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below `dir`, in order.
pub fn sources(dir: &str) -> Vec<Source> {
    let mut found = Vec::new();
    let mut dirs = vec![root().join(dir)];
    while let Some(dir) = dirs.pop() {
        let Ok(entries) = fs::read_dir(&dir) else { continue };
        for path in entries.map(|entry| entry.expect("an entry").path()) {
            if path.is_dir() && path.file_name().is_none_or(|name| name != "target") {
                dirs.push(path);
            } else if path.extension().is_some_and(|ext| ext == "rs") {
                found.push(Source { text: fs::read_to_string(&path).expect("a source"), path: shown(path) });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn shown(path: PathBuf) -> String {
    path.strip_prefix(root()).expect("below the root").to_string_lossy().into_owned()
}

fn all() -> Vec<Source> {
    let all: Vec<Source> = SOURCES.iter().flat_map(|dir| sources(dir)).collect();
    assert!(all.len() > 50, "the sources are found");
    all
}

pub fn none(rule: &str, broken: Vec<String>) {
    assert!(broken.is_empty(), "{rule}:\n  {}", broken.join("\n  "));
}

/// Whether `word` is in `line` as a word of its own.
fn has_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').any(|w| w == word)
}

#[test]
fn every_file_opens_by_saying_what_it_is() {
    let mute = all().into_iter().filter(|source| !source.text.starts_with("//! "));
    none("the first line is `//! ` and what lives here", mute.map(|source| source.path).collect());
}

#[test]
fn no_file_is_long() {
    let long = all().into_iter().map(|source| (source.text.lines().count(), source.path));
    let long = long.filter(|(lines, _)| *lines > MOST_LINES).map(|(lines, path)| format!("{path}: {lines} lines"));
    none(&format!("at most {MOST_LINES} lines"), long.collect());
}

#[test]
fn unsafe_is_in_sys_alone() {
    let unsafe_word = concat!("un", "safe");
    let mut broken = Vec::new();
    for source in all().iter().filter(|source| !source.path.ends_with("/sys.rs") && !source.path.contains("/sys/")) {
        let lines = source.code().filter(|(_, line)| has_word(line, unsafe_word));
        broken.extend(lines.map(|(number, _)| format!("{}:{number}", source.path)));
    }
    none("it lives in sys, each block with its SAFETY", broken);
}

#[test]
fn nothing_is_left_unfinished() {
    let mut broken = Vec::new();
    for source in all() {
        for (i, line) in source.text.lines().enumerate() {
            if MARKS.iter().any(|mark| line.contains(mark)) {
                broken.push(format!("{}:{}: {}", source.path, i + 1, line.trim()));
            }
        }
    }
    none("finish it, or file it", broken);
}

#[test]
fn tests_wait_for_events_and_do_not_sleep() {
    let mut broken = Vec::new();
    for source in all() {
        let Some(from) = source.tests_from() else { continue };
        for (i, line) in source.text.lines().enumerate().skip(from - 1) {
            if SLEEPS.iter().any(|sleep| line.contains(sleep)) && !REASONS.iter().any(|reason| line.contains(reason)) {
                broken.push(format!("{}:{}: {}", source.path, i + 1, line.trim()));
            }
        }
    }
    none("wait for an event, a hook or a lock", broken);
}

#[test]
fn every_method_has_a_black_box_test() {
    let e2e = sources("tests/e2e");
    if e2e.is_empty() {
        return;
    }
    let untested = METHODS.iter().map(|method| format!("\"{}\"", method.name));
    let untested = untested.filter(|name| !e2e.iter().any(|source| source.text.contains(name.as_str())));
    none("a method is called by its name in tests/e2e", untested.collect());
}

#[test]
fn the_golden_files_are_there() {
    let golden = ["proto/openrpc.json", "daemon/tests/golden/frames-v1.txt", "tests/golden/state-v1/procs"];
    none(
        "a promise has a golden file",
        golden.map(String::from).into_iter().filter(|f| !root().join(f).exists()).collect(),
    );
}
