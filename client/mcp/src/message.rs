//! Messages of the client: JSON-RPC, the era of a request, and the client that its `_meta` describes.

use serde_json::{Map, Value, json};

/// The revision without a handshake.
pub const MODERN_VERSION: &str = "2026-07-28";
/// The revisions with `initialize`, newest first.
pub const LEGACY_VERSIONS: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

pub const PARSE_ERROR: i64 = -32700;
pub const INVALID_REQUEST: i64 = -32600;
pub const METHOD_NOT_FOUND: i64 = -32601;
pub const INVALID_PARAMS: i64 = -32602;
pub const INTERNAL_ERROR: i64 = -32603;
pub const MISSING_CAPABILITY: i64 = -32021;
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// The prefix of the protocol's own keys in `_meta`.
const OWN_KEYS: &str = "io.modelcontextprotocol/";
/// The extension for calls whose result comes later.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// The rules that a request follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// `initialize` first, capabilities for the whole connection.
    Legacy,
    /// Version and capabilities in every request.
    Modern,
}

/// A request that wants an answer.
#[derive(Debug, Clone)]
pub struct Request {
    pub id: Value,
    pub method: String,
    pub params: Map<String, Value>,
    pub era: Era,
}

/// A message of the client.
#[derive(Debug, Clone)]
pub enum Message {
    Request(Request),
    Notification {
        method: String,
        params: Map<String, Value>,
    },
    /// The answer to a request of ours.
    Response {
        id: Value,
        result: Result<Value, Value>,
    },
    /// Not a message: the answer to it.
    Invalid(Value),
    Batch(Vec<Message>),
}

/// An error of the protocol, not of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ProtocolError {
    pub code: i64,
    pub message: String,
    pub data: Option<Value>,
}

impl ProtocolError {
    pub fn new(code: i64, message: impl Into<String>) -> ProtocolError {
        ProtocolError { code, message: message.into(), data: None }
    }

    pub fn params(message: impl Into<String>) -> ProtocolError {
        ProtocolError::new(INVALID_PARAMS, message)
    }

    /// Builds the error for a client that did not declare what a request needs.
    pub fn missing_tasks() -> ProtocolError {
        let data = json!({"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}});
        ProtocolError {
            data: Some(data),
            ..ProtocolError::new(MISSING_CAPABILITY, "Missing required client capability")
        }
    }

    pub fn object(&self) -> Value {
        let mut object = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            object["data"] = data.clone();
        }
        object
    }
}

impl Message {
    /// Reads one line.
    pub fn read(line: &[u8]) -> Message {
        let Ok(text) = std::str::from_utf8(line) else { return invalid(Value::Null, PARSE_ERROR, "not UTF-8") };
        match serde_json::from_str::<Value>(text) {
            Ok(Value::Array(messages)) if messages.is_empty() => {
                invalid(Value::Null, INVALID_REQUEST, "an empty batch")
            }
            Ok(Value::Array(messages)) => Message::Batch(messages.into_iter().map(Message::of_value).collect()),
            Ok(value) => Message::of_value(value),
            Err(error) => invalid(Value::Null, PARSE_ERROR, &format!("not JSON: {error}")),
        }
    }

