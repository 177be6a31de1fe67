//! JSON-RPC messages of both directions. Their text is passed on as it came; only what the transport needs is read.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toold_proto::{ErrorKind, RpcError};

/// Place of the protocol version in the parameters of a request since revision 2026-07-28.
const VERSION_POINTER: &str = "/_meta/io.modelcontextprotocol~1protocolVersion";

/// A message from stdin, for the server.
#[derive(Debug, Clone, PartialEq)]
pub struct Outgoing {
    pub text: String,
    pub id: Option<Value>,
    pub method: Option<String>,
    pub params: Value,
}

/// A message of the server, for stdout.
#[derive(Debug, Clone, PartialEq)]
pub struct Received {
    /// One line.
    pub text: String,
    pub id: Option<Value>,
    pub method: Option<String>,
}

#[derive(Deserialize)]
struct OutgoingHead {
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Value,
}

#[derive(Deserialize)]
struct ReceivedHead {
    id: Option<Value>,
    method: Option<String>,
}

impl Outgoing {
    pub fn parse(line: &str) -> Result<Outgoing, RpcError> {
        let head: OutgoingHead = serde_json::from_str(line)
            .map_err(|e| RpcError::new(ErrorKind::ParseError, format!("not a message: {e}")))?;
        Ok(Outgoing { text: line.trim().to_string(), id: head.id, method: head.method, params: head.params })
    }

    pub fn is_request(&self) -> bool {
        self.id.is_some() && self.method.is_some()
    }

    pub fn is(&self, method: &str) -> bool {
        self.method.as_deref() == Some(method)
    }

    /// Returns the version of a request that carries it itself: such a server has no sessions and no resumption.
    pub fn version(&self) -> Option<&str> {
        self.params.pointer(VERSION_POINTER).and_then(Value::as_str)
    }

    /// Returns the request that a `notifications/cancelled` names.
    pub fn cancelled(&self) -> Option<String> {
        if self.is("notifications/cancelled") { self.params.get("requestId").map(Value::to_string) } else { None }
    }
}

impl Received {
    /// Parses a message or, as revision 2025-03-26 allowed, several in an array.
    pub fn parse(text: &str) -> Result<Vec<Received>, serde_json::Error> {
        if text.trim_start().starts_with('[') {
            let messages: Vec<&RawValue> = serde_json::from_str(text)?;
            return messages.into_iter().map(|message| Received::parse_one(message.get())).collect();
        }
        Ok(vec![Received::parse_one(text)?])
    }

    fn parse_one(text: &str) -> Result<Received, serde_json::Error> {
        let head: ReceivedHead = serde_json::from_str(text)?;
        // A line end inside a JSON text is white space: strings have it escaped.
        let text = text.trim().replace(['\n', '\r'], " ");
        Ok(Received { text, id: head.id, method: head.method })
    }

    /// Returns the id that this message answers.
    pub fn answers(&self) -> Option<String> {
        if self.method.is_none() { self.id.as_ref().map(Value::to_string) } else { None }
    }

    /// Returns the value at a place of the result.
    pub fn at(&self, pointer: &str) -> Option<Value> {
        serde_json::from_str::<Value>(&self.text).ok()?.pointer(pointer).cloned()
    }
}

/// Makes the answer to a request that failed here.
pub fn error_answer(id: &Value, error: &impl Serialize) -> String {
    json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string()
}

/// Makes the error of a call that may have happened.
pub fn outcome_unknown(reason: &str, message: impl std::fmt::Display) -> RpcError {
    let message = format!("{message}; the call may have happened, and is not repeated");
    RpcError::new(ErrorKind::OutcomeUnknown, message).with("reason", reason)
}

/// Makes the error of a call that did not happen.
pub fn not_sent(reason: &str, message: impl std::fmt::Display) -> RpcError {
    RpcError::new(ErrorKind::Unavailable, format!("{message}; the call did not happen")).with("reason", reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_stays_as_it_came_but_on_one_line() {
        let text =
            "{\n  \"jsonrpc\": \"2.0\",\r\n \"id\": 1, \"result\": {\"z\": 1.10, \"a\": 12345678901234567890123}\n}";
        let messages = Received::parse(text).expect("a message");
        let expected =
            "{   \"jsonrpc\": \"2.0\",   \"id\": 1, \"result\": {\"z\": 1.10, \"a\": 12345678901234567890123} }";
        assert_eq!(messages[0].text, expected);
        assert_eq!(messages[0].answers().as_deref(), Some("1"));
    }

    #[test]
    fn an_array_is_several_messages() {
        let messages =
            Received::parse(r#"[{"id":"a","result":{}},{"method":"x"},{"id":1,"method":"ping"}]"#).expect("messages");
        let answers: Vec<Option<String>> = messages.iter().map(Received::answers).collect();
        assert_eq!(answers, [Some("\"a\"".to_string()), None, None]);
        assert!(Received::parse("{not json").is_err());
    }

    #[test]
    fn the_version_and_the_cancelled_request_are_read() {
        let text = r#"{"id":1,"method":"tools/call","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}"#;
        assert_eq!(Outgoing::parse(text).expect("a message").version(), Some("2026-07-28"));
        let text = r#"{"method":"notifications/cancelled","params":{"requestId":7}}"#;
        assert_eq!(Outgoing::parse(text).expect("a message").cancelled().as_deref(), Some("7"));
    }
}
