//! Clients that are processes of a job: refused from inside a sandbox, whatever they are.

use super::world::{User, World};
use crate::api::approvals::ask;
use serde_json::{Value, json};
use std::path::Path;
use toold_test_support::output::output_of;
use toold_test_support::rig::{Daemon, id, skip_unless};
use toold_test_support::sys::is_root;

fn refused(d: &Daemon) -> Vec<Value> {
    let call = json!({ "consumer": "c", "types": ["inside_refused"], "limit": 100 });
    d.ok("events.next", call)["events"].as_array().unwrap().clone()
}

/// A client for a shell: it prints the answer to a call.
pub fn client(program: &Path, d: &Daemon, call: &Value) -> String {
    let (program, socket) = (program.display(), d.socket());
    let run = "--exact sandbox::sys::calls_inside_a_job --ignored --nocapture";
    format!("env DAEMON_SOCKET={} CALL='{call}' {program} {run} | grep ANSWER", socket.display())
}

fn list() -> Value {
    json!({ "jsonrpc": "2.0", "id": 1, "method": "list" })
}

#[test]
fn from_inside_a_sandbox_every_call_is_denied_and_reported() {
    if skip_unless(is_root(), "not root") {
        return;
    }
    // Landlock below ABI 9 does not hide the socket: the daemon itself has to refuse.
    let world = World::new(User::Own, "landlock");
    let d = &world.daemon;
    let ask = client(&world.at("bin/act"), d, &list());
    // A child, one in a session of its own, and one that has lost its parent.
    let script = format!("{ask}; setsid -w sh -c '{}'; (({ask}) &) | cat", ask.replace('\'', "'\\''"));
    let (process, output) = world.sh(&script, &json!("workspace-write"));
    if skip_unless(!output.contains("ANSWER none"), "the socket itself is out of reach") {
        return;
    }
    assert_eq!(output.matches("-32005").count(), 3, "{output}");
    assert_eq!(output.matches("inside_sandbox").count(), 3, "{output}");
    d.eventually("each is reported", || refused(d).len() == 3);
    for event in refused(d) {
        assert_eq!(
            (&event["id"], &event["sandboxed"], &event["what"]),
            (&process["id"], &json!(true), &json!("connect"))
        );
    }
}

#[test]
fn a_job_without_a_sandbox_is_served_also_while_another_one_is_in_a_sandbox() {
    let world = World::new(User::Own, "auto");
    let d = &world.daemon;
    let sandboxed = id(&d.ok("exec", world.job(&json!(["sleep", "1000"]), &json!("workspace-write"))));
    for confined in ["", "setpriv --no-new-privs"] {
        let (_, output) = world.sh(&format!("{confined} {}", client(&world.at("bin/act"), d, &list())), &json!(null));
        assert!(output.contains(&sandboxed), "{output}");
    }
    assert_eq!(refused(d), Vec::<Value>::new());
    // So is a confined client that is in no job.
    let script = format!("setpriv --no-new-privs {}", client(&world.at("bin/act"), d, &list()));
    let outside = output_of(d.tool("sh", &["-c", &script]).spawn().unwrap());
    assert!(outside.stdout.contains(&sandboxed), "{outside:?}");
}

/// A question waits; a process of a job must not answer it, however it hides from its parent.
#[test]
fn from_inside_any_job_no_approval_is_decided_and_no_grant_revoked() {
    let d = Daemon::start();
    let (asked, _) = ask(&d, "echo approved", json!({}));
    let approval = asked["approval"].as_str().unwrap().to_owned();
    let digest = d.ok("approvals.get", json!({ "id": approval }))["digest"].clone();
    let decide = json!({ "id": approval, "decision": "approve", "digest": digest });
    let call = |method: &str, params: &Value| json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let own = std::env::current_exe().unwrap();
    let approve = client(&own, &d, &call("approvals.decide", &decide));
    let quoted = approve.replace('\'', "'\\''");
    for script in [
        format!("{approve} 2>&1"),
        format!("setsid -w sh -c '{quoted}'"),
        // Its parent has ended before it calls.
        format!("(setsid sh -c 'sleep 0.1; {quoted} > answer; mv answer late' > /dev/null 2>&1 &); exit 0"),
        format!("setpriv --no-new-privs {approve} 2>&1"),
        client(&own, &d, &call("grants.revoke", &json!({ "session_key": "s" }))),
    ] {
        let started = d.sh_with(&script, json!({ "cwd": d.home() }));
        let ended = d.closed(&id(&started));
        let late = d.home().join("late");
        let mut output = d.text(&id(&started));
        if script.contains("late") {
            d.eventually("it tried", || late.exists());
            output += &std::fs::read_to_string(&late).unwrap();
        }
        assert!(output.contains("inside_job") && output.contains("-32005"), "{script}: {ended} {output}");
        assert_eq!(d.ok("approvals.get", json!({ "id": approval }))["state"], "pending", "{script}");
    }
    d.eventually("each is reported", || refused(&d).len() == 5);
    for event in refused(&d) {
        assert_eq!(event["sandboxed"], json!(false), "{event}");
    }
    // A person outside of any job decides.
    assert_eq!(d.ok("approvals.decide", decide)["approval"]["state"], "approved");
}
