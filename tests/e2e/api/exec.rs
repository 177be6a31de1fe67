//! `exec`: what it starts, what it answers, and that a request id starts one process.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::{Duration, Instant};
use toold_test_support::rig::{Daemon, id};

#[test]
fn a_command_that_ends_within_the_yield_returns_its_output_and_its_code() {
    let d = Daemon::start();
    let p = d.sh_with("printf hello; exit 3", json!({ "yield_ms": 30000 }));
    assert_eq!(p["output"], "hello");
    assert_eq!((&p["status"], &p["exit_code"], &p["reason"]), (&json!("exited"), &json!(3), &json!("exited")));
    assert_eq!((&p["signal"], &p["killed_by"], &p["truncated"]), (&Value::Null, &Value::Null, &Value::Null));
    assert_eq!((&p["next_cursor"], &p["bytes"], &p["cursor"]), (&json!(5), &json!(5), &json!(5)));
    assert!(p["exited_at"].as_str().unwrap() >= p["started_at"].as_str().unwrap(), "{p}");
}

#[test]
fn without_a_yield_exec_answers_while_the_program_runs() {
    let d = Daemon::start();
    let p = d.sh_with("exec sleep 1000", json!({}));
    assert!(p["status"] == "running" || p["status"] == "starting", "{p}");
    assert_eq!((&p["exit_code"], &p["reason"], &p["exited_at"]), (&Value::Null, &Value::Null, &Value::Null));
    assert_eq!(d.process(&id(&p))["status"], "running");
}

#[test]
fn after_the_yield_exec_answers_with_the_output_and_the_program_keeps_running() {
    let d = Daemon::start();
    let asked = Instant::now();
    let p = d.sh_with("echo early; exec sleep 1000", json!({ "yield_ms": 1000 }));
    assert!(asked.elapsed() >= Duration::from_millis(1000), "it answered before the yield was over");
    assert_eq!((&p["status"], &p["exit_code"], &p["output"]), (&json!("running"), &Value::Null, &json!("early\n")));
    assert!(!d.program(&id(&p)).is_dead());
}

#[test]
fn exec_answers_at_the_exit_though_a_grandchild_holds_the_pipe_and_closed_waits_for_it() {
    let d = Daemon::start();
    let asked = Instant::now();
    let p = d.sh_with("sleep 1000 & echo started; exit 4", json!({ "yield_ms": 50000 }));
    assert!(asked.elapsed() < Duration::from_secs(20), "the pipe's holder delayed the answer");
    assert_eq!(p["output"], "started\n");
    assert_eq!((&p["status"], &p["exit_code"], &p["closed"]), (&json!("exited"), &json!(4), &json!(false)));
    let proc = id(&p);
    let late = d.ok("wait", json!({ "id": proc, "until": "closed", "timeout_ms": 300 }));
    assert_eq!((&late["status"], &late["processes"][0]["closed"]), (&json!("timeout"), &json!(false)));
    assert_eq!(d.ok("kill", json!({ "id": proc }))["status"], "killed");
    let end = d.closed(&proc);
    assert_eq!((&end["closed"], &end["exit_code"], &end["reason"]), (&json!(true), &json!(4), &json!("exited")));
}

#[test]
fn the_answer_has_name_task_session_labels_and_directory() {
    let d = Daemon::start();
    let p = d.sh_with(
        "exec sleep 1000",
        json!({ "name": "web", "task_id": "t1", "session_key": "s1", "labels": { "kind": "server" }, "notify": true, "cwd": "/" }),
    );
    let expected = json!({
        "name": "web", "task_id": "t1", "session_key": "s1", "labels": { "kind": "server" }, "notify": true, "cwd": "/",
        "argv": ["/bin/sh", "-c", "exec sleep 1000"], "backend": "local", "pty": false, "stdin": "null", "bytes": 0,
        "lines": 0, "cursor": 0, "dropped_bytes": 0, "unstored_bytes": 0, "closed": false, "signal": null, "failure": null,
    });
    for (field, value) in expected.as_object().unwrap() {
        assert_eq!(&p[field], value, "{field} in {p}");
    }
    assert_eq!(p["sandbox"]["kind"], "none");
    let text = id(&p);
    let hex = text.strip_prefix("proc_").unwrap();
    assert!(hex.len() == 12 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b)), "{text}");
    let stat = fs::read_to_string(format!("/proc/{}/stat", p["pid"])).unwrap();
    let group: Vec<&str> = stat.rsplit(')').next().unwrap().split(' ').collect();
    assert_eq!(group[3], p["pid"].to_string(), "the program leads a process group of its own");
    assert_eq!(group[4], p["pid"].to_string(), "the program leads a session of its own");
}

