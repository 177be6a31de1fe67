//! The options of `exec` about restarts, as a person types them.

use serde_json::{Value, json};
use toold_test_support::rig::Daemon;

fn typed(d: &Daemon, line: &str) -> (i32, String) {
    let args: Vec<&str> = line.split(' ').collect();
    let output = d.ctl(&args);
    (output.code, output.stdout + &output.stderr)
}

/// All runs, the first one first.
fn runs(d: &Daemon) -> Vec<Value> {
    let mut all = d.ok("list", json!({}))["processes"].as_array().unwrap().clone();
    all.reverse();
    all
}

fn gave_up(d: &Daemon) -> Vec<Value> {
    let call = json!({ "consumer": "c", "types": ["restart_gave_up"], "limit": 10 });
    d.ok("events.next", call)["events"].as_array().unwrap().clone()
}

#[test]
fn a_process_is_restarted_as_often_and_as_late_as_the_options_set() {
    let d = Daemon::start();
    let line = "exec --restart on-failure --max-restarts 2 --restart-backoff 1ms --name fails -- false";
    assert_eq!(typed(&d, line).0, 0);
    d.eventually("it gave up", || gave_up(&d).len() == 1);
    assert_eq!(gave_up(&d)[0]["restarts"], 2);
    assert_eq!(runs(&d).len(), 3);

    // The delay of the option, not the default: an hour from its end.
    assert_eq!(typed(&d, "exec --restart always --restart-backoff 1h --name slow -- true").0, 0);
    d.eventually("the next run waits", || d.process("slow")["status"] == "pending");
    let (first, next) = (&runs(&d)[3], &runs(&d)[4]);
    assert_eq!(next["restart_of"], first["id"]);
    let (due, ended) = (next["pending_on"]["restart"]["at"].as_str().unwrap(), first["exited_at"].as_str().unwrap());
    let minutes = "2026-11-16T03:".len();
    assert_eq!(due[minutes..], ended[minutes..], "whole hours after its end");
    assert_ne!(due, ended);
    let (_, listed) = typed(&d, "list");
    assert!(listed.contains("pending"), "{listed}");

    // A policy that does not apply, and none.
    assert_eq!(typed(&d, "exec --restart on-failure --restart-backoff 1ms --name well -- true").0, 0);
    assert_eq!(typed(&d, "exec --restart no --name once -- false").0, 0);
    for name in ["well", "once"] {
        d.closed(name);
        assert_eq!(d.process(name)["restart_of"], json!(null));
    }
    d.eventually("nothing else came", || runs(&d).len() == 7);
}

#[test]
fn wrong_options_are_refused_and_start_nothing() {
    let d = Daemon::start();
    for (line, part) in [
        ("exec --restart sometimes -- true", "--restart"),
        ("exec --max-restarts 2 -- true", "--restart"),
        ("exec --restart-backoff 1s -- true", "--restart"),
        ("exec --restart always --max-restarts -1 -- true", "--max-restarts"),
        ("exec --restart always --restart-backoff 0s -- true", "--restart-backoff"),
        ("exec --restart always --restart-backoff soon -- true", "--restart-backoff"),
    ] {
        let (code, text) = typed(&d, line);
        assert_eq!((code, text.contains(part)), (2, true), "{line}: {text}");
    }
    assert_eq!(runs(&d), Vec::<Value>::new());
}
