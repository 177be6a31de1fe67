//! `exec`: starts a process in the background and prints its id.

use super::Context;
use super::options::caller_env;
use super::options::exec::{self, PtyDefault};
use super::options::fields::Fields;
use super::options::ready::{self, Readiness};
use super::options::turn::TurnOptions;
use super::wait::signed;
use crate::args;
use crate::blocking::CallError;
use crate::error::{CliError, DONE};
use crate::process_ref;
use crate::render::sanitize::{Keep, Sanitizer};
use crate::render::{Style, limits, poll};
use std::time::Duration;
use toold_proto::api;
use toold_proto::params::{IfRunning, Status};
use toold_proto::results;

const NOTES: &str = "With --ready-…: prints the id when the process is ready, has ended or the time is up. The exit code \
is 0 when it is ready, 124 when the time was up (it keeps running), and when it ended before it was ready its own code, or 1 \
if that was 0.
A TIME is 500ms, 10s, 2m, 1h or 1d; a SIZE is 10K, 512M or 1G.";

/// The most output that goes to standard error in a pipe: enough for the reason of a failure.
const MAX_TAIL_LINES: usize = 20;
const MAX_TAIL_LEN: usize = 4096;

#[derive(Debug, clap::Args)]
#[command(after_help = NOTES, override_usage = "toolctl exec [OPTIONS] [--] CMD [ARG]...\n       toolctl exec [OPTIONS] -c TEXT")]
pub struct Args {
    #[command(flatten)]
    options: exec::Options,
    #[command(flatten)]
    turn: TurnOptions,
    /// Wait up to this long for its end, and then show its output too; in a pipe its last lines, on stderr
    #[arg(long = "yield", value_name = "TIME", value_parser = args::duration_ms)]
    yield_ms: Option<u64>,
    /// With --yield or --ready-…: only the last N lines of its output
    #[arg(long, value_name = "N")]
    tail: Option<u64>,
    #[command(flatten)]
    fields: Fields,
    #[command(flatten)]
    what: exec::Program,
}

impl Args {
    /// Returns the ids of --after.
    pub fn after_ids(&mut self) -> Vec<&mut String> {
        self.turn.after.iter_mut().collect()
    }
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let mut options = args.options;
    let readiness = options.take_readiness();
    let env = options.take_env();
    let mut params = exec::params(args.what, options, PtyDefault::Daemon)?;
    params.session_key = cx.session_or_agents(params.session_key);
    args.turn.apply(&mut params);
    caller_env::add(&mut params, env, cx)?;
    params.consumer = cx.consumer_or_agents(params.consumer);
    if let Some(consumer) = &params.consumer {
        super::events::create_consumer(consumer, cx)?;
    }
    params.yield_ms = args.yield_ms.unwrap_or(0);
    params.tail_lines = args.tail;
    params.ready = readiness.as_ref().map(|ready| ready.until.clone());
    params.ready_timeout_ms = readiness.as_ref().and_then(|ready| ready.timeout_ms).map(signed);
    // Without readiness the exit code depends on the start alone.
    let needed: &[&str] = if readiness.is_some() { &["ready", "status", "exit_code"] } else { &[] };
    let selection = args.fields.select(cx, needed);
    (params.fields, params.view) = (selection.fields.clone(), selection.view);
    let ready_time = readiness.as_ref().map_or(Duration::ZERO, Readiness::time);
    cx.connection.expect_wait(Duration::from_millis(params.yield_ms).saturating_add(ready_time));
    let raw = cx.connection.call_raw_with_retry::<api::Exec>(|_| params.clone())?;
    // Without this error a script would go on as if the process were ready.
    let missing = || CallError::Protocol("the daemon did not report whether it is ready".into());
    if selection.is_partial() {
        selection.print(&raw, cx)?;
        if readiness.is_none() {
            return Ok(DONE);
        }
        let known: ReadyFields = serde_json::from_str(raw.get()).map_err(|_| missing())?;
        return Ok(ready::exit_code(known.ready, known.status, known.exit_code));
    }
    let result = cx.show::<api::Exec>(&raw, format_started)?;
    if let Some(limits) = limits::unenforced(&result.process).filter(|_| !cx.json) {
        cx.console.message(&limits);
    }
    let talks = cx.console.err_style.terminal() && !cx.json;
    // A repeated request is not worth a message: it was made so that it can be repeated.
    if talks && result.existing && params.if_running == IfRunning::Return {
        cx.console.message(&format!("{} ran already; nothing was started", result.process.id));
    }
    let Some(asked) = readiness else {
        if args.yield_ms.is_some() && !cx.json && !cx.console.style.terminal() {
            report(&poll::summary(&result.process), &result, cx);
        }
        return Ok(DONE);
    };
    let ready = result.ready.ok_or_else(missing)?;
    let sentence = ready::sentence(ready, &result.process, &asked);
    match ready {
        results::Ready::Ready if talks => cx.console.message(&sentence),
        results::Ready::Ready => {}
        results::Ready::Timeout | results::Ready::Exited if cx.json => {}
        results::Ready::Timeout | results::Ready::Exited => report(&sentence, &result, cx),
    }
    Ok(ready::exit_code(ready, result.process.status, result.process.exit_code))
}

