//! Damage: a broken record, a dead shim, a dead zygote, a pid that belongs to another process now.

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use toold_test_support::rig::{DEADLINE, Daemon, files, id, skip_unless};
use toold_test_support::sys::Pidfd;

/// Three processes: a finished one that will be damaged, a finished and a running one that must not be affected.
struct Three {
    victim: String,
    ended: String,
    runs: String,
    dir: PathBuf,
}

fn three(d: &Daemon) -> Three {
    let victim = id(&d.run("echo victim; exit 7"));
    let ended = id(&d.run("echo ended; exit 8"));
    let runs = id(&d.ok("exec", json!({ "argv": ["/bin/cat"], "stdin": "pipe" })));
    let dir = d.ok("inspect", json!({ "id": victim }))["state_path"].as_str().unwrap().into();
    Three { victim, ended, runs, dir }
}

/// Checks the invariants after damage: the other processes are intact, and no exit is invented.
fn check(d: &Daemon, t: &Three, what: &str) {
    let p = d.process(&t.ended);
    assert_eq!((&p["exit_code"], &p["output"]), (&json!(8), &json!("ended\n")), "{what}");
    d.ok("submit", json!({ "id": t.runs, "data": what }));
    d.printed(&t.runs, what);
    if let Ok(p) = d.call("poll", json!({ "id": t.victim })) {
        assert!(p["exit_code"] == 7 || p["exit_code"] == Value::Null, "{what}: an invented exit: {p}");
        assert_ne!(p["status"], "running", "{what}");
        assert!(p["exit_code"] == 7 || p["reason"] == "lost", "{what}: {p}");
    }
    assert_eq!(d.run("exit 4")["exit_code"], 4, "{what}: new processes start");
}

#[test]
fn a_damaged_record_is_quarantined_and_reported_and_the_others_load() {
    let mut d = Daemon::start();
    let t = three(&d);
    d.kill9();
    for file in files(&t.dir) {
        fs::write(file, b"\x00\xffgarbage{{{").unwrap();
    }
    d.spawn();
    check(&d, &t, "all files are garbage");
    let damaged = d.ok("daemon.info", json!({}))["damaged"].clone();
    assert!(damaged.as_array().unwrap().iter().any(|m| m.as_str().unwrap().contains(&t.victim)), "{damaged}");
    assert!(d.log().contains(&t.victim), "the log names it");
    // It is not reported as new damage at every start, and never returns as something else.
    d.restart();
    check(&d, &t, "the second start");
}

