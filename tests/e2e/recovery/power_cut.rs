//! A power cut: everything that was reported is durable, without a sync by any other process.

use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use toold_test_support::rig::{Daemon, id, skip_unless};

fn run(command: &str) -> bool {
    Command::new("/bin/sh").args(["-c", command]).status().is_ok_and(|s| s.success())
}

/// Creates a disk as a file that has the synced bytes and not those that only the page cache has.
pub fn disk(dir: &Path) -> Option<PathBuf> {
    let (disk, at) = (dir.join("disk"), dir.join("at"));
    std::fs::create_dir_all(&at).unwrap();
    let made = run(&format!("truncate -s 48M {0} && mkfs.ext4 -q -F -b 4096 {0} 2>/dev/null", disk.display()));
    let mounts = || format!("unshare -m sh -c 'mount -o loop {} {}' 2>/dev/null", disk.display(), at.display());
    let possible = made && run(&mounts());
    (!skip_unless(possible, "a disk of its own needs root, mkfs.ext4 and loop devices")).then_some(disk)
}

/// A daemon whose state is on this disk, without periodic writeback.
pub fn on(mut d: Daemon, disk: &Path) -> Daemon {
    let state = d.root().join("state").display().to_string();
    let inner = format!("mount -o loop,commit=900 {} {state} && exec \"$0\" \"$@\"", disk.display());
    d.before = Some(format!("set -- \"$0\" \"$@\"; exec unshare -m --propagation private /bin/sh -c '{inner}' \"$@\""));
    d.spawn();
    d
}

/// The processes that a new daemon finds on a copy of the disk as it is now.
fn after_a_cut(disk: &Path, ask: &[&str]) -> Vec<Value> {
    let d = Daemon::prepare("", &[]);
    let cut = d.root().join("cut");
    std::fs::copy(disk, &cut).unwrap();
    let d = on(d, &cut);
    ask.iter().map(|id| d.call("poll", json!({ "id": id })).unwrap_or_default()).collect()
}

/// The number of prepared directories, as the daemon sees the disk.
pub fn prepared_dirs(d: &Daemon) -> usize {
    let pid = d.ok("daemon.info", json!({}))["pid"].clone();
    let ready = format!("/proc/{pid}/root{}", d.state().join("ready").display());
    std::fs::read_dir(ready).map_or(0, Iterator::count)
}

#[test]
fn a_power_cut_loses_no_reported_exit_and_no_started_process() {
    let d = Daemon::prepare("", &[]);
    let Some(disk) = disk(d.root()) else { return };
    let d = on(d, &disk);
    // The first is created on request, the others use prepared directories.
    for round in 0..3 {
        let ended = id(&d.run(&format!("echo out; exit {}", 7 + round)));
        let runs = d.sh("exec sleep 1000");
        let seen = after_a_cut(&disk, &[&ended, &runs]);
        let exit = (&seen[0]["status"], &seen[0]["exit_code"], &seen[0]["bytes"]);
        assert_eq!(exit, (&json!("exited"), &json!(7 + round), &json!(4)), "{seen:?}");
        assert_eq!(seen[1]["status"], "lost", "its start was reported: {seen:?}");
        d.eventually("some are made ahead", || prepared_dirs(&d) > 40);
    }
}

#[test]
fn a_start_of_which_only_the_name_is_durable_is_removed() {
    let mut d = Daemon::start();
    let known = id(&d.run("exit 3"));
    d.kill9();
    let mut unused = vec![0u8; 8192];
    let mut left = Vec::new();
    for (number, head) in ["", "tooldnew"].into_iter().enumerate() {
        unused[..head.len()].copy_from_slice(head.as_bytes());
        let dir = d.state().join("procs").join(format!("{}{number}", &known[..known.len() - 1]));
        if !dir.exists() {
            std::fs::create_dir(&dir).unwrap();
            std::fs::write(dir.join("record"), &unused).unwrap();
            left.push(dir);
        }
    }
    d.spawn();
    assert_eq!(d.ids(json!({})), [known.as_str()]);
    assert_eq!(d.ok("daemon.info", json!({}))["damaged"], json!([]));
    assert!(!left.is_empty() && left.iter().all(|dir| !dir.exists()), "{left:?}");
}

#[test]
fn a_started_record_that_cannot_be_moved_after_a_power_cut_is_kept() {
    let mut d = Daemon::start();
    let known = id(&d.run("exit 3"));
    d.kill9();
    let (ready, procs) = (d.state().join("ready"), d.state().join("procs"));
    std::fs::rename(procs.join(&known), ready.join("1000")).unwrap();
    // Its name is in use.
    std::fs::create_dir_all(procs.join(&known).join("in the way")).unwrap();
    d.spawn();
    assert!(ready.join("1000/record").exists());
    d.kill9();
    for dir in std::fs::read_dir(&procs).unwrap() {
        std::fs::remove_dir_all(dir.unwrap().path()).unwrap();
    }
    d.spawn();
    assert_eq!(d.process(&known)["exit_code"], 3);
    assert_eq!(d.run("exit 4")["exit_code"], 4);
}

#[test]
fn without_sync_everything_works_and_a_start_without_sync_ends_without_sync() {
    let mut d = Daemon::prepare("survive_power_cut = false\n", &[]);
    d.spawn();
    let gate = d.gate("end");
    let process = d.sh(&format!("{}; exit 9", gate.wait()));
    assert_eq!(d.run("exit 3")["exit_code"], 3);
    d.kill9();
    // The next daemon syncs it itself: its shim does not.
    std::fs::write(d.root().join("config/toold/config.toml"), "").unwrap();
    d.spawn();
    assert_eq!(d.run("exit 4")["exit_code"], 4);
    gate.open();
    assert_eq!(d.exited(&process)["exit_code"], 9);
}

#[test]
fn a_prepared_directory_of_a_rejected_start_is_kept_for_the_next() {
    let d = Daemon::start();
    let named = json!({ "argv": ["/bin/sleep", "1000"], "name": "one" });
    d.ok("exec", named.clone());
    let made = || std::fs::read_dir(d.state().join("ready")).map_or(0, Iterator::count);
    d.eventually("a burst can come", || made() == 64);
    for _ in 0..100 {
        d.refused(-32007, "already_exists", "exec", named.clone());
    }
    assert_eq!(d.run("exit 3")["exit_code"], 3);
    assert!((63..=64).contains(&made()), "{}", made());
}
