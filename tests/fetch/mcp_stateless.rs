//! `toold-fetch mcp` against servers of revision 2026-07-28: no handshake, no session, everything in the request.

use crate::bridge::{Bridge, answer, begin_events, event, wait_for_close};
use serde_json::{Value, json};
use std::sync::mpsc::channel;
use std::time::Duration;
use toold_test_support::http::{HttpServer, respond};

fn params(mut fields: Value) -> Value {
    fields["_meta"] = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientCapabilities": {}});
    fields
}

#[test]
fn a_request_carries_its_headers() {
    let server = HttpServer::start(|request, stream| match request.json()["method"].as_str() {
        Some("tools/list") => {
            let schema =
                json!({"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}});
            answer(
                request,
                stream,
                &[("mcp-session-id", "ignored")],
                json!({"tools": [{"name": "sql", "inputSchema": schema}]}),
            );
        }
        Some("tools/call") => answer(request, stream, &[], json!({})),
        _ => {
            let error = json!({"jsonrpc": "2.0", "id": request.json()["id"], "error": {"code": -32601, "message": "Method not found"}});
            respond(stream, "404 Not Found", &[("content-type", "application/json")], error.to_string().as_bytes());
        }
    });
    let mut bridge = Bridge::start(&server.url("/mcp"));
    bridge.request(1, "tools/list", params(json!({})));
    assert_eq!(bridge.receive()["result"]["tools"][0]["name"], "sql");
    bridge.request(2, "tools/call", params(json!({"name": "sql", "arguments": {"region": "Zürich"}})));
    assert_eq!(bridge.receive()["id"], 2);
    bridge.request(3, "server/none", params(json!({})));
    assert_eq!(bridge.receive()["error"], json!({"code": -32601, "message": "Method not found"}));
    bridge.close_stdin();
    assert_eq!(bridge.wait().0.code(), Some(0));
    let requests = server.requests();
    assert!(requests.iter().all(|request| request.method == "POST" && request.header("mcp-session-id").is_none()));
    assert!(requests.iter().all(|request| request.header("mcp-protocol-version") == Some("2026-07-28")));
    let call = &requests[1];
    let found = [call.header("mcp-method"), call.header("mcp-name"), call.header("mcp-param-region")];
    assert_eq!(found, [Some("tools/call"), Some("sql"), Some("=?base64?WsO8cmljaA==?=")]);
}

#[test]
fn a_cancelled_request_is_ended_by_its_connection() {
    let (closed, was_closed) = channel();
    let server = HttpServer::start(move |request, stream| {
        begin_events(stream);
        event(
            stream,
            "",
            &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": request.json()["id"]}),
        );
        wait_for_close(stream);
        closed.send(()).unwrap();
    });
    let mut bridge = Bridge::start(&server.url("/mcp"));
    bridge.request(1, "tools/call", params(json!({"name": "t"})));
    assert_eq!(bridge.receive()["method"], "notifications/progress");
    bridge.notify("notifications/cancelled", json!({"requestId": 1}));
    was_closed.recv_timeout(Duration::from_secs(20)).expect("the connection ends");
    bridge.close_stdin();
    let (status, left) = bridge.wait();
    assert_eq!((status.code(), left, server.requests().len()), (Some(0), vec![], 1));
}

#[test]
fn a_stream_that_ends_is_not_resumed() {
    let server = HttpServer::start(|request, stream| {
        begin_events(stream);
        event(
            stream,
            "e-1",
            &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": request.json()["id"]}),
        );
        crate::bridge::close(stream);
    });
    let mut bridge = Bridge::start(&server.url("/mcp"));
    bridge.request(1, "tools/call", params(json!({"name": "t"})));
    bridge.receive();
    assert_eq!(bridge.receive()["error"]["data"]["kind"], "outcome_unknown");
    assert_eq!(server.requests().len(), 1);
}
