//! Results of the toolset of Hermes: JSON objects with the fields that its models were trained on.

use crate::toolset::text::tail;
use serde_json::{Map, Value, json};
use std::time::Duration;
use toold_proto::params::Status;
use toold_proto::process::Process;
use toold_proto::results::KillStatus;

/// Characters of the output in `list`.
const LIST_PREVIEW_CHARS: usize = 200;
/// Characters of the command in `list`.
const LIST_COMMAND_CHARS: usize = 200;
/// Characters of the output in `poll`, and in `wait` while the process runs.
const POLL_PREVIEW_CHARS: usize = 1000;
/// Characters of the output in `wait` after the end.
const WAIT_OUTPUT_CHARS: usize = 2000;

/// Renders an error of any tool.
pub fn error(message: &str) -> Value {
    json!({ "error": message })
}

/// Returns `running` or `exited`, as the models know them.
fn status(process: &Process) -> &'static str {
    match process.status {
        Status::Exited | Status::Lost => "exited",
        Status::Pending | Status::Starting | Status::Running => "running",
    }
}

/// Adds the exit code of a process that has ended, and its signal.
fn add_end(result: &mut Map<String, Value>, process: &Process) {
    if status(process) == "exited" {
        result.insert("exit_code".into(), json!(process.exit_code));
        if let Some(signal) = &process.signal {
            result.insert("signal".into(), json!(signal));
        }
    }
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(members) => members,
        other => Map::from_iter([("result".into(), other)]),
    }
}

/// Renders `list`: processes, each with the end of its output.
pub fn list(processes: &[(Process, String)]) -> Value {
    let one = |(process, output): &(Process, String)| {
        let mut entry = object(json!({
            "session_id": process.id,
            "command": process.command.chars().take(LIST_COMMAND_CHARS).collect::<String>(),
            "cwd": process.cwd,
            "pid": process.pid,
            "started_at": process.started_at,
            "uptime_seconds": process.uptime_ms / 1000,
            "status": status(process),
            "output_preview": tail(output, LIST_PREVIEW_CHARS),
        }));
        add_end(&mut entry, process);
        Value::Object(entry)
    };
    json!({ "processes": processes.iter().map(one).collect::<Vec<_>>() })
}

/// Renders `poll`, with the end of the output.
pub fn poll(process: &Process, output: &str) -> Value {
    let mut result = object(json!({
        "session_id": process.id,
        "command": process.command,
        "status": status(process),
        "pid": process.pid,
        "uptime_seconds": process.uptime_ms / 1000,
        "output_preview": tail(output, POLL_PREVIEW_CHARS),
    }));
    add_end(&mut result, process);
    Value::Object(result)
}

/// Renders `log`: lines, and the number of all lines.
pub fn log(process: &Process, lines: &str, total_lines: u64) -> Value {
    json!({
        "session_id": process.id,
        "status": status(process),
        "output": lines,
        "total_lines": total_lines,
        "showing": format!("{} lines", lines.lines().count()),
    })
}

/// The reason why `wait` answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitEnd {
    Exited,
    /// The time was over.
    Timeout {
        waited: Duration,
    },
    /// The call was cancelled.
    Interrupted,
}

/// Renders `wait`, with the end of the output. `clamped` has the seconds that were requested and those that were granted.
pub fn wait(process: &Process, output: &str, end: WaitEnd, clamped: Option<(u64, u64)>) -> Value {
    let (status, chars, note) = match end {
        WaitEnd::Exited => ("exited", WAIT_OUTPUT_CHARS, None),
        WaitEnd::Timeout { waited } => {
            ("timeout", POLL_PREVIEW_CHARS, Some(format!("Waited {}s, process still running", waited.as_secs())))
        }
        WaitEnd::Interrupted => {
            ("interrupted", POLL_PREVIEW_CHARS, Some("wait interrupted; the process keeps running".into()))
        }
    };
    let mut result = object(json!({ "status": status, "session_id": process.id, "output": tail(output, chars) }));
    add_end(&mut result, process);
    let clamped = clamped.map(|(requested, limit)| {
        format!("Requested wait of {requested}s was clamped to configured limit of {limit}s")
    });
    let notes: Vec<String> = clamped.into_iter().chain(note).collect();
    if !notes.is_empty() {
        result.insert("timeout_note".into(), notes.join(". ").into());
    }
    Value::Object(result)
}

/// Renders `kill`. `survivors` are pids that are still alive.
pub fn kill(process: &Process, status: KillStatus, survivors: &[i32]) -> Value {
    let status = match status {
        KillStatus::AlreadyExited => "already_exited",
        // One that has not started will not start.
        KillStatus::Killed | KillStatus::Starting => "killed",
        KillStatus::Survivors => "error",
    };
    let mut result = object(json!({ "status": status, "session_id": process.id }));
    add_end(&mut result, process);
    if status == "error" {
        result.insert("error".into(), json!(format!("processes are still alive: {survivors:?}")));
    }
    Value::Object(result)
}

