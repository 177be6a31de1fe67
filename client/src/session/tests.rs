//! `run` against a fake daemon.

use super::{Hangup, RecordFate, Role, Session, SessionOptions};
use crate::cli::{Screen, test_run, test_run_on};
use crate::cmd::Context;
use crate::connect::{Autostart, Connection};
use crate::console::Console;
use crate::session::status_line::StatusLine;
use crate::sys::Signals;
use crate::testing::{FakeDaemon, Reply, page, started};
use serde_json::{Value, json};
use std::io::Write;
use std::time::Duration;
use toold_proto::params;

const ID: &str = "proc_0123456789ab";

fn ended(code: i32, closed: bool) -> Value {
    json!({"status": "exited", "reason": "exited", "exit_code": code, "closed": closed})
}

fn with(mut document: Value, changes: Value) -> Value {
    document.as_object_mut().expect("an object").extend(changes.as_object().expect("an object").clone());
    document
}

fn span(stream: &str, from: u64, to: u64) -> Value {
    json!({"stream": stream, "from": from, "to": to, "at_ms": 0})
}

/// Runs `run` with signals and an input of the test. Returns the code, standard output and standard error.
fn follow(fake: &FakeDaemon, signals: std::io::PipeReader, options: SessionOptions) -> (u8, String, String) {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let console = Console::plain(&mut out, &mut err);
    let connection = Connection::new(fake.path(), Autostart::Refused);
    let mut cx = Context { connection, console, json: false };
    let code = Session::new(&mut cx, Signals::from_pipe(signals.into()), options).run().expect("no failure");
    (code, String::from_utf8_lossy(&out).into_owned(), String::from_utf8_lossy(&err).into_owned())
}

fn options() -> SessionOptions {
    SessionOptions {
        role: Role::Owner,
        hangup: Hangup::RunsOn,
        exec: params::ExecParams::default(),
        script: None,
        detach_after: None,
        input: None,
        readiness: None,
        record: RecordFate::Kept,
        max_output: None,
        screen: None,
    }
}

/// Sends a signal when the daemon gets the request of this reply, then replies.
fn on_signal(mut signals: &std::io::PipeWriter, signal: i32, then: Reply) -> Reply {
    let mut writer = signals.try_clone().expect("another end of the pipe");
    let _ = signals.flush();
    Reply::After(Box::new(move || drop(writer.write_all(&Signals::record(signal)))), Box::new(then))
}

#[test]
fn each_stream_goes_to_its_own_and_the_code_is_the_process_s() {
    let spans = json!({"spans": [span("stdout", 0, 4), span("stderr", 4, 8), span("stdout", 8, 12)]});
    let fake = FakeDaemon::start(vec![vec![
        Reply::result(started(json!({}))),
        Reply::result(page(0, b"out\nerr\nend\n", with(spans, ended(7, true)))),
    ]]);
    assert_eq!(test_run(&fake, &["run", "--", "x"]), (7, "out\nend\n".into(), "err\n".into()));
    let asked = json!({"id": ID, "cursor": 0, "max_bytes": 262144, "wait_ms": 30000, "ansi": "keep", "encoding": "base64", "spans": true});
    assert_eq!(fake.requests()[1], ("poll".into(), asked));
}

#[test]
fn a_lost_connection_is_made_again_and_the_output_goes_on_from_the_cursor() {
    let fake = FakeDaemon::start(vec![
        vec![Reply::HangUp],
        vec![Reply::result(started(json!({}))), Reply::result(page(0, b"one ", json!({}))), Reply::HangUp],
        vec![Reply::result(page(4, b"two ", json!({}))), Reply::HangUp],
        vec![Reply::result(page(8, b"three", ended(0, true)))],
    ]);
    assert_eq!(test_run(&fake, &["run", "--", "x"]), (0, "one two three".into(), String::new()));
    let asked = fake.requests();
    let cursors: Vec<&Value> = asked.iter().filter(|(method, _)| method == "poll").map(|(_, p)| &p["cursor"]).collect();
    assert_eq!(cursors, [&json!(0), &json!(4), &json!(4), &json!(8), &json!(8)]);
    assert_eq!(asked[0].1["request_id"], asked[1].1["request_id"], "the start was asked twice, with one id");
    assert!(asked[0].1["request_id"].is_string());
}

