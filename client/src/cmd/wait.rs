//! `wait`: waits until processes exit, close their output or print a match.

use super::Context;
use super::kill::one_or_many;
use super::options::fields::Fields;
use crate::args;
use crate::blocking::CallError;
use crate::error::{CliError, DONE, FAILED, TIMED_OUT};
use crate::process_ref::{self, IfNone, PatternUse};
use crate::render;
use serde_json::value::RawValue;
use std::time::{Duration, Instant};
use toold_proto::api;
use toold_proto::params::{self, Status, WaitMode};
use toold_proto::pattern::Pattern;
use toold_proto::process::Process;
use toold_proto::results::{self, WaitStatus};
use toold_proto::until::Until;

/// The daemon's default timeout.
const DEFAULT_TIMEOUT_MS: u64 = 180_000;

/// The time of one wait of several that together have no end.
const ENDLESS_STEP_MS: u64 = 600_000;

/// The time that the daemon may take to answer at the end of the wait. The caller asked for an end after a time, and gets
/// it also if the daemon is silent.
const ANSWER_MARGIN: Duration = Duration::from_secs(3);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The processes: ids, names, patterns of names, @last or @failed [default: the one that runs]
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Until one of them does, not all
    #[arg(long)]
    any: bool,
    /// Give up after this long, with exit code 124; the processes keep running [default: never at a terminal, else 3m]
    #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
    timeout: Option<u64>,
    #[command(flatten)]
    until: UntilOptions,
    /// Mark exits that this call reports as acknowledged by consumer NAME
    #[arg(long, value_name = "NAME")]
    consumer: Option<String>,
    /// Also show the last N lines of each
    #[arg(long, value_name = "N")]
    tail: Option<u64>,
    #[command(flatten)]
    fields: Fields,
}

#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct UntilOptions {
    /// Until a line of the output matches this regular expression
    #[arg(long = "match", value_name = "RE")]
    pattern: Option<String>,
    /// Until it listens on this TCP port
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    port: Option<u16>,
    /// Until it has printed nothing for this long
    #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
    quiet: Option<u64>,
    /// Until the output is closed too, by everything the process started
    #[arg(long)]
    closed: bool,
}

impl UntilOptions {
    fn until(self) -> Until {
        let matching = self.pattern.map(|regex| Until::Match(Pattern::Regex(regex)));
        let given = matching.or(self.port.map(Until::Port)).or(self.quiet.map(Until::Quiet));
        given.unwrap_or(if self.closed { Until::Closed } else { Until::Exit })
    }
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let until = args.until.until();
    if let Some(consumer) = &args.consumer {
        super::events::create_consumer(consumer, cx)?;
    }
    let mode = if args.any { WaitMode::Any } else { WaitMode::All };
    let mut ids = process_ref::expand(args.ids, PatternUse::Newest, &mut cx.connection)?;
    if ids.is_empty() {
        ids.push(process_ref::alone(IfNone::Refuse, &mut cx.connection)?);
    }
    let waited_for = ids.clone();
    let (id, ids) = one_or_many(ids);
    // A person ends it with Ctrl-C. A script that hangs would hang for ever.
    let is_endless = args.timeout.is_none() && cx.console.err_style.terminal();
    let timeout = if is_endless { Some(ENDLESS_STEP_MS) } else { args.timeout };
    let selection = args.fields.select(cx, &["status", "exit_code"]);
    let params = params::WaitParams {
        id,
        ids,
        mode,
        until,
        timeout_ms: timeout.map(signed),
        consumer: args.consumer,
        fields: selection.fields.clone(),
        view: selection.view,
        tail_lines: args.tail,
        ..Default::default()
    };
    let time = Duration::from_millis(timeout.unwrap_or(DEFAULT_TIMEOUT_MS));
    let mut meanwhile = cx.show_waiting(waited_for);
    cx.connection.limit_answers(ANSWER_MARGIN);
    let mut began = Instant::now();
    let raw = loop {
        let before = began.elapsed();
        let left = time.saturating_sub(before);
        let raw = cx.call_long::<api::Wait>(|passed| shortened(&params, before + passed), left, &mut meanwhile);
        let raw = raw.map_err(|error| error.of_wait(time))?;
        let result = outcome(&raw)?;
        // The daemon limits one wait. We were asked for a longer one.
        if result.status == WaitStatus::Timeout && is_endless {
            began = Instant::now();
        } else if result.status != WaitStatus::Timeout || !result.clamped || began.elapsed() >= time {
            break raw;
        }
    };
    if selection.is_partial() {
        selection.print(&raw, cx)?;
        return Ok(outcome(&raw)?.exit_code(&params));
    }
    let format = if args.tail.is_some() { render::wait::wait_with_output } else { render::wait::wait };
    let mut result = cx.show::<api::Wait>(&raw, format)?;
    if !cx.json {
        // After a lost connection the result has only the time that was left.
        result.timeout_ms = args.timeout.unwrap_or(DEFAULT_TIMEOUT_MS);
        report_outcome(&result, &params, cx);
        if missed(&params.until).is_none() {
            // Its exit code is ours, except that of one that has none.
            let lost = result.processes.iter().filter(|waited| waited.process.status == Status::Lost);
            lost.for_each(|waited| cx.console.message(&lost_text(&waited.process)));
        }
    }
    Ok(exit_code(&result, &params))
}

