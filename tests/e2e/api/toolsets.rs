//! `toolset` of `tools.list` and `tools.call`: the lists in each form, and the rules that all toolsets share.

use serde_json::{Value, json};
use std::fs;
use toold_test_support::rig::Daemon;

/// The lists that `toold-tools` records.
const GOLDEN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/daemon/tools/golden/lists.jsonl");

/// The name of a tool in any form.
fn name(tool: &Value) -> &str {
    tool["name"].as_str().or(tool["function"]["name"].as_str()).unwrap()
}

/// The web tools are listed as they are configured, and the recorded lists have a tool of another provider.
fn is_compared(tool: &Value) -> bool {
    !name(tool).starts_with("web_") && !name(tool).starts_with("linear")
}

#[test]
fn each_list_has_the_recorded_tools() {
    // `execute_code` describes the tools of scripts.
    let tools = "'terminal', 'read_file', 'write_file', 'search_files', 'patch', 'web_search', 'web_extract'";
    let search = "[web.search]\nprovider = 'searxng'\nurl = 'http://127.0.0.1:1'\n";
    let d = Daemon::start_with(&format!("[script]\ntools = [{tools}]\n{search}"), &[]);
    let golden: Vec<Value> =
        fs::read_to_string(GOLDEN).unwrap().lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for toolset in ["toold", "hermes", "codex"] {
        for format in ["json", "responses", "chat", "messages", "mcp"] {
            let listed = d.ok(
                "tools.list",
                json!({ "toolset": toolset, "format": format, "detail": "full", "session_key": "s" }),
            );
            let mut tools = listed["tools"].as_array().unwrap().clone();
            tools.retain(is_compared);
            for tool in &mut tools {
                let signatures = tool.as_object_mut().unwrap().remove("signatures");
                // They are those of the config.
                let timeout_ms = tool.as_object_mut().unwrap().remove("timeout_ms");
                assert_eq!(timeout_ms.is_some(), toolset == "toold" && format == "json", "{tool}");
                assert_eq!(
                    signatures.is_some(),
                    toolset == "toold" && format == "json",
                    "scripts have these names only"
                );
            }
            let is_of = |line: &&Value| line["toolset"] == toolset && line["format"] == format;
            let recorded =
                golden.iter().filter(is_of).filter_map(|line| line.get("tool")).filter(|tool| is_compared(tool));
            assert_eq!(tools, recorded.cloned().collect::<Vec<_>>(), "{toolset} {format}");
            assert!(!tools.is_empty(), "{toolset} {format}");
        }
    }
}

#[test]
fn a_tool_that_scripts_do_not_get_is_not_described_to_their_authors() {
    let d = Daemon::start_with("[script]\ntools = ['read_file']\n", &[]);
    let listed = d.ok("tools.list", json!({ "toolset": "hermes", "query": "execute_code", "detail": "full" }));
    let description = listed["tools"][0]["description"].as_str().unwrap();
    assert!(description.contains("read_file(") && !description.contains("terminal("), "{description}");
}

#[test]
fn a_name_is_of_its_toolset_only() {
    let d = Daemon::start();
    let error = d.refused(-32602, "invalid_params", "tools.call", json!({ "toolset": "codex", "name": "terminal" }));
    assert_eq!(
        error["message"], "name: there is no tool \"terminal\" in the toolset codex; tools.list lists them",
        "{error}"
    );
    d.refused_param("name", "tools.call", json!({ "toolset": "hermes", "name": "exec_command" }));
    d.refused_param("name", "tools.call", json!({ "name": "exec_command" }));
    d.refused_param("name", "tools.call", json!({ "name": "codex/exec_command" }));
}