#[test]
fn an_orphan_that_holds_the_output_open_does_not_block_run() {
    let fake = FakeDaemon::start(vec![vec![
        Reply::result(started(json!({}))),
        Reply::result(page(0, b"bye", ended(143, false))),
        Reply::result(page(3, b"", ended(143, false))),
    ]]);
    assert_eq!(test_run(&fake, &["run", "--", "x"]), (143, "bye".into(), String::new()));
}

#[test]
fn a_program_that_cannot_start_is_an_error_and_a_gap_is_reported() {
    let error = json!({"code": -32006, "message": "no such program", "data": {"kind": "spawn_failed"}});
    let fake = FakeDaemon::start(vec![vec![Reply::error(error)]]);
    assert_eq!(test_run(&fake, &["run", "--", "x"]), (1, String::new(), "toolctl: no such program\n".into()));
    let gap = with(
        ended(0, true),
        json!({"gap": {"from": 0, "to": 10}, "from": 10, "next_cursor": 12, "cursor": 12, "bytes": 12}),
    );
    let fake = FakeDaemon::start(vec![vec![Reply::result(started(json!({}))), Reply::result(page(0, b"ok", gap))]]);
    let printed = "toolctl: 10 bytes of output were not kept\n";
    let expected = format!("the output of {ID} is incomplete: 10 of its 12 bytes are missing; they were not kept");
    assert_eq!(test_run(&fake, &["run", "--", "x"]), (74, "ok".into(), format!("{printed}toolctl: {expected}\n")));
}

#[test]
fn output_that_no_page_shows_as_missing_is_reported_too() {
    let ended = with(ended(0, true), json!({"cursor": 3, "bytes": 3, "unstored_bytes": 3}));
    let page = with(page(0, b"", ended), json!({"next_cursor": 0}));
    let fake = FakeDaemon::start(vec![vec![
        Reply::result(started(json!({}))),
        Reply::result(page.clone()),
        Reply::result(page),
    ]]);
    let expected = format!(
        "toolctl: the output of {ID} is incomplete: 3 of its 3 bytes are missing; the disk did not take them\n"
    );
    assert_eq!(test_run(&fake, &["run", "--", "x"]), (74, String::new(), expected));
}

#[test]
fn a_program_that_is_held_back_to_its_end_is_read_to_the_end() {
    let held = |held: bool, closed| with(ended(0, closed), json!({"held_back": held}));
    let fake = FakeDaemon::start(vec![vec![
        Reply::result(started(json!({"held_back": false}))),
        Reply::result(page(0, b"one", held(true, false))),
        Reply::result(page(3, b"", held(true, false))),
        Reply::result(page(3, b"two", held(false, true))),
    ]]);
    assert_eq!(test_run(&fake, &["run", "--", "x"]), (0, "onetwo".into(), String::new()));
    let asked = fake.requests();
    assert_eq!(asked[0].1["hold"], true);
    assert!(asked[1..].iter().all(|(_, poll)| poll["hold"] == true && poll["wait_ms"] == 30000), "{asked:?}");
}

#[test]
fn a_daemon_that_knows_no_hold_is_asked_without_and_the_user_gets_a_message() {
    let unknown = json!({"code": -32602, "message": "hold: unknown field `hold`",
        "data": {"kind": "invalid_params", "param": "hold", "problem": "unknown field `hold`"}});
    let fake = FakeDaemon::start(vec![vec![
        Reply::error(unknown),
        Reply::result(started(json!({}))),
        Reply::result(page(0, b"out", ended(0, true))),
    ]]);
    let (code, out, err) = test_run(&fake, &["run", "--", "x"]);
    assert_eq!((code, out.as_str()), (0, "out"));
    assert!(err.contains("the daemon is of an earlier version"), "{err}");
    let asked = fake.requests();
    assert_eq!(
        (&asked[0].1["hold"], &asked[1].1["hold"], &asked[2].1["hold"]),
        (&json!(true), &json!(null), &json!(null))
    );
    assert_eq!(asked[0].1["request_id"], asked[1].1["request_id"]);
}

#[test]
fn the_first_interrupt_is_forwarded_and_the_second_kills() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    let refused = json!({"code": -32002, "message": "it has exited", "data": {"kind": "already_exited"}});
    let poll_id_2 = page(0, b"done", ended(130, true));
    let fake = FakeDaemon::start(vec![vec![
        Reply::result(started(json!({}))),
        on_signal(&writer, libc::SIGINT, Reply::Silence),
        on_signal(&writer, libc::SIGINT, Reply::error(refused)),
        Reply::Line(format!("{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{poll_id_2}}}\n")),
    ]]);
    let printed = format!("toolctl: killing {ID}; Ctrl-C once more leaves without waiting\n");
    assert_eq!(follow(&fake, reader, options()), (130, "done".into(), printed));
    let asked = fake.requests();
    let methods: Vec<&str> = asked.iter().map(|(method, _)| method.as_str()).collect();
    assert_eq!(methods, ["exec", "poll", "signal", "kill"]);
    assert_eq!(asked[2].1, json!({"id": ID, "signal": "SIGINT"}));
    assert_eq!(asked[3].1, json!({"id": ID, "grace_ms": 1000}));
}

