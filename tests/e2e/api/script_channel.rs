//! The channel of a script: who may use it, and what a repeated call gets.

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use toold_test_support::rig::{Daemon, id};

/// The start of a script that uses the protocol of the channel itself.
const RAW: &str = r#"
import json, os, socket, sys
class Link:
    def __init__(self, token=None):
        self.s = socket.socket(socket.AF_UNIX); self.s.connect(os.environ["TOOLD_TOOLS"][5:])
        self.f = self.s.makefile("rwb")
        self.hello = self.ask(0, "script.hello", {"token": token or os.environ["TOOLD_TOKEN"], "pid": os.getpid()})
    def ask(self, id, method, params):
        self.f.write((json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + "\n").encode()); self.f.flush()
        return json.loads(self.f.readline())
    def call(self, id, name, **args):
        return self.ask(id, "tools.call", {"name": name, "args": args})
"#;

fn run(d: &Daemon, code: &str, more: Value) -> Value {
    let mut call = json!({ "code": format!("{RAW}{code}"), "cwd": d.root() });
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let r = d.ok("script.run", call);
    assert_eq!(r["stderr"], "", "{r}");
    r
}

fn lines(r: &Value) -> Vec<&str> {
    r["output"].as_str().unwrap().lines().collect()
}

#[test]
fn the_same_call_again_is_answered_from_the_journal_and_another_is_a_conflict() {
    let d = Daemon::start();
    let code = r#"
a, b = Link(), Link()
one = a.call("c-1", "terminal", command="echo x >> ran; echo done")
two = b.call("c-1", "terminal", command="echo x >> ran; echo done")
print(one == two, one["result"]["call"])
print(b.call("c-1", "terminal", command="echo other")["error"]["data"]["kind"])
print(b.call("../c", "terminal", command="echo other")["error"]["data"]["param"])
"#;
    let r = run(&d, code, json!({}));
    assert_eq!(lines(&r), ["True c-1", "conflict", "id"], "{r}");
    assert_eq!(fs::read_to_string(d.root().join("ran")).unwrap(), "x\n");
    assert_eq!(r["calls"]["made"], 1);
}

#[test]
fn a_wrong_or_missing_token_runs_nothing() {
    let d = Daemon::start();
    let code = r#"
l = Link(token="0" * 64)
print(l.hello["error"]["data"]["kind"], l.hello["error"]["data"]["reason"])
print(l.call("c-1", "terminal", command="echo x > ran")["error"]["data"]["reason"])
print(l.ask("h", "script.hello", {"pid": 1})["error"]["data"]["reason"])
print(l.ask("r", "script.report", {"note": "x"})["error"]["data"]["reason"], l.ask("t", "tools.list", {})["error"]["data"]["reason"])
"#;
    let r = run(&d, code, json!({}));
    assert_eq!(lines(&r), ["denied token", "token", "token", "token token"], "{r}");
    assert!(!d.root().join("ran").exists());
}

#[test]
fn a_process_outside_the_script_may_not_use_its_channel_even_with_the_token() {
    let d = Daemon::start();
    let code = "print(os.environ['TOOLD_TOOLS'][5:] + ' ' + os.environ['TOOLD_TOKEN'] + '\\nready')\nimport time\ntime.sleep(1000)";
    let mut call = json!({ "code": format!("{RAW}{code}"), "yield_ms": 0 });
    call["cwd"] = json!(d.root());
    let script = id(&d.ok("script.run", call));
    let text = d.printed(&script, "ready")["output"].as_str().unwrap().to_owned();
    let (path, token) = text.lines().next().unwrap().split_once(' ').unwrap();
    let mut stream = UnixStream::connect(path).unwrap();
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "script.hello", "params": { "token": token, "pid": 1 } });
    writeln!(stream, "{hello}").unwrap();
    let mut line = String::new();
    BufReader::new(stream).read_line(&mut line).unwrap();
    let answer: Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&answer["id"], &answer["error"]["data"]["reason"]), (&json!(1), &json!("not_inside")), "{answer}");
    d.ok("kill", json!({ "id": script }));
}

