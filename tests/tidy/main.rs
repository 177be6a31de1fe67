//! Rules that a machine can check: layers, names, prose, commit titles, sizes, first lines, unsafe, sleeps, coverage.

mod architecture;
mod commits;
mod crates;
mod layers;
mod names;
mod prose;
mod source;

use source::{Kind, all, root, sources};
use toold_proto::api::METHODS;

/// A file has one subject; more lines than this have two.
const MAX_LINES: usize = 450;
/// Unfinished work. In halves, so that this file passes its own check.
const MARKS: [&str; 4] =
    [concat!("to", "do!"), concat!("unimpl", "emented!"), concat!("TO", "DO"), concat!("FIX", "ME")];
const SLEEPS: [&str; 2] = [concat!("thread::", "sleep"), concat!("time::", "sleep")];
/// Reasons that allow a sleep in a test: it measures a rate, or the rig sets its own pace.
const REASONS: [&str; 2] = ["// measured:", "// rig:"];

pub fn none(rule: &str, broken: Vec<String>) {
    assert!(broken.is_empty(), "{rule}:\n  {}", broken.join("\n  "));
}

#[test]
fn every_file_starts_with_its_subject() {
    let without = all().into_iter().filter(|source| !source.text.starts_with("//! "));
    none("the first line is `//! ` and the subject of the file", without.map(|source| source.path).collect());
}

#[test]
fn no_file_is_long() {
    let long = all().into_iter().map(|source| (source.text.lines().count(), source.path));
    let long = long.filter(|(lines, _)| *lines > MAX_LINES).map(|(lines, path)| format!("{path}: {lines} lines"));
    none(&format!("at most {MAX_LINES} lines"), long.collect());
}

#[test]
fn unsafe_is_in_the_shim_and_in_sys_alone() {
    let allowed =
        |path: &str| path.starts_with("daemon/shim/src/") || path.ends_with("/sys.rs") || path.contains("/sys/");
    let mut broken = Vec::new();
    for source in all().iter().filter(|source| !allowed(&source.path)) {
        let uses = source.pieces().into_iter().filter(|piece| piece.kind == Kind::Identifier && piece.text == "unsafe");
        broken.extend(uses.map(|piece| format!("{}:{}", source.path, piece.line)));
    }
    none("it lives in the shim crate and in `sys`, each block with its SAFETY", broken);
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
