//! The real clients: the Python SDK of both eras and the inspector. `tests/mcp-servers` installs them.

use serde_json::Value;
use std::path::PathBuf;
use std::process::Stdio;
use toold_test_support::output::output_of;
use toold_test_support::rig::{Daemon, skip_unless};

fn installed(part: &str) -> PathBuf {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join(target).join("mcp-servers").join(part)
}

const NEW: &str = r#"
import asyncio, json, sys
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

async def main():
    params = StdioServerParameters(command=sys.argv[1], args=["mcp", "--session", "py"], env=dict(__import__("os").environ))
    async with Client(stdio_client(params)) as client:
        tools = await client.list_tools()
        started = await client.call_tool("proc_start", {"command": "echo from python; exit 4"})
        listed = await client.list_resources()
        log = await client.read_resource(str(listed.resources[1].uri))
        print(json.dumps({
            "tools": [tool.name for tool in tools.tools],
            "text": started.content[0].text,
            "log": log.contents[0].text,
            "version": getattr(client, "protocol_version", None) or getattr(client.session, "protocol_version", None),
        }))

asyncio.run(main())
"#;

const OLD: &str = r#"
import asyncio, json, os, sys
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    params = StdioServerParameters(command=sys.argv[1], args=["mcp", "--session", "py"], env=dict(os.environ))
    async with stdio_client(params) as (read, write):
        async with ClientSession(read, write) as session:
            hello = await session.initialize()
            tools = await session.list_tools()
            started = await session.call_tool("proc_start", {"command": "echo from python; exit 4"})
            listed = await session.list_resources()
            log = await session.read_resource(listed.resources[1].uri)
            print(json.dumps({
                "tools": [tool.name for tool in tools.tools],
                "text": started.content[0].text,
                "log": log.contents[0].text,
                "version": hello.protocolVersion,
            }))

asyncio.run(main())
"#;

fn run_python(libraries: &str, script: &str) -> Option<Value> {
    let libraries = installed(libraries);
    if skip_unless(libraries.exists(), "the Python SDK is not installed: run tests/mcp-servers") {
        return None;
    }
    let daemon = Daemon::start();
    let file = daemon.root().join("client.py");
    std::fs::write(&file, script).unwrap();
    let toolctl = toold_test_support::programs::toolctl();
    let mut command = daemon.tool("timeout", &["60", "python3", file.to_str().unwrap(), toolctl.to_str().unwrap()]);
    command.env("PYTHONPATH", &libraries).stdout(Stdio::piped()).stderr(Stdio::piped());
    let output = output_of(command.spawn().unwrap());
    assert_eq!(output.code, 0, "{output:?}");
    Some(serde_json::from_str(output.stdout.lines().last().unwrap()).unwrap())
}

fn check(found: &Value) {
    let names = ["proc_start", "proc_wait", "proc_read", "proc_write", "proc_kill", "proc_list"];
    assert_eq!(found["tools"], serde_json::json!(names));
    let text = found["text"].as_str().unwrap();
    assert!(
        text.contains(" exited 4 after ") && text.contains("\nfrom python\n[1 line, 12 bytes, cursor 12]"),
        "{text}"
    );
    assert_eq!(found["log"], "from python\n");
}

#[test]
fn the_python_sdk_of_the_newer_era_lists_calls_and_reads() {
    if let Some(found) = run_python("python-new", NEW) {
        check(&found);
        assert!(found["version"].is_null() || found["version"] == "2026-07-28", "{found}");
    }
}

#[test]
fn the_python_sdk_of_the_older_era_lists_calls_and_reads() {
    if let Some(found) = run_python("python-old", OLD) {
        check(&found);
        assert!(["2025-03-26", "2025-06-18", "2025-11-25"].contains(&found["version"].as_str().unwrap()), "{found}");
    }
}

#[test]
fn the_inspector_lists_and_calls() {
    let inspector = installed("node/node_modules/.bin/mcp-inspector");
    if skip_unless(inspector.exists(), "the inspector is not installed: run tests/mcp-servers") {
        return;
    }
    let daemon = Daemon::start();
    let toolctl = toold_test_support::programs::toolctl().display().to_string();
    let socket = daemon.socket().display().to_string();
    let run = |more: &[&str]| {
        let args = [
            &[
                "60",
                inspector.to_str().unwrap(),
                "--cli",
                &toolctl,
                "mcp",
                "--session",
                "inspector",
                "--no-autostart",
                "--socket",
                &socket,
            ],
            more,
        ]
        .concat();
        let output = output_of(daemon.tool("timeout", &args).spawn().unwrap());
        assert_eq!(output.code, 0, "{output:?}");
        serde_json::from_str::<Value>(&output.stdout).unwrap()
    };
    let tools = run(&["--method", "tools/list"]);
    assert_eq!(tools["tools"].as_array().unwrap().len(), 6);
    let called = run(&["--method", "tools/call", "--tool-name", "proc_start", "--tool-arg", "command=echo hi"]);
    assert!(called["content"][0]["text"].as_str().unwrap().contains("\nhi\n[1 line, 3 bytes, cursor 3]"), "{called}");
}
