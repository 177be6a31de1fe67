//! `fs.edit`: strategies by name, and the facts of an edit that cannot be made.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use toold_test_support::rig::Daemon;

fn file(d: &Daemon, content: impl AsRef<[u8]>) -> PathBuf {
    let path = d.root().join("file.txt");
    fs::write(&path, content).unwrap();
    path
}

/// Edits a file with this content, and returns the answer and the new content.
fn edit(d: &Daemon, content: &str, old: &str, new: &str, more: Value) -> (Value, String) {
    let path = file(d, content);
    let mut call = json!({ "path": path, "old": old, "new": new });
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = d.ok("fs.edit", call);
    (answer, fs::read_to_string(path).unwrap())
}

#[test]
fn the_strategy_is_named() {
    let d = Daemon::start();
    let plain = json!({});
    let fuzzy = json!({ "fuzzy": true });
    let table = [
        ("a = 1\n", "a = 1", "a = 2", &plain, "exact", "a = 2\n"),
        ("\tif a:\n\t\tb()\n", "if a:\n    b()", "if a:\n    c()", &plain, "line_trimmed", "\tif a:\n\t\tc()\n"),
        ("a   =\t1\n", "a = 1", "a = 2", &plain, "whitespace_normalized", "a = 2\n"),
        ("a\nb\n", "a\\nb", "c\\nd", &plain, "escape_normalized", "c\nd\n"),
        (
            "print \u{201c}a\u{201d}\n",
            "print \"a\"",
            "prints \"a\"",
            &plain,
            "unicode_normalized",
            "prints \u{201c}a\u{201d}\n",
        ),
        ("f {\n  one\n  two\n}\n", "f {\n  one\n  too\n}", "f {}", &fuzzy, "block_anchor", "f {}\n"),
        ("let value = 10;\n", "let values = 10;", "let v = 1;", &fuzzy, "similar_lines", "let v = 1;\n"),
    ];
    for (content, old, new, more, strategy, expected) in table {
        let (answer, result) = edit(&d, content, old, new, more.clone());
        assert_eq!((&answer["strategy"], &answer["count"]), (&json!(strategy), &json!(1)), "{answer}");
        assert_eq!(result, expected, "{strategy}");
    }
}

#[test]
fn similar_texts_are_left_alone_without_fuzzy() {
    let d = Daemon::start();
    let path = file(&d, "f {\n  one\n  two\n}\n");
    d.refused(-32009, "no_match", "fs.edit", json!({ "path": path, "old": "f {\n  one\n  too\n}", "new": "f {}" }));
    assert_eq!(fs::read_to_string(&path).unwrap(), "f {\n  one\n  two\n}\n");
    let all = json!({ "path": path, "old": "f {\n  one\n  too\n}", "new": "f {}", "fuzzy": true, "replace_all": true });
    d.refused_param("replace_all", "fs.edit", all);
}

#[test]
fn a_text_that_is_not_there_has_the_three_nearest_places() {
    let d = Daemon::start();
    let content = "fn alpha() {}\nfn beta() {}\nlet sum = alpha() + beta();\nfn gamma() {}\n";
    let path = file(&d, content);
    let error = d.refused(
        -32009,
        "no_match",
        "fs.edit",
        json!({ "path": path, "old": "let sum = alpha() - beta();", "new": "x" }),
    );
    let nearest = error["data"]["nearest"].as_array().unwrap();
    assert_eq!(nearest.len(), 3, "{error}");
    assert_eq!((&nearest[0]["line"], &nearest[0]["text"]), (&json!(3), &json!("let sum = alpha() + beta();")));
    assert!(nearest[0]["similarity"].as_f64() > Some(0.9), "{error}");
    assert_eq!(error["data"]["sha256"], d.ok("fs.read", json!({ "path": path }))["sha256"]);
    assert_eq!(fs::read_to_string(path).unwrap(), content);
}

