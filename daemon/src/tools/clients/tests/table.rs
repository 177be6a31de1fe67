//! The table of clients: names in use, takeovers, providers that have gone, and the events of all that.

use super::*;
use crate::tools::clients::MAX_PROVIDERS;
use toold_proto::tools::{ProviderState, ToolState};

/// Returns the states of the events so far, and removes them.
fn states(providers: &ClientProviders) -> Vec<(String, ProviderState)> {
    let events = std::mem::take(&mut providers.lock().events);
    events.into_iter().map(|event| (event.fields.provider, event.fields.state)).collect()
}

#[tokio::test]
async fn a_name_of_a_live_connection_is_refused_with_its_client() {
    let providers = providers();
    let first = FakeClient::serving(&providers, 7, json!({})).await;
    let second = FakeClient::connect(8);
    let error = second.register(&providers, json!({})).await.expect_err("in use");
    assert_eq!(error.kind(), Some(ErrorKind::AlreadyExists));
    assert_eq!(error.data["client"], json!({ "uid": 1000, "pid": 7, "program": null }));
    let again = first.register(&providers, json!({})).await.expect("its own");
    assert_eq!(again, json!({ "provider": "p", "tools": ["p.once", "p.again"], "replaced": false }));
    let taken = second.register(&providers, json!({ "takeover": true })).await.expect("taken over");
    assert_eq!(taken["replaced"], true);
    let ready = ("p".to_string(), ProviderState::Ready);
    let replaced = ("p".to_string(), ProviderState::Replaced);
    assert_eq!(states(&providers), [ready.clone(), ready.clone(), replaced, ready]);
}

/// The broken code refused a client that reconnected before the end of its old connection was noticed.
#[tokio::test]
async fn a_client_that_reconnects_at_once_is_not_refused() {
    let providers = providers();
    let old = FakeClient::serving(&providers, 7, json!({})).await;
    let new = FakeClient::connect(8);
    let registering = new.register(&providers, json!({}));
    let closing = async {
        tokio::task::yield_now().await;
        old.disconnect();
    };
    let (registered, ()) = tokio::join!(registering, closing);
    assert_eq!(registered.expect("the old one has gone")["replaced"], false);
}

#[tokio::test]
async fn tools_of_a_client_that_has_gone_stay_listed_with_the_reason_until_they_are_removed() {
    let providers = providers();
    let client = FakeClient::serving(&providers, 7, json!({ "session_key": "s" })).await;
    client.disconnect();
    until_gone(&providers).await;
    let provider = providers.visible_to(Some("s")).pop().expect("listed");
    let tools = provider.tools();
    assert_eq!(tools.iter().map(|tool| tool.state).collect::<Vec<_>>(), [ToolState::Unavailable; 2]);
    let why = tools[0].why.clone().unwrap_or_default();
    assert!(why.starts_with("pid 7 disconnected at "), "{why}");
    let info = providers.info();
    assert_eq!((info[0].state, info[0].ignored_answers), (ProviderState::Gone, 7));
    // By any connection: the one that served it has ended.
    providers.unregister("p", 99).await.expect("it has gone");
    assert!(provider.tools().is_empty() && providers.info().is_empty());
    assert_eq!(providers.unregister("p", 99).await.expect_err("none").kind(), Some(ErrorKind::NotFound));
    let p = |state| ("p".to_string(), state);
    let expected = [ProviderState::Ready, ProviderState::Gone, ProviderState::Removed].map(p);
    assert_eq!(states(&providers), expected);
}

#[tokio::test]
async fn only_its_connection_removes_a_provider_that_is_connected() {
    let providers = providers();
    let _client = FakeClient::serving(&providers, 7, json!({})).await;
    let error = providers.unregister("p", 8).await.expect_err("of another");
    assert_eq!((error.kind(), &error.data["reason"]), (Some(ErrorKind::Denied), &json!("other_connection")));
    providers.unregister("p", 7).await.expect("its own");
}

#[tokio::test]
async fn a_client_that_comes_back_keeps_the_count_of_ignored_answers() {
    let providers = providers();
    let client = FakeClient::serving(&providers, 7, json!({})).await;
    client.disconnect();
    until_gone(&providers).await;
    let _back = FakeClient::serving(&providers, 8, json!({})).await;
    assert_eq!(providers.info()[0].ignored_answers, 15);
}

#[tokio::test]
async fn the_one_that_went_first_makes_room_and_connected_ones_do_not() {
    let providers = providers();
    let mut clients = Vec::new();
    for index in 0..MAX_PROVIDERS as u64 {
        // No disk takes the events in this test.
        states(&providers);
        clients.push(FakeClient::serving(&providers, index, json!({ "provider": format!("p{index}") })).await);
    }
    states(&providers);
    let more = FakeClient::connect(1000);
    let error = more.register(&providers, json!({})).await.expect_err("full");
    assert_eq!((error.kind(), &error.data["limit"]), (Some(ErrorKind::Limit), &json!("tool_providers")));
    clients[5].disconnect();
    let mut changes = providers.changes.subscribe();
    while providers.live("p5", None).is_some() {
        in_time(changes.changed()).await.expect("the table lives");
    }
    more.register(&providers, json!({})).await.expect("there is room");
    assert_eq!(providers.info().len(), MAX_PROVIDERS);
    let p5 = |state| ("p5".to_string(), state);
    let ready = ("p".to_string(), ProviderState::Ready);
    assert_eq!(states(&providers), [p5(ProviderState::Gone), p5(ProviderState::Removed), ready]);
}
