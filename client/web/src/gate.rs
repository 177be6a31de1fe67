//! The calls that pass without `--write`: an allow-list of methods that only read, decided on the parsed message. What passes is
//! written again from what was parsed, so that the daemon cannot read another message than the one that was judged. Pure.

use serde_json::{Value, json};

/// Methods that change nothing.
const READING: [&str; 19] = [
    "list",
    "poll",
    "log",
    "wait",
    "inspect",
    "screen",
    "stage.diff",
    "session.active",
    "session.get",
    "queues.list",
    "approvals.list",
    "approvals.get",
    "grants.list",
    "tools.list",
    "events.subscribe",
    "events.unsubscribe",
    "daemon.info",
    "rpc.discover",
    "$/cancelRequest",
];
/// Parameters of these methods that do change something: they acknowledge events, or take the hold of a process.
const WRITING_PARAMS: [&str; 2] = ["consumer", "hold"];
/// The most calls in one message.
const MAX_BATCH: usize = 1000;
const DENIED: i32 = -32005;
const INVALID_REQUEST: i32 = -32600;
const INVALID_PARAMS: i32 = -32602;
const PARSE_ERROR: i32 = -32700;

/// The fate of a message.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Send this to the daemon.
    Pass(String),
    /// Answer with this instead.
    Refuse(String),
    /// Refused, and no answer is expected.
    Drop,
}

/// The reason why a call does not pass.
#[derive(Debug, Clone)]
struct Refusal {
    code: i32,
    why: String,
}

/// Judges a message of a browser.
pub fn judge(text: &str, write: bool) -> Verdict {
    let message: Value = match serde_json::from_str(text) {
        Ok(message) => message,
        Err(why) => return Verdict::Refuse(error(&Value::Null, PARSE_ERROR, &format!("not JSON: {why}")).to_string()),
    };
    let calls: Vec<&Value> = match &message {
        Value::Array(calls) => calls.iter().collect(),
        one => vec![one],
    };
    if calls.len() > MAX_BATCH || calls.is_empty() {
        return Verdict::Refuse(error(&Value::Null, INVALID_REQUEST, "the batch is empty or too long").to_string());
    }
    let refusals: Vec<Option<Refusal>> = calls.iter().map(|call| refusal(call, write)).collect();
    if refusals.iter().all(Option::is_none) {
        return Verdict::Pass(message.to_string());
    }
    let other = Refusal { code: DENIED, why: "another call of this batch is refused".into() };
    let answers = calls.iter().zip(refusals).filter_map(|(call, refusal)| {
        let Refusal { code, why } = refusal.unwrap_or(other.clone());
        // A notification has no answer. What is not even a request has one.
        let is_notification = call.get("id").is_none() && code != INVALID_REQUEST;
        (!is_notification).then(|| error(&call["id"], code, &why))
    });
    let answers: Vec<Value> = answers.collect();
    match (&message, &answers[..]) {
        (_, []) => Verdict::Drop,
        (Value::Array(_), _) => Verdict::Refuse(json!(answers).to_string()),
        (_, [answer, ..]) => Verdict::Refuse(answer.to_string()),
    }
}

/// Returns the reason why a call does not pass.
fn refusal(call: &Value, write: bool) -> Option<Refusal> {
    let denied = |what: String| Refusal {
        code: DENIED,
        why: format!("{what} is refused: `toolctl web` was started without --write"),
    };
    let Some(method) = call.as_object().and_then(|call| call.get("method")).and_then(Value::as_str) else {
        return Some(Refusal { code: INVALID_REQUEST, why: "a request is an object with a method".into() });
    };
    if write {
        return None;
    }
    if !READING.contains(&method) {
        return Some(denied(method.to_owned()));
    }
    let params = match &call["params"] {
        Value::Object(params) => params,
        Value::Null => return None,
        // The names cannot be seen.
        _ => return Some(Refusal { code: INVALID_PARAMS, why: "give the parameters by name".into() }),
    };
    let is_set =
        |name: &&&str| params.get(**name).is_some_and(|value| !matches!(value, Value::Null | Value::Bool(false)));
    WRITING_PARAMS.iter().find(is_set).map(|name| denied(format!("{method} with {name}")))
}