#[test]
fn processes_that_outlive_a_script_have_no_authority() {
    let d = Daemon::start();
    let code = r#"
import time
parent = os.getpid()
if os.fork() == 0:
    os.setsid()
    l = Link()
    open("ready", "w").close()
    while os.path.exists("/proc/%d" % parent): time.sleep(0.01)
    try: answer = l.call("late-1", "terminal", command="echo x > ran").get("error", {}).get("data", {}).get("reason")
    except Exception as e: answer = "closed"
    open("answer.tmp", "w").write(str(answer)); os.rename("answer.tmp", "answer")
    os._exit(0)
while not os.path.exists("ready"): time.sleep(0.01)
"#;
    let r = run(&d, code, json!({}));
    assert_eq!(r["status"], "ok", "{r}");
    let answer = d.root().join("answer");
    d.eventually("the process was answered", || answer.exists());
    let answer = fs::read_to_string(answer).unwrap();
    assert!(["retired", "closed"].contains(&answer.as_str()), "{answer}");
    assert!(!d.root().join("ran").exists());
}

#[test]
fn the_stub_of_a_process_that_outlives_the_script_raises_a_denial() {
    let d = Daemon::start();
    let code = r#"
import os, time
from toold_tools import terminal, ToolDenied
parent = os.getpid()
terminal("true")
for name in ("called", "fresh"):
    if os.fork() == 0:
        os.setsid()
        if name == "called": terminal("true")
        open(name + ".ready", "w").close()
        while os.path.exists("/proc/%d" % parent): time.sleep(0.01)
        try: answer = terminal("echo x > ran")
        except ToolDenied as e: answer = e.data["reason"]
        open("tmp." + name, "w").write(str(answer)); os.rename("tmp." + name, name)
        os._exit(0)
while not (os.path.exists("called.ready") and os.path.exists("fresh.ready")): time.sleep(0.01)
"#;
    let r = d.ok("script.run", json!({ "code": code, "cwd": d.root() }));
    assert_eq!(r["status"], "ok", "{r}");
    for name in ["called", "fresh"] {
        let answer = d.root().join(name);
        d.eventually("the process was answered", || answer.exists());
        assert_eq!(fs::read_to_string(answer).unwrap(), "retired", "{name}");
    }
    assert!(!d.root().join("ran").exists());
}

#[test]
fn a_cancel_on_the_channel_ends_the_call_and_its_tree() {
    let d = Daemon::start();
    let code = r#"
import asyncio, time
from toold_tools import aio
l = Link()
def send(message): l.f.write((json.dumps({"jsonrpc": "2.0", **message}) + "\n").encode()); l.f.flush()
send({"id": "c-1", "method": "tools.call", "params": {"name": "terminal", "args": {"command": "touch one; exec sleep 1000"}}})
while not os.path.exists("one"): time.sleep(0.01)
send({"method": "$/cancelRequest", "params": {"id": "c-1"}})
answer = json.loads(l.f.readline())
print(answer["id"], answer["error"]["code"], answer["error"]["data"]["kind"])
async def late():
    call = asyncio.ensure_future(aio.terminal("touch two; exec sleep 1000"))
    while not os.path.exists("two"): await asyncio.sleep(0.01)
    call.cancel()
    try: await call
    except asyncio.CancelledError: print("cancelled")
asyncio.run(late())
"#;
    let r = run(&d, code, json!({}));
    assert_eq!(lines(&r), ["c-1 -32800 cancelled", "cancelled"], "{r}");
    let calls = d.ok("script.calls", json!({ "id": id(&r) }))["calls"].clone();
    let statuses: Vec<&str> = calls.as_array().unwrap().iter().filter_map(|call| call["status"].as_str()).collect();
    assert_eq!(statuses, ["cancelled", "cancelled"], "{calls}");
    d.eventually("both trees ended", || d.ok("list", json!({ "status": "running" }))["processes"] == json!([]));
}

