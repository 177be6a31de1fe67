//! `fs.search`: lines, files and counts, in order and page by page, within a time.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::Command;
use toold_test_support::rig::Daemon;

fn tree(d: &Daemon) -> PathBuf {
    let root = d.root().join("tree");
    for (path, content) in [
        (".gitignore", "*.log\n"),
        (".git/HEAD", "needle\n"),
        (".hidden", "needle\n"),
        ("a.rs", "one needle\ntwo\nthree needle\n"),
        ("b/c.rs", "zero\nneedle\r\nlast\n"),
        ("b/d.txt", "Needle\n"),
        ("x.log", "needle\n"),
        ("binary", "needle\0\nneedle\n"),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    root
}

fn search(d: &Daemon, root: &PathBuf, more: Value) -> Value {
    let mut call = json!({ "pattern": "needle", "path": ".", "cwd": root });
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    d.ok("fs.search", call)
}

fn places(answer: &Value) -> Vec<Value> {
    let matches = answer["matches"].as_array().unwrap().iter();
    matches.map(|found| json!([found["path"], found["line"], found["text"]])).collect()
}

#[test]
fn lines_are_found_in_order_without_ignored_hidden_and_binary_files() {
    let d = Daemon::start();
    let root = tree(&d);
    let found = search(&d, &root, json!({}));
    let expected =
        [json!(["a.rs", 1, "one needle"]), json!(["a.rs", 3, "three needle"]), json!(["b/c.rs", 2, "needle"])];
    assert_eq!(places(&found), expected);
    assert_eq!(
        (&found["total"], &found["files"], &found["complete"], &found["next"], found.get("reason")),
        (&json!(3), &json!(2), &json!(true), &Value::Null, None),
        "{found}"
    );
    let absolute = d.ok("fs.search", json!({ "pattern": "needle", "path": root }));
    assert_eq!(absolute["matches"][0]["path"], json!(root.join("a.rs")));
    assert_eq!(search(&d, &root, json!({ "hidden": true, "ignore": false }))["files"], 5);
    assert_eq!(
        places(&search(&d, &root, json!({ "glob": "*.txt", "pattern": "(?i)needle" }))),
        [json!(["b/d.txt", 1, "Needle"])]
    );
    assert_eq!(search(&d, &root, json!({ "glob": "!b" }))["total"], 2);
    let file = d.ok("fs.search", json!({ "pattern": "needle", "path": root.join("x.log") }));
    assert_eq!(file["matches"][0]["path"], json!(root.join("x.log")), "a file that is named is searched");
}

#[test]
fn modes_give_files_and_counts() {
    let d = Daemon::start();
    let root = tree(&d);
    let files = search(&d, &root, json!({ "mode": "files" }));
    assert_eq!((&files["matches"], &files["total"]), (&json!([{ "path": "a.rs" }, { "path": "b/c.rs" }]), &json!(2)));
    let counts = search(&d, &root, json!({ "mode": "count" }));
    let expected = json!([{ "path": "a.rs", "count": 2 }, { "path": "b/c.rs", "count": 1 }]);
    assert_eq!((&counts["matches"], &counts["total"]), (&expected, &json!(3)));
}

#[test]
fn context_is_before_and_after_each_match() {
    let d = Daemon::start();
    let root = tree(&d);
    let found = search(&d, &root, json!({ "context": 1 }));
    let context: Vec<Value> =
        found["matches"].as_array().unwrap().iter().map(|found| json!([found["before"], found["after"]])).collect();
    assert_eq!(context, [json!([null, ["two"]]), json!([["two"], null]), json!([["zero"], ["last"]])]);
}

#[test]
fn pages_follow_each_other_and_total_counts_all() {
    let d = Daemon::start();
    let root = d.root().join("many");
    for n in 0..40 {
        let dir = root.join(format!("d{}", n % 4));
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(format!("f{n:02}")), "needle\nother\n".repeat(5)).unwrap();
    }
    for mode in ["content", "files"] {
        let all = search(&d, &root, json!({ "limit": 1000, "mode": mode }));
        assert_eq!(all["total"], if mode == "content" { 200 } else { 40 });
        let (mut pages, mut after) = (Vec::new(), Value::Null);
        loop {
            let mut call = json!({ "limit": 17, "mode": mode });
            if !after.is_null() {
                call["after"] = after;
            }
            let page = search(&d, &root, call);
            assert_eq!(page["total"], all["total"]);
            pages.extend(page["matches"].as_array().unwrap().clone());
            after = page["next"].clone();
            if after.is_null() {
                break;
            }
        }
        assert_eq!(json!(pages), all["matches"], "{mode}");
        let page = search(&d, &root, json!({ "limit": 7, "offset": 20, "mode": mode }));
        let expected = all["matches"].as_array().unwrap()[20..27].to_vec();
        assert_eq!((&page["matches"], &page["total"]), (&json!(expected), &all["total"]), "{mode}");
    }
}

