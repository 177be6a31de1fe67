//! `if_running`: a name has one process, which is returned or restarted, and never two, whatever calls race.

use serde_json::{Value, json};
use std::net::TcpListener;
use std::time::{Duration, Instant};
use toold_test_support::rig::{Daemon, id};
use toold_test_support::sys::Pidfd;

/// Starts a named process that appends its pid to a file, so that the test knows every one that ever ran.
fn web(d: &Daemon, if_running: &str) -> Value {
    let script = format!("echo $$ >> {}; echo up; exec sleep 1000", d.root().join("pids").display());
    json!({ "argv": ["/bin/sh", "-c", script], "name": "web", "if_running": if_running, "ready": { "match": "up" } })
}

/// Every pid that `web` ever had, and those that are alive.
fn pids(d: &Daemon) -> (usize, Vec<i32>) {
    let text = std::fs::read_to_string(d.root().join("pids")).unwrap_or_default();
    let all: Vec<i32> = text.lines().map(|line| line.parse().unwrap()).collect();
    let lives = |pid: &i32| d.marked().iter().any(|p| p.pid == *pid && !p.is_dead());
    (all.len(), all.iter().copied().filter(lives).collect())
}

#[track_caller]
fn running(d: &Daemon) -> Vec<String> {
    d.ids(json!({ "status": "running" }))
}

/// Makes the same call from many clients at once and returns their answers.
fn at_once(d: &Daemon, calls: usize, params: &Value) -> Vec<Value> {
    let mut conns: Vec<_> = (0..calls).map(|_| d.conn()).collect();
    let sent: Vec<u64> = conns.iter_mut().map(|conn| conn.request("exec", params.clone())).collect();
    conns.iter_mut().zip(sent).map(|(conn, n)| conn.answer(n).unwrap()).collect()
}

#[test]
fn a_name_in_use_is_an_error_by_default() {
    let d = Daemon::start();
    let first = id(&d.ok("exec", web(&d, "error")));
    let error = d.refused(-32007, "already_exists", "exec", web(&d, "error"));
    assert_eq!(error["data"]["process"]["id"], json!(first));
    for if_running in ["return", "restart"] {
        d.refused_param("if_running", "exec", json!({ "argv": ["/bin/true"], "if_running": if_running }));
    }
    d.refused_param("if_running", "exec", json!({ "argv": ["/bin/true"], "name": "x", "if_running": "other" }));
    assert_eq!(d.ok("exec", json!({ "argv": ["/bin/true"], "if_running": "error" }))["existing"], false);
    assert_eq!(pids(&d).0, 1);
}

#[test]
fn return_gives_the_running_process_with_its_output_and_starts_nothing() {
    let d = Daemon::start();
    let first = d.ok("exec", web(&d, "return"));
    assert_eq!((&first["existing"], &first["ready"]), (&json!(false), &json!("ready")));
    let second = d.ok("exec", web(&d, "return"));
    let facts = (&second["id"], &second["existing"], &second["ready"], &second["output"]);
    assert_eq!(facts, (&first["id"], &json!(true), &json!("ready"), &json!("up\n")));
    assert_eq!(second["next_cursor"], 3);
    // The other parameters have no effect, as long as they are valid.
    let other = json!({ "argv": ["no-such-program"], "name": "web", "if_running": "return" });
    assert_eq!(d.ok("exec", other)["id"], first["id"]);
    d.refused_param("argv", "exec", json!({ "argv": [], "name": "web", "if_running": "return" }));
    let never = json!({ "argv": ["x"], "name": "web", "if_running": "return", "ready": { "match": "never" },
                        "ready_timeout_ms": 200 });
    assert_eq!(d.ok("exec", never)["ready"], "timeout");
    assert_eq!((pids(&d).0, d.ids(json!({})).len()), (1, 1));
}

#[test]
fn return_yields_like_a_start() {
    let d = Daemon::start();
    let first = d.ok("exec", web(&d, "return"));
    let ask = json!({ "argv": ["/bin/true"], "name": "web", "if_running": "return", "yield_ms": 400 });
    let asked = Instant::now();
    let second = d.ok("exec", ask);
    assert!(asked.elapsed() >= Duration::from_millis(400));
    assert_eq!((&second["id"], &second["status"], &second["ready"]), (&first["id"], &json!("running"), &Value::Null));
}

#[test]
fn many_concurrent_returns_start_exactly_one() {
    let d = Daemon::start();
    let answers = at_once(&d, 12, &web(&d, "return"));
    assert!(answers.iter().all(|a| a["id"] == answers[0]["id"] && a["ready"] == "ready"), "{answers:?}");
    assert_eq!(answers.iter().filter(|a| a["existing"] == false).count(), 1);
    assert_eq!((pids(&d).0, running(&d).len()), (1, 1));
}