/// Reports why the condition was not met, if it was not.
pub fn report_outcome(result: &results::WaitResult, params: &params::WaitParams, cx: &mut Context<'_>) {
    match result.status {
        WaitStatus::Timeout => {
            let after = render::time::exact(result.timeout_ms);
            let left = match &params.ids {
                Some(_) => "the processes keep running",
                None => "the process keeps running",
            };
            cx.console.message(&format!("timed out after {after}; {left}"));
            let stopped = result.processes.iter().map(|waited| &waited.process).filter(|process| process.stopped);
            stopped.for_each(|process| cx.console.message(&stopped_text(process)));
        }
        WaitStatus::Exited => {
            let Some(missed) = missed(&params.until) else { return };
            let silent = |waited: &&results::Waited| {
                waited.matched.is_none() && waited.listener.is_none() && has_ended(&waited.process)
            };
            for waited in result.processes.iter().filter(silent) {
                let end = render::poll::summary(&waited.process);
                cx.console.message(&format!("{end} {missed}"));
            }
        }
        WaitStatus::Matched => {}
    }
}

fn stopped_text(process: &Process) -> String {
    let id = process.id;
    format!("{id} is stopped and does not go on by itself: toolctl resume {id}")
}

fn lost_text(process: &Process) -> String {
    format!("{}: {}", render::poll::summary(process), render::status::lost_cause(process))
}

/// Returns the condition that an ended process did not meet. None when its end is the condition.
fn missed(until: &Until) -> Option<String> {
    match until {
        Until::Exit | Until::Closed => None,
        Until::Match(_) => Some("without a line that matches".into()),
        Until::Port(port) => Some(format!("without listening on port {port}")),
        Until::Quiet(ms) => Some(format!("before it was quiet for {}", render::time::exact(*ms))),
    }
}

/// Returns the wait with the time that is left after a lost connection.
pub fn shortened(params: &params::WaitParams, passed: Duration) -> params::WaitParams {
    let passed = passed.as_millis() as i64;
    let timeout_ms = match params.timeout_ms {
        _ if passed == 0 => params.timeout_ms,
        // At least 1: the daemon rejects zero.
        given => Some((given.unwrap_or(signed(DEFAULT_TIMEOUT_MS)) - passed).max(1)),
    };
    params::WaitParams { timeout_ms, ..params.clone() }
}

/// Converts milliseconds to the protocol's signed type.
pub fn signed(ms: u64) -> i64 {
    i64::try_from(ms).unwrap_or(i64::MAX)
}

/// The facts of a wait that decide the exit code. They are there also if other fields were not selected.
#[derive(serde::Deserialize)]
struct Outcome {
    status: WaitStatus,
    clamped: bool,
    processes: Vec<End>,
}

/// The state of a process after a wait.
#[derive(serde::Deserialize)]
struct End {
    status: Status,
    exit_code: Option<i32>,
}

fn outcome(raw: &RawValue) -> Result<Outcome, CallError> {
    serde_json::from_str(raw.get()).map_err(|e| CallError::Protocol(format!("cannot read the result of wait: {e}")))
}

impl Outcome {
    /// Returns the process's own code; of several the first that is not zero, in the order they were given.
    fn exit_code(&self, params: &params::WaitParams) -> u8 {
        let missed = missed(&params.until).is_some();
        match self.status {
            WaitStatus::Timeout => TIMED_OUT,
            WaitStatus::Matched => DONE,
            WaitStatus::Exited if missed => FAILED,
            WaitStatus::Exited => self
                .processes
                .iter()
                .filter(|end| params.mode == WaitMode::All || is_ended(end.status))
                .map(|end| code_of(end.status, end.exit_code))
                .find(|code| *code != DONE)
                .unwrap_or(DONE),
        }
    }
}

