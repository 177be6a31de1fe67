//! Readiness: a port that the process listens on, a pause in its output, and `exec` that answers when it is ready.

use serde_json::{Value, json};
use std::net::TcpListener;
use std::time::{Duration, Instant};
use toold_test_support::rig::{Daemon, id, skip_unless};

/// Returns a port that was free a moment ago.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// Shell text that becomes a listener on this address and prints a line then.
fn listen(address: &str, port: u16) -> String {
    let family = if address.contains(':') { "AF_INET6" } else { "AF_INET" };
    format!(
        "exec python3 -c \"import socket,time; s=socket.socket(socket.{family}); \
         s.bind(('{address}',{port})); s.listen(); print('up', flush=True); time.sleep(1000)\""
    )
}

fn wait_port(id: &str, port: u16) -> Value {
    json!({ "id": id, "until": { "port": port }, "timeout_ms": 50000 })
}

#[test]
fn wait_for_a_port_returns_when_the_process_listens() {
    let d = Daemon::start();
    let (gate, port) = (d.gate("go"), free_port());
    let proc = d.sh(&format!("{}; {}", gate.wait(), listen("127.0.0.1", port)));
    let mut conn = d.conn();
    let n = conn.request("wait", wait_port(&proc, port));
    assert_eq!(d.ok("wait", json!({ "id": proc, "until": { "port": port }, "timeout_ms": 200 }))["status"], "timeout");
    gate.open();
    let wait = conn.answer(n).unwrap();
    let p = &wait["processes"][0];
    assert_eq!((&wait["status"], &p["status"], &p["matched"]), (&json!("matched"), &json!("running"), &Value::Null));
    assert_eq!(p["listener"], json!({ "pid": p["pid"], "port": port, "address": "127.0.0.1" }));
    // A port that is open already is found at once, also by a daemon that did not start the process.
    let mut d = d;
    d.restart();
    assert_eq!(d.ok("wait", wait_port(&proc, port))["processes"][0]["listener"], p["listener"]);
}

#[test]
fn a_listening_descendant_in_another_session_belongs_to_the_tree() {
    let d = Daemon::start();
    let port = free_port();
    let proc = d.sh(&format!("setsid sh -c '{}' & exec sleep 1000", listen("0.0.0.0", port).replace('\'', "'\\''")));
    let wait = d.ok("wait", wait_port(&proc, port));
    let p = &wait["processes"][0];
    assert_eq!((&wait["status"], &p["listener"]["address"]), (&json!("matched"), &json!("0.0.0.0")));
    assert_ne!(p["listener"]["pid"], p["pid"], "it is a descendant that listens");
}

#[test]
fn an_ipv6_port_is_found_too() {
    if skip_unless(TcpListener::bind("[::1]:0").is_ok(), "this machine has no IPv6") {
        return;
    }
    let d = Daemon::start();
    let port = free_port();
    let proc = d.sh(&listen("::1", port));
    assert_eq!(d.ok("wait", wait_port(&proc, port))["processes"][0]["listener"]["address"], "::1");
}

#[test]
fn a_listener_of_another_process_does_not_count() {
    let d = Daemon::start();
    let ours = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = ours.local_addr().unwrap().port();
    let proc = d.sh("echo up; exec sleep 1000");
    let wait = d.ok("wait", json!({ "id": proc, "until": { "port": port }, "timeout_ms": 500 }));
    assert_eq!((&wait["status"], &wait["processes"][0]["listener"]), (&json!("timeout"), &Value::Null));
}

#[test]
fn an_exit_before_the_port_or_the_pause_is_an_exit() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let proc = d.sh(&format!("{}; exit 4", gate.wait()));
    let mut conn = d.conn();
    let port = conn.request("wait", wait_port(&proc, free_port()));
    let quiet = conn.request("wait", json!({ "id": proc, "until": { "quiet_ms": 1000000 }, "timeout_ms": 50000 }));
    gate.open();
    for n in [port, quiet] {
        let wait = conn.answer(n).unwrap();
        assert_eq!((&wait["status"], &wait["processes"][0]["exit_code"]), (&json!("exited"), &json!(4)));
    }
}

#[test]
fn an_invalid_port_or_pause_is_rejected_by_name() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    d.refused_param("until.port", "wait", json!({ "id": proc, "until": { "port": 0 } }));
    d.refused_param("until", "wait", json!({ "id": proc, "until": { "port": 65536 } }));
    d.refused_param("until.quiet_ms", "wait", json!({ "id": proc, "until": { "quiet_ms": 0 } }));
}

