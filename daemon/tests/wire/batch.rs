//! Batches: side by side, answered in order, all or nothing only where JSON-RPC says so.

use crate::toy::{Toy, answer, error, is_limit, request};
use serde_json::json;

#[tokio::test]
async fn the_entries_run_side_by_side_and_the_answers_are_in_order() {
    let toy = Toy::start();
    let mut client = toy.connect().await;
    let batch = [
        request(json!(1), "gate", json!({})),
        "7".into(),
        json!({ "jsonrpc": "2.0", "method": "note" }).to_string(),
        request(json!(2), "gate", json!({})),
        request(json!(-3), "echo", json!({ "x": 1 })),
    ];
    client.send(format!("[{}]\n", batch.join(","))).await;
    assert_eq!([toy.news().await, toy.news().await, toy.news().await], ["waiting", "note ", "waiting"]);
    // The batch waits, the connection does not.
    client.is_well().await;
    toy.context.gate.add_permits(2);
    let answers = client.line().await;
    assert_eq!(answers[0], answer(json!(1), json!({})));
    assert_eq!(error(&answers[1]), (json!(null), -32600, "invalid_request"));
    assert_eq!(answers[2], answer(json!(2), json!({})));
    assert_eq!(answers[3], answer(json!(-3), json!({ "x": 1 })));
    assert_eq!(answers.as_array().map(Vec::len), Some(4));
}

#[tokio::test]
async fn a_batch_of_notifications_is_not_answered() {
    let toy = Toy::start();
    let mut client = toy.connect().await;
    let note = json!({ "jsonrpc": "2.0", "method": "note", "params": [1] });
    client.send(format!("[{note},{note}]\n")).await;
    assert_eq!([toy.news().await, toy.news().await], ["note [1]", "note [1]"]);
    client.is_well().await;
}

#[tokio::test]
async fn a_batch_over_the_limit_runs_nothing() {
    let toy = Toy::with(|limits| limits.max_batch = 2);
    let mut client = toy.connect().await;
    let note = json!({ "jsonrpc": "2.0", "method": "note", "params": [1] });
    assert!(is_limit(&client.ask(&format!("[{note},{note},{note}]")).await, "max_batch"));
    client.is_well().await;
    client.send(format!("[{}]\n", json!({ "jsonrpc": "2.0", "method": "note", "params": [2] }))).await;
    assert_eq!(toy.news().await, "note [2]");
}

#[tokio::test]
async fn entries_over_the_limit_of_calls_are_refused_one_by_one() {
    let toy = Toy::with(|limits| limits.max_requests_in_flight = 2);
    let mut client = toy.connect().await;
    let batch: Vec<String> = (1..=3).map(|id| request(json!(id), "gate", json!({}))).collect();
    client.send(format!("[{}]\n", batch.join(","))).await;
    assert_eq!([toy.news().await, toy.news().await], ["waiting", "waiting"]);
    toy.context.gate.add_permits(3);
    let answers = client.line().await;
    assert_eq!((answers[0]["id"].clone(), answers[1]["id"].clone()), (json!(1), json!(2)));
    assert!(is_limit(&answers[2], "max_requests_in_flight"));
}

#[tokio::test]
async fn a_subscription_in_a_batch_is_refused() {
    let toy = Toy::start();
    let mut client = toy.connect().await;
    let answers = client.ask(&format!("[{}]", request(json!(1), "ticks", json!({})))).await;
    assert_eq!(error(&answers[0]), (json!(1), -32600, "invalid_request"));
    assert!(answers[0]["error"]["message"].as_str().expect("a message").contains("batch"));
    client.is_well().await;
}
