//! `toold-fetch extract`: pages from servers on loopback, in order, as Markdown, within the rules.

use crate::program::{run, run_with_env};
use serde_json::{Value, json};
use toold_test_support::http::{HttpServer, respond};

const PARAGRAPH: &str = "A sentence of the article, with a comma and enough text to be an article by itself. ";

fn html(title: &str, body: &str) -> Vec<u8> {
    format!("<!doctype html><html><head><title>{title}</title></head><body>{body}</body></html>").into_bytes()
}

fn site() -> HttpServer {
    HttpServer::start(|request, stream| {
        let html_type = [("content-type", "text/html; charset=utf-8")];
        match request.path.as_str() {
            "/article" => {
                let paragraph = PARAGRAPH.repeat(6);
                let body = format!(
                    "<nav><a href=/>Menu</a></nav><article><h2>Part</h2><p>{paragraph}<a href=up>link</a></p></article>"
                );
                respond(stream, "200 OK", &html_type, &html("Article", &body));
            }
            "/json" => respond(stream, "200 OK", &[("content-type", "application/json")], b"{\"a\":1}"),
            "/pdf" => respond(stream, "200 OK", &[("content-type", "application/pdf")], b"%PDF-1.4"),
            "/long" => respond(stream, "200 OK", &[("content-type", "text/plain")], "ä".repeat(1000).as_bytes()),
            "/moved" => {
                respond(stream, "301 Moved Permanently", &[("location", "article"), ("set-cookie", "a=b")], b"")
            }
            "/gone" => respond(stream, "404 Not Found", &html_type, b"no"),
            "/latin" => respond(stream, "200 OK", &[("content-type", "text/plain; charset=latin1")], b"caf\xe9"),
            path if path.starts_with("/to?") => respond(stream, "302 Found", &[("location", &path[4..])], b""),
            _ => respond(stream, "500 Internal Server Error", &[], b""),
        }
    })
}

fn extract(site: &HttpServer, urls: &[String], more: Value) -> Vec<Value> {
    let mut request = json!({"urls": urls, "allow": [site.host_port()]});
    request.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let answer = run("extract", &request);
    answer["results"].as_array().unwrap_or_else(|| panic!("{answer}")).clone()
}

#[test]
fn pages_are_extracted_in_the_order_of_their_addresses() {
    let site = site();
    let paths = ["/article", "/json", "/pdf", "/moved", "/gone", "/latin", "/error", "/article"];
    let urls: Vec<String> = paths.iter().map(|path| site.url(path)).collect();
    let pages = extract(&site, &urls, json!({}));
    assert_eq!(pages.len(), paths.len());
    assert!(pages.iter().zip(&urls).all(|(page, url)| page["url"] == **url), "{pages:#?}");
    let article = &pages[0];
    assert_eq!((&article["title"], &article["final_url"]), (&json!("Article"), &json!(urls[0])));
    let content = article["content"].as_str().unwrap();
    assert!(content.contains("## Part") && content.contains(&format!("[link]({})", site.url("/up"))), "{content}");
    assert!(!content.contains("Menu"), "{content}");
    assert_eq!(article.get("error"), None);
    assert_eq!(pages[1]["content"], "{\"a\":1}");
    assert_eq!(pages[5]["content"], "café");
    assert_eq!((&pages[3]["final_url"], &pages[3]["title"]), (&json!(urls[0]), &json!("Article")));
    for (page, kind, message) in [(2, "unavailable", "a PDF"), (4, "not_found", "404"), (6, "unavailable", "500")] {
        assert_eq!(pages[page]["error_kind"], kind, "{}", pages[page]);
        assert!(pages[page]["error"].as_str().unwrap().contains(message), "{}", pages[page]);
    }
    assert!(site.requests().iter().all(|request| request.header("cookie").is_none()));
}

#[test]
fn a_long_page_is_cut_and_its_whole_text_is_in_a_file() {
    let site = site();
    let dir = tempfile::tempdir().unwrap();
    let urls = [site.url("/long"), site.url("/long")];
    let pages = extract(&site, &urls, json!({"char_limit": 10, "out_dir": dir.path()}));
    for page in &pages {
        let path = page["path"].as_str().unwrap();
        assert!(path.starts_with(dir.path().to_str().unwrap()), "{path}");
        assert_eq!(std::fs::read_to_string(path).unwrap(), "ä".repeat(1000));
        assert_eq!((&page["content"], &page["truncated"]), (&json!("ä".repeat(10)), &json!(true)));
    }
    assert_ne!(pages[0]["path"], pages[1]["path"]);
    let page = &extract(&site, &urls[..1], json!({"char_limit": 10}))[0];
    assert_eq!((&page["truncated"], page.get("path")), (&json!(true), None));
}

