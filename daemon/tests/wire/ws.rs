//! WebSocket, with the library's own client.

use crate::fixture::{Fixture, answer, error, in_time, is_limit, request};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{WebSocketStream, client_async};

pub struct Ws(pub WebSocketStream<UnixStream>);

impl Ws {
    pub async fn connect(fixture: &Fixture) -> Ws {
        let stream = UnixStream::connect(&fixture.socket).await.expect("connected");
        Ws(in_time(client_async("ws://toold/", stream)).await.expect("upgraded").0)
    }

    pub async fn send(&mut self, text: String) {
        in_time(self.0.send(Message::text(text))).await.expect("sent");
    }

    pub async fn next(&mut self) -> Message {
        in_time(self.0.next()).await.expect("a message").expect("no error")
    }

    pub async fn json(&mut self) -> Value {
        serde_json::from_str(self.next().await.to_text().expect("text")).expect("JSON")
    }

    pub async fn round_trip(&mut self, text: String) -> Value {
        self.send(text).await;
        self.json().await
    }
}

#[tokio::test]
async fn a_websocket_gives_every_guarantee_of_lines() {
    let fixture = Fixture::start();
    let mut ws = Ws::connect(&fixture).await;
    let echo = request(json!(-1), "echo", json!({ "a": 1 }));
    assert_eq!(ws.round_trip(echo.clone()).await, answer(json!(-1), json!({ "a": 1 })));
    ws.send(request(json!("slow"), "gate", json!({}))).await;
    assert_eq!(ws.round_trip(format!("[{echo}]")).await, json!([answer(json!(-1), json!({ "a": 1 }))]));
    assert_eq!(error(&ws.round_trip("{".into()).await), (json!(null), -32700, "parse_error"));
    assert_eq!(error(&ws.round_trip("[1]".into()).await[0]), (json!(null), -32600, "invalid_request"));
    assert!(is_limit(&ws.round_trip("[".repeat(100_000)).await, "max_nesting"));
    for method in ["panic", "panic_later"] {
        assert_eq!(error(&ws.round_trip(request(json!(1), method, json!({}))).await), (json!(1), -32603, "internal"));
    }
    ws.send("{\"jsonrpc\":\"2.0\",\"method\":\"note\"}".into()).await;
    assert_eq!([fixture.next_note().await, fixture.next_note().await], ["waiting", "note "]);
    in_time(ws.0.send(Message::binary(echo))).await.expect("sent");
    assert_eq!(ws.json().await, answer(json!(-1), json!({ "a": 1 })));
    fixture.context.gate.add_permits(1);
    assert_eq!(ws.json().await, answer(json!("slow"), json!({})));
    in_time(ws.0.send(Message::Ping("x".into()))).await.expect("sent");
    assert_eq!(ws.next().await, Message::Pong("x".into()));
    in_time(ws.0.close(None)).await.expect("closed");
    drop(ws);
    fixture.wait_disconnected().await;
}

#[tokio::test]
async fn calls_in_flight_are_bounded() {
    let fixture = Fixture::with(|limits| limits.max_requests_in_flight = 1);
    let mut ws = Ws::connect(&fixture).await;
    ws.send(request(json!("slow"), "gate", json!({}))).await;
    assert!(is_limit(&ws.round_trip(request(json!(1), "echo", json!({}))).await, "max_requests_in_flight"));
    ws.send(request(json!("kill"), "kill", json!({}))).await;
    fixture.context.gate.add_permits(2);
    let ids = [ws.json().await["id"].clone(), ws.json().await["id"].clone()];
    assert!(ids.contains(&json!("slow")) && ids.contains(&json!("kill")), "{ids:?}");
}

#[tokio::test]
async fn a_message_over_the_limit_is_an_error_and_closes_with_1009() {
    let fixture = Fixture::with(|limits| limits.max_message_bytes = 1000);
    let mut ws = Ws::connect(&fixture).await;
    assert_eq!(ws.round_trip(request(json!(1), "echo", json!({}))).await, answer(json!(1), json!({})));
    ws.send("x".repeat(100_000)).await;
    assert!(is_limit(&ws.json().await, "max_message_bytes"));
    let Message::Close(Some(close)) = ws.next().await else { panic!("a reason") };
    assert_eq!(close.code, CloseCode::Size);
    drop(ws);
    fixture.wait_disconnected().await;
}

#[tokio::test]
async fn a_bad_handshake_is_answered_with_an_error() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n").await;
    let answer_text = client.line_text().await;
    assert!(answer_text.starts_with("HTTP/1.1 400 "), "{answer_text}");
}