/// A kind of damage to a file, and its name.
type Damage = (&'static str, fn(&Path));

#[test]
fn any_one_file_of_a_record_may_be_garbage_empty_truncated_or_missing() {
    let mut d = Daemon::start();
    let damages: [Damage; 4] = [
        ("garbage", |f| fs::write(f, b"\xff\x00]]garbage").unwrap()),
        ("empty", |f| fs::write(f, b"").unwrap()),
        ("cut", |f| fs::write(f, &fs::read(f).unwrap()[..fs::metadata(f).unwrap().len() as usize / 2]).unwrap()),
        ("gone", |f| fs::remove_file(f).unwrap()),
    ];
    let mut n = 0;
    loop {
        let t = three(&d);
        let all = files(&t.dir);
        let Some((file, (what, damage))) = all.iter().flat_map(|f| damages.iter().map(move |x| (f, x))).nth(n) else {
            break;
        };
        d.kill9();
        damage(file);
        d.spawn();
        check(&d, &t, &format!("{what} {}", file.file_name().unwrap().display()));
        d.ok("kill", json!({ "all": true }));
        d.ok("forget", json!({ "older_than_ms": 0 }));
        n += 1;
    }
    assert!(n >= 8, "a record has at least two files");
}

#[test]
fn unknown_entries_among_the_records_are_not_processes() {
    let mut d = Daemon::start();
    let t = three(&d);
    d.kill9();
    let procs = t.dir.parent().unwrap();
    fs::write(procs.join("a-file"), "x").unwrap();
    fs::write(procs.join("proc_00000000000a"), "a file with a process's name").unwrap();
    fs::create_dir(procs.join("proc_notanid")).unwrap();
    // A crash between mkdir and the first file leaves an empty directory.
    fs::create_dir(procs.join("proc_00000000000b")).unwrap();
    std::os::unix::fs::symlink("/", procs.join("proc_00000000000c")).unwrap();
    d.spawn();
    check(&d, &t, "strange things");
    for unknown in ["proc_00000000000a", "proc_00000000000b", "proc_00000000000c"] {
        if let Ok(p) = d.call("poll", json!({ "id": unknown })) {
            assert!(p["status"] != "running" && p["exit_code"] == Value::Null, "{p}");
        }
    }
    assert!(Path::new("/bin").exists(), "the clean-up did not follow the link");
}

/// Waits until the process is known to be lost.
fn lost(d: &Daemon, proc: &str) {
    let p = d.exited(proc);
    assert_eq!((&p["status"], &p["reason"]), (&json!("lost"), &json!("lost")), "{p}");
    // Unknown, or the exit status that the kernel still had; never an invented success.
    assert!(p["exit_code"] == Value::Null || p["exit_code"] == 137 || p["signal"] == "SIGHUP", "{p}");
    assert_eq!(d.process(proc)["status"], "lost");
    // The broken code gave no reason, neither here nor in the event.
    let (failure, event) = (&p["failure"], exit_event(d, proc));
    assert_eq!((&failure["step"], &failure["error"]), (&json!("shim"), &json!("EOWNERDEAD")), "{p}");
    assert!(failure["message"].as_str().unwrap().contains("its shim died"), "{p}");
    assert_eq!(event["failure"], *failure, "{event}");
}

/// The event of a process's end.
fn exit_event(d: &Daemon, proc: &str) -> Value {
    let pulled = d.ok("events.next", json!({ "consumer": "lost", "id": proc, "types": ["exited"], "wait_ms": 30000 }));
    pulled["events"][0].clone()
}

#[test]
fn a_process_whose_shim_is_killed_is_lost_and_its_tree_is_killed() {
    let d = Daemon::start();
    for more in [json!({}), json!({ "pty": true })] {
        let proc = id(&d.sh_with("setsid sleep 1000 & echo ready; exec sleep 1000", more));
        d.printed(&proc, "ready");
        let inspect = d.ok("inspect", json!({ "id": proc }));
        let tree = inspect["tree"].as_array().unwrap().iter().map(|m| m["pid"].as_i64().unwrap() as i32);
        let members: Vec<Pidfd> = tree.filter_map(Pidfd::open).collect();
        Pidfd::open(inspect["shim_pid"].as_i64().unwrap() as i32).unwrap().signal(libc::SIGKILL);
        lost(&d, &proc);
        assert!(d.text(&proc).contains("ready"), "its output is kept");
        d.ok("kill", json!({ "id": proc }));
        assert!(members.iter().all(|m| m.dies_within(DEADLINE)), "a member of the lost tree is alive");
        assert_eq!(d.ok("inspect", json!({ "id": proc }))["tree"], json!([]));
    }
    assert_eq!(d.run("exit 3")["exit_code"], 3);
}

#[test]
fn a_process_whose_shim_dies_without_a_daemon_is_lost_at_the_next_start() {
    let mut d = Daemon::start();
    let proc = d.sh("echo ready; exec sleep 1000");
    d.printed(&proc, "ready");
    let program = d.program(&proc);
    let shim = d.ok("inspect", json!({ "id": proc }))["shim_pid"].as_i64().unwrap() as i32;
    let shim = Pidfd::open(shim).unwrap();
    d.kill9();
    shim.signal(libc::SIGKILL);
    assert!(shim.dies_within(DEADLINE));
    d.spawn();
    lost(&d, &proc);
    assert_eq!(d.text(&proc), "ready\n");
    d.ok("kill", json!({ "id": proc }));
    assert!(program.dies_within(DEADLINE), "the orphan is alive");
}

/// Starts a sleep with exactly this pid, or returns None when the kernel does not assign it.
fn process_with_pid(pid: i32) -> Option<Child> {
    for _ in 0..500 {
        fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).ok()?;
        let mut child = Command::new("/bin/sleep").arg("1000").spawn().unwrap();
        if child.id() as i32 == pid {
            return Some(child);
        }
        child.kill().unwrap();
        child.wait().unwrap();
    }
    None
}

#[test]
fn another_process_with_a_reused_pid_is_never_adopted_and_never_signalled() {
    let mut d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let program = d.program(&proc);
    let shim = Pidfd::open(d.ok("inspect", json!({ "id": proc }))["shim_pid"].as_i64().unwrap() as i32).unwrap();
    d.kill9();
    shim.signal(libc::SIGKILL);
    program.signal(libc::SIGKILL);
    assert!(shim.dies_within(DEADLINE) && program.dies_within(DEADLINE));
    // The pid is free when the parent of the orphan has reaped it.
    d.eventually("the dead are reaped", || Pidfd::open(program.pid).is_none() && Pidfd::open(shim.pid).is_none());
    let others: Vec<Child> = [program.pid, shim.pid].into_iter().filter_map(process_with_pid).collect();
    let possible = others.len() == 2;
    let alive: Vec<Pidfd> = others.iter().filter_map(|s| Pidfd::open(s.id() as i32)).collect();
    if !skip_unless(possible, "this machine does not hand out chosen pids") {
        d.spawn();
        lost(&d, &proc);
        d.ok("kill", json!({ "id": proc, "grace_ms": 100 }));
        let _ = d.call("signal", json!({ "id": proc, "signal": "SIGKILL" }));
        assert_eq!(d.ok("inspect", json!({ "id": proc }))["tree"], json!([]));
        d.ok("daemon.shutdown", json!({ "kill": true }));
        d.ended();
    }
    let untouched = alive.iter().all(|s| !s.is_dead());
    for mut other in others {
        other.kill().unwrap();
        other.wait().unwrap();
    }
    assert!(untouched, "another process was signalled");
}

