//! The toolset of codex: sessions of `exec_command`, their numbers and output, `shell`, and the tools for files.

use serde_json::{Value, json};
use std::fs;
use toold_test_support::rig::Daemon;
use toold_test_support::sys::Pidfd;

fn params(d: &Daemon, name: &str, args: Value) -> Value {
    json!({ "toolset": "codex", "name": name, "args": args, "session_key": "s", "cwd": d.root() })
}

fn text(result: &Value) -> String {
    masked(result["result"].as_str().unwrap_or_else(|| panic!("no text in {result}")))
}

/// Calls a tool and returns its text.
#[track_caller]
fn codex(d: &Daemon, name: &str, args: Value) -> String {
    text(&d.ok("tools.call", params(d, name, args)))
}

/// Runs shell text as a session, with more arguments.
#[track_caller]
fn exec(d: &Daemon, cmd: &str, more: Value) -> String {
    let mut args = json!({ "cmd": cmd, "shell": "/bin/sh", "login": false });
    args.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    codex(d, "exec_command", args)
}

/// Replaces what differs from call to call.
fn masked(text: &str) -> String {
    let mask = |line: &str| match line.split_once(": ") {
        Some(("Chunk ID", id)) if id.len() == 6 => "Chunk ID: ID".into(),
        Some(("Wall time", time)) if time.ends_with(" seconds") => "Wall time: T".into(),
        _ => line.to_owned(),
    };
    text.split('\n').map(mask).collect::<Vec<_>>().join("\n")
}

/// The text of a session that has ended.
fn exited(code: i32, tokens: u64, output: &str) -> String {
    format!(
        "Chunk ID: ID\nWall time: T\nProcess exited with code {code}\nOriginal token count: {tokens}\nOutput:\n{output}"
    )
}

/// The text of a session that runs.
fn running(number: u64, tokens: u64, output: &str) -> String {
    format!(
        "Chunk ID: ID\nWall time: T\nProcess running with session ID {number}\nOriginal token count: {tokens}\nOutput:\n{output}"
    )
}

/// The process of a session.
fn process(d: &Daemon, number: u64) -> String {
    d.ids(json!({ "label": format!("toold.codex={number}") })).remove(0)
}

/// Waits until the position of a session is on disk: it is written after the answer.
fn recorded(d: &Daemon, number: u64) {
    let file = d.state().join("procs").join(process(d, number)).join("codex");
    d.eventually("the position is recorded", || file.exists());
}

#[test]
fn a_command_that_ends_in_time_has_its_code_and_both_streams_in_order() {
    let d = Daemon::start();
    assert_eq!(
        exec(&d, "echo out; echo err >&2; echo $PWD; exit 3", json!({ "workdir": "/" })),
        exited(3, 3, "out\nerr\n/\n")
    );
    assert_eq!(exec(&d, "kill -9 $$", json!({})).lines().nth(3), Some("Signal: SIGKILL"));
    assert_eq!(exec(&d, "cat", json!({})), exited(0, 0, ""), "without a terminal there is no stdin to wait for");
    let missing = exec(&d, "true", json!({ "shell": "/no/such/shell" }));
    assert!(missing.starts_with("exec_command failed: "), "{missing}");
    let nowhere = exec(&d, "true", json!({ "workdir": "no-such-dir" }));
    assert!(nowhere.starts_with("exec_command failed: "), "{nowhere}");
}

#[test]
fn a_session_returns_what_is_new_and_ends_once() {
    let d = Daemon::start();
    let gate = d.gate("gate");
    let script = format!("echo one; {}; echo two; exit 4", gate.wait());
    assert_eq!(exec(&d, &script, json!({ "yield_time_ms": 250 })), running(1000, 1, "one\n"));
    gate.open();
    assert_eq!(codex(&d, "write_stdin", json!({ "session_id": 1000 })), exited(4, 1, "two\n"));
    let unknown = "write_stdin failed: Unknown process id 1000";
    assert_eq!(codex(&d, "write_stdin", json!({ "session_id": 1000 })), unknown);
    assert_eq!(codex(&d, "write_stdin", json!({ "session_id": 7 })), "write_stdin failed: Unknown process id 7");
}

