//! Requests of the daemon to a client, on every framing with a connection that stays open.

use crate::fixture::{Client, Fixture, answer, error, in_time, request};
use crate::ws::Ws;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinHandle;
use toold_daemon::tools::clients::link::{ClientLink, LinkAnswer, LinkClosed, LinkRequest, SendError};

/// Connects by lines, and returns the link to the client.
async fn linked(fixture: &Fixture) -> (Client, Arc<dyn ClientLink>) {
    let mut client = fixture.connect().await;
    assert_eq!(client.call("link", json!({})).await, answer(json!(1), json!("linked")));
    let link = fixture.next_link().await;
    (client, link)
}

fn ask(call: &str, params: Value) -> LinkRequest {
    LinkRequest { call: call.into(), method: "ask", params, before: Box::new(|| Ok(())) }
}

/// Sends a request in a task of its own, which returns its answer as text.
fn spawn(link: &Arc<dyn ClientLink>, call: &str, params: Value) -> JoinHandle<Result<String, LinkClosed>> {
    let sent = link.send(ask(call, params));
    tokio::spawn(async move {
        let pending = sent.await.map_err(|_| LinkClosed)?;
        Ok(match pending.await? {
            LinkAnswer::Result(raw) => raw.get().to_string(),
            LinkAnswer::Error(raw) => format!("error {raw}"),
            LinkAnswer::Malformed => "malformed".into(),
        })
    })
}

async fn end(asked: JoinHandle<Result<String, LinkClosed>>) -> Result<String, LinkClosed> {
    in_time(asked).await.expect("no panic")
}

