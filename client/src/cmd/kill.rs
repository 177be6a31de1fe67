//! `kill`: ends processes and everything they started.

use super::Context;
use crate::args;
use crate::error::{CliError, DONE, FAILED, NO_SUCH_PROCESS};
use crate::long_call::Work;
use crate::process_ref::{self, IfNone, PatternUse};
use crate::raw_args::RawArgs;
use crate::render;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::time::Duration;
use toold_proto::api;
use toold_proto::params;
use toold_proto::results::KillStatus;

/// The daemon's default grace.
pub const DEFAULT_GRACE_MS: u64 = 5000;

const USAGE: &str = "toolctl kill [OPTIONS] [ID]...
       toolctl kill [OPTIONS] --all | --label K[=V] | --task TASK | --session KEY";

#[derive(Debug, clap::Args)]
#[command(override_usage = USAGE)]
pub struct Args {
    #[command(flatten)]
    pub targets: Targets,
    /// The signal to send first, by name or number; -9 and -TERM are short for it [default: TERM]
    #[arg(short, long, value_name = "SIG", value_parser = args::signal)]
    signal: Option<String>,
    /// The time they have to end before SIGKILL [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
    grace: Option<u64>,
}

#[derive(Debug, clap::Args)]
#[group(multiple = false)]
pub struct Targets {
    /// The processes: ids, names, patterns of names, @last or @failed
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Every process that runs
    #[arg(long)]
    all: bool,
    /// Every process with this label, of any value or of this one
    #[arg(long, value_name = "K[=V]")]
    label: Option<String>,
    /// Every process of this task
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// Every process of this session
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
}

/// Returns the ids of a command line: with patterns replaced, and without an ID and at a terminal the process that runs alone.
fn ids(targets: &mut Targets, cx: &mut Context<'_>) -> Result<Vec<String>, CliError> {
    let by_group = targets.all || targets.label.is_some() || targets.task.is_some() || targets.session.is_some();
    if targets.ids.is_empty() && !by_group {
        // A loop over a file, or a job of cron, must not kill what happens to run because a variable was empty.
        let is_typed = cx.console.err_style.terminal() && (!cx.console.is_real || std::io::stdin().is_terminal());
        if !is_typed {
            let why = "give an ID, --all, --label, --task or --session; without one it is a process that runs alone, at a terminal only";
            return Err(CliError::Usage(why.into()));
        }
        return Ok(vec![process_ref::alone(IfNone::Refuse, &mut cx.connection)?]);
    }
    process_ref::expand(std::mem::take(&mut targets.ids), PatternUse::Newest, &mut cx.connection)
}

pub fn run(mut args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    args.targets.ids = ids(&mut args.targets, cx)?;
    let mut meanwhile = if args.targets.ids.is_empty() {
        cx.show_work(Work::Killing)
    } else {
        cx.show_waiting(args.targets.ids.clone())
    };
    let (id, ids) = one_or_many(args.targets.ids);
    let params = params::KillParams {
        id,
        ids,
        task_id: args.targets.task,
        session_key: args.targets.session,
        label: args.targets.label,
        name: None,
        all: args.targets.all.then_some(true),
        signal: args.signal,
        grace_ms: args.grace,
    };
    let grace = Duration::from_millis(params.grace_ms.unwrap_or(DEFAULT_GRACE_MS));
    let several = params.ids.is_some() && !cx.json;
    let called = cx.call_long_once::<api::Kill>(&params, grace, &mut meanwhile);
    if several && called.as_ref().is_err_and(|failure| failure.exit_code() == NO_SUCH_PROCESS) {
        cx.console.message("nothing was killed: one of the ids does not exist");
    }
    let raw = called?;
    let result = cx.show::<api::Kill>(&raw, |result, style| render::kill::kill(&result.results, style))?;
    match result.status {
        KillStatus::Killed | KillStatus::AlreadyExited => Ok(DONE),
        KillStatus::Starting => Ok(FAILED),
        KillStatus::Survivors => {
            if !cx.json {
                cx.console.message(
                    "some processes cannot be killed now; those in state D wait for a device or a network disk",
                );
            }
            Ok(FAILED)
        }
    }
}

/// Rewrites `kill -9` and `kill -TERM`, as they are usually typed, for clap.
pub fn with_plain_signals(argv: &[OsString], command: &clap::Command) -> Vec<OsString> {
    let line = RawArgs::read(argv, command);
    let kill = line.verb.filter(|at| argv[*at] == "kill" || argv[*at] == "stop");
    let named = |(at, token): (usize, &OsString)| match plain_signal(token) {
        Some(signal) if kill.is_some_and(|kill| (kill + 1..line.end).contains(&at)) => {
            format!("--signal={signal}").into()
        }
        // Another program's option, or not a signal.
        _ => token.clone(),
    };
    argv.iter().enumerate().map(named).collect()
}

/// Returns the signal in `-9`, `-TERM` or `-SIGTERM`. Lower-case letters are options.
fn plain_signal(arg: &OsStr) -> Option<String> {
    let name = arg.to_str()?.strip_prefix('-')?;
    let number = !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit());
    (number || args::is_signal(name)).then(|| name.to_owned())
}

/// Returns `id` for one, `ids` for several.
pub fn one_or_many(mut ids: Vec<String>) -> (Option<String>, Option<Vec<String>>) {
    match ids.len() {
        0 => (None, None),
        1 => (ids.pop(), None),
        _ => (None, Some(ids)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_are_taken_as_people_type_them_and_nothing_else_is_touched() {
        let cases = [
            ("kill -9 x", "kill --signal=9 x"),
            ("--json kill -TERM x", "--json kill --signal=TERM x"),
            ("--socket kill kill x -SIGHUP", "--socket kill kill x --signal=SIGHUP"),
            ("kill -15 x -- -9", "kill --signal=15 x -- -9"),
            ("kill -s 9 x", "kill -s 9 x"),
            ("kill -FOO -term - x", "kill -FOO -term - x"),
            ("run -- kill -9 x", "run -- kill -9 x"),
            ("write kill -9", "write kill -9"),
            ("--socket", "--socket"),
            ("", ""),
        ];
        for (typed, read) in cases {
            let argv =
                |line: &str| ["toolctl"].into_iter().chain(line.split_whitespace()).map(OsString::from).collect();
            let typed: Vec<OsString> = argv(typed);
            let known = crate::help::command();
            assert_eq!(with_plain_signals(&typed, &known), argv(read) as Vec<OsString>);
        }
    }
}
