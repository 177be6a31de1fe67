//! Stopping: no new clients, the finished answers, then every connection is closed.

use crate::fixture::{Fixture, answer, in_time, request};
use crate::ws::Ws;
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

#[tokio::test]
async fn stopping_closes_every_connection_and_returns() {
    let fixture = Fixture::start();
    let mut waiting = fixture.connect().await;
    waiting.send(request(json!(1), "gate", json!({})) + "\n").await;
    assert_eq!(fixture.next_note().await, "waiting");
    let mut idle = fixture.connect().await;
    idle.check_alive().await;
    let mut silent = fixture.connect().await;
    let mut ws = Ws::connect(&fixture).await;
    fixture.stop();
    assert_eq!([waiting.rest().await, idle.rest().await, silent.rest().await], ["", "", ""]);
    let Message::Close(Some(close)) = ws.next().await else { panic!("a reason") };
    assert_eq!(close.code, CloseCode::Away);
    drop(ws);
    in_time(fixture.serving).await.expect("came back");
    assert_eq!(fixture.wire.connections(), 0);
    assert!(UnixStream::connect(&fixture.socket).await.is_err());
    // The call itself continues.
    fixture.context.gate.add_permits(1);
    while fixture.wire.calls() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_call_that_stops_the_daemon_is_answered() {
    let call = request(json!(1), "daemon.shutdown", json!({}));
    let stopping = answer(json!(1), json!("stopping"));
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    client.send(format!("{call}\n")).await;
    assert_eq!(client.line().await, stopping);
    assert_eq!(client.rest().await, "");
    in_time(fixture.serving).await.expect("came back");

    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    client.send(format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{call}", call.len())).await;
    let answer_text = client.rest().await;
    let body = answer_text.split("\r\n\r\n").nth(1).expect("a body");
    assert_eq!(serde_json::from_str::<Value>(body).expect("JSON"), stopping);
    drop(client);
    in_time(fixture.serving).await.expect("came back");

    let fixture = Fixture::start();
    let mut ws = Ws::connect(&fixture).await;
    assert_eq!(ws.round_trip(call).await, stopping);
}

#[tokio::test]
async fn a_client_that_does_not_read_does_not_hold_up_the_stop() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    client.send(request(json!(1), "big", json!({ "bytes": 8 << 20 })) + "\n").await;
    let mut first = [0];
    in_time(tokio::io::AsyncReadExt::read_exact(&mut client.0, &mut first)).await.expect("it is being written");
    fixture.stop();
    in_time(fixture.serving).await.expect("came back");
}
