//! A power cut: what was told is on the disk, though nobody else had it written.

use crate::rig::{Daemon, id, skip_unless};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;

fn run(command: &str) -> bool {
    Command::new("/bin/sh").args(["-c", command]).status().is_ok_and(|s| s.success())
}

/// A disk of its own, as a file that holds what was written to it and not what only the kernel has.
fn disk(dir: &Path) -> Option<PathBuf> {
    let (disk, at) = (dir.join("disk"), dir.join("at"));
    std::fs::create_dir_all(&at).unwrap();
    let made = run(&format!("truncate -s 48M {0} && mkfs.ext4 -q -F -b 4096 {0} 2>/dev/null", disk.display()));
    let mounts = || format!("unshare -m sh -c 'mount -o loop {} {}' 2>/dev/null", disk.display(), at.display());
    let possible = made && run(&mounts());
    (!skip_unless(possible, "a disk of its own needs root, mkfs.ext4 and loop devices")).then_some(disk)
}

/// A daemon whose state is on this disk, which nobody writes to of their own accord.
fn on(mut d: Daemon, disk: &Path) -> Daemon {
    let state = d.root().join("state").display().to_string();
    let inner = format!("mount -o loop,commit=900 {} {state} && exec \"$0\" \"$@\"", disk.display());
    d.before = Some(format!("set -- \"$0\" \"$@\"; exec unshare -m --propagation private /bin/sh -c '{inner}' \"$@\""));
    d.spawn();
    d
}

/// What a daemon finds on the disk as it is now, after everybody is gone.
fn after_a_cut(disk: &Path, ask: &[&str]) -> Vec<Value> {
    let d = Daemon::prepare("", &[]);
    let cut = d.root().join("cut");
    std::fs::copy(disk, &cut).unwrap();
    let d = on(d, &cut);
    ask.iter().map(|id| d.call("poll", json!({ "id": id })).unwrap_or_default()).collect()
}

/// How many directories wait for processes to come, in the daemon's own view of the disk.
fn made_ahead(d: &Daemon) -> usize {
    let pid = d.ok("daemon.info", json!({}))["pid"].clone();
    let ready = format!("/proc/{pid}/root{}", d.state().join("ready").display());
    std::fs::read_dir(ready).map_or(0, Iterator::count)
}

#[test]
fn a_power_cut_costs_no_exit_that_was_told_and_no_process_that_was_started() {
    let d = Daemon::prepare("", &[]);
    let Some(disk) = disk(d.root()) else { return };
    let d = on(d, &disk);
    // The first is made when it is asked for, the others use what was made ahead.
    for round in 0..3 {
        let ended = id(&d.run(&format!("echo out; exit {}", 7 + round)));
        let runs = d.sh("exec sleep 1000");
        let seen = after_a_cut(&disk, &[&ended, &runs]);
        let exit = (&seen[0]["status"], &seen[0]["exit_code"], &seen[0]["bytes"]);
        assert_eq!(exit, (&json!("exited"), &json!(7 + round), &json!(4)), "{seen:?}");
        assert_ne!(seen[1], Value::Null, "its start was told");
        d.eventually("some are made ahead", || made_ahead(&d) > 40);
    }
}