#[test]
fn a_program_starts_with_default_signals_and_three_descriptors() {
    let d = Daemon::start();
    let signals = d.run("grep -E '^Sig(Blk|Ign)' /proc/self/status");
    let text = d.text(&id(&signals));
    // The signals of programs. Those of the C library (32 and up) are as the machine set them.
    let known = |l: &str| u64::from_str_radix(l.split_whitespace().nth(1).unwrap(), 16).unwrap() & 0x7fff_ffff;
    assert!(text.lines().count() == 2 && text.lines().all(|l| known(l) == 0), "{text}");
    // The fourth is the directory that ls reads.
    assert_eq!(d.text(&id(&d.run("exec ls /proc/self/fd"))), "0\n1\n2\n3\n");
}

#[test]
fn argv_reaches_the_program_without_a_shell() {
    let d = Daemon::start();
    let p = d.ok("exec", json!({ "argv": ["printf", "%s|", "$HOME", "a b", ";*", ""], "yield_ms": 30000 }));
    assert_eq!(p["output"], "$HOME|a b|;*||");
}

#[test]
fn command_is_shell_text_and_is_returned_unchanged() {
    let d = Daemon::start();
    let p = d.ok("exec", json!({ "command": "echo $((1+1)) | cat; exit 5", "shell": "/bin/sh", "yield_ms": 30000 }));
    assert_eq!((&p["output"], &p["exit_code"]), (&json!("2\n"), &json!(5)));
    assert_eq!(p["command"], "echo $((1+1)) | cat; exit 5");
}

#[test]
fn the_shell_is_a_login_shell_by_default() {
    let d = Daemon::start();
    fs::write(d.home().join(".profile"), "export FROM_PROFILE=yes\n").unwrap();
    let ask = |more: Value| {
        let mut params = json!({ "command": "echo got:$FROM_PROFILE", "shell": "/bin/sh", "yield_ms": 30000 });
        params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        d.ok("exec", params)["output"].as_str().unwrap().to_string()
    };
    assert!(ask(json!({})).ends_with("got:yes\n"));
    assert!(ask(json!({ "login": true })).ends_with("got:yes\n"));
    assert_eq!(ask(json!({ "login": false })), "got:\n");
}

#[test]
fn the_requested_shell_runs_the_command() {
    let d = Daemon::start();
    let shell = d.root().join("myshell");
    fs::write(&shell, "#!/bin/sh\necho mine\n").unwrap();
    fs::set_permissions(&shell, fs::Permissions::from_mode(0o755)).unwrap();
    let p = d.ok("exec", json!({ "command": "echo theirs", "shell": shell, "yield_ms": 30000 }));
    assert_eq!(p["output"], "mine\n");
}

#[test]
fn a_program_runs_in_the_home_directory_by_default() {
    let d = Daemon::start();
    assert_eq!(d.text(&id(&d.run("pwd -P"))).trim(), d.home().to_str().unwrap());
    let p = d.sh_with("pwd", json!({ "cwd": "/usr", "yield_ms": 30000 }));
    assert_eq!((&p["output"], &p["cwd"]), (&json!("/usr\n"), &json!("/usr")));
}

#[test]
fn a_program_without_stdin_reads_end_of_file_at_once() {
    let d = Daemon::start();
    let p = d.sh_with("cat; echo end", json!({ "yield_ms": 30000 }));
    assert_eq!((&p["output"], &p["stdin"]), (&json!("end\n"), &json!("null")));
}

