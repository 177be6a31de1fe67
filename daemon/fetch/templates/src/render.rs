//! Filling in a template: placeholders to values, in one pass, so that no value is searched for placeholders.

use crate::template::HttpMethod;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use toold_proto::{ErrorKind, RpcError};

/// A request that is ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpCall {
    pub method: HttpMethod,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body: Option<String>,
}

type Parts<'a> = (HttpMethod, &'a str, &'a BTreeMap<String, String>, Option<&'a Value>);

/// Values by the name of their placeholder.
type Values<'a> = [(&'a str, &'a str)];

pub fn call((method, url, headers, body): Parts, values: &Values, key_setting: &str) -> Result<HttpCall, RpcError> {
    let fill =
        |text: &str, encode: fn(&str) -> String| fill(text, values, encode).map_err(|name| missing(name, key_setting));
    let url = fill(url, percent_encode)?;
    let headers = headers.iter().map(|(name, value)| Ok((name.clone(), fill(value, str::to_owned)?)));
    let headers = headers.collect::<Result<Vec<_>, RpcError>>()?;
    let body = match body {
        None => None,
        // The text of a body is sent as it is. Values are filled into JSON, so they may end no string of it.
        Some(Value::String(text)) => Some(fill(text, json_escape)?),
        Some(body) => Some(fill_json(body, values).map_err(|name| missing(name, key_setting))?.to_string()),
    };
    Ok(HttpCall { method, url, headers, body })
}

fn missing(placeholder: &str, key_setting: &str) -> RpcError {
    let message = match placeholder {
        "key" => format!("this provider needs a key; set `{key_setting}`, or `key_command` beside it"),
        other => format!("the template has a placeholder without a value: {{{other}}}"),
    };
    RpcError::new(ErrorKind::Unavailable, message)
}

/// Placeholders that a template may have. Other text in braces is left as it is.
const PLACEHOLDERS: [&str; 4] = ["query", "limit", "key", "url"];

/// Replaces `{name}` by its value. Returns the name of a placeholder that has none.
fn fill(text: &str, values: &Values, encode: fn(&str) -> String) -> Result<String, &'static str> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('{') {
        filled.push_str(&rest[..start]);
        rest = &rest[start..];
        let named = PLACEHOLDERS.iter().find(|name| rest[1..].strip_prefix(**name).is_some_and(|r| r.starts_with('}')));
        let Some(name) = named else {
            filled.push('{');
            rest = &rest[1..];
            continue;
        };
        let (_, value) = values.iter().find(|(known, _)| known == name).ok_or(*name)?;
        filled.push_str(&encode(value));
        rest = &rest[name.len() + 2..];
    }
    filled.push_str(rest);
    Ok(filled)
}

fn fill_json(body: &Value, values: &Values) -> Result<Value, &'static str> {
    Ok(match body {
        Value::String(text) if text == "{limit}" => {
            let limit = fill(text, values, str::to_owned)?;
            limit.parse::<u32>().map_or(Value::String(limit), Value::from)
        }
        Value::String(text) => Value::String(fill(text, values, str::to_owned)?),
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| fill_json(item, values)).collect::<Result<_, _>>()?)
        }
        Value::Object(fields) => {
            let fields = fields.iter().map(|(name, value)| Ok((name.clone(), fill_json(value, values)?)));
            Value::Object(fields.collect::<Result<Map<_, _>, &'static str>>()?)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => body.clone(),
    })
}

/// Encodes a text for a place between the quotes of a JSON string.
fn json_escape(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

/// Encodes all but the characters that RFC 3986 calls unreserved.
fn percent_encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => encoded.push(byte as char),
            other => encoded.push_str(&format!("%{other:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_body_that_is_a_text_is_sent_as_it_is_and_values_end_no_string_of_it() {
        // It was sent as a JSON string, in quotes.
        let body = json!("{\"q\": \"{query}\", \"n\": {limit}}");
        let values = [("query", "a\"b\\c"), ("limit", "5")];
        let headers = BTreeMap::new();
        let call = call((HttpMethod::Post, "https://x.test/", &headers, Some(&body)), &values, "k").expect("a call");
        assert_eq!(call.body.as_deref(), Some("{\"q\": \"a\\\"b\\\\c\", \"n\": 5}"));
    }

    #[test]
    fn a_query_that_names_the_key_does_not_get_it() {
        let values = [("query", "what is {key}?"), ("key", "s3cret"), ("limit", "5")];
        let headers = BTreeMap::from([("X-Key".to_string(), "{key}".to_string())]);
        let body = json!({"q": "{query}", "n": "{limit}", "keep": ["{other}", "a{limit}b", true, 3]});
        let call =
            call((HttpMethod::Post, "https://x.test/?q={query}", &headers, Some(&body)), &values, "k").expect("a call");
        let expected = HttpCall {
            method: HttpMethod::Post,
            url: "https://x.test/?q=what%20is%20%7Bkey%7D%3F".into(),
            headers: vec![("X-Key".into(), "s3cret".into())],
            body: Some(json!({"q": "what is {key}?", "n": 5, "keep": ["{other}", "a5b", true, 3]}).to_string()),
        };
        assert_eq!(call, expected);
    }

    #[test]
    fn a_missing_key_names_the_setting() {
        let headers = BTreeMap::from([("X-Key".to_string(), "{key}".to_string())]);
        let error =
            call((HttpMethod::Get, "https://x.test/", &headers, None), &[], "web.search.key_env").expect_err("no key");
        assert_eq!(error.kind(), Some(ErrorKind::Unavailable));
        assert!(error.message.contains("`web.search.key_env`"), "{}", error.message);
    }

    #[test]
    fn letters_outside_ascii_are_encoded_byte_by_byte() {
        assert_eq!(percent_encode("ä b&c=~"), "%C3%A4%20b%26c%3D~");
    }
}
