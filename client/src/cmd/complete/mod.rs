//! `__complete`: prints what can complete a command line. It is quick, prints no errors, and starts no daemon.
//!
//! A line has a value, and behind a tab its meaning. A line `>N` means that from argument N on it is another program's command
//! line, which the shell itself completes.

mod daemon_values;

pub use daemon_values::ProcessFilter;

use super::Context;
use crate::args::SIGNALS;
use crate::error::{CliError, DONE};
use crate::help;
use crate::help::topics::TOPICS;
use crate::raw_args::RawArgs;
use crate::verbs;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter, CompletionCandidate, complete};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use toold_proto::paths;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The command line up to the cursor; the last argument is the one to complete
    #[arg(last = true)]
    argv: Vec<OsString>,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let Some(last) = args.argv.len().checked_sub(1) else { return Ok(DONE) };
    let command = help::command();
    let line = RawArgs::read(&args.argv, &command);
    if let Some(program) = program(&line, &args.argv) {
        cx.console.print(&format!(">{program}\n"))?;
        return Ok(DONE);
    }
    // Arguments behind `--` are not ours.
    if line.end < last {
        return Ok(DONE);
    }
    let socket = line.value("--socket").map(PathBuf::from).unwrap_or_else(paths::socket);
    let mut command = with_values(command, &socket, &explained(&line, &args.argv));
    let empty = args.argv[last].is_empty();
    let current = std::env::current_dir().ok();
    let found = complete(&mut command, args.argv, last, current.as_deref()).unwrap_or_default();
    // Options are offered once a dash is typed, or if nothing else is possible.
    let flag = |candidate: &&CompletionCandidate| candidate.get_value().as_encoded_bytes().starts_with(b"-");
    let others = found.iter().any(|candidate| !flag(&candidate));
    let unasked = |candidate: &&CompletionCandidate| empty && others && flag(candidate);
    let lines = found.iter().filter(|candidate| !candidate.is_hide_set()).filter(|c| !unasked(c)).map(format_candidate);
    cx.console.print(&lines.collect::<String>())?;
    Ok(DONE)
}

fn format_candidate(candidate: &CompletionCandidate) -> String {
    let value = candidate.get_value().to_string_lossy();
    let help = candidate.get_help().map(|help| help.to_string()).unwrap_or_default();
    let help = help.lines().next().unwrap_or_default().replace('\t', " ");
    if help.is_empty() { format!("{value}\n") } else { format!("{value}\t{help}\n") }
}

/// Returns the position of the program whose command line is to be completed. An empty argument there, without a `--` before
/// it, may still become an option of ours.
fn program(line: &RawArgs<'_>, argv: &[OsString]) -> Option<usize> {
    let (at, last) = (line.program?, argv.len() - 1);
    let text = line.has("-c") || line.has("--command");
    let undecided = at == last && argv[at].is_empty() && argv[at - 1] != "--";
    (at <= last && !text && !undecided).then_some(at)
}

/// Adds the possible values of arguments that clap alone does not know.
fn with_values(command: clap::Command, socket: &Path, explained: &[(String, String)]) -> clap::Command {
    command.mut_subcommands(|sub| {
        let filter = verbs::find(sub.get_name()).map_or(ProcessFilter::NoIds, |verb| verb.ids);
        let explained = if sub.get_name() == "help" { explained } else { &[] };
        let sub = with_verb_values(sub, filter, socket, explained);
        sub.mut_subcommands(|inside| with_verb_values(inside, filter, socket, &[]))
    })
}

/// Adds the possible values of the arguments of one command.
fn with_verb_values(
    command: clap::Command,
    filter: ProcessFilter,
    socket: &Path,
    explained: &[(String, String)],
) -> clap::Command {
    command.mut_args(|arg| {
        let socket = socket.to_path_buf();
        match arg.get_id().as_str() {
            "id" | "ids" => arg.add(ArgValueCandidates::new(move || daemon_values::processes(&socket, filter))),
            "consumer" => arg.add(ArgValueCandidates::new(move || daemon_values::consumers(&socket))),
            "tool" | "tools" => arg.add(ArgValueCandidates::new(move || daemon_values::tools(&socket))),
            "signal" => arg.add(ArgValueCompleter::new(signals)),
            "names" if !explained.is_empty() => {
                let explained = explained.to_vec();
                arg.add(ArgValueCandidates::new(move || explained.iter().map(candidate).collect()))
            }
            // Clap knows the values, or there are none to offer.
            _ => arg,
        }
    })
}

fn candidate((token, about): &(String, String)) -> CompletionCandidate {
    CompletionCandidate::new(token).help(Some(about.clone().into()))
}

/// Returns what `help` explains behind the given arguments: topics and commands, or a command's subcommands.
fn explained(line: &RawArgs<'_>, argv: &[OsString]) -> Vec<(String, String)> {
    let before = line.verb.map_or(&[][..], |verb| &argv[verb + 1..argv.len().max(verb + 2) - 1]);
    let command = help::command();
    let Some(inside) = before.iter().try_fold(&command, |at, token| at.find_subcommand(token)) else {
        return Vec::new();
    };
    let visible = inside.get_subcommands().filter(|sub| !sub.is_hide_set());
    let about = |sub: &clap::Command| sub.get_about().map(|about| about.to_string()).unwrap_or_default();
    let commands = visible.map(|sub| (sub.get_name().to_owned(), about(sub)));
    let topics = TOPICS.iter().map(|topic| (topic.name.to_owned(), topic.about.to_owned()));
    let topics = topics.chain([("topics".to_owned(), "what else is explained".to_owned())]);
    // `events` is a command and a topic, and is offered once.
    let topics = topics.filter(|(name, _)| command.find_subcommand(name).is_none());
    commands.chain(topics.filter(|_| before.is_empty())).collect()
}

/// Returns signals in the form that was typed: `TERM`, `SIGTERM`, `term`.
fn signals(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy();
    let small = typed.starts_with(|c: char| c.is_ascii_lowercase());
    let long = typed.len() >= 3 && typed.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("sig"));
    let name = |name: &str| {
        let name = if long { format!("SIG{name}") } else { name.to_owned() };
        if small { name.to_ascii_lowercase() } else { name }
    };
    let all = SIGNALS.iter().enumerate().map(|(at, signal)| (name(signal), format!("signal {}", at + 1)));
    all.filter(|(name, _)| name.starts_with(&*typed)).map(|one| candidate(&one)).collect()
}
