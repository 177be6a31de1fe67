//! kill -9 of the daemon at every step between the question, the decision and the start: the process starts once, after it was
//! approved, or never; every event is there once.

use crate::case_run::tempfile_name;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use toold_test_support::rig::{Daemon, id};

pub const POINTS: [&str; 6] = [
    "approval.written",
    "approval.replaced",
    "approval.asked",
    "approval.published",
    "approval.decided",
    "approval.applied",
];

/// Steps of a question, in order.
const OF_A_QUESTION: [&str; 7] = [
    "approval.written",
    "approval.replaced",
    "queue.recorded",
    "approval.asked",
    "journal.write",
    "journal.written",
    "approval.published",
];

/// Steps of a decision, up to its effect.
const OF_A_DECISION: [&str; 7] = [
    "approval.written",
    "approval.replaced",
    "approval.decided",
    "journal.write",
    "journal.written",
    "approval.published",
    "approval.applied",
];

/// Steps of the start that follows.
const OF_A_START: [&str; 8] = [
    "queue.before_start",
    "spawn.before_request",
    "spawn.requested",
    "shim.before_launch",
    "spawn.locked",
    "spawn.launching",
    "spawn.forked",
    "spawn.running",
];

/// A daemon with hooks, and a process that asks.
struct AskCase {
    daemon: Daemon,
    hooks: PathBuf,
    point: &'static str,
}

impl AskCase {
    fn new(point: &'static str) -> AskCase {
        let hooks = tempfile_name();
        fs::create_dir(&hooks).unwrap();
        let daemon = Daemon::start_with("# rules are beside it\n", &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
        AskCase { daemon, hooks, point }
    }

    fn exec(&self) -> Value {
        let script = format!("echo ran >> {}", self.daemon.root().join("ran").display());
        let escalate = json!({ "to": "full", "reason": "test" });
        json!({ "argv": ["/bin/sh", "-c", script], "escalate": escalate, "request_id": "r", "session_key": "s" })
    }

    fn ran(&self) -> String {
        fs::read_to_string(self.daemon.root().join("ran")).unwrap_or_default()
    }

    /// Makes a call, kills the daemon when it reaches the point, and starts the next one.
    fn crash_in(&mut self, method: &str, params: Value) {
        fs::write(self.hooks.join(self.point), "").unwrap();
        let mut unanswered = self.daemon.conn();
        unanswered.request(method, params);
        let file = self.hooks.join(format!("{}.hit", self.point));
        self.daemon.eventually(&format!("{} is reached", self.point), || file.exists());
        self.daemon.kill9();
        fs::remove_file(self.hooks.join(self.point)).unwrap();
        self.daemon.spawn();
    }

    fn approvals(&self) -> Vec<Value> {
        self.daemon.ok("approvals.list", json!({ "state": "all" }))["approvals"].as_array().unwrap().clone()
    }

    fn decide(&self, approval: &Value, decision: &str, scope: &str) -> Value {
        let id = &approval["id"];
        json!({ "id": id, "digest": approval["digest"], "decision": decision, "scope": scope })
    }

    /// Decides if the decision was lost with the daemon. It never is half made.
    fn decide_if_pending(&self, decision: &str, scope: &str) -> Value {
        let all = self.approvals();
        assert_eq!(all.len(), 1, "{}: {all:?}", self.point);
        if all[0]["state"] == "pending" {
            assert_eq!(self.ran(), "", "{}: it ran unasked", self.point);
            self.daemon.ok("approvals.decide", self.decide(&all[0], decision, scope));
        }
        self.approvals().remove(0)
    }

    fn events(&self, process: &str) -> Vec<String> {
        let all = self.daemon.ok("events.next", json!({ "consumer": "check", "id": process, "limit": 100 }));
        all["events"].as_array().unwrap().iter().map(|e| e["type"].as_str().unwrap().to_string()).collect()
    }

    /// Checks that the process ran once, with every event once.
    fn check_ran_once(&self, process: &str) {
        let ended = self.daemon.closed(process);
        assert_eq!((&ended["reason"], &ended["exit_code"]), (&json!("exited"), &json!(0)), "{}: {ended}", self.point);
        assert_eq!(self.ran(), "ran\n", "{}", self.point);
        let expected = ["approval_requested", "approval_decided", "started", "exited", "closed"];
        assert_eq!(self.events(process), expected, "{}", self.point);
        assert_eq!(self.daemon.ok("daemon.info", json!({}))["damaged"], json!([]), "{}", self.point);
    }
}

impl Drop for AskCase {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.hooks);
    }
}

