//! What only the daemon knows: its processes and its consumers of events. Without one there is nothing to offer.

use crate::blocking::parse;
use crate::presence::{Presence, look};
use crate::{pick, render};
use clap_complete::engine::CompletionCandidate;
use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;
use toold_proto::api::{self, Method};
use toold_proto::params::{self, Status};
use toold_proto::process::Process;

/// A person waits for the answer with a finger on the key.
const PATIENCE: Duration = Duration::from_millis(500);
/// More than these nobody reads.
const MOST: u64 = 200;

/// Which processes a command is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    Any,
    Running,
    Ended,
}

pub fn which(verb: &str) -> Which {
    match verb {
        "kill" | "signal" | "write" | "submit" | "close" | "resize" | "attach" => Which::Running,
        "forget" => Which::Ended,
        // Whoever reads may read of all.
        _ => Which::Any,
    }
}

pub fn processes(socket: &Path, which: Which) -> Vec<CompletionCandidate> {
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
        // A name of an older daemon's that begins with @ means nothing here, or something else.
        let name = process.name.clone().filter(|name| !name.starts_with('@') && names.insert(name.clone()));
        let words = name.into_iter().chain([process.id.to_string()]);
        words.map(move |word| CompletionCandidate::new(word).help(Some(about.clone().into())))
    });
    let special = [(pick::LAST, "the newest process"), (pick::FAILED, "the newest that ended with a failure")];
    let special = special.map(|(word, about)| CompletionCandidate::new(word).help(Some(about.into())));
    words.chain(special).collect()
}

/// Those that have a position in the events.
pub fn consumers(socket: &Path) -> Vec<CompletionCandidate> {
    let Presence::Here(mut client) = look(socket, PATIENCE) else { return Vec::new() };
    let Ok(info) = client.call::<api::DaemonInfo>(&params::Nothing::default()) else { return Vec::new() };
    let last = info.events.last;
    let one = |consumer: toold_proto::results::Consumer| {
        let about = format!("{} of {last} events seen", consumer.position);
        CompletionCandidate::new(consumer.name).help(Some(about.into()))
    };
    info.events.consumers.into_iter().map(one).collect()
}

fn list(socket: &Path) -> Option<Vec<Process>> {
    let Presence::Here(mut client) = look(socket, PATIENCE) else { return None };
    let list = params::List { limit: Some(MOST), ..Default::default() };
    let raw = client.call_raw(api::List::NAME, &list).ok()?;
    Some(parse::<api::List>(&raw).ok()?.processes.into_iter().map(|listed| listed.process).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Fake, Reply, listed};
    use serde_json::json;

    fn offered(processes: &[serde_json::Value], which: Which) -> Vec<String> {
        let fake = Fake::start(vec![vec![Reply::result(listed(processes))]]);
        let words = super::processes(&fake.path(), which);
        words.iter().map(|word| word.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn at_last_stands_there_once_also_where_an_older_daemon_took_it_for_a_name() {
        let old =
            [json!({"id": "proc_00000000000a", "name": "@last"}), json!({"id": "proc_00000000000b", "name": "web"})];
        assert_eq!(offered(&old, Which::Any), ["proc_00000000000a", "web", "proc_00000000000b", "@last", "@failed"]);
    }
}
