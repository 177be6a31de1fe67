//! References to processes: resolves `@last` and `@failed`, and suggests the nearest process for a wrong id.

use crate::blocking::{CallError, parse};
use crate::cmd::complete::ProcessFilter;
use crate::cmd::wait::has_ended;
use crate::connect::Connection;
use crate::error::CliError;
use crate::render;
use std::collections::HashSet;
use strsim::osa_distance;
use toold_proto::params;
use toold_proto::process::Process;
use toold_proto::{ErrorKind, RpcError, api, results};

/// The newest process.
pub const LAST: &str = "@last";
/// The newest process that ended with a failure.
pub const FAILED: &str = "@failed";
/// The number of processes that an error names.
const MAX_NAMED: usize = 5;
/// The number of processes that are searched.
const MAX_PROCESSES: u64 = 100_000;

/// Replaces `@last` and `@failed` by the ids of the processes they stand for. Anything else is an id or a name, which the
/// daemon resolves. For a command about scripts or kernels they stand for one of those: the calls of a script start processes
/// too, which are newer.
pub fn resolve(ids: &mut [&mut String], filter: ProcessFilter, connection: &mut Connection) -> Result<(), CliError> {
    if !ids.iter().any(|id| *id == LAST || *id == FAILED) {
        return Ok(());
    }
    let of_a_kind = matches!(filter, ProcessFilter::Script | ProcessFilter::Kernel);
    let limit = if of_a_kind || ids.iter().any(|id| *id == FAILED) { MAX_PROCESSES } else { 1 };
    let mut processes = processes(connection.call_with_retry::<api::List>(&of(limit))?);
    processes.retain(|process| !of_a_kind || filter.includes(process));
    for id in ids.iter_mut() {
        let (found, none) = match id.as_str() {
            LAST => (processes.first(), "there is no process yet, so no @last"),
            FAILED => (processes.iter().find(|p| p.has_failed()), "no process that is kept ended with a failure"),
            // An id or a name already.
            _ => continue,
        };
        let found = found.ok_or_else(|| CallError::Rpc(RpcError::new(ErrorKind::NotFound, none)))?;
        **id = found.id.to_string();
    }
    Ok(())
}

/// The processes that a pattern of names stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatternUse {
    /// Those that run; if none does, the newest of each name.
    Newest,
    /// Those that have ended.
    Ended,
}

/// Reports whether it is a pattern. No name has these characters.
pub fn is_pattern(typed: &str) -> bool {
    typed.contains(['*', '?'])
}

/// Replaces patterns of names by the ids of the processes that they stand for, in the order of their starts. Everything else
/// stays.
pub fn expand(ids: Vec<String>, use_: PatternUse, connection: &mut Connection) -> Result<Vec<String>, CliError> {
    let mut expanded: Vec<String> = Vec::new();
    for typed in ids {
        if !is_pattern(&typed) {
            expanded.push(typed);
            continue;
        }
        let params = params::ListParams { name: Some(typed.clone()), ..of(MAX_PROCESSES) };
        let named = processes(connection.call_with_retry::<api::List>(&params)?);
        let mut meant = match use_ {
            PatternUse::Newest => running_or_newest(named),
            PatternUse::Ended => named.into_iter().filter(has_ended).collect(),
        };
        if meant.is_empty() {
            let none = format!("no process has a name that matches {typed:?}; `toolctl list -a` shows what there is");
            return Err(CallError::Rpc(RpcError::new(ErrorKind::NotFound, none)).into());
        }
        meant.reverse();
        expanded.extend(meant.into_iter().map(|process| process.id.to_string()));
    }
    Ok(expanded)
}

/// Returns those that run; if none does, the newest of each name. `named` has the newest first.
fn running_or_newest(mut named: Vec<Process>) -> Vec<Process> {
    if named.iter().any(|process| !has_ended(process)) {
        named.retain(|process| !has_ended(process));
    } else {
        let mut seen = HashSet::new();
        named.retain(|process| seen.insert(process.name.clone()));
    }
    named
}

/// The process that a command without an ID means when none runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IfNone {
    Newest,
    Refuse,
}

/// Returns the process that a command without an ID means: the one that runs, if one runs alone.
pub fn alone(if_none: IfNone, connection: &mut Connection) -> Result<String, CliError> {
    let mut running = processes(connection.call_with_retry::<api::List>(&of(MAX_PROCESSES))?);
    let newest = running.first().map(|process| process.id.to_string());
    running.retain(|process| !has_ended(process));
    match (running.as_slice(), if_none, newest) {
        ([one], _, _) => Ok(one.id.to_string()),
        ([], IfNone::Newest, Some(newest)) => Ok(newest),
        ([], _, _) => Err(CliError::Usage("give an ID: no process runs".into())),
        (several, _, _) => {
            let name = |process: &Process| process.name.clone().unwrap_or_else(|| process.id.to_string());
            let names: Vec<String> = several.iter().take(MAX_NAMED).map(name).collect();
            let more = if several.len() > MAX_NAMED { ", …" } else { "" };
            let (count, names) = (several.len(), render::text::escape_control(&names.join(", ")));
            Err(CliError::Usage(format!("give an ID: {count} processes run: {names}{more}")))
        }
    }
}

