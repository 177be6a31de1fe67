//! Batches: run concurrently, answered in order, rejected as a whole only where JSON-RPC requires it.

use crate::fixture::{Fixture, answer, error, is_limit, request};
use serde_json::json;

#[tokio::test]
async fn the_entries_run_concurrently_and_the_answers_are_in_order() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    let batch = [
        request(json!(1), "gate", json!({})),
        "7".into(),
        json!({ "jsonrpc": "2.0", "method": "note" }).to_string(),
        request(json!(2), "gate", json!({})),
        request(json!(-3), "echo", json!({ "x": 1 })),
    ];
    client.send(format!("[{}]\n", batch.join(","))).await;
    assert_eq!(
        [fixture.next_note().await, fixture.next_note().await, fixture.next_note().await],
        ["waiting", "note ", "waiting"]
    );
    // The batch waits; the connection does not.
    client.check_alive().await;
    fixture.context.gate.add_permits(2);
    let answers = client.line().await;
    assert_eq!(answers[0], answer(json!(1), json!({})));
    assert_eq!(error(&answers[1]), (json!(null), -32600, "invalid_request"));
    assert_eq!(answers[2], answer(json!(2), json!({})));
    assert_eq!(answers[3], answer(json!(-3), json!({ "x": 1 })));
    assert_eq!(answers.as_array().map(Vec::len), Some(4));
}

#[tokio::test]
async fn a_batch_of_notifications_is_not_answered() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    let note = json!({ "jsonrpc": "2.0", "method": "note", "params": [1] });
    client.send(format!("[{note},{note}]\n")).await;
    assert_eq!([fixture.next_note().await, fixture.next_note().await], ["note [1]", "note [1]"]);
    client.check_alive().await;
}

#[tokio::test]
async fn a_batch_over_the_limit_runs_nothing() {
    let fixture = Fixture::with(|limits| limits.max_batch = 2);
    let mut client = fixture.connect().await;
    let note = json!({ "jsonrpc": "2.0", "method": "note", "params": [1] });
    assert!(is_limit(&client.round_trip(&format!("[{note},{note},{note}]")).await, "max_batch"));
    client.check_alive().await;
    client.send(format!("[{}]\n", json!({ "jsonrpc": "2.0", "method": "note", "params": [2] }))).await;
    assert_eq!(fixture.next_note().await, "note [2]");
}

#[tokio::test]
async fn entries_over_the_call_limit_are_refused_one_by_one() {
    let fixture = Fixture::with(|limits| limits.max_requests_in_flight = 2);
    let mut client = fixture.connect().await;
    let batch: Vec<String> = (1..=3).map(|id| request(json!(id), "gate", json!({}))).collect();
    client.send(format!("[{}]\n", batch.join(","))).await;
    assert_eq!([fixture.next_note().await, fixture.next_note().await], ["waiting", "waiting"]);
    fixture.context.gate.add_permits(3);
    let answers = client.line().await;
    assert_eq!((answers[0]["id"].clone(), answers[1]["id"].clone()), (json!(1), json!(2)));
    assert!(is_limit(&answers[2], "max_requests_in_flight"));
}

#[tokio::test]
async fn a_subscription_in_a_batch_is_refused() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    let answers = client.round_trip(&format!("[{}]", request(json!(1), "ticks", json!({})))).await;
    assert_eq!(error(&answers[0]), (json!(1), -32600, "invalid_request"));
    assert!(answers[0]["error"]["message"].as_str().expect("a message").contains("batch"));
    client.check_alive().await;
}
