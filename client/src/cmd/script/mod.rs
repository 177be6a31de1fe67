//! `script`: runs a script that calls tools and shows its output as it comes; lists its calls, shows its result, cancels it.

use super::Context;
use super::options::exec::random_id;
use super::options::script::ScriptOptions;
use super::wait::signed;
use crate::args;
use crate::error::{CliError, DONE, FAILED, TIMED_OUT};
use crate::render::script;
use crate::session::{Hangup, RecordFate, Role, SIGNALS, Session, SessionOptions};
use crate::sys::Signals;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toold_proto::api;
use toold_proto::params::ExecParams;
use toold_proto::script::{
    CallDetail, ScriptCallsParams, ScriptCancelParams, ScriptResultParams, ScriptRunParams, ScriptStatus,
};

const NOTES: &str = "Its standard output and error are shown as they come, and its exit code is that of toolctl; 124 if its --timeout \
ended it. Ctrl-C cancels it with the calls that it has in flight. With --json the result is printed at the end, as one document.
FILE runs by its ending: .py, .js, .mjs or .sh; - reads the text from standard input. A file whose name is that of a subcommand is ./calls.
A TIME is 500ms, 10s, 2m, 1h or 1d; 0 for --timeout means no limit.";

const USAGE: &str = "toolctl script [OPTIONS] FILE
       toolctl script [OPTIONS] -c CODE
       toolctl script calls|result|cancel [OPTIONS] ID";

/// The number of calls in one page of the journal.
const CALLS_PAGE: u64 = 200;

#[derive(Debug, clap::Args)]
#[command(after_help = NOTES, override_usage = USAGE, args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
    #[command(flatten)]
    run: Box<RunArgs>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// List the calls that a script has made
    #[command(
        after_help = "Examples:\n  toolctl script calls @last\n  toolctl script calls @last --full --json | jq -r '.calls[].args'"
    )]
    Calls {
        /// The script: its id, a unique start of that, its name, @last or @failed
        id: String,
        /// Show all of the arguments
        #[arg(long)]
        full: bool,
        /// Only the calls of this cell of a kernel
        #[arg(long, value_name = "N")]
        cell: Option<u64>,
    },
    /// Show the result of a script
    #[command(
        after_help = "Examples:\n  toolctl script result @last\n  toolctl script result @last --wait 10s --json | jq .value"
    )]
    Result {
        /// The script: its id, a unique start of that, its name, @last or @failed
        id: String,
        /// Wait up to this long for its end; if it still runs then, the exit code is 124
        #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
        wait: Option<u64>,
        /// The result of this cell of a kernel [default: the last one]
        #[arg(long, value_name = "N")]
        cell: Option<u64>,
    },
    /// Cancel a script with all of its calls, or one call
    #[command(after_help = "Examples:\n  toolctl script cancel audit\n  toolctl script cancel @last --call 1f0c5a77-3")]
    Cancel {
        /// The script: its id, a unique start of that, its name, @last or @failed
        id: String,
        /// Only this call; the script goes on
        #[arg(long, value_name = "CALL")]
        call: Option<String>,
    },
}

#[derive(Debug, clap::Args)]
struct RunArgs {
    /// The file of the script, or - for standard input
    #[arg(value_hint = clap::ValueHint::FilePath)]
    file: Option<PathBuf>,
    /// Run this text, in place of FILE
    #[arg(short, long, value_name = "CODE", conflicts_with = "file")]
    code: Option<String>,
    #[command(flatten)]
    options: ScriptOptions,
}

impl Args {
    /// Returns the id of a subcommand.
    pub fn ids(&mut self) -> Vec<&mut String> {
        match &mut self.action {
            None => Vec::new(),
            Some(Action::Calls { id, .. } | Action::Result { id, .. } | Action::Cancel { id, .. }) => vec![id],
        }
    }
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    match args.action {
        None => run_script(*args.run, cx),
        Some(Action::Calls { id, full, cell }) => calls(id, full, cell, cx),
        Some(Action::Result { id, wait, cell }) => result(id, wait, cell, cx),
        Some(Action::Cancel { id, call }) => {
            // A second time there is nothing left to cancel, so the call may be made again after a lost connection.
            cx.query::<api::ScriptCancel>(&ScriptCancelParams { id, call }, |result, _| script::cancelled(result))
        }
    }
}

