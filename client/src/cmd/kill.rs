//! `kill`: end processes and everything they started.

use super::Context;
use super::long::Work;
use crate::args;
use crate::failure::{DONE, FAILED, Failure, NO_SUCH_PROCESS};
use crate::render;
use std::ffi::{OsStr, OsString};
use std::time::Duration;
use toold_proto::api;
use toold_proto::params;
use toold_proto::results::KillStatus;

/// What the daemon takes when no grace is given.
pub const DEFAULT_GRACE_MS: u64 = 5000;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    pub whom: Whom,
    /// The first signal, also as -9 or -TERM [default: SIGTERM]
    #[arg(short, long, value_name = "SIG", value_parser = args::signal)]
    signal: Option<String>,
    /// How long they have before SIGKILL [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
    grace: Option<u64>,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct Whom {
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Everything that runs
    #[arg(long)]
    all: bool,
    /// What this task runs
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// What this session runs
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, Failure> {
    let mut meanwhile = match args.whom.ids.is_empty() {
        true => cx.show_work(Work::Killing),
        false => cx.show_waiting(args.whom.ids.clone()),
    };
    let (id, ids) = one_or_many(args.whom.ids);
    let params = params::Kill {
        id,
        ids,
        task_id: args.whom.task,
        session_key: args.whom.session,
        all: args.whom.all.then_some(true),
        signal: args.signal,
        grace_ms: args.grace,
    };
    let grace = Duration::from_millis(params.grace_ms.unwrap_or(DEFAULT_GRACE_MS));
    let several = params.ids.is_some() && !cx.json;
    let called = cx.call_long_once::<api::Kill>(&params, grace, &mut meanwhile);
    if several && called.as_ref().is_err_and(|failure| failure.exit_code() == NO_SUCH_PROCESS) {
        cx.console.say("nothing was killed: one of the ids is none");
    }
    let raw = called?;
    let result = cx.show::<api::Kill>(&raw, |result, look| render::kill::kill(&result.results, look))?;
    match result.status {
        KillStatus::Killed | KillStatus::AlreadyExited => Ok(DONE),
        KillStatus::Survivors => {
            if !cx.json {
                cx.console
                    .say("some processes cannot be killed now; those in state D wait for a device or a network disk");
            }
            Ok(FAILED)
        }
    }
}

/// The command line with `kill -9` and `kill -TERM`, as people type it, in the words that clap knows.
pub fn with_plain_signals(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let args: Vec<OsString> = args.collect();
    let Some(kill) = verb(&args).filter(|at| args[*at] == "kill") else { return args };
    let end = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
    let named = |(at, arg): (usize, OsString)| match plain_signal(&arg) {
        Some(signal) if (kill + 1..end).contains(&at) => format!("--signal={signal}").into(),
        // Somebody else's, or no signal.
        _ => arg,
    };
    args.into_iter().enumerate().map(named).collect()
}

/// Where the command stands, behind the flags that are before it.
fn verb(args: &[OsString]) -> Option<usize> {
    let mut at = 1;
    loop {
        match args.get(at)?.to_str() {
            Some("--socket" | "--config" | "--color") => at += 2,
            Some(flag) if flag.starts_with('-') => at += 1,
            Some(_) | None => return Some(at),
        }
    }
}

/// The signal in `-9`, `-TERM` or `-SIGTERM`. Small letters are flags.
fn plain_signal(arg: &OsStr) -> Option<String> {
    let name = arg.to_str()?.strip_prefix('-')?;
    let number = !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit());
    (number || args::is_signal(name)).then(|| name.to_owned())
}

/// `id` for one, `ids` for several.
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
            let words =
                |line: &str| ["toolctl"].into_iter().chain(line.split_whitespace()).map(OsString::from).collect();
            let typed: Vec<OsString> = words(typed);
            assert_eq!(with_plain_signals(typed.into_iter()), words(read) as Vec<OsString>);
        }
    }
}