#[test]
fn any_waits_for_one_listener_and_all_for_every_one() {
    let d = Daemon::start();
    let (gate, port) = (d.gate("go"), free_port());
    let first = d.sh(&listen("127.0.0.1", port));
    let second = d.sh(&format!("{}; {}", gate.wait(), listen("127.0.0.2", port)));
    let ask =
        |mode: &str| json!({ "ids": [first, second], "mode": mode, "until": { "port": port }, "timeout_ms": 50000 });
    let wait = d.ok("wait", ask("any"));
    let addresses =
        |w: &Value| [0, 1].map(|i| w["processes"][i]["listener"]["address"].as_str().unwrap_or("-").to_string());
    assert_eq!((&wait["status"], addresses(&wait)), (&json!("matched"), ["127.0.0.1", "-"].map(String::from)));
    let mut conn = d.conn();
    let n = conn.request("wait", ask("all"));
    gate.open();
    let wait = conn.answer(n).unwrap();
    assert_eq!((&wait["status"], addresses(&wait)), (&json!("matched"), ["127.0.0.1", "127.0.0.2"].map(String::from)));
}

#[test]
fn quiet_counts_from_the_last_output_and_restarts_with_each_output() {
    let d = Daemon::start();
    let proc = d.sh("i=0; while [ $i -lt 8 ]; do echo line $i; i=$((i+1)); sleep 0.2; done; exec sleep 1000");
    let ask = |ms: u64| json!({ "id": proc, "until": { "quiet_ms": ms }, "timeout_ms": 50000 });
    let wait = d.ok("wait", ask(2000));
    let p = &wait["processes"][0];
    assert_eq!((&wait["status"], &p["status"], &p["matched"]), (&json!("matched"), &json!("running"), &Value::Null));
    assert!(p["output"].as_str().unwrap().ends_with("line 7\n"), "{p}");
    let asked = Instant::now();
    assert_eq!(d.ok("wait", ask(2000))["status"], "matched");
    assert!(asked.elapsed() < Duration::from_millis(1500), "the pause before the call counts");
}

#[test]
fn a_process_that_never_printed_is_quiet_since_its_start() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let wait = d.ok("wait", json!({ "id": proc, "until": { "quiet_ms": 500 }, "timeout_ms": 50000 }));
    assert_eq!((&wait["status"], &wait["processes"][0]["bytes"]), (&json!("matched"), &json!(0)));
    assert!(wait["processes"][0]["uptime_ms"].as_u64().unwrap() >= 500, "{wait}");
}

#[test]
fn quiet_continues_across_a_restart_of_the_daemon() {
    let mut d = Daemon::start();
    let proc = d.sh("echo once; exec sleep 1000");
    let ask = json!({ "id": proc, "until": { "quiet_ms": 3000 }, "timeout_ms": 50000 });
    assert_eq!(d.ok("wait", ask.clone())["status"], "matched");
    d.restart();
    let asked = Instant::now();
    assert_eq!(d.ok("wait", ask)["status"], "matched");
    assert!(asked.elapsed() < Duration::from_millis(2500));
}

#[test]
fn exec_answers_when_the_process_prints_the_match_with_the_output_up_to_there() {
    let d = Daemon::start();
    let script = "echo starting; echo ready on 80; exec sleep 1000";
    let exec = d.sh_with(script, json!({ "ready": { "match": { "regex": "ready on \\d+" } } }));
    assert_eq!(
        (&exec["ready"], &exec["status"], &exec["existing"]),
        (&json!("ready"), &json!("running"), &json!(false))
    );
    assert_eq!(exec["output"], "starting\nready on 80\n");
    assert_eq!(d.sh_with("echo x", json!({}))["ready"], Value::Null);
}

#[test]
fn exec_answers_when_the_process_listens_or_is_quiet() {
    let d = Daemon::start();
    let port = free_port();
    let exec = d.sh_with(&listen("127.0.0.1", port), json!({ "ready": { "port": port } }));
    assert_eq!((&exec["ready"], &exec["status"]), (&json!("ready"), &json!("running")));
    assert_eq!(d.ok("wait", wait_port(&id(&exec), port))["processes"][0]["listener"]["pid"], exec["pid"]);
    let exec = d.sh_with("echo hello; exec sleep 1000", json!({ "ready": { "quiet_ms": 700 } }));
    assert_eq!((&exec["ready"], &exec["output"]), (&json!("ready"), &json!("hello\n")));
}

