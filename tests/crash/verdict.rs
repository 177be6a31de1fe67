//! kill -9 of the daemon at every step between the acceptance of a call that asks and its provider: the call waits for the same
//! answer, and is sent once, after it was approved.

use crate::case_run::tempfile_name;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use toold_test_support::conn::Conn;
use toold_test_support::rig::{Daemon, id};

/// Steps before the question is visible.
const BEFORE: [&str; 4] = ["call.accepted", "call.judged", "approval.written", "approval.replaced"];
/// Steps after the decision.
const AFTER: [&str; 3] = ["approval.decided", "approval.published", "call.admitted"];

pub const POINTS: [&str; 2] = ["call.judged", "call.admitted"];

struct VerdictCase {
    daemon: Daemon,
    hooks: PathBuf,
}

impl VerdictCase {
    fn start() -> VerdictCase {
        let hooks = tempfile_name();
        fs::create_dir(&hooks).unwrap();
        let daemon = Daemon::start_with("", &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
        daemon.ok("session.configure", json!({ "session_key": "s", "sandbox": "read-only" }));
        VerdictCase { daemon, hooks }
    }

    /// Connects as the client that serves the tool.
    fn editor(&self) -> Conn {
        let tools = json!([
            { "name": "open", "input_schema": { "type": "object" }, "effect": "write" },
            { "name": "look", "input_schema": { "type": "object" }, "effect": "read" },
        ]);
        let mut conn = self.daemon.conn();
        conn.call("tools.register", json!({ "provider": "editor", "tools": tools, "reconnect_ms": 60_000 })).unwrap();
        conn
    }

    fn arm(&self, point: &str) {
        fs::write(self.hooks.join(point), "").unwrap();
    }

    /// Kills the daemon at the point, and starts the next one.
    fn strike(&mut self, point: &str) {
        let file = self.hooks.join(format!("{point}.hit"));
        self.daemon.eventually(&format!("{point} is reached"), || file.exists());
        self.daemon.kill9();
        fs::remove_file(self.hooks.join(point)).unwrap();
        self.daemon.spawn();
    }

    fn pending(&self) -> Vec<Value> {
        self.daemon.ok("approvals.list", json!({}))["approvals"].as_array().unwrap().clone()
    }
}

impl Drop for VerdictCase {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.hooks);
    }
}

fn serve(conn: &mut Conn) -> Value {
    let request = conn.recv();
    conn.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": {} }));
    request["params"]["name"].clone()
}

#[test]
fn a_call_that_asks_is_sent_once_after_it_was_approved_whichever_step_the_daemon_dies_in() {
    for (point, is_before) in BEFORE.map(|point| (point, true)).into_iter().chain(AFTER.map(|point| (point, false))) {
        let mut case = VerdictCase::start();
        let mut editor = case.editor();
        let code = "from toold_tools import tools\ntools.editor.open()\ntools.editor.open()";
        let call = json!({ "code": code, "cwd": case.daemon.home(), "session_key": "s", "yield_ms": 0,
            "tools": ["editor.open"] });
        if is_before {
            case.arm(point);
        }
        let script = id(&case.daemon.ok("script.run", call));
        if is_before {
            case.strike(point);
            editor = case.editor();
        }
        case.daemon.eventually("it asks", || !case.pending().is_empty());
        let asked = case.pending();
        assert_eq!(asked.len(), 1, "{point}: {asked:?}");
        let approve = json!({ "id": asked[0]["id"], "digest": asked[0]["digest"], "decision": "approve",
            "scope": "script" });
        if is_before {
            case.daemon.ok("approvals.decide", approve);
        } else {
            case.arm(point);
            case.daemon.conn().request("approvals.decide", approve);
            case.strike(point);
            editor = case.editor();
        }
        assert_eq!([serve(&mut editor), serve(&mut editor)], ["open", "open"], "{point}");
        let result = case.daemon.ok("script.result", json!({ "id": script, "wait_ms": 60000 }));
        assert_eq!((&result["status"], &result["stderr"]), (&json!("ok"), &json!("")), "{point}");
        assert_eq!((&result["calls"]["made"], case.pending().len()), (&json!(2), 0), "{point}");
        // The next thing that it gets is this: nothing was sent again.
        case.daemon.conn().request("tools.call", json!({ "name": "editor.look", "session_key": "s" }));
        assert_eq!(serve(&mut editor), "look", "{point}");
        let grants = case.daemon.ok("grants.list", json!({ "all": true }))["grants"].clone();
        assert_eq!((grants.as_array().unwrap().len(), &grants[0]["uses"]), (1, &json!(1)), "{point}");
        let all = case.daemon.ok(
            "events.next",
            json!({ "consumer": "c", "limit": 100,
            "types": ["approval_requested", "approval_decided", "grant_added", "grant_revoked"] }),
        );
        let types: Vec<&Value> = all["events"].as_array().unwrap().iter().map(|event| &event["type"]).collect();
        assert_eq!(types.len(), 4, "{point}: {types:?}");
    }
}
