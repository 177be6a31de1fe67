//! A full disk: running processes are not killed, and output that could not be stored is counted and reported.

use serde_json::json;
use std::os::unix::fs::MetadataExt;
use std::process::Command;
use toold_test_support::rig::{Daemon, files, id, skip_unless};
use toold_test_support::sys::Pidfd;

/// A daemon whose state directory is a file system of its own, this small, in a mount namespace of its own.
fn on_small_disk(size: &str) -> Option<Daemon> {
    let possible = Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|s| s.success());
    if skip_unless(possible, "a file system of its own needs root and unshare") {
        return None;
    }
    let mut d = Daemon::prepare("", &[]);
    let state = d.root().join("state").display().to_string();
    // `unshare` gives the shell that becomes the daemon its own mounts.
    let inner = format!("mount -t tmpfs -o size={size},mode=700 tmpfs {state} && exec \"$0\" \"$@\"");
    d.before = Some(format!("set -- \"$0\" \"$@\"; exec unshare -m --propagation private /bin/sh -c '{inner}' \"$@\""));
    d.spawn();
    Some(d)
}

#[test]
fn a_process_that_fills_the_disk_runs_to_its_end_and_unstored_bytes_are_counted() {
    let Some(d) = on_small_disk("4m") else { return };
    let proc = d.sh("head -c 16000000 /dev/zero | tr '\\0' x; exit 6");
    let p = d.closed(&proc);
    assert_eq!((&p["exit_code"], &p["reason"], &p["bytes"]), (&json!(6), &json!("exited"), &json!(16_000_000)));
    let unstored = p["unstored_bytes"].as_u64().unwrap();
    assert!(unstored > 0, "{p}");
    let kept = d.bytes(&proc);
    assert!(kept.iter().all(|b| *b == b'x'), "unstored bytes are not returned as zeros");
    assert_eq!(kept.len() as u64 + unstored + p["dropped_bytes"].as_u64().unwrap(), 16_000_000);
}

#[test]
fn run_and_poll_on_a_full_disk_always_report_what_is_missing() {
    let Some(d) = on_small_disk("4m") else { return };
    let output = d.ctl(&["run", "--", "sh", "-c", "head -c 16000000 /dev/zero | tr '\\0' x; exit 6"]);
    let proc = d.ids(json!({})).remove(0);
    let missing = 16_000_000 - output.stdout.len();
    assert!(missing > 0 && output.stdout.bytes().all(|b| b == b'x'), "{} bytes came", output.stdout.len());
    let line = format!("the output of {proc} is incomplete: {missing} of its 16000000 bytes are missing");
    assert!(output.code == 74 && output.stderr.contains(&line), "{} {}", output.code, output.stderr);
    let unstored = d.process(&proc)["unstored_bytes"].as_u64().unwrap();
    let polled = d.ctl(&["poll", &proc]);
    assert!(polled.stdout.contains(&format!("unstored_bytes: {unstored}\n")), "{polled:?}");
    assert!(polled.stderr.contains(&format!("{unstored} bytes of the output of {proc} could not be")), "{polled:?}");
    // The broken code printed nothing, exited with 0 in all of these, and in a third of them had no message.
    for _ in 0..10 {
        let output = d.ctl(&["run", "--", "echo", "hi"]);
        match output.code {
            0 => assert_eq!(output.stdout, "hi\n", "{output:?}"),
            74 => assert!(output.stdout.len() < 3 && output.stderr.contains("is incomplete: "), "{output:?}"),
            // The record needs space too.
            1 => assert!(output.stderr.contains("space"), "{output:?}"),
            other => panic!("exit code {other}: {output:?}"),
        }
    }
}

#[test]
fn events_that_a_full_disk_rejected_are_published_when_there_is_space_again() {
    let Some(d) = on_small_disk("4m") else { return };
    let gate = d.gate("end");
    let script = format!("{}; echo MATCH; exit 6", gate.wait());
    let process = id(&d.sh_with(&script, json!({ "notify": true, "watch": ["MATCH"] })));
    let filler = d.sh("head -c 16000000 /dev/zero | tr '\\0' x");
    d.closed(&filler);
    gate.open();
    // The exit has reserved space, and no caller waits longer for it.
    assert_eq!(d.exited(&process)["exit_code"], 6);
    d.ok("forget", json!({ "ids": [filler] }));
    let wait = json!({ "consumer": "c", "id": process, "types": ["completion"], "wait_ms": 30_000 });
    let done = d.ok("events.next", wait)["events"][0].clone();
    assert_eq!((&done["exit_code"], &done["type"]), (&json!(6), &json!("completion")), "{done}");
    let all = d.ok("events.next", json!({ "consumer": "all", "id": process }));
    let kinds: Vec<&str> = all["events"].as_array().unwrap().iter().map(|e| e["type"].as_str().unwrap()).collect();
    for kind in ["started", "exited", "closed", "completion"] {
        assert_eq!(kinds.iter().filter(|k| **k == kind).count(), 1, "{kind}: {kinds:?}");
    }
}

