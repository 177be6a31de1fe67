//! `toold-fetch search` against the real searx of the distribution, on loopback, with one engine that is a server of
//! the test. It has no `search.formats`: the 403 of SearXNG is in `search.rs`.

use crate::program::run;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use toold_fetch::templates::{SearchConfig, SearchProviderName};
use toold_test_support::http::{HttpServer, respond};

/// The program of Debian's package `searx`.
const PROGRAM: &str = "/usr/bin/searx-run";

struct Searx {
    child: Child,
    port: u16,
    _dir: tempfile::TempDir,
}

impl Drop for Searx {
    fn drop(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

/// Starts searx with the engine at `engine`, and returns when it listens.
fn start(engine: &HttpServer) -> Searx {
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let dir = tempfile::tempdir().unwrap();
    let settings = json!({
        "general": {"debug": false, "instance_name": "test"},
        "brand": {},
        "search": {"safe_search": 0, "autocomplete": "", "default_lang": "", "formats": ["html", "json"]},
        "server": {
            "port": port, "bind_address": "127.0.0.1", "secret_key": "of a test", "base_url": false,
            "image_proxy": false, "http_protocol_version": "1.0", "method": "GET"
        },
        "ui": {
            "static_path": "/usr/share/python3-searx/static", "templates_path": "/usr/share/python3-searx/templates",
            "default_theme": "simple", "default_locale": ""
        },
        "outgoing": {"request_timeout": 5.0, "useragent_suffix": "", "pool_connections": 4, "pool_maxsize": 4},
        "locales": {"en": "English"},
        "doi_resolvers": {"none": "http://127.0.0.1:9/"},
        "default_doi_resolver": "none",
        "engines": [{
            "name": "demo", "engine": "json_engine", "shortcut": "dm", "categories": "general", "enable_http": true,
            "search_url": engine.url("/?q={query}"),
            "results_query": "hits", "url_query": "link", "title_query": "name", "content_query": "text"
        }]
    });
    let path = dir.path().join("settings.yml");
    // JSON is YAML.
    std::fs::write(&path, settings.to_string()).unwrap();
    let mut child = Command::new(PROGRAM)
        .env("SEARX_SETTINGS_PATH", &path)
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut log = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
    let is_up = log.by_ref().any(|line| line.contains("Running on"));
    assert!(is_up, "searx did not start: {:?}", child.wait());
    // It must be able to write on.
    std::thread::spawn(move || log.for_each(drop));
    Searx { child, port, _dir: dir }
}

fn engine() -> HttpServer {
    HttpServer::start(|request, stream| {
        if request.path.contains("broken") {
            return respond(stream, "500 Internal Server Error", &[], b"");
        }
        let hit = |n: u32| json!({"link": format!("https://r{n}.test/"), "name": format!("Result {n}"), "text": request.path});
        let hits: Vec<Value> = (1..=4).map(hit).collect();
        respond(
            stream,
            "200 OK",
            &[("content-type", "application/json")],
            json!({"hits": hits}).to_string().as_bytes(),
        );
    })
}

fn search(searx: &Searx, query: &str) -> Value {
    let provider = Some(SearchProviderName::Searxng);
    let config = SearchConfig { provider, url: format!("http://127.0.0.1:{}", searx.port), ..SearchConfig::default() };
    run("search", &serde_json::to_value(config.request(query, 3).unwrap()).unwrap())
}

#[test]
fn a_real_searx_answers() {
    if !Path::new(PROGRAM).exists() {
        eprintln!("skipped: searx is not installed");
        return;
    }
    let engine = engine();
    let searx = start(&engine);
    let answer = search(&searx, "größe & form");
    let hits = answer["data"]["web"].as_array().unwrap_or_else(|| panic!("{answer}"));
    assert_eq!(hits.len(), 3, "{answer}");
    assert_eq!((&hits[0]["url"], &hits[0]["title"]), (&json!("https://r1.test/"), &json!("Result 1")));
    assert!(engine.requests()[0].path.contains("gr%C3%B6%C3%9Fe"), "{:?}", engine.requests());
    let answer = search(&searx, "broken");
    assert_eq!(answer["error"]["kind"], "unavailable", "{answer}");
    assert!(answer["error"]["message"].as_str().unwrap().contains("demo"), "{answer}");
}
