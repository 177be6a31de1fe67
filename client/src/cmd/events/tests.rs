//! `events` against a fake daemon.

use crate::cli::{Screen, test_run, test_run_into, test_run_on};
use crate::testing::{FakeDaemon, Reply, info, process};
use serde_json::{Value, json};
use std::io::{self, Write};

fn event(seq: u64, kind: &str) -> Value {
    json!({"seq": seq, "at": "2026-11-16T06:00:00.123Z", "type": kind, "id": "proc_0123456789ab", "session_key": "s",
        "task_id": null, "name": null, "command": "true", "exit_code": 0, "signal": null, "reason": "exited", "killed_by": null,
        "duration_ms": 5300, "status": "exited", "bytes": 12, "lines": 1})
}

fn exits(from: u64, to: u64) -> Vec<Value> {
    (from..=to).map(|seq| event(seq, "exited")).collect()
}

/// Returns the numbers of the events that were printed with `--json`.
fn numbers(out: &str) -> Vec<u64> {
    let seq = |line: &str| serde_json::from_str::<Value>(line).ok()?["seq"].as_u64();
    out.lines().map(|line| seq(line).unwrap_or_else(|| panic!("no event: {line}"))).collect()
}

/// A reader that leaves after a number of writes, as `head` does; further writes fail.
struct Head {
    writes: usize,
    text: String,
}

impl Head {
    fn after(writes: usize) -> Head {
        Head { writes, text: String::new() }
    }
}

