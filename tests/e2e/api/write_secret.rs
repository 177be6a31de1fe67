//! `write` and `submit` with `secret`: what is typed is in no event, no log and no file.

use serde_json::json;
use toold_test_support::rig::{Daemon, files, id};

const SECRET: &str = "hunter2-of-the-test";

/// Checks that the secret is in no file of the rig: state, logs of processes, journal, log of the daemon.
#[track_caller]
fn is_nowhere(d: &Daemon) {
    let found = |bytes: &[u8]| bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes());
    let all = files(d.root());
    assert!(all.iter().any(|path| path.ends_with("toold.log")) && all.len() > 5, "{all:?}");
    for path in all {
        assert!(!found(&std::fs::read(&path).unwrap_or_default()), "{}", path.display());
    }
}

#[test]
fn a_secret_is_in_no_file_event_or_log() {
    let d = Daemon::start_with("", &[("RUST_LOG", "trace")]);
    let ask = "stty -echo; printf 'Password: '; read -r x; stty echo; echo \"length ${#x}\"; exec sleep 1000";
    let terminal = id(&d.sh_with(ask, json!({ "pty": true, "notify": true, "watch": ["Password"] })));
    d.printed(&terminal, "Password");
    d.ok("submit", json!({ "id": terminal, "data": SECRET, "secret": true, "write_id": "w" }));
    d.printed(&terminal, &format!("length {}", SECRET.len()));
    let pipe = id(&d.sh_with("read -r x; echo \"length ${#x}\"", json!({ "stdin": "pipe" })));
    d.ok("write", json!({ "id": pipe, "keys": [{ "text": SECRET }, "Enter"], "secret": true }));
    d.printed(&pipe, "length");
    d.refused(-32602, "invalid_params", "write", json!({ "id": pipe, "data": SECRET, "secrt": true }));
    d.ok("kill", json!({ "all": true, "signal": "SIGKILL" }));
    is_nowhere(&d);
}

#[test]
fn a_secret_waits_until_the_terminal_hides_it() {
    let d = Daemon::start();
    let gate = d.root().join("gate");
    let script = format!(
        "mkfifo {0}; printf 'Password: '; read -r go < {0}; stty -echo; read -r x; echo \"length ${{#x}}\"",
        gate.display()
    );
    let process = id(&d.sh_with(&script, json!({ "pty": true })));
    d.printed(&process, "Password");
    let mut conn = d.conn();
    let submit = json!({ "id": process, "data": SECRET, "secret": true, "timeout_ms": 20_000 });
    let call = conn.request("submit", submit);
    std::fs::write(&gate, "go\n").unwrap();
    assert_eq!(conn.answer(call).expect("it is written")["complete"], true);
    d.printed(&process, &format!("length {}", SECRET.len()));
    is_nowhere(&d);
}

#[test]
fn a_terminal_that_shows_what_is_typed_gets_no_secret() {
    let d = Daemon::start();
    let process = id(&d.sh_with("echo ready; exec cat", json!({ "pty": true })));
    d.printed(&process, "ready");
    let secret = json!({ "id": process, "data": SECRET, "secret": true, "timeout_ms": 100 });
    let error = d.refused(-32003, "stdin_unavailable", "submit", secret);
    assert_eq!(error["data"]["reason"], "echo", "{error}");
    d.ok("submit", json!({ "id": process, "data": "visible" }));
    d.printed(&process, "visible");
    is_nowhere(&d);
}
