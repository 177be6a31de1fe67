//! The extension of VS Code in Node, with a stand-in for the module `vscode` and a real daemon.
//!
//! `tests/vscode` runs it in the real editor: that takes 0.7 GB, so it is not part of every run.

use std::path::{Path, PathBuf};
use toold_test_support::rig::{Daemon, skip_unless};

fn extension() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("client/editors/vscode")
}

/// Runs a file of tests. It has a daemon of its own, which the extension starts.
fn run_node(file: &str) {
    let rig = Daemon::prepare("", &[]);
    let version = rig.tool("node", &["-p", "process.versions.node.split('.')[0]"]).output();
    let major = version.ok().and_then(|output| String::from_utf8_lossy(&output.stdout).trim().parse::<u32>().ok());
    if skip_unless(major >= Some(20), "node 20 or later is not installed") {
        return;
    }
    let path = extension().join("test").join(file).display().to_string();
    let output = rig.tool("timeout", &["240", "node", "--test", &path]).output().unwrap();
    let printed = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (printed(&output.stdout), printed(&output.stderr));
    assert!(output.status.success(), "{file}: {}\n{out}\n{err}", output.status);
    let passed = out.lines().any(|line| line.contains("pass ") && !line.ends_with("pass 0"));
    assert!(passed, "{file}: no test has run\n{out}");
}

#[test]
fn texts_facts_and_the_manifest_of_the_vscode_extension_hold() {
    run_node("pure.test.js");
}

#[test]
fn vscode_reconnects_to_a_daemon_that_was_killed_reports_it_once_and_loses_no_event() {
    run_node("connection.test.js");
}

#[test]
fn the_views_questions_and_logs_of_vscode_are_live() {
    run_node("views.test.js");
}

#[test]
fn tasks_of_vscode_outlive_the_editor_and_come_back_whole() {
    run_node("tasks.test.js");
}