#[test]
fn numbers_are_of_a_session_key_and_survive_a_kill_of_the_daemon() {
    let mut d = Daemon::start();
    let gate = d.gate("gate");
    let script = format!("echo one; {}; echo two", gate.wait());
    let quick = json!({ "yield_time_ms": 250 });
    assert_eq!(exec(&d, &script, quick.clone()), running(1000, 1, "one\n"));
    assert_eq!(exec(&d, "true", quick.clone()), exited(0, 0, ""), "it had the number 1001");
    recorded(&d, 1000);
    d.kill9();
    d.spawn();
    assert_eq!(exec(&d, &script, quick), running(1002, 1, "one\n"));
    let mut other = params(&d, "exec_command", json!({ "cmd": "read x", "tty": true, "yield_time_ms": 250 }));
    other["session_key"] = json!("other");
    assert!(text(&d.ok("tools.call", other.clone())).contains("session ID 1000\n"));
    gate.open();
    gate.open();
    assert_eq!(codex(&d, "write_stdin", json!({ "session_id": 1000 })), exited(0, 1, "two\n"));
    assert_eq!(codex(&d, "write_stdin", json!({ "session_id": 1002 })), exited(0, 1, "two\n"));
    d.ok("session.end", json!({ "session_key": "other" }));
    (other["name"], other["args"]) = (json!("write_stdin"), json!({ "session_id": 1000 }));
    assert!(
        text(&d.ok("tools.call", other)).contains("\nProcess exited with code "),
        "the end of a session ends its own"
    );
}

#[test]
fn a_command_runs_once_when_the_daemon_is_killed_while_it_is_waited_for() {
    let mut d = Daemon::start();
    let gate = d.gate("gate");
    let script = format!("echo run >> ran; echo out; {}", gate.wait());
    let args = json!({ "cmd": script, "shell": "/bin/sh", "login": false, "yield_time_ms": 30000 });
    let mut call = params(&d, "exec_command", args);
    call["request_id"] = json!("r");
    let mut conn = d.conn();
    conn.request("tools.call", call.clone());
    let ran = d.root().join("ran");
    d.eventually("it runs", || ran.exists());
    d.kill9();
    d.spawn();
    gate.open();
    let first = d.ok("tools.call", call.clone());
    assert_eq!(text(&first), exited(0, 1, "out\n"));
    assert_eq!(d.ok("tools.call", call), first);
    assert_eq!(fs::read_to_string(ran).unwrap(), "run\n");
    assert_eq!(d.ok("list", json!({ "session_key": "s" }))["total"], 1);
}

#[test]
fn output_is_returned_again_to_a_client_that_hung_up() {
    let d = Daemon::start();
    let script = "stty -echo; echo ready; while read -r line; do echo got $line; done";
    let first = exec(&d, script, json!({ "tty": true, "yield_time_ms": 250 }));
    assert!(first.contains("session ID 1000\n"), "{first}");
    let proc = process(&d, 1000);
    d.printed(&proc, "ready");
    let mut conn = d.conn();
    conn.request("tools.call", params(&d, "write_stdin", json!({ "session_id": 1000, "chars": "a\n" })));
    d.printed(&proc, "got a");
    drop(conn);
    let second = codex(&d, "write_stdin", json!({ "session_id": 1000, "chars": "b\n\u{4}" }));
    assert!(second.ends_with("got a\r\ngot b\r\n"), "{second}");
}

#[test]
fn a_terminal_is_real_and_takes_input_once() {
    let d = Daemon::start();
    let script = "test -t 0 && test -t 1 && echo tty; read -r x; echo got $x";
    assert_eq!(exec(&d, script, json!({ "tty": true, "yield_time_ms": 250 })), running(1000, 2, "tty\r\n"));
    let mut call = params(&d, "write_stdin", json!({ "session_id": 1000, "chars": "hi\n", "yield_time_ms": 30000 }));
    call["request_id"] = json!("w");
    let first = d.ok("tools.call", call.clone());
    assert_eq!(text(&first), exited(0, 3, "hi\r\ngot hi\r\n"));
    assert_eq!(d.ok("tools.call", call), first);
    let script = "trap 'echo int; exit 7' INT; echo ready; while :; do read -r x; done";
    let started = exec(&d, script, json!({ "tty": true, "yield_time_ms": 250 }));
    assert!(started.contains("session ID 1001\n"), "{started}");
    d.printed(&process(&d, 1001), "ready");
    let ended = codex(&d, "write_stdin", json!({ "session_id": 1001, "chars": "\u{3}", "yield_time_ms": 30000 }));
    assert!(ended.contains("Process exited with code 7\n") && ended.ends_with("int\r\n"), "{ended}");
}

#[test]
fn control_c_without_a_terminal_is_sigint_to_the_group_and_other_input_is_refused() {
    let d = Daemon::start();
    let script = "trap 'echo int; exit 7' INT; echo ready; while :; do sleep 1000; done";
    assert!(exec(&d, script, json!({ "yield_time_ms": 250 })).contains("session ID 1000\n"));
    let refused = codex(&d, "write_stdin", json!({ "session_id": 1000, "chars": "y\n" }));
    assert_eq!(
        refused,
        "write_stdin failed: stdin is closed for this session; rerun exec_command with tty=true to keep stdin open"
    );
    d.printed(&process(&d, 1000), "ready");
    let ended = codex(&d, "write_stdin", json!({ "session_id": 1000, "chars": "\u{3}", "yield_time_ms": 30000 }));
    assert!(ended.contains("Process exited with code 7\n") && ended.ends_with("int\n"), "{ended}");
}

