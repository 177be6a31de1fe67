//! Requests and answers of `toold-fetch`: one JSON document on its stdin, one on its stdout.

use crate::template::{ExtractTemplate, SearchTemplate};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;
use toold_proto::RpcError;

/// Environment variable in which the daemon passes a provider's key. The request names it; the key is on no disk.
pub const KEY_VAR: &str = "TOOLD_WEB_KEY";

/// Most addresses of one `web_extract`.
pub const MAX_URLS: usize = 10;

pub const DEFAULT_TIMEOUT_MS: u64 = 20_000;
pub const DEFAULT_MAX_BYTES: u64 = 5 << 20;

/// The request of `toold-fetch search`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchRequest {
    pub query: String,
    #[serde(default = "default_limit")]
    pub limit: u32,
    pub provider: SearchTemplate,
    /// Name of the environment variable that has the key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    #[serde(default = "default_max_bytes")]
    pub max_bytes: u64,
}

/// The request of `toold-fetch extract`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtractRequest {
    pub urls: Vec<String>,
    /// Characters of a page in the answer; the whole text goes to a file in `out_dir`.
    #[serde(default = "default_char_limit")]
    pub char_limit: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub out_dir: Option<PathBuf>,
    /// `host:port` that may be private or have another port than 80 and 443.
    #[serde(default)]
    pub allow: Vec<String>,
    /// `host`, with all below it, or `host:port`.
    #[serde(default)]
    pub deny: Vec<String>,
    #[serde(default = "default_max_bytes")]
    pub max_bytes: u64,
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    #[serde(default)]
    pub provider: ExtractProvider,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_env: Option<String>,
}

/// The party that fetches a page.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExtractProvider {
    #[default]
    Direct,
    Template(Box<ExtractTemplate>),
}

/// The answer of `web_search`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SearchResponse {
    pub data: WebData,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebData {
    pub web: Vec<WebHit>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WebHit {
    pub url: String,
    pub title: String,
    pub description: String,
}

/// The answer of `web_extract`: pages in the order of the addresses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExtractResponse {
    pub results: Vec<Page>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Page {
    pub url: String,
    pub final_url: String,
    pub title: String,
    /// Markdown, or the text as it came if it was not HTML.
    pub content: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Kind of the error, as in `data.kind` of toold's errors.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error_kind: Option<String>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub truncated: bool,
    /// Characters of the whole text, if `content` is not all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_chars: Option<usize>,
    /// File with the whole text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
}

/// The answer of a request that failed as a whole.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorResponse {
    pub error: ErrorBody,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ErrorBody {
    pub kind: String,
    pub message: String,
    #[serde(default)]
    pub data: Map<String, Value>,
}

impl From<RpcError> for ErrorResponse {
    fn from(error: RpcError) -> ErrorResponse {
        let mut data = error.data;
        let kind = data.remove("kind").and_then(|kind| kind.as_str().map(String::from));
        let kind = kind.unwrap_or_else(|| "internal".into());
        ErrorResponse { error: ErrorBody { kind, message: error.message, data } }
    }
}

impl From<ErrorResponse> for RpcError {
    fn from(response: ErrorResponse) -> RpcError {
        let ErrorBody { kind, message, data } = response.error;
        let kind = serde_json::from_value(Value::String(kind)).unwrap_or(toold_proto::ErrorKind::Internal);
        data.into_iter().fold(RpcError::new(kind, message), |error, (key, value)| error.with(&key, value))
    }
}

fn default_limit() -> u32 {
    5
}

fn default_char_limit() -> usize {
    15_000
}

fn default_timeout_ms() -> u64 {
    DEFAULT_TIMEOUT_MS
}

fn default_max_bytes() -> u64 {
    DEFAULT_MAX_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;
    use toold_proto::ErrorKind;

    #[test]
    fn an_error_is_the_same_after_its_way_through_the_program() {
        let error = RpcError::new(ErrorKind::Denied, "no").with("reason", "private_address");
        let text = serde_json::to_string(&ErrorResponse::from(error.clone())).expect("data");
        assert_eq!(text, r#"{"error":{"kind":"denied","message":"no","data":{"reason":"private_address"}}}"#);
        let back: ErrorResponse = serde_json::from_str(&text).expect("an error");
        assert_eq!(RpcError::from(back), error);
    }

    #[test]
    fn a_request_has_the_defaults_of_the_contract() {
        let request: ExtractRequest = serde_json::from_str(r#"{"urls": ["https://a.test"]}"#).expect("a request");
        let found = (request.char_limit, request.max_bytes, request.timeout_ms, request.provider);
        assert_eq!(found, (15_000, 5_242_880, 20_000, ExtractProvider::Direct));
        assert!(serde_json::from_str::<ExtractRequest>(r#"{"urls": [], "cookies": true}"#).is_err());
    }
}
