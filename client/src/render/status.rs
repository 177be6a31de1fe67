//! Status and exit of a process in short form.

use super::Tint;
use super::text::escape_control;
use super::time::{duration, exact};
use crate::error_text;
use toold_proto::ProcId;
use toold_proto::params::{self, Status};
use toold_proto::process::{Failure, Process, Reason};

/// Describes status and exit: `running 5m`, `stopped, running 5m`, `exited 0`, `killed SIGTERM`, `timeout`, `failed_start`,
/// `lost`; and whether it waits for input, or something of it lives on.
pub fn describe(process: &Process) -> String {
    describe_status(process) + &remark(process)
}

/// Describes what the status alone does not: `, waiting for input`, `, 3 descendants live on`.
pub fn remark(process: &Process) -> String {
    match (&process.needs_input, process.descendants) {
        (Some(_), _) => ", waiting for input".into(),
        (_, 0) => String::new(),
        (_, 1) => ", 1 descendant lives on".into(),
        (_, n) => format!(", {n} descendants live on"),
    }
}

fn describe_status(process: &Process) -> String {
    match process.status {
        Status::Pending => {
            waits_for(process).map_or_else(|| "pending".into(), |why| format!("pending, waits for {why}"))
        }
        Status::Starting => "starting".into(),
        Status::Running if process.stopped => format!("stopped, running {}", duration(process.uptime_ms)),
        Status::Running => format!("running {}", duration(process.uptime_ms)),
        Status::Lost => "lost".into(),
        Status::Exited => match process.reason {
            Some(Reason::Exited) | None => format!("exited {}", code(process)),
            Some(Reason::Signaled) => format!("signaled {}", outcome(process)),
            Some(Reason::Killed) => format!("killed {}", outcome(process)),
            Some(Reason::Timeout) => "timeout".into(),
            Some(Reason::Oom) => "oom".into(),
            Some(Reason::FailedStart) => "failed_start".into(),
            Some(Reason::Lost) => "lost".into(),
            Some(Reason::Dependency) => "dependency".into(),
            Some(Reason::Denied) => "denied".into(),
        },
    }
}

