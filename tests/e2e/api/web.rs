//! `web_search` and `web_extract`, against servers on loopback.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::thread;
use toold_test_support::rig::Daemon;

/// Serves every request by `answer`, which gets its first line and its headers. Returns the port.
fn serve(answer: impl Fn(&str, &[String]) -> (String, String) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            let Some(first) = lines.next() else { continue };
            let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
            let (head, body) = answer(&first, &headers);
            let length = body.len();
            let _ = write!(stream, "HTTP/1.1 {head}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
        }
    });
    port
}

fn call(d: &Daemon, name: &str, args: Value) -> Value {
    d.ok("tools.call", json!({ "name": name, "args": args }))["result"].clone()
}

#[test]
fn a_search_goes_to_the_provider_of_the_config_with_its_key() {
    let port = serve(|first, headers| {
        assert!(first.starts_with("GET /search?q=two%20terms&format=json"), "{first}");
        let _ = headers;
        let results = json!({ "results": [
            { "url": "http://a", "title": "A", "content": "about a" },
            { "url": "http://b", "title": "B", "content": "about b" },
        ] });
        ("200 OK\r\nContent-Type: application/json".into(), results.to_string())
    });
    let d =
        Daemon::start_with(&format!("[web.search]\nprovider = \"searxng\"\nurl = \"http://127.0.0.1:{port}\"\n"), &[]);
    let found = call(&d, "web_search", json!({ "query": "two terms", "limit": 1 }));
    assert_eq!(found, json!({ "data": { "web": [{ "url": "http://a", "title": "A", "description": "about a" }] } }));
    d.eventually("the helper is forgotten", || d.ids(json!({})).is_empty());
}

#[test]
fn without_a_provider_a_search_is_unavailable_and_names_the_key() {
    let d = Daemon::start();
    let call = json!({ "name": "web_search", "args": { "query": "x" } });
    let error = d.refused(-32008, "unavailable", "tools.call", call);
    assert!(error["message"].as_str().unwrap().contains("web.search.provider"), "{error}");
    // It was listed as ready.
    let listed = d.ok("tools.list", json!({ "query": "web" }))["tools"].clone();
    let state = |at: usize| (listed[at]["name"].clone(), listed[at]["state"].clone());
    assert_eq!(state(0), (json!("web_search"), json!("unavailable")), "{listed}");
    assert!(listed[0]["why"].as_str().unwrap().contains("web.search.provider"), "{listed}");
    assert_eq!(state(1), (json!("web_extract"), json!("ready")), "{listed}");
}

#[test]
fn a_page_is_extracted_and_private_addresses_are_refused() {
    let text = "A sentence that is long enough to be the content of a page, and not its navigation. ".repeat(20);
    let page = format!(
        "<html><head><title>The title</title></head><body><article><h1>Head</h1><p>{text}</p></article></body></html>"
    );
    let port = serve(move |first, _| match first.contains("/away") {
        true => ("302 Found\r\nLocation: http://127.0.0.1:1/".into(), String::new()),
        false => ("200 OK\r\nContent-Type: text/html".into(), page.clone()),
    });
    let d = Daemon::start_with(&format!("[web.extract]\nallow = [\"127.0.0.1:{port}\"]\n"), &[]);
    let urls =
        [format!("http://127.0.0.1:{port}/"), "http://127.0.0.1:9/".into(), format!("http://127.0.0.1:{port}/away")];
    let results = call(&d, "web_extract", json!({ "urls": urls }))["results"].clone();
    assert_eq!(results[0]["title"], "The title", "{results}");
    assert!(results[0]["content"].as_str().unwrap().contains("A sentence that is long enough"), "{results}");
    assert!(results[1]["error"].is_string() && results[2]["error"].is_string(), "{results}");
    let code = format!(
        "from toold_tools import web_extract\nprint(web_extract([{:?}], char_limit=50)['results'][0]['truncated'])",
        urls[0]
    );
    let script = d.ok("script.run", json!({ "code": code, "tools": ["web_extract"], "cwd": d.home() }));
    assert_eq!(script["output"], "True\n", "{script}");
}
