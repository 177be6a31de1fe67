//! `doctor`: its checks, with a daemon and without.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use toold_test_support::rig::Daemon;

/// The checks with this name.
fn checks(report: &Value, name: &str) -> Vec<Value> {
    let all = report["checks"].as_array().unwrap();
    all.iter().filter(|check| check["name"] == name).cloned().collect()
}

fn doctor(d: &Daemon) -> (i32, Value) {
    let output = d.ctl(&["doctor", "--json"]);
    assert_eq!(output.stderr, "", "{output:?}");
    (output.code, serde_json::from_str(&output.stdout).unwrap())
}

#[test]
fn without_a_daemon_it_reports_that_and_starts_none() {
    let d = Daemon::prepare("", &[]);
    let (code, report) = doctor(&d);
    assert_eq!(code, 0, "{report}");
    assert_eq!(checks(&report, "daemon")[0]["text"], "none runs; the first call starts one");
    assert!(!d.socket().exists() && d.marked().is_empty());
    let output = d.ctl(&["doctor"]);
    assert!(output.code == 0 && output.stdout.lines().all(|line| !line.starts_with("problem")), "{output:?}");
}

#[test]
fn with_a_daemon_it_checks_versions_paths_and_the_kernel() {
    let d = Daemon::start();
    let (code, report) = doctor(&d);
    assert_eq!(code, 0, "{report}");
    let version = concat!("toolctl and toold ", env!("CARGO_PKG_VERSION"));
    assert_eq!(
        checks(&report, "version")[0],
        json!({"name": "version", "verdict": "ok", "text": version, "mend": null, "severity": "ok", "fix": null})
    );
    for name in ["daemon", "directory", "socket", "state", "disk", "autostart"] {
        assert_eq!(checks(&report, name)[0]["verdict"], "ok", "{report}");
    }
    assert!(!checks(&report, "kernel").is_empty() && checks(&report, "cgroups").len() == 1, "{report}");
}

#[test]
fn an_open_socket_is_a_problem_with_the_command_that_fixes_it() {
    let d = Daemon::start();
    fs::set_permissions(d.socket(), fs::Permissions::from_mode(0o666)).unwrap();
    let (code, report) = doctor(&d);
    let fix = checks(&report, "socket")[0]["fix"].as_str().unwrap().to_owned();
    assert_eq!((code, report["verdict"].as_str()), (1, Some("problem")), "{report}");
    let mut arguments = fix.split(' ');
    let fixed = std::process::Command::new(arguments.next().unwrap()).args(arguments).status();
    assert!(fixed.unwrap().success(), "{fix}");
    assert_eq!(doctor(&d).0, 0);
}

/// The broken code reported that nothing is wrong, and the next call failed.
#[test]
fn a_config_that_the_daemon_would_refuse_is_a_problem_also_while_an_older_daemon_runs() {
    let refused = |d: &Daemon| {
        let (code, report) = doctor(d);
        let check = &checks(&report, "config")[0];
        assert_eq!((code, &check["severity"]), (1, &json!("problem")), "{report}");
        assert!(check["text"].as_str().unwrap().contains("max_runing"), "{report}");
    };
    let d = Daemon::prepare("max_runing = 5\n", &[]);
    refused(&d);
    assert!(!d.socket().exists(), "it starts nothing");
    let d = Daemon::start();
    assert_eq!(checks(&doctor(&d).1, "config")[0]["text"], "no file; the defaults");
    fs::write(d.root().join("config/toold/config.toml"), "max_runing = 5\n").unwrap();
    refused(&d);
    let other = d.root().join("other.toml");
    fs::write(&other, "max_running = 5\n").unwrap();
    let output = d.ctl(&["--config", other.to_str().unwrap(), "doctor"]);
    assert!(output.code == 0 && output.stdout.contains("other.toml, checked"), "{output:?}");
}

/// The broken code reported that the state directory is made at the start, and advised removing processes.
#[test]
fn a_place_where_the_daemon_cannot_write_is_a_problem() {
    let mut d = Daemon::prepare("", &[]);
    d.env.push(("TOOLD_STATE_DIR".into(), "/proc/toold".into()));
    let (code, report) = doctor(&d);
    let check = &checks(&report, "state")[0];
    assert_eq!((code, &check["severity"]), (1, &json!("problem")), "{report}");
    assert!(check["text"].as_str().unwrap().starts_with("cannot write in /proc: "), "{report}");
    assert!(checks(&report, "disk").is_empty(), "removing processes does not help: {report}");
    let mut d = Daemon::prepare("", &[]);
    d.env.push(("XDG_RUNTIME_DIR".into(), d.root().join("no/run").display().to_string()));
    let (code, report) = doctor(&d);
    assert_eq!(code, 1, "{report}");
    assert!(checks(&report, "directory")[0]["text"].as_str().unwrap().ends_with("no/run does not exist"), "{report}");
}

/// Before, doctor reported that none runs and that nothing is wrong, while no other daemon could start.
#[test]
fn a_daemon_of_this_state_directory_that_is_elsewhere_is_a_problem() {
    let d = Daemon::start();
    let other = d.root().join("run/other/toold.sock").display().to_string();
    let output = d.ctl(&["--socket", &other, "doctor"]);
    let fix = format!("export TOOLD_SOCKET={}", d.socket().display());
    assert!(output.code == 1 && output.stdout.contains(&fix), "{output:?}");
    assert!(output.stdout.contains(&format!("(pid {})", d.pid())), "{output:?}");
    assert!(!output.stdout.contains("none runs") && !output.stdout.contains("nothing is wrong"), "{output:?}");
}