impl Write for Head {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writes = self.writes.checked_sub(1).ok_or(io::ErrorKind::BrokenPipe)?;
        self.text.push_str(&String::from_utf8_lossy(bytes));
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs `toolctl` until its reader leaves after `left` writes. Returns the numbers of the printed events, and the errors.
fn until_left(writes: usize, screen: Screen, fake: &FakeDaemon, args: &[&str]) -> (Vec<u64>, String) {
    let mut head = Head::after(writes);
    let (code, err) = test_run_into(&mut head, screen, fake, args);
    assert_eq!(code, 0, "a reader that leaves is not an error: {err}");
    (numbers(&head.text), err)
}

fn methods(fake: &FakeDaemon) -> Vec<String> {
    fake.requests().into_iter().map(|(method, _)| method).collect()
}

#[test]
fn the_last_events_are_shown_and_no_subscription_is_left() {
    let fake = FakeDaemon::start(vec![vec![Reply::result(info(1, 25)), Reply::subscribed(7, &exits(6, 26))]]);
    let (code, out, err) = test_run(&fake, &["events", "--json"]);
    assert_eq!((code, numbers(&out), err), (0, (6..=25).collect(), String::new()), "26 came after we asked");
    let asked = fake.requests();
    assert_eq!(asked[1], ("events.subscribe".into(), json!({"after": 5})));
    for (args, after, last) in [(&["-n", "2"][..], 23, 25), (&["--after", "20"], 20, 25), (&["-n", "99"], 0, 25)] {
        let fake =
            FakeDaemon::start(vec![vec![Reply::result(info(1, 25)), Reply::subscribed(7, &exits(after + 1, last))]]);
        let (_, out, _) = test_run(&fake, &[&["events", "--json"], args].concat());
        assert_eq!(numbers(&out), (after + 1..=last).collect::<Vec<u64>>(), "{args:?}");
        assert_eq!(fake.requests()[1].1, json!({"after": after}));
    }
}

#[test]
fn an_empty_journal_shows_nothing_and_subscribes_to_nothing() {
    for (journal, args) in
        [(info(0, 0), &["events"][..]), (info(1, 9), &["events", "-n", "0"]), (info(1, 9), &["events", "--after", "9"])]
    {
        let fake = FakeDaemon::start(vec![vec![Reply::result(journal)]]);
        assert_eq!(test_run(&fake, args), (0, String::new(), String::new()));
        assert_eq!(methods(&fake), ["daemon.info"]);
    }
}

#[test]
fn a_terminal_shows_a_line_per_event_and_json_the_exact_bytes() {
    let odd = r#"{ "seq":1,"at":"x","type":"moved","id":null,"to":"a\u0007", "n":1.50 }"#;
    let push = format!(
        "{{\"jsonrpc\":\"2.0\",\"method\":\"events.event\",\"params\":{{\"subscription\":7,\"result\":{odd}}}}}\n"
    );
    let fake =
        || FakeDaemon::start(vec![vec![Reply::result(info(1, 1)), Reply::result(7).then(Reply::Line(push.clone()))]]);
    assert_eq!(test_run(&fake(), &["events", "--json"]), (0, format!("{odd}\n"), String::new()));
    assert_eq!(test_run(&fake(), &["events"]).1, "          moved        -  to=a\\x07 n=1.5\n");
    let fake = FakeDaemon::start(vec![vec![Reply::result(info(1, 1)), Reply::subscribed(7, &exits(1, 1))]]);
    let (hour, minute, second) = crate::sys::local_time_of_day(1_794_808_800_123).expect("a time");
    let time = format!("{hour:02}:{minute:02}:{second:02}");
    assert_eq!(
        test_run(&fake, &["events"]).1,
        format!("{time}  exited       proc_0123456789ab  exit 0 after 5s, 12 bytes, 1 line\n")
    );
}

#[test]
fn a_filter_goes_back_as_far_as_it_must_and_knows_the_end_by_events_it_does_not_show() {
    let started = |from: u64, to: u64| (from..=to).map(|seq| event(seq, "started")).collect::<Vec<Value>>();
    let (first, second) = (started(1001, 2000), [exits(1, 3), started(4, 2000)].concat());
    let fake = FakeDaemon::start(vec![vec![
        Reply::result(info(1, 2000)),
        Reply::subscribed(7, &first),
        Reply::result(true),
        Reply::subscribed(8, &second),
    ]]);
    let (_, out, _) = test_run(&fake, &["events", "--json", "--type", "exited", "-n", "2"]);
    assert_eq!(numbers(&out), [2, 3]);
    let asked: Vec<Value> = fake.requests().into_iter().map(|(_, params)| params).collect();
    assert_eq!(asked[1..4], [json!({"after": 1000}), json!({"subscription": 7}), json!({"after": 0})]);
}

#[test]
fn a_name_is_understood_by_the_daemon_and_every_filter_is_applied() {
    let others = [
        json!({"seq": 1, "type": "exited", "id": "proc_00000000000f", "session_key": "s", "task_id": "t"}),
        json!({"seq": 2, "type": "exited", "id": "proc_0123456789ab", "session_key": "z", "task_id": "t"}),
        json!({"seq": 3, "type": "exited", "id": "proc_0123456789ab", "session_key": "s", "task_id": null}),
        json!({"seq": 4, "type": "exited", "id": "proc_0123456789ab", "session_key": "s", "task_id": "t"}),
        json!({"seq": 5, "type": "closed", "id": "proc_0123456789ab", "session_key": "s", "task_id": "t"}),
    ];
    let page = process(json!({"output": "", "from": 0, "next_cursor": 0, "gap": null}));
    let fake =
        FakeDaemon::start(vec![vec![Reply::result(info(1, 5)), Reply::result(page), Reply::subscribed(7, &others)]]);
    let args = ["events", "--json", "--id", "web", "--session", "s", "--task", "t", "--type", "exited"];
    assert_eq!(numbers(&test_run(&fake, &args).1), [4]);
    assert_eq!(fake.requests()[1], ("poll".into(), json!({"id": "web"})));
    let gone = json!({"code": -32001, "message": "no such process", "data": {"kind": "not_found"}});
    let fake = FakeDaemon::start(vec![vec![Reply::result(info(1, 5)), Reply::error(gone), Reply::HangUp]]);
    assert_eq!(test_run(&fake, &["events", "--id", "unknown"]).0, 3);
}

#[test]
fn following_goes_on_after_a_restart_with_nothing_lost_and_nothing_doubled() {
    let script = || {
        vec![
            vec![
                Reply::result(info(1, 2)),
                Reply::subscribed(7, &exits(1, 3)),
                Reply::result(true),
                // 3 came with the first subscription too, but after the events that it was made for.
                Reply::subscribed(8, &exits(3, 4)).then(Reply::HangUp),
            ],
            vec![Reply::result(info(1, 6)).then(Reply::HangUp)],
            vec![Reply::result(info(1, 6)), Reply::subscribed(9, &exits(4, 8))],
        ]
    };
    let args = ["events", "-f", "--json", "--type", "exited", "--output"];
    let fake = FakeDaemon::start(script());
    assert_eq!(
        until_left(6, Screen::None, &fake, &[&args[..], &["-n", "2"]].concat()),
        (vec![1, 2, 3, 4, 5, 6, 7], String::new())
    );
    let asked = fake.requests();
    let subscribed: Vec<&Value> = asked.iter().filter(|(m, _)| m == "events.subscribe").map(|(_, p)| p).collect();
    let wanted = |after: u64| json!({"types": ["exited"], "after": after, "output": true});
    assert_eq!(subscribed[..2], [&json!({"after": 0}), &wanted(2)]);
    assert!(subscribed[2..].iter().all(|params| **params == wanted(4)), "{subscribed:?}");
    let fake = FakeDaemon::start(script());
    let (_, printed) = until_left(6, Screen::Errors, &fake, &args);
    assert_eq!(
        printed,
        "toolctl: reconnected to the daemon; continuing after event 4\n".repeat(printed.lines().count())
    );
    assert!(!printed.is_empty(), "the reconnect is reported");
}

#[test]
fn events_lost_during_a_restart_are_reported_in_every_mode() {
    let script = |journal: Value, next: u64| {
        let first = vec![Reply::result(info(1, 2)), Reply::subscribed(7, &exits(3, 3)).then(Reply::HangUp)];
        FakeDaemon::start(vec![first, vec![Reply::result(journal), Reply::subscribed(8, &exits(next, next + 1))]])
    };
    let args = ["events", "-f", "-n", "0", "--json"];
    let printed = until_left(2, Screen::None, &script(info(6, 8), 6), &args);
    assert_eq!(printed, (vec![3, 6], "toolctl: events 4 to 5 are no longer stored\n".into()));
    let printed = until_left(2, Screen::None, &script(info(1, 1), 1), &args);
    assert_eq!(
        printed,
        (vec![3, 1], "toolctl: the journal starts again from the beginning; it was at event 3 before\n".into())
    );
}

#[test]
fn a_gap_is_requested_once_and_shown_if_it_stays() {
    let lagged = json!({"type": "lagged", "of": "events", "id": null, "from": 2, "to": 5});
    let fake = FakeDaemon::start(vec![vec![
        Reply::result(info(0, 0)),
        Reply::subscribed(7, &[&exits(1, 1)[..], std::slice::from_ref(&lagged), &exits(6, 6)].concat()),
        Reply::result(true),
        Reply::subscribed(8, &exits(2, 8)),
    ]]);
    assert_eq!(until_left(7, Screen::None, &fake, &["events", "-f", "--json"]).0, [1, 2, 3, 4, 5, 6, 7]);
    let fake = FakeDaemon::start(vec![vec![
        Reply::result(info(0, 0)),
        Reply::subscribed(7, std::slice::from_ref(&lagged)),
        Reply::result(true),
        Reply::subscribed(8, &[&[lagged.clone()][..], &exits(6, 7)].concat()),
    ]]);
    let mut head = Head::after(2);
    test_run_into(&mut head, Screen::None, &fake, &["events", "-f", "--json"]);
    let shown: Vec<Value> = head.text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(shown, [lagged, event(6, "exited")]);
}

#[test]
fn a_subscription_that_the_daemon_ends_or_refuses_is_an_error() {
    let ended =
        "{\"jsonrpc\":\"2.0\",\"method\":\"events.event\",\"params\":{\"subscription\":7,\"error\":\"over\"}}\n";
    let fake =
        FakeDaemon::start(vec![vec![Reply::result(info(0, 0)), Reply::result(7).then(Reply::Line(ended.into()))]]);
    let (code, _, err) = test_run(&fake, &["events", "-f"]);
    assert!(code == 1 && err.contains("the daemon ended the subscription: \"over\""), "{err}");
    let error = json!({"code": -32004, "message": "too many", "data": {"kind": "limit"}});
    let fake = FakeDaemon::start(vec![vec![Reply::result(info(0, 0)), Reply::error(error)]]);
    assert_eq!(test_run(&fake, &["events", "-f"]), (1, String::new(), "toolctl: too many\n".into()));
}

fn pulled(events: &[Value], last: u64) -> Value {
    json!({"consumer": "me", "events": events, "position": 0, "last": last, "missing": null, "created": false,
        "forgotten": null})
}

fn acked() -> Reply {
    Reply::result(json!({"consumer": "me", "position": 1}))
}

#[test]
fn a_consumer_gets_the_current_events_and_then_it_ends() {
    let fake = FakeDaemon::start(vec![vec![
        Reply::result(pulled(&exits(1, 2), 4)),
        acked(),
        Reply::result(pulled(&exits(3, 4), 9)),
        acked(),
    ]]);
    let args =
        ["events", "--consumer", "me", "--json", "--type", "exited", "--session", "s", "--task", "t", "--id", "web"];
    let (code, out, err) = test_run(&fake, &args);
    assert_eq!((code, numbers(&out), err), (0, vec![1, 2, 3, 4], String::new()), "5 to 9 came after we asked");
    let pull = json!({"consumer": "me", "types": ["exited"], "session_key": "s", "task_id": "t", "id": "web", "limit": 100,
        "from": "now"});
    let ack = |seq: u64| ("events.ack".to_owned(), json!({"consumer": "me", "seq": seq}));
    let asked = fake.requests();
    assert_eq!(asked, [("events.next".into(), pull.clone()), ack(2), ("events.next".into(), pull), ack(4)]);
}

#[test]
fn a_consumer_takes_at_most_n_and_waits_only_for_the_first() {
    let fake = FakeDaemon::start(vec![vec![
        Reply::result(pulled(&exits(1, 2), 9)),
        acked(),
        Reply::result(pulled(&exits(3, 3), 9)),
        acked(),
    ]]);
    let args = ["events", "--consumer", "me", "--json", "-n", "3", "--wait", "30s"];
    assert_eq!(numbers(&test_run(&fake, &args).1), [1, 2, 3]);
    let asked = fake.requests();
    assert_eq!((&asked[0].1["limit"], &asked[0].1["wait_ms"]), (&json!(3), &json!(30000)));
    assert_eq!((&asked[2].1["limit"], &asked[2].1["wait_ms"]), (&json!(1), &Value::Null));
    for (args, code) in [(&["--wait", "1s"][..], 124), (&[], 0)] {
        let fake = FakeDaemon::start(vec![vec![Reply::result(pulled(&[], 9))]]);
        assert_eq!(test_run(&fake, &[&["events", "--consumer", "me"], args].concat()).0, code, "{args:?}");
        assert_eq!(methods(&fake), ["events.next"], "there is nothing to acknowledge");
    }
}

#[test]
fn a_following_consumer_polls_long_and_goes_on_over_a_lost_connection_without_doubling() {
    let fake = FakeDaemon::start(vec![
        // The acknowledgement is lost: what was printed is not pulled again, but acknowledged again.
        vec![Reply::result(pulled(&exits(1, 2), 2)), Reply::HangUp],
        vec![acked(), Reply::HangUp],
        vec![
            Reply::result(pulled(&[], 2)),
            Reply::result(pulled(&exits(3, 3), 3)),
            acked(),
            Reply::result(pulled(&exits(4, 4), 4)),
        ],
    ]);
    assert_eq!(until_left(2, Screen::None, &fake, &["events", "-f", "--consumer", "me", "--json"]).0, [1, 2, 3]);
    let asked = fake.requests();
    assert!(asked.iter().filter(|(m, _)| m == "events.next").all(|(_, params)| params["wait_ms"] == 30000));
    let acks: Vec<&Value> = asked.iter().filter(|(m, _)| m == "events.ack").map(|(_, params)| &params["seq"]).collect();
    assert_eq!(acks, [2, 2, 3], "4 was never printed");
}

/// A standard output that checks before each write what the daemon was asked.
struct Witness<'f> {
    fake: &'f FakeDaemon,
    seen: Vec<String>,
}