/// Returns the exit code of a whole result.
pub fn exit_code(result: &results::WaitResult, params: &params::WaitParams) -> u8 {
    let end = |waited: &results::Waited| End { status: waited.process.status, exit_code: waited.process.exit_code };
    let processes = result.processes.iter().map(end).collect();
    Outcome { status: result.status, clamped: result.clamped, processes }.exit_code(params)
}

pub fn has_ended(process: &Process) -> bool {
    is_ended(process.status)
}

fn is_ended(status: Status) -> bool {
    match status {
        Status::Exited | Status::Lost => true,
        Status::Pending | Status::Starting | Status::Running => false,
    }
}

/// Returns the code that a shell would see. An unknown code is 1, never 0.
pub fn own_code(process: &Process) -> u8 {
    code_of(process.status, process.exit_code)
}

/// Does the same for a process of which only these fields are known.
pub fn code_of(status: Status, exit_code: Option<i32>) -> u8 {
    match exit_code {
        Some(code) if status != Status::Lost => u8::try_from(code & 0xff).unwrap_or(FAILED),
        // Lost, failed to start, or still running where that cannot be.
        Some(_) | None => FAILED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{Screen, test_run, test_run_on};
    use crate::testing::{FakeDaemon, Reply, process};
    use serde_json::{Value, json};

    fn waited(changes: Value) -> Value {
        let mut document = process(json!({"output": "", "next_cursor": 0, "matched": null}));
        document.as_object_mut().expect("an object").extend(changes.as_object().expect("an object").clone());
        document
    }

    fn exited(code: i32) -> Value {
        waited(json!({"status": "exited", "reason": "exited", "exit_code": code}))
    }

    fn answer(status: &str, processes: Vec<Value>) -> Value {
        json!({"status": status, "processes": processes, "timeout_ms": 30000, "clamped": false, "note": null})
    }

    #[test]
    fn the_exit_code_is_the_process_code_or_explains_why_there_is_none() {
        let lost = || waited(json!({"status": "lost", "reason": "lost"}));
        let running = || waited(json!({}));
        let killed = waited(json!({"status": "exited", "reason": "killed", "exit_code": 137, "signal": "SIGKILL"}));
        let cases: Vec<(&[&str], Value, u8)> = vec![
            (&["a"], answer("exited", vec![exited(0)]), 0),
            (&["a"], answer("exited", vec![exited(7)]), 7),
            (&["a"], answer("exited", vec![killed]), 137),
            (&["a"], answer("exited", vec![lost()]), 1),
            (&["a", "b", "c"], answer("exited", vec![exited(0), exited(5), exited(9)]), 5),
            (&["a", "b"], answer("exited", vec![exited(0), lost()]), 1),
            (&["a", "b", "--any"], answer("exited", vec![running(), exited(3)]), 3),
            (&["a", "b", "--any"], answer("exited", vec![running(), exited(0)]), 0),
            (&["a"], answer("timeout", vec![running()]), 124),
            (&["a", "--match", "x"], answer("matched", vec![running()]), 0),
            (&["a", "--match", "x"], answer("exited", vec![exited(0)]), 1),
            (&["a", "--match", "x"], answer("timeout", vec![running()]), 124),
        ];
        for (args, result, code) in cases {
            for json in [None, Some("--json")] {
                let fake = FakeDaemon::start(vec![vec![Reply::result(&result)]]);
                let args: Vec<&str> = ["wait"].iter().chain(args).copied().chain(json).collect();
                assert_eq!(test_run(&fake, &args).0, code, "{args:?}");
            }
        }
    }

    #[test]
    fn a_process_that_ended_without_a_match_is_named() {
        let args = ["wait", "a", "b", "--match", "x"];
        let matched = waited(json!({"matched": "x"}));
        let fake = FakeDaemon::start(vec![vec![Reply::result(answer("exited", vec![exited(0), matched]))]]);
        let (code, _, err) = test_run(&fake, &args);
        let printed = "toolctl: proc_0123456789ab exited 0 without a line that matches\n";
        assert_eq!((code, err.as_str()), (1, printed));
        let fake = FakeDaemon::start(vec![vec![Reply::result(answer("exited", vec![exited(0)]))]]);
        assert_eq!(test_run(&fake, &["wait", "a", "--match", "x", "--port", "1"]).0, 2, "one of them");
        assert_eq!(test_run(&fake, &["wait", "a"]).2, "", "an exit that was waited for is not reported");
    }

    /// Before, the exit code was 1 without a reason.
    #[test]
    fn a_lost_process_is_reported() {
        let lost = waited(json!({"status": "lost", "reason": "lost"}));
        let fake = FakeDaemon::start(vec![vec![Reply::result(answer("exited", vec![exited(0), lost]))]]);
        let (code, _, err) = test_run(&fake, &["wait", "a", "b"]);
        assert_eq!(code, 1);
        assert!(err.starts_with("toolctl: proc_0123456789ab lost"), "{err}");
        assert!(err.ends_with(": its end was not observed\n") && err.lines().count() == 1, "{err}");
    }

    #[test]
    fn a_process_that_ended_before_its_port_or_its_silence_is_named_too() {
        for (flag, printed) in
            [(["--port", "80"], "without listening on port 80"), (["--quiet", "2s"], "before it was quiet for 2s")]
        {
            let fake = FakeDaemon::start(vec![vec![Reply::result(answer("exited", vec![exited(0)]))]]);
            let (code, _, err) = test_run(&fake, &[&["wait", "a"], &flag[..]].concat());
            assert_eq!((code, err), (1, format!("toolctl: proc_0123456789ab exited 0 {printed}\n")));
        }
    }

    #[test]
    fn all_is_sent_and_any_is_the_daemons_default() {
        let cases: [(&[&str], Value); 6] = [
            (&["wait", "a", "--timeout", "30s"], json!({"id": "a", "mode": "all", "timeout_ms": 30000})),
            (&["wait", "a", "b", "--any"], json!({"ids": ["a", "b"]})),
            (&["wait", "a", "--match", "r+"], json!({"id": "a", "mode": "all", "until": {"match": {"regex": "r+"}}})),
            (&["wait", "a", "--port", "80"], json!({"id": "a", "mode": "all", "until": {"port": 80}})),
            (&["wait", "a", "--quiet", "2s"], json!({"id": "a", "mode": "all", "until": {"quiet_ms": 2000}})),
            (&["wait", "a", "--closed"], json!({"id": "a", "mode": "all", "until": "closed"})),
        ];
        for (args, params) in cases {
            let fake = FakeDaemon::start(vec![vec![Reply::result(answer("matched", vec![exited(0)]))]]);
            assert_eq!(test_run(&fake, args).0, 0);
            assert_eq!(fake.next_request(), ("wait".into(), params));
        }
    }

    /// The broken code gave up after three minutes, at a terminal too.
    #[test]
    fn at_a_terminal_a_wait_has_no_end_unless_one_is_given() {
        let timeout = || Reply::result(answer("timeout", vec![waited(json!({}))]));
        let fake =
            FakeDaemon::start(vec![vec![timeout(), timeout(), Reply::result(answer("exited", vec![exited(4)]))]]);
        assert_eq!(test_run_on(Screen::Errors, &fake, &["wait", "a"]).0, 4);
        let asked = json!({"id": "a", "mode": "all", "timeout_ms": 600_000});
        assert_eq!(fake.requests(), vec![("wait".to_owned(), asked); 3]);
        let fake = FakeDaemon::start(vec![vec![timeout()]]);
        assert_eq!(test_run_on(Screen::Errors, &fake, &["wait", "a", "--timeout", "1ms"]).0, 124);
        let fake = FakeDaemon::start(vec![vec![timeout()]]);
        assert_eq!(test_run(&fake, &["wait", "a"]).0, 124, "a script that hangs would hang for ever");
    }

    #[test]
    fn a_wait_goes_on_across_a_lost_connection_with_the_time_that_is_left() {
        let fake = FakeDaemon::start(vec![vec![Reply::HangUp], vec![Reply::result(answer("exited", vec![exited(4)]))]]);
        assert_eq!(test_run(&fake, &["wait", "a", "--timeout", "30s"]).0, 4);
        assert_eq!(fake.requests().len(), 2);
        let asked = params::WaitParams { timeout_ms: Some(1000), ..Default::default() };
        let left = |ms| shortened(&asked, Duration::from_millis(ms)).timeout_ms;
        assert_eq!((left(0), left(400), left(5000)), (Some(1000), Some(600), Some(1)));
        let unsaid = shortened(&params::WaitParams::default(), Duration::from_secs(1)).timeout_ms;
        assert_eq!(unsaid, Some(179_000));
    }
}
