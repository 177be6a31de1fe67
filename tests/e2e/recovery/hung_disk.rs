//! A disk that hangs: only calls that need it wait, and when it works again nothing is lost and nothing happened twice.

use super::power_cut::{disk, on, prepared_dirs};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use toold_test_support::conn::Conn;
use toold_test_support::rig::{Daemon, id, skip_unless};
use toold_test_support::sys::leave_memory;

/// More than the threads of the daemon.
const STARTS: usize = 12;

/// A frozen file system: writes wait until it is dropped. It thaws also if the test is killed, or takes too long.
struct Frozen(Child);

impl Frozen {
    /// Freezes the file system below the daemon's state. None: that is not possible here.
    fn below(d: &Daemon) -> Option<Frozen> {
        let pid = d.ok("daemon.info", json!({}))["pid"].clone();
        let state = format!("/proc/{pid}/root{}", d.state().display());
        let script = "cd \"$0\" && fsfreeze -f . && echo frozen && timeout 60 cat; fsfreeze -u .";
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script, &state]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut helper = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(helper.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let frozen = Frozen(helper);
        (!skip_unless(line == "frozen\n", "freezing a file system needs root and fsfreeze")).then_some(frozen)
    }

    /// Thaws it. Fails if it was not frozen all the time.
    fn thaw(mut self) {
        assert!(self.0.try_wait().unwrap().is_none(), "the disk worked again too early");
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

/// Makes the calls that need no disk: each is answered. `quiet` runs, has a stdin and has printed nothing.
fn call_without_disk(d: &Daemon, quiet: &str) {
    let mut conn = d.conn();
    for _ in 0..5 {
        assert_eq!(conn.call("daemon.info", json!({})).unwrap()["pid"], d.pid());
        let listed = conn.call("list", json!({ "status": "running" })).unwrap();
        assert!(listed["processes"].as_array().unwrap().iter().any(|process| process["id"] == quiet), "{listed}");
        conn.call("list", json!({ "usage": true })).unwrap();
        conn.call("session.active", json!({ "session_key": "s" })).unwrap();
        conn.call("signal", json!({ "id": quiet, "signal": "SIGCONT" })).unwrap();
        assert_eq!(conn.call("write", json!({ "id": quiet, "data": "x" })).unwrap()["complete"], true);
        assert_eq!(conn.call("poll", json!({ "id": quiet, "cursor": 0, "wait_ms": 1 })).unwrap()["output"], "");
        assert_eq!(conn.call("wait", json!({ "id": quiet, "timeout_ms": 1 })).unwrap()["status"], "timeout");
        conn.call("rpc.discover", json!({})).unwrap();
        conn = d.conn();
    }
    assert!(conn.call("events.subscribe", json!({ "types": ["heartbeat"] })).unwrap().is_u64());
    conn.call("daemon.info", json!({})).unwrap();
}

/// Requests starts that need the disk, without reading the answers.
fn request_starts(conn: &mut Conn) -> Vec<u64> {
    let start = json!({ "argv": ["/bin/true"], "yield_ms": 60_000, "notify": true, "consumer": "c" });
    (0..STARTS).map(|_| conn.request("exec", start.clone())).collect()
}

/// Reads the answers of starts, and checks that every event of them is there once.
fn check_starts(d: &Daemon, conn: &mut Conn, starts: Vec<u64>) {
    let ids: Vec<String> = starts
        .into_iter()
        .map(|start| {
            let ended = conn.answer(start).unwrap();
            assert_eq!((&ended["status"], &ended["exit_code"]), (&json!("exited"), &json!(0)), "{ended}");
            id(&ended)
        })
        .collect();
    ids.iter().for_each(|id| drop(d.closed(id)));
    let events = d.ok("events.next", json!({ "consumer": "all", "limit": 10_000, "from": "oldest" }));
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (at, event) in events["events"].as_array().unwrap().iter().enumerate() {
        assert_eq!(event["seq"], json!(at + 1), "no number is missing: {events}");
        let of = |field: &str| event[field].as_str().unwrap_or_default();
        *counts.entry((of("id"), of("type"))).or_default() += 1;
    }
    for id in &ids {
        for kind in ["started", "exited", "closed", "completion"] {
            assert_eq!(counts.get(&(id.as_str(), kind)), Some(&1), "{kind} of {id}: {events}");
        }
    }
}

fn quiet_process(d: &Daemon) -> String {
    let quiet = d.ok("exec", json!({ "argv": ["/bin/sleep", "1000"], "stdin": "pipe" }));
    id(&quiet)
}

/// A daemon that waits at the hooks in the directory, with a quiet process and an ended one.
fn with_hooks() -> (Daemon, PathBuf, String) {
    let mut d = Daemon::prepare("", &[]);
    let hooks = d.root().join("hooks");
    fs::create_dir(&hooks).unwrap();
    d.env.push(("TOOLD_HOOKS".into(), hooks.display().to_string()));
    d.spawn();
    let quiet = quiet_process(&d);
    d.closed(&id(&d.run("echo listed")));
    d.ok("list", json!({}));
    (d, hooks, quiet)
}

fn starting(d: &Daemon) -> u64 {
    d.ok("daemon.info", json!({}))["counts"]["starting"].as_u64().unwrap()
}

/// The broken code ran file operations on all threads that answer calls: once two of them hung, every call did.
#[test]
fn calls_that_need_no_disk_are_answered_while_the_disk_hangs() {
    let d = Daemon::prepare("", &[]);
    let Some(disk) = disk(d.root()) else { return };
    let d = on(d, &disk);
    let quiet = quiet_process(&d);
    let (killed, gate) = (d.sh("exec sleep 1000"), d.gate("end"));
    let ending: Vec<String> = (0..4).map(|_| d.sh(&gate.wait())).collect();
    let program = d.program(&killed);
    d.closed(&id(&d.run("echo listed")));
    d.ok("list", json!({}));
    d.ok("events.next", json!({ "consumer": "c" }));
    d.eventually("some directories are made ahead", || prepared_dirs(&d) > STARTS);
    let Some(frozen) = Frozen::below(&d) else { return };
    let (mut conn, mut kill) = (d.conn(), d.conn());
    let starts = request_starts(&mut conn);
    d.eventually("starts hang", || starting(&d) > 0);
    // Ends need the disk too: they are recorded before they are reported. The signal itself does not.
    ending.iter().for_each(|_| gate.open());
    let kill_request = kill.request("kill", json!({ "id": killed }));
    assert!(program.dies_within(Duration::from_secs(30)), "the program is killed while the disk hangs");
    call_without_disk(&d, &quiet);
    // Also on the same connection, and nothing was answered before it happened.
    conn.call("daemon.info", json!({})).unwrap();
    assert!(starts.iter().all(|start| !conn.has_early(*start)));
    frozen.thaw();
    assert_eq!(kill.answer(kill_request).unwrap()["status"], "killed");
    ending.iter().for_each(|id| assert_eq!(d.exited(id)["exit_code"], 0));
    check_starts(&d, &mut conn, starts);
}

/// The same for the journal: publishers wait for the one that writes, and took a thread each.
#[test]
fn calls_that_need_no_disk_are_answered_while_events_wait_for_it() {
    let (d, hooks, quiet) = with_hooks();
    fs::write(hooks.join("journal.write"), "").unwrap();
    let mut conn = d.conn();
    let starts = request_starts(&mut conn);
    d.eventually("an event hangs", || hooks.join("journal.write.hit").exists());
    d.eventually("starts hang", || starting(&d) > 0);
    call_without_disk(&d, &quiet);
    fs::remove_file(hooks.join("journal.write")).unwrap();
    check_starts(&d, &mut conn, starts);
}

/// An acknowledgement that hangs holds the consumers, and `daemon.info` lists them.
#[test]
fn calls_that_need_no_disk_are_answered_while_acknowledgements_wait_for_it() {
    let (d, hooks, quiet) = with_hooks();
    d.ok("events.next", json!({ "consumer": "c", "from": "oldest" }));
    fs::write(hooks.join("ack.write"), "").unwrap();
    let mut conn = d.conn();
    let acks: Vec<u64> =
        (0..STARTS).map(|_| conn.request("events.ack", json!({ "consumer": "c", "seq": 2 }))).collect();
    d.eventually("an acknowledgement hangs", || hooks.join("ack.write.hit").exists());
    call_without_disk(&d, &quiet);
    // Also on the same connection: the broken code ran the first step of an acknowledgement in the connection's task.
    conn.call("daemon.info", json!({})).unwrap();
    assert!(acks.iter().all(|ack| !conn.has_early(*ack)));
    let consumers = d.ok("daemon.info", json!({}))["events"]["consumers"].clone();
    assert_eq!((&consumers[0]["name"], &consumers[0]["position"]), (&json!("c"), &json!(0)));
    fs::remove_file(hooks.join("ack.write")).unwrap();
    for ack in acks {
        assert_eq!(conn.answer(ack).unwrap()["position"], 2);
    }
    assert_eq!(d.ok("daemon.info", json!({}))["events"]["consumers"][0]["position"], 2);
}

/// Output that is not in memory is read from the disk. The broken code read it in the task of the connection.
#[test]
fn calls_behind_one_that_reads_output_from_the_disk_are_answered() {
    let (d, hooks, quiet) = with_hooks();
    let printed = ["polled", "awaited"].map(|text| id(&d.run(&format!("echo {text}"))));
    printed.iter().for_each(|id| drop(d.closed(id)));
    // A list keeps its previews, and needs no disk then.
    d.ok("list", json!({}));
    let hook = hooks.join("log.read_disk");
    fs::write(&hook, "").unwrap();
    let poll = json!({ "id": printed[0], "cursor": 0 });
    // What was just written is in memory: no call waits at the hook.
    assert_eq!(d.ok("poll", poll.clone())["output"], "polled\n");
    let leaves_memory = |id: &String| {
        let logs = d.ok("inspect", json!({ "id": id }))["log_files"].clone();
        logs.as_array().unwrap().iter().all(|log| leave_memory(Path::new(log.as_str().unwrap())))
    };
    if skip_unless(printed.iter().all(leaves_memory), "the file system keeps files in memory") {
        return;
    }
    let mut conn = d.conn();
    let calls = [conn.request("poll", poll), conn.request("wait", json!({ "id": printed[1] }))];
    d.eventually("a call reads the disk", || hooks.join("log.read_disk.hit").exists());
    call_without_disk(&d, &quiet);
    conn.call("daemon.info", json!({})).unwrap();
    assert!(calls.iter().all(|call| !conn.has_early(*call)));
    fs::remove_file(&hook).unwrap();
    let [polled, waited] = calls.map(|call| conn.answer(call).unwrap());
    assert_eq!((&polled["output"], &waited["processes"][0]["output"]), (&json!("polled\n"), &json!("awaited\n")));
}
