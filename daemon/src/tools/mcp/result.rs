//! The answer of a server as the result of a call, or its error. Pure.

use super::message::{INVALID_PARAMS, METHOD_NOT_FOUND, RemoteError};
use serde_json::{Map, Value};
use toold_proto::{ErrorKind, RpcError};

/// Codes of the bridge to a server by HTTP: it knows more than a server does.
const BRIDGE_UNAVAILABLE: i64 = -32008;
const BRIDGE_OUTCOME_UNKNOWN: i64 = -32010;

/// The outcome of a call that was answered.
#[derive(Debug, PartialEq)]
pub enum Answered {
    Result(Value),
    Error(RpcError),
    /// The bridge lost the server: the call may have happened.
    Unknown(String),
}

/// Returns the result of a call: `{text, content, structured?}`.
pub fn from_result(mut result: Value) -> Answered {
    match result.get("resultType").and_then(Value::as_str) {
        None | Some("complete") => {}
        Some("input_required") => {
            let message = "the tool asks for input of a person or a model, which toold does not give";
            return Answered::Error(RpcError::new(ErrorKind::ToolFailed, message).with("reason", "input_required"));
        }
        Some(other) => {
            let message = format!("the server answered with a result of the unknown type {other:?}");
            return Answered::Error(RpcError::new(ErrorKind::ToolFailed, message).with("reason", "result_type"));
        }
    }
    let content = match result.get_mut("content").map(Value::take) {
        Some(Value::Array(content)) => content,
        Some(_) | None => Vec::new(),
    };
    let text = text_of(&content);
    let structured = result.get_mut("structuredContent").map(Value::take).filter(|structured| !structured.is_null());
    if result.get("isError").and_then(Value::as_bool) == Some(true) {
        let result = to_value(text.clone(), content, structured);
        let message = if text.is_empty() { "the tool failed without a message".into() } else { text };
        return Answered::Error(RpcError::new(ErrorKind::ToolFailed, message).with("result", result));
    }
    Answered::Result(to_value(text, content, structured))
}

/// Returns the error of a call that the server refused. `is_bridge`: toold's own program answers for it.
pub fn from_error(error: RemoteError, is_bridge: bool) -> Answered {
    let RemoteError { code, message, data } = error;
    let kind = match code {
        BRIDGE_OUTCOME_UNKNOWN if is_bridge => return Answered::Unknown(message),
        BRIDGE_UNAVAILABLE if is_bridge => ErrorKind::Unavailable,
        INVALID_PARAMS => ErrorKind::InvalidParams,
        METHOD_NOT_FOUND => ErrorKind::Unavailable,
        // Servers have codes of their own; the message is for the caller.
        _ => ErrorKind::ToolFailed,
    };
    let message = if message.is_empty() { format!("the server refused the call with code {code}") } else { message };
    let error = RpcError::new(kind, message).with("reason", "server_error").with("code", code);
    Answered::Error(if data.is_some() { error.with("data", data) } else { error })
}

fn to_value(text: String, content: Vec<Value>, structured: Option<Value>) -> Value {
    let mut members = Map::from_iter([("text".to_string(), text.into()), ("content".to_string(), content.into())]);
    members.extend(structured.map(|structured| ("structured".to_string(), structured)));
    Value::Object(members)
}

fn text_of(content: &[Value]) -> String {
    let is_text = |item: &&Value| item.get("type").and_then(Value::as_str) == Some("text");
    let texts = content.iter().filter(is_text).filter_map(|item| item.get("text").and_then(Value::as_str));
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_result_has_its_text_its_content_and_its_structure() {
        let content =
            json!([{"type": "text", "text": "a"}, {"type": "image", "data": "eA=="}, {"type": "text", "text": "b"}]);
        let answered =
            from_result(json!({"content": content, "structuredContent": {"n": 1}, "resultType": "complete"}));
        assert_eq!(answered, Answered::Result(json!({"text": "a\nb", "content": content, "structured": {"n": 1}})));
        assert_eq!(from_result(json!({})), Answered::Result(json!({"text": "", "content": []})));
        assert_eq!(from_result(Value::Null), Answered::Result(json!({"text": "", "content": []})));
    }

    fn error_of(answered: Answered) -> (String, String) {
        match answered {
            Answered::Error(error) => (error.data["kind"].as_str().unwrap_or_default().into(), error.message),
            Answered::Result(_) | Answered::Unknown(_) => panic!("{answered:?}"),
        }
    }

    #[test]
    fn a_failure_of_the_tool_has_its_message_and_a_kind_of_its_own() {
        let failed = json!({"isError": true, "content": [{"type": "text", "text": "no such city"}]});
        assert_eq!(error_of(from_result(failed)), ("tool_failed".into(), "no such city".into()));
        assert_eq!(error_of(from_result(json!({"isError": true}))).1, "the tool failed without a message");
        assert_eq!(error_of(from_result(json!({"resultType": "input_required"}))).0, "tool_failed");
        assert_eq!(error_of(from_result(json!({"resultType": "task"}))).0, "tool_failed");
    }

    #[test]
    fn codes_of_the_bridge_are_believed_and_those_of_a_server_are_not() {
        let error = |code| RemoteError { code, message: "why".into(), data: None };
        assert_eq!(from_error(error(-32010), true), Answered::Unknown("why".into()));
        assert_eq!(error_of(from_error(error(-32010), false)).0, "tool_failed");
        assert_eq!(error_of(from_error(error(-32008), true)).0, "unavailable");
        assert_eq!(error_of(from_error(error(-32008), false)).0, "tool_failed");
        assert_eq!(error_of(from_error(error(-32602), false)).0, "invalid_params");
    }
}
