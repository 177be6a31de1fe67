//! Calls: answered, waiting for a client, in flight when it goes, and resumed by a later daemon.

use super::*;

#[tokio::test]
async fn a_call_is_sent_with_its_owner_and_answered_and_its_facts_are_recorded_first() {
    let providers = providers();
    let mut client = FakeClient::serving(&providers, 1, json!({})).await;
    let facts = Arc::new(Facts::default());
    let call = start(&providers, Invocation { timeout_ms: Some(60_000), ..invocation("once", &facts) });
    let request = client.request().await;
    let recorded = facts.all();
    let sent_at = recorded[0]["sent_at"].clone();
    assert_eq!(recorded, [json!({ "sent_at": sent_at, "idempotent": false, "reconnect_ms": 30 })]);
    assert!(sent_at.as_str().is_some_and(|at| at.ends_with('Z')), "{sent_at}");
    let deadline = request.params["deadline"].clone();
    assert!(deadline.as_str() > sent_at.as_str(), "{deadline}");
    assert_eq!(
        request.params,
        json!({ "call": "proc_1/l-1", "name": "once", "args": { "x": 1 }, "session_key": "s", "task_id": null,
            "deadline": deadline })
    );
    assert_eq!(providers.info()[0].in_flight, 1);
    request.answer(json!({ "ok": true }));
    assert_eq!(end(call).await, Ok(json!({ "ok": true })));
    assert_eq!(providers.info()[0].in_flight, 0);
}

#[tokio::test]
async fn a_new_call_waits_for_a_client_that_has_gone_and_is_then_unavailable() {
    let providers = providers();
    let client = FakeClient::serving(&providers, 1, json!({ "reconnect_ms": 60_000 })).await;
    client.disconnect();
    until_gone(&providers).await;
    let waiting = call(&providers, "once");
    let mut back = FakeClient::serving(&providers, 2, json!({})).await;
    back.request().await.answer(json!(1));
    assert_eq!(end(waiting).await, Ok(json!(1)));
    back.disconnect();
    until_gone(&providers).await;
    let facts = Arc::new(Facts::default());
    let error = end(start(&providers, invocation("once", &facts))).await.expect_err("it does not come back");
    assert_eq!(error.kind(), Some(ErrorKind::Unavailable));
    assert_eq!(
        error.message,
        "p.once: its client is not connected and did not come back within 30 ms; nothing was sent"
    );
    assert_eq!(facts.all(), [] as [Value; 0]);
}

#[tokio::test]
async fn a_call_in_flight_that_is_not_idempotent_is_never_repeated() {
    let providers = providers();
    let mut client = FakeClient::serving(&providers, 1, json!({ "reconnect_ms": 60_000 })).await;
    let facts = Arc::new(Facts::default());
    let lost = start(&providers, invocation("once", &facts));
    let _request = client.request().await;
    client.disconnect();
    // At once, though the client has a minute to come back.
    let error = end(lost).await.expect_err("its outcome is not known");
    assert_eq!((error.code, error.kind()), (-32010, Some(ErrorKind::OutcomeUnknown)));
    let sent_at = facts.all()[0]["sent_at"].clone();
    assert_eq!(
        Value::Object(error.data),
        json!({ "kind": "outcome_unknown", "sent_at": sent_at, "tool": "p.once", "call": "proc_1/l-1" })
    );
    let mut back = FakeClient::serving(&providers, 2, json!({})).await;
    assert!(!back.take_request());
}

#[tokio::test]
async fn an_idempotent_call_in_flight_is_sent_again_as_the_same_call() {
    let providers = providers();
    let mut client = FakeClient::serving(&providers, 1, json!({ "reconnect_ms": 60_000 })).await;
    let facts = Arc::new(Facts::default());
    let again = start(&providers, invocation("again", &facts));
    let first = client.request().await;
    client.disconnect();
    let mut back = FakeClient::serving(&providers, 2, json!({})).await;
    let second = back.request().await;
    assert_eq!(second.params, first.params);
    // The facts keep the time of the first sending: its effect may be that old.
    let recorded = facts.all();
    assert_eq!((recorded.len(), &recorded[0]["sent_at"]), (2, &recorded[1]["sent_at"]));
    second.answer(json!("done"));
    assert_eq!(end(again).await, Ok(json!("done")));
    // An answer of the first connection would come too late.
    assert!(first.answer.is_closed());
}

