//! Calls on one connection: they run concurrently, survive hang-ups and panics, and every call with an id is answered.

use crate::fixture::{Fixture, answer, error, in_time, request};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;

#[tokio::test]
async fn a_call_that_never_ends_does_not_delay_the_next() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    client.send(request(json!("slow"), "gate", json!({})) + "\n").await;
    client.check_alive().await;
    fixture.context.gate.add_permits(1);
    assert_eq!(client.line().await, answer(json!("slow"), json!({})));
}

#[tokio::test]
async fn a_hang_up_does_not_cancel_a_call() {
    let fixture = Fixture::start();
    let call = request(json!(1), "gate", json!({}));
    let upgrade = "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    let mut frame = vec![0x81, 0x80 | call.len() as u8, 0, 0, 0, 0];
    frame.extend_from_slice(call.as_bytes());
    for text in [
        format!("{call}\n").into_bytes(),
        format!("Content-Length: {}\r\n\r\n{call}", call.len()).into_bytes(),
        format!("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{call}", call.len()).into_bytes(),
        [upgrade.as_bytes(), &frame].concat(),
    ] {
        let mut client = fixture.connect().await;
        client.send(text).await;
        assert_eq!(fixture.next_note().await, "waiting");
        drop(client);
        fixture.wait_disconnected().await;
        assert_eq!(fixture.wire.calls(), 1);
        fixture.context.gate.add_permits(1);
        assert_eq!(fixture.next_note().await, "passed");
    }
    in_time(async {
        while fixture.wire.calls() > 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn a_client_that_only_stops_sending_still_gets_its_answers() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    // No newline at the end, as from `printf`.
    client.send(request(json!(7), "gate", json!({}))).await;
    client.0.get_mut().shutdown().await.expect("half closed");
    assert_eq!(fixture.next_note().await, "waiting");
    fixture.context.gate.add_permits(1);
    assert_eq!(serde_json::from_str::<Value>(&client.rest().await).expect("JSON"), answer(json!(7), json!({})));
    drop(client);
    fixture.wait_disconnected().await;
}

#[tokio::test]
async fn a_half_closed_client_that_then_disconnects_is_dropped() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    client.send(request(json!(7), "gate", json!({})) + "\n").await;
    assert_eq!(fixture.next_note().await, "waiting");
    client.0.get_mut().shutdown().await.expect("half closed");
    let mut other = fixture.connect().await;
    other.check_alive().await;
    drop((client, other));
    fixture.wait_disconnected().await;
    assert_eq!(fixture.wire.calls(), 1);
}

#[tokio::test]
async fn a_panic_is_an_internal_error_and_the_connection_stays() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    for method in ["panic", "panic_later"] {
        assert_eq!(error(&client.call(method, json!({})).await), (json!(1), -32603, "internal"));
        // A notification that panics is not answered and does no harm.
        client.send(json!({ "jsonrpc": "2.0", "method": method }).to_string() + "\n").await;
        let batch = format!("[{},{}]", request(json!(2), method, json!({})), request(json!(3), "echo", json!({})));
        let answers = client.round_trip(&batch).await;
        assert_eq!(error(&answers[0]), (json!(2), -32603, "internal"));
        assert_eq!(answers[1], answer(json!(3), json!({})));
    }
    client.check_alive().await;
}

#[tokio::test]
async fn a_notification_is_run_and_not_answered() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    client.send("{\"jsonrpc\":\"2.0\",\"method\":\"note\",\"params\":[1]}\n").await;
    client.send("{\"jsonrpc\":\"2.0\",\"method\":\"gate\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"no such\"}\n").await;
    assert_eq!((fixture.next_note().await, fixture.next_note().await), ("note [1]".into(), "waiting".into()));
    fixture.context.gate.add_permits(1);
    assert_eq!(fixture.next_note().await, "passed");
    client.check_alive().await;
}

#[tokio::test]
async fn every_legal_id_is_answered_unchanged() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    for id in ["0", "-1", "18446744073709551615", "-99999999999999999999", "\"a\\n\"", "\"\"", "null"] {
        for method in ["echo", "peer", "nothing"] {
            client.send(format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"method\":\"{method}\"}}\n")).await;
            let mut line = String::new();
            in_time(tokio::io::AsyncBufReadExt::read_line(&mut client.0, &mut line)).await.expect("read");
            assert!(line.starts_with(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},")), "{line}");
        }
    }
}

#[tokio::test]
async fn an_invalid_request_is_an_error_and_the_connection_stays() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    for (text, expected) in [
        ("{", (Value::Null, -32700, "parse_error")),
        ("{\"jsonrpc\": nope}", (Value::Null, -32700, "parse_error")),
        ("true", (Value::Null, -32600, "invalid_request")),
        ("{}", (Value::Null, -32600, "invalid_request")),
        ("[]", (Value::Null, -32600, "invalid_request")),
        ("{\"jsonrpc\":\"2.0\",\"method\":\"echo\",\"id\":1.5}", (Value::Null, -32600, "invalid_request")),
        ("{\"jsonrpc\":\"2.0\",\"method\":\"echo\",\"id\":[1]}", (Value::Null, -32600, "invalid_request")),
        ("{\"jsonrpc\":\"2.0\",\"method\":1,\"id\":5}", (json!(5), -32600, "invalid_request")),
        ("{\"jsonrpc\":\"2.0\",\"method\":\"echo\",\"params\":1,\"id\":5}", (json!(5), -32600, "invalid_request")),
        ("{\"method\":\"echo\",\"id\":\"x\"}", (json!("x"), -32600, "invalid_request")),
        ("{\"jsonrpc\":\"2.0\",\"method\":\"nothing\",\"id\":5}", (json!(5), -32601, "method_not_found")),
    ] {
        assert_eq!(error(&client.round_trip(text).await), expected, "{text}");
    }
    assert_eq!(client.round_trip("[1]").await[0]["error"]["code"], -32600);
    client.check_alive().await;
}

#[tokio::test]
async fn an_error_names_the_wrong_parameter() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    for (params, param) in [
        (json!({}), "session_key"),
        (json!({ "session_key": 7 }), "session_key"),
        (json!({ "session_key": "a", "sesion": "b" }), "sesion"),
        (json!(["a"]), "params"),
    ] {
        let answer = client.call("session.end", params).await;
        assert_eq!(error(&answer), (json!(1), -32602, "invalid_params"));
        assert_eq!(answer["error"]["data"]["param"], param);
        assert!(answer["error"]["message"].as_str().expect("a message").starts_with(&format!("{param}: ")), "{answer}");
    }
    let ended = json!({ "session_key": "a", "killed": [], "count": 0 });
    assert_eq!(client.call("session.end", json!({ "session_key": "a" })).await, answer(json!(1), ended));
}

#[tokio::test]
async fn every_call_has_the_identity_of_its_peer() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    let peer = |connection: u64| json!({ "uid": nix::unistd::getuid().as_raw(), "pid": std::process::id(), "connection": connection });
    assert_eq!(client.call("peer", json!({})).await["result"], peer(1));
    assert_eq!(client.round_trip(&format!("[{}]", request(json!(1), "peer", json!({})))).await[0]["result"], peer(1));
    assert_eq!(fixture.connect().await.call("peer", json!({})).await["result"], peer(2));
}
