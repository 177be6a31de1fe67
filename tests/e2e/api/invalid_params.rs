//! Invalid input gets an error that names the cause, and changes nothing.

use crate::api::framing::{Framed, Ws, http_raw};
use serde_json::{Value, json};
use std::fs;
use toold_test_support::conn::Conn;
use toold_test_support::rig::{Daemon, id};

/// Runs `bad` and checks that processes and records are the same as before.
#[track_caller]
fn unchanged(d: &Daemon, bad: impl FnOnce()) {
    let look = || {
        let list = d.ok("list", json!({}));
        let facts = |p: &Value| json!([p["id"], p["status"], p["exit_code"], p["bytes"], p["stdin"], p["pty_size"]]);
        let processes: Vec<Value> = list["processes"].as_array().unwrap().iter().map(facts).collect();
        (processes, fs::read_dir(d.state().join("procs")).map_or(0, Iterator::count))
    };
    let before = look();
    bad();
    assert_eq!(look(), before);
}

#[test]
fn the_error_for_an_unknown_method_names_it() {
    let d = Daemon::start();
    unchanged(&d, || {
        for method in ["exek", "EXEC", "exec ", "", "daemon", "rpc.", "events.subscribed"] {
            let error = d.refused(-32601, "method_not_found", method, json!({}));
            assert!(method.is_empty() || error["message"].as_str().unwrap().contains(method.trim()), "{error}");
        }
    });
}

#[test]
fn an_unknown_parameter_is_rejected_by_name_in_every_method() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    unchanged(&d, || {
        let good = [
            ("exec", json!({ "argv": ["/bin/true"] })),
            ("poll", json!({ "id": proc })),
            ("log", json!({ "id": proc })),
            ("wait", json!({ "id": proc })),
            ("kill", json!({ "id": proc })),
            ("signal", json!({ "id": proc, "signal": "SIGKILL" })),
            ("write", json!({ "id": proc, "data": "x" })),
            ("submit", json!({ "id": proc, "data": "x" })),
            ("close", json!({ "id": proc })),
            ("resize", json!({ "id": proc, "rows": 1, "cols": 1 })),
            ("screen", json!({ "id": proc })),
            ("list", json!({})),
            ("inspect", json!({ "id": proc })),
            ("forget", json!({ "older_than_ms": 0 })),
            ("session.active", json!({ "session_key": "s" })),
            ("session.end", json!({ "session_key": "s" })),
            ("daemon.info", json!({})),
            ("daemon.shutdown", json!({})),
            ("rpc.discover", json!({})),
        ];
        for (method, mut params) in good {
            params["time_out_ms"] = json!(1);
            d.refused_param("time_out_ms", method, params);
        }
        d.refused_param("cpu_pct", "exec", json!({ "argv": ["/bin/true"], "limits": { "cpu_pct": 5 } }));
        d.refused_param("colums", "exec", json!({ "argv": ["/bin/true"], "pty": { "rows": 5, "colums": 5 } }));
    });
}

#[test]
fn the_error_for_a_wrong_type_or_a_missing_parameter_names_it() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    unchanged(&d, || {
        for (name, method, params) in [
            ("argv", "exec", json!({ "argv": "/bin/true" })),
            ("argv", "exec", json!({ "argv": ["/bin/true", 5] })),
            ("yield_ms", "exec", json!({ "argv": ["/bin/true"], "yield_ms": "1s" })),
            ("yield_ms", "exec", json!({ "argv": ["/bin/true"], "yield_ms": -1 })),
            ("timeout_ms", "exec", json!({ "argv": ["/bin/true"], "timeout_ms": -1 })),
            ("env_mode", "exec", json!({ "argv": ["/bin/true"], "env_mode": "dirty" })),
            ("stdin", "exec", json!({ "argv": ["/bin/true"], "stdin": "file" })),
            ("pty", "exec", json!({ "argv": ["/bin/true"], "pty": "yes" })),
            ("labels", "exec", json!({ "argv": ["/bin/true"], "labels": { "a": 1 } })),
            ("watch", "exec", json!({ "argv": ["/bin/true"], "watch": [5] })),
            ("cursor", "poll", json!({ "id": proc, "cursor": -1 })),
            ("stream", "poll", json!({ "id": proc, "stream": "stdin" })),
            ("encoding", "poll", json!({ "id": proc, "encoding": "hex" })),
            ("ansi", "log", json!({ "id": proc, "ansi": true })),
            ("until", "wait", json!({ "id": proc, "until": "started" })),
            ("mode", "wait", json!({ "id": proc, "mode": "some" })),
            ("grace_ms", "kill", json!({ "id": proc, "grace_ms": -1 })),
            ("id", "poll", json!({ "id": 5 })),
            ("id", "poll", json!({})),
            ("id", "inspect", json!({})),
            ("id", "close", json!({})),
            ("id", "signal", json!({ "signal": "SIGTERM" })),
            ("signal", "signal", json!({ "id": proc })),
            ("rows", "resize", json!({ "id": proc, "cols": 80 })),
        ] {
            d.refused_param(name, method, params);
        }
        for params in [json!([]), json!(["/bin/true"]), json!("x"), json!(5)] {
            let error = d.call("exec", params.clone()).expect_err("positional or scalar parameters");
            assert!(error["code"] == -32602 || error["code"] == -32600, "{params}: {error}");
        }
    });
}

