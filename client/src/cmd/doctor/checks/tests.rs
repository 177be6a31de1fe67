//! Facts in, severities out.

use super::*;
use crate::blocking::CallError;
use serde_json::json;
use std::io;

fn info(changes: serde_json::Value) -> Box<DaemonInfoResult> {
    let mut document = crate::testing::info(1, 2);
    document["version"] = json!(VERSION);
    document["damaged"] = json!([]);
    document["features"] = json!({"pidfd": true, "pidfd_exit": true, "proc_children": true, "zygote": true,
        "landlock_abi": 7, "cgroup": {"memory": "cgroup2", "cpu": "cgroup2", "pids": "cgroup2"}});
    for (key, value) in changes.as_object().into_iter().flatten() {
        document[key] = value.clone();
    }
    Box::new(serde_json::from_value(document).expect("a whole result"))
}

/// Returns the facts of a machine without problems.
fn good() -> Facts {
    let unit = "LoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\nMainPID=9\nListen=/r/s (Stream)";
    Facts {
        uid: Some(1000),
        daemon: Ok(Some(info(json!({})))),
        holder: Some((9, None)),
        socket: PathState { path: "/r/s".into(), kind: PathKind::Socket { uid: 1000, mode: 0o600 } },
        socket_dir: PathState { path: "/r".into(), kind: PathKind::Dir { uid: 1000, mode: 0o700 } },
        state: Some(PathState { path: "/d".into(), kind: PathKind::Dir { uid: 1000, mode: 0o700 } }),
        free: Some(50 << 30),
        manager: true,
        units: Ok((Unit::parse(unit), Unit::parse(unit))),
        linger: Linger::On,
        group: Some(Group { path: "/a/toold.service/daemon".into(), owner: Some(1000) }),
        program: Some("/bin/toold".into()),
        config: Some(super::super::start::Config { path: None, error: None }),
        state_error: None,
        socket_error: None,
    }
}

/// Returns every finding that is not ok, as `severity name fix`.
fn wrong(facts: &Facts) -> Vec<String> {
    let checks = all(facts).into_iter().filter(|check| check.severity != Severity::Ok);
    checks.map(|c| format!("{:?} {}: {}", c.severity, c.name, c.fix.unwrap_or_default())).collect()
}

#[test]
fn a_good_machine_has_no_line_that_is_not_ok() {
    assert_eq!(wrong(&good()), Vec::<String>::new());
}

#[test]
fn no_daemon_is_not_a_problem_while_one_can_be_started() {
    let lost = |kind: io::ErrorKind| CallError::Unreachable { path: "/r/s".into(), source: kind.into() };
    let missing = PathState { path: "/r/s".into(), kind: PathKind::Missing };
    let none =
        Facts { daemon: Err(lost(io::ErrorKind::NotFound)), socket: missing, holder: None, group: None, ..good() };
    assert_eq!(wrong(&none), Vec::<String>::new());
    assert_eq!(wrong(&Facts { daemon: Ok(None), group: None, ..good() }), Vec::<String>::new());
    let alone = Facts { program: None, ..none };
    assert_eq!(wrong(&alone), ["Problem autostart: cargo install --path .   # puts both side by side"]);
    let denied = Facts { daemon: Err(lost(io::ErrorKind::PermissionDenied)), group: None, ..good() };
    assert_eq!(wrong(&denied), ["Problem daemon: toolctl service restart"]);
}

/// Before, doctor reported that none runs and that nothing is wrong, while every call failed.
#[test]
fn a_daemon_that_holds_the_state_directory_and_cannot_be_reached_is_a_problem() {
    let lost = || CallError::Unreachable { path: "/r/s".into(), source: io::ErrorKind::ConnectionRefused.into() };
    let stuck = Facts { daemon: Err(lost()), holder: Some((12, None)), group: None, ..good() };
    let fix = "kill 12   # its processes keep running, and the next call starts another";
    assert_eq!(wrong(&stuck), [format!("Problem daemon: {fix}")]);
    let elsewhere = Facts { daemon: Err(lost()), holder: Some((12, Some("/q".into()))), group: None, ..good() };
    assert_eq!(wrong(&elsewhere), ["Problem daemon: export TOOLD_SOCKET=/q"]);
}

