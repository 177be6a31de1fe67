//! Damage to the journal, to the positions of consumers and to other files of the state directory: reported, quarantined,
//! and without consequences for anything else. `tests/damage` does this at random.

use serde_json::{Value, json};
use std::path::PathBuf;
use toold_test_support::rig::Daemon;

fn damaged(d: &Daemon) -> String {
    d.ok("daemon.info", json!({}))["damaged"].to_string()
}

fn seqs(answer: &Value) -> Vec<u64> {
    answer["events"].as_array().unwrap().iter().map(|event| event["seq"].as_u64().unwrap()).collect()
}

fn position_file(d: &Daemon) -> PathBuf {
    let dir = std::fs::read_dir(d.state().join("events/consumers")).unwrap();
    let mut files = dir.map(|entry| entry.unwrap().path()).filter(|path| path.extension().is_some_and(|e| e == "pos"));
    files.next().expect("a consumer's file")
}

/// A daemon with six events, and a consumer that has acknowledged four of them.
fn with_consumer() -> Daemon {
    let d = Daemon::start();
    d.run("true");
    d.run("true");
    d.ok("events.next", json!({ "consumer": "c" }));
    d.ok("events.ack", json!({ "consumer": "c", "seq": 4 }));
    d
}

#[test]
fn a_consumer_whose_file_was_cut_keeps_its_position_and_is_informed_until_it_acknowledges() {
    let mut d = with_consumer();
    d.kill9();
    let path = position_file(&d);
    let len = path.metadata().unwrap().len();
    // The broken code read the shorter file as an older one: the position was 0, and nothing was reported.
    std::fs::File::options().write(true).open(&path).unwrap().set_len(len - 32).unwrap();
    d.spawn();
    assert!(damaged(&d).contains("consumer c"), "{}", damaged(&d));
    for _ in 0..2 {
        let next = d.ok("events.next", json!({ "consumer": "c" }));
        assert_eq!((&next["position"], seqs(&next)), (&json!(4), vec![5, 6]));
        assert!(next["damaged"]["at"].is_string(), "{next}");
        d.restart();
    }
    assert_eq!(damaged(&d), "[]", "the damage is reported by the daemon that found it");
    let printed = d.ctl(&["events", "--consumer", "c"]);
    assert!(printed.stderr.contains("the stored position of c was damaged"), "{printed:?}");
    assert_eq!(d.ok("events.next", json!({ "consumer": "c" }))["damaged"], Value::Null);
}

#[test]
fn a_consumer_whose_file_is_gone_receives_everything_again_and_is_informed() {
    let mut d = with_consumer();
    d.kill9();
    std::fs::remove_file(position_file(&d)).unwrap();
    d.spawn();
    assert!(damaged(&d).contains("the position of consumer c is lost"), "{}", damaged(&d));
    // The broken code created a new consumer in silence, which skipped everything with `from: now`.
    let next = d.ok("events.next", json!({ "consumer": "c", "from": "now" }));
    assert_eq!((seqs(&next), &next["created"]), ((1..=6).collect(), &json!(false)));
    assert!(next["damaged"]["at"].is_string(), "{next}");
}

#[test]
fn events_of_a_removed_segment_are_reported_and_their_numbers_are_not_used_again() {
    let mut d = with_consumer();
    d.kill9();
    std::fs::remove_file(d.state().join("events/0000000000000001.log")).unwrap();
    d.spawn();
    assert!(damaged(&d).contains("events 1 to"), "{}", damaged(&d));
    let mut conn = d.conn();
    conn.call("events.subscribe", json!({ "after": 0 })).unwrap();
    let lagged = conn.push();
    assert_eq!((&lagged["type"], &lagged["from"], &lagged["to"]), (&json!("lagged"), &json!(1), &json!(6)));
    let next = d.ok("events.next", json!({ "consumer": "c" }));
    assert_eq!(next["missing"], json!({ "from": 5, "to": 6 }));
    assert!(seqs(&next).iter().all(|seq| *seq > 6), "{next}");
}

#[test]
fn an_end_of_the_journal_that_was_cut_between_two_records_is_reported() {
    let mut d = with_consumer();
    assert_eq!(d.stop(libc::SIGTERM), 0);
    let path = d.state().join("events/0000000000000001.log");
    let bytes = std::fs::read(&path).unwrap();
    let last = u32::from_le_bytes(*bytes.first_chunk().unwrap()) as usize;
    std::fs::write(&path, &bytes[..last]).unwrap();
    // Without the records of the processes, nothing but the manifest knows the numbers that were in use.
    std::fs::remove_dir_all(d.state().join("procs")).unwrap();
    std::fs::remove_dir_all(d.state().join("events/consumers")).unwrap();
    d.spawn();
    // The broken code continued with 2, which had been another event.
    assert!(damaged(&d).contains("events 2 to 6"), "{}", damaged(&d));
    d.run("true");
    let next = d.ok("events.next", json!({ "consumer": "new" }));
    assert_eq!(seqs(&next), vec![1]);
    d.ok("events.ack", json!({ "consumer": "new", "seq": 1 }));
    let next = d.ok("events.next", json!({ "consumer": "new" }));
    assert_eq!((&next["missing"], seqs(&next)[0]), (&json!({ "from": 2, "to": 6 }), 7));
}

#[test]
fn a_pipe_a_link_or_a_directory_in_the_place_of_a_file_does_not_stop_the_daemon() {
    // The broken code waited for a writer of the pipe, truncated the target of the link, or ended.
    for name in ["lock", "socket", "events/breaker", "events/manifest", "events/consumers/names"] {
        for kind in ["pipe", "link", "directory"] {
            let mut d = with_consumer();
            d.kill9();
            let path = d.state().join(name);
            let target = d.root().join("precious");
            std::fs::write(&target, "precious").unwrap();
            std::fs::remove_file(&path).unwrap();
            match kind {
                "pipe" => assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success()),
                "link" => std::os::unix::fs::symlink(&target, &path).unwrap(),
                _ => std::fs::create_dir(&path).unwrap(),
            }
            d.spawn();
            assert!(damaged(&d).contains(name), "{name} as a {kind}: {}", damaged(&d));
            let next = d.ok("events.next", json!({ "consumer": "c" }));
            assert_eq!((&next["position"], seqs(&next), &next["damaged"]), (&json!(4), vec![5, 6], &Value::Null));
            assert_eq!(std::fs::read_to_string(&target).unwrap(), "precious");
        }
    }
}

#[test]
fn a_lack_of_descriptors_while_the_journal_is_read_is_not_damage() {
    let mut d = with_consumer();
    d.kill9();
    let before = toold_test_support::rig::files(&d.state().join("events"));
    // With the fewest descriptors the daemon does not get to the journal, with the most it starts.
    for descriptors in 8..20 {
        d.before = Some(format!("ulimit -n {descriptors}"));
        let mut child = d.command().spawn().unwrap();
        d.eventually("it ends or answers", || child.try_wait().unwrap().is_some() || d.call_if_there("daemon.info"));
        child.kill().ok();
        child.wait().unwrap();
        // The broken code quarantined what it could not open.
        let after = toold_test_support::rig::files(&d.state().join("events"));
        assert_eq!(after, before, "nothing was quarantined with {descriptors} descriptors");
    }
    d.before = None;
    d.spawn();
    assert_eq!(damaged(&d), "[]");
    assert_eq!(seqs(&d.ok("events.next", json!({ "consumer": "c" }))), vec![5, 6]);
}
