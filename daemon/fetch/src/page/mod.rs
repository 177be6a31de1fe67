//! A page as text: from the bytes of an answer to Markdown. Pure, and slow or large for a hostile page, so
//! `crate::extractor` runs it in a process of its own.

pub mod charset;
pub mod decode;
pub mod html;
pub mod plain;

use serde::{Deserialize, Serialize};
use toold_proto::{ErrorKind, RpcError};

/// The bytes of an answer, but for the bytes: headers that describe them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSource {
    pub url: String,
    pub content_type: Option<String>,
    pub content_encoding: Option<String>,
    /// Most bytes after decompression.
    pub max_bytes: u64,
    pub effort: Effort,
}

/// The care that HTML gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Effort {
    /// Finds the article and makes Markdown of it.
    Article,
    /// Removes the tags, in one pass: for a page on which the other effort failed.
    Plain,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PageText {
    pub title: String,
    pub content: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MediaKind {
    Html,
    Text,
}

pub fn extract(source: &PageSource, body: Vec<u8>) -> Result<PageText, RpcError> {
    let media_type = source.content_type.as_deref().map(media_type);
    // Before decompression: a PDF or a video is refused without the work.
    let declared = media_type.as_deref().and_then(declared_kind).transpose()?;
    let body = decode::decode(source.content_encoding.as_deref().unwrap_or(""), body, source.max_bytes)?;
    let kind = match declared {
        Some(kind) => kind,
        None => sniff(&body)?,
    };
    let text = charset::decode_text(source.content_type.as_deref(), &body);
    drop(body);
    match kind {
        MediaKind::Text if has_nul(&text) => Err(unsupported("binary data, though it is called text")),
        MediaKind::Text => Ok(PageText { title: String::new(), content: text }),
        MediaKind::Html => Ok(html::extract(&text, &source.url, source.effort)),
    }
}

/// Returns the type and subtype, without parameters.
fn media_type(content_type: &str) -> String {
    content_type.split(';').next().unwrap_or("").trim().to_ascii_lowercase()
}

/// Returns the kind of a media type; nothing for one that names no kind, an error for one that is not text.
fn declared_kind(media_type: &str) -> Option<Result<MediaKind, RpcError>> {
    const TEXTS: [&str; 9] = [
        "application/json",
        "application/xml",
        "application/javascript",
        "application/ecmascript",
        "application/x-ndjson",
        "application/jsonl",
        "application/yaml",
        "application/toml",
        "application/x-sh",
    ];
    match media_type {
        "" | "application/octet-stream" | "binary/octet-stream" => None,
        "text/html" | "application/xhtml+xml" => Some(Ok(MediaKind::Html)),
        "application/pdf" | "application/x-pdf" => Some(Err(unsupported("a PDF"))),
        text if text.starts_with("text/") || TEXTS.contains(&text) => Some(Ok(MediaKind::Text)),
        text if text.ends_with("+json") || text.ends_with("+xml") || text.ends_with("+yaml") => {
            Some(Ok(MediaKind::Text))
        }
        other => Some(Err(unsupported(&format!("`{other}`")))),
    }
}

fn sniff(body: &[u8]) -> Result<MediaKind, RpcError> {
    let start = body.trim_ascii_start();
    let head = start[..start.len().min(512)].to_ascii_lowercase();
    if head.starts_with(b"%pdf-") {
        return Err(unsupported("a PDF"));
    }
    let is_html = [&b"<!doctype html"[..], b"<html", b"<head", b"<body"].iter().any(|tag| head.starts_with(tag));
    if is_html {
        return Ok(MediaKind::Html);
    }
    match std::str::from_utf8(body) {
        Ok(text) if !has_nul(text) => Ok(MediaKind::Text),
        _ => Err(unsupported("data of no known type")),
    }
}

fn has_nul(text: &str) -> bool {
    text.contains('\0')
}

fn unsupported(subject: &str) -> RpcError {
    let message = format!("the page is {subject}; only HTML, text, JSON and XML are extracted");
    RpcError::new(ErrorKind::Unavailable, message).with("reason", "content_type")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(content_type: Option<&str>, body: &[u8]) -> Result<PageText, RpcError> {
        let source = PageSource {
            url: "https://a.test/x".into(),
            content_type: content_type.map(String::from),
            content_encoding: None,
            max_bytes: 1 << 20,
            effort: Effort::Article,
        };
        extract(&source, body.to_vec())
    }

    #[test]
    fn text_json_and_xml_are_passed_through() {
        for content_type in
            ["text/plain", "application/json", "Application/LD+json; charset=utf-8", "image/svg+xml", "text/csv"]
        {
            let page = page(Some(content_type), b"{\"a\": 1}\n").expect(content_type);
            assert_eq!(page.content, "{\"a\": 1}\n");
        }
    }

    #[test]
    fn other_types_are_refused_by_name() {
        for (content_type, body, named) in [
            (Some("application/pdf"), &b"%PDF-1.7"[..], "a PDF"),
            (None, b"%PDF-1.7", "a PDF"),
            (Some("application/octet-stream"), b"\x7fELF\0\0\xff", "data of no known type"),
            (Some("image/png"), b"\x89PNG", "`image/png`"),
            (Some("text/plain"), b"a\0b", "binary data"),
        ] {
            let error = page(content_type, body).expect_err(named);
            assert!(error.message.contains(named), "{}", error.message);
        }
    }

    #[test]
    fn an_answer_without_a_type_is_looked_at() {
        assert_eq!(page(None, b"just text").expect("text").content, "just text");
        let html = page(None, b"\n<!DOCTYPE html><title>T</title><p>Body text").expect("html");
        assert_eq!((html.title.as_str(), html.content.trim()), ("T", "Body text"));
    }
}
