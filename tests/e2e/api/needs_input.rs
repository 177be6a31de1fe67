//! `needs_input`: published once when the kernel shows that a program waits for input.

use crate::api::events::{all, until};
use serde_json::{Value, json};
use toold_test_support::rig::{Daemon, id};

fn asked(d: &Daemon, process: &str) -> Vec<Value> {
    all(d).into_iter().filter(|e| e["type"] == "needs_input" && e["id"] == process).collect()
}

#[test]
fn a_password_prompt_is_published_with_its_text_and_without_echo() {
    let d = Daemon::start();
    let script = "stty -echo; printf 'Password: '; read -r x; stty echo; printf '\\nName: '; read -r y; echo \"hi $y\"";
    let process = id(&d.sh_with(script, json!({ "pty": true, "session_key": "s", "name": "setup" })));
    let first = until(&d, "c", json!({ "types": ["needs_input"] }));
    assert_eq!((&first["prompt"], &first["echo"]), (&json!("Password: "), &json!(false)), "{first}");
    assert_eq!((&first["id"], &first["session_key"], first["pid"].is_i64()), (&json!(process), &json!("s"), true));
    assert_eq!(first["name"], "setup", "the broken code left out the name");
    d.ok("events.ack", json!({ "consumer": "c", "seq": first["seq"] }));
    d.ok("submit", json!({ "id": process, "data": "secret" }));
    let second = until(&d, "c", json!({ "types": ["needs_input"] }));
    assert_eq!((&second["prompt"], &second["echo"]), (&json!("Name: "), &json!(true)), "{second}");
    d.ok("submit", json!({ "id": process, "data": "Ada" }));
    assert!(d.closed(&process)["output"].as_str().unwrap().contains("hi Ada"));
    assert_eq!(asked(&d, &process).len(), 2);
}

#[test]
fn a_reader_of_a_pipe_is_published_once_per_wait_and_other_programs_never() {
    let d = Daemon::start();
    let stdin = json!({ "stdin": "pipe" });
    let sleeper = id(&d.sh_with("exec sleep 1000", stdin.clone()));
    let busy = id(&d.sh_with("while :; do :; done", stdin.clone()));
    let other_pipe = id(&d.sh_with("sleep 1000 | cat", stdin.clone()));
    let cat = id(&d.ok("exec", json!({ "argv": ["cat"], "stdin": "pipe" })));
    let first = until(&d, "c", json!({ "types": ["needs_input"] }));
    assert_eq!((&first["id"], &first["echo"], &first["prompt"]), (&json!(cat), &Value::Null, &json!("")), "{first}");
    d.ok("events.ack", json!({ "consumer": "c", "seq": first["seq"] }));
    d.ok("submit", json!({ "id": cat, "data": "line" }));
    let second = until(&d, "c", json!({ "types": ["needs_input"] }));
    assert_eq!(second["id"], json!(cat));
    // By now the other programs were checked equally often.
    for quiet in [&sleeper, &busy, &other_pipe] {
        assert_eq!(asked(&d, quiet), Vec::<Value>::new());
    }
    assert_eq!(asked(&d, &cat).len(), 2);
}

#[test]
fn a_published_wait_is_not_published_again_by_the_next_daemon() {
    let mut d = Daemon::start();
    let process = id(&d.sh_with("printf 'More? '; read -r x; exit 0", json!({ "pty": true })));
    until(&d, "c", json!({ "types": ["needs_input"] }));
    d.restart();
    // The event of a wait that started later has arrived, so the first one was checked by then.
    let later = id(&d.sh_with("printf 'Later? '; read -r x; exit 0", json!({ "pty": true })));
    until(&d, "c", json!({ "types": ["needs_input"], "id": later }));
    assert_eq!(asked(&d, &process).len(), 1);
}

/// The broken code treated every line of another thread as a new wait.
#[test]
fn a_thread_that_reads_while_others_print_is_published_once() {
    let d = Daemon::start();
    let script = "import sys, threading, time\n\
                  def tick():\n    for n in range(60):\n        print(n, flush=True)\n        time.sleep(0.1)\n\
                  t = threading.Thread(target=tick)\nt.start()\nline = sys.stdin.readline()\nt.join()\nprint('got', line)";
    let process = id(&d.ok("exec", json!({ "argv": ["python3", "-c", script], "stdin": "pipe" })));
    let first = until(&d, "c", json!({ "types": ["needs_input"] }));
    assert_eq!(first["id"], json!(process), "it is published although output continues");
    d.printed(&process, "59");
    d.ok("submit", json!({ "id": process, "data": "x" }));
    d.closed(&process);
    assert_eq!(asked(&d, &process).len(), 1);
}

