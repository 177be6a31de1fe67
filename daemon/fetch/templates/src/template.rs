//! Templates: the request that a provider takes, and the places of its answer, as JSON pointers.

use crate::render::{self, HttpCall};
use crate::request::WebHit;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;
use toold_proto::{ErrorKind, RpcError};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum HttpMethod {
    #[default]
    Get,
    Post,
}

/// A search provider. `{query}`, `{limit}` and `{key}` are filled in, in `url` percent-encoded; a string of `body` that
/// is only `{limit}` becomes a number. A `body` that is a text is sent as it is, its values escaped as in JSON.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SearchTemplate {
    #[serde(default)]
    pub method: HttpMethod,
    pub url: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Place of the array of results in the answer.
    pub results: String,
    /// Place of the address in a result.
    #[serde(default = "default_link")]
    pub link: String,
    #[serde(default = "default_title")]
    pub title: String,
    #[serde(default = "default_snippet")]
    pub snippet: String,
    /// Place of the reasons for an answer without results: engines that did not respond.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problems: Option<String>,
    /// Largest `{limit}` that the provider takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_limit: Option<u32>,
    /// Remedies by HTTP status.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hints: BTreeMap<String, String>,
}

/// A provider that fetches pages itself. `{url}` and `{key}` are filled in; one call per page.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExtractTemplate {
    #[serde(default)]
    pub method: HttpMethod,
    pub url: String,
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Place of the text in the answer.
    pub content: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub final_url: Option<String>,
    /// Place of the reason for an answer without text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hints: BTreeMap<String, String>,
}

/// A page as a provider gave it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Extracted {
    pub title: String,
    pub final_url: Option<String>,
    pub content: String,
}

fn default_link() -> String {
    "/url".into()
}

fn default_title() -> String {
    "/title".into()
}

fn default_snippet() -> String {
    "/description".into()
}

impl SearchTemplate {
    /// Fills in the template. A value is never searched for placeholders: a query may contain `{key}`.
    pub fn render(&self, query: &str, limit: u32, key: Option<&str>) -> Result<HttpCall, RpcError> {
        let limit = limit.min(self.max_limit.unwrap_or(u32::MAX)).to_string();
        let mut values = vec![("query", query), ("limit", limit.as_str())];
        values.extend(key.map(|key| ("key", key)));
        let parts = (self.method, self.url.as_str(), &self.headers, self.body.as_ref());
        render::call(parts, &values, "web.search.key_env")
    }

    /// Reads the results of an answer. A result without an address is left out.
    pub fn read(&self, answer: &Value, limit: u32) -> Result<Vec<WebHit>, RpcError> {
        let Some(results) = answer.pointer(&self.results).and_then(Value::as_array) else {
            let message = format!("the search provider's answer has no array at `{}`", self.results);
            return Err(RpcError::new(ErrorKind::Unavailable, message).with("reason", "unexpected_answer"));
        };
        let hits = results.iter().filter_map(|result| {
            let url = text_at(result, &self.link)?;
            let title = text_at(result, &self.title).unwrap_or_default();
            let description = text_at(result, &self.snippet).unwrap_or_default();
            Some(WebHit { url, title, description })
        });
        let hits: Vec<WebHit> = hits.take(limit as usize).collect();
        match self.problems.as_ref().and_then(|place| answer.pointer(place)).map(listed) {
            Some(problems) if hits.is_empty() && !problems.is_empty() => {
                let message = format!("the search provider found nothing, and some of it did not answer: {problems}");
                Err(RpcError::new(ErrorKind::Unavailable, message).with("reason", "no_engine_answered"))
            }
            _ => Ok(hits),
        }
    }

    /// Checks what can be checked before a call, for the config key `key`.
    pub fn check(&self, key: &str) -> Result<(), String> {
        let pointers =
            [("results", &self.results), ("link", &self.link), ("title", &self.title), ("snippet", &self.snippet)];
        check_url(key, &self.url)?;
        pointers.into_iter().try_for_each(|(name, pointer)| check_pointer(&format!("{key}.{name}"), pointer))
    }
}

impl ExtractTemplate {
    pub fn render(&self, url: &str, key: Option<&str>) -> Result<HttpCall, RpcError> {
        let mut values = vec![("url", url)];
        values.extend(key.map(|key| ("key", key)));
        let parts = (self.method, self.url.as_str(), &self.headers, self.body.as_ref());
        render::call(parts, &values, "web.extract.key_env")
    }

    pub fn read(&self, answer: &Value) -> Result<Extracted, RpcError> {
        let at = |place: &Option<String>| place.as_ref().and_then(|place| text_at(answer, place));
        match text_at(answer, &self.content) {
            Some(content) => {
                Ok(Extracted { title: at(&self.title).unwrap_or_default(), final_url: at(&self.final_url), content })
            }
            None => {
                let reason = at(&self.error).unwrap_or_else(|| format!("its answer has no text at `{}`", self.content));
                Err(RpcError::new(ErrorKind::Unavailable, format!("the provider gave no page: {reason}")))
            }
        }
    }