#[test]
fn both_or_neither_of_command_and_argv_and_an_empty_argv_start_nothing() {
    let d = Daemon::start();
    unchanged(&d, || {
        d.refused(-32602, "invalid_params", "exec", json!({}));
        d.refused(-32602, "invalid_params", "exec", json!({ "command": "true", "argv": ["/bin/true"] }));
        d.refused_param("argv", "exec", json!({ "argv": [] }));
    });
}

#[test]
fn a_working_directory_that_is_missing_or_a_file_starts_nothing() {
    let d = Daemon::start();
    let file = d.root().join("file");
    fs::write(&file, "").unwrap();
    unchanged(&d, || {
        for cwd in ["/no/such/directory", file.to_str().unwrap(), "relative/path", ""] {
            d.refused_param("cwd", "exec", json!({ "argv": ["/bin/true"], "cwd": cwd }));
        }
    });
}

#[test]
fn a_nul_in_a_string_starts_nothing() {
    let d = Daemon::start();
    unchanged(&d, || {
        for (name, params) in [
            ("command", json!({ "command": "echo a\u{0}b" })),
            ("argv", json!({ "argv": ["/bin/echo", "a\u{0}b"] })),
            ("argv", json!({ "argv": ["/bin/ec\u{0}ho"] })),
            ("cwd", json!({ "argv": ["/bin/true"], "cwd": "/\u{0}" })),
            ("env", json!({ "argv": ["/bin/true"], "env": { "A\u{0}": "1" } })),
            ("env", json!({ "argv": ["/bin/true"], "env": { "A": "1\u{0}" } })),
            ("shell", json!({ "command": "true", "shell": "/bin/sh\u{0}" })),
            ("name", json!({ "argv": ["/bin/true"], "name": "a\u{0}b" })),
        ] {
            d.refused_param(name, "exec", params);
        }
    });
}

#[test]
fn an_invalid_environment_name_starts_nothing() {
    let d = Daemon::start();
    unchanged(&d, || {
        d.refused_param("env", "exec", json!({ "argv": ["/bin/true"], "env": { "": "1" } }));
        d.refused_param("env", "exec", json!({ "argv": ["/bin/true"], "env": { "A=B": "1" } }));
    });
}

#[test]
fn a_name_that_looks_like_an_id_starts_nothing() {
    let d = Daemon::start();
    unchanged(&d, || {
        for name in
            ["", "proc_0123456789ab", "@last", "@x", " a", "a ", "a\tb", "a/b", "a*", "a?", "a\u{202e}b", "a\u{200b}b"]
        {
            d.refused_param("name", "exec", json!({ "argv": ["/bin/true"], "name": name }));
        }
    });
}

#[test]
fn a_hundred_thousand_levels_of_json_are_rejected_and_the_connection_stays_open() {
    let d = Daemon::start();
    let (open, shut) = ("[".repeat(100_000), "]".repeat(100_000));
    let (open_map, shut_map) = ("{\"a\":".repeat(100_000), "}".repeat(100_000));
    unchanged(&d, || {
        let mut conn = d.conn();
        for text in [
            format!("{open}{shut}\n"),
            format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"exec\",\"params\":{{\"labels\":{open}{shut}}}}}\n"),
            format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"exec\",\"params\":{open_map}1{shut_map}}}\n"),
            format!("{open}\n"),
        ] {
            conn.send_raw(text.as_bytes());
            let answer = conn.recv();
            let code = answer["error"]["code"]
                .as_i64()
                .unwrap_or_else(|| panic!("no single error: {:.200}", answer.to_string()));
            assert!([-32700, -32600, -32602, -32004].contains(&code), "{answer}");
        }
        assert!(conn.call("list", json!({})).is_ok());
    });
}

/// The peak memory of the daemon in bytes.
fn peak(d: &Daemon) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", d.pid())).unwrap();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() * 1024
}