#[tokio::test]
async fn each_framing_carries_requests_and_takes_their_answers() {
    let fixture = Fixture::start();
    let asked = |id: &str| json!({ "jsonrpc": "2.0", "id": id, "method": "ask", "params": { "x": 1 } });

    let (mut lines, link) = linked(&fixture).await;
    let pending = spawn(&link, "c", json!({ "x": 1 }));
    assert_eq!(lines.line().await, asked("toold-1"));
    lines.send(answer(json!("toold-1"), json!({ "y": 2 })).to_string() + "\n").await;
    assert_eq!(end(pending).await, Ok(r#"{"y":2}"#.into()));

    let mut headers = fixture.connect().await;
    let call = request(json!(1), "link", json!({}));
    headers.send(format!("Content-Length: {}\r\n\r\n{call}", call.len())).await;
    headers.body().await;
    let pending = spawn(&fixture.next_link().await, "c", json!({ "x": 1 }));
    assert_eq!(headers.body().await, asked("toold-1"));
    let no = json!({ "jsonrpc": "2.0", "id": "toold-1", "error": { "code": 5, "message": "no" } }).to_string();
    headers.send(format!("Content-Length: {}\r\n\r\n{no}", no.len())).await;
    assert_eq!(end(pending).await, Ok(r#"error {"code":5,"message":"no"}"#.into()));

    let mut ws = Ws::connect(&fixture).await;
    ws.round_trip(call).await;
    let pending = spawn(&fixture.next_link().await, "c", json!({ "x": 1 }));
    assert_eq!(ws.json().await, asked("toold-1"));
    ws.send(answer(json!("toold-1"), json!(3)).to_string()).await;
    assert_eq!(end(pending).await, Ok("3".into()));
}

#[tokio::test]
async fn ids_of_the_client_are_its_own_and_calls_go_on_beside_requests() {
    let fixture = Fixture::start();
    let (mut client, link) = linked(&fixture).await;
    let first = spawn(&link, "a", json!(1));
    assert_eq!(client.line().await["id"], "toold-1");
    let second = spawn(&link, "b", json!(2));
    assert_eq!(client.line().await["id"], "toold-2");
    let own = client.round_trip(&request(json!("toold-1"), "echo", json!({ "own": 1 }))).await;
    assert_eq!(own, answer(json!("toold-1"), json!({ "own": 1 })));
    // In any order.
    for (id, value) in [("toold-2", "two"), ("toold-1", "one")] {
        client.send(answer(json!(id), json!(value)).to_string() + "\n").await;
    }
    assert_eq!((end(first).await, end(second).await), (Ok("\"one\"".into()), Ok("\"two\"".into())));
}

#[tokio::test]
async fn an_answer_to_no_open_request_is_ignored_and_counted() {
    let fixture = Fixture::start();
    let (mut client, link) = linked(&fixture).await;
    let pending = spawn(&link, "c", json!({}));
    client.line().await;
    let ids =
        [json!("toold-1"), json!("toold-1"), json!("toold-9"), json!("toold-01"), json!("x"), json!(7), json!(null)];
    for id in ids {
        client.send(answer(id, json!(1)).to_string() + "\n").await;
    }
    assert_eq!(end(pending).await, Ok("1".into()));
    client.check_alive().await;
    assert_eq!(link.ignored_answers(), 6);
    // A message without an answer is refused as before, also here.
    assert_eq!(error(&client.round_trip(r#"{"jsonrpc":"2.0","id":4}"#).await), (json!(4), -32600, "invalid_request"));
}

#[tokio::test]
async fn a_client_without_a_link_gets_the_error_for_an_answer_as_before() {
    let fixture = Fixture::start();
    let mut client = fixture.connect().await;
    let reply = client.round_trip(&answer(json!("toold-1"), json!(1)).to_string()).await;
    assert_eq!(error(&reply), (json!("toold-1"), -32600, "invalid_request"));
}

#[tokio::test]
async fn a_request_that_is_dropped_is_cancelled_and_its_answer_awaited() {
    let fixture = Fixture::start();
    let (mut client, link) = linked(&fixture).await;
    let pending = in_time(link.send(ask("c", json!({})))).await.expect("sent");
    client.line().await;
    drop(pending);
    let cancel = json!({ "jsonrpc": "2.0", "method": "$/cancelRequest", "params": { "id": "toold-1" } });
    assert_eq!(client.line().await, cancel);
    let settled = tokio::spawn(link.settled("c".into()));
    client.send(answer(json!("toold-1"), json!("late")).to_string() + "\n").await;
    in_time(settled).await.expect("no panic");
    assert_eq!(link.ignored_answers(), 0, "it was asked for an answer");
    // One that does not answer is not waited for.
    drop(in_time(link.send(ask("d", json!({})))).await.expect("sent"));
    in_time(link.settled("d".into())).await;
    client.send(answer(json!("toold-2"), json!("too late")).to_string() + "\n").await;
    let ids = [client.line().await["id"].clone(), client.line().await["params"]["id"].clone()];
    assert_eq!(ids, [json!("toold-2"), json!("toold-2")]);
    client.check_alive().await;
    assert_eq!(link.ignored_answers(), 1);
}

#[tokio::test]
async fn the_end_of_the_connection_ends_its_requests_at_once() {
    let fixture = Fixture::start();
    let (mut client, link) = linked(&fixture).await;
    let pending = spawn(&link, "c", json!({}));
    client.line().await;
    drop(client);
    assert_eq!(end(pending).await, Err(LinkClosed));
    in_time(link.closed()).await;
    assert!(matches!(in_time(link.send(ask("c", json!({})))).await, Err(SendError::Closed)));

    // Also if the client only stops sending, while it waits for the answer to a call: it cannot answer any more.
    let (mut client, link) = linked(&fixture).await;
    let pending = spawn(&link, "c", json!({}));
    client.line().await;
    client.send(request(json!("slow"), "gate", json!({})) + "\n").await;
    assert_eq!(fixture.next_note().await, "waiting");
    in_time(client.0.get_mut().shutdown()).await.expect("half closed");
    assert_eq!(end(pending).await, Err(LinkClosed));
    fixture.context.gate.add_permits(1);
    assert_eq!(client.line().await, answer(json!("slow"), json!({})));
}

#[tokio::test]
async fn the_last_answer_before_the_end_is_taken() {
    let fixture = Fixture::start();
    let (mut client, link) = linked(&fixture).await;
    let pending = spawn(&link, "c", json!({}));
    client.line().await;
    // Without a newline: the end of the stream completes it.
    client.send(answer(json!("toold-1"), json!("last")).to_string()).await;
    in_time(client.0.get_mut().shutdown()).await.expect("half closed");
    assert_eq!(end(pending).await, Ok("\"last\"".into()));
}

#[tokio::test]
async fn a_request_is_not_sent_if_what_precedes_it_fails() {
    let fixture = Fixture::start();
    let (mut client, link) = linked(&fixture).await;
    let failing = LinkRequest { before: Box::new(|| Err(io::ErrorKind::StorageFull.into())), ..ask("c", json!({})) };
    assert!(matches!(in_time(link.send(failing)).await, Err(SendError::Refused(_))));
    client.check_alive().await;
}

#[tokio::test]
async fn a_client_that_reads_nothing_holds_a_bounded_number_of_requests_and_no_other_client() {
    let fixture = Fixture::start();
    let (client, link) = linked(&fixture).await;
    let (mut other, other_link) = linked(&fixture).await;
    let sent = Arc::new(std::sync::atomic::AtomicUsize::new(0));
    let asked: Vec<_> = (0..100)
        .map(|_| {
            let sent = sent.clone();
            let before = move || {
                sent.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                Ok(())
            };
            let request = LinkRequest { before: Box::new(before), ..ask("c", json!("x".repeat(200_000))) };
            tokio::spawn(link.send(request))
        })
        .collect();
    for _ in 0..3 {
        let pending = spawn(&other_link, "c", json!({}));
        let id = other.line().await["id"].clone();
        other.send(answer(id, json!(1)).to_string() + "\n").await;
        assert_eq!(end(pending).await, Ok("1".into()));
    }
    // About 1 MiB in the queue, what the socket holds, and what is being written: far less than 20 MB.
    let queued = sent.load(std::sync::atomic::Ordering::Relaxed);
    assert!(queued < 25, "{queued}");
    drop(client);
    for asked in asked {
        // Those that were sent have no answer, the others were not sent.
        if let Ok(pending) = in_time(asked).await.expect("no panic") {
            assert!(in_time(pending).await.is_err());
        }
    }
}

/// With code that reads nothing while it writes, daemon and client waited for each other for ever.
#[tokio::test]
async fn a_client_that_writes_a_long_answer_before_it_reads_on_is_read_meanwhile() {
    let fixture = Fixture::start();
    let (mut client, link) = linked(&fixture).await;
    let long = "x".repeat(1_000_000);
    let asked: Vec<_> = (0..6).map(|_| spawn(&link, "c", json!(long))).collect();
    for number in 1..=6 {
        let id = client.line().await["id"].clone();
        assert_eq!(id, format!("toold-{number}"));
        client.send(answer(id, json!("y".repeat(3_000_000))).to_string() + "\n").await;
    }
    for asked in asked {
        assert_eq!(end(asked).await.map(|answer| answer.len()), Ok(3_000_002));
    }
}
