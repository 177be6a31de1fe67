//! `__complete`: what could stand at the end of these words. Quick, silent, and wakes no daemon.

use super::Context;
use crate::blocking::parse;
use crate::failure::{DONE, Failure};
use crate::presence::{Presence, look};
use crate::{help, pick, render};
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate, complete};
use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use toold_proto::api::{self, Method};
use toold_proto::params::{self, Status};
use toold_proto::places;
use toold_proto::process::Process;

/// A person waits for the answer with a finger on the key.
const PATIENCE: Duration = Duration::from_millis(500);
/// More than these nobody reads.
const MOST: u64 = 200;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The command line up to the cursor; the last word is the one to complete
    #[arg(last = true)]
    words: Vec<OsString>,
}

/// Which processes a command is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Which {
    Any,
    Running,
    Ended,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, Failure> {
    let Some(last) = args.words.len().checked_sub(1) else { return Ok(DONE) };
    let socket = socket(&args.words).unwrap_or_else(places::socket);
    let mut command = with_ids(help::command(), &socket);
    // Behind `--` stands somebody else's command line.
    let ours = !args.words[..last].iter().any(|word| word == "--");
    let empty = args.words[last].is_empty();
    let current = std::env::current_dir().ok();
    let found = match ours {
        true => complete(&mut command, args.words, last, current.as_deref()).unwrap_or_default(),
        false => Vec::new(),
    };
    // Flags are offered to who begins one, or where nothing else can stand.
    let flag = |candidate: &&CompletionCandidate| candidate.get_value().as_encoded_bytes().starts_with(b"-");
    let others = found.iter().any(|candidate| !flag(&candidate));
    let unasked = |candidate: &&CompletionCandidate| empty && others && flag(candidate);
    let lines = found.iter().filter(|candidate| !candidate.is_hide_set()).filter(|c| !unasked(c)).map(line);
    cx.console.print(&lines.collect::<String>())?;
    Ok(DONE)
}

fn line(candidate: &CompletionCandidate) -> String {
    let value = candidate.get_value().to_string_lossy();
    let help = candidate.get_help().map(|help| help.to_string()).unwrap_or_default();
    let help = help.lines().next().unwrap_or_default().replace('\t', " ");
    if help.is_empty() { format!("{value}\n") } else { format!("{value}\t{help}\n") }
}

/// The socket that the line itself names.
fn socket(words: &[OsString]) -> Option<PathBuf> {
    let flag = words.windows(2).find(|pair| pair[0] == "--socket").map(|pair| PathBuf::from(&pair[1]));
    let joined = || words.iter().find_map(|word| Some(PathBuf::from(word.to_str()?.strip_prefix("--socket=")?)));
    flag.or_else(joined)
}

/// The command line with the living ids behind every argument that takes one.
fn with_ids(command: clap::Command, socket: &std::path::Path) -> clap::Command {
    command.mut_subcommands(|sub| {
        let which = which(sub.get_name());
        let socket = socket.to_path_buf();
        sub.mut_args(move |arg| match arg.get_id().as_str() {
            "id" | "ids" => {
                let socket = socket.clone();
                arg.add(ArgValueCandidates::new(move || candidates(&socket, which)))
            }
            // Somebody else's value.
            _ => arg,
        })
    })
}

fn which(verb: &str) -> Which {
    match verb {
        "kill" | "signal" | "write" | "submit" | "close" | "resize" | "attach" => Which::Running,
        "forget" => Which::Ended,
        // Whoever reads may read of all.
        _ => Which::Any,
    }
}

fn candidates(socket: &std::path::Path, which: Which) -> Vec<CompletionCandidate> {
    let Some(processes) = list(socket) else { return Vec::new() };
    let meant = |process: &&Process| match (which, process.status) {
        (Which::Any, _) => true,
        (Which::Running, status) => matches!(status, Status::Starting | Status::Running),
        (Which::Ended, status) => matches!(status, Status::Exited | Status::Lost),
    };
    // A name may have had others before: it stands for the newest, and stands here once.
    let mut names = HashSet::new();
    let words = processes.iter().filter(meant).flat_map(|process| {
        let about = format!("{}: {}", render::status::phrase(process), pick::short(&process.command));
        let name = process.name.clone().filter(|name| names.insert(name.clone()));
        let words = name.into_iter().chain([process.id.to_string()]);
        words.map(move |word| CompletionCandidate::new(word).help(Some(about.clone().into())))
    });
    let special = [(pick::LAST, "the newest process"), (pick::FAILED, "the newest that ended with a failure")];
    let special = special.map(|(word, about)| CompletionCandidate::new(word).help(Some(about.into())));
    words.chain(special).collect()
}

fn list(socket: &std::path::Path) -> Option<Vec<Process>> {
    let Presence::Here(mut client) = look(socket, PATIENCE) else { return None };
    let list = params::List { limit: Some(MOST), ..Default::default() };
    let raw = client.call_raw(api::List::NAME, &list).ok()?;
    Some(parse::<api::List>(&raw).ok()?.processes.into_iter().map(|listed| listed.process).collect())
}
