//! `toolctl web`: attacks on its HTTP and its WebSocket, and the page in a real browser.

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use toold_test_support::output::output_of;
use toold_test_support::rig::{DEADLINE, Daemon, id, skip_unless};
use tungstenite::client::IntoClientRequest;
use tungstenite::{Message, WebSocket};

/// A running `toolctl web`, ended with the test.
struct Web {
    child: Child,
    port: u16,
    token: String,
}

impl Drop for Web {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Web {
    fn start(d: &Daemon, args: &[&str]) -> Web {
        let mut child = d.ctl_command(&[&["web"], args].concat()).stderr(Stdio::null()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let (address, token) = url.trim().split_once("/?token=").unwrap_or_else(|| panic!("an address: {url:?}"));
        let port = address.strip_prefix("http://127.0.0.1:").unwrap().parse().unwrap();
        Web { child, port, token: token.into() }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}/?token={}", self.port, self.token)
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn stream(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(DEADLINE)).unwrap();
        stream
    }

    /// Sends a request as it is. Returns the status and the whole answer.
    fn raw(&self, request: &str) -> (u16, String) {
        let mut stream = self.stream();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // A WebSocket stays open: its head is enough.
        let mut chunk = [0; 4096];
        while let Ok(read) = stream.read(&mut chunk) {
            answer.extend_from_slice(&chunk[..read]);
            if read == 0 || answer.starts_with(b"HTTP/1.1 101") {
                break;
            }
        }
        let answer = String::from_utf8_lossy(&answer).into_owned();
        let status = answer.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
        (status, answer)
    }

    fn get(&self, path: &str, headers: &[(&str, &str)]) -> (u16, String) {
        let mut request = format!("GET {path} HTTP/1.1\r\n");
        for (name, value) in headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        self.raw(&(request + "\r\n"))
    }

