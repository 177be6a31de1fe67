//! `daemon.info` and `daemon.shutdown`, signals, access to the socket, and one daemon per state directory.

use serde_json::json;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use toold_test_support::conn::Conn;
use toold_test_support::rig::{Daemon, skip_unless};
use toold_test_support::sys;

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o7777
}

#[test]
fn info_reports_version_pid_counts_limits_features_and_paths() {
    let d = Daemon::start_with("max_running = 77\n[retention]\nmax_count = 5\n", &[]);
    d.sh("exec sleep 1000");
    d.run("exit 0");
    let info = d.ok("daemon.info", json!({}));
    assert_eq!((&info["version"], &info["pid"]), (&json!(env!("CARGO_PKG_VERSION")), &json!(d.pid())));
    let counts = &info["counts"];
    assert_eq!((&counts["running"], &counts["exited"], &counts["lost"]), (&json!(1), &json!(1), &json!(0)));
    assert!(counts["connections"].as_u64().unwrap() >= 1);
    for (key, value) in [
        ("max_running", 77u64),
        ("max_message_bytes", 16_777_216),
        ("max_wait_ms", 3_600_000),
        ("log_max_bytes", 268_435_456),
        ("retention.max_count", 5),
        ("retention.max_age_ms", 86_400_000),
        ("retention.max_bytes", 4_294_967_296),
    ] {
        assert_eq!(info["limits"][key], value, "{key} in {}", info["limits"]);
    }
    for feature in ["landlock", "cgroup", "pidfd"] {
        let listed = info["features"].as_object().unwrap().keys().any(|name| name.contains(feature));
        assert!(listed, "{feature} in {}", info["features"]);
    }
    assert_eq!(info["paths"]["socket"], d.socket().to_str().unwrap());
    assert_eq!(info["paths"]["state_dir"], d.state().to_str().unwrap());
    assert_eq!(info["paths"]["config"], d.root().join("config/toold/config.toml").to_str().unwrap());
    assert_eq!(info["damaged"], json!([]));
    assert!(info["daemon"]["rss_bytes"].as_u64().unwrap() > 0 && info["usage"]["processes"].as_u64().unwrap() >= 1);
}

#[test]
fn shutdown_leaves_the_processes_running_unless_it_asks_to_kill() {
    let mut d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let program = d.program(&proc);
    assert_eq!(d.ok("daemon.shutdown", json!({})), json!({ "stopping": true, "killed": [] }));
    assert_eq!(d.ended(), 0);
    assert!(!d.socket().exists(), "the daemon removes its socket");
    assert!(!program.is_dead());
    d.spawn();
    assert_eq!(d.process(&proc)["status"], "running");
    let answer = d.ok("daemon.shutdown", json!({ "kill": true }));
    assert!(program.is_dead(), "the answer comes after the kill");
    assert_eq!((&answer["killed"][0]["id"], &answer["killed"][0]["status"]), (&json!(proc), &json!("killed")));
    assert_eq!(d.ended(), 0);
    d.spawn();
    let p = d.process(&proc);
    assert_eq!((&p["exit_code"], &p["reason"]), (&json!(143), &json!("killed")));
}

#[test]
fn sigterm_and_sigint_stop_it_like_shutdown() {
    let mut d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let program = d.program(&proc);
    for signal in [libc::SIGTERM, libc::SIGINT] {
        assert_eq!(d.stop(signal), 0, "a clean exit");
        assert!(!d.socket().exists() && !program.is_dead());
        d.spawn();
        assert_eq!(d.process(&proc)["status"], "running");
    }
}

#[test]
fn a_stop_does_not_wait_for_pending_calls() {
    let mut d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let mut conn = d.conn();
    conn.request("wait", json!({ "id": proc, "timeout_ms": 3_000_000 }));
    // The same connection answers, so the wait has been read.
    conn.call("daemon.info", json!({})).unwrap();
    assert_eq!(d.stop(libc::SIGTERM), 0);
    while conn.try_recv().is_some() {}
    d.spawn();
}