/// Renders `write` and `submit`.
pub fn write(bytes: u64) -> Value {
    json!({ "status": "ok", "bytes_written": bytes })
}

/// Renders `close`.
pub fn close(pty: bool) -> Value {
    json!({ "status": "ok", "message": if pty { "EOF sent" } else { "stdin closed" } })
}

/// Renders the result of the native `terminal` with the names of Hermes: `session_id` for a process in the background, `error`.
pub fn terminal(result: &Value) -> Value {
    let mut result = object(result.clone());
    if result.contains_key("exit_code") {
        let timed_out = result.get("timed_out") == Some(&Value::Bool(true));
        let error = timed_out.then_some("Command timed out");
        result.insert("error".into(), json!(error));
    } else if let Some(process) = result.get("process").cloned() {
        result.insert("output".into(), "Background process started".into());
        result.insert("session_id".into(), process);
        result.insert("exit_code".into(), json!(0));
        result.insert("error".into(), Value::Null);
    }
    Value::Object(result)
}

/// The end of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScriptEnd<'a> {
    Ok,
    /// Its code was not 0.
    Failed {
        exit_code: Option<i32>,
    },
    Timeout {
        after: Duration,
    },
    Interrupted,
    /// A signal ended it that was not sent for the caller.
    Killed {
        signal: &'a str,
    },
    /// Its end was not observed.
    Lost,
    /// It goes on, as this process.
    Running {
        process: &'a str,
    },
}

/// The outcome of `execute_code`.
#[derive(Debug, Clone)]
pub struct ScriptOutcome<'a> {
    pub end: ScriptEnd<'a>,
    /// Bounded and redacted already.
    pub output: &'a str,
    /// Bounded and redacted already.
    pub stderr: &'a str,
    pub tool_calls: u64,
    pub duration: Duration,
    /// The error that the script reported, in one line.
    pub error: Option<&'a str>,
}