#[test]
fn death_by_a_signal_is_reported_as_the_signal_and_128_plus_its_number() {
    let d = Daemon::start();
    for (number, name) in [(6, "SIGABRT"), (9, "SIGKILL"), (11, "SIGSEGV"), (13, "SIGPIPE"), (15, "SIGTERM")] {
        let p = d.sh_with(&format!("kill -{number} $$"), json!({ "yield_ms": 30000 }));
        assert_eq!((&p["exit_code"], &p["signal"]), (&json!(128 + number), &json!(name)));
        assert_eq!((&p["status"], &p["reason"]), (&json!("exited"), &json!("signaled")), "toold did not end it");
    }
    // An exit code above 128 is a code, not a signal.
    let p = d.sh_with("exit 137", json!({ "yield_ms": 30000 }));
    assert_eq!((&p["exit_code"], &p["signal"], &p["reason"]), (&json!(137), &Value::Null, &json!("exited")));
}

#[test]
fn a_program_that_cannot_start_is_an_error_with_errno_and_leaves_a_record() {
    let d = Daemon::start();
    let plain = d.root().join("plain");
    fs::write(&plain, "no program").unwrap();
    let orphan = d.root().join("orphan");
    fs::write(&orphan, "#!/no/such/interpreter\n").unwrap();
    fs::set_permissions(&orphan, fs::Permissions::from_mode(0o755)).unwrap();
    let long = "x".repeat(200_000);
    let cases = [
        (json!(["/no/such/program"]), libc::ENOENT, "/no/such/program"),
        (json!(["no-such-program-in-path"]), libc::ENOENT, "no-such-program-in-path"),
        (json!([plain]), libc::EACCES, plain.to_str().unwrap()),
        (json!(["/"]), libc::EACCES, "/"),
        (json!([orphan]), libc::ENOENT, orphan.to_str().unwrap()),
        (json!(["/bin/true", long]), libc::E2BIG, "/bin/true"),
    ];
    for (n, (argv, errno, path)) in cases.into_iter().enumerate() {
        let error = d.refused(-32006, "spawn_failed", "exec", json!({ "argv": argv, "yield_ms": 1000 }));
        assert_eq!(error["data"]["errno"], errno, "{error}");
        assert!(error["data"]["path"].as_str().unwrap().contains(path), "{error}");
        let list = d.ok("list", json!({}));
        let record = &list["processes"][0];
        assert_eq!(list["total"], n as u64 + 1);
        assert_eq!(
            (&record["reason"], &record["failure"]["errno"]),
            (&json!("failed_start"), &json!(errno)),
            "{record}"
        );
        assert_eq!(record["signal"], Value::Null);
        assert_ne!(record["exit_code"], 0, "never an invented 0");
        assert_ne!(record["status"], "running");
    }
}

#[test]
fn the_same_request_id_returns_the_same_process_and_starts_nothing() {
    let d = Daemon::start();
    let ask = json!({ "argv": ["/bin/sh", "-c", "echo once >> count; exec sleep 1000"], "request_id": "r-1" });
    let first = d.ok("exec", ask.clone());
    let again = d.ok("exec", ask);
    assert_eq!((&again["id"], &again["pid"]), (&first["id"], &first["pid"]));
    assert_eq!(first["request_id"], "r-1");
    assert_eq!(d.ids(json!({})), vec![id(&first)]);
}

#[test]
fn a_request_id_sent_by_many_clients_at_once_starts_one_process() {
    let d = Daemon::start();
    let ask = json!({ "argv": ["/bin/sh", "-c", "echo once >> count; exec sleep 1000"], "request_id": "race" });
    let mut conns: Vec<_> = (0..16).map(|_| d.conn()).collect();
    let sent: Vec<u64> = conns.iter_mut().map(|c| c.request("exec", ask.clone())).collect();
    let answers: Vec<String> = conns.iter_mut().zip(sent).map(|(c, n)| id(&c.answer(n).unwrap())).collect();
    assert!(answers.iter().all(|a| a == &answers[0]), "{answers:?}");
    assert_eq!(d.ids(json!({})), vec![answers[0].clone()]);
    d.ok("kill", json!({ "id": answers[0] }));
    assert!(fs::read_to_string(d.home().join("count")).unwrap_or_default().lines().count() <= 1);
}

#[test]
fn of_many_calls_with_one_request_id_one_reports_that_it_started_the_process() {
    // The broken code reported that of all.
    let d = Daemon::start();
    let ask = json!({ "argv": ["/bin/sleep", "1000"], "request_id": "race" });
    let mut conns: Vec<_> = (0..16).map(|_| d.conn()).collect();
    let sent: Vec<u64> = conns.iter_mut().map(|c| c.request("exec", ask.clone())).collect();
    let answers: Vec<Value> = conns.iter_mut().zip(sent).map(|(c, n)| c.answer(n).unwrap()).collect();
    assert_eq!(answers.iter().filter(|answer| answer["existing"] == false).count(), 1, "{answers:?}");
    assert_eq!(d.ok("exec", ask)["existing"], true);
}