#[test]
fn an_interrupt_before_the_process_has_an_id_reaches_it_later() {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    (&writer).write_all(&Signals::record(libc::SIGINT)).expect("the pipe is open");
    let fake = FakeDaemon::start(vec![vec![
        Reply::result(started(json!({}))),
        Reply::Silence,
        Reply::Line(format!("{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}}\n", page(0, b"", ended(130, true)))),
    ]]);
    assert_eq!(follow(&fake, reader, options()).0, 130);
    let (method, params) = fake.requests().pop().expect("three requests");
    assert_eq!((method.as_str(), params), ("signal", json!({"id": ID, "signal": "SIGINT"})));
}

#[test]
fn a_hangup_or_termination_leaves_the_process_running_and_prints_its_id() {
    for (signal, code) in [(libc::SIGTERM, 143), (libc::SIGHUP, 129)] {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        let script = vec![Reply::result(started(json!({}))), on_signal(&writer, signal, Reply::Silence)];
        let fake = FakeDaemon::start(vec![script]);
        let printed = format!("toolctl: {ID} is still running: toolctl log -f {ID}\n");
        assert_eq!(follow(&fake, reader, options()), (code, String::new(), printed));
        assert_eq!(fake.requests().len(), 2, "neither signal nor kill was sent");
    }
}

#[test]
fn detaching_prints_the_id_and_leaves_it_running() {
    let (reader, _writer) = std::io::pipe().expect("a pipe");
    let script = vec![Reply::result(started(json!({}))), Reply::result(page(0, b"hi\n", json!({}))), Reply::Silence];
    let fake = FakeDaemon::start(vec![script]);
    let options = SessionOptions { detach_after: Some(Duration::from_millis(50)), ..options() };
    assert_eq!(follow(&fake, reader, options), (0, format!("hi\n{ID}\n"), String::new()));
}

#[test]
fn our_input_is_written_to_the_last_byte_and_then_closed() {
    let (signals, _writer) = std::io::pipe().expect("a pipe");
    let (input, mut typed) = std::io::pipe().expect("a pipe");
    typed.write_all(b"hello").expect("the pipe is open");
    drop(typed);
    let wrote = |n| Reply::result(json!({"id": ID, "bytes_written": n, "complete": n == 2, "duplicate": false}));
    let fake = FakeDaemon::start(vec![vec![
        Reply::result(started(json!({}))),
        Reply::Silence,
        wrote(3),
        wrote(2),
        Reply::Line(format!("{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}}\n", page(0, b"hello", ended(0, true)))),
    ]]);
    let input = std::fs::File::from(std::os::fd::OwnedFd::from(input));
    let result = follow(&fake, signals, SessionOptions { input: Some(input), ..options() });
    assert_eq!(result, (0, "hello".into(), String::new()));
    let asked = fake.requests();
    let written: Vec<(&str, &Value)> = asked[2..].iter().map(|(m, p)| (m.as_str(), &p["data_base64"])).collect();
    assert_eq!(written, [("write", &json!("aGVsbG8=")), ("write", &json!("bG8=")), ("close", &Value::Null)]);
    assert_ne!(asked[2].1["write_id"], asked[3].1["write_id"]);
}

#[test]
fn with_json_the_last_document_is_printed_as_it_came() {
    let document = |changes| with(started(changes), json!({"matched": null}));
    let answer = |status: &str, process: &Value| {
        format!(
            "{{\"status\":\"{status}\", \"processes\":[ {process} ],\"timeout_ms\":1,\"clamped\":false,\"note\":null}}"
        )
    };
    let (running, done) = (document(json!({})), document(ended(9, true)));
    let fake = FakeDaemon::start(vec![vec![
        Reply::result(started(json!({}))),
        Reply::result(answer("timeout", &running)),
        Reply::result(answer("exited", &done)),
    ]]);
    assert_eq!(test_run(&fake, &["run", "--json", "--", "x"]), (9, format!("{done}\n"), String::new()));
    let fake = FakeDaemon::start(vec![vec![
        Reply::result(started(json!({}))),
        Reply::Silence,
        Reply::result(answer("timeout", &running)),
    ]]);
    let args = ["run", "--json", "--detach-after", "10ms", "--", "x"];
    assert_eq!(test_run(&fake, &args), (0, format!("{running}\n"), String::new()));
}