#[track_caller]
fn names_the_limit(answer: &str) {
    assert!(answer.contains("max_message_bytes"), "the error names the limit's key: {answer:.300}");
}

#[test]
fn a_line_of_a_gibibyte_is_rejected_without_being_buffered() {
    let d = Daemon::start();
    unchanged(&d, || {
        let mut conn = d.conn();
        let mebibyte = vec![b'x'; 1 << 20];
        conn.send_raw(b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"exec\",\"params\":{\"command\":\"");
        // The daemon may read on or disconnect; the answer arrives in both cases.
        let _ = (0..1024).all(|_| conn.offer(&mebibyte)) && conn.offer(b"\"}}\n");
        let answer = conn.try_recv().expect("an error before the hang-up");
        assert_eq!(answer["id"], Value::Null);
        names_the_limit(&answer.to_string());
        assert!(peak(&d) < 300 << 20, "{} bytes of memory for a message that is refused", peak(&d));
    });
}

#[test]
fn a_message_over_the_limit_is_rejected_in_every_framing_and_one_below_is_not() {
    let d = Daemon::start_with("max_message_bytes = 100000\n", &[]);
    let text = |size: usize| {
        let head = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"list\",\"params\":{\"label\":\"";
        format!("{head}{}\"}}}}", "x".repeat(size - head.len() - 3))
    };
    let (fits, over) = (text(100_000), text(100_001));
    let post = |body: &str| {
        let head = format!(
            "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        http_raw(&d.socket(), (head + body).as_bytes())
    };
    unchanged(&d, || {
        let mut conn = d.conn();
        conn.send_raw(format!("{fits}\n").as_bytes());
        assert!(conn.recv()["result"].is_object());
        conn.offer(format!("{over}\n").as_bytes());
        names_the_limit(&conn.recv().to_string());

        let mut conn = Framed::open(&d.socket());
        conn.send_raw(format!("Content-Length: {}\r\n\r\n{fits}", fits.len()).as_bytes());
        assert!(conn.recv()["result"].is_object());
        conn.send_raw(format!("Content-Length: {}\r\n\r\n", over.len()).as_bytes());
        names_the_limit(&conn.recv().to_string());

        assert!(post(&fits).contains("\"result\""));
        let refused = post(&over);
        assert!(refused.starts_with("HTTP/1.1 4") || refused.starts_with("HTTP/1.1 200"), "{refused:.200}");
        names_the_limit(&refused);

        let mut ws = Ws::open(&d.socket());
        ws.frame(0x81, fits.as_bytes());
        assert!(ws.recv().unwrap()["result"].is_object());
        ws.frame(0x81, over.as_bytes());
        let frame = ws.next();
        names_the_limit(&frame.map(|(_, payload)| String::from_utf8_lossy(&payload).into_owned()).unwrap_or_default());
    });
}

#[test]
fn invalid_headers_are_rejected() {
    let d = Daemon::start();
    unchanged(&d, || {
        for head in [
            "Content-Length: -5\r\n\r\n",
            "Content-Length: ten\r\n\r\n",
            "Content-Length: 99999999999999999999999999\r\n\r\n",
            "Content-Length: 18446744073709551615\r\n\r\n",
        ] {
            http_raw(&d.socket(), head.as_bytes());
        }
        // Headers without an end are bounded too.
        let mut conn = Conn::open(&d.socket()).unwrap();
        conn.send_raw(b"Content-Length: 5\r\n");
        let line = format!("X-Filler: {}\r\n", "x".repeat(1000));
        let taken = (0..200_000).take_while(|_| conn.offer(line.as_bytes())).count();
        assert!(taken < 200_000, "200 MB of headers were read");
    });
}

#[test]
fn rejected_calls_about_a_process_do_not_affect_it() {
    let d = Daemon::start();
    let proc = id(&d.ok("exec", json!({ "argv": ["/bin/cat"], "stdin": "pipe" })));
    unchanged(&d, || {
        d.refused_param("signal", "kill", json!({ "id": proc, "signal": "SIGNAL" }));
        d.refused_param("data_base64", "write", json!({ "id": proc, "data_base64": "%%%" }));
        d.refused(-32602, "invalid_params", "resize", json!({ "id": proc, "rows": 24, "cols": 80 }));
        d.refused_param("timeout_ms", "wait", json!({ "id": proc, "timeout_ms": 0 }));
        d.refused_param("grep", "log", json!({ "id": proc, "grep": "[" }));
    });
    d.ok("submit", json!({ "id": proc, "data": "fine" }));
    d.printed(&proc, "fine");
}