fn each(points: &[&'static str], run: impl Fn(AskCase) + Sync) {
    std::thread::scope(|scope| {
        for point in points {
            let run = &run;
            scope.spawn(move || run(AskCase::new(point)));
        }
    });
}

#[test]
fn a_question_is_asked_once_whichever_step_the_daemon_dies_in() {
    each(&OF_A_QUESTION, |mut case| {
        case.crash_in("exec", case.exec());
        assert_eq!(case.ran(), "", "{}", case.point);
        // The client repeats the call that was not answered.
        let process = case.daemon.ok("exec", case.exec());
        assert_eq!(process["status"], "pending", "{}: {process}", case.point);
        let approval = case.decide_if_pending("approve", "once");
        assert_eq!((&approval["process"], &approval["state"]), (&process["id"], &json!("approved")), "{}", case.point);
        case.check_ran_once(&id(&process));
    });
}

#[test]
fn an_approved_process_starts_once_whichever_step_the_daemon_dies_in() {
    let points: Vec<&str> = OF_A_DECISION.into_iter().chain(OF_A_START).collect();
    each(&points, |mut case| {
        let process = id(&case.daemon.ok("exec", case.exec()));
        let approval = case.approvals().remove(0);
        case.crash_in("approvals.decide", case.decide(&approval, "approve", "once"));
        let after = case.decide_if_pending("approve", "once");
        assert_eq!(after["state"], "approved", "{}", case.point);
        case.check_ran_once(&process);
        case.daemon.restart();
        assert_eq!(case.approvals(), [after], "{}", case.point);
        assert_eq!(case.ran(), "ran\n", "{}", case.point);
    });
}

#[test]
fn a_denied_process_never_runs_whichever_step_the_daemon_dies_in() {
    let points: Vec<&str> = OF_A_DECISION.into_iter().chain(["queue.ended"]).collect();
    each(&points, |mut case| {
        let process = id(&case.daemon.ok("exec", case.exec()));
        let approval = case.approvals().remove(0);
        case.crash_in("approvals.decide", case.decide(&approval, "deny", "once"));
        assert_eq!(case.decide_if_pending("deny", "once")["state"], "denied", "{}", case.point);
        let ended = case.daemon.exited(&process);
        assert_eq!((&ended["reason"], &ended["exit_code"]), (&json!("denied"), &Value::Null), "{}", case.point);
        assert_eq!(case.ran(), "", "{}", case.point);
        assert_eq!(
            case.events(&process),
            ["approval_requested", "approval_decided", "exited", "closed"],
            "{}",
            case.point
        );
    });
}

#[test]
fn a_killed_process_takes_its_question_along_whichever_step_the_daemon_dies_in() {
    each(
        &["queue.ended", "approval.written", "approval.replaced", "approval.decided", "journal.written"],
        |mut case| {
            let process = id(&case.daemon.ok("exec", case.exec()));
            case.crash_in("kill", json!({ "id": process }));
            let ended = case.daemon.exited(&process);
            assert_eq!(ended["reason"], "denied", "{}: {ended}", case.point);
            case.daemon.eventually("it is withdrawn", || case.approvals()[0]["state"] == "withdrawn");
            case.daemon.eventually("the events are there", || {
                let mut events = case.events(&process);
                events.sort();
                events == ["approval_decided", "approval_requested", "closed", "exited"]
            });
            assert_eq!(case.ran(), "", "{}", case.point);
        },
    );
}

#[test]
fn a_grant_is_made_once_with_its_decision() {
    each(&OF_A_DECISION, |mut case| {
        let process = id(&case.daemon.ok("exec", case.exec()));
        let approval = case.approvals().remove(0);
        case.crash_in("approvals.decide", case.decide(&approval, "approve", "session"));
        let after = case.decide_if_pending("approve", "session");
        case.check_ran_once(&process);
        let grants = case.daemon.ok("grants.list", json!({}))["grants"].clone();
        assert_eq!(grants.as_array().unwrap().len(), 1, "{}: {grants}", case.point);
        assert_eq!(grants[0]["id"], after["grant"], "{}: {grants}", case.point);
        let added = case.daemon.ok("events.next", json!({ "consumer": "g", "types": ["grant_added"] }));
        assert_eq!(added["events"].as_array().unwrap().len(), 1, "{}: {added}", case.point);
    });
}

#[test]
fn a_rule_is_added_once_with_its_decision() {
    each(&OF_A_DECISION, |mut case| {
        let at = |name: &str| case.daemon.root().join(name).display().to_string();
        fs::write(at("from"), "ran\n").unwrap();
        let escalate = json!({ "to": "full", "reason": "test" });
        let call = json!({ "argv": ["/bin/cp", at("from"), at("ran")], "escalate": escalate, "session_key": "s" });
        let process = id(&case.daemon.ok("exec", call));
        let approval = case.approvals().remove(0);
        case.crash_in("approvals.decide", case.decide(&approval, "approve", "always"));
        let after = case.decide_if_pending("approve", "always");
        assert_eq!(
            (&after["scope"], &after["rule_error"]),
            (&json!("always"), &Value::Null),
            "{}: {after}",
            case.point
        );
        case.check_ran_once(&process);
        let rules = fs::read_to_string(case.daemon.root().join("config/toold/rules/approved.toml")).unwrap();
        assert_eq!(rules.matches("[[rule]]").count(), 1, "{}: {rules}", case.point);
    });
}
