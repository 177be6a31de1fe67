//! WebSocket, with the library's own client.

use crate::toy::{Toy, answer, error, is_limit, request, soon};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::{WebSocketStream, client_async};

pub struct Ws(pub WebSocketStream<UnixStream>);

impl Ws {
    pub async fn connect(toy: &Toy) -> Ws {
        let stream = UnixStream::connect(&toy.socket).await.expect("connected");
        Ws(soon(client_async("ws://toold/", stream)).await.expect("upgraded").0)
    }

    pub async fn send(&mut self, text: String) {
        soon(self.0.send(Message::text(text))).await.expect("sent");
    }

    pub async fn next(&mut self) -> Message {
        soon(self.0.next()).await.expect("a message").expect("no error")
    }

    pub async fn json(&mut self) -> Value {
        serde_json::from_str(self.next().await.to_text().expect("text")).expect("JSON")
    }

    pub async fn ask(&mut self, text: String) -> Value {
        self.send(text).await;
        self.json().await
    }
}

#[tokio::test]
async fn a_websocket_keeps_every_promise_of_lines() {
    let toy = Toy::start();
    let mut ws = Ws::connect(&toy).await;
    let echo = request(json!(-1), "echo", json!({ "a": 1 }));
    assert_eq!(ws.ask(echo.clone()).await, answer(json!(-1), json!({ "a": 1 })));
    ws.send(request(json!("slow"), "gate", json!({}))).await;
    assert_eq!(ws.ask(format!("[{echo}]")).await, json!([answer(json!(-1), json!({ "a": 1 }))]));
    assert_eq!(error(&ws.ask("{".into()).await), (json!(null), -32700, "parse_error"));
    assert_eq!(error(&ws.ask("[1]".into()).await[0]), (json!(null), -32600, "invalid_request"));
    assert!(is_limit(&ws.ask("[".repeat(100_000)).await, "max_nesting"));
    for method in ["panic", "panic_later"] {
        assert_eq!(error(&ws.ask(request(json!(1), method, json!({}))).await), (json!(1), -32603, "internal"));
    }
    ws.send("{\"jsonrpc\":\"2.0\",\"method\":\"note\"}".into()).await;
    assert_eq!([toy.news().await, toy.news().await], ["waiting", "note "]);
    soon(ws.0.send(Message::binary(echo))).await.expect("sent");
    assert_eq!(ws.json().await, answer(json!(-1), json!({ "a": 1 })));
    toy.context.gate.add_permits(1);
    assert_eq!(ws.json().await, answer(json!("slow"), json!({})));
    soon(ws.0.send(Message::Ping("x".into()))).await.expect("sent");
    assert_eq!(ws.next().await, Message::Pong("x".into()));
    soon(ws.0.close(None)).await.expect("closed");
    drop(ws);
    toy.alone().await;
}

#[tokio::test]
async fn calls_in_flight_are_bounded() {
    let toy = Toy::with(|limits| limits.max_requests_in_flight = 1);
    let mut ws = Ws::connect(&toy).await;
    ws.send(request(json!("slow"), "gate", json!({}))).await;
    assert!(is_limit(&ws.ask(request(json!(1), "echo", json!({}))).await, "max_requests_in_flight"));
    ws.send(request(json!("kill"), "kill", json!({}))).await;
    toy.context.gate.add_permits(2);
    let ids = [ws.json().await["id"].clone(), ws.json().await["id"].clone()];
    assert!(ids.contains(&json!("slow")) && ids.contains(&json!("kill")), "{ids:?}");
}

#[tokio::test]
async fn a_message_over_the_limit_is_told_and_closes_with_1009() {
    let toy = Toy::with(|limits| limits.max_message_bytes = 1000);
    let mut ws = Ws::connect(&toy).await;
    assert_eq!(ws.ask(request(json!(1), "echo", json!({}))).await, answer(json!(1), json!({})));
    ws.send("x".repeat(100_000)).await;
    assert!(is_limit(&ws.json().await, "max_message_bytes"));
    let Message::Close(Some(close)) = ws.next().await else { panic!("a reason") };
    assert_eq!(close.code, CloseCode::Size);
    drop(ws);
    toy.alone().await;
}

#[tokio::test]
async fn a_bad_handshake_is_told_so() {
    let toy = Toy::start();
    let mut client = toy.connect().await;
    client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n").await;
    let told = client.line_text().await;
    assert!(told.starts_with("HTTP/1.1 400 "), "{told}");
}