#[test]
fn the_same_lines_are_found_as_ripgrep_finds() {
    let d = Daemon::start();
    let root = tree(&d);
    let Ok(rg) = Command::new("rg")
        .args(["--line-number", "--no-heading", "--sort", "path", "needle", "."])
        .current_dir(&root)
        .output()
    else {
        return eprintln!("skipped: needs rg");
    };
    let lines = String::from_utf8(rg.stdout).unwrap();
    let found = search(&d, &root, json!({}));
    let ours: Vec<String> = found["matches"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| {
            format!("./{}:{}:{}", found["path"].as_str().unwrap(), found["line"], found["text"].as_str().unwrap())
        })
        .collect();
    let theirs: Vec<&str> = lines.lines().filter(|line| !line.contains("binary")).collect();
    assert_eq!(ours, theirs);
}

#[test]
fn a_search_that_has_no_time_returns_what_it_found_and_why_it_is_not_complete() {
    let d = Daemon::start();
    let root = d.root().join("large");
    fs::create_dir(&root).unwrap();
    let block = "some text without it\n".repeat(50_000);
    (0..60).for_each(|n| fs::write(root.join(format!("{n}")), &block).unwrap());
    let found = search(&d, &root, json!({ "timeout_ms": 1, "pattern": "(a|b|.)*needle" }));
    assert_eq!(found["complete"], false, "{found}");
    assert!(found["reason"].as_str().unwrap().starts_with("timed out after 1 ms"), "{found}");
}

#[test]
fn a_search_can_be_cancelled() {
    let d = Daemon::start();
    let root = d.root().join("large");
    fs::create_dir(&root).unwrap();
    let block = "some text without it\n".repeat(100_000);
    (0..100).for_each(|n| fs::write(root.join(format!("{n}")), &block).unwrap());
    let mut conn = d.conn();
    let call = json!({ "pattern": "([a-z ]*){8}[0-9]needle", "path": root, "timeout_ms": 600_000 });
    let id = conn.request("fs.search", call);
    conn.request("$/cancelRequest", json!({ "id": id }));
    let error = conn.answer(id).expect_err("cancelled, or it would take minutes");
    assert_eq!(error["code"], -32800);
}

#[test]
fn unreadable_files_and_long_lines_are_reported() {
    let d = Daemon::start();
    let root = d.root().join("long");
    fs::create_dir(&root).unwrap();
    fs::write(root.join("cut"), format!("{}needle\n", "x".repeat(600))).unwrap();
    fs::write(root.join("endless"), vec![b'x'; 40 << 20]).unwrap();
    symlink("/etc", root.join("link")).unwrap();
    assert!(Command::new("mkfifo").arg(root.join("pipe")).status().unwrap().success());
    let found = search(&d, &root, json!({}));
    let first = &found["matches"][0];
    assert_eq!((first["text"].as_str().map(str::len), &first["cut"]), (Some(500), &json!(true)));
    assert_eq!((&found["complete"], &found["reason"]), (&json!(false), &json!("1 file could not be read")), "{found}");
    assert_eq!(found["unreadable"][0]["path"], "endless");
}

#[test]
fn wrong_searches_are_refused_by_parameter() {
    let d = Daemon::start();
    let root = tree(&d);
    for (param, more) in [
        ("pattern", json!({ "pattern": "a(" })),
        ("pattern", json!({ "pattern": "" })),
        ("pattern", json!({ "pattern": "a\nb" })),
        ("pattern", json!({ "pattern": "(\\w{1000}){1000}" })),
        ("glob", json!({ "glob": "a[" })),
        ("mode", json!({ "mode": "lines" })),
        ("context", json!({ "context": 21 })),
        ("limit", json!({ "limit": 0 })),
        ("timeout_ms", json!({ "timeout_ms": 0 })),
        ("after", json!({ "after": "nonsense" })),
        ("offset", json!({ "offset": 9951 })),
        ("path", json!({ "path": "/dev/zero" })),
    ] {
        let mut call = json!({ "pattern": "needle", "path": root });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        d.refused_param(param, "fs.search", call);
    }
    d.refused(-32001, "not_found", "fs.search", json!({ "pattern": "a", "path": root.join("missing") }));
}
