//! `fs.write`: the whole content of a file, all or nothing.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use toold_test_support::rig::{Daemon, skip_unless};

fn path(d: &Daemon, name: &str) -> PathBuf {
    d.root().join("files").join(name)
}

fn start() -> Daemon {
    let d = Daemon::start();
    fs::create_dir(d.root().join("files")).unwrap();
    d
}

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn names(d: &Daemon) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(d.root().join("files"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn a_file_is_created_and_replaced_with_hashes_and_a_diff() {
    let d = start();
    let file = path(&d, "a/b/file");
    let created = d.ok("fs.write", json!({ "path": file, "content": "one\n", "expect": "absent" }));
    assert_eq!(
        (&created["bytes"], &created["before_sha256"], &created["created"]),
        (&json!(4), &Value::Null, &json!(true)),
        "{created}"
    );
    assert!(created["diff"].as_str().unwrap().ends_with("/a/b/file\n@@ -0,0 +1 @@\n+one\n"), "{created}");
    let call =
        json!({ "path": "file", "cwd": path(&d, "a/b"), "content_base64": "dHdvCg==", "expect": created["sha256"] });
    let replaced = d.ok("fs.write", call);
    assert_eq!((&replaced["before_sha256"], &replaced["created"]), (&created["sha256"], &json!(false)));
    assert_eq!(text(&file), "two\n");
    let read = d.ok("fs.read", json!({ "path": file }));
    assert_eq!(read["sha256"], replaced["sha256"]);
    let inode = fs::metadata(&file).unwrap().ino();
    let same = d.ok("fs.write", json!({ "path": file, "content": "two\n" }));
    assert_eq!((&same["diff"], fs::metadata(&file).unwrap().ino()), (&json!(""), inode), "nothing was written");
}

#[test]
fn a_file_that_is_not_as_expected_is_a_conflict_and_stays() {
    let d = start();
    let file = path(&d, "file");
    fs::write(&file, "mine\n").unwrap();
    let hash = d.ok("fs.read", json!({ "path": file }))["sha256"].clone();
    fs::write(&file, "theirs\n").unwrap();
    let call = |expect: Value| json!({ "path": file, "content": "new\n", "expect": expect });
    let error = d.refused(-32009, "conflict", "fs.write", call(hash));
    assert_eq!(error["data"]["sha256"], d.ok("fs.read", json!({ "path": file }))["sha256"], "{error}");
    d.refused(-32009, "conflict", "fs.write", call("absent".into()));
    assert_eq!(text(&file), "theirs\n");
    let missing = json!({ "path": path(&d, "x/missing"), "content": "", "expect": "0".repeat(64) });
    d.refused(-32009, "conflict", "fs.write", missing);
    assert_eq!(names(&d), ["file"], "no directory was made");
}

#[test]
fn of_writers_with_the_same_expectation_one_wins() {
    let d = start();
    let file = path(&d, "file");
    fs::write(&file, "0").unwrap();
    for round in 1..=10 {
        let expect = d.ok("fs.read", json!({ "path": file }))["sha256"].clone();
        let write = |n: u32| {
            let call = json!({ "path": file, "content": format!("{round} {n}"), "expect": expect });
            d.call("fs.write", call).map_err(|error| error["data"]["kind"].clone())
        };
        let answers: Vec<_> = thread::scope(|scope| {
            let calls: Vec<_> = (0..6).map(|n| scope.spawn(move || write(n))).collect();
            calls.into_iter().map(|call| call.join().unwrap()).collect()
        });
        let won: Vec<usize> = (0..6).filter(|n| answers[*n].is_ok()).collect();
        assert_eq!(won.len(), 1, "{answers:?}");
        assert!(
            answers.iter().filter_map(|answer| answer.as_ref().err()).all(|kind| kind == "conflict"),
            "{answers:?}"
        );
        assert_eq!(text(&file), format!("{round} {}", won[0]));
    }
    assert_eq!(names(&d), ["file"]);
}

#[test]
fn readers_and_writers_without_an_expectation_never_meet_a_file_that_is_being_replaced() {
    let d = start();
    let file = path(&d, "file");
    symlink(&file, path(&d, "link")).unwrap();
    fs::write(&file, "0").unwrap();
    thread::scope(|scope| {
        for n in 0..4 {
            let (d, file, link) = (&d, &file, path(&d, "link"));
            scope.spawn(move || {
                for round in 0..20 {
                    let through = if round % 2 == 0 { file } else { &link };
                    d.ok("fs.write", json!({ "path": through, "content": format!("{n} {round}") }));
                    d.ok("fs.read", json!({ "path": through }));
                }
            });
        }
    });
    assert_eq!(names(&d), ["file", "link"]);
}

#[test]
fn mode_owner_and_attributes_are_kept() {
    let d = start();
    let file = path(&d, "file");
    fs::write(&file, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).unwrap();
    let has_attributes = Command::new("setfattr").args(["-n", "user.note", "-v", "kept"]).arg(&file).status();
    let has_attributes = has_attributes.is_ok_and(|status| status.success());
    let by_root = is_root();
    if by_root {
        std::os::unix::fs::chown(&file, Some(1234), Some(4321)).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o751)).unwrap();
    }
    let written = d.ok("fs.write", json!({ "path": file, "content": "#!/bin/sh\ntrue\n" }));
    assert_eq!((mode(&file), written.get("not_kept")), (0o751, None), "{written}");
    if by_root {
        let found = fs::metadata(&file).unwrap();
        assert_eq!((found.uid(), found.gid()), (1234, 4321));
    }
    if !skip_unless(has_attributes, "extended attributes need setfattr and a file system that has them") {
        let shown = Command::new("getfattr").args(["-n", "user.note", "--only-values"]).arg(&file).output().unwrap();
        assert_eq!(shown.stdout, b"kept");
    }
    d.ok("fs.write", json!({ "path": file, "content": "x", "mode": "0600" }));
    assert_eq!(mode(&file), 0o600);
    d.ok("fs.write", json!({ "path": path(&d, "new"), "content": "x", "mode": "755" }));
    assert_eq!(mode(&path(&d, "new")), 0o755);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o4755)).unwrap();
    let written = d.ok("fs.write", json!({ "path": file, "content": "other" }));
    assert_eq!((mode(&file), written["not_kept"].as_array().map(Vec::len)), (0o755, Some(1)), "{written}");
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

