//! `toold-fetch search`: each preset against a server with its JSON, and a real SearXNG where there is one.

use crate::program::{run, run_with_env};
use serde_json::{Value, json};
use toold_fetch::templates::{SearchConfig, SearchProviderName};
use toold_test_support::http::{HttpServer, respond};

const JSON: [(&str, &str); 1] = [("content-type", "application/json")];

/// Answers as SearXNG does: HTML unless `format=json`, 403 for a format that is not in `search.formats`.
fn searxng(has_json: bool) -> HttpServer {
    HttpServer::start(move |request, stream| {
        let query = request.path.split_once('?').map_or("", |(_, query)| query);
        let field = |name: &str| query.split('&').filter_map(|pair| pair.split_once('=')).find(|(key, _)| *key == name);
        match (request.path.starts_with("/search?"), field("format")) {
            (true, Some((_, "json"))) if !has_json => {
                respond(stream, "403 Forbidden", &[("content-type", "text/html")], b"<h1>Forbidden")
            }
            (true, Some((_, "json"))) => {
                let result = |n: u32| {
                    json!({
                        "url": format!("https://r{n}.test/"), "title": format!("Result {n}"), "content": format!("Text {n}"),
                        "engine": "demo", "parsed_url": ["https", format!("r{n}.test"), "/", "", "", ""], "template": "default.html",
                        "engines": ["demo"], "positions": [n], "score": 1.0, "category": "general"
                    })
                };
                let results: Vec<Value> =
                    if query.contains("nothing") { vec![] } else { (1..=8).map(result).collect() };
                let failed = if query.contains("nothing") { json!([["demo", "HTTP error 500"]]) } else { json!([]) };
                let answer = json!({
                    "query": "q", "number_of_results": results.len(), "results": results, "answers": [], "corrections": [],
                    "infoboxes": [], "suggestions": [], "unresponsive_engines": failed
                });
                respond(stream, "200 OK", &JSON, answer.to_string().as_bytes());
            }
            _ => respond(stream, "200 OK", &[("content-type", "text/html")], b"<!doctype html>"),
        }
    })
}

fn config(provider: SearchProviderName, url: &str) -> SearchConfig {
    SearchConfig { provider: Some(provider), url: url.into(), key_env: "SOME_KEY".into(), ..SearchConfig::default() }
}

fn search(config: &SearchConfig, query: &str, limit: u32) -> Value {
    let request = serde_json::to_value(config.request(query, limit).unwrap()).unwrap();
    run_with_env("search", &request, &[("TOOLD_WEB_KEY", "s3cret")])
}

#[test]
fn searxng_gives_its_results_up_to_the_limit() {
    let server = searxng(true);
    let answer = search(&config(SearchProviderName::Searxng, &server.url("")), "a & b = ü", 2);
    let hit = |n: u32| json!({"url": format!("https://r{n}.test/"), "title": format!("Result {n}"), "description": format!("Text {n}")});
    assert_eq!(answer, json!({"data": {"web": [hit(1), hit(2)]}}));
    assert_eq!(server.requests()[0].path, "/search?q=a%20%26%20b%20%3D%20%C3%BC&format=json");
}

#[test]
fn searxng_without_the_json_format_is_explained() {
    let server = searxng(false);
    let answer = search(&config(SearchProviderName::Searxng, &server.url("/")), "x", 5);
    assert_eq!((&answer["error"]["kind"], &answer["error"]["data"]["status"]), (&json!("denied"), &json!(403)));
    assert!(answer["error"]["message"].as_str().unwrap().contains("`search.formats`"), "{answer}");
}

#[test]
fn engines_that_did_not_answer_are_named() {
    let server = searxng(true);
    let answer = search(&config(SearchProviderName::Searxng, &server.url("")), "nothing", 5);
    assert_eq!(answer["error"]["kind"], "unavailable");
    assert!(answer["error"]["message"].as_str().unwrap().contains("demo, HTTP error 500"), "{answer}");
}