fn run_script(args: RunArgs, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let script = params(args, cx)?;
    let exec = ExecParams { name: script.name.clone(), timeout_ms: script.timeout_ms, ..Default::default() };
    let signals = Signals::catch(&SIGNALS).map_err(|source| CliError::Io { doing: "catch signals", source })?;
    let plan = SessionOptions {
        role: Role::Owner,
        hangup: Hangup::RunsOn,
        exec,
        script: Some(script),
        detach_after: None,
        input: None,
        readiness: None,
        screen: None,
        record: RecordFate::Kept,
        max_output: None,
    };
    Session::new(cx, signals, plan).run()
}

fn params(args: RunArgs, cx: &mut Context<'_>) -> Result<ScriptRunParams, CliError> {
    let (code, file) = source(args.code, args.file)?;
    let mut options = args.options;
    let place = options.place(cx)?;
    Ok(ScriptRunParams {
        code,
        file,
        language: options.lang,
        tools: options.tools(),
        args: options.args,
        cwd: place.cwd,
        env: place.env,
        env_mode: place.env_mode,
        sandbox: options.sandbox.param()?,
        timeout_ms: options.timeout.map(signed),
        call_timeout_ms: options.call_timeout.map(signed),
        max_calls: options.max_calls,
        max_parallel: options.max_parallel,
        // Its output is followed while it runs.
        yield_ms: Some(0),
        name: options.name,
        task_id: options.task_id,
        session_key: cx.session_or_agents(options.session_key),
        labels: options.label.into_iter().collect(),
        notify: options.notify,
        request_id: Some(options.request_id.unwrap_or_else(random_id)),
        ..Default::default()
    })
}

/// Returns the text of a cell.
pub fn code(text: Option<String>, file: Option<PathBuf>) -> Result<String, CliError> {
    match source(text, file)? {
        (Some(text), _) => Ok(text),
        (None, file) => {
            let file = file.unwrap_or_default();
            std::fs::read_to_string(&file).map_err(|e| CliError::Usage(format!("{file}: {e}")))
        }
    }
}

/// Returns the text of the script, or the absolute path of its file.
fn source(code: Option<String>, file: Option<PathBuf>) -> Result<(Option<String>, Option<String>), CliError> {
    match (code, file) {
        (Some(code), _) => Ok((Some(code), None)),
        (None, None) => Err(CliError::Usage("give a FILE, - for standard input, or -c CODE".into())),
        (None, Some(file)) if file == Path::new("-") => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map_err(CliError::io("read standard input"))?;
            Ok((Some(text), None))
        }
        (None, Some(file)) => {
            let path = std::path::absolute(file).map_err(CliError::io("find the working directory"))?;
            let path = path.into_os_string().into_string();
            let not_text = |path: std::ffi::OsString| {
                CliError::Usage(format!("{} is not UTF-8, which JSON cannot carry", path.display()))
            };
            path.map(|path| (None, Some(path))).map_err(not_text)
        }
    }
}

/// Prints all calls of a script, page by page of the journal.
fn calls(id: String, full: bool, cell: Option<u64>, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let detail = if full { CallDetail::Full } else { CallDetail::Preview };
    let mut params = ScriptCallsParams { id, after: None, limit: Some(CALLS_PAGE), detail, cell };
    let mut all = cx.connection.call_with_retry::<api::ScriptCalls>(&params)?;
    while let Some(after) = all.next.take() {
        params.after = Some(after);
        let page = cx.connection.call_with_retry::<api::ScriptCalls>(&params)?;
        all.calls.extend(page.calls);
        all.next = page.next;
    }
    match cx.json {
        true => cx.print_json(&all)?,
        false => cx.console.print(&script::calls(&all.calls, cx.console.style))?,
    }
    Ok(DONE)
}

/// Prints the result of a script. The exit code is 0 if the script ended well, 124 if it still runs, else 1.
fn result(id: String, wait: Option<u64>, cell: Option<u64>, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let wait_ms = wait.unwrap_or(0);
    cx.connection.expect_wait(Duration::from_millis(wait_ms));
    let params = |passed: Duration| {
        let left = wait_ms.saturating_sub(passed.as_millis() as u64);
        ScriptResultParams { id: id.clone(), wait_ms: left, cell, ..Default::default() }
    };
    let raw = cx.connection.call_raw_with_retry::<api::ScriptResult>(params)?;
    let result = cx.show::<api::ScriptResult>(&raw, script::result)?;
    Ok(match (result.status, wait) {
        (ScriptStatus::Ok, _) | (ScriptStatus::Running, None) => DONE,
        (ScriptStatus::Running, Some(_)) => TIMED_OUT,
        (
            ScriptStatus::Error
            | ScriptStatus::Timeout
            | ScriptStatus::Interrupted
            | ScriptStatus::Killed
            | ScriptStatus::Lost,
            _,
        ) => FAILED,
    })
}

#[cfg(test)]
mod tests;
