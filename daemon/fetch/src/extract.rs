//! The mode `extract`: pages in parallel, in the order of their addresses; an error of one is its own.

use crate::client::{Client, Fetched, status_error};
use crate::extractor;
use crate::page::{Effort, PageSource, PageText};
use crate::target::{Rules, Target};
use crate::whole_text;
use hyper::header;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;
use tokio::time::timeout_at;
use toold_fetch_templates::{ExtractProvider, ExtractRequest, ExtractResponse, ExtractTemplate, MAX_URLS, Page};
use toold_proto::{ErrorKind, RpcError};

/// Pages that are extracted at the same time: each has its own memory.
const MAX_EXTRACTORS: usize = 3;

struct Job {
    client: Client,
    request: ExtractRequest,
    rules: Rules,
    key: Option<String>,
    extractors: Semaphore,
    deadline: Instant,
}

pub async fn run(client: Client, request: ExtractRequest, key: Option<String>) -> Result<ExtractResponse, RpcError> {
    if request.urls.is_empty() || request.urls.len() > MAX_URLS {
        return Err(RpcError::param(
            "urls",
            format!("must have 1 to {MAX_URLS} addresses, not {}", request.urls.len()),
        ));
    }
    let rules = Rules::parse(&request.allow, &request.deny)?;
    let deadline = Instant::now() + Duration::from_millis(request.timeout_ms);
    let extractors = Semaphore::new(MAX_EXTRACTORS);
    let job = Arc::new(Job { client, request, rules, key, extractors, deadline });
    let started = job.request.urls.iter().cloned().map(|url| {
        let job = job.clone();
        tokio::spawn(async move { job.page(url).await })
    });
    let started: Vec<_> = started.collect();
    let mut results = Vec::new();
    for page in started {
        results.push(page.await.map_err(|e| RpcError::new(ErrorKind::Internal, format!("a page failed: {e}")))?);
    }
    Ok(ExtractResponse { results })
}

impl Job {
    async fn page(&self, url: String) -> Page {
        let found = timeout_at(self.deadline.into(), self.fetch(&url)).await.unwrap_or_else(|_| {
            let message = format!("the page was not there within {} ms", self.request.timeout_ms);
            Err(RpcError::new(ErrorKind::Unavailable, message).with("reason", "timeout"))
        });
        match found {
            Ok((final_url, text)) => whole_text::page(url, final_url, text, &self.request),
            Err(error) => Page {
                final_url: url.clone(),
                url,
                error_kind: error.kind().map(|kind| kind.name().to_string()),
                error: Some(error.message),
                ..Page::default()
            },
        }
    }

    async fn fetch(&self, url: &str) -> Result<(String, PageText), RpcError> {
        let target = Target::parse(url)?;
        match &self.request.provider {
            ExtractProvider::Direct => {
                let fetched = self.client.page(target, &self.rules, self.request.max_bytes).await?;
                self.extract(fetched).await
            }
            ExtractProvider::Template(template) => {
                // The provider resolves the name; a private address or name is not sent to it.
                self.rules.check_target(&target)?;
                self.by_provider(template, url).await
            }
        }
    }

    async fn extract(&self, fetched: Fetched) -> Result<(String, PageText), RpcError> {
        if let Some(error) = status_error("the server", &fetched, &BTreeMap::new()) {
            return Err(error);
        }
        let source = PageSource {
            url: fetched.target.url.to_string(),
            content_type: fetched.header(header::CONTENT_TYPE),
            content_encoding: fetched.header(header::CONTENT_ENCODING),
            max_bytes: self.request.max_bytes,
            effort: Effort::Article,
        };
        let _slot = self.extractors.acquire().await.map_err(|e| RpcError::new(ErrorKind::Internal, e.to_string()))?;
        let url = source.url.clone();
        // A little earlier than the page's time is over, so that its own error is in the answer.
        let deadline = self.deadline.checked_sub(extractor::MARGIN).unwrap_or(self.deadline);
        Ok((url, extractor::extract(source, &fetched.body, deadline).await?))
    }

    async fn by_provider(&self, template: &ExtractTemplate, url: &str) -> Result<(String, PageText), RpcError> {
        let call = template.render(url, self.key.as_deref())?;
        let mut fetched = self.client.call(&call, self.request.max_bytes).await?;
        if let Some(error) = status_error("the provider", &fetched, &template.hints) {
            return Err(error);
        }
        let body = fetched.decoded(self.request.max_bytes)?;
        let answer: Value = serde_json::from_slice(&body)
            .map_err(|e| RpcError::new(ErrorKind::Unavailable, format!("the provider's answer is not JSON: {e}")))?;
        let page = template.read(&answer)?;
        let final_url = page.final_url.unwrap_or_else(|| url.to_string());
        Ok((final_url, PageText { title: page.title, content: page.content }))
    }
}