/// Describes what a pending process waits for: `a slot of queue build`, `the end of proc_0123456789ab`.
pub fn waits_for(process: &Process) -> Option<String> {
    let pending = process.pending_on.as_ref()?;
    let ids =
        |ids: &Vec<ProcId>| format!("the end of {}", ids.iter().map(ProcId::to_string).collect::<Vec<_>>().join(", "));
    let all = [
        pending.approval.map(|id| format!("approval {id}")),
        pending.after.as_ref().map(ids),
        pending.restart.as_ref().map(|restart| format!("its restart at {}", escape_control(&restart.at))),
        pending.queue.as_ref().map(|queue| format!("a slot of queue {}", escape_control(queue))),
    ];
    let all: Vec<String> = all.into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// Returns the state in one term, as STATE shows it: the reason of an end, else the status. `toolctl help states` lists them.
pub fn state(process: &Process) -> String {
    let term = match (process.status, process.reason) {
        (Status::Running, _) if process.stopped => "stopped",
        (Status::Pending | Status::Starting | Status::Running | Status::Lost, _) | (Status::Exited, None) => {
            name(process.status)
        }
        (Status::Exited, Some(why)) => reason(why),
    };
    term.to_owned()
}

/// Returns the same for a column: `waiting for input` in place of `running`, and `exited, 3 live on` while descendants do.
pub fn column(process: &Process) -> String {
    match (&process.needs_input, process.descendants) {
        (Some(_), _) => "waiting for input".into(),
        (_, 0) => state(process),
        (_, 1) => format!("{}, 1 lives on", state(process)),
        (_, n) => format!("{}, {n} live on", state(process)),
    }
}

/// Returns the signal that ended the process, or its exit code, or `-` if there is neither.
pub fn exit(process: &Process) -> String {
    process.signal.clone().unwrap_or_else(|| code(process))
}

/// Describes an exit that the exit code alone does not explain; None if it does. `exec` holds the time limits with which the
/// process was started.
pub fn unusual_exit(process: &Process, exec: &params::ExecParams) -> Option<String> {
    let id = &process.id;
    let by = escape_control(process.killed_by.as_deref().unwrap_or("an unknown client"));
    match process.reason? {
        Reason::Exited | Reason::Signaled => None,
        Reason::Killed => Some(format!("{id} was killed by {by}")),
        Reason::Timeout => {
            let limit = match by.as_str() {
                "limits.idle_ms" => exec.limits.idle_ms,
                // The daemon has no other time limit.
                _ => exec.timeout_ms.and_then(|ms| u64::try_from(ms).ok()),
            };
            let after = limit.map(|ms| format!(" ({})", exact(ms))).unwrap_or_default();
            Some(format!("{id} was ended by {}{after}", error_text::option(&by)))
        }
        Reason::Oom => Some(format!("{id} ran out of memory")),
        Reason::FailedStart => {
            let why = process.failure.as_ref().map(|f| escape_control(&format!(": {}", failure(f))));
            Some(format!("{id} did not start{}", why.unwrap_or_default()))
        }
        Reason::Lost => Some(format!("{id} is lost: {}", lost_cause(process))),
        Reason::Dependency => Some(format!("{id} did not start: a process that it waited for did not end well")),
        Reason::Denied => Some(format!("{id} did not start: it was not approved")),
    }
}

/// Describes the reason of a failed start or of a lost end.
pub fn failure(failure: &Failure) -> String {
    let composed =
        || format!("{} {}: {}", failure.step, failure.path, std::io::Error::from_raw_os_error(failure.errno));
    failure.message.clone().unwrap_or_else(composed)
}

/// Returns the reason why the end of a lost process was not observed. Daemons of earlier versions did not report it.
pub fn lost_cause(process: &Process) -> String {
    let unknown = || "its end was not observed".into();
    process.failure.as_ref().map_or_else(unknown, |cause| escape_control(&failure(cause)))
}

/// Returns the protocol's name of a status: `running`, `exited`, ...
pub fn name(status: Status) -> &'static str {
    match status {
        Status::Pending => "pending",
        Status::Starting => "starting",
        Status::Running => "running",
        Status::Exited => "exited",
        Status::Lost => "lost",
    }
}

/// Returns the protocol's name of an exit reason.
pub fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Exited => "exited",
        Reason::Signaled => "signaled",
        Reason::Killed => "killed",
        Reason::Timeout => "timeout",
        Reason::Oom => "oom",
        Reason::FailedStart => "failed_start",
        Reason::Lost => "lost",
        Reason::Dependency => "dependency",
        Reason::Denied => "denied",
    }
}

pub fn tint(process: &Process) -> Tint {
    match (process.status, process.exit_code) {
        (Status::Pending | Status::Starting | Status::Running, _) => Tint::Busy,
        (Status::Exited, Some(0)) => Tint::Good,
        (Status::Exited | Status::Lost, _) => Tint::Bad,
    }
}

/// Returns the exit code, or `-` if there is none.
pub fn code(process: &Process) -> String {
    process.exit_code.map_or_else(|| "-".into(), |code| code.to_string())
}

