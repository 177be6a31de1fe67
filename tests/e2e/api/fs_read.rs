//! `fs.read`: pages of lines, facts of a file, and files that cannot be read.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::fs::{self, File};
use std::os::unix::net::UnixListener;
use std::process::Command;
use toold_test_support::rig::Daemon;

fn write(d: &Daemon, name: &str, bytes: impl AsRef<[u8]>) -> String {
    let path = d.root().join(name);
    fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().into()
}

fn read(d: &Daemon, path: &str) -> Value {
    d.ok("fs.read", json!({ "path": path }))
}

#[test]
fn a_text_file_is_read_with_its_facts() {
    let d = Daemon::start();
    let path = write(&d, "file", "one\ntwo\n");
    assert_eq!(
        read(&d, &path),
        json!({
            "path": fs::canonicalize(&path).unwrap(), "content": "one\ntwo\n", "total_lines": 2, "bytes": 8,
            "sha256": sha256sum(&path),
            "truncated": false, "next_offset": null, "line_ending": "lf", "bom": false, "charset": "utf-8",
            "binary": false, "lossy": false
        })
    );
    let relative = d.ok("fs.read", json!({ "path": "file", "cwd": d.root() }));
    assert_eq!(relative["content"], "one\ntwo\n");
}

fn sha256sum(path: &str) -> String {
    let output = Command::new("sha256sum").arg(path).output().unwrap();
    String::from_utf8(output.stdout).unwrap()[..64].to_owned()
}

#[test]
fn pages_of_lines_follow_each_other() {
    let d = Daemon::start();
    let lines: Vec<String> = (1..=1200).map(|n| format!("line {n}\n")).collect();
    let path = write(&d, "file", lines.concat());
    let first = read(&d, &path);
    assert_eq!(first["content"], lines[..500].concat());
    assert_eq!((&first["truncated"], &first["next_offset"]), (&json!(true), &json!(501)));
    let mut all = String::new();
    let mut offset = json!(1);
    while !offset.is_null() {
        let page = d.ok("fs.read", json!({ "path": path, "offset": offset, "limit": 333 }));
        assert_eq!((&page["total_lines"], &page["sha256"]), (&json!(1200), &first["sha256"]));
        all += page["content"].as_str().unwrap();
        offset = page["next_offset"].clone();
    }
    assert_eq!(all, lines.concat());
    let beyond = d.ok("fs.read", json!({ "path": path, "offset": 5000 }));
    assert_eq!((&beyond["content"], &beyond["truncated"]), (&json!(""), &json!(false)));
}

#[test]
fn line_ends_and_marks_are_reported_and_content_has_its_line_ends() {
    let d = Daemon::start();
    let table: [(&[u8], &str, Value, bool, u64); 7] = [
        (b"a\nb", "a\nb", json!("lf"), false, 2),
        (b"a\r\nb\r\n", "a\r\nb\r\n", json!("crlf"), false, 2),
        (b"a\rb\rc", "a\rb\rc", json!("cr"), false, 3),
        (b"a\r\nb\n", "a\r\nb\n", json!("mixed"), false, 2),
        (b"\xef\xbb\xbfa\n", "a\n", json!("lf"), true, 1),
        (b"", "", Value::Null, false, 0),
        (b"\xff\xfea\0\r\0\n\0\xe4\0", "a\r\n\u{e4}", json!("crlf"), true, 2),
    ];
    for (bytes, content, line_ending, bom, lines) in table {
        let found = read(&d, &write(&d, "file", bytes));
        assert_eq!(
            (&found["content"], &found["line_ending"], &found["bom"], &found["total_lines"], &found["bytes"]),
            (&json!(content), &line_ending, &json!(bom), &json!(lines), &json!(bytes.len())),
            "{bytes:?}"
        );
    }
    let second = d.ok("fs.read", json!({ "path": write(&d, "cr", "a\rb\rc"), "offset": 2, "limit": 1 }));
    assert_eq!((&second["content"], &second["next_offset"]), (&json!("b\r"), &json!(3)));
}

#[test]
fn bytes_that_are_not_text_are_reported_and_come_as_base64() {
    let d = Daemon::start();
    let latin = write(&d, "latin", b"caf\xe9\n");
    let found = read(&d, &latin);
    assert_eq!(
        (&found["content"], &found["lossy"], &found["binary"]),
        (&json!("caf\u{fffd}\n"), &json!(true), &json!(false))
    );
    let exact = d.ok("fs.read", json!({ "path": latin, "encoding": "base64" }));
    assert_eq!(exact["content"], STANDARD.encode(b"caf\xe9\n"));
    let bytes: Vec<u8> = (0..=255).cycle().take(200_000).collect();
    let binary = write(&d, "binary", &bytes);
    let found = read(&d, &binary);
    assert_eq!((&found["content"], &found["binary"], &found["truncated"]), (&json!(""), &json!(true), &json!(true)));
    let (mut all, mut from) = (Vec::new(), json!(0));
    while !from.is_null() {
        let page = d.ok("fs.read", json!({ "path": binary, "encoding": "base64", "from_byte": from }));
        assert_eq!(page["bytes"], 200_000);
        all.extend(STANDARD.decode(page["content"].as_str().unwrap()).unwrap());
        from = page["next_byte"].clone();
    }
    assert_eq!(all, bytes);
}