#[tokio::test]
async fn an_idempotent_call_whose_client_does_not_come_back_is_not_known() {
    let providers = providers();
    let mut client = FakeClient::serving(&providers, 1, json!({})).await;
    let lost = call(&providers, "again");
    let _request = client.request().await;
    client.disconnect();
    assert_eq!(kind(lost).await, Some(ErrorKind::OutcomeUnknown));
}

#[tokio::test]
async fn a_client_that_comes_back_without_the_tool_or_without_its_promise_gets_no_repeat() {
    let without = json!({ "tools": [] });
    let no_promise = json!({ "tools": [{ "name": "again", "input_schema": { "type": "object" } }] });
    for list in [without, no_promise] {
        let providers = providers();
        let mut client = FakeClient::serving(&providers, 1, json!({ "reconnect_ms": 60_000 })).await;
        let lost = call(&providers, "again");
        let _request = client.request().await;
        client.disconnect();
        let mut back = FakeClient::serving(&providers, 2, list).await;
        assert_eq!(kind(lost).await, Some(ErrorKind::OutcomeUnknown));
        assert!(!back.take_request());
    }
}

#[tokio::test]
async fn a_tool_that_ends_its_client_each_time_is_not_repeated_for_ever() {
    let providers = providers();
    let mut client = FakeClient::serving(&providers, 1, json!({ "reconnect_ms": 60_000 })).await;
    let deadly = call(&providers, "again");
    for connection in 2..=5 {
        let _request = client.request().await;
        client.disconnect();
        client = FakeClient::serving(&providers, connection, json!({ "reconnect_ms": 60_000 })).await;
    }
    let _request = client.request().await;
    client.disconnect();
    assert_eq!(kind(deadly).await, Some(ErrorKind::OutcomeUnknown));
}

#[tokio::test]
async fn a_takeover_ends_calls_at_the_old_connection_as_if_it_had_gone() {
    let providers = providers();
    let mut old = FakeClient::serving(&providers, 1, json!({})).await;
    let (once, again) = (call(&providers, "once"), call(&providers, "again"));
    let _open = [old.request().await, old.request().await];
    let mut new = FakeClient::serving(&providers, 2, json!({ "takeover": true })).await;
    assert_eq!(kind(once).await, Some(ErrorKind::OutcomeUnknown));
    new.request().await.answer(json!(2));
    assert_eq!(end(again).await, Ok(json!(2)));
    let by = json!({ "uid": 1000, "pid": 2, "program": null });
    let note = in_time(old.notes.recv()).await;
    assert_eq!(note, Some(("tools.replaced", json!({ "provider": "p", "by": by }))));
    // The end of the old connection does not concern the new one.
    old.disconnect();
    let next = call(&providers, "once");
    new.request().await.answer(json!(3));
    assert_eq!(end(next).await, Ok(json!(3)));
}

#[tokio::test]
async fn an_unregistered_provider_ends_its_calls_as_if_it_had_gone() {
    let providers = providers();
    let mut client = FakeClient::serving(&providers, 1, json!({})).await;
    let (once, again) = (call(&providers, "once"), call(&providers, "again"));
    let _open = [client.request().await, client.request().await];
    let result = providers.unregister("p", 1).await.expect("its own");
    assert_eq!((result.tools, result.ended), (vec!["p.once".into(), "p.again".into()], 2));
    assert_eq!(kind(once).await, Some(ErrorKind::OutcomeUnknown));
    assert_eq!(kind(again).await, Some(ErrorKind::OutcomeUnknown));
}

#[tokio::test]
async fn a_second_registration_of_the_same_connection_leaves_calls_in_flight_alone() {
    let providers = providers();
    let mut client = FakeClient::serving(&providers, 1, json!({})).await;
    let once = call(&providers, "once");
    let request = client.request().await;
    client.register(&providers, json!({ "tools": [] })).await.expect("its own");
    request.answer(json!(1));
    assert_eq!(end(once).await, Ok(json!(1)));
    assert_eq!(kind(call(&providers, "once")).await, Some(ErrorKind::Unavailable));
}