#[test]
fn a_process_that_exits_before_it_is_ready_is_returned_with_its_exit() {
    let d = Daemon::start();
    for ready in [json!({ "match": "never" }), json!({ "port": free_port() }), json!({ "quiet_ms": 1000000 })] {
        let exec = d.sh_with("echo no; exit 9", json!({ "ready": ready }));
        assert_eq!((&exec["ready"], &exec["exit_code"]), (&json!("exited"), &json!(9)), "{ready}");
        assert_eq!(exec["output"], "no\n");
    }
    let exec = d.sh_with("printf READY; exit 0", json!({ "ready": { "match": "READY" } }));
    assert_eq!(exec["ready"], "ready", "it was ready before it exited");
}

#[test]
fn the_readiness_timeout_ends_the_call_and_not_the_process() {
    let d = Daemon::start();
    let never = json!({ "match": "never" });
    for more in [
        json!({ "ready": never, "ready_timeout_ms": 1000 }),
        json!({ "ready": never, "ready_timeout_ms": 1000, "yield_ms": 40000 }),
        json!({ "ready": never, "ready_timeout_ms": 40000, "yield_ms": 1000 }),
        json!({ "ready": never, "yield_ms": 1000 }),
    ] {
        let asked = Instant::now();
        let exec = d.sh_with("echo soon; exec sleep 1000", more.clone());
        assert!((Duration::from_millis(1000)..Duration::from_secs(20)).contains(&asked.elapsed()), "{more}");
        let facts = (&exec["ready"], &exec["status"], &exec["output"]);
        assert_eq!(facts, (&json!("timeout"), &json!("running"), &json!("soon\n")), "{more}");
        assert!(!d.program(&id(&exec)).is_dead());
    }
}

#[test]
fn the_readiness_timeout_is_clamped_to_the_longest_wait() {
    let d = Daemon::start_with("max_wait_ms = 300\n", &[]);
    let asked = Instant::now();
    let exec = d.sh_with("exec sleep 1000", json!({ "ready": { "match": "never" }, "ready_timeout_ms": 3600000 }));
    assert_eq!(exec["ready"], "timeout");
    assert!(asked.elapsed() < Duration::from_secs(20));
}

#[test]
fn an_invalid_readiness_is_rejected_before_anything_starts() {
    let d = Daemon::start();
    let ask = |ready: Value| json!({ "argv": ["/bin/sleep", "1000"], "ready": ready });
    d.refused_param("ready", "exec", ask(json!("exit")));
    d.refused_param("ready", "exec", ask(json!("closed")));
    d.refused_param("ready", "exec", ask(json!({})));
    d.refused_param("ready.match.regex", "exec", ask(json!({ "match": { "regex": "(" } })));
    d.refused_param("ready.match", "exec", ask(json!({ "match": "" })));
    d.refused_param("ready.port", "exec", ask(json!({ "port": 0 })));
    d.refused_param("ready.quiet_ms", "exec", ask(json!({ "quiet_ms": 0 })));
    for ms in [0, -1] {
        let ask = json!({ "argv": ["/bin/true"], "ready": { "match": "x" }, "ready_timeout_ms": ms });
        d.refused_param("ready_timeout_ms", "exec", ask);
    }
    assert_eq!(d.ids(json!({})), Vec::<String>::new());
}

#[test]
fn a_repeated_request_id_waits_for_the_same_process_to_be_ready() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let ask = |ms: u64| {
        json!({ "request_id": "r1", "ready": { "match": "up" }, "ready_timeout_ms": ms,
                "argv": ["/bin/sh", "-c", format!("{}; echo up; exec sleep 1000", gate.wait())] })
    };
    let first = d.ok("exec", ask(300));
    assert_eq!(first["ready"], "timeout");
    let mut conn = d.conn();
    let n = conn.request("exec", ask(50000));
    gate.open();
    let second = conn.answer(n).unwrap();
    assert_eq!((&second["ready"], &second["id"], &second["existing"]), (&json!("ready"), &first["id"], &json!(true)));
    assert_eq!(d.ids(json!({})).len(), 1);
}