#[test]
fn calls_on_the_daemons_socket_have_the_authority_of_the_script() {
    let d = Daemon::start();
    let code = format!(
        r#"
main = socket.socket(socket.AF_UNIX); main.connect({:?}); f = main.makefile("rwb")
def ask(method, params):
    f.write((json.dumps({{"jsonrpc": "2.0", "id": 1, "method": method, "params": params}}) + "\n").encode()); f.flush()
    return json.loads(f.readline())
def kind(answer): return answer.get("error", {{}}).get("data", {{}}).get("reason", "ok")
print(kind(ask("exec", {{"command": "true"}})))
print(kind(ask("fs.read", {{"path": "/etc/hostname"}})))
print(kind(ask("tools.call", {{"name": "terminal", "args": {{"command": "true"}}}})))
print(kind(ask("tools.call", {{"name": "read_file", "args": {{"path": "/etc/hostname"}}}})))
for method, params in [("script.run", {{"code": "1"}}), ("approvals.decide", {{"id": "appr_0123456789ab", "decision": "approve", "digest": ""}}), ("daemon.shutdown", {{}})]:
    print(kind(ask(method, params)))
print(kind(ask("list", {{}})))
"#,
        d.socket().display().to_string()
    );
    let r = run(&d, &code, json!({ "tools": ["read_file"] }));
    let expected = ["not_allowed", "ok", "not_allowed", "ok", "inside_script", "inside_script", "inside_script", "ok"];
    assert_eq!(lines(&r), expected, "{r}");
    assert_eq!((&r["calls"]["made"], &r["calls"]["refused"]), (&json!(2), &json!(2)), "{r}");
}

#[test]
fn a_result_that_is_too_long_is_a_file_of_the_script() {
    let d = Daemon::start_with("[script]\nmax_result_bytes = 4096\n", &[]);
    let code = r#"
import hashlib
l = Link()
answer = l.call("big-1", "terminal", command="head -c 100000 /dev/zero | tr '\\0' x")["result"]
data = open(answer["file"]["path"], "rb").read()
print(len(data) == answer["file"]["bytes"], hashlib.sha256(data).hexdigest() == answer["file"]["sha256"], len(json.loads(data)["output"]))
from toold_tools import terminal
print(len(terminal("head -c 100000 /dev/zero | tr '\\0' y")["output"]))
"#;
    let r = run(&d, code, json!({}));
    assert_eq!(lines(&r), ["True True 100000", "100000"], "{r}");
    let call = json!({ "name": "terminal", "args": { "command": "head -c 100000 /dev/zero | tr '\\0' x" } });
    let error = d.refused(-32004, "limit", "tools.call", call);
    assert_eq!(error["data"]["limit"], "script.max_result_bytes");
}

#[test]
fn a_flood_of_garbage_and_refusals_costs_bounded_disk() {
    let d = Daemon::start();
    let code = r#"
l = Link()
for i in range(3000):
    l.f.write(b'{"jsonrpc":"2.0","id":"x-%d","method":"tools.call","params":{"name":"no_such","args":{}}}\n' % i)
l.f.flush()
kinds = {json.loads(l.f.readline())["error"]["data"]["kind"] for i in range(3000)}
print(sorted(kinds))
l.f.write(b'not json\n'); l.f.flush()
print(json.loads(l.f.readline())["error"]["code"])
print(l.call("ok-1", "terminal", command="echo alive")["result"]["result"]["output"].strip())
"#;
    let r = run(&d, code, json!({}));
    assert_eq!(lines(&r), ["['denied']", "-32700", "alive"], "{r}");
    assert_eq!(r["calls"]["refused"], 3000, "{r}");
    let journal = d.state().join("procs").join(id(&r)).join("calls");
    assert!(fs::metadata(journal).unwrap().len() < 100_000);
}