#[test]
fn the_socket_and_its_directory_are_private() {
    let d = Daemon::start();
    assert_eq!((mode(d.socket().parent().unwrap()), mode(&d.socket())), (0o700, 0o600));
    assert_eq!(mode(&d.state()) & 0o077, 0, "no other user can read the state");
    let proc = d.sh("echo private; exec sleep 1000");
    d.printed(&proc, "private");
    for file in toold_test_support::rig::files(&d.state()) {
        assert_eq!(mode(&file) & 0o077, 0, "{}", file.display());
    }
}

#[test]
fn a_directory_that_others_may_enter_is_made_private_or_rejected() {
    let mut d = Daemon::prepare("", &[]);
    let dir = d.socket().parent().unwrap().to_path_buf();
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
    let mut child = d.command().spawn().unwrap();
    let fd = sys::Pidfd::open(child.id() as i32).unwrap();
    d.eventually("it answers or ends", || fd.is_dead() || Conn::open(&d.socket()).is_ok());
    if fd.is_dead() {
        assert!(!child.wait().unwrap().success() && d.log().contains(dir.to_str().unwrap()), "{}", d.log());
        fs::set_permissions(&dir, fs::Permissions::from_mode(0o700)).unwrap();
    } else {
        assert_eq!(mode(&dir), 0o700, "exactly 0700");
        fd.signal(libc::SIGTERM);
        child.wait().unwrap();
    }
    d.spawn();
    assert_eq!(mode(&dir), 0o700);
}

#[test]
fn a_peer_of_another_uid_is_rejected_whatever_the_file_modes() {
    if skip_unless(sys::is_root(), "another uid needs root") {
        return;
    }
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let socket = d.socket();
    for path in [d.root(), &d.root().join("run"), socket.parent().unwrap()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::set_permissions(&socket, fs::Permissions::from_mode(0o666)).unwrap();
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "kill", "params": { "all": true } });
    let note = json!({ "jsonrpc": "2.0", "method": "kill", "params": { "all": true } });
    for message in [call.clone(), json!([call]), note] {
        let answer = sys::as_uid(65534, || {
            let mut conn = Conn::open(&socket).expect("the file modes allow the connection");
            conn.offer(format!("{message}\n").as_bytes());
            conn.try_recv()
        });
        let result = answer.as_ref().and_then(|a| a.get("result"));
        assert!(
            result.is_none() && !answer.as_ref().is_some_and(|a| a.is_array() && a[0].get("result").is_some()),
            "{answer:?}"
        );
    }
    let http =
        sys::as_uid(65534, || crate::api::framing::http_raw(&socket, crate::api::framing::post(&call).as_bytes()));
    assert!(!http.contains("\"result\""), "{http}");
    assert_eq!(d.process(&proc)["status"], "running", "no call of another user has an effect");
}

#[test]
fn a_second_daemon_on_the_same_state_fails_and_the_first_keeps_running() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    for socket in [d.root().join("other/toold.sock"), d.socket()] {
        let mut command = d.command();
        command.arg("--socket").arg(&socket).stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let second = toold_test_support::output::output_of(command.spawn().unwrap());
        assert!(second.code != 0 && !second.stderr.contains("panicked"), "{second:?}");
        assert!(
            second.stderr.to_lowercase().contains("another") || second.stderr.contains(d.state().to_str().unwrap()),
            "{second:?}"
        );
        assert_eq!(d.process(&proc)["status"], "running");
        assert!(d.socket().exists());
    }
}

#[test]
fn a_second_daemon_with_another_state_does_not_take_the_socket() {
    let d = Daemon::start();
    let mut command = d.command();
    command.arg("--state-dir").arg(d.root().join("other-state")).stderr(std::process::Stdio::piped());
    let second = toold_test_support::output::output_of(command.spawn().unwrap());
    assert_ne!(second.code, 0, "{second:?}");
    assert_eq!(d.ok("daemon.info", json!({}))["pid"], d.pid());
}

