//! The limits of a process: what was requested, and what enforces it.

use super::text::bytes;
use super::time::exact;
use toold_proto::process::{LimitReport, Process};

/// The start of the reason in records of earlier versions.
const OLD_PREFIX: &str = "not enforced: ";

/// Describes a limit and what enforces it.
pub fn describe(name: &str, limit: &LimitReport) -> String {
    let by = limit.enforced_by.as_ref().map_or("not enforced".into(), |by| format!("by {by}"));
    let note = note(limit).map(|note| format!(" ({note})")).unwrap_or_default();
    let kills = limit.oom_kills.map(|kills| format!(", {kills} killed by the kernel")).unwrap_or_default();
    format!("{}, {by}{note}{kills}", requested(name, limit))
}

/// Describes the limits that nothing enforces, in one line. None: all are enforced.
pub fn unenforced(process: &Process) -> Option<String> {
    let lacking = process.limits.iter().filter(|(_, limit)| limit.enforced_by.is_none());
    let one = |(name, limit): (&String, &LimitReport)| {
        let why = note(limit).map(|note| format!(": {note}")).unwrap_or_default();
        format!("{} is not enforced{why}", requested(name, limit))
    };
    let all: Vec<String> = lacking.map(one).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

fn note(limit: &LimitReport) -> Option<&str> {
    limit.note.as_deref().map(|note| note.strip_prefix(OLD_PREFIX).unwrap_or(note))
}

fn requested(name: &str, limit: &LimitReport) -> String {
    let requested = limit.requested;
    match name {
        "memory_bytes" => format!("memory {}", bytes(requested)),
        "output_bytes" => format!("output {}", bytes(requested)),
        "cpu_percent" => format!("cpu {requested}%"),
        "idle_ms" => format!("idle {}", exact(requested)),
        // The number of processes, and limits of later versions.
        _ => format!("{name} {requested}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::process;
    use serde_json::json;

    #[test]
    fn a_limit_that_nothing_enforces_is_named_with_its_reason_once() {
        // The broken code printed `not enforced (not enforced: …)`.
        let limits = json!({"memory_bytes": {"requested": 67_108_864, "enforced_by": null, "note": "not enforced: no group"},
            "pids": {"requested": 9, "enforced_by": null, "note": "no group"},
            "cpu_percent": {"requested": 150, "enforced_by": "cgroup2", "note": null}});
        let process: Process = serde_json::from_value(process(json!({"limits": limits}))).expect("a whole process");
        let expected = "memory 64M is not enforced: no group; pids 9 is not enforced: no group";
        assert_eq!(unenforced(&process).as_deref(), Some(expected));
        let shown: Vec<String> = process.limits.iter().map(|(name, limit)| describe(name, limit)).collect();
        assert_eq!(
            shown,
            ["cpu 150%, by cgroup2", "memory 64M, not enforced (no group)", "pids 9, not enforced (no group)"]
        );
    }

    #[test]
    fn limits_that_are_enforced_are_not_worth_a_line() {
        let limits = json!({"pids": {"requested": 9, "enforced_by": "cgroup1", "note": "raised"}});
        let process = serde_json::from_value(process(json!({"limits": limits}))).expect("a whole process");
        assert_eq!(unenforced(&process), None);
    }
}
