//! A daemon that does not answer: what `toolctl` prints, and when it gives up.

use toold_test_support::rig::Daemon;
use toold_test_support::sys::Pidfd;

/// Before, both printed nothing for half a minute, and `wait` ended with 4.
#[test]
fn a_stopped_daemon_is_reported_with_its_pid_and_what_to_do() {
    let d = Daemon::start();
    let id = d.sh("exec sleep 1000");
    let pid = d.pid();
    let daemon = Pidfd::open(pid).unwrap();
    daemon.signal(libc::SIGSTOP);
    let remedy = format!("`kill -CONT {pid}` continues it");
    let waited = d.ctl(&["wait", &id, "--timeout", "1s"]);
    assert!(waited.code == 124 && waited.stderr.starts_with("toolctl: timed out after 1s: "), "{waited:?}");
    assert!(waited.stderr.contains(&remedy), "{waited:?}");
    for args in [&["list"][..], &["kill", &id]] {
        let output = d.ctl(args);
        assert_eq!(output.code, 4, "{args:?}: {output:?}");
        let lines: Vec<&str> = output.stderr.lines().collect();
        let notice = format!("toolctl: the daemon (pid {pid}) does not answer: it is stopped; {remedy}");
        assert!(lines.len() == 2 && lines[0] == notice, "{args:?}: {output:?}");
        assert!(lines[1].contains("no answer from") && lines[1].ends_with(&remedy), "{args:?}: {output:?}");
    }
    let doctor = d.ctl(&["doctor"]);
    assert!(doctor.code == 1 && doctor.stdout.contains(&format!("kill -CONT {pid}")), "{doctor:?}");
    daemon.signal(libc::SIGCONT);
    let listed = d.ctl(&["list"]);
    assert!(listed.code == 0 && listed.stderr.is_empty(), "{listed:?}");
}
