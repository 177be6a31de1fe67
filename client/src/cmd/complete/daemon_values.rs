//! Completions from the daemon: its processes, its tools and its event consumers. None without a running daemon.

use crate::blocking::parse;
use crate::daemon_probe::{DaemonState, probe};
use crate::{process_ref, render};
use clap_complete::engine::CompletionCandidate;
use std::collections::HashSet;
use std::path::Path;
use std::time::Duration;
use toold_proto::api::{self, Method};
use toold_proto::params::{self, Status};
use toold_proto::process::{Process, Stdin};
use toold_proto::tools::{ListedTool, ToolsListParams};

/// The timeout of a call: the user waits for the completion.
const CALL_TIMEOUT: Duration = Duration::from_millis(500);
/// The number of processes that are offered.
const MAX_PROCESSES: u64 = 200;

/// The processes that a command's ids can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessFilter {
    /// The command has no ids.
    NoIds,
    Any,
    Running,
    /// Running, with a stdin to write to.
    WithStdin,
    /// Running, on a terminal.
    OnTerminal,
    /// On a terminal, running or not.
    WithScreen,
    Ended,
    /// Scripts, running or not.
    Script,
    /// Kernels, running or not.
    Kernel,
}

impl ProcessFilter {
    /// Returns true if the process is one of them.
    pub fn includes(self, process: &Process) -> bool {
        let runs = matches!(process.status, Status::Pending | Status::Starting | Status::Running);
        match self {
            ProcessFilter::NoIds => false,
            ProcessFilter::Any => true,
            ProcessFilter::Running => runs,
            ProcessFilter::WithStdin => runs && matches!(process.stdin, Stdin::Pipe | Stdin::Pty),
            ProcessFilter::OnTerminal => runs && process.pty,
            ProcessFilter::WithScreen => process.pty,
            ProcessFilter::Ended => !runs,
            // A kernel is a script too, and its cells have the results.
            ProcessFilter::Script => process.script.is_some() && process.kernel.is_none(),
            ProcessFilter::Kernel => process.kernel.is_some(),
        }
    }
}

pub fn processes(socket: &Path, filter: ProcessFilter) -> Vec<CompletionCandidate> {
    let Some(processes) = list(socket) else { return Vec::new() };
    let meant = |process: &&Process| filter.includes(process);
    // Several processes may have had a name: it stands for the newest, and is offered once.
    let mut names = HashSet::new();
    let values = processes.iter().filter(meant).flat_map(|process| {
        let about = format!("{}: {}", render::status::describe(process), process_ref::short(&process.command));
        let name = process.name.clone().filter(|name| is_plain(name) && names.insert(name.clone()));
        let values = name.into_iter().chain([process.id.to_string()]);
        values.map(move |value| CompletionCandidate::new(value).help(Some(about.clone().into())))
    });
    // These are offered even before such a process exists, but not to a command that they cannot be used with.
    let means = |process: Option<&Process>| {
        filter == ProcessFilter::Any || process.is_some_and(|process| filter.includes(process))
    };
    let special = [
        (process_ref::LAST, "the newest process", means(processes.first())),
        (process_ref::FAILED, "the newest that ended with a failure", means(processes.iter().find(|p| p.has_failed()))),
    ];
    let special = special.into_iter().filter(|(_, _, meant)| *meant);
    let special = special.map(|(value, about, _)| CompletionCandidate::new(value).help(Some(about.into())));
    values.chain(special).collect()
}

/// Reports whether a shell takes the name as it is. A name that starts with @, from an older daemon, has another meaning
/// here or none.
fn is_plain(name: &str) -> bool {
    let is_special = |c: char| c.is_whitespace() || "\"'`$&|;<>()[]{}!#~\\".contains(c);
    !name.starts_with('@') && !name.contains(is_special)
}

/// Returns the consumers that have a position in the journal.
pub fn consumers(socket: &Path) -> Vec<CompletionCandidate> {
    let DaemonState::Running(mut client) = probe(socket, CALL_TIMEOUT) else { return Vec::new() };
    let Ok(info) = client.call::<api::DaemonInfo>(&params::Empty::default()) else { return Vec::new() };
    let last = info.events.last;
    let one = |consumer: toold_proto::results::Consumer| {
        let about = format!("{} of {last} events seen", consumer.position);
        CompletionCandidate::new(consumer.name).help(Some(about.into()))
    };
    info.events.consumers.into_iter().map(one).collect()
}

/// Returns the tools that can be called.
pub fn tools(socket: &Path) -> Vec<CompletionCandidate> {
    let DaemonState::Running(mut client) = probe(socket, CALL_TIMEOUT) else { return Vec::new() };
    let Ok(list) = client.call::<api::ToolsList>(&ToolsListParams::default()) else { return Vec::new() };
    let one =
        |tool: &ListedTool| CompletionCandidate::new(tool.name.clone()).help(tool.description.clone().map(Into::into));
    list.tools.listed().iter().map(one).collect()
}

fn list(socket: &Path) -> Option<Vec<Process>> {
    let DaemonState::Running(mut client) = probe(socket, CALL_TIMEOUT) else { return None };
    let list = params::ListParams { limit: Some(MAX_PROCESSES), ..Default::default() };
    let raw = client.call_raw(api::List::NAME, &list).ok()?;
    Some(parse::<api::List>(&raw).ok()?.processes.into_iter().map(|listed| listed.process).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FakeDaemon, Reply, listed};
    use serde_json::json;

    fn offered(processes: &[serde_json::Value], filter: ProcessFilter) -> Vec<String> {
        let fake = FakeDaemon::start(vec![vec![Reply::result(listed(processes))]]);
        let values = super::processes(&fake.path(), filter);
        values.iter().map(|value| value.get_value().to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn at_last_stands_there_once_also_where_an_older_daemon_took_it_for_a_name() {
        let old =
            [json!({"id": "proc_00000000000a", "name": "@last"}), json!({"id": "proc_00000000000b", "name": "web"})];
        assert_eq!(
            offered(&old, ProcessFilter::Any),
            ["proc_00000000000a", "web", "proc_00000000000b", "@last", "@failed"]
        );
    }

    #[test]
    fn a_command_is_offered_only_processes_it_works_on() {
        let ended =
            json!({"id": "proc_00000000000a", "status": "exited", "reason": "exited", "exit_code": 1, "pty": true});
        let deaf = json!({"id": "proc_00000000000b", "stdin": "null"});
        let pipe = json!({"id": "proc_00000000000c", "stdin": "pipe"});
        let screen = json!({"id": "proc_00000000000d", "stdin": "pty", "pty": true});
        let [a, b, c, d] = ["a", "b", "c", "d"].map(|digit| format!("proc_00000000000{digit}"));
        let all = [screen.clone(), pipe, deaf, ended.clone()];
        let offers = |verb: &str| offered(&all, crate::verbs::find(verb).expect("a verb").ids);
        assert_eq!(offers("attach"), [&d, "@last"]);
        assert_eq!(offers("resize"), [&d, "@last"]);
        assert_eq!(offers("submit"), [&d, &c, "@last"]);
        assert_eq!(offers("kill"), [&d, &c, &b, "@last"]);
        assert_eq!(offers("forget"), [&a, "@failed"]);
        assert_eq!(offers("log"), [&d, &c, &b, &a, "@last", "@failed"]);
        assert_eq!(offered(&[ended, screen], ProcessFilter::OnTerminal), [d.as_str()], "the newest has ended");
    }
}
