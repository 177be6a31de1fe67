//! `wait`: waits until processes exit, close their output, print a match or wait for input.

#[cfg(test)]
mod tests;

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
    /// The processes: ids, names, patterns of names, @last or @failed [default: all of the agent's session, else the one that runs]
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// All processes of this session that run now; if there are none, it exits with 0
    #[arg(long, value_name = "KEY", conflicts_with = "ids")]
    session: Option<String>,
    /// Until one of them does, not all
    #[arg(long)]
    any: bool,
    /// Give up after this long, with exit code 124; the processes keep running [default: never at a terminal, else 3m]
    #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
    timeout: Option<u64>,
    #[command(flatten)]
    until: UntilOptions,
    /// Also until one of them waits for input, with exit code 1
    #[arg(long)]
    or_input: bool,
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
    /// Until it waits for input
    #[arg(long)]
    input: bool,
}

impl UntilOptions {
    fn until(self) -> Until {
        let matching = self.pattern.map(|regex| Until::Match(Pattern::Regex(regex)));
        let given = matching.or(self.port.map(Until::Port)).or(self.quiet.map(Until::Quiet));
        given.unwrap_or(match (self.closed, self.input) {
            (true, _) => Until::Closed,
            (false, true) => Until::Input,
            (false, false) => Until::Exit,
        })
    }
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let until = args.until.until();
    let consumer = cx.consumer_or_agents(args.consumer);
    if let Some(consumer) = &consumer {
        super::events::create_consumer(consumer, cx)?;
    }
    let mode = if args.any { WaitMode::Any } else { WaitMode::All };
    let mut ids = process_ref::expand(args.ids, PatternUse::Newest, &mut cx.connection)?;
    let mut session_key = if ids.is_empty() { cx.session_or_agents(args.session) } else { None };
    if let Some(key) = &session_key {
        // By their ids, so that another try after a lost connection waits for the same ones.
        let active = params::SessionActiveParams { session_key: Some(key.clone()), task_id: None };
        let active = cx.connection.call_with_retry::<api::SessionActive>(&active)?;
        ids.extend(active.ids.iter().map(ToString::to_string));
        session_key = session_key.filter(|_| ids.is_empty());
    }
    if ids.is_empty() && session_key.is_none() {
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
        ids: ids.filter(|_| session_key.is_none()),
        session_key,
        mode,
        until,
        or_input: args.or_input,
        timeout_ms: timeout.map(signed),
        consumer,
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
            let left = match &params.id {
                None => "the processes keep running",
                Some(_) => "the process keeps running",
            };
            cx.console.message(&format!("timed out after {after}; {left}"));
            let stopped = result.processes.iter().map(|waited| &waited.process).filter(|process| process.stopped);
            stopped.for_each(|process| cx.console.message(&stopped_text(process)));
        }
        WaitStatus::Input if params.until == Until::Input => {}
        WaitStatus::Input => {
            let asks = result.processes.iter().filter_map(|waited| asking_text(&waited.process));
            asks.for_each(|text| cx.console.message(&text));
        }
        WaitStatus::Exited if result.processes.is_empty() => {
            let key = render::text::escape_control(params.session_key.as_deref().unwrap_or_default());
            cx.console.message(&format!("nothing runs in session {key}"));
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

/// Describes the question of a process that waits for input, and how to answer it.
fn asking_text(process: &Process) -> Option<String> {
    let wait = process.needs_input.as_ref()?;
    let (id, prompt) = (process.id, render::text::escape_control(wait.prompt.trim()));
    let question = if prompt.is_empty() { String::new() } else { format!(": {prompt}") };
    let answer = if wait.echo == Some(false) { "submit --secret" } else { "submit" };
    Some(format!("{id} waits for input{question}; answer with toolctl {answer} {id}"))
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
        Until::Input => Some("without waiting for input".into()),
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
            WaitStatus::Input => {
                if params.until == Until::Input {
                    DONE
                } else {
                    FAILED
                }
            }
            // Nothing of the session ran.
            WaitStatus::Exited if self.processes.is_empty() => DONE,
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
