//! A hundred processes that match all the time, with consumers that receive every match.

use crate::footprint::{Baseline, nothing_runs};
use crate::scaled;
use serde_json::{Value, json};
use std::collections::HashMap;
use std::time::Instant;
use toold_test_support::conn::Conn;
use toold_test_support::rig::{Daemon, id};

const PROCESSES: usize = 100;
/// Matching lines of each process: a hundred per second, ten thousand per second in all.
const LINES_EACH: usize = 300;

#[test]
fn ten_thousand_matches_a_second_from_a_hundred_processes_all_arrive_in_order() {
    let config = "[watch]\nmin_interval_ms = 0\nstrike_limit = 0\nglobal_max = 1000000000\n";
    let daemon = Daemon::start_with(config, &[]);
    let rest = Baseline::measure(&daemon);
    let (lines, gate) = (scaled(LINES_EACH), daemon.gate("go"));
    let mut live = daemon.conn();
    live.call("events.subscribe", json!({ "session_key": "load" })).unwrap();
    let mut conn = daemon.conn();
    // The program sets the pace: it synchronises nothing.
    let never = daemon.gate("never");
    let script = format!(
        "{}; exec 9<>{}; for ((i = 1; i <= {lines}; i++)); do echo HIT $i; read -t 0.01 -u 9 x; done; exit 0",
        gate.wait(),
        never.path.display()
    );
    let exec = json!({ "argv": ["/bin/bash", "-c", script], "watch": ["HIT"], "session_key": "load", "notify": true });
    let ids: Vec<String> = (0..PROCESSES).map(|_| id(&conn.call("exec", exec.clone()).unwrap())).collect();
    let began = Instant::now();
    ids.iter().for_each(|_| gate.open());
    let pushed = until_all_completed(&mut live);
    let seconds = began.elapsed().as_secs_f64();
    let matched: Vec<&Value> = pushed.iter().filter(|e| e["type"] == "watch_match").collect();
    println!("{} matches as {} events in {seconds:.1} s", PROCESSES * lines, matched.len());
    assert!(pushed.windows(2).all(|pair| pair[0]["seq"].as_u64() < pair[1]["seq"].as_u64()), "not in order");
    let mut seen: HashMap<&str, usize> = HashMap::new();
    for event in &matched {
        let count = seen.entry(event["id"].as_str().unwrap()).or_default();
        for line in event["output"].as_str().unwrap().lines().take(1) {
            assert_eq!(line, format!("HIT {}", *count + 1), "{event}");
        }
        *count += event["matches"].as_u64().unwrap() as usize;
    }
    assert!(ids.iter().all(|process| seen[process.as_str()] == lines), "{seen:?}");
    let pulled = conn.call("events.next", json!({ "consumer": "c", "limit": 10_000 })).unwrap();
    assert_eq!(pulled["events"][0]["seq"], 1);
    drop((live, conn));
    nothing_runs(&daemon);
    rest.wait_restored(&daemon);
}

fn until_all_completed(live: &mut Conn) -> Vec<Value> {
    let (mut pushed, mut completed) = (Vec::new(), 0);
    while completed < PROCESSES {
        let event = live.push();
        completed += usize::from(event["type"] == "completion");
        pushed.push(event);
    }
    pushed
}
