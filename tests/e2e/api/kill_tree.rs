//! `kill` reaches the whole tree: new sessions, double forks, and processes that start during the grace.

use serde_json::json;
use std::fs;
use toold_test_support::rig::Daemon;
use toold_test_support::sys::Pidfd;

/// Opens the processes whose pids a workload wrote into a file of its home, one per line.
fn pids_in(d: &Daemon, file: &str) -> Vec<Pidfd> {
    let text = fs::read_to_string(d.home().join(file)).unwrap_or_default();
    text.lines().map(|l| Pidfd::open(l.parse().unwrap()).expect("it runs")).collect()
}

/// The living members of the tree: the marked processes that are a shell or a sleep.
fn alive(d: &Daemon) -> Vec<String> {
    let name = |p: &Pidfd| fs::read_to_string(format!("/proc/{}/comm", p.pid)).unwrap_or_default().trim().to_string();
    d.marked()
        .iter()
        .filter(|p| !p.is_dead())
        .map(name)
        .filter(|n| n == "sleep" || n == "sh" || n == "setsid")
        .collect()
}

#[test]
fn children_grandchildren_and_other_sessions_die_with_it() {
    let d = Daemon::start();
    let proc = d.sh("sleep 1000 & echo $! >> pids
         sh -c 'sleep 1000 & echo $! >> pids; wait' & echo $! >> pids
         setsid sh -c 'echo $$ >> pids; exec sleep 1000' &
         (setsid sh -c '(setsid sh -c \"echo \\$\\$ >> pids; exec sleep 1000\") & exit' &)
         while [ $(wc -l < pids) -lt 5 ]; do sleep 0.01; done; echo ready; wait");
    d.printed(&proc, "ready");
    let (program, members) = (d.program(&proc), pids_in(&d, "pids"));
    assert_eq!(members.len(), 5);
    let answer = d.ok("kill", json!({ "id": proc }));
    assert_eq!((&answer["status"], &answer["results"][0]["survivors"]), (&json!("killed"), &json!([])));
    assert!(program.is_dead());
    for member in members {
        assert!(member.is_dead(), "{} outlived the answer", member.pid);
    }
    assert_eq!(alive(&d), Vec::<String>::new());
}

#[test]
fn descendants_that_ignore_the_signal_die_with_it() {
    let d = Daemon::start();
    let proc = d.sh("setsid sh -c 'trap \"\" TERM HUP INT; echo $$ >> pids; while :; do sleep 1000; done' &
         while [ ! -s pids ]; do sleep 0.01; done; echo ready; exec sleep 1000");
    d.printed(&proc, "ready");
    let members = pids_in(&d, "pids");
    let r = d.ok("kill", json!({ "id": proc, "grace_ms": 300 }))["results"][0].clone();
    assert_eq!((&r["status"], &r["signals_sent"]), (&json!("killed"), &json!(["SIGTERM", "SIGKILL"])));
    assert_eq!((&r["exit_code"], &r["signal"]), (&json!(143), &json!("SIGTERM")), "the first signal ended it");
    assert!(members.iter().all(Pidfd::is_dead));
    assert_eq!(alive(&d), Vec::<String>::new());
}

#[test]
fn processes_that_start_during_the_grace_die_with_it() {
    let d = Daemon::start();
    let proc = d
        .sh("trap 'setsid sh -c \"trap : TERM; echo \\$\\$ >> pids; while :; do sleep 1000; done\" & echo born' TERM
         echo ready; while :; do sleep 0.02; done");
    d.printed(&proc, "ready");
    let answer = d.ok("kill", json!({ "id": proc, "grace_ms": 700 }));
    assert_eq!(answer["status"], "killed");
    assert!(d.text(&proc).contains("born"), "the trap had no time to run: nothing was tested");
    assert_eq!(alive(&d), Vec::<String>::new());
}

#[test]
fn a_runaway_that_keeps_forking_into_new_sessions_is_caught() {
    let d = Daemon::start();
    // Each hop is a new process in a new session whose parent has exited. It ends by itself if kill fails.
    let hop = "[ $1 -gt 3000 ] && exit; setsid sh hop.sh $(($1 + 1)) & exit\n";
    fs::write(d.home().join("hop.sh"), hop).unwrap();
    let proc = d.sh("sh hop.sh 0 & sh hop.sh 0 & echo ready; exec sleep 1000");
    d.printed(&proc, "ready");
    let answer = d.ok("kill", json!({ "id": proc, "grace_ms": 100 }));
    assert_eq!((&answer["status"], &answer["results"][0]["survivors"]), (&json!("killed"), &json!([])));
    assert_eq!(alive(&d), Vec::<String>::new());
}

#[test]
fn an_exited_process_with_descendants_can_be_killed_and_keeps_its_exit() {
    let d = Daemon::start();
    let proc = d.sh("setsid sh -c 'echo $$ >> pids; exec sleep 1000' > /dev/null 2>&1 &
         while [ ! -s pids ]; do sleep 0.01; done; exit 6");
    assert_eq!(d.exited(&proc)["exit_code"], 6);
    let members = pids_in(&d, "pids");
    let answer = d.ok("kill", json!({ "id": proc }));
    let r = &answer["results"][0];
    assert_eq!((&answer["status"], &r["exit_code"], &r["signal"]), (&json!("killed"), &json!(6), &json!(null)));
    assert_eq!(r["reason"], "exited", "it ended by itself, before the kill");
    assert!(members.iter().all(Pidfd::is_dead));
    assert_eq!(d.ok("kill", json!({ "id": proc }))["status"], "already_exited");
    assert_eq!(d.process(&proc)["exit_code"], 6);
}

#[test]
fn other_trees_keep_running() {
    let d = Daemon::start();
    let victim = d.sh("setsid sleep 1000 & exec sleep 1000");
    let neighbour = d.sh("setsid sleep 1000 & exec sleep 1000");
    let program = d.program(&neighbour);
    d.ok("kill", json!({ "id": victim }));
    assert!(!program.is_dead());
    assert_eq!(d.process(&neighbour)["status"], "running");
}

#[test]
fn a_tree_on_a_terminal_is_killed_whole() {
    let d = Daemon::start();
    let proc = d.ok(
        "exec",
        json!({ "pty": true, "argv": ["/bin/sh", "-c",
            "setsid sh -c 'trap \"\" HUP; echo $$ >> pids; exec sleep 1000' & while [ ! -s pids ]; do sleep 0.01; done; echo ready; exec sleep 1000"] }),
    )["id"]
        .as_str()
        .unwrap()
        .to_string();
    d.printed(&proc, "ready");
    let members = pids_in(&d, "pids");
    assert_eq!(d.ok("kill", json!({ "id": proc }))["status"], "killed");
    assert!(members.iter().all(Pidfd::is_dead));
    assert_eq!(alive(&d), Vec::<String>::new());
}

#[test]
fn a_tree_is_killed_whole_after_a_restart_too() {
    let mut d = Daemon::start();
    let proc = d.sh(
        "(setsid sh -c '(setsid sh -c \"trap : TERM; echo \\$\\$ >> pids; while :; do sleep 1000; done\") & exit' &)
         while [ ! -s pids ]; do sleep 0.01; done; echo ready; exec sleep 1000",
    );
    d.printed(&proc, "ready");
    let (program, members) = (d.program(&proc), pids_in(&d, "pids"));
    d.restart();
    assert_eq!(d.ok("kill", json!({ "id": proc, "grace_ms": 300 }))["status"], "killed");
    assert!(program.is_dead() && members.iter().all(Pidfd::is_dead));
    assert_eq!(alive(&d), Vec::<String>::new());
}

#[test]
fn the_grace_signal_reaches_every_member_of_a_large_tree() {
    // Only 256 processes of a tree got the first signal. The others waited for SIGKILL.
    let d = Daemon::start();
    let script = "import os, signal, sys
out = os.open('ended', os.O_WRONLY | os.O_CREAT | os.O_APPEND)
# Blocked and awaited: a handler that runs just before a pause would be missed.
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
for _ in range(599):
    if os.fork() == 0:
        break
else:
    print('ready', flush=True)
signal.sigwait([signal.SIGTERM])
os.write(out, b'.')
os._exit(0)
";
    fs::write(d.home().join("tree.py"), script).unwrap();
    let proc = d.sh("exec python3 tree.py");
    d.printed(&proc, "ready");
    let r = d.ok("kill", json!({ "id": proc, "grace_ms": 50000 }))["results"][0].clone();
    assert_eq!((&r["status"], &r["signals_sent"], &r["exit_code"]), (&json!("killed"), &json!(["SIGTERM"]), &json!(0)));
    assert_eq!(fs::read(d.home().join("ended")).unwrap().len(), 600, "some never got the signal");
}
