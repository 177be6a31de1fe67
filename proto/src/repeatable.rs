//! The methods that a client may repeat after a lost connection.

/// Methods that change nothing, or that change nothing more when they are called again.
pub const REPEATABLE: &[&str] = &[
    "poll",
    "log",
    "wait",
    "screen",
    "resize",
    "list",
    "inspect",
    "stage.diff",
    "session.active",
    "session.configure",
    "session.get",
    "policy.check",
    "policy.reload",
    "policy.suggest",
    "queues.list",
    "queues.set",
    "approvals.list",
    "approvals.get",
    "grants.list",
    "events.subscribe",
    "events.next",
    "events.ack",
    "fs.read",
    "fs.list",
    "fs.search",
    "tools.list",
    "tools.refresh",
    "script.result",
    "script.calls",
    "sandbox.probe",
    "daemon.info",
    "rpc.discover",
];

/// Parameters that make a call repeatable: the daemon recognizes the second one.
const KEYS: [&str; 2] = ["request_id", "write_id"];

/// The condition under which a call may be repeated when it is not known whether the first one arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Repeat {
    Always,
    /// If it has this parameter.
    With(&'static str),
    Never,
}

/// Returns the condition for a method, which has these parameters.
pub fn repeat<'a>(method: &str, mut params: impl Iterator<Item = &'a str>) -> Repeat {
    if REPEATABLE.contains(&method) {
        return Repeat::Always;
    }
    let key = params.find_map(|param| KEYS.into_iter().find(|key| *key == param));
    key.map_or(Repeat::Never, Repeat::With)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::METHODS;

    #[test]
    fn every_repeatable_method_exists_and_is_listed_once() {
        for (i, name) in REPEATABLE.iter().enumerate() {
            assert!(METHODS.iter().any(|m| m.name == *name), "{name}");
            assert!(!REPEATABLE[..i].contains(name), "{name} twice");
        }
    }

    #[test]
    fn a_call_is_repeatable_by_its_method_or_by_its_key() {
        let found = |method, params: &[&'static str]| repeat(method, params.iter().copied());
        assert_eq!(found("poll", &["id"]), Repeat::Always);
        assert_eq!(found("exec", &["command", "request_id"]), Repeat::With("request_id"));
        assert_eq!(found("write", &["id", "write_id"]), Repeat::With("write_id"));
        assert_eq!(found("signal", &["id", "signal"]), Repeat::Never);
    }
}