#[test]
fn wrong_modes_owners_and_files_are_problems_with_a_fix() {
    let open = PathState { path: "/r".into(), kind: PathKind::Dir { uid: 1000, mode: 0o755 } };
    let theirs = PathState { path: "/r/s".into(), kind: PathKind::Socket { uid: 7, mode: 0o600 } };
    let file = Some(PathState { path: "/d".into(), kind: PathKind::Other });
    assert_eq!(
        wrong(&Facts { socket_dir: open, socket: theirs, state: file, ..good() }),
        ["Problem directory: chmod 700 /r", "Problem socket: sudo chown $(id -u) /r/s", "Problem state: mv /d /d.away"]
    );
}

#[test]
fn an_old_daemon_and_a_full_disk_are_reported() {
    let old = Facts { daemon: Ok(Some(info(json!({"version": "0.0.1"})))), free: Some(1 << 20), ..good() };
    let printed = all(&old);
    let text = format!("toolctl is {VERSION}, but the daemon that runs is 0.0.1");
    assert!(printed.contains(&warning("version", text, "toolctl service restart || toolctl shutdown")), "{printed:?}");
    assert!(wrong(&old).contains(&"Problem disk: toolctl forget --older-than 1h".into()));
    assert_eq!(wrong(&Facts { free: Some(500 << 20), ..good() }), ["Warning disk: toolctl forget --older-than 1h"]);
}

#[test]
fn each_missing_feature_is_reported_with_its_cost() {
    let poor = json!({"pidfd": true, "pidfd_exit": false, "proc_children": true, "zygote": true, "landlock_abi": 0,
        "cgroup": {"pids": "cgroup1"}});
    let facts = Facts { daemon: Ok(Some(info(json!({"features": poor})))), ..good() };
    let printed: Vec<String> = all(&facts).into_iter().filter(|c| c.name == "kernel").map(|c| c.text).collect();
    assert_eq!(
        printed,
        [
            "no pidfd_exit: the exit of a process whose shim was killed is `lost` and not known",
            "no landlock: jobs cannot be confined to files",
            "control groups lack what --memory, --cpu need: they are not enforced, and `exec` reports that",
        ]
    );
}

#[test]
fn lingering_and_units_are_looked_at_where_there_is_a_systemd() {
    let failed = || Unit::parse("LoadState=loaded\nActiveState=failed\nSubState=failed\nResult=exit-code\n");
    let facts = Facts { linger: Linger::Off, units: Ok((failed(), failed())), ..good() };
    let printed = wrong(&facts);
    assert!(printed[0].starts_with("Problem unit: toolctl service logs"), "{printed:?}");
    assert_eq!(printed[1], "Warning lingering: loginctl enable-linger");
    let without =
        Facts { linger: Linger::Unknown, manager: false, units: Err("there is no systemd here".into()), ..good() };
    assert_eq!(wrong(&without), Vec::<String>::new());
    let other_socket = Unit::parse("LoadState=loaded\nActiveState=active\nListen=/other (Stream)\n");
    let facts = Facts { units: Ok((other_socket.clone(), other_socket)), ..good() };
    assert_eq!(wrong(&facts), ["Warning unit: unset TOOLD_SOCKET"]);
    let no_leaf = Some(Group { path: "/a/toold.service".into(), owner: Some(1000) });
    let facts = Facts { group: no_leaf, ..good() };
    assert_eq!(wrong(&facts), ["Warning cgroups: toolctl service install   # with systemd 254 or later"]);
    // The broken code offered it where no systemd runs.
    let facts = Facts { manager: false, units: Err("there is no systemd here".into()), ..facts };
    assert!(wrong(&facts)[0].starts_with("Warning cgroups: run the daemon as root"), "{:?}", wrong(&facts));
}

#[test]
fn no_systemd_is_well_and_one_that_does_not_answer_is_not() {
    let printed = "Failed to connect to bus: No such file or directory";
    let facts = Facts { units: Err(printed.into()), manager: false, ..good() };
    assert_eq!(wrong(&facts), Vec::<String>::new());
    let unit = all(&facts).into_iter().find(|check| check.name == "unit").expect("a check of the unit");
    assert!(unit.text.starts_with("none: ") && !unit.text.contains("Failed"), "well and failed at once: {}", unit.text);
    assert_eq!(wrong(&Facts { manager: true, ..facts }), ["Warning unit: systemctl --user status"]);
}