fn outcome(process: &Process) -> String {
    process.signal.as_deref().map_or_else(|| code(process), escape_control)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::process;
    use serde_json::{Value, json};
    use toold_proto::enum_values::EnumValues;

    fn shown(changes: Value) -> String {
        describe(&serde_json::from_value(process(changes)).expect("a whole process"))
    }

    /// A status had one list of names in `list`, and another in `poll` and JSON.
    #[test]
    fn every_status_and_reason_is_in_the_topic_and_on_the_page() {
        let topic = include_str!("../help/topics/states.txt");
        let page = include_str!("../../../docs/cli.md");
        let names = Status::enum_values().into_iter().chain(Reason::enum_values()).map(|value| value.name);
        for name in names {
            assert!(topic.contains(&format!("\n  {name} ")), "add {name} to help/topics/states.txt");
            assert!(page.contains(&format!("`{name}`")), "add {name} to the states in docs/cli.md");
        }
    }

    #[test]
    fn an_exit_that_the_code_does_not_explain_is_described() {
        let limits = params::Limits { idle_ms: Some(60_000), ..Default::default() };
        let exec = params::ExecParams { timeout_ms: Some(300), limits, ..Default::default() };
        let described = |changes: Value| {
            let process = serde_json::from_value(process(changes)).expect("a whole process");
            unusual_exit(&process, &exec).map(|text| text.replace("proc_0123456789ab ", ""))
        };
        let by = |reason: &str, by: &str| described(json!({"status": "exited", "reason": reason, "killed_by": by}));
        assert_eq!(by("timeout", "timeout_ms").as_deref(), Some("was ended by --timeout (300ms)"));
        assert_eq!(by("timeout", "limits.idle_ms").as_deref(), Some("was ended by --idle (1m)"));
        assert_eq!(by("killed", "client uid 0 pid 123").as_deref(), Some("was killed by client uid 0 pid 123"));
        let oom = described(json!({"status": "exited", "reason": "oom", "exit_code": 137}));
        assert_eq!(oom.as_deref(), Some("ran out of memory"));
        let lost = described(json!({"status": "lost", "reason": "lost"}));
        assert_eq!(lost.as_deref(), Some("is lost: its end was not observed"));
        let failure = json!({"step": "exec", "errno": 2, "error": "ENOENT", "path": "/no"});
        let failed = described(json!({"status": "exited", "reason": "failed_start", "failure": failure}));
        assert_eq!(failed.as_deref(), Some("did not start: exec /no: No such file or directory (os error 2)"));
        for usual in [json!({}), json!({"reason": "exited"}), json!({"reason": "signaled"})] {
            assert_eq!(described(usual), None);
        }
    }

    #[test]
    fn each_exit_has_a_description() {
        assert_eq!(shown(json!({})), "running 5m");
        assert_eq!(shown(json!({"stopped": true})), "stopped, running 5m");
        assert_eq!(shown(json!({"status": "starting"})), "starting");
        assert_eq!(
            shown(json!({"needs_input": {"since": "x", "prompt": "Go?", "echo": true}})),
            "running 5m, waiting for input"
        );
        let left = |n: u64| json!({"status": "exited", "reason": "exited", "exit_code": 0, "descendants": n});
        assert_eq!(
            (shown(left(1)), shown(left(3))),
            ("exited 0, 1 descendant lives on".into(), "exited 0, 3 descendants live on".into())
        );
        let column = |changes: Value| column(&serde_json::from_value(process(changes)).expect("a whole process"));
        assert_eq!(
            [
                column(json!({"needs_input": {"since": "x", "prompt": "Go?", "echo": true}})),
                column(left(3)),
                column(left(0))
            ],
            ["waiting for input", "exited, 3 live on", "exited"]
        );
        let ended = |reason: &str, code: Value, signal: Value| {
            shown(json!({"status": "exited", "reason": reason, "exit_code": code, "signal": signal}))
        };
        assert_eq!(ended("exited", json!(7), json!(null)), "exited 7");
        assert_eq!(ended("killed", json!(143), json!("SIGTERM")), "killed SIGTERM");
        assert_eq!(ended("killed", json!(0), json!(null)), "killed 0");
        assert_eq!(ended("signaled", json!(139), json!("SIGSEGV")), "signaled SIGSEGV");
        assert_eq!(ended("timeout", json!(143), json!("SIGTERM")), "timeout");
        assert_eq!(ended("failed_start", json!(null), json!(null)), "failed_start");
        assert_eq!(shown(json!({"status": "lost", "reason": "lost"})), "lost");
    }
}
