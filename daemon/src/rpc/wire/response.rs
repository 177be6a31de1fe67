//! Answers as text: our own errors, and jsonrpsee's responses made to keep our promises.

use super::message::RequestId;
use jsonrpsee::types::{ErrorObject, Id};
use jsonrpsee::{Extensions, MethodResponse};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use toold_proto::{ErrorKind, RpcError};

/// How every response of jsonrpsee's begins when the id is one it cannot hold and 0 stands in.
const STAND_IN_PREFIX: &str = r#"{"jsonrpc":"2.0","id":0,"#;

/// A whole answer, printed. jsonrpsee would print the result a second time, and read it to see whether it is JSON.
#[derive(Clone)]
struct RawResponse(String);

/// The room a new answer begins with: enough for the usual ones.
const INITIAL_CAPACITY: usize = 1024;

/// What can be put into an answer.
pub trait WriteJson {
    fn write_json(&self, out: &mut Vec<u8>) -> serde_json::Result<()>;
}

/// Anything that prints as serde has it.
pub struct Serialized<T>(pub T);

impl<T: Serialize> WriteJson for Serialized<T> {
    fn write_json(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(out, &self.0)
    }
}

/// A result on its way through jsonrpsee, which carries it and does not look at it.
pub fn raw_response(id: &Id<'_>, result: &impl WriteJson) -> serde_json::Result<MethodResponse> {
    let mut text = Vec::with_capacity(INITIAL_CAPACITY);
    text.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    serde_json::to_writer(&mut text, id)?;
    text.extend_from_slice(br#","result":"#);
    result.write_json(&mut text)?;
    text.push(b'}');
    let text = String::from_utf8(text).map_err(serde::ser::Error::custom)?;
    let mut carrier = Extensions::new();
    carrier.insert(RawResponse(text));
    Ok(MethodResponse::notification().with_extensions(carrier))
}

/// An error answer.
pub(crate) fn error(id: &RequestId, error: &RpcError) -> Box<str> {
    #[derive(Serialize)]
    struct Answer<'a> {
        jsonrpc: &'static str,
        id: &'a RequestId,
        error: &'a RpcError,
    }
    let answer = Answer { jsonrpc: "2.0", id, error };
    serde_json::to_string(&answer).expect("text, integers and a map with text keys print").into()
}

/// The id for jsonrpsee, which knows no negative ones: 0 stands in, and `text` puts it right.
pub(crate) fn jsonrpsee_id(id: &RequestId) -> Id<'static> {
    match id {
        RequestId::Null => Id::Null,
        RequestId::Number(number) => Id::Number(*number),
        RequestId::Text(text) => Id::Str(text.clone().into()),
        RequestId::Other(_) => Id::Number(0),
    }
}

/// The response's text, with the caller's own id, and with `data.kind` if it is an error. None: it has
/// answered by itself, as a subscription does through its sink.
pub(crate) fn text(mut response: MethodResponse, id: &RequestId) -> Option<Box<str>> {
    if let Some(RawResponse(text)) = response.extensions_mut().remove() {
        return Some(with_id(text.into(), id));
    }
    if !response.is_method_call() {
        return None;
    }
    Some(match response.is_error().then(|| without_kind(response.as_json())).flatten() {
        Some(unkind) => error(id, &unkind),
        None => with_id(response.into_json().into(), id),
    })
}

/// The same answer with the id that 0 stood in for.
pub(crate) fn with_id(json: Box<str>, id: &RequestId) -> Box<str> {
    match (id, json.strip_prefix(STAND_IN_PREFIX)) {
        (RequestId::Other(digits), Some(rest)) => format!(r#"{{"jsonrpc":"2.0","id":{digits},{rest}"#).into(),
        // Every other id is in it already.
        _ => json,
    }
}

/// The error as one of ours, if it is jsonrpsee's own and does not say its kind.
fn without_kind(json: &RawValue) -> Option<RpcError> {
    #[derive(Deserialize)]
    struct Answer<'a> {
        #[serde(borrow)]
        error: ErrorObject<'a>,
    }
    let error = serde_json::from_str::<Answer>(json.get()).ok()?.error;
    let data: Option<serde_json::Value> = error.data().and_then(|raw| serde_json::from_str(raw.get()).ok());
    if data.as_ref().is_some_and(|data| data["kind"].is_string()) {
        return None;
    }
    let kind = match error.code() {
        -32700 => ErrorKind::ParseError,
        -32600 => ErrorKind::InvalidRequest,
        -32601 => ErrorKind::MethodNotFound,
        -32602 => ErrorKind::InvalidParams,
        // jsonrpsee uses some of our codes for its own failures, and every one of those is a defect here.
        _ => ErrorKind::Internal,
    };
    let mut unkind = RpcError::new(kind, error.message());
    if kind == ErrorKind::InvalidParams {
        unkind = unkind.with("param", "params");
    }
    Some(match data {
        Some(data) => unkind.with("detail", data),
        None => unkind,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use jsonrpsee::ResponsePayload;
    use jsonrpsee::types::ErrorCode;

    #[test]
    fn a_negative_id_goes_through_jsonrpsee_and_back() {
        let id = RequestId::Other("-5".into());
        let response = MethodResponse::response(jsonrpsee_id(&id), ResponsePayload::success("x"), usize::MAX);
        assert_eq!(text(response, &id).as_deref(), Some(r#"{"jsonrpc":"2.0","id":-5,"result":"x"}"#));
        let ours = raw_response(&jsonrpsee_id(&id), &Serialized("x")).expect("it prints");
        assert_eq!(text(ours, &id).as_deref(), Some(r#"{"jsonrpc":"2.0","id":-5,"result":"x"}"#));
    }

    #[test]
    fn an_error_without_a_kind_gets_one_and_one_with_a_kind_is_left_alone() {
        let id = RequestId::Number(3);
        let bare = MethodResponse::error(jsonrpsee_id(&id), ErrorCode::InternalError);
        assert_eq!(
            text(bare, &id).as_deref(),
            Some(
                r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"Internal error","data":{"kind":"internal"}}}"#
            )
        );
        let ours = ErrorObject::owned(-32001, "no", Some(serde_json::json!({ "kind": "not_found" })));
        let json = MethodResponse::error(jsonrpsee_id(&id), ours);
        assert!(text(json, &id).expect("an answer").contains(r#""data":{"kind":"not_found"}"#));
    }
}