impl Write for Witness<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.seen.extend(methods(self.fake));
        self.seen.push("write".into());
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        self.seen.push("flush".into());
        Ok(())
    }
}

#[test]
fn events_are_acknowledged_after_they_were_written_and_flushed() {
    let fake = FakeDaemon::start(vec![vec![Reply::result(pulled(&exits(1, 2), 2)), acked()]]);
    let mut witness = Witness { fake: &fake, seen: Vec::new() };
    assert_eq!(test_run_into(&mut witness, Screen::None, &fake, &["events", "--consumer", "me"]).0, 0);
    let Witness { mut seen, .. } = witness;
    seen.extend(methods(&fake));
    assert_eq!(seen, ["events.next", "write", "flush", "events.ack"]);
    let fake = FakeDaemon::start(vec![vec![Reply::result(pulled(&exits(1, 2), 2)), acked()]]);
    assert_eq!(until_left(0, Screen::None, &fake, &["events", "--consumer", "me"]).0, [0u64; 0]);
    assert_eq!(methods(&fake), ["events.next"], "unread events come again");
}

#[test]
fn events_that_a_consumer_will_never_see_are_reported() {
    let mut result = pulled(&exits(7, 7), 7);
    result["missing"] = json!({"from": 3, "to": 6});
    result["forgotten"] = json!({"position": 2, "at": "x"});
    let fake = FakeDaemon::start(vec![vec![Reply::result(result), acked()]]);
    let (_, _, err) = test_run(&fake, &["events", "--consumer", "me", "--json"]);
    assert!(err.starts_with("toolctl: me was at event 2 and expired because it was not used;"), "{err}");
    assert!(err.ends_with("toolctl: events 3 to 6 are no longer stored\n"), "{err}");
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    let fake = FakeDaemon::start(vec![]);
    for wrong in [
        "--consumer a --after 3",
        "--consumer a -f --output",
        "--output",
        "--wait 3s",
        "--consumer a -f --wait 3s",
        "--type nonsense",
    ] {
        let args: Vec<&str> = ["events"].into_iter().chain(wrong.split(' ')).collect();
        assert_eq!(test_run_on(Screen::None, &fake, &args).0, 2, "{wrong}");
    }
}