/// `needs_input` of a process in every method that describes it.
fn fields(d: &Daemon, process: &str) -> [Value; 3] {
    let listed = d.ok("list", json!({}))["processes"].as_array().unwrap().iter().find(|p| p["id"] == process).cloned();
    let shown = [d.process(process), d.ok("inspect", json!({ "id": process })), listed.expect("it is listed")];
    shown.map(|process| process["needs_input"].clone())
}

#[test]
fn the_field_has_the_question_only_while_the_program_waits() {
    let mut d = Daemon::start();
    let script = "printf 'Go? '; read -r x; echo working; sleep 1000";
    let process = id(&d.sh_with(script, json!({ "pty": true })));
    let event = until(&d, "c", json!({ "types": ["needs_input"], "id": process }));
    let [polled, inspected, listed] = fields(&d, &process);
    let since = polled["since"].as_str().unwrap().to_owned();
    assert_eq!(polled, json!({ "since": since, "prompt": "Go? ", "echo": true }));
    assert_eq!((&inspected, &listed), (&polled, &polled));
    let started = d.process(&process)["started_at"].as_str().unwrap().to_owned();
    assert!(started < since && since.as_str() <= event["at"].as_str().unwrap(), "{started} {since} {event}");
    // The broken design kept the flag of the event, which a new daemon does not have.
    d.restart();
    let waits = [polled.clone(), polled.clone(), polled];
    d.eventually("the next daemon sees the same wait", || fields(&d, &process) == waits);
    d.ok("submit", json!({ "id": process, "data": "yes" }));
    d.printed(&process, "working");
    assert_eq!(fields(&d, &process), [const { Value::Null }; 3], "it sleeps now");
    d.ok("kill", json!({ "id": process }));
    assert_eq!(fields(&d, &process), [const { Value::Null }; 3]);
}

#[test]
fn the_short_view_has_no_question_and_the_field_can_be_selected() {
    let d = Daemon::start();
    let process = id(&d.ok("exec", json!({ "argv": ["cat"], "stdin": "pipe", "name": "cat" })));
    d.eventually("it waits", || d.process(&process)["needs_input"].is_object());
    let short = d.ok("poll", json!({ "id": process, "view": "short" }));
    let mut keys: Vec<&String> = short.as_object().unwrap().keys().collect();
    keys.sort();
    assert_eq!(keys, ["cursor", "exit_code", "id", "name", "output", "reason", "status"]);
    let selected = d.ok("poll", json!({ "id": process, "fields": ["needs_input"] }));
    assert_eq!(
        (&selected["needs_input"]["prompt"], &selected["needs_input"]["echo"]),
        (&json!(""), &Value::Null),
        "a pipe has no echo"
    );
}

/// The prompt is a part of the output: a caller that asks for output without secrets must not get them by the other field.
#[test]
fn a_secret_in_the_prompt_is_redacted_where_the_output_is() {
    let d = Daemon::start();
    let secret = "hunter2-hunter2-hunter2";
    let script = "printf 'key %s ok? ' \"$MY_TOKEN\"; read -r x";
    let process = id(&d.sh_with(script, json!({ "stdin": "pipe", "env": { "MY_TOKEN": secret } })));
    d.eventually("it waits", || d.process(&process)["needs_input"].is_object());
    let plain = d.ok("poll", json!({ "id": process }));
    assert_eq!(plain["needs_input"]["prompt"], format!("key {secret} ok? "));
    for (method, params) in [("poll", json!({})), ("wait", json!({ "until": "input", "timeout_ms": 50000 }))] {
        let mut params = params;
        params["id"] = json!(process);
        params["redact"] = json!(true);
        let answer = d.ok(method, params);
        assert!(!answer.to_string().contains(secret), "{answer}");
    }
}

/// A wait that ends by itself is over, although nothing was printed and nothing was written.
#[test]
fn a_wait_that_timed_out_is_over() {
    let d = Daemon::start();
    let gate = d.root().join("over");
    let script = format!("read -r -t 3 x; echo > {}; exec sleep 1000", gate.display());
    let process = id(&d.ok("exec", json!({ "argv": ["bash", "-c", script], "stdin": "pipe" })));
    d.eventually("the wait is seen", || d.process(&process)["needs_input"].is_object());
    d.eventually("the wait is over", || gate.exists());
    d.eventually("it sleeps", || d.process(&process)["needs_input"].is_null());
}

/// A program that answers every line waits again at once: the field follows although events are at least 2 s apart.
#[test]
fn the_field_follows_every_wait() {
    let d = Daemon::start();
    let process = id(&d.ok("exec", json!({ "argv": ["cat"], "stdin": "pipe" })));
    for n in 0..3 {
        d.eventually("it waits", || d.process(&process)["needs_input"].is_object());
        d.ok("submit", json!({ "id": process, "data": format!("line {n}") }));
        d.printed(&process, &format!("line {n}"));
    }
}
