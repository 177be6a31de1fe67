//! `kill` and timeouts on systems that lack something: pidfds, /proc.

use serde_json::json;
use toold_test_support::rig::{DEADLINE, Daemon, id, skip_unless};
use toold_test_support::sys::{self, Pidfd};

const PIDFD_OPEN: &[i64] = &[libc::SYS_pidfd_open];
/// A kernel before 5.1 has neither.
const BOTH: &[i64] = &[libc::SYS_pidfd_open, libc::SYS_pidfd_send_signal];

/// A daemon for which the kernel answers these calls with an error.
fn refusing(calls: &[i64], errno: i32, config: &str) -> Daemon {
    let mut d = Daemon::prepare(config, &[]);
    let mut command = d.command();
    sys::refuse_calls(&mut command, calls, errno);
    d.spawn_as(command);
    d
}

/// Five processes in four sessions, below each other and orphaned. Their pids are in a file.
const TREE: &str = "sleep 1000 & echo $! >> pids
    sh -c 'sleep 1000 & echo $! >> pids; wait' & echo $! >> pids
    setsid sh -c 'echo $$ >> pids; exec sleep 1000' &
    (setsid sh -c '(setsid sh -c \"trap \\\"\\\" TERM; echo \\$\\$ >> pids; while :; do sleep 1000; done\") & exit' &)
    while [ $(wc -l < pids) -lt 5 ]; do sleep 0.01; done; echo ready; wait";

fn members(d: &Daemon) -> Vec<Pidfd> {
    let text = std::fs::read_to_string(d.home().join("pids")).unwrap();
    text.lines().map(|line| Pidfd::open(line.parse().unwrap()).expect("it runs")).collect()
}

#[test]
fn a_tree_is_killed_whole_without_pidfds() {
    // `kill` took a refused `pidfd_open` for a process that is gone, and answered `survivors` for a plain sleep.
    for (calls, errno) in
        [(PIDFD_OPEN, libc::ENOSYS), (PIDFD_OPEN, libc::EPERM), (BOTH, libc::ENOSYS), (BOTH, libc::EPERM)]
    {
        let d = refusing(calls, errno, "");
        assert_eq!(d.ok("daemon.info", json!({}))["features"]["pidfd"], false, "the calls are refused");
        let plain = d.sh("exec sleep 1000");
        let answer = d.ok("kill", json!({ "id": plain }))["results"][0].clone();
        assert_eq!(
            (&answer["status"], &answer["signals_sent"], &answer["reason"]),
            (&json!("killed"), &json!(["SIGTERM"]), &json!("killed")),
            "{calls:?} {errno}: {answer}"
        );
        let proc = d.sh(TREE);
        d.printed(&proc, "ready");
        let members = members(&d);
        let answer = d.ok("kill", json!({ "id": proc, "grace_ms": 500 }));
        assert_eq!((&answer["status"], &answer["results"][0]["survivors"]), (&json!("killed"), &json!([])));
        assert!(members.iter().all(Pidfd::is_dead), "{calls:?} {errno}");
    }
}

#[test]
fn a_timeout_ends_the_tree_without_pidfds() {
    for calls in [PIDFD_OPEN, BOTH] {
        let d = refusing(calls, libc::EPERM, "timeout_grace_ms = 300\n");
        let proc = id(&d.sh_with(TREE, json!({ "timeout_ms": 3000 })));
        d.printed(&proc, "ready");
        let members = members(&d);
        assert_eq!(d.exited(&proc)["reason"], "timeout");
        assert!(members.iter().all(|m| m.dies_within(DEADLINE)), "a descendant outlived the timeout");
    }
}

#[test]
fn the_grace_signal_reaches_descendants_without_pidfds() {
    // Where nothing pins a descendant, its turn comes when its parent has ended.
    for calls in [PIDFD_OPEN, BOTH] {
        let d = refusing(calls, libc::ENOSYS, "");
        let script = "sh -c 'trap \"echo ended; exit\" TERM; echo ready; while :; do sleep 0.02; done' & wait";
        let proc = d.sh(script);
        d.printed(&proc, "ready");
        let answer = d.ok("kill", json!({ "id": proc, "grace_ms": 50000 }))["results"][0].clone();
        assert_eq!(
            (&answer["status"], &answer["signals_sent"]),
            (&json!("killed"), &json!(["SIGTERM"])),
            "{calls:?}: {answer}"
        );
        assert!(d.text(&proc).contains("ended"), "{calls:?}");
    }
}

