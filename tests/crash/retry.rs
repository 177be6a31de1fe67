//! kill -9 of the daemon at every step between the failure of a confined process, the question about its retry, the decision and
//! the start: the retry runs once, after it was approved; nothing runs unasked, and no question is forgotten.

use crate::case_run::tempfile_name;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use toold_test_support::rig::Daemon;

pub const POINTS: [&str; 4] = ["retry.ended", "retry.recorded", "retry.asked", "retry.started"];

/// Steps from the end of the first run to the question, in order.
const OF_A_QUESTION: [&str; 9] = [
    "exit.recorded",
    "retry.ended",
    "approval.written",
    "approval.replaced",
    "queue.recorded",
    "retry.recorded",
    "approval.published",
    "retry.asked",
    "journal.written",
];

/// Steps from the decision to the end of the retry, in order.
const OF_A_DECISION: [&str; 11] = [
    "approval.written",
    "approval.replaced",
    "approval.decided",
    "approval.published",
    "approval.applied",
    "queue.before_start",
    "spawn.requested",
    "spawn.launching",
    "spawn.forked",
    "spawn.running",
    "retry.started",
];

/// A daemon with hooks and a session of the policy `on-failure`.
struct RetryCase {
    daemon: Daemon,
    hooks: PathBuf,
    /// A directory that no private `/tmp` hides.
    base: tempfile::TempDir,
    point: &'static str,
}

impl RetryCase {
    fn new(point: &'static str) -> RetryCase {
        let hooks = tempfile_name();
        fs::create_dir(&hooks).unwrap();
        let daemon = Daemon::start_with("", &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
        let base = tempfile::Builder::new().prefix("toold-retry-").tempdir_in("/var/tmp").unwrap();
        let work = base.path().join("work");
        fs::create_dir(&work).unwrap();
        let session =
            json!({ "session_key": "s", "cwd": work, "sandbox": "workspace-write", "approval": "on-failure" });
        daemon.ok("session.configure", session);
        RetryCase { daemon, hooks, base, point }
    }

    /// A program that can write its mark outside its sandbox only.
    fn exec(&self) -> Value {
        let script = format!("echo $MARK >> {} || exit 3", self.marks().display());
        json!({ "argv": ["/bin/sh", "-c", script], "session_key": "s", "env": { "MARK": "kept" }, "request_id": "r" })
    }

    fn marks(&self) -> PathBuf {
        self.base.path().join("marks")
    }

    fn ran(&self) -> String {
        fs::read_to_string(self.marks()).unwrap_or_default()
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

    fn asked(&self) -> Value {
        self.daemon.eventually(&format!("{}: it is asked", self.point), || self.approvals().len() == 1);
        self.approvals().remove(0)
    }

    fn decision(&self, approval: &Value, decision: &str) -> Value {
        json!({ "id": approval["id"], "digest": approval["digest"], "decision": decision })
    }

    fn decide_if_pending(&self, decision: &str) -> Value {
        let approval = self.asked();
        if approval["state"] == "pending" {
            assert_eq!(self.ran(), "", "{}: it ran unasked", self.point);
            self.daemon.ok("approvals.decide", self.decision(&approval, decision));
        }
        self.approvals().remove(0)
    }

    fn count(&self, kind: &str) -> usize {
        let call = json!({ "consumer": "check", "types": [kind], "limit": 100 });
        self.daemon.ok("events.next", call)["events"].as_array().unwrap().len()
    }

    /// Checks that one retry ran once, that its question and answer are events once, and that nothing is left over.
    fn check_ran_once(&mut self) {
        let approval = self.approvals().remove(0);
        let retry = self.daemon.closed(approval["retry"].as_str().unwrap());
        assert_eq!((&retry["reason"], &retry["exit_code"]), (&json!("exited"), &json!(0)), "{}: {retry}", self.point);
        assert_eq!(retry["retry_of"], approval["process"], "{}", self.point);
        let failed = self.daemon.process(approval["process"].as_str().unwrap());
        assert_eq!(
            (&failed["exit_code"], &failed["retry"]["approval"]),
            (&json!(3), &approval["id"]),
            "{}",
            self.point
        );
        self.daemon.restart();
        assert_eq!(self.approvals().len(), 1, "{}: it is asked once", self.point);
        assert_eq!(self.ran(), "kept\n", "{}: once, with its values", self.point);
        assert_eq!(self.count("approval_requested"), 1, "{}", self.point);
        assert_eq!(self.count("approval_decided"), 1, "{}", self.point);
        let daemon = &self.daemon;
        daemon.eventually(&format!("{}: no shim is left over", self.point), || {
            daemon.ok("forget", json!({ "older_than_ms": 0 }));
            daemon.ids(json!({})).is_empty()
        });
        assert_eq!(daemon.ok("daemon.info", json!({}))["damaged"], json!([]), "{}", self.point);
        self.daemon.restart();
        assert_eq!((self.approvals().len(), self.ran()), (1, "kept\n".into()), "{}: never again", self.point);
    }
}

impl Drop for RetryCase {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.hooks);
    }
}

fn each(points: &[&'static str], run: impl Fn(RetryCase) + Sync) {
    std::thread::scope(|scope| {
        for point in points {
            let run = &run;
            scope.spawn(move || run(RetryCase::new(point)));
        }
    });
}

#[test]
fn a_retry_is_asked_about_once_whichever_step_after_the_failure_the_daemon_dies_in() {
    each(&OF_A_QUESTION, |mut case| {
        case.crash_in("exec", case.exec());
        let approval = case.asked();
        assert_eq!((&approval["state"], case.ran()), (&json!("pending"), String::new()), "{}", case.point);
        case.decide_if_pending("approve");
        case.check_ran_once();
    });
}

#[test]
fn an_approved_retry_runs_once_whichever_step_the_daemon_dies_in() {
    each(&OF_A_DECISION, |mut case| {
        case.daemon.ok("exec", case.exec());
        let approval = case.asked();
        case.crash_in("approvals.decide", case.decision(&approval, "approve"));
        assert_eq!(case.decide_if_pending("approve")["state"], "approved", "{}", case.point);
        case.check_ran_once();
    });
}

#[test]
fn a_denied_retry_never_runs_whichever_step_the_daemon_dies_in() {
    each(&["approval.written", "approval.decided", "approval.applied", "queue.ended", "retry.started"], |mut case| {
        case.daemon.ok("exec", case.exec());
        let approval = case.asked();
        case.crash_in("approvals.decide", case.decision(&approval, "deny"));
        assert_eq!(case.decide_if_pending("deny")["state"], "denied", "{}", case.point);
        let retry = case.daemon.exited(approval["retry"].as_str().unwrap());
        assert_eq!(retry["reason"], "denied", "{}: {retry}", case.point);
        case.daemon.restart();
        let daemon = &case.daemon;
        daemon.eventually(&format!("{}: no shim is left over", case.point), || {
            daemon.ok("forget", json!({ "older_than_ms": 0 }));
            daemon.ids(json!({})).is_empty()
        });
        assert_eq!((case.approvals().len(), case.ran()), (1, String::new()), "{}", case.point);
    });
}