#[test]
fn a_daemon_that_never_answers_is_given_up() {
    let (reader, _writer) = std::io::pipe().expect("a pipe");
    let fake = FakeDaemon::start(vec![vec![Reply::Silence]]);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let console = Console::plain(&mut out, &mut err);
    let connection = Connection::new(fake.path(), Autostart::Refused).with_timeout(Duration::from_millis(20));
    let mut cx = Context { connection, console, json: false };
    let failure =
        Session::new(&mut cx, Signals::from_pipe(reader.into()), options()).run().expect_err("no answer came");
    assert_eq!((failure.exit_code(), fake.requests().len()), (4, 1), "{failure}");
}

/// Both streams of a test in the order they were written.
#[derive(Clone, Default)]
struct Shared(std::rc::Rc<std::cell::RefCell<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs `run` on a screen where its status line is due at once, until it detaches. Returns all that was written.
fn on_screen(script: Vec<Reply>) -> String {
    let (reader, _writer) = std::io::pipe().expect("a pipe");
    let fake = FakeDaemon::start(vec![script]);
    let (shared, mut out, mut err) = (Shared::default(), Shared::default(), Shared::default());
    out.0.clone_from(&shared.0);
    err.0.clone_from(&shared.0);
    let mut console = Console::plain(&mut out, &mut err);
    console.can_redraw = true;
    console.err_style.width = Some(60);
    let connection = Connection::new(fake.path(), Autostart::Refused);
    let mut cx = Context { connection, console, json: false };
    let options = SessionOptions { detach_after: Some(Duration::from_millis(50)), ..options() };
    let mut follow = Session::new(&mut cx, Signals::from_pipe(reader.into()), options);
    assert!(follow.status_line.is_some(), "a screen shows a line");
    follow.status_line = Some(StatusLine::paced(std::time::Instant::now(), Duration::from_millis(1)));
    assert_eq!(follow.run().expect("no failure"), 0);
    String::from_utf8_lossy(&shared.0.borrow()).into_owned()
}

#[test]
fn a_quiet_program_has_a_status_line_that_is_erased_before_any_output() {
    let written = on_screen(vec![
        Reply::result(started(json!({}))),
        Reply::result(page(0, b"one\ntwo\n", json!({}))),
        Reply::Silence,
    ]);
    let (before, after) = written.split_once("one\ntwo\n").expect("the output is whole");
    assert!(before.is_empty() || before.ends_with("\x1b[K\r\x1b[K"), "{written:?}");
    let mut lines: Vec<&str> = after.split("\x1b[K").collect();
    assert_eq!(lines.split_off(lines.len() - 2), ["\r", &format!("{ID}\n")], "erased, then the id: {written:?}");
    let ours = |line: &&str| line.starts_with('\r') && line.ends_with(&format!("s  {ID} running: two"));
    assert!(!lines.is_empty() && lines.iter().all(ours), "{written:?}");
}

#[test]
fn no_line_of_ours_is_shown_inside_a_line_of_the_program() {
    let open = Reply::result(page(0, b"Name? ", json!({})));
    let written = on_screen(vec![Reply::result(started(json!({}))), open, Reply::Silence]);
    assert!(written.ends_with(&format!("Name? {ID}\n")), "{written:?}");
}

#[test]
fn readiness_is_reported_beside_the_output_and_the_end_is_acknowledged() {
    let waited = with(started(json!({})), json!({"matched": "up", "listener": null}));
    let ready = json!({"status": "matched", "processes": [waited], "timeout_ms": 1, "clamped": false, "note": null});
    let fake = FakeDaemon::start(vec![vec![
        Reply::result(json!({})),
        Reply::result(started(json!({}))),
        Reply::Silence,
        Reply::result(&ready).then(Reply::Line(format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":{}}}\n",
            page(0, b"up\n", ended(3, true))
        ))),
        Reply::result(&ready),
    ]]);
    let args = ["run", "--ready-match", "up", "--consumer", "me", "--", "x"];
    let (code, out, err) = test_run_on(Screen::Errors, &fake, &args);
    assert_eq!((code, out.as_str()), (3, "up\n"));
    assert_eq!(err, format!("toolctl: {ID} is ready\n"));
    let asked = fake.requests();
    assert_eq!(asked[0], ("events.next".into(), json!({"consumer": "me", "limit": 1, "from": "now"})));
    assert_eq!((&asked[1].1["ready"], &asked[1].1["consumer"]), (&Value::Null, &json!("me")));
    assert_eq!(asked[3], ("wait".into(), json!({"id": ID, "until": {"match": "up"}, "timeout_ms": 60000})));
    assert_eq!(asked[4], ("wait".into(), json!({"id": ID, "timeout_ms": 1, "consumer": "me"})));
}

