//! Stopping: nobody new, the answers that are ready, and then silence.

use crate::toy::{Toy, answer, request, soon};
use crate::ws::Ws;
use serde_json::{Value, json};
use tokio::net::UnixStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

#[tokio::test]
async fn stopping_closes_every_connection_and_comes_back() {
    let toy = Toy::start();
    let mut waiting = toy.connect().await;
    waiting.send(request(json!(1), "gate", json!({})) + "\n").await;
    assert_eq!(toy.news().await, "waiting");
    let mut idle = toy.connect().await;
    idle.is_well().await;
    let mut silent = toy.connect().await;
    let mut ws = Ws::connect(&toy).await;
    toy.stop();
    assert_eq!([waiting.rest().await, idle.rest().await, silent.rest().await], ["", "", ""]);
    let Message::Close(Some(close)) = ws.next().await else { panic!("a reason") };
    assert_eq!(close.code, CloseCode::Away);
    drop(ws);
    soon(toy.serving).await.expect("came back");
    assert_eq!(toy.wire.connections(), 0);
    assert!(UnixStream::connect(&toy.socket).await.is_err());
    // The call itself goes on.
    toy.context.gate.add_permits(1);
    while toy.wire.calls() > 0 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_call_that_stops_the_daemon_is_answered() {
    let call = request(json!(1), "daemon.shutdown", json!({}));
    let stopping = answer(json!(1), json!("stopping"));
    let toy = Toy::start();
    let mut client = toy.connect().await;
    client.send(format!("{call}\n")).await;
    assert_eq!(client.line().await, stopping);
    assert_eq!(client.rest().await, "");
    soon(toy.serving).await.expect("came back");

    let toy = Toy::start();
    let mut client = toy.connect().await;
    client.send(format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{call}", call.len())).await;
    let told = client.rest().await;
    let body = told.split("\r\n\r\n").nth(1).expect("a body");
    assert_eq!(serde_json::from_str::<Value>(body).expect("JSON"), stopping);
    drop(client);
    soon(toy.serving).await.expect("came back");

    let toy = Toy::start();
    let mut ws = Ws::connect(&toy).await;
    assert_eq!(ws.ask(call).await, stopping);
}

#[tokio::test]
async fn a_client_that_does_not_read_does_not_hold_up_the_stop() {
    let toy = Toy::start();
    let mut client = toy.connect().await;
    client.send(request(json!(1), "big", json!({ "bytes": 8 << 20 })) + "\n").await;
    let mut first = [0];
    soon(tokio::io::AsyncReadExt::read_exact(&mut client.0, &mut first)).await.expect("it is being written");
    toy.stop();
    soon(toy.serving).await.expect("came back");
}
