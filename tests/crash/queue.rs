//! kill -9 of the daemon at every step of a pending process: nothing runs twice, nothing is forgotten, no slot is lost or
//! doubled.

use crate::case_run::tempfile_name;
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use toold_test_support::rig::{DEADLINE, Daemon, id};
use toold_test_support::sys::Pidfd;

pub const POINTS: [&str; 6] =
    ["queue.recorded", "queue.before_start", "queue.started", "queue.ended", "queues.written", "queues.replaced"];

/// A daemon with hooks, and a queue whose one slot is taken.
struct QueueCase {
    daemon: Daemon,
    hooks: PathBuf,
    holder: String,
}

impl QueueCase {
    fn new() -> QueueCase {
        let hooks = tempfile_name();
        fs::create_dir(&hooks).unwrap();
        let daemon = Daemon::start_with("", &[("TOOLD_HOOKS", hooks.to_str().unwrap())]);
        let holder = json!({ "argv": ["/bin/sh", "-c", "read -r x"], "stdin": "pipe", "queue": "q" });
        let holder = id(&daemon.ok("exec", holder));
        QueueCase { daemon, hooks, holder }
    }

    fn ran(&self) -> String {
        fs::read_to_string(self.daemon.root().join("ran")).unwrap_or_default()
    }

    /// A process that notes its number, and that another one ran at the same time.
    fn exec(&self, number: u32) -> Value {
        let (ran, lock) = (self.daemon.root().join("ran"), self.daemon.root().join("runs"));
        let (ran, lock) = (ran.display(), lock.display());
        let script = format!("mkdir {lock} || echo both >> {ran}; echo {number} >> {ran}; rmdir {lock}");
        json!({ "argv": ["/bin/sh", "-c", script], "queue": "q", "request_id": number.to_string() })
    }

    fn arm(&self, point: &str) {
        fs::write(self.hooks.join(point), "").unwrap();
    }

    fn hit(&self, point: &str) -> i32 {
        let file = self.hooks.join(format!("{point}.hit"));
        self.daemon.eventually(&format!("{point} is reached"), || file.exists());
        fs::read_to_string(file).unwrap().parse().unwrap()
    }

    fn release(&self, point: &str) {
        fs::remove_file(self.hooks.join(point)).unwrap();
    }

    fn next_daemon(&mut self) {
        self.daemon.kill9();
        self.daemon.spawn();
    }

    fn free_slot(&self) {
        // The daemon may die before it answers.
        self.daemon.conn().request("close", json!({ "id": self.holder }));
    }

    /// Checks that these ran once, in this order, each alone, with every event once, and that the slot is free.
    fn finish(&self, point: &str, numbers: &[u32]) {
        for number in numbers {
            let process = id(&self.daemon.ok("exec", self.exec(*number)));
            let ended = self.daemon.closed(&process);
            assert_eq!((&ended["status"], &ended["exit_code"]), (&json!("exited"), &json!(0)), "{point}: {ended}");
            assert_eq!(self.events(&process), ["started", "exited", "closed"], "{point}: {number}");
        }
        let expected: String = numbers.iter().map(|number| format!("{number}\n")).collect();
        assert_eq!(self.ran(), expected, "{point}");
        let last = self.daemon.ok("exec", self.exec(99));
        assert_ne!(last["status"], "pending", "{point}: the slot is not free");
        self.daemon.closed(&id(&last));
        self.daemon
            .eventually("the queue is empty", || self.daemon.ok("queues.list", json!({}))["queues"] == json!([]));
        assert_eq!(self.daemon.ok("daemon.info", json!({}))["damaged"], json!([]), "{point}");
    }

    fn events(&self, process: &str) -> Vec<String> {
        let all = self.daemon.ok("events.next", json!({ "consumer": "check", "id": process, "limit": 100 }));
        all["events"].as_array().unwrap().iter().map(|e| e["type"].as_str().unwrap().to_string()).collect()
    }
}

impl Drop for QueueCase {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.hooks);
    }
}

#[test]
fn a_pending_process_that_is_recorded_runs_once_in_its_place() {
    let mut case = QueueCase::new();
    let first = id(&case.daemon.ok("exec", case.exec(1)));
    case.arm("queue.recorded");
    let mut unanswered = case.daemon.conn();
    unanswered.request("exec", case.exec(2));
    case.hit("queue.recorded");
    case.daemon.kill9();
    case.release("queue.recorded");
    case.daemon.spawn();
    assert_eq!(case.daemon.ok("queues.list", json!({}))["queues"][0]["pending"], 2);
    assert_eq!(case.daemon.process(&first)["status"], "pending");
    case.daemon.ok("exec", case.exec(3));
    case.next_daemon();
    case.free_slot();
    case.finish("queue.recorded", &[1, 2, 3]);
}