/// Types a line once the process has an id. Returns what is left of it in the terminal after `run`.
fn typed_line(after: impl FnOnce() -> Vec<Reply>) -> (Vec<String>, String, String) {
    use std::io::Read;
    let (mut person, program) = crate::sys::open_pty();
    let shell = program.try_clone().expect("another handle");
    let types = Reply::After(
        Box::new(move || {
            person.write_all(b"mine\n").expect("the terminal is open");
            // Open as long as the other side: a closed terminal ends differently.
            std::mem::forget(person);
        }),
        Box::new(Reply::result(started(json!({})))),
    );
    let fake = FakeDaemon::start(vec![[types, Reply::Silence].into_iter().chain(after()).collect()]);
    let (reader, _writer) = std::io::pipe().expect("a pipe");
    let (code, _, err) = follow(&fake, reader, SessionOptions { input: Some(program), ..options() });
    assert_eq!(code, 3);
    let waits = crate::sys::poll(
        [Some((std::os::fd::AsFd::as_fd(&shell), crate::sys::Interest::Readable))],
        Some(Duration::ZERO),
    );
    let mut left = [0; 16];
    let read = if waits.expect("a terminal")[0] { (&shell).read(&mut left).expect("a line") } else { 0 };
    let asked = fake.requests().into_iter().map(|(method, _)| method).collect();
    (asked, String::from_utf8_lossy(&left[..read]).into_owned(), err)
}

/// The answer to the poll that waits for the end.
fn end_of_run() -> Reply {
    Reply::Line(format!("{{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":{}}}\n", page(0, b"", ended(3, true))))
}

/// The answer to an empty write: the process can read.
fn process_can_read() -> Reply {
    Reply::result(json!({"id": ID, "bytes_written": 0, "complete": true, "duplicate": false}))
}

fn refused(kind: toold_proto::ErrorKind) -> Reply {
    let refusal = toold_proto::RpcError::new(kind, "too late");
    Reply::error(serde_json::to_string(&refusal).expect("an error is JSON"))
}

#[test]
fn a_line_is_taken_only_after_a_check_that_it_can_be_read() {
    // The broken code took the line as soon as it was there, and the shell never saw it.
    for kind in [toold_proto::ErrorKind::AlreadyExited, toold_proto::ErrorKind::StdinUnavailable] {
        let (asked, left, err) = typed_line(|| vec![Reply::Both(Box::new(refused(kind)), Box::new(end_of_run()))]);
        assert_eq!((asked.join(" ").as_str(), left.as_str(), err.as_str()), ("exec poll write", "mine\n", ""));
    }
}

#[test]
fn a_line_that_the_program_ended_before_reading_is_printed() {
    let printed = "toolctl: it ended before it could read what you typed: mine\n";
    for kind in [toold_proto::ErrorKind::AlreadyExited, toold_proto::ErrorKind::StdinUnavailable] {
        let (asked, left, err) = typed_line(|| vec![process_can_read(), refused(kind), end_of_run()]);
        let all = ("exec poll write write wait", "", printed);
        assert_eq!((asked.join(" ").as_str(), left.as_str(), err.as_str()), all);
        // The end is known before the refusal.
        let both = Reply::Both(Box::new(end_of_run()), Box::new(refused(kind)));
        assert_eq!(typed_line(|| vec![process_can_read(), both]).2, printed);
    }
}

#[test]
fn a_line_for_a_program_that_runs_without_its_stdin_is_not_printed() {
    let waited = with(started(json!({})), json!({"matched": null, "listener": null}));
    let running =
        json!({"status": "timeout", "processes": [waited], "timeout_ms": 100, "clamped": false, "note": null});
    let (_, _, err) = typed_line(|| {
        let waited = Reply::Both(Box::new(Reply::result(&running)), Box::new(end_of_run()));
        vec![process_can_read(), refused(toold_proto::ErrorKind::StdinUnavailable), waited]
    });
    assert_eq!(err, "");
}
