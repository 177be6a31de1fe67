//! `events.subscribe`: pushes, replay, filters, output, and slow readers.

use crate::api::events::kinds;
use serde_json::{Value, json};
use std::time::Duration;
use toold_test_support::conn::Conn;
use toold_test_support::procfs::cpu_ticks;
use toold_test_support::rig::{Daemon, id};
use toold_test_support::sys::Pidfd;

fn subscribe(d: &Daemon, params: Value) -> Conn {
    let mut conn = d.conn();
    assert!(conn.call("events.subscribe", params).unwrap().is_u64());
    conn
}

#[test]
fn events_are_pushed_as_they_happen_and_not_from_before() {
    let d = Daemon::start();
    d.run("exit 0");
    let mut live = subscribe(&d, json!({}));
    let process = d.sh("exit 0");
    let pushed = live.pushes_until("closed");
    assert_eq!(kinds(&pushed), ["started", "exited", "closed"]);
    assert!(pushed.iter().all(|e| e["id"] == process), "{pushed:#?}");
    assert_eq!(pushed[0]["seq"], 4);
}

#[test]
fn after_replays_from_there_and_continues_without_a_gap() {
    let d = Daemon::start();
    for _ in 0..5 {
        d.run("exit 0");
    }
    let mut live = subscribe(&d, json!({ "after": 4 }));
    d.run("exit 0");
    let seqs: Vec<u64> = (0..14).map(|_| live.push()["seq"].as_u64().unwrap()).collect();
    assert_eq!(seqs, (5..=18).collect::<Vec<_>>());
    d.refused_param("after", "events.subscribe", json!({ "after": 19 }));
}

#[test]
fn filters_exclude_other_sessions_and_types() {
    let d = Daemon::start();
    let mut mine = subscribe(&d, json!({ "session_key": "mine", "types": ["exited", "completion"] }));
    for session in ["other", "mine"] {
        let more = json!({ "session_key": session, "notify": true });
        d.closed(&id(&d.sh_with("echo secret; exit 0", more)));
    }
    let pushed = mine.pushes_until("completion");
    assert_eq!(kinds(&pushed), ["exited", "completion"]);
    assert!(pushed.iter().all(|e| e["session_key"] == "mine"));
    d.refused_param("types", "events.subscribe", json!({ "types": ["no_such"] }));
    d.refused_param("afer", "events.subscribe", json!({ "afer": 1 }));
}

#[test]
fn unsubscribe_by_name_or_by_position_ends_the_pushes() {
    let d = Daemon::start();
    for by_name in [true, false] {
        let mut conn = d.conn();
        let subscription = conn.call("events.subscribe", json!({})).unwrap();
        let params = if by_name { json!({ "subscription": subscription }) } else { json!([subscription]) };
        assert_eq!(conn.call("events.unsubscribe", params), Ok(json!(true)));
        d.run("exit 0");
        let next = conn.request("daemon.info", json!({}));
        assert_eq!(conn.recv()["id"], next, "nothing is pushed any more");
        assert_eq!(conn.call("events.unsubscribe", json!({ "subscription": subscription })), Ok(json!(false)));
    }
}

#[test]
fn output_is_pushed_whole_in_order_and_before_the_exit_of_its_process() {
    let d = Daemon::start();
    let mut live = subscribe(&d, json!({ "output": true, "types": ["exited"] }));
    let script = "printf 'h\\303'; printf 'err' >&2; printf '\\244 one\\n'; seq 1 20000; echo done";
    let process = d.sh(script);
    let pushed = live.pushes_until("exited");
    let text = |stream: &str| -> String {
        pushed.iter().filter(|p| p["stream"] == stream).map(|p| p["data"].as_str().unwrap()).collect()
    };
    let numbers: String = (1..=20000).map(|n| format!("{n}\n")).collect();
    assert_eq!(text("stdout"), format!("hä one\n{numbers}done\n"));
    assert_eq!(text("stderr"), "err");
    let mut at = [0, 0];
    for push in pushed.iter().filter(|p| p["type"] == "output") {
        assert_eq!(push["id"], json!(process));
        let (from, to) = (push["cursor"].as_u64().unwrap(), push["next_cursor"].as_u64().unwrap());
        let own = &mut at[usize::from(push["stream"] == "stderr")];
        assert!(from >= *own && to > from, "{push}");
        *own = to;
    }
    assert!(pushed.iter().all(|p| p["type"] == "output" || p["type"] == "exited"));
}

