//! `write` with `keys`: names of keys and text, on a terminal and on a pipe.

use serde_json::{Value, json};
use toold_test_support::rig::{Daemon, id};

/// Prints the keys that it gets, after it has printed `mode`.
fn key_printer(d: &Daemon, mode: &str) -> String {
    let script = format!("stty raw -echo; printf '{mode}ready'; exec cat -v");
    let process = id(&d.sh_with(&script, json!({ "pty": true })));
    d.printed(&process, "ready");
    process
}

#[test]
fn names_are_keys_and_other_strings_are_text() {
    let d = Daemon::start();
    let process = key_printer(&d, "");
    let keys = json!(["C-c", "Up", { "text": "Up" }, "text", "F5", "S-Tab", "M-x", "é", "Enter"]);
    let written = d.ok("write", json!({ "id": process, "keys": keys, "write_id": "k" }));
    assert_eq!((&written["bytes_written"], &written["complete"]), (&json!(23), &json!(true)));
    d.printed(&process, "^M");
    assert_eq!(d.text(&process), "ready^C^[[AUptext^[[15~^[[Z^[xM-CM-)^M");
    let again = d.ok("write", json!({ "id": process, "keys": keys, "write_id": "k" }));
    assert_eq!(again["duplicate"], true);
}

#[test]
fn application_cursor_mode_is_honoured_also_after_a_restart() {
    let mut d = Daemon::start();
    let process = key_printer(&d, "\\033[?1h");
    d.ok("write", json!({ "id": process, "keys": ["Up", "Home", "C-Up", "PageUp", "x"] }));
    d.printed(&process, "x");
    assert!(d.text(&process).ends_with("ready^[OA^[OH^[[1;5A^[[5~x"), "{}", d.text(&process));
    d.restart();
    d.ok("write", json!({ "id": process, "keys": ["Down", "#"] }));
    d.printed(&process, "#");
    assert!(d.text(&process).ends_with("x^[OB#"), "{}", d.text(&process));
    let normal = key_printer(&d, "\\033[?1h\\033[?1l");
    d.ok("write", json!({ "id": normal, "keys": ["Up", "z"] }));
    d.printed(&normal, "z");
    assert!(d.text(&normal).ends_with("ready^[[Az"), "{}", d.text(&normal));
}

#[test]
fn a_wrong_key_is_refused_and_nothing_is_written() {
    let d = Daemon::start();
    let process = key_printer(&d, "");
    let with = |keys: Value| json!({ "id": process, "keys": keys });
    for wrong in ["NoSuchKey", "C-", "C-Enter", "enter", "F13", "Ctrl-C", ""] {
        d.refused_param("keys[1]", "write", with(json!(["a", wrong, "b"])));
    }
    d.refused_param("keys[0]", "write", with(json!([1])));
    d.refused_param("keys[0].txt", "write", with(json!([{ "txt": "a" }])));
    d.refused_param("keys", "write", with(json!([])));
    d.refused_param("keys", "write", with(json!("Up")));
    d.refused_param("keys", "submit", with(json!(["Up"])));
    d.refused_param("data", "write", json!({ "id": process, "keys": ["a"], "data": "b" }));
    let error = d.refused(-32602, "invalid_params", "write", with(json!(["UP"])));
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("that one is \"Up\"") && message.contains(r#"{"text":"UP"}"#), "{message}");
    d.ok("write", with(json!(["fin"])));
    d.printed(&process, "fin");
    assert_eq!(d.text(&process), "readyfin");
}

#[test]
fn a_pipe_takes_text_enter_and_control_keys() {
    let d = Daemon::start();
    let process = id(&d.ok("exec", json!({ "argv": ["cat", "-v"], "stdin": "pipe" })));
    for (n, key) in ["Up", "F1", "PageDown", "M-x", "S-Tab"].into_iter().enumerate() {
        let mut keys = vec!["a"; n];
        keys.push(key);
        d.refused_param(&format!("keys[{n}]"), "write", json!({ "id": process, "keys": keys }));
    }
    d.ok("write", json!({ "id": process, "keys": ["line", "C-d", "Enter", { "text": "Up" }, "Enter"] }));
    d.printed(&process, "Up");
    assert_eq!(d.text(&process), "line^D\nUp\n");
}
