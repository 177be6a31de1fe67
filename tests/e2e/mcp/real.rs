//! Real servers and real libraries of both eras, installed by `tests/mcp-servers`: killed and restarted in the middle of calls.

use super::Rig;
use super::survive::{killed_at, with_hooks};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;

/// The directory of the installed servers. None: they are not installed.
pub fn installed() -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let dir = test.ancestors().nth(3).unwrap().join("mcp-servers");
    if !dir.join("installed").exists() {
        eprintln!("skipped: real MCP servers are not installed; run tests/mcp-servers");
        return None;
    }
    Some(dir)
}

/// A tool with an effect that waits for a gate, in Python.
pub const PYTHON: &str = r#"
import asyncio, os, sys
try:
    from mcp.server import MCPServer
except ImportError:
    from mcp.server.fastmcp import FastMCP as MCPServer
server = MCPServer("real")

@server.tool()
async def effect(text: str, gate: str = "") -> str:
    """Have an effect, and answer when the gate is open."""
    with open(os.path.join(sys.argv[1], "effects"), "a") as file:
        file.write(f"effect {text}\n")
    while gate and not os.path.exists(os.path.join(sys.argv[1], gate)):
        await asyncio.sleep(0.005)
    return f"done {text}"

server.run()
"#;

/// The same in JavaScript.
const JAVASCRIPT: &str = r#"
import { McpServer, fromJsonSchema } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import fs from 'node:fs';
import path from 'node:path';
const dir = process.argv[2];
serveStdio(() => {
  const server = new McpServer({ name: 'real', version: '1.0.0' });
  const inputSchema = fromJsonSchema({
    type: 'object',
    properties: { text: { type: 'string' }, gate: { type: 'string' } },
    required: ['text'],
  });
  server.registerTool('effect', { description: 'Have an effect.', inputSchema }, async ({ text, gate }) => {
    fs.appendFileSync(path.join(dir, 'effects'), `effect ${text}\n`);
    while (gate && !fs.existsSync(path.join(dir, gate))) await new Promise((done) => setTimeout(done, 5));
    return { content: [{ type: 'text', text: `done ${text}` }] };
  });
  return server;
});
"#;

/// A daemon with a server of this command. `{dir}` in it is the directory of effects and gates.
fn rig(command: &[&str], env: Value) -> Rig {
    let rig = Rig::prepare(&[]);
    configure(&rig, command, env);
    let mut rig = rig;
    rig.d.spawn();
    rig
}

fn configure(rig: &Rig, command: &[&str], env: Value) {
    let dir = rig.dir.to_str().unwrap();
    let command: Vec<String> = command.iter().map(|arg| arg.replace("{dir}", dir)).collect();
    let pairs: Vec<String> = env.as_object().unwrap().iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let text = format!("[mcp.fake]\ncommand = {}\nenv = {{ {} }}\n", json!(command), pairs.join(", "));
    fs::write(rig.d.root().join("config/toold/config.toml"), text).unwrap();
}

fn protocol(rig: &Rig) -> Value {
    let saved = fs::read_to_string(rig.d.state().join("mcp/fake.json")).unwrap();
    serde_json::from_str::<Value>(saved.lines().nth(1).unwrap()).unwrap()["era"].clone()
}

/// Kills the daemon and then the server in the middle of calls.
fn survives(mut rig: Rig, era: &str) {
    assert_eq!(rig.text("effect", json!({ "text": "0" })), "done 0");
    assert_eq!(protocol(&rig)["era"], era, "{}", protocol(&rig));
    let _early = rig.begin("1", "effect", json!({ "text": "1", "gate": "one" }));
    let _late = rig.begin("2", "effect", json!({ "text": "2", "gate": "two" }));
    rig.waits_for("effect 1");
    rig.waits_for("effect 2");
    rig.d.kill9();
    rig.open("one");
    rig.d.spawn();
    let again = |request: &str, gate: &str| rig.again(request, "effect", json!({ "text": request, "gate": gate }));
    assert_eq!(again("1", "one").unwrap()["result"]["text"], "done 1");
    rig.open("two");
    assert_eq!(again("2", "two").unwrap()["result"]["text"], "done 2");
    let mut lost = rig.begin("3", "effect", json!({ "text": "3", "gate": "never" }));
    rig.waits_for("effect 3");
    rig.d.ok("kill", json!({ "id": "mcp/fake", "signal": "SIGKILL" }));
    assert_eq!(lost.0.answer(lost.1).unwrap_err()["data"]["kind"], "outcome_unknown");
    assert_eq!(rig.text("effect", json!({ "text": "4" })), "done 4");
    let mut effects = rig.effects();
    effects.sort();
    assert_eq!(effects, ["effect 0", "effect 1", "effect 2", "effect 3", "effect 4"]);
    assert_eq!(rig.d.ids(json!({ "name": "mcp/fake" })).len(), 2, "one start, and one after the kill");
    rig.end();
}