fn error(id: &Value, code: i32, message: &str) -> Value {
    let kind = match code {
        DENIED => "denied",
        INVALID_PARAMS => "invalid_params",
        PARSE_ERROR => "parse_error",
        _ => "invalid_request",
    };
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message, "data": {"kind": kind}}})
}

#[cfg(test)]
mod tests {
    use super::*;
    use toold_proto::api::METHODS;

    fn passes(text: &str) -> bool {
        matches!(judge(text, false), Verdict::Pass(_))
    }

    #[test]
    fn only_the_listed_methods_pass_and_all_of_them_exist() {
        for method in METHODS {
            let call = json!({"jsonrpc": "2.0", "id": 1, "method": method.name, "params": {}}).to_string();
            assert_eq!(passes(&call), READING.contains(&method.name), "{}", method.name);
            assert!(matches!(judge(&call, true), Verdict::Pass(_)));
        }
        let unknown = READING.iter().filter(|name| !name.starts_with('$') && METHODS.iter().all(|m| m.name != **name));
        assert_eq!(unknown.collect::<Vec<_>>(), Vec::<&&str>::new());
    }

    #[test]
    fn disguises_of_a_method_do_not_pass() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"method":"exec","params":{"command":"id"}}"#,
            r#"{"id":1,"method":"list","method":"exec"}"#,
            r#"{"id":1,"\u006dethod":"kill"}"#,
            r#"{"id":1,"method":"EXEC"}"#,
            r#"{"id":1,"method":" list"}"#,
            r#"{"id":1,"method":["list"]}"#,
            r#"[{"id":1,"method":"list"},{"id":2,"method":"exec"}]"#,
            r#"[[{"id":1,"method":"list"}]]"#,
            r#"{"id":1,"method":"wait","params":{"ids":["x"],"consumer":"a"}}"#,
            r#"{"id":1,"method":"poll","params":["x"]}"#,
            r#"{"id":1,"method":"poll","params":{"id":"x","hold":true}}"#,
            r#"{"id":1,"result":{}}"#,
            "[]",
            "\"list\"",
            "{\"method\":\"list\"}\n{\"method\":\"exec\"}",
        ] {
            assert!(!passes(text), "{text}");
        }
    }

    #[test]
    fn what_passes_is_one_line_and_the_message_that_was_judged() {
        let text = "{\"id\":1,\n\"method\":\"exec\",\"method\":\"list\"}";
        assert_eq!(judge(text, false), Verdict::Pass(r#"{"id":1,"method":"list"}"#.into()));
    }

    #[test]
    fn a_notification_is_never_answered_and_what_is_no_request_always() {
        for text in [r#"{"method":"kill","params":{"id":"x"}}"#, r#"[{"method":"kill"}]"#] {
            assert_eq!(judge(text, false), Verdict::Drop, "{text}");
        }
        for (text, code) in [
            (r#"{"id":1,"method":["list"]}"#, INVALID_REQUEST),
            (r#"{"result":{}}"#, INVALID_REQUEST),
            (r#"{"id":1,"method":"daemon.info","params":[]}"#, INVALID_PARAMS),
        ] {
            let Verdict::Refuse(answer) = judge(text, false) else { panic!("{text} passed") };
            let answer: Value = serde_json::from_str(&answer).expect("JSON");
            assert_eq!(answer["error"]["code"], code, "{text}");
        }
    }

    #[test]
    fn a_refusal_answers_each_call_by_its_id() {
        let Verdict::Refuse(answer) = judge(r#"[{"id":1,"method":"list"},{"id":"b","method":"exec"}]"#, false) else {
            panic!("it passed")
        };
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!((&answer[0]["id"], &answer[1]["id"]), (&json!(1), &json!("b")));
        assert_eq!(
            (&answer[1]["error"]["code"], &answer[1]["error"]["data"]["kind"]),
            (&json!(-32005), &json!("denied"))
        );
    }
}
