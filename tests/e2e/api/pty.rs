//! A process on a terminal: size, keys, job control, end of file.

use serde_json::{Value, json};
use toold_test_support::rig::{Daemon, id};

fn on_terminal(d: &Daemon, script: &str, pty: Value) -> String {
    id(&d.sh_with(script, json!({ "pty": pty })))
}

#[test]
fn all_three_descriptors_are_one_terminal() {
    let d = Daemon::start();
    let proc = on_terminal(&d, "test -t 0 && test -t 1 && test -t 2 && echo all; tty; echo err >&2", json!(true));
    let p = d.closed(&proc);
    assert_eq!((&p["pty"], &p["exit_code"]), (&json!(true), &json!(0)));
    let text = d.text(&proc);
    assert!(text.starts_with("all\r\n/dev/pts/") && text.ends_with("\r\nerr\r\n"), "{text:?}");
    let page = d.ok("poll", json!({ "id": proc, "cursor": 0, "spans": true }));
    assert!(page["spans"].as_array().unwrap().iter().all(|s| s["stream"] == "stdout"), "a terminal has one stream");
}

#[test]
fn a_process_without_pty_has_no_terminal() {
    let d = Daemon::start();
    let p = d.run("test -t 0 || test -t 1 || test -t 2 || echo none");
    assert_eq!((&p["pty"], &p["pty_size"], &p["output"]), (&json!(false), &Value::Null, &json!("none\n")));
}

#[test]
fn the_size_is_set_from_the_start() {
    let d = Daemon::start();
    let proc = on_terminal(&d, "stty size", json!({ "rows": 41, "cols": 133 }));
    let p = d.closed(&proc);
    assert_eq!((&p["pty_size"], d.text(&proc)), (&json!({ "rows": 41, "cols": 133 }), "41 133\r\n".into()));
    let proc = on_terminal(&d, "stty size", json!(true));
    d.closed(&proc);
    assert_ne!(d.text(&proc), "0 0\r\n", "the default is a size");
}

#[test]
fn a_new_size_reaches_the_program_with_sigwinch() {
    let d = Daemon::start();
    let proc = on_terminal(
        &d,
        "trap 'echo now $(stty size)' WINCH; echo ready; while :; do sleep 0.02; done",
        json!({ "rows": 24, "cols": 80 }),
    );
    d.printed(&proc, "ready");
    let answer = d.ok("resize", json!({ "id": proc, "rows": 50, "cols": 132 }));
    assert_eq!(answer, json!({ "id": proc, "rows": 50, "cols": 132 }));
    d.printed(&proc, "now 50 132");
    assert_eq!(d.process(&proc)["pty_size"], json!({ "rows": 50, "cols": 132 }));
}

#[test]
fn only_a_terminal_can_be_resized() {
    let d = Daemon::start();
    let pipe = d.sh("exec sleep 1000");
    d.refused(-32602, "invalid_params", "resize", json!({ "id": pipe, "rows": 24, "cols": 80 }));
    let ended = on_terminal(&d, "exit 3", json!(true));
    d.exited(&ended);
    let error = d.refused(-32002, "already_exited", "resize", json!({ "id": ended, "rows": 24, "cols": 80 }));
    assert_eq!(error["data"]["process"]["exit_code"], 3);
}

#[test]
fn close_types_the_end_of_file_key() {
    let d = Daemon::start();
    let proc = on_terminal(&d, "stty -echo; echo ready; exec cat", json!(true));
    d.printed(&proc, "ready");
    assert_eq!(d.process(&proc)["stdin"], "pty");
    d.ok("submit", json!({ "id": proc, "data": "a line" }));
    d.printed(&proc, "a line");
    d.ok("close", json!({ "id": proc }));
    assert_eq!(d.closed(&proc)["exit_code"], 0);
    assert_eq!(d.text(&proc), "ready\r\na line\r\n");
}

#[test]
fn close_ends_a_reader_also_in_the_middle_of_a_line() {
    let d = Daemon::start();
    let proc = on_terminal(&d, "stty -echo; echo ready; exec cat", json!(true));
    d.printed(&proc, "ready");
    d.ok("write", json!({ "id": proc, "data": "half" }));
    d.ok("close", json!({ "id": proc }));
    assert_eq!(d.closed(&proc)["exit_code"], 0);
    assert!(d.text(&proc).contains("half"));
}

#[test]
fn a_program_that_closes_its_terminal_is_not_hung_up() {
    let d = Daemon::start();
    // The broken shim took the last close of the terminal for the program's end and hung up: exit 129.
    let text = "echo a; exec <&- >&- 2>&-; sleep 0.2; exec >/dev/tty; echo b; exec >&-; sleep 0.1; exit 3";
    let proc = on_terminal(&d, text, json!(true));
    assert_eq!(d.closed(&proc)["exit_code"], 3);
    assert_eq!(d.text(&proc), "a\r\nb\r\n");
}

#[test]
fn submit_types_a_line_and_the_terminal_echoes_it() {
    let d = Daemon::start();
    let proc = on_terminal(&d, "echo ready; read -r line; echo \"got:$line\"", json!(true));
    d.printed(&proc, "ready");
    d.ok("submit", json!({ "id": proc, "data": "hello" }));
    d.closed(&proc);
    assert_eq!(d.text(&proc), "ready\r\nhello\r\ngot:hello\r\n");
}

