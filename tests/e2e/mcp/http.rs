//! Servers that are reached by HTTP: the process `mcp/NAME` is the bridge to them, and what holds for servers holds for it.

use super::Rig;
use super::real::{PYTHON, installed};
use serde_json::{Value, json};
use std::fs;
use std::net::{TcpListener, TcpStream};
use toold_test_support::http::{HttpRequest, HttpServer, respond};

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

fn rig(url: &str, keys: &str, env: &[(&str, &str)]) -> Rig {
    let mut rig = Rig::prepare(env);
    let text = format!("[mcp.fake]\nurl = {}\n{keys}\n", json!(url));
    fs::write(rig.d.root().join("config/toold/config.toml"), text).unwrap();
    rig.d.spawn();
    rig
}

/// Starts a server as a process of the daemon's, and returns when it listens.
fn serve(rig: &Rig, argv: Value, env: Value, port: u16) -> String {
    let process = rig.d.ok("exec", json!({ "argv": argv, "env": env }));
    rig.d.eventually("the server listens", || TcpStream::connect(("127.0.0.1", port)).is_ok());
    process["id"].as_str().unwrap().into()
}

fn answer(request: &HttpRequest, stream: &mut TcpStream, result: Value) {
    let body = json!({ "jsonrpc": "2.0", "id": request.json()["id"], "result": result }).to_string();
    respond(stream, "200 OK", &[("Content-Type", "application/json")], body.as_bytes());
}

#[test]
fn headers_have_values_from_the_environment_of_the_daemon_and_no_file_has_them() {
    let server = HttpServer::start(|request, stream| match request.json()["method"].as_str() {
        Some("initialize") => {
            answer(request, stream, json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} } }))
        }
        Some("tools/list") => answer(request, stream, json!({ "tools": [{ "name": "headers" }] })),
        Some("tools/call") => {
            let header = |name: &str| request.header(name).unwrap_or_default().to_string();
            let text = format!("{} {}", header("authorization"), header("x-key"));
            answer(request, stream, json!({ "content": [{ "type": "text", "text": text }] }));
        }
        Some(method) if method.starts_with("notifications/") => respond(stream, "202 Accepted", &[], b""),
        _ => respond(stream, "400 Bad Request", &[], b"what?"),
    });
    let keys = "bearer_env = \"MY_TOKEN\"\nheaders = { X-Key = { env = \"MY_KEY\" } }";
    let env = [("MY_TOKEN", "token-very-secret"), ("MY_KEY", "key-very-secret")];
    let rig = rig(&server.url("/mcp"), keys, &env);
    assert_eq!(rig.text("headers", json!({})), "Bearer token-very-secret key-very-secret");
    let argv = rig.process()["argv"].to_string();
    assert!(argv.contains("--bearer-env") && !argv.contains("very-secret"), "{argv}");
    let records = rig.d.state().join("procs");
    let found = rig.d.tool("grep", &["-rl", "-e", "very-secret", "--include=record", records.to_str().unwrap()]);
    let mut found = found;
    assert_eq!(String::from_utf8_lossy(&found.output().unwrap().stdout), "");
    rig.end();
}

#[test]
fn a_call_by_http_survives_the_daemon_and_is_unknown_if_its_server_dies() {
    let Some(dir) = installed() else { return };
    let port = free_port();
    let mut rig = rig(&format!("http://127.0.0.1:{port}/mcp"), "", &[]);
    let code = PYTHON.replace("server.run()", &format!("server.run('streamable-http', host='127.0.0.1', port={port})"));
    let argv = json!(["python3", "-c", code, rig.dir]);
    let env = json!({ "PYTHONPATH": dir.join("python-new"), "PYTHONDONTWRITEBYTECODE": "1" });
    let server = serve(&rig, argv.clone(), env.clone(), port);
    assert_eq!(rig.text("effect", json!({ "text": "0" })), "done 0");
    let _early = rig.begin("1", "effect", json!({ "text": "1", "gate": "one" }));
    rig.waits_for("effect 1");
    rig.d.kill9();
    rig.open("one");
    rig.d.spawn();
    let again = rig.again("1", "effect", json!({ "text": "1", "gate": "one" }));
    assert_eq!(again.unwrap()["result"]["text"], "done 1");
    let mut lost = rig.begin("2", "effect", json!({ "text": "2", "gate": "never" }));
    rig.waits_for("effect 2");
    rig.d.ok("kill", json!({ "id": server, "signal": "SIGKILL" }));
    let error = lost.0.answer(lost.1).unwrap_err();
    assert_eq!(error["data"]["kind"], "outcome_unknown", "{error}");
    let error = rig.error("effect", json!({ "text": "3" }));
    assert_eq!(error["data"]["kind"], "unavailable", "{error}");
    serve(&rig, argv, env, port);
    assert_eq!(rig.text("effect", json!({ "text": "4" })), "done 4");
    assert_eq!(rig.effects(), ["effect 0", "effect 1", "effect 2", "effect 4"]);
    rig.end();
}

#[test]
fn server_everything_answers_by_http() {
    let Some(dir) = installed() else { return };
    let port = free_port();
    let rig = rig(&format!("http://127.0.0.1:{port}/mcp"), "", &[]);
    let program = dir.join("node/node_modules/.bin/mcp-server-everything");
    serve(&rig, json!([program, "streamableHttp"]), json!({ "PORT": port.to_string() }), port);
    assert_eq!(rig.text("echo", json!({ "message": "hello" })), "Echo: hello");
    assert_eq!(rig.text("echo", json!({ "message": "again" })), "Echo: again");
    rig.end();
}

#[test]
fn a_server_that_does_not_listen_is_unavailable() {
    let rig = rig(&format!("http://127.0.0.1:{}/mcp", free_port()), "start_timeout_ms = 5000", &[]);
    let error = rig.error("echo", json!({}));
    assert_eq!(error["data"]["kind"], "unavailable", "{error}");
    rig.end();
}
