//! Subscriptions on every framing with a connection that stays open.

use crate::fixture::{Client, Fixture, answer, error, is_limit, request};
use crate::ws::Ws;
use serde_json::{Value, json};

/// Checks the answer and three ticks, from any framing.
fn check_subscribed(id: Value, messages: [Value; 4]) -> Value {
    let name = messages[0]["result"].clone();
    assert!(name.is_u64(), "{messages:?}");
    let tick =
        |tick: u64| json!({ "jsonrpc": "2.0", "method": "tick", "params": { "subscription": name, "result": tick } });
    assert_eq!(messages, [answer(id, name.clone()), tick(1), tick(2), tick(3)]);
    name
}

async fn four(client: &mut Client) -> [Value; 4] {
    [client.line().await, client.line().await, client.line().await, client.line().await]
}

#[tokio::test]
async fn a_line_client_is_pushed_to_until_it_unsubscribes() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    for id in [json!(5), json!("x"), json!(-5)] {
        client.send(request(id.clone(), "ticks", json!({})) + "\n").await;
        let name = check_subscribed(id, four(&mut client).await);
        client.check_alive().await;
        assert_eq!(client.call("ticks.end", json!([name])).await, answer(json!(1), json!(true)));
        assert_eq!(fixture.next_note().await, "unsubscribed");
    }
}

#[tokio::test]
async fn content_length_and_websocket_clients_are_pushed_to() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    let call = request(json!(1), "ticks", json!({}));
    client.send(format!("Content-Length: {}\r\n\r\n{call}", call.len())).await;
    check_subscribed(json!(1), [client.body().await, client.body().await, client.body().await, client.body().await]);
    let mut ws = Ws::connect(&fixture).await;
    ws.send(call).await;
    check_subscribed(json!(1), [ws.json().await, ws.json().await, ws.json().await, ws.json().await]);
    drop(client);
    assert_eq!(fixture.next_note().await, "unsubscribed");
    drop(ws);
    assert_eq!(fixture.next_note().await, "unsubscribed");
}

#[tokio::test]
async fn a_closed_connection_ends_its_subscriptions() {
    let fixture = Fixture::start();
    for id in [1, -1] {
        let mut client = fixture.connect().await;
        client.send(request(json!(id), "ticks", json!({})) + "\n").await;
        check_subscribed(json!(id), four(&mut client).await);
        drop(client);
        assert_eq!(fixture.next_note().await, "unsubscribed");
        fixture.wait_disconnected().await;
    }
}

#[tokio::test]
async fn a_connection_has_a_limit_of_subscriptions() {
    let fixture = Fixture::with(|limits| limits.max_subscriptions = 1);
    let mut client = fixture.connect().await;
    client.send(request(json!(1), "ticks", json!({})) + "\n").await;
    let name = check_subscribed(json!(1), four(&mut client).await);
    assert!(is_limit(&client.call("ticks", json!({})).await, "max_subscriptions"));
    client.call("ticks.end", json!([name])).await;
    assert_eq!(fixture.next_note().await, "unsubscribed");
    client.check_alive().await;
    client.send(request(json!(1), "ticks", json!({})) + "\n").await;
    check_subscribed(json!(1), four(&mut client).await);
}

#[tokio::test]
async fn a_subscription_that_fails_is_answered_and_one_without_an_id_is_ignored() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    assert_eq!(error(&client.call("ticks", json!(["refuse"])).await), (json!(1), -32005, "denied"));
    assert_eq!(error(&client.call("ticks", json!(["drop"])).await), (json!(1), -32603, "internal"));
    client.send("{\"jsonrpc\":\"2.0\",\"method\":\"ticks\"}\n").await;
    client.check_alive().await;
}
