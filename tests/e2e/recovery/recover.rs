//! Damage: a broken record, a dead shim, a dead zygote, a pid that is somebody else's by now.

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use toold_test_support::rig::{DEADLINE, Daemon, files, id, skip_unless};
use toold_test_support::sys::Pidfd;

/// Three processes: one finished that will be damaged, one finished and one running that must not care.
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

/// What holds whatever happened to the victim: the others are whole, and no exit is invented.
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
fn a_damaged_record_is_set_aside_and_said_so_and_the_rest_is_there() {
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
    assert!(d.log().contains(&t.victim), "the log says so too");
    // It is not told as new damage at every start, and never comes back as something else.
    d.restart();
    check(&d, &t, "the second start");
}

/// A way to harm a file, and its name.
type Damage = (&'static str, fn(&Path));

#[test]
fn any_one_file_of_a_record_may_be_garbage_empty_cut_or_gone() {
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
fn strange_things_among_the_records_are_no_processes() {
    let mut d = Daemon::start();
    let t = three(&d);
    d.kill9();
    let procs = t.dir.parent().unwrap();
    fs::write(procs.join("a-file"), "x").unwrap();
    fs::write(procs.join("proc_00000000000a"), "a file with a process's name").unwrap();
    fs::create_dir(procs.join("proc_notanid")).unwrap();
    // A directory with nothing in it is what a crash between mkdir and the first file leaves.
    fs::create_dir(procs.join("proc_00000000000b")).unwrap();
    std::os::unix::fs::symlink("/", procs.join("proc_00000000000c")).unwrap();
    d.spawn();
    check(&d, &t, "strange things");
    for stranger in ["proc_00000000000a", "proc_00000000000b", "proc_00000000000c"] {
        if let Ok(p) = d.call("poll", json!({ "id": stranger })) {
            assert!(p["status"] != "running" && p["exit_code"] == Value::Null, "{p}");
        }
    }
    assert!(Path::new("/bin").exists(), "nobody followed the link to clean up");
}

/// The process when it is known to be lost.
fn lost(d: &Daemon, proc: &str) {
    let p = d.exited(proc);
    assert_eq!((&p["status"], &p["reason"]), (&json!("lost"), &json!("lost")), "{p}");
    // Unknown, or what the kernel could still tell; never a success that nobody saw.
    assert!(p["exit_code"] == Value::Null || p["exit_code"] == 137 || p["signal"] == "SIGHUP", "{p}");
    assert_eq!(d.process(proc)["status"], "lost");
}

#[test]
fn a_process_whose_shim_is_killed_is_lost_and_nothing_of_it_is_left() {
    let d = Daemon::start();
    for more in [json!({}), json!({ "pty": true })] {
        let proc = id(&d.sh_with("setsid sleep 1000 & echo ready; exec sleep 1000", more));
        d.printed(&proc, "ready");
        let inspect = d.ok("inspect", json!({ "id": proc }));
        let tree = inspect["tree"].as_array().unwrap().iter().map(|m| m["pid"].as_i64().unwrap() as i32);
        let members: Vec<Pidfd> = tree.filter_map(Pidfd::open).collect();
        Pidfd::open(inspect["shim_pid"].as_i64().unwrap() as i32).unwrap().signal(libc::SIGKILL);
        lost(&d, &proc);
        assert!(d.text(&proc).contains("ready"), "its output is still there");
        d.ok("kill", json!({ "id": proc }));
        assert!(members.iter().all(|m| m.dies_within(DEADLINE)), "a member of the lost tree lives on");
        assert_eq!(d.ok("inspect", json!({ "id": proc }))["tree"], json!([]));
    }
    assert_eq!(d.run("exit 3")["exit_code"], 3);
}

#[test]
fn a_process_whose_shim_dies_while_no_daemon_runs_is_lost_at_the_next_start() {
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
    assert!(program.dies_within(DEADLINE), "the orphan lives on");
}

/// A sleep with this very pid, or None when the kernel will not give it.
fn stranger_with(pid: i32) -> Option<Child> {
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
fn a_stranger_with_a_dead_processs_pid_is_never_adopted_and_never_signalled() {
    let mut d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let program = d.program(&proc);
    let shim = Pidfd::open(d.ok("inspect", json!({ "id": proc }))["shim_pid"].as_i64().unwrap() as i32).unwrap();
    d.kill9();
    shim.signal(libc::SIGKILL);
    program.signal(libc::SIGKILL);
    assert!(shim.dies_within(DEADLINE) && program.dies_within(DEADLINE));
    // The pid is free when whoever inherited the orphan has reaped it.
    d.eventually("the dead are reaped", || Pidfd::open(program.pid).is_none() && Pidfd::open(shim.pid).is_none());
    let strangers: Vec<Child> = [program.pid, shim.pid].into_iter().filter_map(stranger_with).collect();
    let possible = strangers.len() == 2;
    let alive: Vec<Pidfd> = strangers.iter().filter_map(|s| Pidfd::open(s.id() as i32)).collect();
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
    for mut stranger in strangers {
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
    assert!(untouched, "a stranger was signalled");
}

#[test]
fn processes_start_also_when_the_zygote_is_gone() {
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
fn what_a_killed_daemon_had_only_begun_or_half_removed_is_cleared_away_without_a_word() {
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
fn a_running_process_whose_record_is_damaged_is_named_by_pid() {
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
fn a_shim_that_somebody_stopped_is_woken_by_the_first_who_needs_it() {
    let d = Daemon::start();
    let proc = id(&d.sh_with("echo ready; exec sleep 1000", json!({ "stdin": "pipe" })));
    d.printed(&proc, "ready");
    let shim = d.ok("inspect", json!({ "id": proc }))["shim_pid"].as_i64().unwrap() as i32;
    Pidfd::open(shim).unwrap().signal(libc::SIGSTOP);
    assert_eq!(d.ok("kill", json!({ "id": proc }))["status"], "killed");
    assert_eq!(d.process(&proc)["signal"], "SIGTERM");
}