/// The fields that decide the exit code of a call with readiness.
#[derive(serde::Deserialize)]
struct ReadyFields {
    ready: results::Ready,
    status: Status,
    exit_code: Option<i32>,
}

/// Prints a sentence and the last lines of output on standard error: in a pipe, standard output has the id alone.
fn report(sentence: &str, result: &results::ExecResult, cx: &mut Context<'_>) {
    cx.console.message(sentence);
    if cx.console.style.terminal() {
        return;
    }
    let tail = last_lines(&result.output);
    cx.console.print_tail(tail);
    if tail.len() < result.output.len() {
        cx.console.message(&format!("these are its last lines; for all of them: toolctl log {}", result.process.id));
    }
}

/// Returns the last lines of a text, at most `MAX_TAIL_LINES` and `MAX_TAIL_LEN`.
fn last_lines(text: &str) -> &str {
    let body = text.strip_suffix('\n').unwrap_or(text);
    let start = body.rmatch_indices('\n').nth(MAX_TAIL_LINES - 1).map_or(0, |(at, _)| at + 1);
    let start = start.max(text.len().saturating_sub(MAX_TAIL_LEN));
    let start = (start..text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(text.len());
    &text[start..]
}

fn format_started(result: &results::ExecResult, style: Style) -> String {
    let process = &result.process;
    if !style.terminal() {
        return format!("{}\n", process.id);
    }
    match process.status {
        Status::Pending | Status::Starting | Status::Running if result.output.is_empty() => {
            // On its own line the hint fits a narrow terminal, ready to be copied.
            let approval = process.pending_on.as_ref().and_then(|pending| pending.approval);
            let hint = match approval {
                Some(id) => format!("  toolctl approve {id}, or toolctl deny {id}\n"),
                None => format!("  toolctl log -f {}\n", process_ref::typed(process)),
            };
            poll::headline(process, style) + &hint
        }
        Status::Pending | Status::Starting | Status::Running | Status::Exited | Status::Lost => {
            poll::headline(process, style) + &Sanitizer::new(Keep::Nothing).sanitize(&result.output)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Screen, test_run, test_run_on};
    use crate::testing::{FakeDaemon, Reply, started};
    use serde_json::{Value, json};

    #[test]
    fn readiness_is_the_exit_code_and_a_terminal_gets_a_sentence() {
        let ended = |code| json!({"ready": "exited", "status": "exited", "reason": "exited", "exit_code": code});
        let cases: [(Value, u8, &str); 4] = [
            (json!({"ready": "ready"}), 0, "proc_0123456789ab is ready"),
            (json!({"ready": "timeout"}), 124, "proc_0123456789ab is not ready after 5s; it keeps running"),
            (ended(7), 7, "proc_0123456789ab exited 7 before it was ready"),
            (ended(0), 1, "proc_0123456789ab exited 0 before it was ready"),
        ];
        let args = ["exec", "--ready-port", "80", "--ready-timeout", "5s", "--", "x"];
        for (changes, code, printed) in cases {
            let fake = FakeDaemon::start(vec![vec![Reply::result(started(changes.clone()))]]);
            let reason = if code == 0 { String::new() } else { format!("toolctl: {printed}\n") };
            assert_eq!(test_run(&fake, &args), (code, "proc_0123456789ab\n".into(), reason));
            let (_, asked) = fake.next_request();
            assert_eq!((&asked["ready"], &asked["ready_timeout_ms"]), (&json!({"port": 80}), &json!(5000)));
            let fake = FakeDaemon::start(vec![vec![Reply::result(started(changes))]]);
            let (again, out, err) = test_run_on(Screen::Errors, &fake, &args);
            assert_eq!((again, out.as_str()), (code, "proc_0123456789ab\n"), "stdout is not a terminal");
            assert!(err.lines().any(|line| line == format!("toolctl: {printed}")), "{err}");
        }
    }

    #[test]
    fn a_terminal_gets_a_sentence_about_a_process_that_ran_already_and_none_about_a_repeated_request() {
        let existing = || FakeDaemon::start(vec![vec![Reply::result(started(json!({"existing": true})))]]);
        let returned = ["exec", "--name", "n", "--if-running", "return", "--", "x"];
        let (_, _, err) = test_run_on(Screen::Errors, &existing(), &returned);
        assert_eq!(err, "toolctl: proc_0123456789ab ran already; nothing was started\n");
        let (_, _, err) = test_run_on(Screen::Errors, &existing(), &["exec", "--request-id", "r", "--", "x"]);
        assert_eq!(err, "");
    }

    #[test]
    fn the_last_lines_are_whole_and_few() {
        let many: String = (0..100).map(|n| format!("line {n}\n")).collect();
        let tail = last_lines(&many);
        assert!(tail.starts_with("line 80\n") && tail.ends_with("line 99\n"), "{tail}");
        assert_eq!((last_lines("a\nb"), last_lines("a\n"), last_lines("")), ("a\nb", "a\n", ""));
        let wide = "ä".repeat(5000);
        assert_eq!(last_lines(&wide).len(), MAX_TAIL_LEN);
        assert_eq!(last_lines(&format!("x{wide}y")).len(), MAX_TAIL_LEN - 1, "no half character");
    }

    #[test]
    fn each_way_of_being_ready_is_sent_and_two_at_once_are_refused() {
        let ways: [([&str; 2], Value); 4] = [
            (["--ready-match", "-up"], json!({"match": "-up"})),
            (["--ready-re", "up$"], json!({"match": {"regex": "up$"}})),
            (["--ready-port", "8080"], json!({"port": 8080})),
            (["--ready-quiet", "2s"], json!({"quiet_ms": 2000})),
        ];
        for (flag, until) in ways {
            let fake = FakeDaemon::start(vec![vec![Reply::result(started(json!({"ready": "ready"})))]]);
            assert_eq!(test_run(&fake, &[&["exec"], &flag[..], &["--", "x"]].concat()).0, 0);
            assert_eq!(fake.next_request().1["ready"], until);
        }
        let fake = FakeDaemon::start(vec![vec![Reply::result(started(json!({})))]]);
        let (code, _, err) = test_run(&fake, &["exec", "--ready-port", "80", "--", "x"]);
        assert!(code == 1 && err.contains("did not report whether it is ready"), "{err}");
        let fake = FakeDaemon::start(vec![]);
        for wrong in ["--ready-port 1 --ready-match x", "--ready-timeout 1s", "--ready-port 0", "--if-running return"] {
            let args: Vec<&str> = ["exec"].into_iter().chain(wrong.split(' ')).chain(["--", "x"]).collect();
            assert_eq!(test_run(&fake, &args).0, 2, "{wrong}");
        }
    }

    #[test]
    fn a_pipe_gets_the_id_alone_and_a_terminal_a_line_and_the_output() {
        let running: results::ExecResult = serde_json::from_value(started(json!({}))).expect("a whole result");
        assert_eq!(format_started(&running, Style::plain()), "proc_0123456789ab\n");
        let style = Style { width: Some(100), colour: false };
        let hint = "proc_0123456789ab running 5m\n  toolctl log -f proc_0123456789ab\n";
        assert_eq!(format_started(&running, style), hint);
        let changes = json!({"status": "exited", "reason": "exited", "exit_code": 0, "output": "hi", "next_cursor": 2});
        let done: results::ExecResult = serde_json::from_value(started(changes)).expect("a whole result");
        assert_eq!(format_started(&done, style), "proc_0123456789ab exited 0\nhi\n");
    }
}