#[test]
fn the_interrupt_key_sends_sigint() {
    let d = Daemon::start();
    let proc = on_terminal(&d, "echo ready; exec cat", json!(true));
    d.printed(&proc, "ready");
    d.ok("write", json!({ "id": proc, "data": "\u{3}" }));
    let p = d.exited(&proc);
    assert_eq!((&p["exit_code"], &p["signal"], &p["reason"]), (&json!(130), &json!("SIGINT"), &json!("signaled")));
}

#[test]
fn the_program_leads_a_session_with_the_terminal_in_the_foreground() {
    let d = Daemon::start();
    let proc = on_terminal(&d, "exec cat /proc/self/stat", json!(true));
    d.closed(&proc);
    let text = d.text(&proc);
    let pid = text.split(' ').next().unwrap();
    let fields: Vec<&str> = text.rsplit(')').next().unwrap().split_whitespace().collect();
    // After the name: state, ppid, pgrp, session, tty_nr, tpgid.
    assert_eq!((fields[2], fields[3], fields[5]), (pid, pid, pid), "{text}");
    assert_ne!(fields[4], "0", "it has a controlling terminal");
}

#[test]
fn job_control_works_in_a_shell() {
    let d = Daemon::start();
    let script = "set -m; sleep 1000 & kill -KILL %1; wait %1; echo code $?; sh -c 'kill -STOP $$'; jobs; kill -KILL %%; echo done";
    let proc = on_terminal(&d, script, json!(true));
    d.printed(&proc, "done");
    let text = d.text(&proc);
    assert!(text.contains("code 137") && text.contains("Stopped") && !text.contains("can't access tty"), "{text}");
}

#[test]
fn the_last_output_before_the_exit_is_not_lost() {
    let d = Daemon::start();
    for _ in 0..5 {
        let proc = on_terminal(&d, "stty -opost; seq 1 20000", json!(true));
        let p = d.closed(&proc);
        let expected: String = (1..=20000).map(|n| format!("{n}\n")).collect();
        assert!(d.text(&proc) == expected, "{} bytes of {}", p["bytes"], expected.len());
    }
}

#[test]
fn the_terminal_closes_when_its_last_holder_exits_not_when_the_program_does() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let script = format!(
        "setsid sh -c 'trap \"\" HUP; : > up; {}; echo late' & while [ ! -e up ]; do sleep 0.01; done; exit 0",
        gate.wait()
    );
    let proc = on_terminal(&d, &script, json!(true));
    let p = d.exited(&proc);
    assert_eq!((&p["exit_code"], &p["closed"]), (&json!(0), &json!(false)));
    gate.open();
    assert_eq!(d.closed(&proc)["closed"], true);
    assert_eq!(d.text(&proc), "late\r\n");
}

#[test]
fn an_invalid_size_is_rejected_and_changes_nothing() {
    let d = Daemon::start();
    let proc = on_terminal(&d, "exec sleep 1000", json!({ "rows": 24, "cols": 80 }));
    for (rows, cols) in [(0u64, 80u64), (24, 0), (100_000, 80), (24, 100_000), (65_536, 80), (u64::MAX, 80)] {
        let size = json!({ "rows": rows, "cols": cols });
        let name = if rows == 24 { "cols" } else { "rows" };
        d.refused_param(name, "resize", json!({ "id": proc, "rows": rows, "cols": cols }));
        d.refused_param("pty", "exec", json!({ "argv": ["/bin/true"], "pty": size }));
    }
    assert_eq!(d.process(&proc)["pty_size"], json!({ "rows": 24, "cols": 80 }));
    assert_eq!(d.ids(json!({})).len(), 1);
}

/// The broken code reported that stdin is closed, while `poll` reported `pty`.
#[test]
fn close_on_a_terminal_whose_input_queue_is_full_reports_that_and_types_nothing() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let script = format!("stty -echo; {}; cat > got", gate.wait());
    let proc = id(&d.sh_with(&script, json!({ "pty": true })));
    // Whole lines: a terminal drops what does not fit into its longest line.
    let lines = "0123456789\n".repeat(20_000);
    // The kernel makes room in the queue a moment later, so it is full when nothing more fits.
    let mut written = 0;
    d.eventually("the queue is full", || {
        let more = d.ok("write", json!({ "id": proc, "data": lines[written..], "timeout_ms": 100 }));
        written += more["bytes_written"].as_u64().unwrap() as usize;
        more["bytes_written"] == 0
    });
    let error = d.refused(-32003, "stdin_unavailable", "close", json!({ "id": proc }));
    assert_eq!((&error["data"]["reason"], &error["data"]["id"]), (&json!("full"), &json!(proc)), "{error}");
    assert_eq!(d.process(&proc)["stdin"], "pty");
    gate.open();
    // It is typed once the program reads: then a line of our own, and the end.
    d.eventually("the program reads", || d.ok("write", json!({ "id": proc, "data": "\nlast\n" }))["complete"] == true);
    d.eventually("end-of-file is typed", || d.call("close", json!({ "id": proc })).is_ok());
    assert_eq!(d.exited(&proc)["exit_code"], 0);
    let got = std::fs::read_to_string(d.home().join("got")).unwrap();
    assert!(got.starts_with(&lines[..written]) && got.contains("last\n"), "{} of {written} bytes arrived", got.len());
}
