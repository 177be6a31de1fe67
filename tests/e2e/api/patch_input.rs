//! `patch.apply` with input that it refuses: a clear error, and nothing changed.

use super::patch_apply::Work;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use toold_test_support::rig::Daemon;

/// Refuses a patch, and checks that no file has changed.
#[track_caller]
fn refused(d: &Daemon, work: &Work, code: i32, kind: &str, call: Value) -> Value {
    let before = work.all();
    let error = d.refused(code, kind, "patch.apply", call);
    assert_eq!(work.all(), before, "nothing is changed: {error}");
    error
}

#[test]
fn a_bad_patch_is_refused_with_its_line() {
    let d = Daemon::start();
    let work = Work::new(&d);
    work.put("f", "one\ntwo\nthree\n");
    for (patch, line, text) in [
        ("", 1, "the first line must be `*** Begin Patch`"),
        ("*** Update File: f\n-one\n+x", 1, "the first line must be"),
        ("*** Begin Patch\n*** Frobnicate File: f\n*** End Patch", 2, "is not the header of an operation"),
        ("*** Begin Patch\n*** Update File:\n*** End Patch", 2, "names no file"),
        ("*** Begin Patch\n*** Update File: f\n*** End Patch", 2, "changes nothing"),
        ("*** Begin Patch\n*** Update File: f\n@@\n?what\n*** End Patch", 4, "must begin with"),
        ("*** Begin Patch\n*** Add File: g\nno plus\n*** End Patch", 3, "must begin with `+`"),
        ("*** Begin Patch\n*** Update File: f\n-one\n+x\n", 4, "the last line must be `*** End Patch`"),
        ("*** Begin Patch\n*** End Patch", 2, "no files were modified"),
        ("*** Begin Patch\n*** Delete File: missing\n*** End Patch", 2, "missing: there is no such file"),
        (
            "*** Begin Patch\n*** Add File: g\n+g\n*** Update File: missing\n-a\n+b\n*** End Patch",
            4,
            "there is no such file",
        ),
        ("*** Begin Patch\n*** Add File: f/below\n+g\n*** End Patch", 2, "Not a directory"),
        ("*** Begin Patch\n*** Delete File: .\n*** End Patch", 2, "directory"),
        // It made a file without the slash.
        ("*** Begin Patch\n*** Add File: g/\n+g\n*** End Patch", 2, "it names a directory"),
        // The answer was a conflict, although no file had changed.
        ("*** Begin Patch\n*** Add File: g\n+g\n*** Add File: g/h\n+h\n*** End Patch", 4, "makes /"),
        ("*** Begin Patch\n*** Add File: g/h\n+h\n*** Add File: g\n+g\n*** End Patch", 4, "makes it a directory"),
        (&format!("*** Begin Patch\n*** Add File: {}x\n+x\n*** End Patch", "d/".repeat(3000)), 2, "too long"),
    ] {
        let call = json!({ "patch": patch, "cwd": work.dir });
        let error = refused(&d, &work, -32602, "invalid_params", call);
        assert_eq!(
            (&error["data"]["line"], &error["data"]["param"]),
            (&json!(line), &json!("patch")),
            "{patch}: {error}"
        );
        assert!(error["message"].as_str().unwrap().contains(text), "{patch}: {error}");
    }
}

#[test]
fn context_that_is_not_there_is_refused_with_the_nearest_place() {
    let d = Daemon::start();
    let work = Work::new(&d);
    work.put("f", "fn a() {\n    one();\n    two();\n}\nfn b() {\n    three();\n}\n");
    let call = work.call("*** Update File: f\n@@\n fn a() {\n     one();\n-    deux();\n+    due();", json!({}));
    let error = refused(&d, &work, -32602, "invalid_params", call);
    let data = &error["data"];
    assert_eq!((&data["line"], &data["path"]), (&json!(3), &json!("f")), "{error}");
    assert_eq!(data["nearest"][0], json!({ "line": 1, "text": "fn a() {" }), "{error}");
    assert!(error["message"].as_str().unwrap().contains("nearest: line 1 of the file, `fn a() {`"), "{error}");
    let call = work.call("*** Update File: f\n@@ fn c() {\n-    one();\n+    x();", json!({}));
    let error = refused(&d, &work, -32602, "invalid_params", call);
    assert!(error["message"].as_str().unwrap().contains("context line"), "{error}");
}

#[test]
fn two_operations_on_one_path_are_refused_by_whatever_name() {
    let d = Daemon::start();
    let work = Work::new(&d);
    work.put("f", "a\n");
    work.put("dir/g", "g\n");
    symlink("f", work.dir.join("link")).unwrap();
    for second in [
        "*** Delete File: f",
        "*** Add File: ./dir/../f\n+x",
        "*** Update File: link\n-a\n+c",
        "*** Update File: dir/g\n*** Move to: f\n-g\n+h",
    ] {
        let call = work.call(&format!("*** Update File: f\n-a\n+b\n{second}"), json!({}));
        let error = refused(&d, &work, -32602, "invalid_params", call);
        assert_eq!(error["data"]["line"], 5, "{second}: {error}");
        assert!(error["message"].as_str().unwrap().contains("same file"), "{second}: {error}");
    }
}

