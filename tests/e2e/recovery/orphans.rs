//! A dead shim without a zygote above it: its tree dies with it, or `kill` answers that it may not have.

use serde_json::{Value, json};
use toold_test_support::procfs;
use toold_test_support::rig::{DEADLINE, Daemon, id};
use toold_test_support::sys::Pidfd;

const EXEC_SHIMS: &str = "shim = \"exec\"\n";

/// A process with a descendant in a session of its own, and one below that.
struct Victim {
    proc: String,
    shim: Pidfd,
    members: Vec<Pidfd>,
}

fn victim(d: &Daemon) -> Victim {
    let proc = d.sh("setsid sh -c 'echo ready; sleep 1000; :' & sh -c 'sleep 1000; :'; :");
    d.printed(&proc, "ready");
    d.eventually("the tree is complete", || tree(d, &proc).len() >= 4);
    let members = tree(d, &proc).into_iter().filter_map(Pidfd::open).collect();
    let shim = d.ok("inspect", json!({ "id": proc }))["shim_pid"].as_i64().unwrap() as i32;
    Victim { proc, shim: Pidfd::open(shim).unwrap(), members }
}

fn tree(d: &Daemon, proc: &str) -> Vec<i32> {
    let tree = d.ok("inspect", json!({ "id": proc }))["tree"].clone();
    tree.as_array().unwrap().iter().map(|m| m["pid"].as_i64().unwrap() as i32).collect()
}

fn zygote(d: &Daemon) -> Option<Pidfd> {
    let pid = d.ok("daemon.info", json!({}))["features"]["zygote_pid"].as_i64()?;
    Pidfd::open(pid as i32)
}

fn kill_zygote(d: &Daemon) {
    let zygote = zygote(d).unwrap();
    zygote.signal(libc::SIGKILL);
    assert!(zygote.dies_within(DEADLINE));
    d.eventually("the daemon knows that its zygote is dead", || self::zygote(d).is_none());
}

/// Kills the shim, and checks that nothing of its tree is left as soon as the process is `lost`.
fn check_nothing_is_left(d: &Daemon, victim: &Victim, what: &str) {
    victim.shim.signal(libc::SIGKILL);
    let p = d.exited(&victim.proc);
    assert_eq!(p["status"], "lost", "{what}: {p}");
    let alive: Vec<i32> = victim.members.iter().filter(|m| !m.is_dead()).map(|m| m.pid).collect();
    assert!(alive.is_empty(), "{what}: alive after the end was published: {alive:?}");
    let killed = d.ok("kill", json!({ "id": victim.proc }))["results"][0].clone();
    assert_eq!((&killed["status"], &killed["survivors"]), (&json!("already_exited"), &json!([])), "{what}");
    assert_eq!(killed.get("note"), None, "{what}: {killed}");
}

#[test]
fn orphans_of_a_killed_shim_die_without_a_zygote_too() {
    // They became children of pid 1 and lived on, and `kill` answered that nothing was left.
    for (config, kills_zygote) in [(EXEC_SHIMS, None), ("", Some("before")), ("", Some("after"))] {
        let d = Daemon::start_with(config, &[]);
        if kills_zygote == Some("before") {
            kill_zygote(&d);
        }
        let other = id(&d.ok("exec", json!({ "argv": ["/bin/cat"], "stdin": "pipe" })));
        let victims = [victim(&d), victim(&d)];
        if kills_zygote == Some("after") {
            kill_zygote(&d);
        }
        for victim in &victims {
            check_nothing_is_left(&d, victim, &format!("{config} {kills_zygote:?}"));
        }
        d.ok("submit", json!({ "id": other, "data": "still" }));
        d.printed(&other, "still");
        assert_eq!(d.run("exit 3")["exit_code"], 3);
        d.ok("kill", json!({ "id": other }));
        d.eventually("all that died is reaped", || procfs::children(d.pid()).is_empty());
    }
}

#[test]
fn orphans_of_a_killed_shim_die_below_the_zygote_of_an_earlier_daemon() {
    let mut d = Daemon::start();
    let victim = victim(&d);
    d.kill9();
    d.spawn();
    // Its shim answers, so it is adopted.
    d.ok("signal", json!({ "id": victim.proc, "signal": "SIGCONT" }));
    check_nothing_is_left(&d, &victim, "adopted");
}

#[test]
fn kill_claims_no_empty_tree_when_nothing_was_above_the_shim() {
    // No daemon and no zygote lived when the shim died: what left the session cannot be found.
    let mut d = Daemon::start_with(EXEC_SHIMS, &[]);
    let victim = victim(&d);
    d.kill9();
    victim.shim.signal(libc::SIGKILL);
    assert!(victim.shim.dies_within(DEADLINE));
    d.spawn();
    assert_eq!(d.exited(&victim.proc)["status"], "lost");
    for _ in 0..2 {
        let killed = d.ok("kill", json!({ "id": victim.proc }))["results"][0].clone();
        assert!(killed["note"].as_str().is_some_and(|note| note.contains("may be alive")), "{killed}");
        d.restart();
    }
    for member in victim.members {
        member.signal(libc::SIGKILL);
        assert!(member.dies_within(DEADLINE));
    }
}

#[test]
fn no_signal_but_sigkill_ends_zygote_spares_and_shims() {
    // SIGUSR1, SIGUSR2, SIGALRM and the real-time signals ended them.
    let d = Daemon::start();
    let cat = id(&d.ok("exec", json!({ "argv": ["/bin/cat"], "stdin": "pipe" })));
    let shim = d.ok("inspect", json!({ "id": cat }))["shim_pid"].as_i64().unwrap() as i32;
    let zygote = zygote(&d).unwrap();
    let mut victims: Vec<Pidfd> = procfs::children(zygote.pid).into_iter().filter_map(Pidfd::open).collect();
    assert!(victims.iter().any(|victim| victim.pid == shim));
    victims.push(zygote);
    for signal in (1..=64).filter(|signal| ![libc::SIGKILL, libc::SIGSTOP].contains(signal)) {
        victims.iter().for_each(|victim| victim.signal(signal));
    }
    d.ok("submit", json!({ "id": cat, "data": "still" }));
    d.printed(&cat, "still");
    for code in 0..8 {
        let p = d.run(&format!("grep -E 'Sig(Blk|Ign)' /proc/self/status; exit {code}"));
        assert_eq!(p["exit_code"], code, "{p}");
        let masks: Vec<&str> = p["output"].as_str().unwrap().split_whitespace().collect();
        assert_eq!(masks[1], "0000000000000000", "the program blocks nothing: {p}");
    }
    assert!(victims.iter().all(|victim| !victim.is_dead()));
}

#[test]
fn stray_signals_do_not_end_the_daemon_and_sigquit_stops_it_in_order() {
    let mut d = Daemon::start();
    let daemon = Pidfd::open(d.pid()).unwrap();
    for signal in [libc::SIGHUP, libc::SIGUSR1, libc::SIGUSR2, libc::SIGALRM, libc::SIGIO] {
        daemon.signal(signal);
        assert_eq!(d.run("exit 3")["exit_code"], Value::from(3), "after signal {signal}");
    }
    assert_eq!(d.stop(libc::SIGQUIT), 0);
}
