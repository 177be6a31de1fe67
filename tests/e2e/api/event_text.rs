//! The text of every event in the journal and of every push, byte for byte, but for values that differ from run to run.
//!
//! `tests/golden/events-v1.txt` holds the text. `UPDATE_GOLDEN=1` rewrites it. A later version may append a field to an
//! event; it must not change, move or remove one: journals on disk and clients hold the old form.

use super::events::until;
use serde_json::{Value, json};
use std::os::unix::fs::FileExt;
use toold_test_support::rig::{self, Daemon, id};

/// Fields whose values differ from run to run. The text keeps their place and shows `…` as their value.
const MASKED: [&str; 8] = ["seq", "at", "id", "pid", "killed_by", "duration_ms", "output_path", "output_error"];

/// Replaces the values of the masked fields, each at its first place in the text.
fn masked(text: &str) -> String {
    let mut text = text.to_owned();
    for field in MASKED {
        let key = format!("\"{field}\":");
        let Some(start) = text.find(&key).map(|at| at + key.len()) else { continue };
        let value = &text[start..];
        // Null stays: it does not differ from run to run.
        if value.starts_with("null") {
            continue;
        }
        let len = match value.strip_prefix('"') {
            Some(rest) => rest.find('"').unwrap() + 2,
            None => value.find([',', '}']).unwrap(),
        };
        text.replace_range(start..start + len, "…");
    }
    text
}

/// The texts of all events, as they are in the segments.
pub fn journal(d: &Daemon) -> Vec<String> {
    let mut segments: Vec<_> = rig::files(&d.state().join("events"));
    segments.retain(|path| path.extension().is_some_and(|ext| ext == "log"));
    segments.sort();
    let bytes: Vec<u8> = segments.iter().flat_map(|path| std::fs::read(path).unwrap()).collect();
    // A text holds no raw newline, and one follows it. A record's binary header may hold one: it splits the header alone.
    let records = bytes.split(|byte| *byte == b'\n').map(String::from_utf8_lossy);
    records.filter_map(|record| record.find("{\"seq\":").map(|at| record[at..].to_owned())).collect()
}

fn field(text: &str, name: &str) -> Value {
    serde_json::from_str::<Value>(text).unwrap()[name].clone()
}

/// The masked texts of one process's events, by type.
fn of(d: &Daemon, label: &str, process: &Value, lines: &mut Vec<String>) {
    let mut texts: Vec<String> = journal(d).into_iter().filter(|text| field(text, "id") == *process).collect();
    // The order of `exited` and `closed` is not fixed.
    texts.sort_by_key(|text| field(text, "type").to_string());
    lines.extend(texts.iter().map(|text| format!("{label}: {}", masked(text))));
}

/// A process that matches when a line is submitted.
const ECHO: &str = "while read -r x; do echo \"NEEDLE $x\"; done";

fn hit(d: &Daemon, process: &str) {
    let before = d.process(process)["watch"]["hits"].as_u64().unwrap();
    d.ok("submit", json!({ "id": process, "data": "x" }));
    d.eventually("the match was scanned", || {
        let watch = d.process(process)["watch"].clone();
        watch["hits"].as_u64().unwrap() > before || watch["disabled"] == true
    });
}

/// The lives of processes: `started`, `exited`, `closed`, `completion`, `heartbeat`, `needs_input`.
fn lives(lines: &mut Vec<String>) {
    let d = Daemon::start_with("[events]\nmin_heartbeat_ms = 200\n", &[]);
    let life = json!({ "notify": true, "watch": ["never"], "name": "n", "session_key": "s \"1\"", "task_id": "t" });
    let plain = id(&d.sh_with("printf 'one\\n\\033[31mtwo\\033[0m'; exit 3", life));
    d.closed(&plain);
    until(&d, "a", json!({ "types": ["completion"] }));
    of(&d, "plain", &json!(plain), lines);

    d.refused(-32006, "spawn_failed", "exec", json!({ "argv": ["/no/such/program"], "notify": true }));
    d.eventually("the completion is published", || field(journal(&d).last().unwrap(), "reason") == "failed_start");
    let failed = field(journal(&d).last().unwrap(), "id");
    of(&d, "failed start", &failed, lines);

    let killed = id(&d.sh_with("exec sleep 1000", json!({ "watch": ["NEEDLE"] })));
    d.ok("kill", json!({ "id": killed }));
    d.closed(&killed);
    of(&d, "killed, watched", &json!(killed), lines);

    let cancelled = id(&d.sh_with("exec sleep 1000", json!({ "notify": true, "session_key": "over" })));
    d.ok("session.end", json!({ "session_key": "over" }));
    d.closed(&cancelled);
    until(&d, "c", json!({ "types": ["completion"], "id": cancelled }));
    of(&d, "session ended", &json!(cancelled), lines);

    let unreadable = id(&d.sh_with("echo one; read -r x", json!({ "notify": true, "stdin": "pipe" })));
    d.printed(&unreadable, "one");
    let dir = d.state().join("procs").join(&unreadable);
    std::fs::rename(&dir, dir.with_extension("moved")).unwrap();
    // Opening a file below it fails with ENOTDIR, also for root.
    std::fs::write(&dir, "").unwrap();
    d.ok("submit", json!({ "id": unreadable, "data": "x" }));
    let is_completion = |text: &&String| field(text, "id") == json!(unreadable) && field(text, "type") == "completion";
    d.eventually("the completion is published", || journal(&d).iter().any(|text| is_completion(&text)));
    lines.extend(journal(&d).iter().filter(is_completion).map(|text| format!("unreadable output: {}", masked(text))));

    let beats = id(&d.sh_with("echo tick; exec sleep 1000", json!({ "heartbeat_ms": 200, "name": "beats" })));
    until(&d, "d", json!({ "types": ["heartbeat"], "id": beats }));
    of(&d, "heartbeat", &json!(beats), lines);

    let asks = id(&d.sh_with("stty -echo; printf 'Password: '; read -r x", json!({ "pty": true, "name": "asks" })));
    until(&d, "e", json!({ "types": ["needs_input"], "id": asks }));
    of(&d, "needs input", &json!(asks), lines);
}

