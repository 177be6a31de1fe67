//! The summary that an agent gets at the start of its session: what runs, a few lines with ids.

use crate::blocking::Client;
use crate::local_time::now_ms;
use crate::render::text::{count, cut, escape_control};
use crate::render::time;
use serde::Deserialize;
use serde_json::json;
use std::path::Path;

/// The most processes that are listed. With the first and the last line there are five.
const MAX_LISTED: usize = 3;
/// The most columns of a command.
const MAX_COMMAND_WIDTH: usize = 80;
/// The most processes that are looked at.
const MAX_PROCESSES: u64 = 10_000;

#[derive(Debug, Deserialize)]
struct Listed {
    processes: Vec<Running>,
}

/// A process that runs.
#[derive(Debug, Clone, Deserialize)]
struct Running {
    id: String,
    name: Option<String>,
    command: String,
    cwd: Option<String>,
    session_key: Option<String>,
    started_at: Option<String>,
}

/// Returns what runs for a session or in a directory, in at most five lines. Empty: nothing does.
pub fn summary(client: &mut Client, session: &str, cwd: Option<&str>) -> Option<String> {
    let fields = ["id", "name", "command", "cwd", "session_key", "started_at"];
    let params = json!({"status": "running", "limit": MAX_PROCESSES, "fields": fields});
    let raw = client.call_raw("list", &params).ok()?;
    let listed: Listed = serde_json::from_str(raw.get()).ok()?;
    Some(format(listed.processes, session, cwd, now_ms()))
}

fn format(processes: Vec<Running>, session: &str, cwd: Option<&str>, now_ms: u64) -> String {
    let is_own = |one: &Running| one.session_key.as_deref() == Some(session);
    let is_here = |one: &Running| match (&one.cwd, cwd) {
        (Some(at), Some(dir)) => Path::new(at).starts_with(dir),
        _ => false,
    };
    let (own, others): (Vec<Running>, Vec<Running>) =
        processes.into_iter().filter(|one| is_own(one) || is_here(one)).partition(is_own);
    let total = own.len() + others.len();
    if total == 0 {
        return String::new();
    }
    let verb = if total == 1 { "runs" } else { "run" };
    let mut text = format!("toold: {} {verb} here in the background:\n", count(total as u64, "job"));
    for one in own.iter().chain(&others).take(MAX_LISTED) {
        let name = one.name.as_deref().map(|name| format!(" ({})", escape_control(name))).unwrap_or_default();
        let age = one.started_at.as_deref().and_then(time::unix_ms).map(|at| now_ms.saturating_sub(at));
        let age = age.map(|age| format!(" {}", time::duration(age))).unwrap_or_default();
        let owner = if is_own(one) { "" } else { ", of another session" };
        let command = cut(&escape_control(&one.command), MAX_COMMAND_WIDTH);
        text.push_str(&format!("{}{name} running{age}{owner}: {command}\n", one.id));
    }
    if total > MAX_LISTED {
        text.push_str(&format!("and {} more: `toolctl list`\n", total - MAX_LISTED));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running(id: &str, name: Option<&str>, cwd: &str, session: Option<&str>) -> Running {
        Running {
            id: id.into(),
            name: name.map(str::to_owned),
            command: "make\tserve".into(),
            cwd: Some(cwd.into()),
            session_key: session.map(str::to_owned),
            started_at: Some("2026-11-16T03:28:50.000Z".into()),
        }
    }

    #[test]
    fn what_runs_for_the_session_comes_first_then_what_runs_below_the_directory() {
        let now = time::unix_ms("2026-11-16T03:30:55.000Z").expect("a time");
        let all = vec![
            running("proc_1", None, "/w/sub", Some("other")),
            running("proc_2", Some("web"), "/elsewhere", Some("s")),
            running("proc_3", None, "/w2", None),
        ];
        assert_eq!(
            format(all, "s", Some("/w"), now),
            "toold: 2 jobs run here in the background:\n\
             proc_2 (web) running 2m: make\\tserve\n\
             proc_1 running 2m, of another session: make\\tserve\n"
        );
        assert_eq!(format(vec![running("proc_3", None, "/w2", None)], "s", Some("/w"), now), "");
    }

    #[test]
    fn many_processes_are_five_lines() {
        let all: Vec<Running> = (0..9).map(|n| running(&format!("proc_{n}"), None, "/w", Some("s"))).collect();
        let text = format(all, "s", None, 0);
        assert_eq!((text.lines().count(), text.lines().last()), (5, Some("and 6 more: `toolctl list`")));
    }
}
