//! `notify`: waits until processes end, then notifies a person or runs a command.

mod desktop;
mod hook;
#[cfg(test)]
mod tests;

use super::Context;
use super::kill::one_or_many;
use super::wait::{exit_code, has_ended, report_outcome, shortened, signed};
use crate::args;
use crate::blocking::parse;
use crate::error::CliError;
use crate::long_call::WhileWaiting;
use crate::process_ref::{self, PatternUse};
use crate::render;
use serde_json::value::RawValue;
use std::time::{Duration, Instant};
use toold_proto::api;
use toold_proto::params::{self, WaitMode};
use toold_proto::results::{self, WaitStatus};

/// The time that one `wait` lasts before it is called again. Below the daemon's limit.
const WAIT_STEP: Duration = Duration::from_secs(600);

const NOTES: &str = "Without --run and --bell it shows a desktop notification. Without a desktop it reports that \
and rings the terminal's bell.
--run's command has the facts in its environment: TOOLD_ID, TOOLD_NAME, TOOLD_COMMAND, TOOLD_STATUS, TOOLD_EXIT_CODE, \
TOOLD_SIGNAL, TOOLD_REASON, TOOLD_DURATION_MS, TOOLD_OUTPUT (the last 2000 characters), TOOLD_BYTES, TOOLD_LINES and \
TOOLD_LOG (the log's path). Unknown facts are empty.
The exit code is that of `toolctl wait`.";

#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// The processes: ids, names, patterns of names, @last or @failed
    #[arg(value_name = "ID", required = true)]
    pub ids: Vec<String>,
    /// Run this shell command for each process that ended, with its facts in the environment
    #[arg(long, value_name = "CMD")]
    run: Option<String>,
    /// Ring the terminal's bell
    #[arg(long)]
    bell: bool,
    /// Show a desktop notification, also beside --run or --bell
    #[arg(long)]
    desktop: bool,
    /// Notify when the first of them ends, and do not wait for the others
    #[arg(long)]
    any: bool,
    /// Give up after this long, with exit code 124 [default: never]
    #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
    timeout: Option<u64>,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let mode = if args.any { WaitMode::Any } else { WaitMode::All };
    let ids = process_ref::expand(args.ids.clone(), PatternUse::Newest, &mut cx.connection)?;
    let (id, ids) = one_or_many(ids);
    let params = params::WaitParams { id, ids, mode, ..Default::default() };
    let raw = ended(&params, args.timeout.map(Duration::from_millis), cx)?;
    let mut result = cx.show::<api::Wait>(&raw, render::wait::wait)?;
    if !cx.json {
        // The result names only the last step of the time that was in force.
        result.timeout_ms = args.timeout.unwrap_or(result.timeout_ms);
        report_outcome(&result, &params, cx);
    }
    if result.status != WaitStatus::Timeout {
        for waited in result.processes.iter().filter(|waited| has_ended(&waited.process)) {
            notify_about(waited, &args, cx);
        }
    }
    Ok(exit_code(&result, &params))
}

/// Waits in steps until it is over: the daemon has no wait without an end.
fn ended(params: &params::WaitParams, time: Option<Duration>, cx: &mut Context<'_>) -> Result<Box<RawValue>, CliError> {
    let begin = Instant::now();
    loop {
        let left = time.map(|time| time.saturating_sub(begin.elapsed()));
        let step = left.map_or(WAIT_STEP, |left| left.min(WAIT_STEP)).max(Duration::from_millis(1));
        let params = params::WaitParams { timeout_ms: Some(signed(step.as_millis() as u64)), ..params.clone() };
        let raw = cx.call_long::<api::Wait>(|passed| shortened(&params, passed), step, &mut WhileWaiting::Nothing)?;
        let over = time.is_some_and(|time| begin.elapsed() >= time);
        if over || parse::<api::Wait>(&raw)?.status != WaitStatus::Timeout {
            return Ok(raw);
        }
    }
}

/// Notifies about one process in every way that was requested. One that fails does not stop the others.
fn notify_about(waited: &results::Waited, args: &Args, cx: &mut Context<'_>) {
    if let Some(command) = &args.run {
        let inspect = params::InspectParams { id: waited.process.id.to_string(), ..Default::default() };
        // It was forgotten meanwhile, so there is no log either.
        let log = cx.connection.call_with_retry::<api::Inspect>(&inspect).ok().and_then(|inspected| inspected.log_path);
        if let Err(why) = hook::run(command, hook::environment(waited, log), cx.json) {
            cx.console.message(&why);
        }
    }
    let desktop = args.desktop || (args.run.is_none() && !args.bell);
    let mut bell = args.bell;
    if desktop && let Err(why) = desktop::show(&desktop::note(waited)) {
        cx.console.message(&format!("no desktop is reachable: {why}"));
        bell = true;
    }
    if bell && cx.console.err_style.terminal() {
        cx.console.ring();
    }
}
