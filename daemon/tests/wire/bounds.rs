//! The limits on what a client can make the daemon hold, and the error at each.

use crate::fixture::{Fixture, answer, error, in_time, is_limit, request};
use serde_json::json;
use tokio::io::AsyncReadExt;

#[tokio::test]
async fn over_the_call_limit_only_urgent_calls_pass() {
    let fixture = Fixture::with(|limits| limits.max_requests_in_flight = 2);
    let mut client = fixture.connect().await;
    for id in ["a", "b"] {
        client.send(request(json!(id), "gate", json!({})) + "\n").await;
        assert_eq!(fixture.next_note().await, "waiting");
    }
    assert!(is_limit(&client.call("echo", json!({})).await, "max_requests_in_flight"));
    for id in 0..64 {
        client.send(request(json!(id), "kill", json!({})) + "\n").await;
        assert_eq!(fixture.next_note().await, "waiting");
    }
    assert!(is_limit(&client.call("kill", json!({})).await, "max_requests_in_flight"));
    // Another connection has a limit of its own.
    fixture.connect().await.check_alive().await;
    fixture.context.gate.add_permits(66);
    for _ in 0..66 {
        assert_eq!(client.line().await["result"], json!({}));
    }
    client.check_alive().await;
}

#[tokio::test]
async fn an_error_replaces_an_answer_that_is_too_large_to_wait() {
    let fixture = Fixture::with(|limits| limits.max_outgoing_bytes = 1000);
    let mut client = fixture.connect().await;
    client.send(request(json!(-4), "gate", json!({ "text": "x".repeat(2000) })) + "\n").await;
    assert_eq!(fixture.next_note().await, "waiting");
    fixture.context.gate.add_permits(1);
    let refused = client.line().await;
    assert!(is_limit(&refused, "max_outgoing_bytes") && refused["id"] == -4, "{refused}");
    client.check_alive().await;
}

#[tokio::test]
async fn deep_json_is_refused_without_recursion_and_the_connection_stays() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    for deep in ["[".repeat(100_000), format!("{{\"a\":{}1{}}}", "[".repeat(128), "]".repeat(128))] {
        assert!(is_limit(&client.round_trip(&deep).await, "max_nesting"));
    }
    let params = format!("{}{}", "[".repeat(127), "]".repeat(127));
    let fits =
        client.round_trip(&format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"note\",\"params\":{params}}}")).await;
    assert_eq!(fits, answer(json!(1), json!(null)));
}

#[tokio::test]
async fn a_line_over_the_limit_is_dropped_and_the_connection_stays() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    client.send("{\"x\":\"").await;
    for _ in 0..20 {
        client.send(vec![b'x'; 1 << 20]).await;
    }
    assert!(is_limit(&client.line().await, "max_message_bytes"));
    client.send("\"}\n").await;
    client.check_alive().await;
}

#[tokio::test]
async fn a_message_at_the_limit_is_accepted_and_one_byte_more_is_not() {
    let call = request(json!(1), "echo", json!({ "a": 1 }));
    let fixture = Fixture::with(|limits| limits.max_message_bytes = call.len());
    let mut client = fixture.connect().await;
    client.check_alive().await;
    assert!(is_limit(&client.round_trip(&format!("{call} ")).await, "max_message_bytes"));
    client.check_alive().await;
}

#[tokio::test]
async fn a_client_over_the_limit_gets_the_error_in_its_own_framing() {
    let fixture = Fixture::with(|limits| limits.max_connections = 1);
    let mut first = fixture.connect().await;
    first.check_alive().await;
    assert_eq!(fixture.wire.connections(), 1);

    let mut second = fixture.connect().await;
    second.send(request(json!(1), "note", json!({})) + "\n").await;
    assert!(is_limit(&second.line().await, "max_connections"));
    assert_eq!(second.rest().await, "");
    let mut second = fixture.connect().await;
    second.send("Content-Length: 2\r\n\r\n{}").await;
    assert!(is_limit(&second.body().await, "max_connections"));
    let mut second = fixture.connect().await;
    second.send("POST / HTTP/1.1\r\n\r\n").await;
    let answer_text = second.rest().await;
    assert!(
        answer_text.starts_with("HTTP/1.1 503 ") && answer_text.contains("\"limit\":\"max_connections\""),
        "{answer_text}"
    );

    drop(first);
    fixture.wait_disconnected().await;
    fixture.connect().await.check_alive().await;
}

#[tokio::test]
async fn a_client_that_sends_nothing_is_closed_and_one_that_sent_is_not() {
    let fixture = Fixture::with(|limits| limits.first_byte_ms = 1000);
    let mut active = fixture.connect().await;
    active.check_alive().await;
    let mut silent = fixture.connect().await;
    // Blanks do not count.
    silent.send(" \n").await;
    assert!(is_limit(&silent.line().await, "first_byte_ms"));
    assert_eq!(silent.rest().await, "");
    active.check_alive().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_is_not_read_either() {
    const CALLS: u64 = 400;
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    // Each answer is large, and each call leaves a note.
    let calls: String = (0..CALLS)
        .map(|id| {
            request(json!(id), "big", json!({ "bytes": 65_536 })) + "\n{\"jsonrpc\":\"2.0\",\"method\":\"note\"}\n"
        })
        .collect();
    client.send(calls).await;
    let mut other = fixture.connect().await;
    for _ in 0..200 {
        other.check_alive().await;
    }
    // 256 KiB of burst and the socket's own buffers, not 25 MiB.
    let mut run = 0;
    while fixture.take_note().await {
        run += 1;
    }
    assert!(run < 100, "{run} calls ran for a client that reads nothing");
    for id in 0..CALLS {
        let answer = client.line().await;
        assert_eq!((answer["id"].as_u64(), answer["result"].as_str().map(str::len)), (Some(id), Some(65_536)));
    }
}

#[tokio::test]
async fn an_unknown_protocol_gets_an_error_with_the_framings() {
    let fixture = Fixture::start();
    for hello in ["hello\n", "\u{16}\u{3}\u{1}", "\"x\"\n", "9"] {
        let mut client = fixture.connect().await;
        client.send(hello).await;
        let answer_text = client.line().await;
        assert_eq!(error(&answer_text), (json!(null), -32700, "parse_error"));
        let mut nothing = [0];
        assert_eq!(in_time(client.0.read(&mut nothing)).await.expect("closed, not reset"), 0);
    }
}
