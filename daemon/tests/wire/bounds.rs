//! What a client can make the daemon hold, and what it is told at each limit.

use crate::toy::{Toy, answer, error, is_limit, request, soon};
use serde_json::json;
use tokio::io::AsyncReadExt;

#[tokio::test]
async fn over_the_limit_of_calls_only_those_that_end_things_pass() {
    let toy = Toy::with(|limits| limits.max_requests_in_flight = 2);
    let mut client = toy.connect().await;
    for id in ["a", "b"] {
        client.send(request(json!(id), "gate", json!({})) + "\n").await;
        assert_eq!(toy.news().await, "waiting");
    }
    assert!(is_limit(&client.call("echo", json!({})).await, "max_requests_in_flight"));
    for id in 0..64 {
        client.send(request(json!(id), "kill", json!({})) + "\n").await;
        assert_eq!(toy.news().await, "waiting");
    }
    assert!(is_limit(&client.call("kill", json!({})).await, "max_requests_in_flight"));
    // Another connection has its own.
    toy.connect().await.is_well().await;
    toy.context.gate.add_permits(66);
    for _ in 0..66 {
        assert_eq!(client.line().await["result"], json!({}));
    }
    client.is_well().await;
}

#[tokio::test]
async fn an_answer_too_large_to_wait_is_replaced_by_an_error() {
    let toy = Toy::with(|limits| limits.max_outgoing_bytes = 1000);
    let mut client = toy.connect().await;
    client.send(request(json!(-4), "gate", json!({ "text": "x".repeat(2000) })) + "\n").await;
    assert_eq!(toy.news().await, "waiting");
    toy.context.gate.add_permits(1);
    let refused = client.line().await;
    assert!(is_limit(&refused, "max_outgoing_bytes") && refused["id"] == -4, "{refused}");
    client.is_well().await;
}

#[tokio::test]
async fn deep_json_is_refused_without_recursion_and_the_connection_lives() {
    let toy = Toy::start();
    let mut client = toy.connect().await;
    for deep in ["[".repeat(100_000), format!("{{\"a\":{}1{}}}", "[".repeat(128), "]".repeat(128))] {
        assert!(is_limit(&client.ask(&deep).await, "max_nesting"));
    }
    let params = format!("{}{}", "[".repeat(127), "]".repeat(127));
    let fits = client.ask(&format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"note\",\"params\":{params}}}")).await;
    assert_eq!(fits, answer(json!(1), json!(null)));
}

#[tokio::test]
async fn a_line_over_the_limit_is_thrown_away_and_the_connection_lives() {
    let toy = Toy::start();
    let mut client = toy.connect().await;
    client.send("{\"x\":\"").await;
    for _ in 0..20 {
        client.send(vec![b'x'; 1 << 20]).await;
    }
    assert!(is_limit(&client.line().await, "max_message_bytes"));
    client.send("\"}\n").await;
    client.is_well().await;
}

#[tokio::test]
async fn a_message_at_the_limit_is_taken_and_one_byte_more_is_not() {
    let call = request(json!(1), "echo", json!({ "a": 1 }));
    let toy = Toy::with(|limits| limits.max_message_bytes = call.len());
    let mut client = toy.connect().await;
    client.is_well().await;
    assert!(is_limit(&client.ask(&format!("{call} ")).await, "max_message_bytes"));
    client.is_well().await;
}

#[tokio::test]
async fn a_client_too_many_is_told_in_its_own_framing() {
    let toy = Toy::with(|limits| limits.max_connections = 1);
    let mut first = toy.connect().await;
    first.is_well().await;
    assert_eq!(toy.wire.connections(), 1);

    let mut second = toy.connect().await;
    second.send(request(json!(1), "note", json!({})) + "\n").await;
    assert!(is_limit(&second.line().await, "max_connections"));
    assert_eq!(second.rest().await, "");
    let mut second = toy.connect().await;
    second.send("Content-Length: 2\r\n\r\n{}").await;
    assert!(is_limit(&second.body().await, "max_connections"));
    let mut second = toy.connect().await;
    second.send("POST / HTTP/1.1\r\n\r\n").await;
    let told = second.rest().await;
    assert!(told.starts_with("HTTP/1.1 503 ") && told.contains("\"limit\":\"max_connections\""), "{told}");

    drop(first);
    toy.alone().await;
    toy.connect().await.is_well().await;
}

#[tokio::test]
async fn a_client_that_says_nothing_is_let_go_and_one_that_spoke_is_not() {
    let toy = Toy::with(|limits| limits.first_byte_ms = 1000);
    let mut spoke = toy.connect().await;
    spoke.is_well().await;
    let mut silent = toy.connect().await;
    // Blanks are not a word.
    silent.send(" \n").await;
    assert!(is_limit(&silent.line().await, "first_byte_ms"));
    assert_eq!(silent.rest().await, "");
    spoke.is_well().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_is_not_read_either() {
    const CALLS: u64 = 400;
    let toy = Toy::start();
    let mut client = toy.connect().await;
    // Each answer is large, and each call is heard of.
    let calls: String = (0..CALLS)
        .map(|id| {
            request(json!(id), "big", json!({ "bytes": 65_536 })) + "\n{\"jsonrpc\":\"2.0\",\"method\":\"note\"}\n"
        })
        .collect();
    client.send(calls).await;
    let mut other = toy.connect().await;
    for _ in 0..200 {
        other.is_well().await;
    }
    // 256 KiB of burst and the socket's own buffers, not 25 MiB.
    let mut run = 0;
    while toy.heard().await {
        run += 1;
    }
    assert!(run < 100, "{run} calls ran for a client that reads nothing");
    for id in 0..CALLS {
        let answer = client.line().await;
        assert_eq!((answer["id"].as_u64(), answer["result"].as_str().map(str::len)), (Some(id), Some(65_536)));
    }
}

#[tokio::test]
async fn an_unknown_protocol_is_told_what_to_speak() {
    let toy = Toy::start();
    for hello in ["hello\n", "\u{16}\u{3}\u{1}", "\"x\"\n", "9"] {
        let mut client = toy.connect().await;
        client.send(hello).await;
        let told = client.line().await;
        assert_eq!(error(&told), (json!(null), -32700, "parse_error"));
        let mut nothing = [0];
        assert_eq!(soon(client.0.read(&mut nothing)).await.expect("closed, not reset"), 0);
    }
}
