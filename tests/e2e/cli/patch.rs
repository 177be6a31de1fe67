//! `toolctl patch`: from a file, from stdin, checked, undone.

use serde_json::Value;
use std::fs;
use std::io::Write;
use std::process::{Output, Stdio};
use toold_test_support::rig::Daemon;

fn patch(d: &Daemon, args: &[&str], stdin: &str) -> Output {
    let mut command = d.ctl_command(&[&["patch"], args].concat());
    command.current_dir(d.home()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(stdin.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn texts(out: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (out.status.code().unwrap_or(-1), text(&out.stdout), text(&out.stderr))
}

#[test]
fn a_patch_is_checked_applied_and_undone() {
    let d = Daemon::start();
    fs::write(d.home().join("f"), "a\n").unwrap();
    let text = "*** Begin Patch\n*** Update File: f\n-a\n+b\n*** Add File: g\n+g\n*** End Patch\n";
    fs::write(d.home().join("p"), text).unwrap();
    let (code, out, err) = texts(&patch(&d, &["--check", "p"], ""));
    assert_eq!((code, err.as_str()), (0, ""));
    assert!(out.starts_with("would change 2 files: +2 -1\nM f\nA g\n") && out.contains("\n-a\n+b\n"), "{out}");
    assert_eq!(fs::read_to_string(d.home().join("f")).unwrap(), "a\n");
    let (code, out, _) = texts(&patch(&d, &[], text));
    assert_eq!(code, 0);
    let id = out.split(' ').next().unwrap().to_string();
    assert_eq!(out, format!("{id} changed 2 files: +2 -1\nM f\nA g\n"));
    assert_eq!(fs::read_to_string(d.home().join("f")).unwrap(), "b\n");
    let (code, out, _) = texts(&patch(&d, &["--revert", &id], ""));
    assert_eq!((code, out), (0, format!("{id} reverted in 2 files\nD g\nM f\n")));
    assert!(!d.home().join("g").exists());
    let (code, out, _) = texts(&patch(&d, &["--json", "-"], text));
    let result: Value = serde_json::from_str(&out).unwrap();
    assert_eq!((code, &result["status"]), (0, &Value::from("applied")));
}

#[test]
fn a_patch_that_does_not_fit_fails_with_its_line() {
    let d = Daemon::start();
    fs::write(d.home().join("f"), "a\n").unwrap();
    let (code, out, err) = texts(&patch(&d, &[], "*** Begin Patch\n*** Update File: f\n-x\n+b\n*** End Patch\n"));
    assert_eq!((code, out.as_str()), (2, ""), "{err}");
    assert!(err.contains("line 3") && err.contains("f: the file does not have these lines"), "{err}");
    let parts = "*** Begin Patch\n*** Add File: g\n+g\n*** Update File: f\n-x\n+b\n*** End Patch\n";
    let (code, out, err) = texts(&patch(&d, &["--sequential"], parts));
    assert_eq!(code, 1);
    assert!(out.ends_with("A g\n") && err.contains("the rest does not fit"), "{out}{err}");
    let (code, _, err) = texts(&patch(&d, &["missing"], ""));
    assert!(code == 2 && err.contains("missing"), "{err}");
}
