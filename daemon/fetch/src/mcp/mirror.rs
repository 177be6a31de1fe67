//! Headers that repeat parts of a request, as revision 2026-07-28 asks: the method, the name, and tool parameters that the
//! server marked with `x-mcp-header`. Servers of earlier revisions ignore them. Pure.

use super::message::Outgoing;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use std::collections::HashMap;

/// Largest integer that JavaScript represents exactly: only these are mirrored.
const MAX_SAFE_INTEGER: i64 = (1 << 53) - 1;

/// Mirrored parameters of a tool: the end of the header's name, and the path of the value.
type Mirrored = Vec<(String, Vec<String>)>;

/// Tools with mirrored parameters, from the answers to `tools/list`.
#[derive(Debug, Default)]
pub struct Mirror {
    tools: HashMap<String, Mirrored>,
}

impl Mirror {
    /// Remembers the tools of an answer to `tools/list`. A tool that is listed again replaces what was known of it.
    pub fn learn(&mut self, tools: &Value) {
        for tool in tools.as_array().into_iter().flatten() {
            let Some(name) = tool["name"].as_str() else { continue };
            let mut found = Mirrored::new();
            collect(&tool["inputSchema"], &mut Vec::new(), &mut found);
            match found.is_empty() {
                true => self.tools.remove(name),
                false => self.tools.insert(name.to_string(), found),
            };
        }
    }

    pub fn headers(&self, message: &Outgoing) -> Vec<(String, String)> {
        let Some(method) = message.method.as_deref().filter(|_| message.id.is_some()) else { return Vec::new() };
        let mut headers = vec![("mcp-method".to_string(), encode(method))];
        let name = match method {
            "tools/call" | "prompts/get" => message.params["name"].as_str(),
            "resources/read" => message.params["uri"].as_str(),
            // No other method has a name.
            _ => None,
        };
        headers.extend(name.map(|name| ("mcp-name".to_string(), encode(name))));
        let mirrored = name.filter(|_| method == "tools/call").and_then(|name| self.tools.get(name));
        for (header, path) in mirrored.into_iter().flatten() {
            let value = path.iter().try_fold(&message.params["arguments"], |value, name| value.get(name));
            headers.extend(value.and_then(text).map(|value| (format!("mcp-param-{header}"), encode(&value))));
        }
        headers
    }
}

/// Finds marked properties that are reached through `properties` alone.
fn collect(schema: &Value, path: &mut Vec<String>, found: &mut Mirrored) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        path.push(name.clone());
        let header = property["x-mcp-header"].as_str().filter(|header| is_token(header));
        found.extend(header.map(|header| (header.to_ascii_lowercase(), path.clone())));
        collect(property, path, found);
        path.pop();
    }
}

fn is_token(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(flag) => Some(flag.to_string()),
        Value::Number(number) => number.as_i64().filter(|n| n.abs() <= MAX_SAFE_INTEGER).map(|n| n.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Encodes a value that a header cannot have as it is.
fn encode(value: &str) -> String {
    let is_plain = value.bytes().all(|byte| matches!(byte, b'\t' | 0x20..=0x7e)) && value.trim() == value;
    let is_marked = value.starts_with("=?base64?") && value.ends_with("?=");
    if is_plain && !is_marked { value.to_string() } else { format!("=?base64?{}?=", STANDARD.encode(value)) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn call(name: &str, arguments: Value) -> Outgoing {
        let params = json!({"name": name, "arguments": arguments});
        Outgoing::parse(&json!({"id": 1, "method": "tools/call", "params": params}).to_string()).expect("a message")
    }

    #[test]
    fn values_are_encoded_as_the_specification_shows() {
        for (value, expected) in [
            ("us-west1", "us-west1"),
            ("Hello, 世界", "=?base64?SGVsbG8sIOS4lueVjA==?="),
            (" padded ", "=?base64?IHBhZGRlZCA=?="),
            ("line1\nline2", "=?base64?bGluZTEKbGluZTI=?="),
            ("=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="),
        ] {
            assert_eq!(encode(value), expected);
        }
    }

    #[test]
    fn marked_parameters_are_mirrored_if_they_are_given() {
        let mut mirror = Mirror::default();
        let schema = json!({"type": "object", "properties": {
            "region": {"type": "string", "x-mcp-header": "Region"},
            "deep": {"type": "object", "properties": {"n": {"type": "integer", "x-mcp-header": "N"}}},
            "list": {"type": "array", "items": {"properties": {"x": {"x-mcp-header": "X"}}}},
            "bad": {"type": "string", "x-mcp-header": "a b"},
            "dry": {"type": "boolean", "x-mcp-header": "Dry"}
        }});
        mirror.learn(&json!([{"name": "sql", "inputSchema": schema}, {"name": "plain", "inputSchema": {}}]));
        let arguments = json!({"region": "eu", "deep": {"n": -7}, "list": [{"x": 1}], "bad": "b", "dry": null});
        let expected =
            [("mcp-method", "tools/call"), ("mcp-name", "sql"), ("mcp-param-n", "-7"), ("mcp-param-region", "eu")];
        let mut found = mirror.headers(&call("sql", arguments));
        found.sort();
        assert_eq!(found, expected.map(|(name, value)| (name.to_string(), value.to_string())));
        assert_eq!(mirror.headers(&call("plain", json!({"region": "eu"}))).len(), 2);
    }

    #[test]
    fn only_requests_have_these_headers() {
        let notification = Outgoing::parse(r#"{"method":"notifications/initialized"}"#).expect("a message");
        assert_eq!(Mirror::default().headers(&notification), []);
        let read =
            Outgoing::parse(r#"{"id":1,"method":"resources/read","params":{"uri":"file:///a"}}"#).expect("a message");
        assert_eq!(Mirror::default().headers(&read)[1], ("mcp-name".into(), "file:///a".into()));
    }
}
