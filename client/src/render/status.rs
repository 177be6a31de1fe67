//! What became of a process, in a word or two.

use super::Tint;
use super::text::harmless;
use super::time::duration;
use toold_proto::params::Status;
use toold_proto::process::{Process, Reason};

/// `running 5m`, `exited 0`, `killed SIGTERM`, `timeout`, `failed_start`, `lost`.
pub fn phrase(process: &Process) -> String {
    match process.status {
        Status::Starting => "starting".into(),
        Status::Running => format!("running {}", duration(process.uptime_ms)),
        Status::Lost => "lost".into(),
        Status::Exited => match process.reason {
            Some(Reason::Exited) | None => format!("exited {}", code(process)),
            Some(Reason::Signaled) => format!("signaled {}", how(process)),
            Some(Reason::Killed) => format!("killed {}", how(process)),
            Some(Reason::Timeout) => "timeout".into(),
            Some(Reason::Oom) => "oom".into(),
            Some(Reason::FailedStart) => "failed_start".into(),
            Some(Reason::Lost) => "lost".into(),
        },
    }
}

/// The one word of the protocol: `running`, `exited`, ...
pub fn word(status: Status) -> &'static str {
    match status {
        Status::Starting => "starting",
        Status::Running => "running",
        Status::Exited => "exited",
        Status::Lost => "lost",
    }
}

/// Why it ended, in the protocol's word.
pub fn reason(reason: Reason) -> &'static str {
    match reason {
        Reason::Exited => "exited",
        Reason::Signaled => "signaled",
        Reason::Killed => "killed",
        Reason::Timeout => "timeout",
        Reason::Oom => "oom",
        Reason::FailedStart => "failed_start",
        Reason::Lost => "lost",
    }
}

pub fn tint(process: &Process) -> Tint {
    match (process.status, process.exit_code) {
        (Status::Starting | Status::Running, _) => Tint::Busy,
        (Status::Exited, Some(0)) => Tint::Good,
        (Status::Exited | Status::Lost, _) => Tint::Bad,
    }
}

/// The exit code, or `-` while there is none.
pub fn code(process: &Process) -> String {
    process.exit_code.map_or_else(|| "-".into(), |code| code.to_string())
}

fn how(process: &Process) -> String {
    process.signal.as_deref().map_or_else(|| code(process), harmless)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::process;
    use serde_json::{Value, json};

    fn shown(changes: Value) -> String {
        phrase(&serde_json::from_value(process(changes)).expect("a whole process"))
    }

    #[test]
    fn each_end_has_its_words() {
        assert_eq!(shown(json!({})), "running 5m");
        assert_eq!(shown(json!({"status": "starting"})), "starting");
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