/// `watch_match`, `watch_disabled` and the two of the breaker.
fn watches(lines: &mut Vec<String>) {
    let d = Daemon::start_with("[watch]\nmin_interval_ms = 300\nstrike_limit = 1\n", &[]);
    let process = id(&d.sh_with(ECHO, json!({ "watch": ["no", { "regex": "N.*E" }], "stdin": "pipe", "name": "w" })));
    hit(&d, &process);
    hit(&d, &process);
    until(&d, "a", json!({ "types": ["watch_disabled"] }));
    let watch = journal(&d).into_iter().filter(|text| field(text, "type").as_str().unwrap().starts_with("watch_"));
    lines.extend(watch.map(|text| format!("watch: {}", masked(&text))));

    let config = "[watch]\nmin_interval_ms = 0\nstrike_limit = 0\nglobal_max = 1\nglobal_cooldown_ms = 300\n";
    let d = Daemon::start_with(config, &[]);
    let process = id(&d.sh_with(ECHO, json!({ "watch": ["NEEDLE"], "stdin": "pipe" })));
    hit(&d, &process);
    hit(&d, &process);
    until(&d, "a", json!({ "types": ["watch_overflow_released"] }));
    let breaker = journal(&d).into_iter().filter(|text| field(text, "type").as_str().unwrap().contains("overflow"));
    lines.extend(breaker.map(|text| format!("breaker: {}", masked(&text))));
}

/// The pushes that are in no journal: `output`, and `lagged` for an event that is missing.
fn pushes(lines: &mut Vec<String>) {
    let mut d = Daemon::start();
    let first = id(&d.sh_with("exit 0", json!({})));
    d.closed(&first);
    d.stop(15);
    let segment = rig::files(&d.state().join("events")).into_iter().find(|path| path.extension().is_some()).unwrap();
    let bytes = std::fs::read(&segment).unwrap();
    let exited = bytes.windows(8).position(|window| window == b"\"exited\"").unwrap();
    std::fs::File::options().write(true).open(&segment).unwrap().write_all_at(b"X", exited as u64).unwrap();
    d.spawn();
    let mut live = d.conn();
    live.call("events.subscribe", json!({ "after": 1, "output": true, "types": ["closed"] })).unwrap();
    d.sh("printf 'out\\n'");
    let mut kinds = Vec::new();
    while !kinds.contains(&"output".to_string()) {
        let line = String::from_utf8(live.line().unwrap()).unwrap();
        let text = line.trim_end().split_once("\"result\":").unwrap().1.strip_suffix("}}").unwrap();
        let kind = field(text, "type").as_str().unwrap().to_string();
        if kind != "closed" {
            lines.push(format!("push: {}", masked(text)));
        }
        kinds.push(kind);
    }
}

#[test]
fn every_event_and_push_has_the_bytes_that_it_always_had() {
    let mut lines = Vec::new();
    lives(&mut lines);
    watches(&mut lines);
    pushes(&mut lines);
    super::event_text_policy::all(&mut lines);
    let now = lines.join("\n") + "\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/events-v1.txt");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &now).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap_or_default();
    assert!(golden == now, "the bytes of events changed: look at the difference, then run with UPDATE_GOLDEN=1\n{now}");
}
