//! Files that the daemon needs are taken away while it runs: its socket, the directory of that, its lock file.

use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::process::Stdio;
use toold_test_support::output::output_of;
use toold_test_support::rig::Daemon;
use toold_test_support::sys::Pidfd;

/// Before, `toolctl` failed from then on: the daemon listened on a socket without a name, and kept others from starting.
#[test]
fn a_daemon_whose_socket_or_directory_was_removed_is_reachable_again() {
    let d = Daemon::start();
    let id = d.sh("exec sleep 1000");
    let (socket, dir, run) = (d.socket(), d.root().join("run/toold"), d.root().join("run"));
    let mut early = d.conn();
    let ways: [(&str, &dyn Fn()); 6] = [
        ("the socket was removed", &|| fs::remove_file(&socket).unwrap()),
        ("the socket was moved", &|| fs::rename(&socket, run.join("elsewhere")).unwrap()),
        ("the directory was removed", &|| fs::remove_dir_all(&dir).unwrap()),
        ("the directory was moved", &|| fs::rename(&dir, run.join("other")).unwrap()),
        ("the directory above was moved", &|| fs::rename(&run, d.root().join("run2")).unwrap()),
        ("everything was removed", &|| fs::remove_dir_all(&run).unwrap()),
    ];
    for (what, take_away) in ways {
        take_away();
        let listed = d.ctl(&["list", "--json"]);
        assert!(listed.code == 0 && listed.stdout.contains(&id), "{what}: {listed:?}");
        let pid = d.ok("daemon.info", json!({}))["pid"].clone();
        assert_eq!(pid, d.pid(), "{what}: the same daemon answers");
        let modes = [&dir, &socket].map(|path| fs::metadata(path).unwrap().permissions().mode() & 0o777);
        assert_eq!(modes, [0o700, 0o600], "{what}");
    }
    assert_eq!(early.call("daemon.info", json!({})).unwrap()["pid"], d.pid(), "an open connection goes on");
}

/// Before, a stopping daemon removed whatever was at its path.
#[test]
fn a_socket_that_another_daemon_put_in_its_place_is_left_alone() {
    let mut d = Daemon::start();
    let other = d.root().join("run/toold/other.sock");
    let listener = UnixListener::bind(&other).unwrap();
    fs::rename(&other, d.socket()).unwrap();
    assert_eq!(d.stop(libc::SIGTERM), 0);
    assert!(d.socket().exists(), "it belongs to another daemon");
    drop(listener);
    fs::remove_file(d.socket()).unwrap();
}

/// Before, a signal that came as soon as a client could connect ended it without its own stop, and the socket stayed.
#[test]
fn a_daemon_that_is_not_ready_stops_at_once_and_loses_nothing() {
    let mut d = Daemon::prepare("", &[]);
    let hooks = d.root().join("hooks");
    fs::create_dir(&hooks).unwrap();
    d.env.push(("TOOLD_HOOKS".into(), hooks.display().to_string()));
    d.spawn();
    let process = d.sh("exec sleep 1000");
    d.kill9();
    let held = hooks.join("recovery.look");
    fs::write(&held, "").unwrap();
    let mut starting = d.command().spawn().unwrap();
    d.eventually("it looks at its records", || hooks.join("recovery.look.hit").exists());
    assert!(d.socket().exists());
    Pidfd::open(starting.id() as i32).unwrap().signal(libc::SIGTERM);
    assert_eq!(starting.wait().unwrap().code(), Some(0));
    assert!(!d.socket().exists());
    fs::remove_file(&held).unwrap();
    d.spawn();
    assert_eq!(d.process(&process)["status"], "running");
}

/// Before, a second daemon got a lock file of its own, and both ran on one state directory.
#[test]
fn a_second_daemon_is_refused_also_without_the_lock_file() {
    let d = Daemon::start();
    let lock = d.state().join("lock");
    for _ in 0..20 {
        fs::remove_file(&lock).unwrap();
        let mut second = d.command();
        second.arg("--socket").arg(d.root().join("second/toold.sock")).stderr(Stdio::piped());
        let refused = output_of(second.spawn().unwrap());
        assert!(refused.code == 1 && refused.stderr.contains("has this state directory"), "{refused:?}");
        d.eventually("the lock file is there again", || {
            fs::read_to_string(&lock).is_ok_and(|text| text == format!("{}\n", d.pid()))
        });
    }
    assert_eq!(d.run("exit 3")["exit_code"], 3);
}

/// Before, the message had the time that was left after the restart.
#[test]
fn a_wait_over_a_restart_reports_the_time_that_was_given() {
    let mut d = Daemon::start();
    let id = d.sh("exec sleep 1000");
    let waiting = d.ctl_command(&["wait", &id, "--timeout", "3s"]).spawn().unwrap();
    d.eventually("it waits", || {
        d.ok("daemon.info", json!({}))["counts"]["connections"].as_u64().is_some_and(|n| n > 1)
    });
    d.kill9();
    d.spawn();
    let output = output_of(waiting);
    let timed_out = "toolctl: timed out after 3s; the process keeps running\n";
    assert!(output.code == 124 && output.stderr.ends_with(timed_out), "{output:?}");
}

/// Before, 1 of 60 failed: the next daemon found the lock of the one that was ending, and gave up.
#[test]
fn a_call_right_after_a_shutdown_gets_a_daemon_of_its_own() {
    let d = Daemon::prepare("", &[]);
    for n in 0..60 {
        let started = d.ctl(&["exec", "--", "/bin/true"]);
        assert_eq!(started.code, 0, "call {n}: {started:?}");
        let stopped = d.ctl(&["shutdown"]);
        assert_eq!(stopped.code, 0, "shutdown {n}: {stopped:?}");
    }
    // The rig ends the daemon that it finds, which must not be one that is ending already.
    assert_eq!(d.ctl(&["info"]).code, 0);
}
