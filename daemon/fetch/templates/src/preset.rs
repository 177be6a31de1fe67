//! Presets: the providers that people use, as templates. `base` is the config key `url`, or the provider's own address.

use crate::template::{ExtractTemplate, HttpMethod, SearchTemplate};
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect()
}

/// Joins the config key `url` and a path.
fn at(base: Option<&str>, default: &str, path: &str) -> String {
    format!("{}{path}", base.unwrap_or(default).trim_end_matches('/'))
}

fn search(url: String, results: &str, snippet: &str) -> SearchTemplate {
    SearchTemplate {
        url,
        results: results.into(),
        link: "/url".into(),
        title: "/title".into(),
        snippet: snippet.into(),
        ..SearchTemplate::default()
    }
}

fn post(template: SearchTemplate, headers: &[(&str, &str)], body: Value) -> SearchTemplate {
    SearchTemplate { method: HttpMethod::Post, headers: map(headers), body: Some(body), ..template }
}

const BEARER: (&str, &str) = ("authorization", "Bearer {key}");

pub fn searxng(base: &str) -> SearchTemplate {
    let hint =
        "SearXNG answers 403 unless `search.formats` in its settings.yml lists `json`; add it there and restart it";
    SearchTemplate {
        problems: Some("/unresponsive_engines".into()),
        hints: map(&[("403", hint)]),
        ..search(at(Some(base), "", "/search?q={query}&format=json"), "/results", "/content")
    }
}

pub fn brave(base: Option<&str>) -> SearchTemplate {
    let path = "/web/search?q={query}&count={limit}&text_decorations=false";
    SearchTemplate {
        headers: map(&[("x-subscription-token", "{key}")]),
        max_limit: Some(20),
        ..search(at(base, "https://api.search.brave.com/res/v1", path), "/web/results", "/description")
    }
}

pub fn tavily(base: Option<&str>) -> SearchTemplate {
    let template = search(at(base, "https://api.tavily.com", "/search"), "/results", "/content");
    let body = json!({"query": "{query}", "max_results": "{limit}"});
    post(SearchTemplate { max_limit: Some(20), ..template }, &[BEARER], body)
}

pub fn exa(base: Option<&str>) -> SearchTemplate {
    let template = search(at(base, "https://api.exa.ai", "/search"), "/results", "/text");
    // Without `contents` a result has no text at all.
    let body = json!({"query": "{query}", "numResults": "{limit}", "contents": {"text": {"maxCharacters": 500}}});
    post(SearchTemplate { max_limit: Some(100), ..template }, &[("x-api-key", "{key}")], body)
}

pub fn firecrawl(base: Option<&str>) -> SearchTemplate {
    let template = search(at(base, "https://api.firecrawl.dev/v1", "/search"), "/data", "/description");
    let body = json!({"query": "{query}", "limit": "{limit}"});
    post(SearchTemplate { max_limit: Some(100), ..template }, &[BEARER], body)
}

pub fn firecrawl_extract(base: Option<&str>) -> ExtractTemplate {
    ExtractTemplate {
        method: HttpMethod::Post,
        url: at(base, "https://api.firecrawl.dev/v1", "/scrape"),
        headers: map(&[BEARER]),
        body: Some(json!({"url": "{url}", "formats": ["markdown"], "onlyMainContent": true})),
        content: "/data/markdown".into(),
        title: Some("/data/metadata/title".into()),
        final_url: Some("/data/metadata/url".into()),
        error: Some("/error".into()),
        hints: BTreeMap::new(),
    }
}

pub fn tavily_extract(base: Option<&str>) -> ExtractTemplate {
    ExtractTemplate {
        method: HttpMethod::Post,
        url: at(base, "https://api.tavily.com", "/extract"),
        headers: map(&[BEARER]),
        body: Some(json!({"urls": ["{url}"], "format": "markdown"})),
        content: "/results/0/raw_content".into(),
        title: Some("/results/0/title".into()),
        final_url: Some("/results/0/url".into()),
        error: Some("/failed_results/0/error".into()),
        hints: BTreeMap::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_a_valid_template_and_is_read_back_as_data() {
        let presets = [searxng("http://127.0.0.1:8888/"), brave(None), tavily(None), exa(None), firecrawl(None)];
        for preset in presets {
            assert_eq!(preset.check("k"), Ok(()));
            let call = preset.render("a b", 50, Some("K")).expect("a call");
            assert!(!format!("{call:?}").contains("{query}"), "{call:?}");
            let text = serde_json::to_string(&preset).expect("data");
            assert_eq!(serde_json::from_str::<SearchTemplate>(&text).expect("a template"), preset);
        }
        for preset in [firecrawl_extract(None), tavily_extract(Some("http://127.0.0.1:1"))] {
            assert_eq!(preset.check("k"), Ok(()));
            let text = serde_json::to_string(&preset).expect("data");
            assert_eq!(serde_json::from_str::<ExtractTemplate>(&text).expect("a template"), preset);
        }
    }

    #[test]
    fn the_limit_is_clipped_to_that_of_the_provider() {
        let call = brave(None).render("x", 50, Some("K")).expect("a call");
        assert!(call.url.contains("count=20"), "{}", call.url);
        let call = searxng("http://127.0.0.1:8888/").render("a&b", 5, None).expect("a call");
        assert_eq!(call.url, "http://127.0.0.1:8888/search?q=a%26b&format=json");
    }
}