#[test]
fn wrong_arguments_name_the_place_and_have_the_text_for_the_model() {
    let d = Daemon::start();
    let refused = |toolset: &str, name: &str, args: Value| {
        let call = json!({ "toolset": toolset, "name": name, "args": args });
        let error = d.refused(-32602, "invalid_params", "tools.call", call);
        (error["data"]["pointer"].clone(), error["data"]["text"].clone())
    };
    assert_eq!(
        refused("codex", "exec_command", json!({})),
        (json!("/cmd"), json!("exec_command failed: args/cmd: is missing: expected a string"))
    );
    assert_eq!(
        refused("hermes", "process", json!({ "action": "kill" })),
        (json!("/session_id"), json!({ "error": "session_id is required for kill" }))
    );
    let known = "Unknown process action: stop. Use: list, poll, log, wait, kill, write, submit, close";
    assert_eq!(
        refused("hermes", "process", json!({ "action": "stop" })),
        (json!("/action"), json!({ "error": known }))
    );
    assert_eq!(refused("hermes", "execute_code", json!({ "code": " " })).1, json!({ "error": "No code provided." }));
    assert_eq!(refused("hermes", "terminal", json!({ "command": 1 })).0, json!("/command"));
}

#[test]
fn a_request_is_done_once_and_belongs_to_one_toolset() {
    let mut d = Daemon::start();
    let root = d.root().to_owned();
    let request = |toolset: &str, name: &str, args: Value| json!({ "toolset": toolset, "name": name, "args": args, "request_id": "r", "session_key": "s", "cwd": root });
    let args = json!({ "command": ["/bin/sh", "-c", "echo x >> ran; wc -l < ran"] });
    let call = request("codex", "shell", args);
    let first = d.ok("tools.call", call.clone());
    assert_eq!(d.ok("tools.call", call.clone()), first);
    d.kill9();
    d.spawn();
    assert_eq!(d.ok("tools.call", call), first, "also from the next daemon");
    assert_eq!(fs::read_to_string(root.join("ran")).unwrap(), "x\n");
    d.refused(-32009, "conflict", "tools.call", request("codex", "shell", json!({ "command": ["true"] })));
    let read = |toolset: &str, key: &str| {
        let args = json!({ key: root.join("ran") });
        json!({ "toolset": toolset, "name": "read_file", "args": args, "request_id": "read" })
    };
    assert_eq!(d.ok("tools.call", read("codex", "file_path"))["result"], "L1: x");
    d.refused(-32009, "conflict", "tools.call", read("hermes", "path"));
}

#[test]
fn the_policy_of_the_session_judges_and_a_refusal_is_a_text() {
    let mut d = Daemon::prepare("", &[]);
    let rules = d.root().join("config/toold/rules");
    fs::create_dir_all(&rules).unwrap();
    fs::write(rules.join("10.toml"), "[[rule]]\nprefix = ['curl']\nverdict = 'deny'\nreason = 'no downloads'\n")
        .unwrap();
    d.spawn();
    let result = |toolset: &str, name: &str, args: Value| {
        d.ok("tools.call", json!({ "toolset": toolset, "name": name, "args": args }))["result"].clone()
    };
    let denied = result("codex", "shell", json!({ "command": ["curl", "x"] }));
    assert!(denied.as_str().unwrap().starts_with("shell failed: denied: "), "{denied}");
    let denied = result("codex", "exec_command", json!({ "cmd": "curl x", "shell": "/bin/sh", "login": false }));
    assert!(denied.as_str().unwrap().starts_with("exec_command failed: denied: "), "{denied}");
    let denied = result("hermes", "terminal", json!({ "command": "curl x" }));
    assert!(denied["error"].as_str().unwrap().starts_with("denied: "), "{denied}");
    assert_eq!(d.ok("list", json!({}))["total"], 0, "nothing was started");
}

#[test]
fn a_script_has_no_toolset() {
    let d = Daemon::start();
    let code = format!(
        r#"
import json, socket
s = socket.socket(socket.AF_UNIX); s.connect({:?}); f = s.makefile()
def ask(method, params):
    s.sendall((json.dumps({{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}}) + "\n").encode())
    return json.loads(f.readline())
for method, params in [("tools.list", {{}}), ("tools.call", {{"name": "shell", "args": {{"command": ["touch", "x"]}}}})]:
    print(ask(method, dict(params, toolset="codex"))["error"]["data"]["reason"])
print([tool["name"] for tool in ask("tools.list", {{}})["result"]["tools"]])
"#,
        d.socket()
    );
    let run = json!({ "code": code, "tools": ["read_file"], "cwd": d.root() });
    let result = d.ok("script.run", run);
    assert_eq!(result["output"], "inside_script\ninside_script\n['read_file']\n", "{result}");
    assert!(!d.root().join("x").exists());
}