#[test]
fn a_text_that_is_there_twice_has_its_lines_and_replace_all_replaces_both() {
    let d = Daemon::start();
    let path = file(&d, "x\na();\ny\n  a();\n");
    let error = d.refused(-32009, "ambiguous_match", "fs.edit", json!({ "path": path, "old": "a();", "new": "b();" }));
    assert_eq!(error["data"]["matches"], json!([{ "line": 2, "text": "a();" }, { "line": 4, "text": "  a();" }]));
    assert_eq!((&error["data"]["count"], &error["data"]["strategy"]), (&json!(2), &json!("exact")));
    let all = d.ok("fs.edit", json!({ "path": path, "old": "a();", "new": "b();", "replace_all": true }));
    assert_eq!(all["count"], 2);
    assert_eq!(fs::read_to_string(path).unwrap(), "x\nb();\ny\n  b();\n");
}

#[test]
fn an_edit_that_was_made_before_is_no_change() {
    let d = Daemon::start();
    let path = file(&d, "the new line\n");
    let before = fs::metadata(&path).unwrap().modified().unwrap();
    let answer = d.ok("fs.edit", json!({ "path": path, "old": "the old line", "new": "the new line" }));
    assert_eq!(
        (&answer["no_change"], &answer["strategy"], &answer["count"], &answer["diff"]),
        (&json!(true), &Value::Null, &json!(0), &json!("")),
    );
    assert_eq!(fs::metadata(&path).unwrap().modified().unwrap(), before);
}

#[test]
fn line_ends_mark_mode_and_other_bytes_are_kept_and_the_diff_is_unified() {
    let d = Daemon::start();
    let path = file(&d, "\u{feff}one\r\ntwo\r\nthree\n");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o740)).unwrap();
    let answer = d.ok("fs.edit", json!({ "path": "file.txt", "cwd": d.root(), "old": "one\ntwo", "new": "1\n2\n2b" }));
    assert_eq!(fs::read_to_string(&path).unwrap(), "\u{feff}1\r\n2\r\n2b\r\nthree\n");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o740);
    let diff = answer["diff"].as_str().unwrap();
    assert!(diff.starts_with("--- a/file.txt\n+++ b/file.txt\n@@ -1,3 +1,4 @@\n-\u{feff}one\r\n"), "{diff}");
    let read = d.ok("fs.read", json!({ "path": path }));
    assert_eq!((&read["sha256"], &read["bom"]), (&answer["sha256"], &json!(true)));
}

#[test]
fn an_edit_needs_the_expected_content() {
    let d = Daemon::start();
    let path = file(&d, "one\n");
    let hash = d.ok("fs.read", json!({ "path": path }))["sha256"].clone();
    fs::write(&path, "one\nmore\n").unwrap();
    let call = |expect: &Value| json!({ "path": path, "old": "one", "new": "two", "expect": expect });
    let error = d.refused(-32009, "conflict", "fs.edit", call(&hash));
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\nmore\n");
    let answer = d.ok("fs.edit", call(&error["data"]["sha256"]));
    assert_eq!(answer["before_sha256"], error["data"]["sha256"]);
}

#[test]
fn wrong_edits_change_nothing() {
    let d = Daemon::start();
    let path = file(&d, "a b\n");
    for (param, old, new) in [("old", "", "x"), ("old", " \n ", "x"), ("new", "a", "a")] {
        d.refused_param(param, "fs.edit", json!({ "path": path, "old": old, "new": new }));
    }
    let edit = |path: PathBuf| json!({ "path": path, "old": "a", "new": "b" });
    d.refused_param("path", "fs.edit", edit(d.root().into()));
    d.refused(-32001, "not_found", "fs.edit", edit(d.root().join("file.tx")));
    fs::write(d.root().join("binary"), b"a\0b").unwrap();
    d.refused_param("path", "fs.edit", edit(d.root().join("binary")));
    fs::hard_link(&path, d.root().join("other")).unwrap();
    d.refused(-32009, "conflict", "fs.edit", edit(path.clone()));
    assert_eq!(fs::read_to_string(&path).unwrap(), "a b\n");
}
