//! Messages that are none: answered as the protocol has it, and the server lives on.

use super::client::Server;
use serde_json::{Value, json};
use toold_test_support::rig::Daemon;

#[test]
fn a_malformed_message_is_answered_and_the_server_lives_on() {
    let daemon = Daemon::prepare("", &[]);
    let mut server = Server::legacy(&daemon, &[]);
    let cases = [
        ("{", -32700, Value::Null),
        ("[]", -32600, Value::Null),
        ("\"text\"", -32600, Value::Null),
        (r#"{"id":90,"method":"ping"}"#, -32600, json!(90)),
        (r#"{"jsonrpc":"2.0","id":91}"#, -32600, json!(91)),
        (r#"{"jsonrpc":"2.0","id":92,"method":5}"#, -32600, json!(92)),
        (r#"{"jsonrpc":"2.0","id":93,"method":"ping","params":[]}"#, -32602, json!(93)),
        (r#"{"jsonrpc":"2.0","id":94,"method":"no/such"}"#, -32601, json!(94)),
        (r#"{"jsonrpc":"2.0","id":95,"method":"tools/call","params":{}}"#, -32602, json!(95)),
        (
            r#"{"jsonrpc":"2.0","id":96,"method":"tools/call","params":{"name":"proc_list","arguments":[]}}"#,
            -32602,
            json!(96),
        ),
    ];
    for (line, code, id) in cases {
        server.send_line(line);
        let answer = server.wait_for(line, |message| message.get("error").is_some());
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id), "{line}: {answer}");
    }
    server.send_line("");
    server.send_line(r#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#);
    server.send_line(r#"{"jsonrpc":"2.0","id":"no-one","result":{}}"#);
    assert_eq!(server.request("ping", json!({})), json!({}));
    assert_eq!(server.kept(), Vec::<Value>::new());
}

#[test]
fn a_message_that_is_too_long_is_refused_and_the_next_one_is_read() {
    let daemon = Daemon::prepare("", &[]);
    let mut server = Server::legacy(&daemon, &[]);
    server.send_line(&"x".repeat(17 << 20));
    let answer = server.wait_for("the refusal", |message| message.get("error").is_some());
    assert_eq!(answer["error"]["code"], -32600);
    assert_eq!(server.request("ping", json!({})), json!({}));
}