#[test]
fn each_provider_gets_its_request_and_its_key() {
    use SearchProviderName::{Brave, Exa, Firecrawl, Tavily};
    let hits = |snippet: &str| json!([{"url": "https://h.test/", "title": "H", snippet: "S"}]);
    let server = HttpServer::start(move |request, stream| {
        let body = request.json();
        let key = |name: &str, value: &str| request.header(name) == Some(value);
        let is_query = body["query"] == "q r";
        let answer = match request.path.as_str() {
            "/web/search?q=q%20r&count=3&text_decorations=false" if key("x-subscription-token", "s3cret") => {
                json!({"web": {"results": hits("description")}})
            }
            "/tavily/search" if is_query && body["max_results"] == 3 && key("authorization", "Bearer s3cret") => {
                json!({"results": hits("content")})
            }
            "/exa/search" if is_query && body["numResults"] == 3 && key("x-api-key", "s3cret") => {
                json!({"results": hits("text")})
            }
            "/firecrawl/search" if is_query && body["limit"] == 3 && key("authorization", "Bearer s3cret") => {
                json!({"success": true, "data": hits("description")})
            }
            _ => return respond(stream, "400 Bad Request", &[], format!("{request:?}").as_bytes()),
        };
        respond(stream, "200 OK", &JSON, answer.to_string().as_bytes());
    });
    for (provider, base) in [(Brave, "/"), (Tavily, "/tavily"), (Exa, "/exa/"), (Firecrawl, "/firecrawl")] {
        let answer = search(&config(provider, &server.url(base)), "q r", 3);
        let expected = json!({"data": {"web": [{"url": "https://h.test/", "title": "H", "description": "S"}]}});
        assert_eq!(answer, expected, "{provider:?}");
    }
}

#[test]
fn failures_of_a_provider_have_their_kind() {
    let server = HttpServer::start(|request, stream| match request.path.as_str() {
        "/401?q=x" => respond(stream, "401 Unauthorized", &[], b""),
        "/429?q=x" => respond(stream, "429 Too Many Requests", &[("retry-after", "7")], b""),
        "/html?q=x" => respond(stream, "200 OK", &[], b"<html>"),
        "/inside?q=x" => respond(stream, "302 Found", &[("location", "http://127.0.0.1/")], b""),
        "/self?q=x" => respond(stream, "302 Found", &[("location", "/ok")], b""),
        "/ok" => respond(stream, "200 OK", &JSON, b"{\"r\": []}"),
        // No answer at all.
        _ => {}
    });
    let search = |url: &str| {
        let provider = json!({"url": format!("{url}?q={{query}}"), "results": "/r"});
        run("search", &json!({"query": "x", "provider": provider, "timeout_ms": 500}))
    };
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for (url, kind, message) in [
        (server.url("/401"), "denied", "401"),
        (server.url("/429"), "limit", "429"),
        (server.url("/html"), "unavailable", "not JSON"),
        (server.url("/inside"), "denied", "loopback"),
        (server.url("/hang"), "unavailable", "within 500 ms"),
        (format!("http://{closed}/"), "unavailable", "refused"),
    ] {
        let answer = search(&url);
        assert_eq!(answer["error"]["kind"], kind, "{url}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(message), "{url}: {answer}");
    }
    assert_eq!(search(&server.url("/429"))["error"]["data"]["retry_after"], "7");
    assert_eq!(search(&server.url("/self")), json!({"data": {"web": []}}));
}

#[test]
fn a_real_searxng_answers() {
    let Some(url) = std::env::var("TOOLD_TEST_SEARXNG").ok().filter(|url| !url.is_empty()) else {
        eprintln!("skipped: TOOLD_TEST_SEARXNG names no SearXNG");
        return;
    };
    let config = SearchConfig { key_env: String::new(), ..config(SearchProviderName::Searxng, &url) };
    let answer = search(&config, "toold", 3);
    let hits = answer["data"]["web"].as_array().unwrap_or_else(|| panic!("{answer}"));
    assert!(!hits.is_empty() && hits.len() <= 3, "{answer}");
    assert!(hits.iter().all(|hit| hit["url"].as_str().is_some_and(|url| url.starts_with("http"))), "{answer}");
}