/// Returns a sentence with the process that was probably meant by an id that was not found.
pub fn suggestion(asked: &[String], connection: &mut Connection) -> Option<String> {
    connection.best_effort();
    let raw = connection.call_raw::<api::List>(&of(MAX_PROCESSES)).ok()?;
    let processes = processes(parse::<api::List>(&raw).ok()?);
    // The other ids on the command line were found, so they are not what this one means.
    let (given, wrong): (Vec<_>, Vec<_>) =
        asked.iter().partition(|typed| processes.iter().any(|p| refers_to(typed, p)));
    let processes: Vec<Process> =
        processes.into_iter().filter(|process| !given.iter().any(|typed| refers_to(typed, process))).collect();
    wrong.into_iter().find_map(|typed| {
        let near = unique_prefix(typed, &processes).or_else(|| nearest(typed, &processes))?;
        let name = near.name.clone().unwrap_or_else(|| near.id.to_string());
        Some(format!("did you mean {name} ({}: {})?", render::status::describe(near), short(&near.command)))
    })
}

fn of(limit: u64) -> params::ListParams {
    params::ListParams { limit: Some(limit), ..Default::default() }
}

fn processes(list: results::ListResult) -> Vec<Process> {
    list.processes.into_iter().map(|listed| listed.process).collect()
}

/// The number of digits from which the daemon accepts the start of an id.
const MIN_ID_PREFIX: usize = 4;

/// Reports whether the text is the process's name, its id or the start of its id.
fn refers_to(typed: &str, process: &Process) -> bool {
    let hex = typed.strip_prefix("proc_").unwrap_or(typed);
    let own = process.id.to_string();
    process.name.as_deref() == Some(typed) || hex.len() >= MIN_ID_PREFIX && own["proc_".len()..].starts_with(hex)
}

/// Returns the only process whose name or id starts with the text; of several with the same name the newest. The start of an
/// id may be one digit too short; with fewer it would fit too many.
fn unique_prefix<'a>(typed: &str, processes: &'a [Process]) -> Option<&'a Process> {
    let named = |process: &&Process| process.name.as_deref().is_some_and(|name| name.starts_with(typed));
    let mut named = processes.iter().filter(named);
    if let Some(first) = named.next().filter(|_| !typed.is_empty()) {
        return named.all(|other| other.name == first.name).then_some(first);
    }
    let hex = typed.strip_prefix("proc_").unwrap_or(typed);
    let mut by_id = processes.iter().filter(|process| process.id.to_string()["proc_".len()..].starts_with(hex));
    let first = by_id.next().filter(|_| hex.len() + 1 == MIN_ID_PREFIX)?;
    by_id.next().is_none().then_some(first)
}

/// Returns the process whose name or id is nearest to the text, the newest of several. None if none is near.
fn nearest<'a>(typed: &str, processes: &'a [Process]) -> Option<&'a Process> {
    let hex = typed.strip_prefix("proc_").unwrap_or(typed);
    let mut best: Option<(usize, &Process)> = None;
    for process in processes {
        let id = process.id.to_string();
        let own_hex = id.strip_prefix("proc_").unwrap_or(&id);
        let by_name = process.name.as_deref().map(|name| osa_distance(typed, name));
        // A wrong start of an id is compared with a start of the same length.
        let start = own_hex.get(..hex.len().min(own_hex.len())).unwrap_or(own_hex);
        let by_id = osa_distance(hex, start);
        let near = by_name
            .filter(|d| *d <= allowed(typed))
            .into_iter()
            .chain(Some(by_id).filter(|d| id_allowed(hex).is_some_and(|most| *d <= most)));
        if let Some(near) = near.min()
            && best.is_none_or(|(least, _)| near < least)
        {
            best = Some((near, process));
        }
    }
    best.map(|(_, process)| process)
}

/// Returns the edit distance at which a name is still near: a third of its length. One or two letters are near to all short names.
fn allowed(typed: &str) -> usize {
    typed.chars().count() / 3
}

/// Returns the edit distance at which an id is still near. Ids are random, and short ones are near to all.
fn id_allowed(hex: &str) -> Option<usize> {
    (hex.len() >= 6).then_some(2)
}

/// Returns what a person types for a process: its name, if a shell takes that as it is, else its id.
pub fn typed(process: &Process) -> String {
    let plain = |name: &&String| name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    process.name.as_ref().filter(plain).cloned().unwrap_or_else(|| process.id.to_string())
}

