//! Rounds with running processes. Their shims hold locks on the files themselves, so each round starts its own.

use crate::harm::{Damage, Random};
use crate::judge;
use crate::snapshot::Snapshot;
use crate::template::CONFIG;
use serde_json::json;
use std::panic::{AssertUnwindSafe, catch_unwind};
use toold_test_support::rig::{Daemon, files, id};
use toold_test_support::sys::Gate;

/// Starts processes that run on, kills the daemon, damages one file, starts a daemon and compares.
pub fn round(damage: Damage, mut random: Random) -> Result<(), String> {
    let mut rig = Daemon::start_with(CONFIG, &[]);
    let gates = ["pipe", "watched", "terminal"].map(|name| rig.gate(name));
    let start =
        |gate: &Gate, more| id(&rig.sh_with(&format!("echo up MATCH; {}; echo late; exit 5", gate.wait()), more));
    let running = [
        start(&gates[0], json!({ "cwd": "/" })),
        start(&gates[1], json!({ "cwd": "/", "watch": ["MATCH"], "notify": true })),
        start(&gates[2], json!({ "cwd": "/", "pty": true })),
    ];
    running.iter().for_each(|id| drop(rig.printed(id, "up")));
    rig.ok("events.next", json!({ "consumer": "c", "types": ["watch_match"], "wait_ms": 30_000 }));
    let finished = rig.run("echo finished; exit 2");
    rig.ok("events.ack", json!({ "consumer": "c", "seq": 2 }));
    let consumers = ["c".to_string()];
    let truth = Snapshot::read(&rig, &[], &consumers);
    rig.kill9();
    let state = rig.state();
    let all: Vec<String> =
        files(&state).iter().map(|f| f.strip_prefix(&state).unwrap().display().to_string()).collect();
    let all: Vec<&String> = all.iter().filter(|file| !file.starts_with("ready/") && crate::is_selected(file)).collect();
    let file = random.pick(&all).to_string();
    let what = format!("running, {file}: {}", damage.apply(&state.join(&file), &mut random));
    let ran = catch_unwind(AssertUnwindSafe(|| {
        rig.spawn();
        let ids: Vec<String> = truth.processes.keys().cloned().collect();
        let mut after = Snapshot::read(&rig, &ids, &consumers);
        let new = id(&rig.run("echo a new process"));
        after.read_events(&rig);
        let mut faults = judge::faults(&judge::Case { truth: &truth, file: &file, new: &new }, &after);
        gates.iter().for_each(Gate::open);
        for id in running.iter().filter(|id| !file.contains(id.as_str())) {
            let ended = rig.closed(id);
            if ended["exit_code"] != 5 || !rig.text(id).contains("late") {
                faults.push(format!("process {id} ended otherwise: {ended}"));
            }
        }
        assert_eq!(finished["exit_code"], 2);
        (faults, after.damaged)
    }));
    let result = match ran {
        Ok((faults, _)) if faults.is_empty() => Ok(()),
        Ok((faults, reported)) => Err(format!("{what}:\n  {}\n  reported: {reported:?}", faults.join("\n  "))),
        Err(panic) => Err(format!("{what}: {}", crate::panic_text(panic.as_ref()))),
    };
    gates.iter().for_each(Gate::open);
    result
}