#[test]
fn the_socket_of_a_dead_daemon_is_replaced() {
    let mut d = Daemon::start();
    d.kill9();
    assert!(d.socket().exists(), "kill -9 leaves the file");
    d.spawn();
    assert_eq!(d.ok("daemon.info", json!({}))["pid"], d.pid());
}

#[test]
fn the_log_is_text_or_json_lines_without_output_or_arguments() {
    let mut d = Daemon::prepare("", &[("RUST_LOG", "trace")]);
    let mut command = d.command();
    command.args(["--log-format", "json"]);
    d.spawn_as(command);
    let proc = d.sh("echo very-$((40+2))-secret-output; # argument-secret-43");
    d.closed(&proc);
    assert_eq!(d.stop(libc::SIGTERM), 0);
    let log = d.log();
    assert!(!log.is_empty() && log.lines().all(|l| serde_json::from_str::<serde_json::Value>(l).is_ok()), "{log}");
    assert!(!log.contains("very-42-secret-output") && !log.contains("argument-secret-43"), "{log}");
    d.spawn();
}

#[test]
fn discovery_lists_every_method() {
    let d = Daemon::start();
    let document = d.ok("rpc.discover", json!({}));
    assert!(document["openrpc"].as_str().unwrap().starts_with("1."));
    let mut names: Vec<&str> =
        document["methods"].as_array().unwrap().iter().map(|m| m["name"].as_str().unwrap()).collect();
    names.sort_unstable();
    let expected = "approvals.decide approvals.get approvals.list close daemon.info daemon.shutdown events.ack \
                    events.next events.subscribe events.unsubscribe exec forget fs.edit fs.list fs.read \
                    fs.search fs.write grants.list grants.revoke inspect kernel.close kernel.interrupt \
                    kernel.open kernel.reset kernel.run kill list log patch.apply patch.revert pause \
                    policy.check policy.reload policy.suggest poll queues.list queues.set resize restart resume \
                    rpc.discover sandbox.probe screen script.calls script.cancel script.result script.run \
                    session.active session.configure session.end session.get signal stage.commit stage.diff \
                    stage.discard submit tools.call tools.list tools.refresh tools.register tools.unregister \
                    wait write";
    assert_eq!(names, expected.split_whitespace().collect::<Vec<_>>());
    for method in document["methods"].as_array().unwrap() {
        assert!(method["params"].is_array() && method["result"].is_object(), "{method}");
        assert!(!method["errors"].as_array().unwrap().is_empty() && !method["examples"].as_array().unwrap().is_empty());
    }
}

#[test]
fn an_idle_daemon_does_not_wake_up() {
    let d = Daemon::start();
    d.sh("exec sleep 1000");
    let switches = || -> u64 {
        let tasks = fs::read_dir(format!("/proc/{}/task", d.pid())).unwrap();
        let status = tasks.map(|t| fs::read_to_string(t.unwrap().path().join("status")).unwrap_or_default());
        let lines: Vec<String> = status.flat_map(|s| s.lines().map(String::from).collect::<Vec<_>>()).collect();
        lines.iter().filter_map(|l| l.strip_prefix("voluntary_ctxt_switches:")?.trim().parse::<u64>().ok()).sum()
    };
    let daemon = sys::Pidfd::open(d.pid()).unwrap();
    d.eventually("the sandbox was checked", || d.ok("daemon.info", json!({}))["sandbox"].is_object());
    // The connection of the call is still closing, and a second later the writeback of its event starts.
    assert!(!daemon.dies_within(std::time::Duration::from_millis(2000)));
    let before = switches();
    assert!(!daemon.dies_within(std::time::Duration::from_secs(2)), "the daemon stopped by itself");
    let woken = switches().saturating_sub(before);
    assert!(woken <= 2, "{woken} wake-ups in two idle seconds");
}