#[test]
fn a_start_from_a_queue_happens_once_whichever_step_the_daemon_dies_in() {
    let of_the_shim =
        ["shim.before_launch", "spawn.opened", "spawn.locked", "spawn.launching", "spawn.forked", "spawn.running"];
    std::thread::scope(|scope| {
        for point in ["queue.before_start", "queue.started", "spawn.before_request", "spawn.requested"]
            .into_iter()
            .chain(of_the_shim)
        {
            scope.spawn(move || {
                let mut case = QueueCase::new();
                (1..=3).for_each(|number| drop(case.daemon.ok("exec", case.exec(number))));
                case.arm(point);
                case.free_slot();
                case.hit(point);
                case.daemon.kill9();
                case.release(point);
                case.daemon.spawn();
                case.finish(point, &[1, 2, 3]);
            });
        }
    });
}

/// A shim that had the launch and was slow must not run it in a queue that was paused meanwhile.
#[test]
fn a_late_shim_takes_no_slot_that_the_next_daemon_has_not_given() {
    let mut case = QueueCase::new();
    case.daemon.ok("exec", case.exec(1));
    case.daemon.ok("exec", case.exec(2));
    case.arm("shim.before_launch");
    case.free_slot();
    let shim = Pidfd::open(case.hit("shim.before_launch")).unwrap();
    case.daemon.ok("queues.set", json!({ "name": "q", "paused": true }));
    case.next_daemon();
    assert_eq!(case.daemon.ok("queues.list", json!({}))["queues"][0]["pending"], 2);
    case.release("shim.before_launch");
    assert!(shim.dies_within(DEADLINE), "the late shim runs something");
    assert_eq!(case.ran(), "");
    case.daemon.ok("queues.set", json!({ "name": "q", "paused": false }));
    for number in [1, 2] {
        let process = id(&case.daemon.ok("exec", case.exec(number)));
        assert_eq!(case.daemon.closed(&process)["exit_code"], 0);
    }
    assert_eq!(case.ran(), "1\n2\n");
}

#[test]
fn a_pending_process_that_ended_stays_ended() {
    for by_dependency in [false, true] {
        let mut case = QueueCase::new();
        let failing =
            id(&case.daemon.ok("exec", json!({ "argv": ["/bin/sh", "-c", "read -r x; exit 1"], "stdin": "pipe" })));
        let mut exec = case.exec(1);
        if by_dependency {
            exec["after"] = json!([failing]);
        }
        let pending = id(&case.daemon.ok("exec", exec));
        case.daemon.ok("exec", case.exec(2));
        case.arm("queue.ended");
        let mut ends = case.daemon.conn();
        if by_dependency {
            ends.request("close", json!({ "id": failing }));
        } else {
            ends.request("kill", json!({ "id": pending }));
        }
        case.hit("queue.ended");
        case.daemon.kill9();
        case.release("queue.ended");
        case.daemon.spawn();
        let ended = case.daemon.process(&pending);
        let reason = if by_dependency { "dependency" } else { "killed" };
        assert_eq!((&ended["status"], &ended["reason"]), (&json!("exited"), &json!(reason)), "{ended}");
        assert_eq!(ended["exit_code"], Value::Null, "{ended}");
        assert_eq!(case.events(&pending), ["exited", "closed"]);
        case.free_slot();
        case.finish("queue.ended", &[2]);
    }
}

#[test]
fn a_queue_is_as_it_was_or_as_it_was_set() {
    for (point, expected) in [("queues.written", (2, false)), ("queues.replaced", (7, true))] {
        let mut case = QueueCase::new();
        case.daemon.ok("queues.set", json!({ "name": "q", "slots": 2 }));
        case.arm(point);
        let mut sets = case.daemon.conn();
        sets.request("queues.set", json!({ "name": "q", "slots": 7, "paused": true }));
        case.hit(point);
        case.daemon.kill9();
        case.release(point);
        case.daemon.spawn();
        let queue = case.daemon.ok("queues.list", json!({}))["queues"][0].clone();
        assert_eq!((&queue["slots"], &queue["paused"]), (&json!(expected.0), &json!(expected.1)), "{point}: {queue}");
        assert_eq!(queue["running"], 1, "{queue}");
        assert_eq!(case.daemon.ok("daemon.info", json!({}))["damaged"], json!([]), "{point}");
        case.daemon.ok("queues.set", json!({ "name": "q", "slots": 1 }));
    }
}
