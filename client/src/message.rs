//! The daemon's messages: answers to calls, and pushes of subscriptions.

use crate::call_error::CallError;
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use toold_proto::RpcError;

/// An answer. An error about a message that could not be read has no id.
#[derive(Debug)]
pub struct Answer {
    pub id: Option<u64>,
    pub outcome: Result<Box<RawValue>, RpcError>,
}

/// A message from the daemon: the answer to a call, or a push of a subscription.
#[derive(Debug)]
pub enum Message {
    Answer(Answer),
    Push(Push),
}

/// A push: its subscription, and the exact bytes of its content. An error ends the subscription.
#[derive(Debug)]
pub struct Push {
    pub subscription: u64,
    pub outcome: Result<Box<RawValue>, Box<RawValue>>,
}

#[derive(Deserialize)]
struct RawMessage<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<&'a RawValue>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<ErrorObject>,
}

#[derive(Deserialize)]
struct PushParams<'a> {
    subscription: u64,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// An error object as any JSON-RPC server may send it: `data` can be anything, or missing.
#[derive(Deserialize)]
pub struct ErrorObject {
    code: i32,
    message: String,
    #[serde(default)]
    data: Value,
}

/// Reads one line. None: it is empty, or a notification that was not requested.
pub fn read_message(line: &[u8]) -> Result<Option<Message>, CallError> {
    if line.iter().all(u8::is_ascii_whitespace) {
        return Ok(None);
    }
    let line: RawMessage<'_> = serde_json::from_slice(line)
        .map_err(|e| CallError::Protocol(format!("the daemon's answer is not JSON-RPC: {e}")))?;
    if line.method.is_some() {
        return Ok(line.params.and_then(read_push).map(Message::Push));
    }
    let outcome = match (line.error, line.result) {
        (Some(error), _) => Err(rpc_error(error)),
        (None, Some(result)) => Ok(result.to_owned()),
        (None, None) => Ok(RawValue::NULL.to_owned()),
    };
    Ok(Some(Message::Answer(Answer { id: line.id.and_then(|id| id.get().parse().ok()), outcome })))
}

/// Reads a notification of a subscription. Any other was not requested.
fn read_push(params: &RawValue) -> Option<Push> {
    let params: PushParams<'_> = serde_json::from_str(params.get()).ok()?;
    let outcome = match (params.result, params.error) {
        (Some(result), _) => Ok(result.to_owned()),
        (None, Some(error)) => Err(error.to_owned()),
        (None, None) => return None,
    };
    Some(Push { subscription: params.subscription, outcome })
}

/// Converts an error object of the wire.
pub fn rpc_error(error: ErrorObject) -> RpcError {
    let data = match error.data {
        Value::Object(map) => map,
        Value::Null => Map::new(),
        other => Map::from_iter([("detail".to_owned(), other)]),
    };
    RpcError { code: error.code, message: error.message, data }
}
