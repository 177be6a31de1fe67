//! The key of a call: the same for the call and its repetition, so that a repeated one has its effect once. It survives this
//! server, because it follows from the call alone.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use toold_client::agent_events::fnv1a;

/// The time for which a call with the same key is a repetition. Later it is a new call: a client counts from 1 again.
pub const RETRY_TIME: Duration = Duration::from_secs(600);
/// The parts of that time that a write is marked with.
const WRITE_SPAN: Duration = Duration::from_secs(300);

/// Returns the key: session, id of the request, arguments, and the directory in which they are meant.
pub fn retry_key(session: &str, id: &Value, tool: &str, arguments: &Map<String, Value>, cwd: &str) -> String {
    let arguments = plain(&Value::Object(arguments.clone())).to_string();
    let parts = [session, &id.to_string(), tool, &arguments, cwd].map(|part| format!("{}:{part}", part.len())).concat();
    let mirrored: Vec<u8> = parts.bytes().rev().collect();
    // Two hashes of 64 bits: calls of a whole session do not collide.
    format!("mcp-{:016x}{:016x}", fnv1a(parts.as_bytes()), fnv1a(&mirrored))
}

/// Returns the same value in one spelling: a client may write its keys in another order, and 3 as 3.0.
fn plain(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let sorted: BTreeMap<&String, Value> = fields.iter().map(|(key, value)| (key, plain(value))).collect();
            sorted.into_iter().map(|(key, value)| (key.clone(), value)).collect()
        }
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Number(number) if !number.is_u64() => match number.as_f64() {
            Some(whole) if whole.fract() == 0.0 && (0.0..1e15).contains(&whole) => (whole as u64).into(),
            Some(_) | None => value.clone(),
        },
        Value::Null | Value::Bool(_) | Value::String(_) | Value::Number(_) => value.clone(),
    }
}

/// Returns the keys of a write now and in the spans before, newest first. The daemon remembers a key without its time.
pub fn write_ids(key: &str, now: SystemTime) -> [String; 3] {
    let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    let span = seconds / WRITE_SPAN.as_secs();
    [0, 1, 2].map(|back| format!("{key}-{}", span.saturating_sub(back)))
}

/// Returns the key of a call of a tool, which the daemon remembers without its time.
pub fn timed_key(key: &str, now: SystemTime) -> String {
    let seconds = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    format!("{key}-{}", seconds / RETRY_TIME.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_key_follows_from_session_id_tool_and_arguments() {
        let key = |session: &str, id: Value, command: &str| {
            let arguments = json!({ "command": command }).as_object().cloned().expect("an object");
            retry_key(session, &id, "proc_start", &arguments, "/")
        };
        let one = key("s", json!(1), "make");
        assert_eq!(one, key("s", json!(1), "make"));
        let others = [
            key("t", json!(1), "make"),
            key("s", json!("1"), "make"),
            key("s", json!(2), "make"),
            key("s", json!(1), "ls"),
        ];
        assert!(others.iter().all(|other| *other != one), "{others:?}");
    }

    #[test]
    fn another_spelling_of_the_arguments_is_the_same_call() {
        let key = |text: &str| {
            let arguments: Map<String, Value> = serde_json::from_str(text).expect("an object");
            retry_key("s", &json!(1), "proc_start", &arguments, "/")
        };
        let one = key(r#"{"command":"x","wait_s":3,"env":{"A":"1","B":"2"}}"#);
        assert_eq!(one, key(r#"{"env":{"B":"2","A":"1"},"wait_s":3.0,"command":"x"}"#));
        assert_ne!(one, key(r#"{"env":{"B":"2","A":"1"},"wait_s":3.5,"command":"x"}"#));
    }

    #[test]
    fn a_write_is_a_repetition_for_ten_minutes_and_not_for_ever() {
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        let first = &write_ids("k", at(3_000_000))[0];
        assert!(write_ids("k", at(3_000_599)).contains(first));
        assert!(!write_ids("k", at(3_000_900)).contains(first));
    }
}
