//! Many processes, many restarts, other binaries: nothing is lost and nothing runs twice.

use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use toold_test_support::rig::{DEADLINE, Daemon, id};
use toold_test_support::sys::Pidfd;

#[test]
fn fifty_processes_of_all_kinds_survive_a_restart() {
    let mut d = Daemon::start();
    let go = d.gate("go");
    let mut procs = Vec::new();
    for n in 0..50 {
        let more = match n % 3 {
            0 => json!({ "name": format!("p{n}") }),
            1 => json!({ "pty": true, "name": format!("p{n}") }),
            _ => json!({ "stdin": "pipe", "name": format!("p{n}") }),
        };
        // Half of them exit while no daemon runs, the others keep running.
        let script = if n % 2 == 0 {
            format!("echo n{n}; {}; exit {n}", go.wait())
        } else {
            format!("echo n{n}; exec sleep 1000")
        };
        procs.push(id(&d.sh_with(&script, more)));
    }
    procs.iter().enumerate().for_each(|(n, proc)| drop(d.printed(proc, &format!("n{n}"))));
    let programs: Vec<Pidfd> = procs.iter().map(|p| d.program(p)).collect();
    d.kill9();
    (0..25).for_each(|_| go.open());
    assert!(programs.iter().step_by(2).all(|p| p.dies_within(DEADLINE)));
    d.spawn();
    let mut newest_first = procs.clone();
    newest_first.reverse();
    assert_eq!(d.ids(json!({})), newest_first);
    for (n, proc) in procs.iter().enumerate() {
        if n % 2 == 0 {
            let p = d.closed(proc);
            assert_eq!((&p["exit_code"], &p["reason"]), (&json!(n), &json!("exited")));
        } else {
            assert_eq!(d.process(proc)["pid"], programs[n].pid);
            assert!(!programs[n].is_dead());
        }
        assert_eq!(d.text(proc).trim(), format!("n{n}"));
        assert_eq!(d.process(&format!("p{n}"))["id"], proc.as_str());
    }
    let counts = d.ok("daemon.info", json!({}))["counts"].clone();
    assert_eq!((&counts["running"], &counts["exited"], &counts["lost"]), (&json!(25), &json!(25), &json!(0)));
}

#[test]
fn a_process_that_prints_all_the_time_loses_no_byte_over_many_restarts() {
    let mut d = Daemon::start();
    let go = d.gate("go");
    // It writes bursts until the gate opens, and prints how many lines it wrote.
    let script = format!(
        "({}; : > stop) & i=0; while [ ! -e stop ]; do seq $i $((i+99)); i=$((i+100)); done; echo $i > count",
        go.wait()
    );
    let proc = d.sh(&script);
    for _ in 0..6 {
        let seen = d.process(&proc)["bytes"].as_u64().unwrap();
        d.ok("poll", json!({ "id": proc, "cursor": seen, "wait_ms": 30000 }));
        d.restart();
    }
    d.kill9();
    go.open();
    d.spawn();
    d.closed(&proc);
    let count: u64 = fs::read_to_string(d.home().join("count")).unwrap().trim().parse().unwrap();
    let expected: String = (0..count).map(|n| format!("{n}\n")).collect();
    assert!(d.text(&proc) == expected, "{} bytes of {}", d.process(&proc)["bytes"], expected.len());
}

#[test]
fn a_new_binary_adopts_the_processes_of_the_old_one() {
    let mut d = Daemon::start();
    let old = d.root().join("old-toold");
    toold_test_support::sys::copy_program(&d.binary, &old);
    fs::set_permissions(&old, fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(d.stop(libc::SIGTERM), 0);
    let new = std::mem::replace(&mut d.binary, old.clone());
    d.spawn();
    let proc = id(&d.ok("exec", json!({ "argv": ["/bin/cat"], "stdin": "pipe" })));
    let program = d.program(&proc);
    assert_eq!(d.stop(libc::SIGTERM), 0);
    // An upgrade removes the old file.
    fs::remove_file(&old).unwrap();
    d.binary = new;
    d.spawn();
    d.ok("submit", json!({ "id": proc, "data": "hello" }));
    d.printed(&proc, "hello");
    assert_eq!(d.ok("kill", json!({ "id": proc }))["status"], "killed");
    assert!(program.is_dead());
    assert_eq!(d.run("exit 3")["exit_code"], 3);
}

#[test]
fn processes_survive_the_death_of_the_daemons_whole_process_group() {
    let mut d = Daemon::prepare("", &[]);
    let mut command = d.command();
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    d.spawn_as(command);
    let proc = d.sh("echo ready; exec sleep 1000");
    d.printed(&proc, "ready");
    let program = d.program(&proc);
    let group = format!("-{}", d.pid());
    assert!(Command::new("/bin/kill").args(["-KILL", "--", &group]).status().unwrap().success());
    d.ended();
    d.spawn();
    assert!(!program.is_dead(), "the shim died with the daemon");
    let p = d.process(&proc);
    assert_eq!((&p["status"], &p["pid"]), (&json!("running"), &json!(program.pid)));
}

#[test]
fn a_daemon_that_is_killed_while_it_starts_loses_nothing() {
    let mut d = Daemon::start();
    let procs: Vec<String> = (0..10).map(|n| d.sh(&format!("echo {n}; exec sleep 1000"))).collect();
    let programs: Vec<Pidfd> = procs.iter().map(|p| d.program(p)).collect();
    d.kill9();
    for _ in 0..10 {
        // Killed at the instant at which its socket appears, or before.
        let mut child = d.command().spawn().unwrap();
        let fd = Pidfd::open(child.id() as i32).unwrap();
        fd.dies_within(std::time::Duration::from_millis(3));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    d.spawn();
    assert!(programs.iter().all(|p| !p.is_dead()));
    assert_eq!(d.ids(json!({ "status": "running" })).len(), 10);
    assert_eq!(d.ok("kill", json!({ "all": true }))["status"], "killed");
}
