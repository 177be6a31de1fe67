//! Answers as text: results that write themselves, and error answers.

use super::delivery::{Answer, Receipt};
use super::message::RequestId;
use serde::Serialize;
use toold_proto::RpcError;

/// A result that writes itself as JSON into an answer.
pub trait WriteJson {
    fn write_json(&self, out: &mut Vec<u8>) -> serde_json::Result<()>;

    /// Returns what the delivery of the answer causes.
    fn receipt(&self) -> Option<Receipt> {
        None
    }
}

/// A result that serde writes.
pub struct Serialized<T>(pub T);

impl<T: Serialize> WriteJson for Serialized<T> {
    fn write_json(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(out, &self.0)
    }
}

/// A result that serde writes, and the effect of its delivery.
pub struct WithReceipt<T> {
    pub result: T,
    pub receipt: Option<Receipt>,
}

impl<T: Serialize> WriteJson for WithReceipt<T> {
    fn write_json(&self, out: &mut Vec<u8>) -> serde_json::Result<()> {
        serde_json::to_writer(out, &self.result)
    }

    fn receipt(&self) -> Option<Receipt> {
        self.receipt.clone()
    }
}

/// Writes an error answer.
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

/// Writes an answer without a value.
pub(crate) fn null(id: &RequestId) -> Box<str> {
    let id = serde_json::to_string(id).expect("text and integers print");
    format!(r#"{{"jsonrpc":"2.0","id":{id},"result":null}}"#).into()
}

/// Writes an error answer to a message whose id is not known.
pub(crate) fn error_without_id(error: &RpcError) -> Box<str> {
    self::error(&RequestId::Null, error)
}

/// Joins the answers of a batch, in its order. None: the batch had only notifications.
pub(crate) fn batch(answers: Vec<Option<Answer>>) -> Option<Answer> {
    let (mut texts, mut receipts) = (Vec::new(), Vec::new());
    for answer in answers.into_iter().flatten() {
        texts.push(answer.text);
        receipts.extend(answer.receipts);
    }
    (!texts.is_empty()).then(|| Answer { text: format!("[{}]", texts.join(",")).into(), receipts })
}