#[test]
fn a_file_with_several_links_is_refused_unless_its_link_may_break() {
    let d = start();
    let (file, other) = (path(&d, "file"), path(&d, "other"));
    fs::write(&file, "old").unwrap();
    fs::hard_link(&file, &other).unwrap();
    let error = d.refused(-32009, "conflict", "fs.write", json!({ "path": file, "content": "new" }));
    assert!(error["message"].as_str().unwrap().contains("2 hard links"), "{error}");
    assert_eq!(text(&file), "old");
    d.ok("fs.write", json!({ "path": file, "content": "new", "hard_links": "break" }));
    assert_eq!((text(&file), text(&other)), ("new".into(), "old".into()));
}

#[test]
fn a_link_is_followed_and_stays_a_link() {
    let d = start();
    let (file, link) = (path(&d, "file"), path(&d, "link"));
    fs::write(&file, "old").unwrap();
    symlink("file", &link).unwrap();
    let written = d.ok("fs.write", json!({ "path": link, "content": "new" }));
    assert_eq!(written["path"], json!(fs::canonicalize(&file).unwrap()));
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(text(&file), "new");
    symlink("nothing", path(&d, "dangling")).unwrap();
    d.refused_param("path", "fs.write", json!({ "path": path(&d, "dangling"), "content": "new" }));
    assert!(!path(&d, "nothing").exists());
}

#[test]
fn wrong_calls_write_nothing() {
    let d = start();
    let file = path(&d, "file");
    fs::create_dir(path(&d, "dir")).unwrap();
    for (param, call) in [
        ("content", json!({ "path": file })),
        ("content", json!({ "path": file, "content": "a", "content_base64": "YQ==" })),
        ("content_base64", json!({ "path": file, "content_base64": "?" })),
        ("expect", json!({ "path": file, "content": "a", "expect": "nothing" })),
        ("mode", json!({ "path": file, "content": "a", "mode": "rw" })),
        ("path", json!({ "path": "file", "content": "a" })),
        ("path", json!({ "path": path(&d, "dir"), "content": "a" })),
        ("path", json!({ "path": path(&d, "x/file"), "content": "a", "create_dirs": false })),
        ("path", json!({ "path": "/dev/null", "content": "a" })),
    ] {
        d.refused_param(param, "fs.write", call);
    }
    assert_eq!(names(&d), ["dir"]);
}

#[test]
fn an_error_of_the_system_has_its_number() {
    let d = start();
    for path in ["/sys/toold-new", "/proc/sys/kernel/toold-new"] {
        let error = d.call("fs.write", json!({ "path": path, "content": "a" })).expect_err("no file can be made there");
        assert!(error["data"]["errno"].is_i64(), "{error}");
    }
    d.refused(-32005, "denied", "fs.write", json!({ "path": "/sys/toold-new", "content": "a" }));
}