#[test]
fn a_full_disk_kills_no_process_and_rejects_new_ones_with_the_reason() {
    let Some(d) = on_small_disk("4m") else { return };
    let bystander = id(&d.ok("exec", json!({ "argv": ["/bin/cat"], "stdin": "pipe" })));
    let program = d.program(&bystander);
    let filler = d.sh("head -c 16000000 /dev/zero | tr '\\0' x; exec sleep 1000");
    d.eventually("all of it is counted", || d.process(&filler)["bytes"] == 16_000_000);
    assert!(!program.is_dead());
    // Rejected with a reason, or started: never a hang, a crash or half a process.
    if let Err(error) = d.call("exec", json!({ "argv": ["/bin/true"] })) {
        let text = error.to_string();
        assert!(text.contains("space") || text.contains("ENOSPC"), "{text}");
    }
    assert_eq!(d.process(&filler)["status"], "running");
    assert_eq!(d.ok("kill", json!({ "id": filler }))["status"], "killed");
    assert!(!program.is_dead());
    d.ok("close", json!({ "id": bystander }));
    assert_eq!(d.exited(&bystander)["exit_code"], 0);
}

#[test]
fn a_start_is_durable_before_the_program_runs_and_an_exit_before_it_is_reported() {
    let there = Command::new("strace").arg("-V").output().is_ok_and(|o| o.status.success());
    if skip_unless(there, "system calls are seen with strace") {
        return;
    }
    let mut d = Daemon::prepare("", &[]);
    let calls = d.root().join("calls").display().to_string();
    let traced = "fsync,fdatasync,sendto,sendmsg,execve";
    d.before = Some(format!("set -- \"$0\" \"$@\"; exec strace -f -qq -e trace={traced} -o {calls} \"$@\""));
    d.spawn();
    let proc = d.run("exit 7");
    assert_eq!(proc["exit_code"], 7);
    let seen = std::fs::read_to_string(&calls).unwrap();
    let at =
        |what: &str| seen.lines().position(|line| line.contains(what)).unwrap_or_else(|| panic!("no {what}: {seen}"));
    // The request to a spare carries a descriptor; the exit is the longest frame that a shim sends.
    assert!(at(" fsync(") < at("SCM_RIGHTS"), "{seen}");
    // The child syncs before it becomes the program, and the shim before it sends the exit.
    let program = at("exit 7");
    let synced = |line: &str| line.contains("fdatasync") && line.ends_with("= 0");
    assert!(seen.lines().take(program).any(synced), "{seen}");
    let sent = seen.lines().position(|line| line.contains("sendto(") && long(line));
    let sent = sent.unwrap_or_else(|| panic!("no exit: {seen}"));
    assert!(seen.lines().skip(program).take(sent - program).any(synced), "{seen}");
}

/// Returns true if a sendto is of an exit: more than 100 bytes, and not the daemon's launch.
fn long(line: &str) -> bool {
    let before = line.split_once(", MSG_DONTWAIT").map_or("", |(before, _)| before);
    before.rsplit(", ").next().and_then(|n| n.parse::<u64>().ok()).is_some_and(|sent| sent > 100)
}

/// Bytes that the disk holds for a process's log beyond its content.
fn blocks_ahead(d: &Daemon, id: &str) -> u64 {
    let logs = files(&d.state().join("procs").join(id)).into_iter();
    let logs = logs.filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("log")));
    let sizes = logs.map(|path| path.metadata().expect("a file")).map(|m| (m.blocks() * 512).saturating_sub(m.len()));
    sizes.sum()
}

#[test]
fn a_flood_frees_preallocated_blocks_at_its_end_in_a_pause_and_after_a_kill() {
    let mut d = Daemon::start();
    let flood = "head -c 9000000 /dev/zero | tr '\\0' x";
    let ended = id(&d.run(flood));
    let paused = d.sh(&format!("{flood}; echo; echo rests; exec sleep 1000"));
    d.printed(&paused, "rests");
    d.eventually("the reserve is given back", || blocks_ahead(&d, &paused) < 65_536);
    assert!(blocks_ahead(&d, &ended) < 65_536, "{}", blocks_ahead(&d, &ended));
    // A shim that is killed in the flood cannot free them: the daemon does.
    let flooding = d.sh("exec yes xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx");
    d.eventually("it floods", || d.process(&flooding)["bytes"].as_u64() > Some(20_000_000));
    let shim = d.ok("inspect", json!({ "id": flooding }))["shim_pid"].as_i64().expect("a shim") as i32;
    Pidfd::open(shim).expect("it lives").signal(libc::SIGKILL);
    d.eventually("it is lost", || d.process(&flooding)["status"] == "lost");
    assert!(blocks_ahead(&d, &flooding) < 65_536, "{}", blocks_ahead(&d, &flooding));
    d.restart();
    assert_eq!(d.process(&ended)["bytes"], 9_000_000);
}