    fn websocket(&self) -> WebSocket<TcpStream> {
        let request = format!("ws://{}/ws?token={}", self.host(), self.token).into_client_request().unwrap();
        tungstenite::client(request, self.stream()).unwrap().0
    }
}

/// Sends a message and returns the next answer.
fn ask(socket: &mut WebSocket<TcpStream>, message: &str) -> Value {
    socket.send(Message::Text(message.into())).unwrap();
    loop {
        if let Message::Text(text) = socket.read().unwrap() {
            let answer: Value = serde_json::from_str(&text).unwrap();
            if answer.get("method").is_none() {
                return answer;
            }
        }
    }
}

fn call(socket: &mut WebSocket<TcpStream>, method: &str, params: Value) -> Value {
    ask(socket, &json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string())
}

/// A path, the headers of its request, and the status of the answer.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], u16);

#[test]
fn only_a_request_with_our_host_our_origin_and_the_token_gets_the_page() {
    let d = Daemon::start();
    let web = Web::start(&d, &[]);
    let (host, token) = (web.host(), web.token.clone());
    assert_eq!(token.len(), 32, "128 bits");
    let page = format!("/?token={token}");
    let cases: [Case<'_>; 12] = [
        ("/", &[("Host", &host)], 401),
        ("/ws", &[("Host", &host)], 401),
        ("/?token=", &[("Host", &host)], 403),
        ("/?token=00000000000000000000000000000000", &[("Host", &host)], 403),
        (&page, &[], 403),
        (&page, &[("Host", "evil.example")], 403),
        (&page, &[("Host", &format!("evil.example:{}", web.port))], 403),
        (&page, &[("Host", &host), ("Origin", "http://evil.example")], 403),
        (&page, &[("Host", &host), ("Origin", "null")], 403),
        ("/", &[("Host", &host), ("Cookie", &format!("toold-web-{}={token}", web.port))], 403),
        (&format!("/etc/passwd?token={token}"), &[("Host", &host)], 404),
        (&page, &[("Host", &host), ("Host", "evil.example")], 400),
    ];
    for (path, headers, status) in cases {
        assert_eq!(web.get(path, headers).0, status, "{path} {headers:?}");
    }
    let (status, answer) = web.get(&page, &[("Host", &host)]);
    assert_eq!(status, 200);
    let cookie = answer.lines().find_map(|line| line.strip_prefix("Set-Cookie: ")).unwrap().to_owned();
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict") && !cookie.contains(&token), "{cookie}");
    assert!(answer.contains("default-src 'none'") && answer.contains("Cache-Control: no-store"), "{answer}");
    assert!(!answer.contains("{{"), "every place in the page is filled");
    let pair = cookie.split(';').next().unwrap();
    assert_eq!(web.get("/", &[("Host", &format!("localhost:{}", web.port)), ("Cookie", pair)]).0, 200);
    assert_eq!(web.raw(&format!("POST {page} HTTP/1.1\r\nHost: {host}\r\n\r\n")).0, 405);
    assert_eq!(web.raw("nonsense\r\n\r\n").0, 400);
    assert_eq!(web.raw(&format!("GET / HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(20_000))).0, 400);
}

#[test]
fn a_websocket_of_another_page_is_refused_and_ours_is_not() {
    let d = Daemon::start();
    let web = Web::start(&d, &[]);
    let (host, ours) = (web.host(), format!("http://{}", web.host()));
    let path = format!("/ws?token={}", web.token);
    let upgrade = [
        ("Upgrade", "websocket"),
        ("Connection", "Upgrade"),
        ("Sec-WebSocket-Version", "13"),
        ("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="),
    ];
    let with = |more: &[(&'static str, &str)]| -> u16 {
        let all: Vec<(&str, &str)> = upgrade.iter().chain(more).copied().collect();
        web.get(&path, &all).0
    };
    assert_eq!(with(&[("Host", &host), ("Origin", "http://evil.example")]), 403);
    assert_eq!(with(&[("Host", "evil.example"), ("Origin", "http://evil.example")]), 403);
    assert_eq!(with(&[("Host", &host), ("Origin", &ours)]), 101);
    assert_eq!(with(&[("Host", &host)]), 101);
    assert_eq!(web.get(&path, &[("Host", &host)]).0, 426);
}

#[test]
fn without_write_only_reading_passes_however_the_call_is_written() {
    let d = Daemon::start();
    let sleeper = d.sh("echo hello; sleep 600");
    d.printed(&sleeper, "hello");
    let web = Web::start(&d, &[]);
    let mut socket = web.websocket();
    assert_eq!(call(&mut socket, "list", json!({}))["result"]["processes"][0]["id"], json!(sleeper));
    assert_eq!(call(&mut socket, "poll", json!({"id": sleeper, "cursor": 0}))["result"]["output"], "hello\n");
    let marker = d.root().join("written");
    let exec = json!({"jsonrpc": "2.0", "id": 1, "method": "exec", "params": {"argv": ["/usr/bin/touch", marker], "yield_ms": 5000}});
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "list"});
    let twice = exec.to_string().replacen("\"method\"", "\"method\":\"list\",\"method\"", 1);
    let escaped = exec.to_string().replace("\"method\"", "\"meth\\u006fd\"");
    let lines = format!("{list}\n{exec}");
    for message in [exec.to_string(), twice, escaped, lines, json!([list, exec]).to_string(), json!([exec]).to_string()]
    {
        let answer = ask(&mut socket, &message);
        let answers = if let Value::Array(all) = &answer { all.clone() } else { vec![answer] };
        assert!(answers.iter().all(|answer| answer.get("result").is_none()), "{message}: {answers:?}");
    }
    for (method, params) in [
        ("kill", json!({"all": true})),
        ("submit", json!({"id": sleeper, "data": "x"})),
        ("daemon.shutdown", json!({})),
        ("fs.read", json!({"path": "/etc/passwd"})),
        ("events.next", json!({"consumer": "x"})),
        ("wait", json!({"id": sleeper, "consumer": "x"})),
    ] {
        let answer = call(&mut socket, method, params);
        assert_eq!(
            (&answer["error"]["code"], &answer["error"]["data"]["kind"]),
            (&json!(-32005), &json!("denied")),
            "{method}: {answer}"
        );
    }
    assert!(!marker.exists());
    assert_eq!(d.process(&sleeper)["status"], "running");
}

#[test]
fn with_write_calls_pass_and_events_are_pushed() {
    let d = Daemon::start();
    let web = Web::start(&d, &["--write"]);
    let mut socket = web.websocket();
    assert!(call(&mut socket, "events.subscribe", json!({}))["result"].is_u64());
    let exec = json!({"jsonrpc": "2.0", "id": 8, "method": "exec", "params": {"argv": ["/bin/cat"], "stdin": "pipe", "name": "cat"}});
    socket.send(Message::Text(exec.to_string().into())).unwrap();
    // The event may come before the answer.
    let (mut answered, mut pushed) = (None, None);
    while answered.is_none() || pushed.is_none() {
        if let Message::Text(text) = socket.read().unwrap() {
            let message: Value = serde_json::from_str(&text).unwrap();
            let event = &message["params"]["result"];
            answered = answered.or((message["id"] == 8).then(|| message["result"]["id"].clone()));
            pushed = pushed.or((event["type"] == "started").then(|| event["id"].clone()));
        }
    }
    assert_eq!(answered, pushed);
    let cat = pushed.unwrap();
    let killed = call(&mut socket, "kill", json!({"ids": [cat]}));
    assert_eq!(killed["result"]["status"], "killed");
}

#[test]
fn a_browser_is_disconnected_when_the_daemon_goes_and_served_when_it_is_back() {
    let mut d = Daemon::start();
    let web = Web::start(&d, &[]);
    let mut socket = web.websocket();
    assert!(call(&mut socket, "daemon.info", json!({}))["result"]["pid"].is_number());
    d.kill9();
    let closed = loop {
        match socket.read() {
            Ok(Message::Close(frame)) => break frame.map(|frame| u16::from(frame.code)),
            Ok(_) => {}
            Err(error) => panic!("no close: {error}"),
        }
    };
    assert_eq!(closed, Some(1012));
    d.spawn();
    assert!(call(&mut web.websocket(), "daemon.info", json!({}))["result"]["pid"].is_number());
}

/// The directory of puppeteer, and Chromium.
fn browser() -> Option<(PathBuf, PathBuf)> {
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().find(|dir| dir.join("door-programs-web").is_dir())?;
    let modules = target.join("door-programs-web/node_modules");
    let found = |name: &str| {
        std::env::split_paths(&std::env::var_os("PATH")?).map(|dir| dir.join(name)).find(|path| path.is_file())
    };
    Some((
        modules.join("puppeteer-core").is_dir().then_some(modules)?,
        found("chromium").or_else(|| found("chromium-browser"))?,
    ))
}

#[test]
fn a_real_browser_shows_the_list_follows_a_log_answers_and_kills() {
    let programs = browser();
    let has_node = Command::new("node").arg("--version").output().is_ok();
    if skip_unless(
        programs.is_some() && has_node,
        "node, chromium or puppeteer-core is missing; tests/door-programs-web installs it",
    ) {
        return;
    }
    let (modules, chromium) = programs.unwrap();
    let d = Daemon::start();
    let web = d.sh_with(
        "echo listening; echo oops >&2; while read x; do echo \"got $x\"; done",
        json!({"name": "web", "stdin": "pipe", "session_key": "chat:1"}),
    );
    let web = id(&web);
    d.printed(&web, "oops");
    let failed = d.sh_with("echo 'FAILED test_x'; exit 2", json!({"name": "tests"}));
    d.closed(&id(&failed));
    let server = Web::start(&d, &["--write"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/doors/web.mjs");
    let pictures = d.root().join("pictures");
    std::fs::create_dir(&pictures).unwrap();
    let mut command = d.tool(
        "node",
        &[script.to_str().unwrap(), &server.url(), chromium.to_str().unwrap(), pictures.to_str().unwrap()],
    );
    command.env("TOOLD_TEST_MODULES", &modules);
    let output = output_of(command.spawn().unwrap());
    assert_eq!(output.code, 0, "{output:?}");
    let seen: Value = serde_json::from_str(output.stdout.lines().last().unwrap()).unwrap();
    let expected = json!({
        "location": "/", "rows": ["web running", "tests exited 2"], "stderr_is_red": true, "answered": true, "filtered": ["tests exited 2"],
        "found": "tests:1  FAILED test_x", "owners": true, "killed": true, "cookie_is_hidden": true, "errors": [],
    });
    assert_eq!(seen, expected);
    assert_eq!(d.exited(&web)["reason"], "killed");
    assert!(pictures.join("list.png").metadata().is_ok_and(|file| file.len() > 1000));
    if let Some(kept) = std::env::var_os("TOOLD_PICTURES") {
        std::fs::copy(pictures.join("list.png"), Path::new(&kept).join("web.png")).unwrap();
    }
}

/// A connection that sends nothing, or a byte at a time, holds up no other.
#[test]
fn a_silent_connection_holds_up_no_other() {
    let d = Daemon::start();
    let web = Web::start(&d, &[]);
    let silent: Vec<TcpStream> = (0..20).map(|_| web.stream()).collect();
    assert_eq!(web.get("/", &[("Host", &web.host())]).0, 401);
    drop(silent);
    // More than there is room for: the oldest ones go.
    let silent: Vec<TcpStream> = (0..300).map(|_| web.stream()).collect();
    assert_eq!(web.get("/", &[("Host", &web.host())]).0, 401);
    drop(silent);
    let mut slow = web.stream();
    slow.set_write_timeout(Some(Duration::from_secs(5))).unwrap();
    slow.write_all(b"GET / HTTP/1.1\r\n").unwrap();
    assert_eq!(web.get("/", &[("Host", &web.host())]).0, 401);
}