#[test]
fn the_zygote_works_without_pidfds_and_its_end_is_noticed() {
    // The daemon forked a zygote, could not open its pidfd, and left it as a zombie.
    let d = refusing(PIDFD_OPEN, libc::ENOSYS, "");
    let zygote = |d: &Daemon| d.ok("daemon.info", json!({}))["features"]["zygote_pid"].as_i64();
    let pid = zygote(&d).expect("the zygote runs") as i32;
    Pidfd::open(pid).unwrap().signal(libc::SIGKILL);
    d.eventually("the daemon notices the end of the zygote", || zygote(&d).is_none());
    assert!(Pidfd::open(pid).is_none(), "the zygote was not reaped");
    assert_eq!(d.run("exit 3")["exit_code"], 3, "starts go on by exec");
}

/// A daemon in a mount namespace where /proc is empty. None: the test cannot run here.
fn without_proc() -> Option<Daemon> {
    let mut d = Daemon::prepare("", &[]);
    let rig = "exec unshare --mount --propagation private sh -c 'mount -t tmpfs none /proc && exec \"$0\" \"$@\"' \"$0\" \"$@\"";
    d.before = Some(rig.into());
    let can = std::process::Command::new("unshare").args(["--mount", "mount", "-t", "tmpfs", "none", "/proc"]).output();
    if skip_unless(can.is_ok_and(|tried| tried.status.success()), "no mount namespace can be made here") {
        return None;
    }
    d.spawn();
    Some(d)
}

#[test]
fn without_proc_processes_run_and_that_is_reported() {
    // No process could be started: the daemon looked for its threads and its own program in /proc.
    let Some(d) = without_proc() else { return };
    assert!(d.log().contains("/proc is not mounted"), "{}", d.log());
    let features = d.ok("daemon.info", json!({}))["features"].clone();
    assert_eq!((&features["proc"], &features["zygote"]), (&json!(false), &json!(true)));
    let p = d.run("echo out; exit 3");
    assert_eq!((&p["exit_code"], &p["output"]), (&json!(3), &json!("out\n")));
}

#[test]
fn without_proc_a_kill_ends_the_programs_group() {
    // The kill found no process to signal, and the call was never answered.
    let Some(d) = without_proc() else { return };
    let proc = d.sh("sleep 1000 & sleep 1000 & echo ready; wait");
    d.printed(&proc, "ready");
    let answer = d.ok("kill", json!({ "id": proc }))["results"][0].clone();
    assert_eq!(
        (&answer["status"], &answer["signals_sent"], &answer["reason"]),
        (&json!("killed"), &json!(["SIGTERM"]), &json!("killed")),
        "{answer}"
    );
    let stubborn = d.sh("trap '' TERM; sleep 1000 & echo ready; while :; do sleep 1000; done");
    d.printed(&stubborn, "ready");
    let answer = d.ok("kill", json!({ "id": stubborn, "grace_ms": 300 }))["results"][0].clone();
    assert_eq!((&answer["status"], &answer["exit_code"]), (&json!("killed"), &json!(137)), "{answer}");
    // A member that ignores the signal is not left behind when the leader ends: afterwards nothing could find it.
    let mixed = d.sh("sh -c 'trap \"\" TERM; echo ready; while :; do sleep 1000; done' & wait");
    d.printed(&mixed, "ready");
    assert_eq!(d.ok("kill", json!({ "id": mixed }))["status"], "killed");
}

#[test]
fn without_proc_a_kill_reports_that_processes_outside_of_the_group_are_left() {
    let Some(d) = without_proc() else { return };
    let proc = d.sh("setsid sh -c 'echo $$ > pid; exec sleep 1000' & while [ ! -s pid ]; do sleep 0.01; done; echo ready; exec sleep 1000");
    d.printed(&proc, "ready");
    let hidden = std::fs::read_to_string(d.home().join("pid")).unwrap().trim().parse().unwrap();
    let hidden = Pidfd::open(hidden).unwrap();
    let answer = d.ok("kill", json!({ "id": proc, "grace_ms": 100 }))["results"][0].clone();
    assert_eq!((&answer["status"], &answer["survivors"]), (&json!("survivors"), &json!([])), "{answer}");
    assert!(answer["note"].as_str().unwrap().contains("/proc"), "{answer}");
    assert_eq!(d.exited(&proc)["reason"], "killed");
    assert!(!hidden.is_dead());
    hidden.signal(libc::SIGKILL);
    assert!(hidden.dies_within(DEADLINE));
}
