//! Hostile pages and servers: they cost one error in the answer, bounded in time and memory.

use crate::program::{PROGRAM, run};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use toold_test_support::http::{HttpServer, respond};

const MAX_BYTES: usize = 5 << 20;

fn site() -> HttpServer {
    HttpServer::start(|request, stream| {
        let html = |body: String| (vec![("content-type", "text/html")], body.into_bytes());
        let (headers, body) = match request.path.as_str() {
            "/fine" => html("<title>Fine</title><p>A page beside the hostile ones.".into()),
            "/nested" => {
                html(format!("<title>Deep</title>{}deep text{}", "<div>".repeat(100_000), "</div>".repeat(100_000)))
            }
            "/formatting" => {
                let open: String = (0..1900).map(|i| format!("<b id={i}>")).collect();
                html(format!("<title>F</title>{open}{}", "<p>x".repeat(400_000)))
            }
            "/attributes" => html(format!(
                "<title>A</title><p {}>text of the page",
                (0..600_000).map(|i| format!(" a{i}")).collect::<String>()
            )),
            "/elements" => html(format!("<title>E</title>{}end of the page", "<p>".repeat(1_500_000))),
            "/gzip" => {
                let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
                encoder.write_all(&vec![b' '; 32 << 20]).unwrap();
                (vec![("content-type", "text/html"), ("content-encoding", "gzip")], encoder.finish().unwrap())
            }
            "/large" => (vec![("content-type", "text/plain")], vec![b'a'; MAX_BYTES + 1]),
            other => panic!("{other}"),
        };
        respond(stream, "200 OK", &headers, &body);
    })
}

fn extract(site: &HttpServer, path: &str, timeout_ms: u64) -> Value {
    let request = json!({
        "urls": [site.url(path), site.url("/fine")], "allow": [site.host_port()], "timeout_ms": timeout_ms
    });
    let answer = run("extract", &request);
    assert_eq!(answer["results"][1]["title"], "Fine", "{answer}");
    answer["results"][0].clone()
}

#[test]
fn a_page_of_a_hundred_thousand_nested_elements_gives_its_text() {
    let page = extract(&site(), "/nested", 20_000);
    assert_eq!((&page["title"], &page["content"]), (&json!("Deep"), &json!("deep text")), "{page}");
}

#[test]
fn pages_that_need_too_much_time_or_memory_give_their_text_or_an_error() {
    let site = site();
    for (path, title, end) in
        [("/formatting", "F", "x"), ("/attributes", "A", "text of the page"), ("/elements", "E", "end of the page")]
    {
        let started = Instant::now();
        let page = extract(&site, path, 3_000);
        assert!(started.elapsed() < Duration::from_secs(8), "{path} took {:?}", started.elapsed());
        let content = page["content"].as_str().unwrap();
        // A fast machine gives the whole page, whose start alone is in the answer.
        let is_there = page["truncated"] == true || content.ends_with(end);
        assert!(page["title"] == title && is_there || page["error"].is_string(), "{path}: {page}");
    }
}

#[test]
fn a_page_is_as_large_as_allowed_after_decompression_too() {
    let site = site();
    for path in ["/gzip", "/large"] {
        let page = extract(&site, path, 20_000);
        assert_eq!(page["error_kind"], "limit", "{path}: {page}");
        assert!(page["error"].as_str().unwrap().contains("web.extract.max_bytes"), "{page}");
    }
}

#[test]
fn a_server_that_drips_or_is_silent_ends_at_the_timeout() {
    let slow = HttpServer::start(|request, stream| {
        let (head, drip): (&[u8], &[u8]) = match request.path.as_str() {
            "/drip" => (b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n", b"a"),
            "/headers" => (b"HTTP/1.1 200 OK\r\n", b"x-a: b\r\n"),
            // Silent: nothing is sent.
            _ => (b"", b""),
        };
        let _ = stream.write_all(head);
        while stream.write_all(drip).is_ok() {
            std::thread::sleep(Duration::from_millis(20)); // rig: a server that sends slowly
        }
    });
    let started = Instant::now();
    let urls = ["/drip", "/headers", "/silent"].map(|path| slow.url(path));
    let answer = run("extract", &json!({"urls": urls, "allow": [slow.host_port()], "timeout_ms": 700}));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    for page in answer["results"].as_array().unwrap() {
        assert_eq!(page["error_kind"], "unavailable", "{page}");
        assert!(page["error"].as_str().unwrap().contains("700 ms"), "{page}");
    }
}

#[test]
fn the_extractor_of_a_page_has_a_bound_on_its_memory() {
    let head = json!({"url": "https://a.test/", "content_type": "text/html", "content_encoding": null, "max_bytes": MAX_BYTES, "effort": "article"});
    let body = "<p>".repeat(1_700_000);
    let mut child = Command::new("/usr/bin/env")
        .args(["python3", "-c", PEAK_OF_CHILD, PROGRAM, "page", "5"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(format!("{head}\n{body}").as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let peak_kib: u64 = String::from_utf8(output.stdout).unwrap().trim().parse().unwrap();
    // 20 times `max_bytes`, the stack and the program.
    assert!(peak_kib < 150 << 10, "{peak_kib} KiB");
}

/// Runs a program and prints the peak of its memory in KiB.
const PEAK_OF_CHILD: &str = "
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
";
