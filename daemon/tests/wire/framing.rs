//! Lines and Content-Length over a real socket, cut anywhere.

use crate::fixture::{Fixture, answer, error, is_limit, request};
use serde_json::json;

fn framed(text: &str) -> String {
    format!("Content-Length: {}\r\n\r\n{text}", text.len())
}

#[tokio::test]
async fn bytes_one_by_one_are_the_same_messages() {
    let fixture = Fixture::start();
    let call = request(json!(1), "echo", json!({ "text": "ä\n€" }));
    let result = answer(json!(1), json!({ "text": "ä\n€" }));
    let mut client = fixture.connect().await;
    for byte in format!(" \r\n{call}\r\n\n{call}\n").bytes() {
        client.send([byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!([client.line().await, client.line().await], [result.clone(), result.clone()]);
    let mut client = fixture.connect().await;
    for byte in format!("\n{}{}", framed(&call), framed(&call)).bytes() {
        client.send([byte]).await;
        tokio::task::yield_now().await;
    }
    assert_eq!([client.body().await, client.body().await], [result.clone(), result]);
}

#[tokio::test]
async fn a_burst_is_answered_in_order() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    let burst: String = (0..1000).map(|id| request(json!(id), "echo", json!({})) + "\n").collect();
    client.send(burst).await;
    for id in 0..1000 {
        assert_eq!(client.line().await, answer(json!(id), json!({})));
    }
}

#[tokio::test]
async fn content_length_gives_every_guarantee_of_lines() {
    let fixture = Fixture::with(|limits| limits.max_message_bytes = 1000);
    let mut client = fixture.connect().await;
    client.send("content-length: 1\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n{").await;
    assert_eq!(error(&client.body().await), (json!(null), -32700, "parse_error"));
    client.send(framed("{}")).await;
    assert_eq!(error(&client.body().await), (json!(null), -32600, "invalid_request"));
    client.send(framed(&"x".repeat(1001))).await;
    assert!(is_limit(&client.body().await, "max_message_bytes"));
    client.send(framed(&"[".repeat(1000))).await;
    assert!(is_limit(&client.body().await, "max_nesting"));
    client.send(framed(&request(json!(1), "panic_later", json!({})))).await;
    assert_eq!(error(&client.body().await), (json!(1), -32603, "internal"));
    client.send(framed("{\"jsonrpc\":\"2.0\",\"method\":\"note\"}")).await;
    assert_eq!(fixture.next_note().await, "note ");
    client.send(framed(&request(json!("slow"), "gate", json!({})))).await;
    client.send(framed(&format!("[{}]", request(json!(2), "echo", json!({}))))).await;
    assert_eq!(client.body().await, json!([answer(json!(2), json!({}))]));
    fixture.context.gate.add_permits(1);
    assert_eq!(client.body().await, answer(json!("slow"), json!({})));
}

#[tokio::test]
async fn a_broken_header_is_answered_and_the_connection_closed() {
    let fixture = Fixture::start();
    let long = format!("C{}", "x".repeat(9000));
    for text in ["Content-Length: -1\r\n\r\n", "Content-Length: 99999999999999\r\n\r\n{}", "CONNECT x\r\n\r\n", &long] {
        let mut client = fixture.connect().await;
        client.send(text).await;
        assert_eq!(error(&client.body().await), (json!(null), -32700, "parse_error"), "{text}");
        assert_eq!(client.rest().await, "");
    }
}