#[test]
fn a_time_outside_its_range_is_clamped_and_stated() {
    let d = Daemon::start();
    let gate = d.gate("gate");
    let noted = |text: &str| text.lines().nth(4).unwrap().to_owned();
    let short = exec(&d, &gate.wait(), json!({ "yield_time_ms": 1 }));
    assert_eq!(noted(&short), "Yield time: 250 ms (requested 1 ms; the range is 250-30000 ms)");
    gate.open();
    let poll = codex(&d, "write_stdin", json!({ "session_id": 1000, "yield_time_ms": 10 }));
    assert_eq!(noted(&poll), "Yield time: 5000 ms (requested 10 ms; the range is 5000-300000 ms)");
}

#[test]
fn of_a_long_output_the_first_and_the_last_half_mebibyte_are_left() {
    let d = Daemon::start();
    let script = "printf begin; head -c 3000000 /dev/zero | tr '\\0' x; printf end";
    let cut = exec(&d, script, json!({ "yield_time_ms": 30000 }));
    let expected = "Original token count: 750002\nOutput:\nWarning: truncated output (original token count: 750002)\n\
                    ... 1951432 bytes omitted ...\n\nbeginxxx";
    assert!(cut.contains(expected), "{}", &cut[..400]);
    assert!(cut.ends_with("xxxend"), "{}", &cut[cut.len() - 100..]);
    assert!(cut.len() < 41_000, "{}", cut.len());
}

#[test]
fn output_that_the_log_has_dropped_is_counted() {
    let d = Daemon::start_with("log_max_bytes = 65536\n", &[]);
    let script = "printf begin; head -c 300000 /dev/zero | tr '\\0' x; printf end";
    let text = exec(&d, script, json!({ "yield_time_ms": 30000, "max_output_tokens": 100000 }));
    let (head, output) = text.split_once("\nOutput:\n").unwrap();
    assert!(head.ends_with("Original token count: 75002"), "{head}");
    // The log keeps the beginning and the end.
    let lines: Vec<&str> = output.split('\n').collect();
    let [begin, marker, kept] = lines[..] else { panic!("{} lines", lines.len()) };
    let dropped: usize = marker.split(' ').nth(1).unwrap().parse().unwrap();
    assert_eq!(marker, format!("... {dropped} bytes omitted ..."));
    assert_eq!(begin.len() + dropped + kept.len(), 300_008);
    assert!(begin.is_empty() || begin.starts_with("beginx"), "{begin}");
    assert!(kept.ends_with("xxxend"), "{kept}");
}

#[test]
fn shell_has_both_streams_and_clips_each() {
    let d = Daemon::start();
    let root = d.root().display().to_string();
    let sh = |script: &str| json!({ "command": ["/bin/sh", "-c", script] });
    assert_eq!(
        codex(&d, "shell", sh("echo out; echo err >&2; exit 2")),
        format!("Working directory: {root}\nExit code: 2\nStdout:\nout\n\nStderr:\nerr\n")
    );
    assert_eq!(
        codex(&d, "shell_command", json!({ "command": "echo $0", "login": false, "workdir": "/" })).lines().next(),
        Some("Working directory: /")
    );
    let long =
        codex(&d, "shell", sh("head -c 12005 /dev/zero | tr '\\0' x; head -c 2000000 /dev/zero | tr '\\0' y >&2"));
    let (x, y) = ("x".repeat(12_000), "y".repeat(12_000));
    assert_eq!(
        long,
        format!(
            "Working directory: {root}\nExit code: 0\nStdout:\n{x}\n...[truncated 5 characters]...\nStderr:\n{y}\n\
             ...[truncated 1988000 bytes]..."
        )
    );
    let missing = codex(&d, "shell", json!({ "command": ["no-such-program"] }));
    assert!(missing.starts_with("shell failed: "), "{missing}");
}

