//! `screen`: the screen of a terminal process as text, before and after a restart of the daemon and after the exit.

use serde_json::{Value, json};
use toold_test_support::rig::{Daemon, id};

#[track_caller]
pub fn screen(d: &Daemon, process: &str) -> Value {
    d.ok("screen", json!({ "id": process }))
}

/// Waits until the text is on the screen, and returns the screen.
#[track_caller]
pub fn sees(d: &Daemon, process: &str, text: &str) -> Value {
    let mut seen = Value::Null;
    d.eventually(&format!("{text:?} is on the screen"), || {
        seen = screen(d, process);
        seen["text"].as_str().unwrap().contains(text)
    });
    seen
}

/// Starts shell text on a terminal of this size.
#[track_caller]
fn on_terminal(d: &Daemon, script: &str, rows: u32, cols: u32) -> String {
    id(&d.sh_with(script, json!({ "pty": { "rows": rows, "cols": cols } })))
}

#[test]
fn a_screen_is_the_same_after_a_restart_and_after_the_exit() {
    let mut d = Daemon::start();
    let script = "printf 'gone\\033[?1049h\\033]2;a title\\007\\033[2J\\033[?25l\\033[2;3Hrow two   \\033[4;1Hx'; exec sleep 1000";
    let process = on_terminal(&d, script, 6, 20);
    let before = sees(&d, &process, "x");
    assert_eq!(
        before,
        json!({
            "id": process, "rows": 6, "cols": 20, "text": "\n  row two\n\nx", "title": "a title", "alternate": true,
            "cursor": { "row": 3, "col": 1, "visible": false }, "next_cursor": d.bytes(&process).len(),
        })
    );
    d.kill9();
    d.spawn();
    assert_eq!(screen(&d, &process), before);
    d.ok("kill", json!({ "id": process, "signal": "SIGKILL" }));
    assert_eq!(screen(&d, &process), before);
    d.restart();
    assert_eq!(screen(&d, &process), before);
}

#[test]
fn only_a_terminal_has_a_screen() {
    let d = Daemon::start();
    let pipe = d.sh("echo text; exec sleep 1000");
    let error = d.refused(-32602, "invalid_params", "screen", json!({ "id": pipe }));
    assert!(error["message"].as_str().unwrap().contains("has no terminal; start it with pty: true"), "{error}");
    d.refused(-32001, "not_found", "screen", json!({ "id": "nothing" }));
    let silent = on_terminal(&d, "exec sleep 1000", 5, 10);
    let empty = screen(&d, &silent);
    assert_eq!((&empty["text"], &empty["title"], &empty["rows"]), (&json!(""), &Value::Null, &json!(5)));
    let large = on_terminal(&d, "exec sleep 1000", 10_000, 10_000);
    let error = d.refused(-32602, "invalid_params", "screen", json!({ "id": large }));
    assert!(error["message"].as_str().unwrap().contains("make it smaller with `resize`"), "{error}");
}

/// The start of the output and its last MiB are drawn, however long it is.
#[test]
fn a_long_output_is_drawn_from_both_ends() {
    let d = Daemon::start_with("log_max_bytes = 4000000\n", &[]);
    let script = "printf '\\033[?1049h\\033[?1hstart'; head -c 9000000 /dev/zero | tr '\\0' x; printf '\\033[2J\\033[2;2Hend'; exec sleep 1000";
    let process = on_terminal(&d, script, 4, 10);
    let screen = sees(&d, &process, "end");
    assert_eq!((&screen["text"], &screen["alternate"]), (&json!("\n end"), &json!(true)));
    assert!(d.process(&process)["dropped_bytes"].as_u64().unwrap() > 0, "the middle is not even kept");
}

#[test]
fn a_program_that_draws_again_after_a_resize_has_a_sane_screen() {
    let mut d = Daemon::start();
    let script = "draw() { printf '\\033[2J\\033[H%s' \"$(stty size)\"; printf '\\033[%sHlast' \"$(stty size | cut -d' ' -f1)\"; }\n\
                  trap draw WINCH; draw; while :; do sleep 0.02; done";
    let process = on_terminal(&d, script, 6, 20);
    sees(&d, &process, "6 20");
    for (rows, cols) in [(12, 40), (3, 12), (9, 30), (10, 31), (11, 32), (12, 33), (13, 34), (14, 35), (15, 36)] {
        d.ok("resize", json!({ "id": process, "rows": rows, "cols": cols }));
        sees(&d, &process, &format!("{rows} {cols}"));
        d.eventually("the last row is drawn", || {
            let screen = screen(&d, &process);
            let text = screen["text"].as_str().unwrap();
            (&screen["rows"], &screen["cols"]) == (&json!(rows), &json!(cols))
                && text.lines().count() == rows
                && text.lines().last() == Some("last")
        });
    }
    let before = screen(&d, &process);
    d.restart();
    assert_eq!(screen(&d, &process), before);
}

/// Many calls at once are answered, and a call that needs no screen is not behind them.
#[test]
fn many_screens_at_once_delay_no_other_call() {
    let d = Daemon::start();
    let process = on_terminal(
        &d,
        "head -c 3000000 /dev/zero | tr '\\0' x; printf '\\033[2J\\033[Hdone'; exec sleep 1000",
        24,
        80,
    );
    sees(&d, &process, "done");
    let mut conn = d.conn();
    let asked: Vec<u64> = (0..50).map(|_| conn.request("screen", json!({ "id": process }))).collect();
    let info = conn.request("daemon.info", json!({}));
    conn.answer(info).expect("it is answered");
    assert!(!conn.has_early(asked[49]), "the last screen is still being drawn");
    for call in asked {
        assert_eq!(conn.answer(call).expect("a screen")["text"], "done");
    }
}
