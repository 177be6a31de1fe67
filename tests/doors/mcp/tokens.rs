//! The tokens that a session costs the model. A token is counted as four bytes of the JSON that reaches it, rounded up: for English and code
//! that is more than the tokenizers of today need.

use super::client::{Server, id_in};
use serde_json::json;
use toold_test_support::rig::Daemon;

fn tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

#[test]
fn start_wait_read_write_and_kill_cost_at_most_1500_tokens_with_the_tools_and_the_instructions() {
    let daemon = Daemon::start();
    let mut server = Server::start(&daemon, &[]);
    let hello = server.initialize("2025-11-25", "test", json!({}));
    let tools = server.request("tools/list", json!({}))["tools"].to_string();
    let fixed = tokens(&tools) + tokens(hello["instructions"].as_str().unwrap());
    let mut spent = 0;
    let mut call = |server: &mut Server, tool: &str, arguments: serde_json::Value| {
        let text = server.call(tool, arguments.clone());
        spent += tokens(&arguments.to_string()) + tokens(&text);
        text
    };
    let id = id_in(&call(
        &mut server,
        "proc_start",
        json!({"command": "echo listening on 3000; while read a; do echo got $a; done", "name": "web", "ready": "listening"}),
    ));
    call(&mut server, "proc_wait", json!({"ids": [id], "match": "listening"}));
    call(&mut server, "proc_read", json!({"id": id}));
    call(&mut server, "proc_write", json!({"id": id, "text": "hello"}));
    call(&mut server, "proc_kill", json!({"ids": [id]}));
    println!("measured: {fixed} tokens for tools and instructions, {spent} for five calls");
    assert!(fixed + spent <= 1500, "{fixed} + {spent}");
}
