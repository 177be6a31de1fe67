//! All facts about one process, in the layout of `systemctl status`.

use super::table::{Cell, table};
use super::text::{bytes, columns, count, cut, escape_control, wrap};
use super::time::{cpu, exact, precise, unix_ms};
use super::{Style, Tint, limits, sandbox, status, tree, watch};
use crate::error_text;
use toold_proto::params::Status;
use toold_proto::process::{Process, Reason, Stdin};
use toold_proto::results::{InspectResult, Listener};

/// Width of the longest title and its colon.
const TITLE_WIDTH: usize = 11;

/// Maximum number of lines of one fact on a terminal.
const MAX_FACT_LINES: usize = 4;
/// Columns below which the tree shows no usage.
const NARROW_TREE_WIDTH: usize = 48;

/// The current time, and the format of local times.
pub struct TimeContext<'a> {
    pub now_ms: u64,
    /// Formats milliseconds since 1970 as a local date and time.
    pub local: &'a dyn Fn(u64) -> String,
}

/// A title and a value. A fact without a title continues the one before.
type Fact = (&'static str, String);

/// Renders the headline, the facts and the process tree.
pub fn inspect(result: &InspectResult, time: &TimeContext<'_>, style: Style) -> String {
    let mut out = headline(&result.process, style);
    let mut all = state(&result.process, time);
    all.extend(environment(result));
    all.extend(limits(result));
    all.extend(notifications(result));
    all.extend(output(result));
    all.push(usage(result));
    all.extend(listeners(result));
    all.iter().for_each(|fact| out.push_str(&line(fact, style)));
    if !result.tree.is_empty() {
        let room = style.width.map(|all| all.saturating_sub(TITLE_WIDTH + 1));
        members(result, Style { width: room, ..style }).lines().for_each(|row| {
            out.push_str(&" ".repeat(TITLE_WIDTH + 1));
            out.push_str(row);
            out.push('\n');
        });
    }
    out
}

fn headline(process: &Process, style: Style) -> String {
    let id = process.id.to_string();
    let who = process.name.as_ref().map_or(id.clone(), |name| format!("{} ({id})", escape_control(name)));
    let dot = status::tint(process).paint("●", style);
    let text = format!("{who} - {}", escape_control(&process.command));
    let room = style.width.map_or(usize::MAX, |all| all.saturating_sub(2));
    format!("{dot} {}\n", Tint::Heading.paint(&cut(&text, room), style))
}

/// Renders one fact with its title aligned to the right.
fn line((title, value): &Fact, style: Style) -> String {
    let title = if title.is_empty() { String::new() } else { format!("{title}:") };
    let start = format!("{}{title} ", " ".repeat(TITLE_WIDTH.saturating_sub(columns(&title))));
    let room = style.width.map_or(usize::MAX, |all| all.saturating_sub(columns(&start)));
    let start = cut(&start, style.width.unwrap_or(usize::MAX));
    let lines = wrap(&escape_control(value), room, MAX_FACT_LINES);
    let starts = std::iter::once(start.clone()).chain(std::iter::repeat(" ".repeat(columns(&start))));
    starts.zip(lines).map(|(start, line)| format!("{}{line}\n", Tint::Faint.paint(&start, style))).collect()
}

/// Returns the status, since when, and the exit.
fn state(process: &Process, time: &TimeContext<'_>) -> Vec<Fact> {
    let at = |text: &str| unix_ms(text).map_or_else(|| text.to_owned(), |ms| (time.local)(ms));
    let ago = |text: &str| unix_ms(text).map_or(0, |ms| time.now_ms.saturating_sub(ms));
    let since = |text: &str| format!("since {}; {} ago", at(text), precise(ago(text)));
    let mut facts = Vec::new();
    match (process.status, &process.exited_at) {
        (Status::Running, _) if process.stopped => {
            let resume = format!("toolctl resume {}", process.id);
            facts.push(("State", format!("stopped; runs {}; continue it with {resume}", since(&process.started_at))));
        }
        (Status::Pending | Status::Starting | Status::Running, _) | (Status::Exited | Status::Lost, None) => {
            facts.push((
                "State",
                format!("{} {}{}", status::state(process), since(&process.started_at), status::remark(process)),
            ));
        }
        (Status::Exited | Status::Lost, Some(end)) => {
            let exit = match (status::exit(process), process.core_dumped) {
                (exit, _) if exit == "-" => String::new(),
                (exit, true) => format!(" ({exit}, core dumped)"),
                (exit, false) => format!(" ({exit})"),
            };
            facts
                .push(("State", format!("{}{exit} {}{}", status::state(process), since(end), status::remark(process))));
            let has_run = match process.reason {
                Some(Reason::FailedStart | Reason::Dependency | Reason::Denied) => false,
                Some(Reason::Killed) => process.pid.is_some(),
                _ => true,
            };
            let ran = unix_ms(end).zip(unix_ms(&process.started_at)).map(|(end, start)| end.saturating_sub(start));
            let ran = ran.map(|ms| format!(", ran {}", if ms < 1000 { exact(ms) } else { precise(ms) }));
            facts.push(match has_run {
                true => ("Started", at(&process.started_at) + &ran.unwrap_or_default()),
                false => ("Requested", at(&process.started_at) + ", never ran"),
            });
        }
    }
    if let Some(wait) = process.needs_input.as_ref().filter(|wait| !wait.prompt.is_empty()) {
        facts.push(("Asks", wait.prompt.clone()));
    }
    facts.extend(status::waits_for(process).map(|why| ("Waits for", why)));
    facts.extend(process.exit_code.map(|code| ("Exit code", code.to_string())));
    facts.extend(process.killed_by.clone().map(|who| ("Killed by", error_text::option(&who))));
    facts.extend(process.failure.as_ref().map(|f| ("Failure", status::failure(f))));
    if process.detached == Some(true) {
        let unknown = || "its shim is alive but does not answer".into();
        facts.push(("Detached", process.unreachable.clone().unwrap_or_else(unknown)));
    }
    facts
}

/// Returns directory, session, labels, stdin and environment.
fn environment(result: &InspectResult) -> Vec<Fact> {
    let process = &result.process;
    let mut facts = vec![("Directory", process.cwd.clone())];
    if process.backend != "local" {
        facts.push(("Backend", process.backend.clone()));
    }
    facts.extend(process.task_id.clone().map(|task| ("Task", task)));
    facts.extend(process.session_key.clone().map(|key| ("Session", key)));
    if let Some(by) = &process.started_by {
        let client = by.client.as_deref().unwrap_or("an unknown program");
        facts.push(("Client", format!("{client}, pid {}, uid {}", by.pid, by.uid)));
    }
    if !process.labels.is_empty() {
        let pairs: Vec<String> = process.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        facts.push(("Labels", pairs.join(" ")));
    }
    let size = process.pty_size.map(|size| format!(", {}x{}", size.rows, size.cols)).unwrap_or_default();
    let stdin = match process.stdin {
        Stdin::Null => "null".into(),
        Stdin::Pipe => "pipe".into(),
        Stdin::Pty => format!("pty{size}"),
        Stdin::Closed => "closed".into(),
    };
    facts.push(("Stdin", stdin));
    facts.push(("Env", result.env_names.join(" ")));
    facts
}

/// Returns the limits with their enforcer, and the sandbox.
fn limits(result: &InspectResult) -> Vec<Fact> {
    let process = &result.process;
    let timeout = result.timeout_ms.map(|ms| format!("{} in all, by shim", exact(ms)));
    let all = timeout.into_iter().chain(process.limits.iter().map(|(name, limit)| limits::describe(name, limit)));
    let titles = std::iter::once("Limits").chain(std::iter::repeat(""));
    let mut facts: Vec<Fact> = titles.zip(all).collect();
    facts.push(("Sandbox", sandbox::summary(&process.sandbox)));
    facts
}

/// Returns the watch, the completion notification and the heartbeat.
fn notifications(result: &InspectResult) -> Vec<Fact> {
    let process = &result.process;
    let watch = process.watch.iter().flat_map(watch::facts);
    let mut facts: Vec<Fact> =
        watch.map(|(title, value)| (if title.is_empty() { "" } else { "Watch" }, value)).collect();
    if process.notify {
        facts.push(("Notify", "a completion event when it ends".into()));
    }
    facts.extend(result.heartbeat_ms.map(|ms| ("Heartbeat", format!("every {} with new output", exact(ms)))));
    facts
}

/// Returns the path and size of the output.
fn output(result: &InspectResult) -> Vec<Fact> {
    let process = &result.process;
    let mut text = format!("{}, {}", count(process.bytes, "byte"), count(process.lines, "line"));
    for (number, what) in [(process.dropped_bytes, "dropped from the middle"), (process.unstored_bytes, "not stored")] {
        if number > 0 {
            text.push_str(&format!(", {} {what}", count(number, "byte")));
        }
    }
    text.push_str(if process.closed { ", closed" } else { ", open" });
    let (first, others) = match result.log_files.as_slice() {
        // A daemon of an earlier version lists none.
        [] => (result.log_path.clone(), &[][..]),
        [first, others @ ..] => (Some(first.clone()), others),
    };
    let others = match others {
        [] => String::new(),
        [one] => format!(" and {}", file_name(one)),
        [one, .., last] => format!(" and {} to {}, {} files in all", file_name(one), file_name(last), others.len() + 1),
    };
    let log = first.map(|path| ("Log", path + &others));
    log.into_iter().chain([("Output", text)]).collect()
}

/// Returns the last part of a path.
fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

fn usage(result: &InspectResult) -> Fact {
    let usage = &result.usage;
    let shim = result.shim_pid.map(|pid| format!(", shim {pid}")).unwrap_or_default();
    let many = if usage.processes == 1 { "process" } else { "processes" };
    let text = match usage.processes {
        0 => format!("empty{shim}"),
        n => format!("{n} {many}, CPU {}, memory {}{shim}", cpu(usage.cpu_ms), bytes(usage.rss_bytes)),
    };
    ("Tree", text)
}

/// Returns the ports on which the tree listens.
fn listeners(result: &InspectResult) -> Vec<Fact> {
    let one = |listener: &Listener| format!("{} port {}, pid {}", listener.address, listener.port, listener.pid);
    std::iter::once("Listens").chain(std::iter::repeat("")).zip(result.listeners.iter().map(one)).collect()
}

fn members(result: &InspectResult, style: Style) -> String {
    let row = |(branch, member): (String, &toold_proto::process::Member)| {
        [
            Cell::number(&member.pid.to_string()),
            Cell::new(&member.state),
            Cell::number(&cpu(member.cpu_ms)),
            Cell::number(&bytes(member.rss_bytes)),
            Cell::new(&format!("{branch}{}", member.command)),
        ]
    };
    let rows: Vec<[Cell; 5]> = tree::branches(&result.tree).into_iter().map(row).collect();
    if style.width.is_some_and(|width| width < NARROW_TREE_WIDTH) {
        let rows = rows.into_iter().map(|[pid, _, _, _, command]| [pid, command]).collect();
        return table(["PID", "COMMAND"], rows, style);
    }
    table(["PID", "STATE", "CPU", "MEMORY", "COMMAND"], rows, style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{golden, process};
    use serde_json::{Value, json};

    const NOW: u64 = 1_794_798_000_000 + 192_000;

    fn shown(changes: Value, style: Style) -> String {
        let mut document = process(
            json!({"tree": [], "usage": {"processes": 0, "cpu_ms": 0, "rss_bytes": 0}, "log_path": null,
            "state_path": "/s", "env_names": ["HOME", "PATH"], "shim_pid": null, "timeout_ms": null, "heartbeat_ms": null}),
        );
        document.as_object_mut().expect("an object").extend(changes.as_object().expect("an object").clone());
        let local = |ms: u64| toold_proto::time::rfc3339(ms).replace('T', " ")[..19].to_owned() + " UTC";
        let result = serde_json::from_value(document).expect("a whole result");
        inspect(&result, &TimeContext { now_ms: NOW, local: &local }, style)
    }

    fn busy() -> Value {
        let member = |pid: i32, ppid: i32, command: &str| {
            json!({"pid": pid, "ppid": ppid, "command": command,
            "state": "S", "threads": 1, "cpu_ms": pid * 1000, "rss_bytes": pid << 20})
        };
        let watch = crate::render::watch::tests::watch(json!({"state": "disabled", "note": "it matched too often"}));
        json!({"name": "web", "command": "make 测试\u{1b}[2J\u{202e}", "tree": [member(42, 41, "make 测试"), member(43, 42, "cc1 -o\tx.o"),
                member(45, 43, "as"), member(44, 42, "ld"), member(50, 41, "left\nover")],
            "usage": {"processes": 5, "cpu_ms": 224_000, "rss_bytes": 224 << 20}, "shim_pid": 41, "timeout_ms": 600_000,
            "log_path": "/home/me/.local/state/toold/procs/proc_0123456789ab/log", "heartbeat_ms": 90000, "notify": true, "watch": watch,
            "labels": {"kind": "server", "x": "\u{200b}"}, "session_key": "chat-42", "bytes": 120_000, "lines": 3000, "dropped_bytes": 7,
            "limits": {"memory_bytes": {"requested": 536_870_912, "enforced_by": "cgroup2", "note": null},
                "pids": {"requested": 9, "enforced_by": null, "note": "no cgroup here"}}})
    }

    #[test]
    fn inspect_fits_at_40_80_and_200_columns() {
        for width in [40, 80, 200] {
            let text = shown(busy(), Style { width: Some(width), colour: false });
            assert!(text.lines().all(|line| columns(line) <= width), "{width}: {text}");
            golden(&format!("inspect-{width}.txt"), &text);
        }
    }

    #[test]
    fn an_exited_process_shows_reason_time_and_duration() {
        let killed = json!({"status": "exited", "reason": "killed", "exit_code": 143, "signal": "SIGTERM", "closed": true,
            "killed_by": "client uid 0 pid 7", "exited_at": "2026-11-16T03:02:00.000Z"});
        golden("inspect-ended.txt", &shown(killed, Style::plain()));
        let failure = json!({"step": "exec", "errno": 2, "error": "ENOENT", "path": "/no"});
        let failed = json!({"status": "exited", "reason": "failed_start", "failure": failure, "exited_at": "2026-11-16T03:00:00.000Z"});
        let text = shown(failed, Style::plain());
        assert!(text.contains("State: failed_start since 2026-11-16 03:00:00 UTC; 3m 12s ago\n"), "{text}");
        assert!(text.contains("Failure: exec /no: No such file or directory (os error 2)\n"), "{text}");
    }

    #[test]
    fn every_file_of_the_log_is_named() {
        let log = |files: &[&str]| shown(json!({"log_path": files[0], "log_files": files}), Style::plain());
        assert!(log(&["/s/log"]).contains("Log: /s/log\n"));
        assert!(log(&["/s/log", "/s/log.08"]).contains("Log: /s/log and log.08\n"));
        let several = log(&["/s/log", "/s/log.08", "/s/log.10", "/s/log.18"]);
        assert!(several.contains("Log: /s/log and log.08 to log.18, 4 files in all\n"), "{several}");
    }

    #[test]
    fn the_dot_has_the_colour_of_the_state_and_no_line_is_wider_than_the_terminal() {
        assert!(shown(busy(), Style { width: Some(80), colour: true }).starts_with("\x1b[36m●\x1b[0m \x1b[1mweb ("));
        for width in 1..120 {
            let text = shown(busy(), Style { width: Some(width), colour: false });
            assert!(
                text.lines().skip(1).all(|line| columns(line.trim_end()) <= width.max(TITLE_WIDTH + 1)),
                "{width}: {text}"
            );
        }
    }
}
