//! Every workaround around jsonrpsee, each with its reason. jsonrpsee is our method table and our subscription sink;
//! framing, batches and limits are our own. It was not made for that, so:
//!
//! 1. Finished answers pass through it unread (`raw_response`, `answer_of`). It would serialize a result a second
//!    time and parse it to check that it is JSON. Without that, and with each process written as it is made, a `list` of
//!    1,000 running processes fell from 8.0 to 4.4 ms, a `poll` from 57,810 to 40,762 instructions.
//! 2. Ids it cannot hold get a stand-in (`jsonrpsee_id`, `restore_id`). Its `Id` has no negative and no huge numbers.
//! 3. The sink of a subscription with such an id rewrites the first message (`subscription_sink`). That answer does not
//!    come back through the caller.
//! 4. An unsubscribe is retried (`unsubscribe`). It answers a subscription a moment before it knows it.
//! 5. Unsubscribe takes its parameter by position (`unsubscribe_params`). Every method of ours takes them by name.
//! 6. Its own errors get a `data.kind` (`with_kind`). Every error of ours has one.

use super::delivery::{Answer, Receipt};
use super::message::RequestId;
use super::response::{self, WriteJson};
use jsonrpsee::types::{ErrorObject, Id, Params};
use jsonrpsee::{ConnectionId, Extensions, MethodResponse, MethodSink};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::time::Duration;
use tokio::sync::mpsc;
use toold_proto::{ErrorKind, RpcError};

/// The start of every response of jsonrpsee to a stand-in id.
const STAND_IN_PREFIX: &str = r#"{"jsonrpc":"2.0","id":0,"#;
/// The capacity of a new answer: enough for most.
const INITIAL_CAPACITY: usize = 1024;
/// Retries of an unsubscribe for a subscription that jsonrpsee does not know yet.
const UNSUBSCRIBE_RETRIES: usize = 5;
const UNSUBSCRIBE_RETRY_DELAY: Duration = Duration::from_millis(1);

/// A complete answer, carried in the extensions of an empty response.
#[derive(Clone)]
struct RawResponse {
    text: String,
    receipt: Option<Receipt>,
}

/// Writes the whole answer now and hides it in a response that jsonrpsee does not look into.
pub fn raw_response(id: &Id<'_>, result: &impl WriteJson) -> serde_json::Result<MethodResponse> {
    let mut text = Vec::with_capacity(INITIAL_CAPACITY);
    text.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    serde_json::to_writer(&mut text, id)?;
    text.extend_from_slice(br#","result":"#);
    result.write_json(&mut text)?;
    text.push(b'}');
    let text = String::from_utf8(text).map_err(serde::ser::Error::custom)?;
    let mut carrier = Extensions::new();
    carrier.insert(RawResponse { text, receipt: result.receipt() });
    Ok(MethodResponse::notification().with_extensions(carrier))
}

/// Returns the answer of a response, with the caller's own id and, in an error, `data.kind`. None: the response was sent
/// already, as that of a subscription is, through its sink.
pub(crate) fn answer_of(mut response: MethodResponse, id: &RequestId) -> Option<Answer> {
    if let Some(RawResponse { text, receipt }) = response.extensions_mut().remove() {
        return Some(Answer { text: restore_id(text.into(), id), receipts: receipt.into_iter().collect() });
    }
    if !response.is_method_call() {
        return None;
    }
    let text = match response.is_error().then(|| with_kind(response.as_json())).flatten() {
        Some(error) => response::error(id, &error),
        None => restore_id(response.into_json().into(), id),
    };
    Some(text.into())
}

/// Returns the id for jsonrpsee. 0 stands in for one that it cannot hold; `restore_id` puts the real one back.
pub(crate) fn jsonrpsee_id(id: &RequestId) -> Id<'static> {
    match id {
        RequestId::Null => Id::Null,
        RequestId::Number(number) => Id::Number(*number),
        RequestId::Text(text) => Id::Str(text.clone().into()),
        RequestId::Other(_) => Id::Number(0),
    }
}