#[test]
fn the_python_library_of_the_newer_era_survives() {
    let Some(dir) = installed() else { return };
    let env = json!({ "PYTHONPATH": dir.join("python-new"), "PYTHONDONTWRITEBYTECODE": "1" });
    survives(rig(&["python3", "-c", PYTHON, "{dir}"], env), "modern");
}

#[test]
fn the_python_library_of_the_older_era_survives() {
    let Some(dir) = installed() else { return };
    let env = json!({ "PYTHONPATH": dir.join("python-old"), "PYTHONDONTWRITEBYTECODE": "1" });
    survives(rig(&["python3", "-c", PYTHON, "{dir}"], env), "legacy");
}

#[test]
fn the_javascript_library_of_the_newer_era_survives() {
    let Some(dir) = installed() else { return };
    // Modules are found beside the file that imports them.
    let file = dir.join(format!("node/real-{}.mjs", std::process::id()));
    fs::write(&file, JAVASCRIPT).unwrap();
    survives(rig(&["node", file.to_str().unwrap(), "{dir}"], json!({})), "modern");
    fs::remove_file(file).unwrap();
}

#[test]
fn server_everything_finishes_a_long_operation_over_a_killed_daemon() {
    let Some(dir) = installed() else { return };
    let mut rig = with_hooks();
    rig.d.kill9();
    configure(&rig, &[dir.join("node/node_modules/.bin/mcp-server-everything").to_str().unwrap()], json!({}));
    rig.d.spawn();
    assert_eq!(rig.text("echo", json!({ "message": "hello" })), "Echo: hello");
    assert!(rig.text("get-sum", json!({ "a": 2, "b": 3 })).contains('5'));
    let structured = rig.call("get-structured-content", json!({ "location": "New York" })).unwrap();
    assert!(structured["result"]["structured"].is_object(), "{structured}");
    let args = json!({ "duration": 1, "steps": 2 });
    killed_at(&mut rig, "mcp.sent", |rig| {
        drop(rig.begin("long", "trigger-long-running-operation", args.clone()));
    });
    let answer = rig.again("long", "trigger-long-running-operation", args).unwrap();
    assert!(answer["result"]["text"].as_str().unwrap().contains("Long running operation completed"), "{answer}");
    assert_eq!(rig.d.ids(json!({ "name": "mcp/fake" })).len(), 1);
    rig.end();
}

#[test]
fn server_filesystem_reads_and_writes_below_its_directory() {
    let Some(dir) = installed() else { return };
    let server = dir.join("node/node_modules/.bin/mcp-server-filesystem");
    let rig = rig(&[server.to_str().unwrap(), "{dir}"], json!({}));
    let file = rig.dir.join("note.txt");
    rig.text("write_file", json!({ "path": file, "content": "three\nlines\nhere" }));
    assert_eq!(fs::read_to_string(&file).unwrap(), "three\nlines\nhere");
    assert_eq!(rig.text("read_text_file", json!({ "path": file, "head": 1 })), "three");
    let denied = rig.error("read_text_file", json!({ "path": "/etc/passwd" }));
    assert_eq!(denied["data"]["kind"], "tool_failed", "{denied}");
    let tools = rig.tools();
    let of = |name: &str| tools.iter().find(|tool| tool["name"] == format!("fake.{name}")).unwrap().clone();
    assert_eq!((&of("read_text_file")["effect"], &of("read_text_file")["idempotent"]), (&json!("read"), &json!(true)));
    assert_eq!(of("edit_file")["effect"], "write");
    rig.end();
}

#[test]
fn server_time_of_an_old_library_answers() {
    let Some(dir) = installed() else { return };
    let env = json!({ "PYTHONPATH": dir.join("python-old"), "PYTHONDONTWRITEBYTECODE": "1" });
    let rig = rig(&["python3", "-m", "mcp_server_time", "--local-timezone", "UTC"], env);
    let time = rig.text("get_current_time", json!({ "timezone": "UTC" }));
    assert!(time.contains("\"timezone\": \"UTC\""), "{time}");
    rig.end();
}
