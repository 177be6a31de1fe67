//! Starting the daemon: flags, paths, `--check-config`, systemd notification and sockets.

use super::{notification, start_notified};
use serde_json::json;
use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::process::Stdio;
use toold_test_support::conn::Conn;
use toold_test_support::output::{Output, output_of};
use toold_test_support::rig::Daemon;
use toold_test_support::sys;

/// Runs `toold` with these arguments to its end.
fn toold(d: &Daemon, args: &[&str]) -> Output {
    let mut command = d.command();
    command.args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    output_of(command.spawn().unwrap())
}

#[test]
fn version_and_help_are_printed_and_nothing_starts() {
    let d = Daemon::prepare("", &[]);
    let version = toold(&d, &["--version"]);
    assert_eq!((version.code, version.stdout.as_str()), (0, concat!("toold ", env!("CARGO_PKG_VERSION"), "\n")));
    let help = toold(&d, &["--help"]);
    assert_eq!(help.code, 0);
    for flag in ["--socket", "--state-dir", "--config", "--log-format", "--check-config"] {
        assert!(help.stdout.contains(flag), "{flag} in {}", help.stdout);
    }
    assert_eq!(toold(&d, &["--no-such-flag"]).code, 2);
    assert!(!d.socket().exists() && !d.state().exists());
}

#[test]
fn check_config_reports_whether_the_file_is_valid_and_starts_nothing() {
    let good = Daemon::prepare("max_running = 10\n[env]\npass = [\"A\"]\n[watch]\nmin_interval_ms = 1\n", &[]);
    let check = toold(&good, &["--check-config"]);
    assert_eq!(check.code, 0, "{check:?}");
    assert!(!good.socket().exists());
    let none = Daemon::prepare("", &[]);
    assert_eq!(toold(&none, &["--check-config"]).code, 0, "a missing file is valid");
    for (config, names) in [
        ("max_runing = 10\n", "max_runing"),
        ("[retention]\nmax_agems = 1\n", "max_agems"),
        ("max_running = \"ten\"\n", "max_running"),
        ("max_running = -1\n", "max_running"),
        ("[env]\npass = 3\n", "pass"),
        ("max_running = = 3\n", "line 1"),
        ("[nosuchtable]\nx = 1\n", "nosuchtable"),
    ] {
        let d = Daemon::prepare(config, &[]);
        for args in [&["--check-config"][..], &[]] {
            let output = toold(&d, args);
            assert!(output.code != 0 && output.stderr.contains(names), "{config:?} {args:?}: {output:?}");
            assert!(output.stderr.contains("config.toml") && !output.stderr.contains("panicked"), "{output:?}");
        }
        assert!(!d.socket().exists(), "nothing starts with an invalid config");
    }
}

#[test]
fn a_config_file_that_is_given_by_name_must_exist() {
    let d = Daemon::prepare("", &[]);
    let path = d.root().join("no-such.toml");
    let output = toold(&d, &["--config", path.to_str().unwrap(), "--check-config"]);
    assert!(output.code != 0 && output.stderr.contains("no-such.toml"), "{output:?}");
}

#[test]
fn a_file_of_redaction_rules_that_cannot_be_used_is_named_by_the_check() {
    let d = Daemon::prepare("", &[]);
    let (config, rules) = (d.root().join("rules-config.toml"), d.root().join("rules.toml"));
    fs::write(&config, format!("[redact]\nrules = [{rules:?}]\n")).unwrap();
    let check = || toold(&d, &["--config", config.to_str().unwrap(), "--check-config"]);
    for text in [None, Some("[[rules]\n")] {
        if let Some(text) = text {
            fs::write(&rules, text).unwrap();
        }
        let output = check();
        assert!(output.code != 0 && output.stderr.contains("redact.rules: "), "{output:?}");
        assert!(output.stderr.contains("rules.toml"), "{output:?}");
    }
    fs::write(&rules, "[[rules]]\nid = \"x\"\nregex = \"x-[0-9]{8}\"\n").unwrap();
    assert_eq!(check().code, 0);
}

