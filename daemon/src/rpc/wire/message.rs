//! Parses requests, by the letter of JSON-RPC 2.0. A request with an `id` is never a notification. Nothing runs here.

use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use toold_proto::{ErrorKind, RpcError};

/// The `id` of a request. The answer has it unchanged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestId {
    Null,
    Number(u64),
    Text(String),
    /// An integer that does not fit: negative, or huge. Its digits.
    Other(Box<str>),
}

/// One call. Without an id it is a notification.
#[derive(Debug, PartialEq)]
pub struct Request<'a> {
    pub id: Option<RequestId>,
    pub method: Cow<'a, str>,
    /// An array or an object, as text.
    pub params: Option<&'a str>,
}

/// A request that must be answered with an error: the id for the answer, and the error.
#[derive(Debug, PartialEq)]
pub struct Rejected {
    pub id: RequestId,
    pub error: Box<RpcError>,
}

/// One message: a call, or a batch of them.
#[derive(Debug, PartialEq)]
pub enum Message<'a> {
    One(Request<'a>),
    Batch(Vec<Result<Request<'a>, Rejected>>),
}

/// Parses one message: a request, or a batch of at most `max_batch`.
pub fn parse(text: &[u8], max_batch: usize) -> Result<Message<'_>, Rejected> {
    // The whole text: serde does not check the members that it skips.
    let text = std::str::from_utf8(text).map_err(|e| not_json(&e))?;
    if text.trim_ascii_start().starts_with('[') {
        batch(text, max_batch).map(Message::Batch)
    } else {
        one(text).map(Message::One)
    }
}

fn one(text: &str) -> Result<Request<'_>, Rejected> {
    match serde_json::from_str(text) {
        Ok(envelope) => request(envelope),
        Err(e) => Err(unreadable(text, &e)),
    }
}

/// The members of a request, unchecked. Others are ignored.
#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default, deserialize_with = "present")]
    jsonrpc: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    method: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    params: Option<&'a RawValue>,
}

/// Reads a member that is present. Serde takes `null` for an absent member; here `"id": null` is an id.
fn present<'de, D: Deserializer<'de>>(d: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(d).map(Some)
}

/// Reads a string, without a copy unless it has escapes.
fn text(raw: Option<&RawValue>) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Text<'a>(#[serde(borrow)] Cow<'a, str>);
    serde_json::from_str::<Text>(raw?.get()).ok().map(|text| text.0)
}

fn request(envelope: Envelope<'_>) -> Result<Request<'_>, Rejected> {
    let id = match envelope.id.map(|raw| request_id(raw.get())) {
        None => None,
        Some(Some(id)) => Some(id),
        Some(None) => {
            return Err(invalid(RequestId::Null, "`id` must be a string, an integer or null"));
        }
    };
    let why = if text(envelope.jsonrpc).is_none_or(|version| version != "2.0") {
        "`jsonrpc` must be \"2.0\""
    } else if envelope.params.is_some_and(|raw| !raw.get().starts_with(['{', '['])) {
        "`params` must be an object or an array"
    } else if let Some(method) = text(envelope.method) {
        return Ok(Request { id, method, params: envelope.params.map(RawValue::get) });
    } else {
        "`method` must be a string"
    };
    Err(invalid(id.unwrap_or(RequestId::Null), why))
}

/// Parses an id from one JSON value. None: the value cannot be an id.
pub(super) fn request_id(raw: &str) -> Option<RequestId> {
    match raw.as_bytes().first()? {
        b'n' => Some(RequestId::Null),
        b'"' => serde_json::from_str(raw).ok().map(RequestId::Text),
        b'-' | b'0'..=b'9' if !raw.contains(['.', 'e', 'E']) => {
            Some(raw.parse().map_or_else(|_| RequestId::Other(raw.into()), RequestId::Number))
        }
        // A fraction, a boolean, an array or an object.
        _ => None,
    }
}

/// The entries of a batch. Those over the limit are parsed, to check that they are JSON, and counted, but not kept.
struct Entries<'a> {
    kept: Vec<&'a RawValue>,
    count: usize,
}

struct EntriesVisitor(usize);

impl<'de> Visitor<'de> for EntriesVisitor {
    type Value = Entries<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of requests")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Entries<'de>, A::Error> {
        let mut entries = Entries { kept: Vec::new(), count: 0 };
        while entries.count < self.0 {
            let Some(entry) = seq.next_element()? else { return Ok(entries) };
            entries.kept.push(entry);
            entries.count += 1;
        }
        while seq.next_element::<IgnoredAny>()?.is_some() {
            entries.count += 1;
        }
        Ok(entries)
    }
}

