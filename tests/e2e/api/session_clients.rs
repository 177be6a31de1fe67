//! Sessions and their clients: `daemon.info.sessions`, and `wait` for all processes of a session.

use serde_json::{Value, json};
use toold_test_support::rig::{Daemon, id};

fn sessions(d: &Daemon) -> Value {
    d.ok("daemon.info", json!({}))["sessions"].clone()
}

fn info(key: &str, live: bool, running: u64) -> Value {
    json!({ "session_key": key, "live": live, "running": running })
}

#[test]
fn a_session_is_live_while_a_connection_that_used_it_is_open() {
    let mut d = Daemon::start();
    assert_eq!(sessions(&d), json!([]));
    let mut agent = d.conn();
    let exec = |key: &str| json!({ "argv": ["sleep", "1000"], "session_key": key });
    let first = id(&agent.call("exec", exec("agent")).unwrap());
    agent.call("exec", exec("agent")).unwrap();
    let mut monitor = d.conn();
    monitor.call("events.subscribe", json!({ "session_key": "quiet" })).unwrap();
    // Those that only look, or end it, are no clients of it.
    let mut person = d.conn();
    person.call("list", json!({ "session_key": "seen" })).unwrap();
    person.call("session.active", json!({ "session_key": "seen" })).unwrap();
    person.call("kill", json!({ "session_key": "seen" })).unwrap();
    assert_eq!(sessions(&d), json!([info("agent", true, 2), info("quiet", true, 0)]));
    drop(agent);
    d.eventually("it has no client", || sessions(&d) == json!([info("agent", false, 2), info("quiet", true, 0)]));
    let mut other = d.conn();
    other.call("events.next", json!({ "consumer": "c", "session_key": "agent" })).unwrap();
    d.ok("kill", json!({ "id": first }));
    assert_eq!(sessions(&d), json!([info("agent", true, 1), info("quiet", true, 0)]));
    d.kill9();
    d.spawn();
    assert_eq!(sessions(&d), json!([info("agent", false, 1)]), "the clients have not come back yet");
}

/// A call of a client that hung up goes on for a while. It does not count as a client any more.
#[test]
fn a_wait_of_a_client_that_hung_up_does_not_keep_its_session_alive() {
    let d = Daemon::start();
    id(&d.sh_with("exec sleep 1000", json!({ "session_key": "s" })));
    let mut agent = d.conn();
    agent.request("wait", json!({ "session_key": "s", "timeout_ms": 600_000 }));
    d.eventually("it waits", || sessions(&d) == json!([info("s", true, 1)]));
    drop(agent);
    d.eventually("it is gone", || sessions(&d) == json!([info("s", false, 1)]));
}

#[test]
fn a_wait_for_a_session_waits_for_what_runs_and_answers_at_once_if_nothing_does() {
    let d = Daemon::start();
    let nothing = d.ok("wait", json!({ "session_key": "s" }));
    assert_eq!((&nothing["status"], &nothing["processes"]), (&json!("exited"), &json!([])));
    let gate = d.gate("go");
    let ended = id(&d.sh_with("exit 1", json!({ "session_key": "s" })));
    d.closed(&ended);
    let runs = id(&d.sh_with(&format!("{}; exit 2", gate.wait()), json!({ "session_key": "s" })));
    let more = id(&d.sh_with("exec sleep 1000", json!({ "session_key": "s" })));
    d.sh_with("exit 9", json!({ "session_key": "other" }));
    let mut conn = d.conn();
    let any = conn.request("wait", json!({ "session_key": "s", "timeout_ms": 50000 }));
    let all = conn.request("wait", json!({ "session_key": "s", "mode": "all", "timeout_ms": 50000 }));
    d.eventually("it waits", || sessions(&d).to_string().contains(r#""live":true"#));
    gate.open();
    let waited = conn.answer(any).unwrap();
    let ids: Vec<String> = waited["processes"].as_array().unwrap().iter().map(id).collect();
    assert_eq!((waited["status"].as_str(), ids), (Some("exited"), vec![more.clone(), runs.clone()]));
    assert!(!conn.has_early(all));
    d.ok("kill", json!({ "id": more }));
    let codes: Vec<Value> =
        conn.answer(all).unwrap()["processes"].as_array().unwrap().iter().map(|p| p["exit_code"].clone()).collect();
    assert_eq!(codes, [json!(143), json!(2)]);
}

#[test]
fn a_wait_names_processes_or_a_session() {
    let d = Daemon::start();
    d.refused_param("session_key", "wait", json!({ "session_key": "s", "id": "x" }));
    d.refused_param("session_key", "wait", json!({ "session_key": "s", "ids": ["x"] }));
    d.refused_param("session_key", "wait", json!({ "session_key": "" }));
    d.refused_param("id", "wait", json!({}));
}