#[test]
fn a_path_out_of_the_roots_or_through_a_link_out_of_them_is_denied() {
    let d = Daemon::start();
    let work = Work::new(&d);
    work.put("f", "a\n");
    work.put("sub/g", "g\n");
    let outside = d.root().join("outside");
    fs::create_dir(&outside).unwrap();
    let outside = outside.canonicalize().unwrap();
    fs::write(outside.join("secret"), "s\n").unwrap();
    symlink(&outside, work.dir.join("way")).unwrap();
    symlink("../outside/secret", work.dir.join("file")).unwrap();
    symlink("sub", work.dir.join("inside")).unwrap();
    let sandbox = json!({ "sandbox": "workspace-write", "approval_timeout_ms": 0 });
    for (path, reason) in [
        ("../outside/new", "leads out of the roots"),
        ("way/new", "leads out of the roots"),
        ("file", "leads out of the roots"),
        ("sub/../../outside/new", "leads out of the roots"),
        (outside.join("new").to_str().unwrap(), "outside_roots"),
        (".git/hooks/pre-commit", "protects"),
        (".envrc", "protects"),
    ] {
        let call = work.call(&format!("*** Add File: ok\n+ok\n*** Add File: {path}\n+x"), sandbox.clone());
        let error = refused(&d, &work, -32005, "denied", call);
        assert!(error["data"]["reason"].as_str().unwrap().contains(reason), "{path}: {error}");
    }
    assert_eq!(fs::read_to_string(outside.join("secret")).unwrap(), "s\n");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    // A link that stays inside is followed, and stays a link.
    d.ok("patch.apply", work.call("*** Update File: inside/g\n-g\n+h", sandbox.clone()));
    assert_eq!(work.text("sub/g"), "h\n");
    let read_only =
        work.call("*** Update File: f\n-a\n+b", json!({ "sandbox": "read-only", "approval_timeout_ms": 0 }));
    refused(&d, &work, -32005, "denied", read_only);
    // A link itself is not removed by the name of a file.
    let call = work.call("*** Delete File: file", json!({}));
    let error = refused(&d, &work, -32602, "invalid_params", call);
    assert!(error["message"].as_str().unwrap().contains("it is a link"), "{error}");
    // A revert is judged as well.
    let result =
        d.ok("patch.apply", work.call(&format!("*** Add File: {}\n+x", outside.join("new").display()), json!({})));
    let revert = json!({ "patch_id": result["patch_id"], "sandbox": "workspace-write", "approval_timeout_ms": 0 });
    d.refused(-32005, "denied", "patch.revert", revert);
    assert!(outside.join("new").exists());
}

#[test]
fn expectations_and_hard_links_are_checked_first() {
    let d = Daemon::start();
    let work = Work::new(&d);
    let path = work.put("f", "a\n");
    let hash = "87428fc522803d31065e7bce3cf03fe475096631e5e07bbd7a0fde60c4cf25c7";
    let update = "*** Update File: f\n-a\n+b";
    let with = |expect: Value| work.call(update, json!({ "expect": expect }));
    let error = refused(&d, &work, -32009, "conflict", with(json!({ "f": "0".repeat(64) })));
    assert_eq!(error["data"]["paths"], json!([path]), "{error}");
    refused(&d, &work, -32009, "conflict", with(json!({ "f": "absent" })));
    refused(&d, &work, -32009, "conflict", with(json!({ "f": hash, "other": hash })));
    refused(&d, &work, -32602, "invalid_params", with(json!({ "f": "abc" })));
    fs::hard_link(&path, work.dir.join("twin")).unwrap();
    let error = refused(&d, &work, -32602, "invalid_params", with(json!({ "f": hash })));
    assert!(error["message"].as_str().unwrap().contains("several names"), "{error}");
    let call =
        work.call(update, json!({ "expect": { "f": hash.to_uppercase(), "other": "absent" }, "hard_links": "break" }));
    d.ok("patch.apply", call);
    assert_eq!(work.text("f") + &work.text("twin"), "b\na\n");
}

#[test]
fn other_parameters_and_files_that_are_no_files_are_refused() {
    let d = Daemon::start_with("[patch]\nmax_bytes = 10000\n", &[]);
    let work = Work::new(&d);
    work.put("f", "a\n");
    let fifo = work.dir.join("fifo");
    rustix_fifo(&fifo);
    let update = "*** Begin Patch\n*** Update File: f\n-a\n+b\n*** End Patch";
    for (param, call) in [
        ("cwd", json!({ "patch": update, "cwd": "relative" })),
        ("cwd", json!({ "patch": update, "cwd": work.dir.join("missing") })),
        ("cwd", json!({ "patch": update, "cwd": work.dir.join("f") })),
        ("cwd", json!({ "patch": update })),
        ("mode", json!({ "patch": update, "cwd": work.dir, "mode": "some" })),
        ("sandbox", json!({ "patch": update, "cwd": work.dir, "sandbox": "nosuch" })),
        ("request_id", json!({ "patch": update, "cwd": work.dir, "request_id": "x".repeat(100_000) })),
    ] {
        d.refused_param(param, "patch.apply", call);
    }
    let error =
        d.refused(-32602, "invalid_params", "patch.apply", work.call("*** Update File: fifo\n-a\n+b", json!({})));
    assert!(error["message"].as_str().unwrap().contains("not a regular file"), "{error}");
    fs::remove_file(fifo).unwrap();
    let large = format!("*** Add File: large\n+{}", "x".repeat(20_000));
    let error = refused(&d, &work, -32004, "limit", work.call(&large, json!({})));
    assert_eq!(error["data"]["limit"], "patch.max_bytes");
    work.put("big", &"line\n".repeat(3000));
    let error = refused(&d, &work, -32004, "limit", work.call("*** Update File: big\n-line\n+x", json!({})));
    assert_eq!(error["data"]["limit"], "patch.max_bytes");
}

fn rustix_fifo(path: &std::path::Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}