#[test]
fn return_never_gives_a_process_that_has_just_died() {
    let d = Daemon::start();
    let mut last = d.ok("exec", web(&d, "return"));
    for round in 0..20 {
        let program = Pidfd::open(last["pid"].as_i64().unwrap() as i32).unwrap();
        program.signal(libc::SIGKILL);
        assert!(program.dies_within(toold_test_support::rig::DEADLINE));
        let next = d.ok("exec", web(&d, "return"));
        assert_ne!(next["id"], last["id"], "round {round}");
        assert_eq!((&next["existing"], &next["status"]), (&json!(false), &json!("running")), "round {round}");
        last = next;
    }
    assert_eq!(pids(&d).1.len(), 1);
}

#[test]
fn a_restart_kills_the_running_tree_before_the_new_one_starts() {
    let d = Daemon::start();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = format!(
        "setsid python3 -c \"import socket,time; s=socket.socket(); s.bind(('127.0.0.1',{port})); s.listen(); \
         print('up', flush=True); time.sleep(1000)\" & wait"
    );
    let ask = json!({ "argv": ["/bin/sh", "-c", server], "name": "web", "if_running": "restart",
                      "ready": { "port": port } });
    let first = d.ok("exec", ask.clone());
    assert_eq!((&first["ready"], &first["existing"]), (&json!("ready"), &json!(false)));
    let second = d.ok("exec", ask);
    assert_eq!((&second["ready"], &second["existing"]), (&json!("ready"), &json!(false)), "{second}");
    assert_ne!(second["id"], first["id"]);
    let old = d.process(&id(&first));
    assert_eq!(
        (&old["status"], &old["reason"], &old["signal"]),
        (&json!("exited"), &json!("killed"), &json!("SIGTERM"))
    );
    assert!(old["killed_by"].as_str().unwrap().starts_with("client uid "), "{old}");
    assert_eq!((running(&d), d.process("web")["id"].clone()), (vec![id(&second)], second["id"].clone()));
}

#[test]
fn a_restart_also_kills_the_orphans_of_an_exited_process() {
    let d = Daemon::start();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let server = format!(
        "setsid python3 -c \"import socket,time; s=socket.socket(); s.bind(('127.0.0.1',{port})); s.listen(); \
         print('up', flush=True); time.sleep(1000)\" & exec sleep 1000"
    );
    let ask = |more: &str| json!({ "argv": ["/bin/sh", "-c", server], "name": "web", "if_running": more, "ready": { "port": port } });
    let first = d.ok("exec", ask("error"));
    let listener = d.ok("wait", json!({ "id": first["id"], "until": { "port": port } }));
    let left = Pidfd::open(listener["processes"][0]["listener"]["pid"].as_i64().unwrap() as i32).unwrap();
    d.program(&id(&first)).signal(libc::SIGKILL);
    d.exited(&id(&first));
    assert!(!left.is_dead(), "the name is free, the port is not");
    assert_eq!(d.ok("exec", ask("restart"))["ready"], "ready");
    assert!(left.is_dead());
    assert_eq!(running(&d).len(), 1);
}

#[test]
fn many_concurrent_restarts_leave_exactly_one() {
    let d = Daemon::start();
    d.ok("exec", web(&d, "error"));
    let answers = at_once(&d, 6, &web(&d, "restart"));
    assert!(answers.iter().all(|a| a["existing"] == false), "{answers:?}");
    let mut ids: Vec<String> = answers.iter().map(id).collect();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), 6, "each started one of its own");
    let alive = pids(&d).1;
    assert_eq!((alive.len(), running(&d).len()), (1, 1));
    assert_eq!(d.process("web")["pid"], alive[0]);
}

#[test]
fn mixed_policies_at_once_never_run_two() {
    let d = Daemon::start();
    let mut conns: Vec<_> = (0..12).map(|_| d.conn()).collect();
    let ways = ["return", "restart", "error"];
    let ask = |i: usize| {
        let mut ask = web(&d, ways[i % 3]);
        ask.as_object_mut().unwrap().remove("ready");
        ask
    };
    let sent: Vec<u64> = conns.iter_mut().enumerate().map(|(i, conn)| conn.request("exec", ask(i))).collect();
    for (i, (conn, n)) in conns.iter_mut().zip(sent).enumerate() {
        if let Err(error) = conn.answer(n) {
            assert_eq!((ways[i % 3], &error["data"]["kind"]), ("error", &json!("already_exists")), "{error}");
        }
    }
    assert_eq!(running(&d).len(), 1);
    d.printed("web", "up");
    assert_eq!(pids(&d).1.len(), 1);
}

