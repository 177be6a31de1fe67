//! `inspect`: the tree with its resource usage, the path of the log, the names of the environment.

use serde_json::{Value, json};
use std::path::Path;
use toold_test_support::rig::{Daemon, id};
use toold_test_support::sys::Pidfd;

#[test]
fn the_tree_lists_each_member_with_cpu_and_memory() {
    let d = Daemon::start();
    let gate = d.gate("report");
    let proc = d.sh(&format!(
        "setsid sh -c '{}; exec sleep 1000' & sh -c 'i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done; echo burnt; exec sleep 1000' & wait",
        gate.send("out")
    ));
    d.printed(&proc, "burnt");
    gate.recv(toold_test_support::rig::DEADLINE);
    d.eventually("both have become sleep", || {
        let inspect = d.ok("inspect", json!({ "id": proc }));
        let tree = inspect["tree"].as_array().unwrap();
        tree.iter().filter(|m| m["command"].as_str().unwrap().contains("sleep 1000")).count() >= 2
    });
    let inspect = d.ok("inspect", json!({ "id": proc }));
    let tree = inspect["tree"].as_array().unwrap();
    assert_eq!(tree.len(), 3, "{tree:#?}");
    assert!(tree.iter().any(|m| m["pid"] == inspect["pid"]), "the program itself is a member");
    for member in tree {
        assert!(member["rss_bytes"].as_u64().unwrap() > 0 && member["threads"] == 1, "{member}");
        assert!(member["ppid"].as_i64().unwrap() > 1 && member["state"].as_str().unwrap().len() == 1, "{member}");
    }
    assert_eq!(inspect["usage"]["processes"], 3);
    assert!(inspect["usage"]["cpu_ms"].as_u64().unwrap() > 0, "{}", inspect["usage"]);
    assert!(inspect["usage"]["rss_bytes"].as_u64().unwrap() > 100_000);
}

#[test]
fn the_log_is_a_file_of_plain_bytes_that_is_readable_without_the_daemon() {
    let mut d = Daemon::start();
    let proc = id(&d.run("echo out; printf '\\377\\000'"));
    let inspect = d.ok("inspect", json!({ "id": proc }));
    d.kill9();
    let path = Path::new(inspect["log_path"].as_str().unwrap());
    assert!(path.starts_with(d.state()) && Path::new(inspect["state_path"].as_str().unwrap()).starts_with(d.state()));
    assert_eq!(std::fs::read(path).unwrap(), b"out\n\xff\0");
    d.spawn();
}

#[test]
fn the_shim_is_the_parent_of_the_program_and_exits_after_it() {
    let d = Daemon::start();
    let proc = d.sh("exec sleep 1000");
    let inspect = d.ok("inspect", json!({ "id": proc }));
    let shim = Pidfd::open(inspect["shim_pid"].as_i64().unwrap() as i32).expect("the shim runs");
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", inspect["pid"])).unwrap();
    assert_eq!(stat.rsplit(')').next().unwrap().split_whitespace().nth(1), Some(shim.pid.to_string().as_str()));
    d.ok("kill", json!({ "id": proc }));
    let name = || std::fs::read_to_string(format!("/proc/{}/comm", shim.pid)).unwrap_or_default();
    d.eventually("the shim waits for the next process, or is gone", || {
        ["toold-spare\n", ""].contains(&name().as_str())
    });
    let inspect = d.ok("inspect", json!({ "id": proc }));
    assert_eq!((&inspect["tree"], &inspect["usage"]["processes"]), (&json!([]), &json!(0)));
    assert_eq!((&inspect["status"], &inspect["exit_code"]), (&json!("exited"), &json!(143)));
}

#[test]
fn the_names_of_the_environment_and_the_timeout_are_listed() {
    let d = Daemon::start();
    let more = json!({ "env_mode": "replace", "env": { "ONE": "1", "TWO": "2" }, "timeout_ms": 900_000 });
    let inspect = d.ok("inspect", json!({ "id": id(&d.sh_with("exec /bin/sleep 1000", more)) }));
    assert_eq!((&inspect["env_names"], &inspect["timeout_ms"]), (&json!(["ONE", "TWO"]), &json!(900_000)));
    let inspect = d.ok("inspect", json!({ "id": d.sh("exec sleep 1000") }));
    assert_eq!(inspect["timeout_ms"], Value::Null);
}

#[test]
fn orphans_of_an_exited_program_are_in_its_tree() {
    let d = Daemon::start();
    let proc = d.sh("sleep 1000 > /dev/null 2>&1 & exit 0");
    d.exited(&proc);
    let inspect = d.ok("inspect", json!({ "id": proc }));
    assert_eq!((&inspect["status"], inspect["tree"].as_array().unwrap().len()), (&json!("exited"), 1), "{inspect}");
}

#[test]
fn every_file_of_a_long_output_is_listed_in_order() {
    let d = Daemon::start();
    let quiet = id(&d.run("true"));
    assert_eq!(d.ok("inspect", json!({ "id": quiet }))["log_files"], json!([]));
    let more = json!({ "limits": { "output_bytes": 1 << 20 }, "yield_ms": 60000 });
    let long = id(&d.sh_with("head -c 3000000 /dev/zero | tr '\\0' x", more));
    d.closed(&long);
    let inspect = d.ok("inspect", json!({ "id": long }));
    let files: Vec<&str> = inspect["log_files"].as_array().unwrap().iter().map(|file| file.as_str().unwrap()).collect();
    assert!(files.len() > 1 && files.is_sorted() && inspect["log_path"] == files[0], "{inspect}");
    let kept: u64 = files.iter().map(|file| std::fs::metadata(file).unwrap().len()).sum();
    let dropped = inspect["dropped_bytes"].as_u64().unwrap();
    assert_eq!(kept + dropped, 3_000_000, "together they are what is kept");
    let shown = d.ctl(&["inspect", &long]).stdout;
    assert!(shown.contains(&format!("Log: {} and log.", files[0])), "{shown}");
}