#[test]
fn output_is_pushed_only_for_selected_processes_and_from_now_on() {
    let d = Daemon::start();
    let gate = d.gate("go");
    let running = id(&d.sh_with(&format!("echo early; {}; echo late", gate.wait()), json!({ "task_id": "t" })));
    d.printed(&running, "early");
    let mut live = subscribe(&d, json!({ "output": true, "task_id": "t" }));
    d.run("echo other");
    gate.open();
    let pushed = live.pushes_until("closed");
    let data: String = pushed.iter().filter_map(|p| p["data"].as_str()).collect();
    assert_eq!(data, "late\n");
    assert!(pushed.iter().all(|p| p["id"] == running));
}

#[test]
fn a_character_that_stays_incomplete_is_pushed_before_the_end_of_the_output() {
    let d = Daemon::start();
    let mut live = subscribe(&d, json!({ "output": true, "types": ["closed"] }));
    // One on each stream: the last page has only one of them.
    let process = d.sh("printf 'out\\342\\202'; sleep 0.2; printf 'err\\303' >&2; sleep 0.2; printf '\\033[3' >&2");
    let pushed = live.pushes_until("closed");
    let text = |stream: &str| -> String {
        pushed.iter().filter(|p| p["stream"] == stream).map(|p| p["data"].as_str().unwrap()).collect()
    };
    let whole = |stream: &str| d.ok("log", json!({ "id": process, "stream": stream }))["output"].clone();
    assert_eq!((text("stdout"), text("stderr")), ("out\u{fffd}".into(), "err\u{fffd}".into()), "{pushed:#?}");
    assert_eq!((whole("stdout"), whole("stderr")), (json!(text("stdout")), json!(text("stderr"))));
}

#[test]
fn a_slow_reader_gets_lagged_can_fetch_the_rest_and_delays_no_other() {
    let d = Daemon::start_with("[events]\nlag_bytes = 65536\n", &[]);
    let mut slow = subscribe(&d, json!({ "output": true }));
    let gate = d.gate("more");
    let process =
        d.sh(&format!("seq 1 9000000 | head -c 20000000; {}; seq 1 9000000 | head -c 30000000; exit 5", gate.wait()));
    d.eventually("the first part is printed", || d.process(&process)["bytes"] == 20_000_000);
    // The daemon pushes until the buffers are full, then it waits and uses no more CPU time.
    let daemon = Pidfd::open(d.pid()).unwrap();
    d.eventually("the daemon waits for the reader", || {
        let before = cpu_ticks(d.pid());
        !daemon.dies_within(Duration::from_millis(300)) && cpu_ticks(d.pid()) == before
    });
    gate.open();
    // The subscriber reads nothing now, and other clients are served.
    let ended = d.closed(&process);
    assert_eq!((&ended["exit_code"], &ended["bytes"]), (&json!(5), &json!(50_000_000)));
    let rss = || -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", d.pid())).unwrap();
        let line = status.lines().find_map(|l| l.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    };
    assert!(rss() < 100_000, "{} KiB for one reader that does not read", rss());
    let pushed = slow.pushes_until("closed");
    let (mut at, mut missed) = (0, 0);
    for push in &pushed {
        match push["type"].as_str().unwrap() {
            "output" => {
                assert_eq!(push["cursor"], at, "{push:.200}");
                at = push["next_cursor"].as_u64().unwrap();
            }
            "lagged" => {
                assert_eq!((&push["from"], &push["id"], &push["of"]), (&json!(at), &json!(process), &json!("output")));
                let to = push["to"].as_u64().unwrap();
                let page = d.ok("poll", json!({ "id": process, "cursor": at, "max_bytes": 1000 }));
                assert_eq!(page["output"].as_str().unwrap().len(), 1000, "the missed output can be fetched");
                missed += to - at;
                at = to;
            }
            // An event.
            _ => {}
        }
    }
    assert_eq!(at, 50_000_000);
    assert!(missed > 0, "a reader that read nothing got no `lagged`");
}

#[test]
fn pushes_need_a_connection_that_stays_open() {
    let d = Daemon::start();
    let mut conn = d.conn();
    conn.send(&json!([{ "jsonrpc": "2.0", "id": 1, "method": "events.subscribe", "params": {} }]));
    assert_eq!(conn.recv()[0]["error"]["code"], -32600);
}

#[test]
fn unsubscribe_takes_the_number_of_a_subscription_and_nothing_else() {
    let d = Daemon::start();
    for params in [
        json!({}),
        json!({ "subscription": -1 }),
        json!({ "subscription": "x" }),
        json!([]),
        json!({ "subscription": 1, "x": 2 }),
    ] {
        d.refused_param("subscription", "events.unsubscribe", params);
    }
    assert_eq!(d.ok("events.unsubscribe", json!({ "subscription": 1 })), json!(false));
}