/// Returns a command on one line, for a hint or a completion. Line breaks become blanks.
pub fn short(command: &str) -> String {
    let one: Vec<&str> = command.split_whitespace().collect();
    render::text::cut(&render::text::escape_control(&one.join(" ")), 50)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::test_run;
    use crate::testing::{FakeDaemon, Reply, listed};
    use serde_json::{Value, json};

    fn three() -> Vec<Value> {
        vec![
            json!({"id": "proc_00000000000c", "name": "server"}),
            json!({"id": "proc_00000000000b", "status": "exited", "exit_code": 3, "reason": "exited"}),
            json!({"id": "proc_abcdef00000a", "status": "lost", "name": "build", "command": "make all"}),
        ]
    }

    #[test]
    fn last_and_failed_become_the_ids_of_processes_and_others_stay() {
        let answer = json!({"status": "killed", "results": []});
        for (typed, limit, meant) in
            [("@last", 1, "proc_00000000000c"), ("@failed", MAX_PROCESSES, "proc_00000000000b"), ("@else", 0, "@else")]
        {
            let asks = limit > 0;
            let mut script = vec![Reply::result(answer.clone())];
            if asks {
                script.insert(0, Reply::result(listed(&three())));
            }
            let fake = FakeDaemon::start(vec![script]);
            assert_eq!(test_run(&fake, &["kill", typed]).0, 0);
            if asks {
                assert_eq!(fake.next_request(), ("list".into(), json!({"limit": limit})));
            }
            assert_eq!(fake.next_request(), ("kill".into(), json!({"id": meant})));
        }
    }

    #[test]
    fn without_a_process_there_is_no_last_one_and_the_code_is_3() {
        let fake = FakeDaemon::start(vec![vec![Reply::result(listed(&[])), Reply::result(listed(&[]))]]);
        let printed = "toolctl: there is no process yet, so no @last\n";
        assert_eq!(test_run(&fake, &["log", "@last"]), (3, String::new(), printed.into()));
    }

    #[test]
    fn a_wrong_id_is_reported_with_the_nearest_if_one_is_near() {
        let error = json!({"code": -32001, "message": "no such process", "data": {"kind": "not_found"}});
        for (typed, hint) in [
            ("sevrer", "toolctl: did you mean server (running 5m: make test)?\n"),
            ("abcdfe00000a", "toolctl: did you mean build (lost: make all)?\n"),
            ("proc_abcdff00", "toolctl: did you mean build (lost: make all)?\n"),
            ("ser", "toolctl: did you mean server (running 5m: make test)?\n"),
            ("bu", "toolctl: did you mean build (lost: make all)?\n"),
            ("abc", "toolctl: did you mean build (lost: make all)?\n"),
            ("000", ""),
            ("unlike", ""),
            // The broken code suggested `v` for every single letter, and for a digit any process whose id began with it.
            ("p", ""),
            ("9", ""),
            ("a", ""),
            ("vi", ""),
            ("s", "toolctl: did you mean server (running 5m: make test)?\n"),
        ] {
            let all = [three(), vec![json!({"id": "proc_999999999999", "name": "v"})]].concat();
            let fake = FakeDaemon::start(vec![vec![Reply::error(&error), Reply::result(listed(&all))]]);
            let printed = format!("toolctl: no such process\n{hint}");
            assert_eq!(test_run(&fake, &["inspect", typed]), (3, String::new(), printed), "{typed}");
        }
    }

    #[test]
    fn other_given_ids_are_not_suggested_for_a_wrong_one() {
        let error = json!({"code": -32001, "message": "no such process", "data": {"kind": "not_found"}});
        for (typed, hint) in [
            (["nosuch", "server"], ""),
            (["server", "sevrer"], ""),
            (["sevrer", "00000000000c"], ""),
            (["sevrer", "proc_00000000000c"], ""),
            (["build", "sevrer"], "toolctl: did you mean server (running 5m: make test)?\n"),
            (["sevrer", "biuld"], "toolctl: did you mean server (running 5m: make test)?\n"),
        ] {
            let fake = FakeDaemon::start(vec![vec![Reply::error(&error), Reply::result(listed(&three()))]]);
            let printed = format!("toolctl: no such process\n{hint}");
            assert_eq!(test_run(&fake, &["wait", typed[0], typed[1]]), (3, String::new(), printed), "{typed:?}");
        }
        let listing = || Reply::result(listed(&three()[..1]));
        let fake = FakeDaemon::start(vec![vec![listing(), Reply::error(&error), listing()]]);
        let printed = test_run(&fake, &["wait", "@last", "sevrer"]).2;
        assert_eq!(printed, "toolctl: no such process\n", "@last is the server");
    }

    #[test]
    fn a_command_of_several_lines_is_printed_on_one() {
        assert_eq!(short("cd src\n  make all\n"), "cd src make all");
        assert_eq!(short(&"x".repeat(80)).chars().count(), 50);
    }

    #[test]
    fn a_swap_is_one_step_and_so_is_a_letter_more_or_less() {
        let distances = [("web", "wbe"), ("web", "we"), ("web", "webs"), ("web", "wab"), ("", "ab"), ("a", "a")];
        assert_eq!(distances.map(|(a, b)| osa_distance(a, b)), [1, 1, 1, 1, 2, 0]);
    }
}