#[test]
fn processes_start_without_the_zygote_too() {
    let d = Daemon::start();
    let tasks = fs::read_dir(format!("/proc/{}/task", d.pid())).unwrap();
    let children = tasks.map(|t| fs::read_to_string(t.unwrap().path().join("children")).unwrap_or_default());
    let children: Vec<Pidfd> = children
        .flat_map(|c| c.split_whitespace().map(|p| p.parse().unwrap()).collect::<Vec<i32>>())
        .filter_map(Pidfd::open)
        .collect();
    if skip_unless(!children.is_empty(), "this daemon has no zygote among its children") {
        return;
    }
    let before = id(&d.ok("exec", json!({ "argv": ["/bin/cat"], "stdin": "pipe" })));
    for child in &children {
        child.signal(libc::SIGKILL);
        assert!(child.dies_within(DEADLINE));
    }
    for more in [json!({}), json!({ "pty": true }), json!({ "stdin": "pipe" })] {
        let p = d.sh_with("echo works; exit 6", more);
        let p = d.closed(&id(&p));
        assert_eq!((&p["exit_code"], p["output"].as_str().unwrap().trim()), (&json!(6), "works"));
    }
    d.ok("submit", json!({ "id": before, "data": "still" }));
    d.printed(&before, "still");
}

#[test]
fn half_created_and_half_removed_records_of_a_killed_daemon_are_cleaned_up_silently() {
    let mut d = Daemon::start();
    d.run("exit 3");
    d.kill9();
    let procs = d.state().join("procs");
    fs::create_dir(procs.join("proc_000000000001")).unwrap();
    fs::create_dir(procs.join("proc_000000000002")).unwrap();
    fs::write(procs.join("proc_000000000002/record"), "").unwrap();
    fs::create_dir(procs.join("proc_000000000003.forgotten")).unwrap();
    fs::write(procs.join("proc_000000000003.forgotten/log"), "half removed").unwrap();
    d.spawn();
    assert_eq!(d.ok("daemon.info", json!({}))["damaged"], json!([]));
    assert_eq!(d.ok("list", json!({}))["total"], 1);
    assert_eq!(fs::read_dir(&procs).unwrap().count(), 1);
}

#[test]
fn a_running_process_whose_record_is_damaged_is_reported_by_pid() {
    let mut d = Daemon::start();
    let proc = d.sh("echo ready; exec sleep 1000");
    d.printed(&proc, "ready");
    let pid = d.process(&proc)["pid"].as_i64().unwrap() as i32;
    let sleeper = Pidfd::open(pid).unwrap();
    d.kill9();
    fs::remove_file(d.state().join("procs").join(&proc).join("record")).unwrap();
    d.spawn();
    let damaged = d.ok("daemon.info", json!({}))["damaged"].to_string();
    assert!(damaged.contains(&proc) && damaged.contains(&format!("pid {pid}")), "{damaged}");
    sleeper.signal(libc::SIGKILL);
    assert!(sleeper.dies_within(DEADLINE));
}

#[test]
fn a_stopped_shim_is_continued_by_the_first_call_that_needs_it() {
    let d = Daemon::start();
    let proc = id(&d.sh_with("echo ready; exec sleep 1000", json!({ "stdin": "pipe" })));
    d.printed(&proc, "ready");
    let shim = d.ok("inspect", json!({ "id": proc }))["shim_pid"].as_i64().unwrap() as i32;
    Pidfd::open(shim).unwrap().signal(libc::SIGSTOP);
    assert_eq!(d.ok("kill", json!({ "id": proc }))["status"], "killed");
    assert_eq!(d.process(&proc)["signal"], "SIGTERM");
}

#[test]
fn a_job_that_stops_its_shim_and_exits_is_reported_all_the_same() {
    // A stopped shim saw neither the exit nor anything else, and no process noticed: the exit was never published.
    for config in ["", "shim = \"exec\"\n"] {
        let mut d = Daemon::start_with(config, &[]);
        let proc = d.sh("echo out; kill -STOP $PPID; exit 3");
        let p = d.closed(&proc);
        assert_eq!((&p["exit_code"], &p["reason"], &p["output"]), (&json!(3), &json!("exited"), &json!("out\n")));
        // The same below a daemon that adopted it.
        let gate = d.gate("gate");
        let proc = d.sh(&format!("{}; kill -STOP $PPID; exit 4", gate.wait()));
        d.restart();
        gate.open();
        assert_eq!(d.exited(&proc)["exit_code"], 4);
    }
}