#[test]
fn a_page_that_is_too_long_is_the_error_limit_with_the_way_on() {
    let d = Daemon::start_with("[fs]\nread_max_chars = 100\n", &[]);
    let path = write(&d, "file", "0123456789 äöü\n".repeat(50));
    let error = d.refused(-32004, "limit", "fs.read", json!({ "path": path }));
    assert_eq!(
        (&error["data"]["limit"], &error["data"]["chars"], &error["data"]["fitting_lines"]),
        (&json!("fs.read_max_chars"), &json!(750), &json!(6)),
        "{error}"
    );
    assert!(error["message"].as_str().unwrap().contains("give limit: 6"), "{error}");
    let page = d.ok("fs.read", json!({ "path": path, "limit": 6 }));
    assert_eq!(page["next_offset"], 7);
    let long = write(&d, "long", "x".repeat(1000));
    let error = d.refused(-32004, "limit", "fs.read", json!({ "path": long }));
    assert!(error["message"].as_str().unwrap().contains("from_byte"), "{error}");
    let part = d.ok("fs.read", json!({ "path": long, "encoding": "base64", "from_byte": 900 }));
    assert_eq!((&part["next_byte"], &part["truncated"]), (&json!(975), &json!(true)));
}

#[test]
fn a_file_of_ten_gigabytes_is_refused_and_a_part_of_it_is_read() {
    let d = Daemon::start();
    let path = d.root().join("huge");
    File::create(&path).unwrap().set_len(10 << 30).unwrap();
    let error = d.refused(-32004, "limit", "fs.read", json!({ "path": path }));
    assert_eq!(error["data"]["bytes"], 10u64 << 30);
    let part = d.ok("fs.read", json!({ "path": path, "encoding": "base64", "from_byte": 9u64 << 30 }));
    assert_eq!(STANDARD.decode(part["content"].as_str().unwrap()).unwrap(), vec![0; 75_000]);
    assert_eq!((&part["bytes"], &part["sha256"]), (&json!(10u64 << 30), &Value::Null));
}

#[test]
fn a_missing_file_lists_similar_names() {
    let d = Daemon::start();
    ["main.rs", "mian.rs", "other.txt", "MAIN.rs"].iter().for_each(|name| drop(write(&d, name, "")));
    let error = d.refused(-32001, "not_found", "fs.read", json!({ "path": d.root().join("man.rs") }));
    assert_eq!(error["data"]["similar"], json!(["MAIN.rs", "main.rs", "mian.rs"]), "{error}");
    let error = d.refused(-32001, "not_found", "fs.read", json!({ "path": d.root().join("no/where") }));
    assert_eq!(error["data"]["similar"], json!([]));
}

#[test]
fn only_regular_files_are_read_and_nothing_blocks() {
    let d = Daemon::start();
    let fifo = d.root().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let socket = d.root().join("socket");
    let _listener = UnixListener::bind(&socket).unwrap();
    let table = [
        (d.root().to_path_buf(), "a directory"),
        (fifo, "a FIFO"),
        (socket, "a socket"),
        ("/dev/zero".into(), "a device"),
    ];
    for (path, kind) in table {
        let error = d.refused(-32602, "invalid_params", "fs.read", json!({ "path": path }));
        assert_eq!((&error["data"]["param"], &error["data"]["file_type"]), (&json!("path"), &json!(kind)), "{error}");
    }
    std::os::unix::fs::symlink("nothing", d.root().join("dangling")).unwrap();
    d.refused_param("path", "fs.read", json!({ "path": d.root().join("dangling") }));
    d.refused_param("path", "fs.read", json!({ "path": "/proc/self/fd/0" }));
    d.refused(-32005, "denied", "fs.read", json!({ "path": "/proc/self/environ" }));
}

#[test]
fn wrong_parameters_of_a_read_are_named() {
    let d = Daemon::start();
    let path = write(&d, "file", "a\n");
    for (param, call) in [
        ("path", json!({ "path": "" })),
        ("path", json!({ "path": "relative" })),
        ("cwd", json!({ "path": "relative", "cwd": "also/relative" })),
        ("offset", json!({ "path": path, "offset": 0 })),
        ("limit", json!({ "path": path, "limit": 0 })),
        ("limit", json!({ "path": path, "limit": 2001 })),
        ("from_byte", json!({ "path": path, "from_byte": 0 })),
        ("encoding", json!({ "path": path, "encoding": "utf-7" })),
        ("pat", json!({ "path": path, "pat": 1 })),
    ] {
        d.refused_param(param, "fs.read", call);
    }
    d.refused_param("path", "fs.read", json!({ "path": format!("{path}/below") }));
}