#[test]
fn redirects_to_addresses_inside_are_refused() {
    let (site, inner) = (site(), HttpServer::start(|_, stream| respond(stream, "200 OK", &[], b"inside")));
    let locations = [
        inner.url("/"),
        "http://127.0.0.1/".into(),
        "http://0x7f.1/".into(),
        "http://localhost/".into(),
        "http://[::1]/".into(),
        "http://[::ffff:127.0.0.1]/".into(),
        "http://169.254.169.254/latest/meta-data/".into(),
        "http://10.0.0.1/".into(),
        "file:///etc/passwd".into(),
        format!("http://u:p@{}/json", site.host_port()),
    ];
    let urls: Vec<String> = locations.iter().map(|location| site.url(&format!("/to?{location}"))).collect();
    for (page, location) in extract(&site, &urls, json!({})).iter().zip(&locations) {
        assert_eq!((&page["error_kind"], &page["content"]), (&json!("denied"), &json!("")), "{location}: {page}");
    }
    assert_eq!(inner.requests(), []);
}

#[test]
fn addresses_inside_are_refused_without_a_connection() {
    let inner = HttpServer::start(|_, stream| respond(stream, "200 OK", &[], b"inside"));
    let port = inner.address.port();
    let urls = [
        inner.url("/"),
        format!("http://localhost:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://user@127.0.0.1:{port}/"),
        "http://169.254.169.254/".into(),
        "ftp://127.0.0.1/".into(),
    ];
    let answer = run("extract", &json!({"urls": urls, "allow": ["169.254.169.254:80"]}));
    for page in answer["results"].as_array().unwrap() {
        assert_eq!(page["error_kind"], "denied", "{page}");
    }
    assert_eq!(inner.requests(), []);
}

#[test]
fn allow_is_for_one_port_and_deny_wins() {
    let site = site();
    let denied = extract(&site, &[site.url("/json")], json!({"deny": ["127.0.0.1"]}));
    assert_eq!(denied[0]["error_kind"], "denied");
    let localhost = format!("localhost:{}", site.address.port());
    let request = json!({"urls": [format!("http://{localhost}/json"), site.url("/json")], "allow": [localhost]});
    let answer = run("extract", &request);
    assert_eq!(answer["results"][0]["content"], "{\"a\":1}", "{answer}");
    assert_eq!(answer["results"][1]["error_kind"], "denied", "{answer}");
}

#[test]
fn the_sixth_redirect_is_not_followed() {
    let site = HttpServer::start(|request, stream| {
        let next: u32 = request.path[1..].parse().unwrap();
        match next {
            0 => respond(stream, "200 OK", &[("content-type", "text/plain")], b"end"),
            left => respond(stream, "302 Found", &[("location", &format!("/{}", left - 1))], b""),
        }
    });
    let pages = extract(&site, &[site.url("/5"), site.url("/6")], json!({}));
    assert_eq!(pages[0]["content"], "end");
    assert!(pages[1]["error"].as_str().unwrap().contains("more than 5 redirects"), "{}", pages[1]);
}

#[test]
fn a_provider_fetches_in_our_place_with_its_key() {
    let provider = HttpServer::start(|request, stream| match request.json()["url"].as_str() {
        Some("https://good.test/") => {
            let body = json!({"success": true, "data": {"markdown": "# Good", "metadata": {"title": "G", "url": "https://good.test/x"}}});
            respond(stream, "200 OK", &[("content-type", "application/json")], body.to_string().as_bytes());
        }
        _ => respond(stream, "402 Payment Required", &[], b"{}"),
    });
    let template = json!({
        "method": "POST", "url": provider.url("/scrape"), "headers": {"authorization": "Bearer {key}"},
        "body": {"url": "{url}", "formats": ["markdown"]},
        "content": "/data/markdown", "title": "/data/metadata/title", "final_url": "/data/metadata/url", "error": "/error"
    });
    let request = json!({
        "urls": ["https://good.test/", "https://bad.test/", "http://10.0.0.1/"],
        "provider": {"template": template}, "key_env": "TOOLD_WEB_KEY"
    });
    let answer = run_with_env("extract", &request, &[("TOOLD_WEB_KEY", "s3cret")]);
    let pages = answer["results"].as_array().unwrap();
    let expected =
        json!({"url": "https://good.test/", "final_url": "https://good.test/x", "title": "G", "content": "# Good"});
    assert_eq!(pages[0], expected);
    assert!(pages[1]["error"].as_str().unwrap().contains("402"), "{}", pages[1]);
    assert_eq!(pages[2]["error_kind"], "denied");
    assert_eq!(provider.requests().len(), 2);
    assert!(provider.requests().iter().all(|request| request.header("authorization") == Some("Bearer s3cret")));
}

#[test]
fn a_wrong_request_is_an_error_in_the_answer() {
    for (request, kind) in [
        (json!({"urls": []}), "invalid_params"),
        (json!({"urls": vec!["https://a.test"; 11]}), "invalid_params"),
        (json!({"urls": ["https://a.test"], "allow": ["a.test"]}), "invalid_params"),
        (json!({"urls": ["https://a.test"], "cookies": true}), "invalid_request"),
        (json!({"urls": ["https://a.test"], "key_env": "TOOLD_NO_SUCH_KEY"}), "unavailable"),
    ] {
        let answer = run("extract", &request);
        assert_eq!(answer["error"]["kind"], kind, "{answer}");
    }
}
