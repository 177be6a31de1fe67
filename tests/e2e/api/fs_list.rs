//! `fs.list`: entries in the order of their names, page by page.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use toold_test_support::rig::Daemon;

fn tree(d: &Daemon) -> PathBuf {
    let root = d.root().join("tree");
    for (path, content) in [
        (".git/HEAD", ""),
        (".gitignore", "*.log\nbuild/\n"),
        (".hidden", ""),
        ("a.rs", "fn a() {}\n"),
        ("a/b.rs", ""),
        ("a/c/d.rs", ""),
        ("a-b", ""),
        ("build/out", ""),
        ("x.log", ""),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    root
}

/// Returns the paths of all entries below the root.
fn paths(answer: &Value, root: &str) -> Vec<String> {
    let entries = answer["entries"].as_array().unwrap().iter();
    entries
        .map(|entry| entry["path"].as_str().unwrap().strip_prefix(root).unwrap().trim_start_matches('/').into())
        .collect()
}

#[test]
fn a_directory_is_listed_in_order_without_hidden_and_ignored_names() {
    let d = Daemon::start();
    let root = tree(&d);
    let list = |more: Value| {
        let mut call = json!({ "path": root });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        paths(&d.ok("fs.list", call), root.to_str().unwrap())
    };
    assert_eq!(list(json!({})), ["a", "a-b", "a.rs"]);
    assert_eq!(list(json!({ "depth": 2 })), ["a", "a/b.rs", "a/c", "a-b", "a.rs"]);
    assert_eq!(list(json!({ "depth": 9, "glob": "*.rs" })), ["a/b.rs", "a/c/d.rs", "a.rs"]);
    assert_eq!(list(json!({ "depth": 9, "glob": "a/*.rs" })), ["a/b.rs"]);
    assert_eq!(list(json!({ "ignore": false })), ["a", "a-b", "a.rs", "build", "x.log"]);
    assert_eq!(list(json!({ "hidden": true })), [".git", ".gitignore", ".hidden", "a", "a-b", "a.rs"]);
    assert_eq!(list(json!({ "hidden": true, "ignore": false })).len(), 8);
}

#[test]
fn pages_follow_each_other_in_the_order_of_names() {
    let d = Daemon::start();
    let root = tree(&d);
    let all = d.ok("fs.list", json!({ "path": root, "depth": 9, "hidden": true, "ignore": false }));
    let all = all["entries"].as_array().unwrap().clone();
    for limit in [1, 2, 5, 100] {
        let (mut pages, mut after) = (Vec::new(), Value::Null);
        loop {
            let mut call = json!({ "path": root, "depth": 9, "hidden": true, "ignore": false, "limit": limit });
            if !after.is_null() {
                call["after"] = after;
            }
            let page = d.ok("fs.list", call);
            assert!(page["entries"].as_array().unwrap().len() <= limit);
            pages.extend(page["entries"].as_array().unwrap().clone());
            after = page["next"].clone();
            if after.is_null() {
                break;
            }
        }
        assert_eq!(pages, all, "{limit}");
    }
}

#[test]
fn a_large_directory_is_listed_page_by_page() {
    let d = Daemon::start();
    let root = d.root().join("large");
    fs::create_dir(&root).unwrap();
    (0..20_000).for_each(|n| drop(fs::File::create(root.join(format!("{n:05}"))).unwrap()));
    let last = d.ok("fs.list", json!({ "path": root, "limit": 10, "after": "19994" }));
    let names: Vec<&str> =
        last["entries"].as_array().unwrap().iter().map(|entry| entry["name"].as_str().unwrap()).collect();
    assert_eq!((names, &last["next"]), (vec!["19995", "19996", "19997", "19998", "19999"], &Value::Null));
    let (mut count, mut after) = (0, json!(""));
    loop {
        let page = d.ok("fs.list", json!({ "path": root, "limit": 9000, "after": after }));
        count += page["entries"].as_array().unwrap().len();
        after = page["next"].clone();
        if after.is_null() {
            break;
        }
    }
    assert_eq!(count, 20_000);
}

#[test]
fn an_entry_has_its_type_size_and_target() {
    let d = Daemon::start();
    let root = d.root().join("types");
    fs::create_dir_all(root.join("dir")).unwrap();
    fs::write(root.join("file"), "12345").unwrap();
    symlink("file", root.join("link")).unwrap();
    symlink(&root, root.join("loop")).unwrap();
    assert!(Command::new("mkfifo").arg(root.join("pipe")).status().unwrap().success());
    let answer = d.ok("fs.list", json!({ "path": ".", "cwd": root, "depth": 9 }));
    let facts: Vec<Value> = answer["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| json!([entry["path"], entry["type"], entry["bytes"], entry["target"]]))
        .collect();
    assert_eq!(
        facts,
        [
            json!(["dir", "dir", null, null]),
            json!(["file", "file", 5, null]),
            json!(["link", "symlink", null, "file"]),
            json!(["loop", "symlink", null, root]),
            json!(["pipe", "fifo", null, null]),
        ]
    );
    assert!(answer["entries"][1]["modified_at"].as_str().unwrap().ends_with('Z'));
}

#[test]
fn wrong_calls_of_list_are_refused() {
    let d = Daemon::start();
    let root = tree(&d);
    for (param, call) in [
        ("depth", json!({ "path": root, "depth": 0 })),
        ("depth", json!({ "path": root, "depth": 65 })),
        ("limit", json!({ "path": root, "limit": 0 })),
        ("limit", json!({ "path": root, "limit": 10_001 })),
        ("glob", json!({ "path": root, "glob": "a[" })),
        ("path", json!({ "path": root.join("a.rs") })),
        ("path", json!({ "path": "tree" })),
    ] {
        d.refused_param(param, "fs.list", call);
    }
    let error = d.refused(-32001, "not_found", "fs.list", json!({ "path": root.join("aa") }));
    assert_eq!(error["data"]["similar"], json!([]), "{error}");
}