    /// Checks what can be checked before a call, for the config key `key`.
    pub fn check(&self, key: &str) -> Result<(), String> {
        check_url(key, &self.url)?;
        let given = [("title", &self.title), ("final_url", &self.final_url), ("error", &self.error)];
        let given = given.into_iter().filter_map(|(name, place)| place.as_ref().map(|place| (name, place)));
        let pointers = given.chain([("content", &self.content)]);
        pointers.into_iter().try_for_each(|(name, pointer)| check_pointer(&format!("{key}.{name}"), pointer))
    }
}

fn check_url(key: &str, url: &str) -> Result<(), String> {
    let is_http = url.starts_with("http://") || url.starts_with("https://");
    if is_http { Ok(()) } else { Err(format!("{key}.url: must begin with http:// or https://")) }
}

fn check_pointer(key: &str, pointer: &str) -> Result<(), String> {
    let is_pointer = pointer.is_empty() || pointer.starts_with('/');
    if is_pointer { Ok(()) } else { Err(format!("{key}: must be a JSON pointer, as `/results`, not `{pointer}`")) }
}

/// Returns the text at a place. An array of texts is joined: some providers give several excerpts.
fn text_at(value: &Value, pointer: &str) -> Option<String> {
    match value.pointer(pointer)? {
        Value::String(text) => Some(text.clone()),
        Value::Array(items) => {
            let texts: Vec<&str> = items.iter().filter_map(Value::as_str).collect();
            if texts.is_empty() { None } else { Some(texts.join(" … ")) }
        }
        // A number, a flag or an object is not a text of the page.
        _ => None,
    }
}

/// Prints a list of reasons on one line, whatever its shape.
fn listed(value: &Value) -> String {
    match value {
        Value::Array(items) => items.iter().map(listed).collect::<Vec<_>>().join(", "),
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn template() -> SearchTemplate {
        SearchTemplate {
            url: "https://s.test/q?q={query}&n={limit}".into(),
            results: "/a/b".into(),
            link: "/l".into(),
            title: "/t".into(),
            snippet: "/s".into(),
            problems: Some("/bad".into()),
            ..SearchTemplate::default()
        }
    }

    #[test]
    fn results_are_read_by_their_pointers_up_to_the_limit() {
        let answer = json!({"a": {"b": [
            {"l": "https://1", "t": "one", "s": ["x", "y"]}, {"t": "no address"}, {"l": "https://2", "t": null}, {"l": "https://3"}
        ]}});
        let hits = template().read(&answer, 2).expect("an array");
        let expected = [("https://1", "one", "x … y"), ("https://2", "", "")];
        let expected = expected.map(|(url, title, description)| WebHit {
            url: url.into(),
            title: title.into(),
            description: description.into(),
        });
        assert_eq!(hits, expected);
    }

    #[test]
    fn an_answer_without_results_names_the_engines_that_failed() {
        let answer = json!({"a": {"b": []}, "bad": [["google", "CAPTCHA"], ["bing", "timeout"]]});
        let error = template().read(&answer, 5).expect_err("engines failed");
        assert_eq!(error.kind(), Some(ErrorKind::Unavailable));
        assert!(error.message.ends_with("google, CAPTCHA, bing, timeout"), "{}", error.message);
        assert_eq!(template().read(&json!({"a": {"b": []}, "bad": []}), 5), Ok(vec![]));
        assert!(template().read(&json!({"a": 1}), 5).is_err());
    }

    #[test]
    fn a_template_names_the_key_that_is_wrong() {
        let wrong = SearchTemplate { results: "web.results".into(), ..template() };
        let message = wrong.check("web.search.template").expect_err("not a pointer");
        assert_eq!(message, "web.search.template.results: must be a JSON pointer, as `/results`, not `web.results`");
        let wrong = SearchTemplate { url: "ftp://x".into(), ..template() };
        assert!(wrong.check("k").expect_err("not http").starts_with("k.url"));
        assert_eq!(template().check("k"), Ok(()));
    }

    #[test]
    fn a_page_or_the_reason_for_none_is_read() {
        let template = ExtractTemplate {
            url: "https://x.test".into(),
            content: "/results/0/raw".into(),
            error: Some("/failed/0/error".into()),
            ..ExtractTemplate::default()
        };
        let page = template.read(&json!({"results": [{"raw": "# hi"}]})).expect("a page");
        assert_eq!(page, Extracted { title: String::new(), final_url: None, content: "# hi".into() });
        let error = template.read(&json!({"results": [], "failed": [{"error": "blocked"}]})).expect_err("none");
        assert_eq!(error.message, "the provider gave no page: blocked");
    }
}