#[test]
fn a_timeout_of_shell_ends_the_tree_and_waits_for_no_pipe() {
    let d = Daemon::start();
    let root = d.root().display().to_string();
    // It is in the tree, though in no group of the program, and holds its stdout.
    let orphan =
        "setsid sh -c 'echo $$ > new; mv new pid; exec sleep 1000' & while [ ! -e pid ]; do :; done; echo started;";
    let sh = |script: String| json!({ "command": ["/bin/sh", "-c", script], "timeout_ms": 400 });
    assert_eq!(
        codex(&d, "shell", sh(format!("{orphan} sleep 1000"))),
        format!("Working directory: {root}\nTimeout: exceeded 400 ms\nStdout:\nstarted\n\nStderr:\n")
    );
    let pid = fs::read_to_string(d.root().join("pid")).unwrap().trim().parse().unwrap();
    assert!(Pidfd::open(pid).is_none_or(|orphan| orphan.is_dead()), "the orphan ended with the tree");
    let mut call = sh("sleep 1000 & echo started; exit 5".into());
    call["timeout_ms"] = json!(1_000_000);
    assert_eq!(
        codex(&d, "shell", call),
        format!("Working directory: {root}\nExit code: 5\nStdout:\nstarted\n\nStderr:\n")
    );
}

#[test]
fn a_cancelled_command_is_killed() {
    let d = Daemon::start();
    let mut conn = d.conn();
    let args =
        json!({ "cmd": "echo $$ > pid; exec sleep 1000", "shell": "/bin/sh", "login": false, "yield_time_ms": 30000 });
    let request = conn.request("tools.call", params(&d, "exec_command", args));
    let pid = d.root().join("pid");
    d.eventually("it runs", || pid.exists());
    conn.send(&json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": request } }));
    let error = conn.answer(request).unwrap_err();
    assert_eq!((&error["code"], &error["data"]["kind"]), (&json!(-32800), &json!("cancelled")), "{error}");
    assert_eq!(d.process(&process(&d, 1000))["reason"], "killed");
}

#[test]
fn files_are_patched_read_listed_and_searched() {
    let d = Daemon::start();
    let dir = d.root().join("work");
    fs::create_dir_all(dir.join("src")).unwrap();
    let real = dir.canonicalize().unwrap().display().to_string();
    let call = |name: &str, args: Value| {
        let mut call = params(&d, name, args);
        call["cwd"] = json!(dir);
        text(&d.ok("tools.call", call))
    };
    let patch =
        "*** Begin Patch\n*** Add File: src/a.rs\n+fn a() {}\n+// done\n*** Add File: b.txt\n+done\n*** End Patch";
    let applied = call("apply_patch", json!({ "input": patch }));
    let (head, tail) = applied.split_once("Wall time").unwrap();
    assert_eq!(head, "Exit code: 0\n");
    assert!(tail.ends_with("Output:\nSuccess. Updated the following files:\nA src/a.rs\nA b.txt\n"), "{applied}");
    let patch = "*** Begin Patch\n*** Delete File: none\n*** End Patch";
    let again = call("apply_patch", json!({ "input": patch }));
    assert!(again.starts_with("apply_patch verification failed: "), "{again}");
    let file = dir.join("src/a.rs");
    assert_eq!(call("read_file", json!({ "file_path": file })), "L1: fn a() {}\nL2: // done");
    assert_eq!(call("read_file", json!({ "file_path": file, "offset": 2, "limit": 1 })), "L2: // done");
    assert_eq!(call("read_file", json!({ "file_path": file, "offset": 9 })), "offset exceeds file length");
    assert!(call("read_file", json!({ "file_path": dir.join("none") })).starts_with("read_file failed: "));
    std::os::unix::fs::symlink("b.txt", dir.join("link")).unwrap();
    fs::write(dir.join(".hidden"), "").unwrap();
    assert_eq!(
        call("list_dir", json!({ "dir_path": dir })),
        format!("Absolute path: {real}\n.hidden\nb.txt\nlink@\nsrc/\n  a.rs")
    );
    assert_eq!(
        call("list_dir", json!({ "dir_path": dir, "offset": 2, "limit": 2, "depth": 1 })),
        format!("Absolute path: {real}\nb.txt\nlink@\nMore than 2 entries found")
    );
    assert_eq!(
        call("list_dir", json!({ "dir_path": dir, "offset": 99 })),
        "list_dir failed: offset exceeds directory entry count"
    );
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(1000);
    fs::File::options().write(true).open(dir.join("src/a.rs")).unwrap().set_modified(old).unwrap();
    let at = |name: &str| dir.join(name).display().to_string();
    assert_eq!(call("grep_files", json!({ "pattern": "done" })), format!("{}\n{}", at("b.txt"), at("src/a.rs")));
    assert_eq!(call("grep_files", json!({ "pattern": "done", "limit": 1 })), at("b.txt"));
    assert_eq!(call("grep_files", json!({ "pattern": "done", "include": "*.rs" })), at("src/a.rs"));
    assert_eq!(call("grep_files", json!({ "pattern": "nothing" })), "No matches found.");
}
