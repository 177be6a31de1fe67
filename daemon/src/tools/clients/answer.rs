//! The answers of clients: a result is taken as it is, an error becomes one of ours.

use super::link::LinkAnswer;
use serde::Deserialize;
use serde_json::{Map, Value};
use toold_proto::{ErrorKind, RpcError};

/// Characters of a client's error message that are passed on.
const MAX_MESSAGE_CHARS: usize = 4_000;
/// Bytes of a client's error data that are passed on, as JSON.
const MAX_DATA_BYTES: usize = 64 * 1024;

/// The error object of JSON-RPC.
#[derive(Deserialize)]
struct ClientError {
    #[serde(default)]
    code: Value,
    #[serde(default)]
    message: Value,
    #[serde(default)]
    data: Value,
}

/// Reads the answer to a `tools.invoke`.
pub(super) fn read_answer(answer: LinkAnswer, provider: &str, tool: &str) -> Result<Value, RpcError> {
    match answer {
        LinkAnswer::Result(text) => serde_json::from_str(text.get()).map_err(|e| {
            let message = format!("the client of {provider}.{tool} answered with a result that cannot be read: {e}");
            RpcError::new(ErrorKind::Internal, message)
        }),
        LinkAnswer::Error(text) => Err(client_error(text.get(), provider)),
        LinkAnswer::Malformed => {
            let message = format!("the client of {provider}.{tool} answered with both or neither of result and error");
            Err(RpcError::new(ErrorKind::ToolFailed, message).with("provider", provider))
        }
    }
}

/// Returns the error of a client. A kind of ours in `data.kind` is kept; without one, `-32602` is `invalid_params`, `-32800` is
/// `cancelled`, and any other is `tool_failed`.
fn client_error(text: &str, provider: &str) -> RpcError {
    let none = || ClientError { code: Value::Null, message: Value::Null, data: Value::Null };
    let ClientError { code, message, data } = serde_json::from_str(text).unwrap_or_else(|_| none());
    let kind = data.get("kind").and_then(|kind| ErrorKind::deserialize(kind).ok());
    let kind = kind.unwrap_or(match code.as_i64() {
        Some(-32602) => ErrorKind::InvalidParams,
        Some(-32800) => ErrorKind::Cancelled,
        // The codes of other servers are theirs: they mean something else here.
        _ => ErrorKind::ToolFailed,
    });
    let message: String = match message {
        Value::String(message) if !message.is_empty() => message.chars().take(MAX_MESSAGE_CHARS).collect(),
        _ => format!("the client of {provider} answered with an error without a message"),
    };
    let bytes = data.to_string().len();
    let mut kept = match data {
        _ if bytes > MAX_DATA_BYTES => Map::from_iter([("data_bytes_left_out".to_string(), bytes.into())]),
        Value::Object(data) => data,
        Value::Null => Map::new(),
        other => Map::from_iter([("data".to_string(), other)]),
    };
    kept.insert("kind".into(), kind.name().into());
    kept.insert("provider".into(), provider.into());
    if let Some(code) = code.as_i64().filter(|code| *code != i64::from(kind.code())) {
        kept.insert("provider_code".into(), code.into());
    }
    RpcError { code: kind.code(), message, data: kept }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use serde_json::value::RawValue;

    fn error(value: Value) -> RpcError {
        let text = RawValue::from_string(value.to_string()).expect("JSON");
        read_answer(LinkAnswer::Error(text), "p", "t").expect_err("an error")
    }

    #[test]
    fn a_kind_of_ours_is_kept_and_others_are_failures_of_the_tool() {
        let denied = error(json!({ "code": -32005, "message": "no", "data": { "kind": "denied", "reason": "x" } }));
        let data = json!({ "kind": "denied", "reason": "x", "provider": "p" });
        assert_eq!((denied.code, denied.message.as_str(), Value::Object(denied.data)), (-32005, "no", data));
        let theirs = error(json!({ "code": -32001, "message": "boom", "data": { "kind": "odd", "x": 1 } }));
        let data = json!({ "kind": "tool_failed", "x": 1, "provider": "p", "provider_code": -32001 });
        assert_eq!((theirs.code, theirs.message.as_str(), Value::Object(theirs.data)), (-32012, "boom", data));
        assert_eq!(error(json!({ "code": -32602, "message": "bad" })).kind(), Some(ErrorKind::InvalidParams));
        assert_eq!(error(json!("no object")).kind(), Some(ErrorKind::ToolFailed));
    }

    #[test]
    fn message_and_data_are_bounded() {
        let long = error(json!({ "code": 1, "message": "é".repeat(5000), "data": { "x": "y".repeat(70_000) } }));
        assert_eq!(long.message.chars().count(), MAX_MESSAGE_CHARS);
        assert_eq!(long.data["data_bytes_left_out"], json!(70_008));
        assert_eq!(error(json!({ "code": 1, "message": "m", "data": [1] })).data["data"], json!([1]));
    }
}