#[test]
fn a_restart_works_where_only_one_may_run() {
    let d = Daemon::start_with("max_running = 1\n", &[]);
    for _ in 0..10 {
        assert_eq!(d.ok("exec", web(&d, "restart"))["ready"], "ready");
    }
    assert_eq!(running(&d).len(), 1);
}

#[test]
fn a_restart_with_a_missing_program_leaves_the_running_process_alone() {
    let d = Daemon::start();
    let first = d.ok("exec", web(&d, "error"));
    for program in ["no-such-program", "/no/such/program"] {
        let ask = json!({ "argv": [program], "name": "web", "if_running": "restart" });
        let error = d.refused(-32006, "spawn_failed", "exec", ask);
        assert_eq!(error["data"]["error"], "ENOENT", "{error}");
    }
    d.refused_param("cwd", "exec", json!({ "argv": ["sh"], "cwd": "/no", "name": "web", "if_running": "restart" }));
    assert_eq!(running(&d), [id(&first)]);
}

#[test]
fn a_repeated_request_id_neither_restarts_nor_starts() {
    let d = Daemon::start();
    let with = |if_running: &str, request: &str| {
        let mut ask = web(&d, if_running);
        ask["request_id"] = json!(request);
        ask
    };
    d.ok("exec", web(&d, "error"));
    let first = d.ok("exec", with("restart", "a"));
    assert_eq!(d.ok("exec", with("restart", "a"))["id"], first["id"]);
    let given = d.ok("exec", with("return", "b"));
    assert_eq!((&given["id"], &given["existing"]), (&first["id"], &json!(true)));
    d.ok("kill", json!({ "id": "web" }));
    let again = d.ok("exec", with("return", "b"));
    assert_eq!((&again["id"], &again["existing"], &again["status"]), (&first["id"], &json!(true), &json!("exited")));
    assert_eq!(pids(&d).0, 2);
    d.ok("forget", json!({ "ids": [first["id"]] }));
    let new = d.ok("exec", with("return", "b"));
    assert_eq!(new["existing"], false, "a forgotten process is not returned");
}

/// The broken code forgot a request that was answered with a running process when the daemon was killed.
#[test]
fn a_request_that_got_a_running_process_gets_it_after_a_crash_and_after_its_end() {
    let mut d = Daemon::start();
    let with = |request: &str| {
        let mut ask = web(&d, "return");
        ask["request_id"] = json!(request);
        ask
    };
    let (b, c, odd) = (with("b"), with("c"), with("two\nlines \"and\" 网站"));
    let first = id(&d.ok("exec", web(&d, "error")));
    let got = |d: &Daemon, ask: &Value| {
        let answer = d.ok("exec", ask.clone());
        (id(&answer), answer["existing"] == true, answer["status"].as_str().unwrap().to_string())
    };
    let running = (first.clone(), true, "running".to_string());
    assert_eq!((got(&d, &b), got(&d, &odd)), (running.clone(), running.clone()));
    d.restart();
    assert_eq!((got(&d, &c), got(&d, &odd)), (running.clone(), running));
    d.ok("kill", json!({ "id": "web" }));
    let ended = (first.clone(), true, "exited".to_string());
    for _ in 0..2 {
        assert_eq!([got(&d, &b), got(&d, &c), got(&d, &odd)], [ended.clone(), ended.clone(), ended.clone()]);
        d.restart();
    }
    assert_eq!(pids(&d).0, 1, "only one was ever started");
    d.ok("forget", json!({ "ids": [first] }));
    assert!(!got(&d, &b).1, "a forgotten process is not returned");
}

#[test]
fn a_daemon_killed_in_the_middle_of_a_restart_never_leaves_two() {
    let mut d = Daemon::start();
    let gate = d.gate("term");
    let script = format!(
        "echo $$ >> {}; trap '{}' TERM; echo up; while :; do sleep 1000 & wait $!; done",
        d.root().join("pids").display(),
        gate.send("term")
    );
    d.ok("exec", json!({ "argv": ["/bin/sh", "-c", script], "name": "web", "ready": { "match": "up" } }));
    let mut conn = d.conn();
    conn.request("exec", web(&d, "restart"));
    assert_eq!(gate.recv(toold_test_support::rig::DEADLINE), "term");
    d.restart();
    assert!(running(&d).len() <= 1);
    assert_eq!(pids(&d).0, 1, "the new one had not started");
    let new = d.ok("exec", web(&d, "restart"));
    assert_eq!((running(&d), pids(&d).0, pids(&d).1.len()), (vec![id(&new)], 2, 1));
}
