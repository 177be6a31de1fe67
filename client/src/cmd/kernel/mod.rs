//! `kernel`: opens interpreters that keep their state, runs cells in them, interrupts, resets, closes and lists them.

use super::Context;
use super::options::exec::random_id;
use super::options::script::ScriptOptions;
use super::script::code;
use super::wait::{has_ended, signed};
use crate::args;
use crate::blocking::parse;
use crate::error::{CliError, DONE, FAILED};
use crate::render::kernel;
use std::path::PathBuf;
use std::time::Duration;
use toold_proto::api;
use toold_proto::kernel::{
    IfBusy, KernelCloseParams, KernelInterruptParams, KernelOpenParams, KernelResetParams, KernelRunParams,
};
use toold_proto::params::ListParams;
use toold_proto::script::{ScriptResult, ScriptStatus};

/// The time that one call for a cell waits before it is made again.
const CELL_WAIT_MS: u64 = 600_000;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Open a kernel and print its id
    #[command(
        after_help = "Examples:\n  toolctl kernel open --name py\n  toolctl kernel open --lang javascript --tool read_file --json"
    )]
    Open {
        #[command(flatten)]
        options: Box<ScriptOptions>,
        /// End it after this long without a cell; 0 never [default: 30m]
        #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
        idle: Option<u64>,
    },
    /// Run a cell; print its output and the value of its last expression. The exit code is 0 if it ended well, else 1
    #[command(
        override_usage = "toolctl kernel run [OPTIONS] ID FILE\n       toolctl kernel run [OPTIONS] ID -c CODE",
        after_help = "Ctrl-C leaves the cell running; `toolctl kernel interrupt` ends it.\n\nExamples:\n  toolctl kernel open --name py && toolctl kernel run py -c '6 * 7'\n  echo '6 * 7' | toolctl kernel run py - --timeout 10s"
    )]
    Run {
        /// The kernel: its id, a unique start of that, its name or @last
        id: String,
        /// The file of the cell, or - for standard input
        #[arg(value_hint = clap::ValueHint::FilePath)]
        file: Option<PathBuf>,
        /// Run this text, in place of FILE
        #[arg(short, long, value_name = "CODE", conflicts_with = "file")]
        code: Option<String>,
        /// Interrupt it after this long; 0 never [default: 5m]
        #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
        timeout: Option<u64>,
        /// The most calls that it may make [default: that of the kernel]
        #[arg(long, value_name = "N")]
        max_calls: Option<u64>,
        /// When another cell runs: queue (run after it) or error [default: queue]
        #[arg(long, value_name = "WHAT", hide_possible_values = true, value_parser = args::enum_value::<IfBusy>())]
        if_busy: Option<IfBusy>,
        /// A name for this call: the same again gives the same cell and runs nothing
        #[arg(long, value_name = "ID")]
        request_id: Option<String>,
    },
    /// Interrupt the cell that runs, and keep the state
    #[command(after_help = "Examples:\n  toolctl kernel interrupt py\n  toolctl kernel interrupt py --grace 10s")]
    Interrupt {
        /// The kernel: its id, a unique start of that, its name or @last
        id: String,
        /// Kill the interpreter if the cell has not ended after this long [default: 2s]
        #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
        grace: Option<u64>,
    },
    /// Give a kernel a new interpreter; its id and log stay
    #[command(after_help = "Examples:\n  toolctl kernel reset py\n  toolctl kernel reset py --grace 0")]
    Reset {
        /// The kernel: its id, a unique start of that, its name or @last
        id: String,
        /// The time that a running cell has to end [default: 2s]
        #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
        grace: Option<u64>,
    },
    /// End a kernel and everything it started
    #[command(after_help = "Examples:\n  toolctl kernel close py\n  toolctl kernel close py --grace 0")]
    Close {
        /// The kernel: its id, a unique start of that, its name or @last
        id: String,
        /// The time between SIGTERM and SIGKILL [default: 5s]
        #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
        grace: Option<u64>,
    },
    /// List the kernels that run, as `toolctl kernel` alone does
    #[command(after_help = "Examples:\n  toolctl kernel list\n  toolctl kernel list --json | jq -r '.[].id'")]
    List,
}