/// Puts the caller's id in the place of the stand-in.
fn restore_id(json: Box<str>, id: &RequestId) -> Box<str> {
    match (id, json.strip_prefix(STAND_IN_PREFIX)) {
        (RequestId::Other(digits), Some(rest)) => format!(r#"{{"jsonrpc":"2.0","id":{digits},{rest}"#).into(),
        // jsonrpsee holds every other id itself.
        _ => json,
    }
}

/// Makes the sink for the answer and the pushes of a subscription. The answer does not come back through the caller, so
/// for a stand-in id a task restores the id on the way; only the first message is the answer.
pub(crate) fn subscription_sink(pushes: &mpsc::Sender<Box<RawValue>>, id: &RequestId) -> MethodSink {
    let RequestId::Other(_) = id else { return MethodSink::new(pushes.clone()) };
    let (sender, mut receiver) = mpsc::channel::<Box<RawValue>>(pushes.max_capacity());
    let (pushes, id) = (pushes.clone(), id.clone());
    tokio::spawn(async move {
        let mut first = true;
        loop {
            let json = tokio::select! {
                json = receiver.recv() => json,
                () = pushes.closed() => None,
            };
            let Some(json) = json else { break };
            let json = if std::mem::take(&mut first) {
                RawValue::from_string(restore_id(json.into(), &id).into()).ok()
            } else {
                Some(json)
            };
            if let Some(json) = json {
                let _ = pushes.send(json).await;
            }
        }
    });
    MethodSink::new(sender)
}

/// Ends a subscription. jsonrpsee answers a subscription before it enters it into its table: a client that unsubscribes
/// at once would get `false`. The only sign of that is the text of the response.
pub(crate) async fn unsubscribe(
    callback: impl Fn(Id<'static>, Params<'static>, ConnectionId, usize, Extensions) -> MethodResponse,
    id: Id<'static>,
    params: Params<'static>,
    connection: ConnectionId,
    extensions: Extensions,
) -> MethodResponse {
    for _ in 0..UNSUBSCRIBE_RETRIES {
        let response = callback(id.clone(), params.clone(), connection, usize::MAX, extensions.clone());
        if !response.as_json().get().ends_with(r#""result":false}"#) {
            return response;
        }
        tokio::time::sleep(UNSUBSCRIBE_RETRY_DELAY).await;
    }
    callback(id, params, connection, usize::MAX, extensions)
}

/// Turns the named parameter of an unsubscribe into the list that jsonrpsee reads. A list is taken too.
pub(crate) fn unsubscribe_params(params: Option<&str>) -> Result<String, RpcError> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Named {
        subscription: u64,
    }
    let text = params.unwrap_or("{}");
    let (number, problem) = if text.starts_with('[') {
        (serde_json::from_str::<[u64; 1]>(text).map(|[number]| number), "is the number that was answered")
    } else {
        (serde_json::from_str::<Named>(text).map(|named| named.subscription), "and nothing else must be given")
    };
    number.map(|number| format!("[{number}]")).map_err(|e| {
        let detail = e.to_string();
        let detail = detail.split(" at line ").next().unwrap_or_default();
        RpcError::param("subscription", format!("{problem}: {detail}"))
    })
}

/// Returns an error of jsonrpsee's own as one with a kind. None: the error has a kind.
fn with_kind(json: &RawValue) -> Option<RpcError> {
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
        // jsonrpsee uses some of our codes for its own failures. Every one of those is a defect of toold.
        _ => ErrorKind::Internal,
    };
    let mut error = RpcError::new(kind, error.message());
    if kind == ErrorKind::InvalidParams {
        error = error.with("param", "params");
    }
    Some(match data {
        Some(data) => error.with("detail", data),
        None => error,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::wire::Serialized;
    use jsonrpsee::ResponsePayload;
    use jsonrpsee::types::ErrorCode;

    fn response_text(response: MethodResponse, id: &RequestId) -> Option<Box<str>> {
        answer_of(response, id).map(|answer| answer.text)
    }

    #[test]
    fn a_negative_id_goes_through_jsonrpsee_and_back() {
        let id = RequestId::Other("-5".into());
        let response = MethodResponse::response(jsonrpsee_id(&id), ResponsePayload::success("x"), usize::MAX);
        assert_eq!(response_text(response, &id).as_deref(), Some(r#"{"jsonrpc":"2.0","id":-5,"result":"x"}"#));
        let ours = raw_response(&jsonrpsee_id(&id), &Serialized("x")).expect("it prints");
        assert_eq!(response_text(ours, &id).as_deref(), Some(r#"{"jsonrpc":"2.0","id":-5,"result":"x"}"#));
    }

    #[test]
    fn an_error_without_a_kind_gets_one_and_one_with_a_kind_is_left_alone() {
        let id = RequestId::Number(3);
        let bare = MethodResponse::error(jsonrpsee_id(&id), ErrorCode::InternalError);
        assert_eq!(
            response_text(bare, &id).as_deref(),
            Some(
                r#"{"jsonrpc":"2.0","id":3,"error":{"code":-32603,"message":"Internal error","data":{"kind":"internal"}}}"#
            )
        );
        let ours = ErrorObject::owned(-32001, "no", Some(serde_json::json!({ "kind": "not_found" })));
        let json = MethodResponse::error(jsonrpsee_id(&id), ours);
        assert!(response_text(json, &id).expect("an answer").contains(r#""data":{"kind":"not_found"}"#));
    }
}