#[test]
fn flags_win_over_the_environment_and_the_environment_over_the_defaults() {
    let d = Daemon::prepare("", &[]);
    let at = |name: &str| d.root().join(name);
    for name in ["env.toml", "flag.toml"] {
        fs::write(at(name), format!("max_running = {}\n", if name == "env.toml" { 11 } else { 12 })).unwrap();
    }
    let ask = |flags: &[&str], running: u64, place: &str| {
        let mut command = d.command();
        command.env("TOOLD_SOCKET", at("env/s.sock")).env("TOOLD_STATE_DIR", at("env-state"));
        command.env("TOOLD_CONFIG", at("env.toml")).args(flags);
        let mut child = command.spawn().unwrap();
        let socket = at(place).join("s.sock");
        d.eventually("it answers", || Conn::open(&socket).is_ok());
        let mut conn = Conn::open(&socket).unwrap();
        let info = conn.call("daemon.info", json!({})).unwrap();
        assert_eq!(info["limits"]["max_running"], running);
        assert_eq!(info["paths"]["state_dir"], at(&format!("{place}-state")).to_str().unwrap());
        conn.call("daemon.shutdown", json!({})).unwrap();
        assert!(child.wait().unwrap().success());
    };
    ask(&[], 11, "env");
    let text = |name: &str| at(name).display().to_string();
    let flags = ["--socket", &text("flag/s.sock"), "--state-dir", &text("flag-state"), "--config", &text("flag.toml")];
    ask(&flags, 12, "flag");
    assert!(!d.socket().exists() && !d.state().exists(), "the default paths were not used");
}

#[test]
fn without_a_runtime_directory_the_socket_is_in_a_private_directory_of_tmpdir() {
    let d = Daemon::prepare("", &[]);
    let mut command = d.command();
    command.env_remove("XDG_RUNTIME_DIR");
    let mut child = command.spawn().unwrap();
    // Our uid is that of a file that we created.
    let uid = fs::metadata(d.root()).unwrap().uid();
    let socket = d.root().join(format!("tmp/toold-{uid}/toold.sock"));
    d.eventually("it answers", || Conn::open(&socket).is_ok());
    let mode = fs::metadata(socket.parent().unwrap()).unwrap().mode();
    assert_eq!(mode & 0o7777, 0o700);
    Conn::open(&socket).unwrap().call("daemon.shutdown", json!({})).unwrap();
    assert!(child.wait().unwrap().success());
}

#[test]
fn systemd_is_notified_of_readiness_and_of_the_stop() {
    let d = Daemon::prepare("", &[]);
    let (mut child, systemd) = start_notified(&d);
    let receive = |message: &str| while !notification(&systemd).iter().any(|line| line == message) {};
    receive("READY=1");
    let mut conn = Conn::open(&d.socket()).expect("a ready daemon answers");
    let p = conn.call("exec", json!({ "argv": ["/usr/bin/env"], "env_mode": "inherit", "yield_ms": 30000 })).unwrap();
    assert!(!p["output"].as_str().unwrap().contains("NOTIFY_SOCKET"), "a child could notify systemd for the daemon");
    sys::Pidfd::open(child.id() as i32).unwrap().signal(libc::SIGTERM);
    receive("STOPPING=1");
    assert!(child.wait().unwrap().success());
}

#[test]
fn a_systemd_socket_is_served_and_left_in_place() {
    let mut d = Daemon::prepare("", &[]);
    let dir = d.socket().parent().unwrap().to_path_buf();
    fs::create_dir(&dir).unwrap();
    let listener = UnixListener::bind(d.socket()).unwrap();
    // As in the unit: DirectoryMode=0700, SocketMode=0600.
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    fs::set_permissions(d.socket(), fs::Permissions::from_mode(0o600)).unwrap();
    // A call from before the daemon runs waits in the queue of the socket.
    let mut early = d.conn();
    let n = early.request("daemon.info", json!({}));
    // LISTEN_PID must be the daemon's own pid, which the shell that becomes it knows.
    d.before = Some("export LISTEN_PID=$$ LISTEN_FDS=1 LISTEN_FDNAMES=toold".into());
    d.socket_stays = true;
    let mut command = d.command();
    sys::give_fd(&mut command, listener.as_raw_fd(), 3);
    d.spawn_as(command);
    assert_eq!(early.answer(n).unwrap()["pid"], d.pid());
    let p = d.ok("exec", json!({ "argv": ["/usr/bin/env"], "env_mode": "inherit", "yield_ms": 30000 }));
    assert!(!p["output"].as_str().unwrap().contains("LISTEN_"), "a child could take the socket for its own: {p}");
    let fds = d.sh_with("exec ls /proc/self/fd", json!({ "yield_ms": 30000 }));
    assert_eq!(fds["output"], "0\n1\n2\n3\n", "the listening socket reached a child");
    assert_eq!(d.stop(libc::SIGTERM), 0);
    assert!(d.socket().exists(), "systemd owns it and starts the daemon again for the next call");
    drop(listener);
    d.before = None;
    fs::remove_file(d.socket()).unwrap();
}

#[test]
fn a_socket_for_another_pid_is_not_taken() {
    let mut d = Daemon::prepare("", &[("LISTEN_PID", "1"), ("LISTEN_FDS", "1")]);
    d.spawn();
    assert_eq!(d.ok("daemon.info", json!({}))["paths"]["socket"], d.socket().to_str().unwrap());
}