#[tokio::test]
async fn a_later_daemon_sends_a_resumed_call_again_only_if_that_is_safe() {
    let sent = |more: Value| {
        let mut facts = json!({ "sent_at": "2026-11-16T03:28:50.123Z" });
        facts.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        Some(facts)
    };
    // Nothing is registered in a new daemon. Each call waits for its client, unless it must not be repeated.
    let providers = providers();
    let safe = start(&providers, resumed("again", sent(json!({ "idempotent": true, "reconnect_ms": 60_000 }))));
    let unsaid = start(&providers, resumed("again", sent(json!({}))));
    let never_sent = start(&providers, resumed("once", None));
    let unsafe_call = start(&providers, resumed("once", sent(json!({ "idempotent": false, "reconnect_ms": 60_000 }))));
    let error = end(unsafe_call).await.expect_err("not repeated");
    assert_eq!(
        (error.kind(), error.data["sent_at"].as_str()),
        (Some(ErrorKind::OutcomeUnknown), Some("2026-11-16T03:28:50.123Z"))
    );
    let unsaid_unsafe = start(&providers, resumed("once", sent(json!({}))));
    let mut client = FakeClient::serving(&providers, 1, json!({})).await;
    for _ in 0..3 {
        let request = client.request().await;
        assert_eq!(request.params["call"], "proc_1/l-1");
        request.answer(json!(1));
    }
    for call in [safe, unsaid, never_sent] {
        assert_eq!(end(call).await, Ok(json!(1)));
    }
    assert_eq!(kind(unsaid_unsafe).await, Some(ErrorKind::OutcomeUnknown));
    assert!(!client.take_request());
}

#[tokio::test]
async fn a_resumed_call_whose_client_does_not_come_back_ends() {
    let providers = providers();
    let facts = json!({ "sent_at": "2026-11-16T03:28:50.123Z", "idempotent": true, "reconnect_ms": 20 });
    assert_eq!(kind(start(&providers, resumed("again", Some(facts)))).await, Some(ErrorKind::OutcomeUnknown));
    let unreadable = start(&providers, resumed("again", Some(json!("?"))));
    assert_eq!(kind(unreadable).await, Some(ErrorKind::OutcomeUnknown));
}

#[tokio::test]
async fn a_call_whose_facts_cannot_be_recorded_is_not_sent() {
    let providers = providers();
    let mut client = FakeClient::serving(&providers, 1, json!({})).await;
    let full = Arc::new(Facts { fails: true, ..Facts::default() });
    let error = end(start(&providers, invocation("once", &full))).await.expect_err("not sent");
    assert_eq!(error.kind(), Some(ErrorKind::Internal));
    assert!(error.message.ends_with("nothing was sent") && !client.take_request(), "{error}");
}

#[tokio::test]
async fn tools_of_one_session_are_for_its_calls_only() {
    let providers = providers();
    let mut other = FakeClient::serving(&providers, 1, json!({ "session_key": "other" })).await;
    let count = |session: Option<&str>| providers.visible_to(session).len();
    assert_eq!((count(None), count(Some("s")), count(Some("other"))), (0, 0, 1));
    assert!(providers.expect("p", Some("s")).tools().is_empty());
    // Also a call that was on its way when the name came to another session.
    let foreign = start(&providers, resumed("once", None));
    providers.unregister("p", 1).await.expect("its own");
    assert!(!other.take_request());
    let mut own = FakeClient::serving(&providers, 2, json!({ "session_key": "s" })).await;
    own.request().await.answer(json!(1));
    assert_eq!(end(foreign).await, Ok(json!(1)));
}

#[tokio::test]
async fn calls_of_a_tool_that_is_not_parallel_run_one_after_the_other() {
    let providers = providers();
    let one = json!({ "name": "once", "input_schema": { "type": "object" }, "parallel": false });
    let mut client = FakeClient::serving(&providers, 1, json!({ "tools": [one] })).await;
    let calls = [call(&providers, "once"), call(&providers, "once"), call(&providers, "once")];
    for number in 0..3 {
        let request = client.request().await;
        // The others wait for their turn, also when every task has run.
        tokio::task::yield_now().await;
        assert!(!client.take_request(), "{number}");
        request.answer(json!(number));
    }
    for call in calls {
        end(call).await.expect("answered");
    }
}