    fn of_value(value: Value) -> Message {
        let Value::Object(mut object) = value else { return invalid(Value::Null, INVALID_REQUEST, "not an object") };
        let id = object.remove("id");
        let is_id = |id: &Value| id.is_string() || id.is_number();
        let known_id = id.clone().filter(is_id).unwrap_or(Value::Null);
        if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return invalid(known_id, INVALID_REQUEST, "`jsonrpc` must be \"2.0\"");
        }
        if id.as_ref().is_some_and(|id| !is_id(id)) && object.contains_key("method") {
            return invalid(Value::Null, INVALID_REQUEST, "`id` must be a string or a number");
        }
        let method = match object.remove("method") {
            Some(Value::String(method)) => method,
            Some(_) => return invalid(known_id, INVALID_REQUEST, "`method` must be a string"),
            None => {
                return match (object.remove("result"), object.remove("error")) {
                    (Some(result), None) => Message::Response { id: known_id, result: Ok(result) },
                    (None, Some(error)) => Message::Response { id: known_id, result: Err(error) },
                    (Some(_), Some(_)) | (None, None) => invalid(known_id, INVALID_REQUEST, "`method` is missing"),
                };
            }
        };
        let params = match object.remove("params") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(params)) => params,
            Some(_) => return invalid(known_id, INVALID_PARAMS, "`params` must be an object"),
        };
        match id {
            None => Message::Notification { method, params },
            Some(id) => {
                let meta = params.get("_meta").and_then(Value::as_object);
                let is_modern = meta.is_some_and(|meta| meta.contains_key(&own_key("protocolVersion")));
                let era = if is_modern || method == "server/discover" { Era::Modern } else { Era::Legacy };
                Message::Request(Request { id, method, params, era })
            }
        }
    }
}

impl Request {
    /// Returns a value of `_meta`.
    pub fn meta(&self, key: &str) -> Option<&Value> {
        self.params.get("_meta")?.get(key)
    }

    /// Returns one of the protocol's own values of `_meta`.
    pub fn own_meta(&self, key: &str) -> Option<&Value> {
        self.meta(&own_key(key))
    }

    /// Returns a parameter that is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.params.get(name)?.as_str()
    }

    /// Checks the version of a request of the newer era.
    pub fn check_version(&self) -> Result<(), ProtocolError> {
        let requested = self.own_meta("protocolVersion");
        if self.era == Era::Legacy || requested.is_none() || requested.and_then(Value::as_str) == Some(MODERN_VERSION) {
            return Ok(());
        }
        let data = json!({"supported": [MODERN_VERSION], "requested": requested});
        Err(ProtocolError {
            data: Some(data),
            ..ProtocolError::new(UNSUPPORTED_VERSION, "Unsupported protocol version")
        })
    }
}

pub fn own_key(key: &str) -> String {
    format!("{OWN_KEYS}{key}")
}

/// Builds the answer with a result.
pub fn result(id: &Value, result: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}

/// Builds the answer with an error.
pub fn error(id: &Value, error: &ProtocolError) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": error.object()})
}

fn invalid(id: Value, code: i64, message: &str) -> Message {
    Message::Invalid(error(&id, &ProtocolError::new(code, message)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_message_has_the_answer_of_the_protocol() {
        let code = |line: &str| match Message::read(line.as_bytes()) {
            Message::Invalid(answer) => (answer["error"]["code"].as_i64(), answer["id"].clone()),
            other => panic!("{other:?}"),
        };
        assert_eq!(code("{"), (Some(-32700), Value::Null));
        assert_eq!(code("1"), (Some(-32600), Value::Null));
        assert_eq!(code("[]"), (Some(-32600), Value::Null));
        assert_eq!(code(r#"{"id":1,"method":"x"}"#), (Some(-32600), json!(1)));
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":1}"#), (Some(-32600), json!(1)));
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":[],"method":"x"}"#), (Some(-32600), Value::Null));
        assert_eq!(code(r#"{"jsonrpc":"2.0","id":"a","method":"x","params":3}"#), (Some(-32602), json!("a")));
        assert!(matches!(Message::read(&[0xff]), Message::Invalid(_)));
    }

    #[test]
    fn the_version_in_a_request_decides_its_era() {
        let era = |line: &str| match Message::read(line.as_bytes()) {
            Message::Request(request) => (request.era, request.check_version().is_ok()),
            other => panic!("{other:?}"),
        };
        assert_eq!(era(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#), (Era::Legacy, true));
        let modern = |version: &str| {
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": {own_key("protocolVersion"): version}}})
                .to_string()
        };
        assert_eq!(era(&modern("2026-07-28")), (Era::Modern, true));
        assert_eq!(era(&modern("1900-01-01")), (Era::Modern, false));
    }
}
