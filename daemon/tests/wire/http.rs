//! HTTP POST as raw bytes, as curl sends it.

use crate::fixture::{Client, Fixture, answer, error, in_time, is_limit, request};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt};

/// A response: its status line and headers in lower case, and its body.
struct Response {
    head: String,
    body: String,
}

impl Response {
    fn json(&self) -> Value {
        assert!(self.head.contains("content-type: application/json"), "{}", self.head);
        serde_json::from_str(&self.body).expect("JSON")
    }
}

fn post(body: &str) -> String {
    // The type that `curl -d` sends, which is not application/json.
    format!(
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

async fn response(client: &mut Client) -> Response {
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        assert!(in_time(client.0.read_line(&mut head)).await.expect("read") > 0, "{head}");
    }
    let head = head.to_lowercase();
    let length = head.split("content-length: ").nth(1).and_then(|rest| rest.split("\r\n").next()?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    in_time(client.0.read_exact(&mut body)).await.expect("read");
    Response { head, body: String::from_utf8(body).expect("text") }
}

async fn ask(client: &mut Client, body: &str) -> Response {
    client.send(post(body)).await;
    response(client).await
}

#[tokio::test]
async fn one_connection_carries_many_posts() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    let call = request(json!(-1), "echo", json!({ "a": 1 }));
    let reply = ask(&mut client, &call).await;
    assert!(reply.head.starts_with("http/1.1 200 "), "{}", reply.head);
    assert_eq!(reply.json(), answer(json!(-1), json!({ "a": 1 })));
    let batch = ask(&mut client, &format!("[{call},{{}}]")).await.json();
    assert_eq!((batch[0].clone(), error(&batch[1]).1), (answer(json!(-1), json!({ "a": 1 })), -32600));
    assert_eq!(error(&ask(&mut client, "{").await.json()), (json!(null), -32700, "parse_error"));
    assert_eq!(error(&ask(&mut client, "").await.json()), (json!(null), -32700, "parse_error"));
    assert_eq!(ask(&mut client, &request(json!(1), "peer", json!({}))).await.json()["result"]["connection"], 1);
    for method in ["panic", "panic_later"] {
        let refused = ask(&mut client, &request(json!(1), method, json!({}))).await.json();
        assert_eq!(error(&refused), (json!(1), -32603, "internal"));
    }
    assert!(is_limit(&ask(&mut client, &"[".repeat(100_000)).await.json(), "max_nesting"));
    assert_eq!(ask(&mut client, &call).await.json(), answer(json!(-1), json!({ "a": 1 })));
}

#[tokio::test]
async fn a_notification_has_no_content() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    let reply = ask(&mut client, "[{\"jsonrpc\":\"2.0\",\"method\":\"note\"}]").await;
    assert!(reply.head.starts_with("http/1.1 204 "), "{}", reply.head);
    assert_eq!(fixture.next_note().await, "note ");
}

#[tokio::test]
async fn a_call_that_waits_is_answered_when_it_ends() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    client.send(post(&request(json!(1), "gate", json!({})))).await;
    assert_eq!(fixture.next_note().await, "waiting");
    fixture.context.gate.add_permits(1);
    assert_eq!(response(&mut client).await.json(), answer(json!(1), json!({})));
}

#[tokio::test]
async fn a_get_is_answered_with_405_and_allow_post() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let reply = response(&mut client).await;
    assert!(reply.head.starts_with("http/1.1 405 ") && reply.head.contains("allow: post"), "{}", reply.head);
    assert!(reply.body.contains("POST"), "{}", reply.body);
    assert_eq!(ask(&mut client, &request(json!(1), "echo", json!({}))).await.json(), answer(json!(1), json!({})));
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_with_413() {
    let fixture = Fixture::with(|limits| limits.max_message_bytes = 1000);
    let mut client = fixture.connect().await;
    let refused = ask(&mut client, &"x".repeat(1_000_000)).await;
    assert!(refused.head.starts_with("http/1.1 413 "), "{}", refused.head);
    assert!(is_limit(&refused.json(), "max_message_bytes"));
    // Without a length the limit is found while reading.
    let chunk = format!("{:x}\r\n{}\r\n", 600, "x".repeat(600)).repeat(3);
    client.send(format!("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{chunk}0\r\n\r\n")).await;
    let refused = response(&mut client).await;
    assert!(
        refused.head.starts_with("http/1.1 413 ") && is_limit(&refused.json(), "max_message_bytes"),
        "{}",
        refused.head
    );
    assert_eq!(ask(&mut client, &request(json!(1), "echo", json!({}))).await.json(), answer(json!(1), json!({})));
    // A client that sends `Expect` does not have to send the body.
    client.send("POST / HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 5000\r\n\r\n").await;
    let refused = response(&mut client).await;
    assert!(
        refused.head.starts_with("http/1.1 413 ") && refused.head.contains("connection: close"),
        "{}",
        refused.head
    );
}

#[tokio::test]
async fn a_subscription_and_requests_to_the_client_are_refused_with_the_transports_that_allow_them() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    for method in ["ticks", "link"] {
        let refused = ask(&mut client, &request(json!(1), method, json!({}))).await.json();
        assert_eq!(error(&refused), (json!(1), -32600, "invalid_request"), "{method}");
        assert!(refused["error"]["message"].as_str().expect("a message").contains("WebSocket"), "{method}");
    }
}