fn batch(text: &str, max_batch: usize) -> Result<Vec<Result<Request<'_>, Rejected>>, Rejected> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let entries = reader
        .deserialize_seq(EntriesVisitor(max_batch))
        .and_then(|entries| reader.end().map(|()| entries))
        .map_err(|e| unreadable(text, &e))?;
    if entries.count > max_batch {
        let message = format!("a batch has at most {max_batch} requests, this one has {}", entries.count);
        return Err(Rejected { id: RequestId::Null, error: RpcError::limit("max_batch", message).into() });
    }
    if entries.count == 0 {
        return Err(invalid(RequestId::Null, "a batch must not be empty"));
    }
    Ok(entries.kept.into_iter().map(|raw| one(raw.get())).collect())
}

/// The answer of a client to a request of the daemon: a result or an error object, as text.
#[derive(Debug, Clone, Copy)]
pub enum ClientAnswer<'a> {
    Result(&'a RawValue),
    Error(&'a RawValue),
    /// Both or neither.
    Malformed,
}

/// A message that answers a request.
#[derive(Debug)]
pub struct Response<'a> {
    pub id: RequestId,
    pub answer: ClientAnswer<'a>,
}

/// Parses an answer: an object with `id`, and no `method`. None: the message is none. A `null` beside the
/// other member, as JSON-RPC 1.0 has it, is left out of account.
pub fn parse_response(text: &[u8]) -> Option<Response<'_>> {
    #[derive(Deserialize)]
    struct Members<'a> {
        #[serde(borrow, default, deserialize_with = "present")]
        jsonrpc: Option<&'a RawValue>,
        #[serde(borrow, default, deserialize_with = "present")]
        id: Option<&'a RawValue>,
        method: Option<IgnoredAny>,
        #[serde(borrow, default, deserialize_with = "present")]
        result: Option<&'a RawValue>,
        #[serde(borrow, default, deserialize_with = "present")]
        error: Option<&'a RawValue>,
    }
    let members: Members<'_> = serde_json::from_slice(text).ok()?;
    if members.method.is_some() || self::text(members.jsonrpc)? != "2.0" {
        return None;
    }
    let given = |member: Option<&'_ RawValue>| member.is_some_and(|raw| raw.get() != "null");
    let answer = match (members.result, members.error) {
        (Some(result), error) if !given(error) => ClientAnswer::Result(result),
        (result, Some(error)) if !given(result) => ClientAnswer::Error(error),
        _ => ClientAnswer::Malformed,
    };
    Some(Response { id: request_id(members.id?.get())?, answer })
}

/// Distinguishes text that is not JSON from JSON that is not a request. Serde stops at the first error, which may come before
/// the text stops being JSON.
fn unreadable(text: &str, e: &serde_json::Error) -> Rejected {
    match serde_json::from_str::<IgnoredAny>(text) {
        Err(e) => not_json(&e),
        Ok(_) if text.trim_ascii_start().starts_with('{') => invalid(RequestId::Null, &e.to_string()),
        Ok(_) => invalid(RequestId::Null, "a request must be an object"),
    }
}

fn not_json(e: &dyn fmt::Display) -> Rejected {
    let error = RpcError::new(ErrorKind::ParseError, format!("the message is not JSON: {e}"));
    Rejected { id: RequestId::Null, error: error.into() }
}

