//! The mode `search`: one call of the provider, its answer as hits.

use crate::client::{Client, status_error};
use serde_json::Value;
use std::time::Duration;
use tokio::time::timeout;
use toold_fetch_templates::{SearchRequest, SearchResponse, WebData};
use toold_proto::{ErrorKind, RpcError};

pub async fn run(client: &Client, request: &SearchRequest, key: Option<&str>) -> Result<SearchResponse, RpcError> {
    let time = Duration::from_millis(request.timeout_ms);
    timeout(time, search(client, request, key)).await.unwrap_or_else(|_| {
        let message = format!("the search provider did not answer within {} ms", request.timeout_ms);
        Err(RpcError::new(ErrorKind::Unavailable, message).with("reason", "timeout"))
    })
}

async fn search(client: &Client, request: &SearchRequest, key: Option<&str>) -> Result<SearchResponse, RpcError> {
    let template = &request.provider;
    let call = template.render(&request.query, request.limit, key)?;
    let mut fetched = client.call(&call, request.max_bytes).await?;
    if let Some(error) = status_error("the search provider", &fetched, &template.hints) {
        return Err(error);
    }
    let body = fetched.decoded(request.max_bytes)?;
    let answer: Value = serde_json::from_slice(&body).map_err(|e| {
        let message = format!("the search provider's answer is not JSON: {e}");
        RpcError::new(ErrorKind::Unavailable, message).with("reason", "unexpected_answer")
    })?;
    Ok(SearchResponse { data: WebData { web: template.read(&answer, request.limit)? } })
}
