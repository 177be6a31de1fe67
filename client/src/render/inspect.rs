//! Everything about one process: facts, then its tree.

use super::table::{Cell, facts, table};
use super::text::bytes;
use super::time::{duration, exact};
use super::{Look, status, watch};
use toold_proto::process::{Member, Process};
use toold_proto::results::Inspect;

pub fn inspect(result: &Inspect, look: Look) -> String {
    let mut out = facts(&known(result), look);
    if !result.tree.is_empty() {
        out.push('\n');
        out.push_str(&tree(&result.tree, look));
    }
    out
}

fn known(result: &Inspect) -> Vec<(&'static str, String)> {
    let process = &result.process;
    let mut known = vec![("id", process.id.to_string())];
    known.extend(process.name.clone().map(|name| ("name", name)));
    known.push(("status", status::phrase(process)));
    known.push(("command", process.command.clone()));
    known.push(("cwd", process.cwd.clone()));
    known.extend(process.pid.map(|pid| ("pid", pid.to_string())));
    known.extend(process.exit_code.map(|code| ("exit code", code.to_string())));
    known.extend(process.signal.clone().map(|signal| ("signal", signal)));
    known.extend(process.killed_by.clone().map(|who| ("killed by", who)));
    known.extend(process.failure.as_ref().map(|f| ("failure", format!("{} {}: {}", f.step, f.path, f.error))));
    known.push(("started", process.started_at.clone()));
    known.extend(process.exited_at.clone().map(|at| ("exited", at)));
    known.push(("output", output(process)));
    known.push(("stdin", stdin(process)));
    known.extend(result.timeout_ms.map(|ms| ("timeout", duration(ms))));
    if process.notify {
        known.push(("notify", "a completion event when it ends".into()));
    }
    known.extend(result.heartbeat_ms.map(|ms| ("heartbeat", format!("every {} with new output", exact(ms)))));
    known.extend(process.watch.iter().flat_map(watch::facts));
    known.extend(process.task_id.clone().map(|task| ("task", task)));
    known.extend(process.session_key.clone().map(|key| ("session", key)));
    if !process.labels.is_empty() {
        let pairs: Vec<String> = process.labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
        known.push(("labels", pairs.join(" ")));
    }
    known.extend(process.limits.iter().map(|(name, limit)| {
        let by = limit.enforced_by.as_deref().unwrap_or("not enforced");
        let note = limit.note.as_deref().map(|note| format!(", {note}")).unwrap_or_default();
        ("limit", format!("{name} {} ({by}{note})", limit.requested))
    }));
    let usage = &result.usage;
    let used = format!("{} processes, {} CPU, {}", usage.processes, duration(usage.cpu_ms), bytes(usage.rss_bytes));
    known.push(("usage", used));
    known.extend(result.log_path.clone().map(|path| ("log", path)));
    known.push(("state", result.state_path.clone()));
    known.push(("environment", result.env_names.join(" ")));
    known
}

fn output(process: &Process) -> String {
    let mut text = format!("{} bytes, {} lines", process.bytes, process.lines);
    for (count, what) in [(process.dropped_bytes, "dropped from the middle"), (process.unstored_bytes, "not stored")] {
        if count > 0 {
            text.push_str(&format!(", {count} bytes {what}"));
        }
    }
    text.push_str(if process.closed { ", closed" } else { ", open" });
    text
}

fn stdin(process: &Process) -> String {
    use toold_proto::process::Stdin;
    let size = process.pty_size.map(|size| format!(" {}x{}", size.rows, size.cols)).unwrap_or_default();
    match process.stdin {
        Stdin::Null => "null".into(),
        Stdin::Pipe => "pipe".into(),
        Stdin::Pty => format!("pty{size}"),
        Stdin::Closed => "closed".into(),
    }
}

fn tree(members: &[Member], look: Look) -> String {
    let row = |m: &Member| {
        [
            Cell::new(&m.pid.to_string()),
            Cell::new(&m.ppid.to_string()),
            Cell::new(&m.state),
            Cell::new(&duration(m.cpu_ms)),
            Cell::new(&bytes(m.rss_bytes)),
            Cell::new(&m.command),
        ]
    };
    table(["PID", "PPID", "STATE", "CPU", "MEMORY", "COMMAND"], members.iter().map(row).collect(), look)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::text::columns;
    use crate::testing::process;
    use serde_json::json;

    #[test]
    fn what_it_tells_by_itself_is_among_the_facts() {
        let watch = crate::render::watch::tests::watch(json!({"state": "disabled", "note": "it matched too often"}));
        let document =
            process(json!({"tree": [], "usage": {"processes": 1, "cpu_ms": 0, "rss_bytes": 0}, "log_path": null,
            "state_path": "/s", "env_names": [], "shim_pid": 41, "timeout_ms": null, "heartbeat_ms": 90000,
            "notify": true, "watch": watch}));
        let shown = inspect(&serde_json::from_value(document).expect("a whole result"), Look::plain());
        let expected = "notify:      a completion event when it ends\n\
                        heartbeat:   every 90s with new output\n\
                        watch:       disabled, 3 hits, 0 suppressed\n             it matched too often\n";
        assert!(shown.contains(expected), "{shown}");
    }

    #[test]
    fn facts_come_first_then_the_tree_and_all_of_it_fits() {
        let member = json!({"pid": 42, "ppid": 1, "command": "make\ttest", "state": "S", "threads": 1, "cpu_ms": 2000, "rss_bytes": 2048});
        let document = process(json!({"tree": [member], "usage": {"processes": 1, "cpu_ms": 2000, "rss_bytes": 2048},
            "log_path": "/s/out.log", "state_path": "/s", "env_names": ["HOME", "PATH"], "shim_pid": 41,
            "timeout_ms": 60000, "labels": {"a": "b"}}));
        let result: Inspect = serde_json::from_value(document).expect("a whole result");
        let shown = inspect(&result, Look::plain());
        assert!(shown.starts_with("id:          proc_0123456789ab\nstatus:      running 5m\n"), "{shown}");
        assert!(
            shown.ends_with("PID  PPID  STATE  CPU  MEMORY  COMMAND\n42   1     S      2s   2.0K    make\\ttest\n"),
            "{shown}"
        );
        let narrow = inspect(&result, Look { width: Some(30), colour: false });
        assert!(narrow.lines().all(|line| columns(line) <= 30), "{narrow}");
    }
}