fn invalid(id: RequestId, why: &str) -> Rejected {
    let error = RpcError::new(ErrorKind::InvalidRequest, format!("not a JSON-RPC 2.0 request: {why}"));
    Rejected { id, error: error.into() }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            RequestId::Null => s.serialize_unit(),
            RequestId::Number(number) => s.serialize_u64(*number),
            RequestId::Text(text) => s.serialize_str(text),
            RequestId::Other(digits) => match serde_json::from_str::<&RawValue>(digits) {
                Ok(raw) => raw.serialize(s),
                Err(e) => Err(serde::ser::Error::custom(e)),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn error_without_id(text: &str) -> (ErrorKind, String) {
        let refused = parse(text.as_bytes(), 3).expect_err(text);
        (refused.error.kind().expect("ours"), serde_json::to_string(&refused.id).expect("an id prints"))
    }

    fn id_of(raw: &str) -> String {
        let text = format!(r#"{{"jsonrpc":"2.0","method":"m","id":{raw}}}"#);
        match parse(text.as_bytes(), 3) {
            Ok(Message::One(request)) => serde_json::to_string(&request.id).expect("an id prints"),
            other => panic!("{raw}: {other:?}"),
        }
    }

    #[test]
    fn a_request_is_parsed_in_any_order_and_with_escapes() {
        let text = br#" {"extra":[],"params":{"a":1} ,"id":7,"method":"\u0070oll","jsonrpc":"2.0"} "#;
        let request = Request { id: Some(RequestId::Number(7)), method: "poll".into(), params: Some(r#"{"a":1}"#) };
        assert_eq!(parse(text, 3), Ok(Message::One(request)));
    }

    #[test]
    fn every_legal_id_is_unchanged() {
        for raw in ["0", "-1", "18446744073709551615", "18446744073709551616", "-9223372036854775809", r#""x""#, "null"]
        {
            assert_eq!(id_of(raw), raw);
        }
    }

    #[test]
    fn an_invalid_request_is_rejected_with_its_id_if_that_is_valid() {
        for (text, id) in [
            ("true", "null"),
            ("{}", "null"),
            ("\"x\"", "null"),
            (r#"{"jsonrpc":"2.0","method":"m","id":1.5}"#, "null"),
            (r#"{"jsonrpc":"2.0","method":"m","id":1e3}"#, "null"),
            (r#"{"jsonrpc":"2.0","method":"m","id":[1]}"#, "null"),
            (r#"{"jsonrpc":"2.0","method":"m","id":"\ud800"}"#, "null"),
            (r#"{"jsonrpc":"2.0","method":7,"id":"a"}"#, "\"a\""),
            (r#"{"jsonrpc":"2.0","id":-4}"#, "-4"),
            (r#"{"jsonrpc":"1.0","method":"m","id":4}"#, "4"),
            (r#"{"method":"m","id":4}"#, "4"),
            (r#"{"jsonrpc":"2.0","method":"m","id":4,"params":"x"}"#, "4"),
            (r#"{"jsonrpc":"2.0","method":"m","id":4,"params":null}"#, "4"),
            (r#"{"jsonrpc":"2.0","method":"m","id":4,"id":5}"#, "null"),
            ("[]", "null"),
        ] {
            assert_eq!(error_without_id(text), (ErrorKind::InvalidRequest, id.into()), "{text}");
        }
    }

    #[test]
    fn text_that_is_not_json_is_a_parse_error() {
        for text in ["{", "{]", "[1", "[1 2]", "nul", "{} x", "\u{7f}", r#"{"id":1,"id":2,]"#, "[] []"] {
            assert_eq!(error_without_id(text), (ErrorKind::ParseError, "null".into()), "{text}");
        }
        let refused = parse(b"{\"jsonrpc\":\"2.0\",\"method\":\"m\",\"extra\":\"\xff\"}", 3).expect_err("bad text");
        assert_eq!(refused.error.kind(), Some(ErrorKind::ParseError));
    }

    #[test]
    fn a_batch_keeps_its_order_and_its_errors_and_has_a_limit() {
        let Ok(Message::Batch(entries)) = parse(br#"[1,{"jsonrpc":"2.0","method":"m"},{"id":3}]"#, 3) else {
            panic!("a batch");
        };
        let ids: Vec<_> = entries.iter().map(|e| e.as_ref().map(|r| r.id.clone()).map_err(|r| r.id.clone())).collect();
        assert_eq!(ids, [Err(RequestId::Null), Ok(None), Err(RequestId::Number(3))]);
        assert_eq!(error_without_id("[1,2,3,4]"), (ErrorKind::Limit, "null".into()));
        assert_eq!(error_without_id("[1,2,3,4,}"), (ErrorKind::ParseError, "null".into()));
    }

    #[test]
    fn an_answer_has_an_id_a_result_or_an_error_and_no_method() {
        let shown = |text: &str| match parse_response(text.as_bytes()) {
            Some(Response { id: RequestId::Text(id), answer: ClientAnswer::Result(raw) }) => format!("{id} = {raw}"),
            Some(Response { id: RequestId::Text(id), answer: ClientAnswer::Error(raw) }) => format!("{id} ! {raw}"),
            Some(Response { id: RequestId::Text(id), answer: ClientAnswer::Malformed }) => format!("{id} ?"),
            Some(other) => format!("{:?}", other.id),
            None => "none".into(),
        };
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":"a","result":{"x":1}}"#, r#"a = {"x":1}"#),
            (r#"{"jsonrpc":"2.0","id":"a","result":null}"#, "a = null"),
            (r#"{"jsonrpc":"2.0","id":"a","error":{"code":1}}"#, r#"a ! {"code":1}"#),
            (r#"{"jsonrpc":"2.0","id":"a","result":null,"error":{"code":1}}"#, r#"a ! {"code":1}"#),
            (r#"{"jsonrpc":"2.0","id":"a","result":5,"error":null}"#, "a = 5"),
            (r#"{"jsonrpc":"2.0","id":7,"result":5}"#, "Number(7)"),
            (r#"{"jsonrpc":"2.0","id":null,"error":{}}"#, "Null"),
            (r#"{"jsonrpc":"2.0","id":"a","result":1,"error":{}}"#, "a ?"),
            (r#"{"jsonrpc":"2.0","id":"a"}"#, "a ?"),
            (r#"{"jsonrpc":"2.0","result":1}"#, "none"),
            (r#"{"jsonrpc":"1.0","id":"a","result":1}"#, "none"),
            (r#"{"jsonrpc":"2.0","id":"a","method":"m","result":1}"#, "none"),
            (r#"[{"jsonrpc":"2.0","id":"a","result":1}]"#, "none"),
            ("{", "none"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_parser_panic(text in proptest::collection::vec(any::<u8>(), 0..80)) {
            let _ = parse(&text, 3);
            let _ = parse_response(&text);
        }
    }
}