#[test]
fn a_request_id_for_something_else_is_a_conflict_also_after_a_restart_and_starts_nothing() {
    // The broken code answered with the old process, and what was asked for never ran.
    let mut d = Daemon::start();
    let ask =
        json!({ "argv": ["/bin/sleep", "1000"], "request_id": "r", "name": "n", "env": { "A": "1" }, "cwd": "/" });
    let with = |key: &str, value: Value| {
        let mut other = ask.clone();
        other[key] = value;
        other
    };
    let first = d.ok("exec", ask.clone());
    let run_others = [
        with("argv", json!(["/bin/sleep", "1001"])),
        with("cwd", json!("/tmp")),
        with("env", json!({ "B": "1" })),
        with("limits", json!({ "pids": 1000 })),
        with("name", json!("m")),
        json!({ "command": "sleep 1000", "request_id": "r" }),
    ];
    let run_the_same =
        [with("yield_ms", json!(1)), with("env", json!({ "A": "2" })), with("max_output_tokens", json!(5))];
    let alias = |argv: &str| json!({ "argv": [argv], "name": "n", "if_running": "return", "request_id": "alias" });
    assert_eq!(d.ok("exec", alias("/bin/true"))["id"], first["id"]);
    for _ in 0..2 {
        for other in &run_others {
            let error = d.refused(-32009, "conflict", "exec", other.clone());
            let data = &error["data"];
            assert_eq!((&data["process"]["id"], &data["request_id"]), (&first["id"], &json!("r")), "{error}");
        }
        for same in &run_the_same {
            assert_eq!(d.ok("exec", same.clone())["id"], first["id"], "{same}");
        }
        d.refused(-32009, "conflict", "exec", alias("/bin/false"));
        assert_eq!(d.ok("exec", alias("/bin/true"))["id"], first["id"]);
        assert_eq!(d.ids(json!({})), vec![id(&first)], "nothing was started");
        d.restart();
    }
    let printed = d.ctl(&["exec", "--request-id", "r", "--", "/bin/echo", "b"]);
    assert_eq!((printed.code, printed.stdout.as_str()), (1, ""), "{printed:?}");
    assert!(printed.stderr.contains("use another --request-id"), "{printed:?}");
    d.ok("kill", json!({ "id": "n" }));
    d.ok("forget", json!({ "ids": ["n"] }));
    assert_ne!(d.ok("exec", run_others[0].clone())["id"], first["id"], "a forgotten process has no request");
}

#[test]
fn a_request_id_returns_the_result_after_the_exit_too() {
    let d = Daemon::start();
    let ask = json!({ "argv": ["/bin/sh", "-c", "echo out; exit 6"], "request_id": "r-2", "yield_ms": 30000 });
    let first = d.ok("exec", ask.clone());
    let again = d.ok("exec", ask);
    for field in ["id", "exit_code", "status", "reason", "output", "exited_at"] {
        assert_eq!(again[field], first[field], "{field}");
    }
    assert_eq!((&again["exit_code"], &again["output"]), (&json!(6), &json!("out\n")));
}

#[test]
fn a_failed_start_is_not_retried_for_the_same_request_id() {
    let d = Daemon::start();
    let ask = json!({ "argv": ["/no/such/program"], "request_id": "r-3" });
    d.refused(-32006, "spawn_failed", "exec", ask.clone());
    // An error or the record is returned: in both cases nothing new starts.
    let _ = d.call("exec", ask);
    assert_eq!(d.ok("list", json!({}))["total"], 1);
}

#[test]
fn an_unknown_backend_is_unavailable_and_starts_nothing() {
    let d = Daemon::start();
    d.refused(-32008, "unavailable", "exec", json!({ "argv": ["/bin/true"], "backend": "moon" }));
    assert_eq!(d.ids(json!({})), Vec::<String>::new());
    d.ok("exec", json!({ "argv": ["/bin/true"], "watch": [], "backend": "local" }));
}