/// Renders the result of `execute_code`: `{status, output, tool_calls_made, duration_seconds, error?}`.
pub fn execute_code(outcome: &ScriptOutcome<'_>) -> Value {
    let (status, reason) = match outcome.end {
        ScriptEnd::Ok => ("success", None),
        ScriptEnd::Failed { exit_code } => {
            let code = exit_code.map_or("an unknown code".into(), |code| format!("code {code}"));
            ("error", Some(format!("Script exited with {code}")))
        }
        ScriptEnd::Timeout { after } => {
            ("timeout", Some(format!("Script timed out after {}s and was killed.", after.as_secs())))
        }
        ScriptEnd::Interrupted => ("interrupted", None),
        ScriptEnd::Killed { signal } => ("error", Some(format!("Script was killed by {signal}"))),
        ScriptEnd::Lost => ("error", Some("The end of the script was not observed".into())),
        ScriptEnd::Running { .. } => ("running", None),
    };
    let mut output = outcome.output.to_string();
    if matches!(outcome.end, ScriptEnd::Failed { .. } | ScriptEnd::Killed { .. }) && !outcome.stderr.is_empty() {
        let gap = if output.is_empty() || output.ends_with('\n') { "" } else { "\n" };
        output.push_str(&format!("{gap}--- stderr ---\n{}", outcome.stderr));
    }
    match outcome.end {
        ScriptEnd::Interrupted => output.push_str("\n[execution interrupted]"),
        ScriptEnd::Running { process } => {
            output.push_str(&format!("\n[still running as {process}; its end is an event, and its output is kept]"));
        }
        _ => {}
    }
    let mut result = object(json!({
        "status": status,
        "output": output,
        "tool_calls_made": outcome.tool_calls,
        "duration_seconds": (outcome.duration.as_secs_f64() * 100.0).round() / 100.0,
    }));
    let reported = outcome.error.filter(|_| status != "success").map(String::from);
    if let Some(error) = reported.or(reason) {
        result.insert("error".into(), error.into());
    }
    Value::Object(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(state: &str) -> Process {
        let text = r#"{"id":"proc_0123456789ab","name":null,"command":"make serve","argv":[],"cwd":"/p","backend":"local","pid":7,
            STATE,"closed":false,"core_dumped":false,"killed_by":null,"failure":null,
            "started_at":"2026-11-16T03:28:50.123Z","exited_at":null,"uptime_ms":65400,"pty":false,"pty_size":null,"stdin":"null",
            "task_id":null,"session_key":null,"labels":{},"notify":false,"watch":null,"bytes":0,"lines":0,"cursor":0,
            "dropped_bytes":0,"unstored_bytes":0,"limits":{},"sandbox":{"kind":"none","enforced":[]},"detached":null,"request_id":null}"#;
        serde_json::from_str(&text.replace("STATE", state)).expect("a process")
    }

    fn running() -> Process {
        process(r#""status":"running","exit_code":null,"signal":null,"reason":null"#)
    }

    fn killed() -> Process {
        process(r#""status":"exited","exit_code":143,"signal":"SIGTERM","reason":"killed""#)
    }

    #[test]
    fn poll_and_list_have_their_fields() {
        assert_eq!(
            poll(&running(), &"x".repeat(2000)),
            json!({"session_id": "proc_0123456789ab", "command": "make serve", "status": "running", "pid": 7, "uptime_seconds": 65,
                "output_preview": "x".repeat(1000)})
        );
        assert_eq!(
            list(&[(killed(), "bye\n".into())]),
            json!({"processes": [{"session_id": "proc_0123456789ab", "command": "make serve", "cwd": "/p", "pid": 7,
                "started_at": "2026-11-16T03:28:50.123Z", "uptime_seconds": 65, "status": "exited", "output_preview": "bye\n",
                "exit_code": 143, "signal": "SIGTERM"}]})
        );
    }

    #[test]
    fn log_and_wait_have_their_fields() {
        assert_eq!(
            log(&running(), "a\nb\n", 9),
            json!({"session_id": "proc_0123456789ab", "status": "running", "output": "a\nb\n", "total_lines": 9, "showing": "2 lines"})
        );
        let timeout = WaitEnd::Timeout { waited: Duration::from_secs(180) };
        assert_eq!(
            wait(&running(), "out", timeout, Some((600, 180))),
            json!({"status": "timeout", "session_id": "proc_0123456789ab", "output": "out",
                "timeout_note": "Requested wait of 600s was clamped to configured limit of 180s. Waited 180s, process still running"})
        );
        assert_eq!(
            wait(&killed(), "out", WaitEnd::Exited, None),
            json!({"status": "exited", "session_id": "proc_0123456789ab", "output": "out", "exit_code": 143, "signal": "SIGTERM"})
        );
    }

    #[test]
    fn a_kill_is_reported_only_with_proof() {
        assert_eq!(kill(&killed(), KillStatus::Killed, &[])["status"], "killed");
        let exited = process(r#""status":"exited","exit_code":0,"signal":null,"reason":"exited""#);
        assert_eq!(
            kill(&exited, KillStatus::AlreadyExited, &[]),
            json!({"status": "already_exited", "session_id": "proc_0123456789ab", "exit_code": 0})
        );
        let failed = kill(&killed(), KillStatus::Survivors, &[8]);
        assert_eq!((&failed["status"], &failed["error"]), (&json!("error"), &json!("processes are still alive: [8]")));
    }

    #[test]
    fn terminal_has_a_session_id_only_in_the_background() {
        let done = json!({"output": "", "exit_code": 1, "timed_out": false, "process": "proc_1"});
        assert_eq!(terminal(&done)["error"], Value::Null);
        assert_eq!(terminal(&done).get("session_id"), None);
        assert_eq!(terminal(&json!({"process": "proc_1"}))["session_id"], "proc_1");
    }

    #[test]
    fn execute_code_has_the_shape_of_the_seed() {
        let outcome = |end| ScriptOutcome {
            end,
            output: "out",
            stderr: "Traceback\nValueError: x",
            tool_calls: 3,
            duration: Duration::from_millis(1234),
            error: None,
        };
        assert_eq!(
            execute_code(&outcome(ScriptEnd::Ok)),
            json!({"status": "success", "output": "out", "tool_calls_made": 3, "duration_seconds": 1.23})
        );
        let failed =
            ScriptOutcome { error: Some("ValueError: x"), ..outcome(ScriptEnd::Failed { exit_code: Some(1) }) };
        assert_eq!(
            execute_code(&failed),
            json!({"status": "error", "output": "out\n--- stderr ---\nTraceback\nValueError: x", "tool_calls_made": 3,
                "duration_seconds": 1.23, "error": "ValueError: x"})
        );
        let late = execute_code(&outcome(ScriptEnd::Timeout { after: Duration::from_secs(300) }));
        assert_eq!(
            (&late["status"], &late["error"]),
            (&json!("timeout"), &json!("Script timed out after 300s and was killed."))
        );
        let interrupted = execute_code(&outcome(ScriptEnd::Interrupted));
        assert_eq!(
            (&interrupted["status"], &interrupted["output"]),
            (&json!("interrupted"), &json!("out\n[execution interrupted]"))
        );
    }
}