impl Args {
    /// Returns the id of a subcommand.
    pub fn ids(&mut self) -> Vec<&mut String> {
        match &mut self.action {
            None | Some(Action::Open { .. } | Action::List) => Vec::new(),
            Some(
                Action::Run { id, .. }
                | Action::Interrupt { id, .. }
                | Action::Reset { id, .. }
                | Action::Close { id, .. },
            ) => vec![id],
        }
    }
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    match args.action {
        None | Some(Action::List) => list(cx),
        Some(Action::Open { options, idle }) => open(*options, idle, cx),
        Some(Action::Run { id, file, code: text, timeout, max_calls, if_busy, request_id }) => {
            let params = KernelRunParams {
                id: Some(id),
                name: None,
                code: code(text, file)?,
                timeout_ms: timeout.map(signed),
                yield_ms: Some(CELL_WAIT_MS),
                max_calls,
                if_busy: if_busy.unwrap_or_default(),
                request_id: Some(request_id.unwrap_or_else(random_id)),
                ..KernelRunParams::default()
            };
            run_cell(params, cx)
        }
        Some(Action::Interrupt { id, grace }) => {
            cx.connection.expect_wait(Duration::from_millis(grace.unwrap_or(0)));
            let params = KernelInterruptParams { id: Some(id), name: None, grace_ms: grace };
            cx.call_once::<api::KernelInterrupt>(&params, |result, _| kernel::interrupted(result))
        }
        Some(Action::Reset { id, grace }) => {
            cx.connection.expect_wait(Duration::from_millis(grace.unwrap_or(0)));
            let params = KernelResetParams { id: Some(id), name: None, grace_ms: grace };
            cx.call_once::<api::KernelReset>(&params, |result, _| kernel::reset(result))
        }
        Some(Action::Close { id, grace }) => {
            cx.connection.expect_wait(Duration::from_millis(grace.unwrap_or(0)));
            let params = KernelCloseParams { id: Some(id), name: None, grace_ms: grace };
            cx.call_once::<api::KernelClose>(&params, |result, _| kernel::closed(result))
        }
    }
}

fn open(mut options: ScriptOptions, idle: Option<u64>, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let place = options.place(cx)?;
    let params = KernelOpenParams {
        language: options.lang,
        tools: options.tools(),
        args: options.args,
        cwd: place.cwd,
        env: place.env,
        env_mode: place.env_mode,
        sandbox: options.sandbox.param()?,
        timeout_ms: options.timeout.map(signed),
        idle_ms: idle,
        call_timeout_ms: options.call_timeout.map(signed),
        max_calls: options.max_calls,
        max_parallel: options.max_parallel,
        name: options.name,
        task_id: options.task_id,
        session_key: cx.session_or_agents(options.session_key),
        labels: options.label.into_iter().collect(),
        notify: options.notify,
        request_id: Some(options.request_id.unwrap_or_else(random_id)),
        ..Default::default()
    };
    cx.query::<api::KernelOpen>(&params, |result, _| format!("{}\n", result.process.id))
}

/// Runs a cell up to its end: the same call again asks for the same cell.
fn run_cell(params: KernelRunParams, cx: &mut Context<'_>) -> Result<u8, CliError> {
    cx.connection.expect_wait(Duration::from_millis(CELL_WAIT_MS));
    let (raw, result) = loop {
        let raw = cx.connection.call_raw_with_retry::<api::KernelRun>(|_| params.clone())?;
        let result: ScriptResult = parse::<api::KernelRun>(&raw)?;
        if result.status != ScriptStatus::Running {
            break (raw, result);
        }
    };
    match cx.json {
        true => cx.document(&raw)?,
        false => {
            cx.console.print_output(&result.output)?;
            cx.console.print_tail(&result.stderr);
            kernel::problem(&result).into_iter().for_each(|line| cx.console.message(&line));
            kernel::value(&result).map_or(Ok(()), |text| cx.console.print_output(&text))?;
        }
    }
    Ok(if result.status == ScriptStatus::Ok { DONE } else { FAILED })
}

fn list(cx: &mut Context<'_>) -> Result<u8, CliError> {
    let params = ListParams { limit: Some(u64::from(u32::MAX)), ..Default::default() };
    let found = cx.connection.call_with_retry::<api::List>(&params)?;
    let processes = found.processes.into_iter().map(|listed| listed.process);
    let kernels: Vec<_> = processes.filter(|process| process.kernel.is_some() && !has_ended(process)).collect();
    match cx.json {
        true => cx.print_json(&kernels)?,
        false => cx.console.print(&kernel::list(&kernels, cx.console.style))?,
    }
    Ok(DONE)
}

#[cfg(test)]
mod tests;
