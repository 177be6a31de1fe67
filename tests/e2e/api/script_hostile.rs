//! Scripts that attack: they multiply, flood their channel, guess tokens and send it any bytes.

use serde_json::{Value, json};
use toold_test_support::procfs;
use toold_test_support::rig::{Daemon, id};

fn run(d: &Daemon, code: &str) -> Value {
    d.ok("script.run", json!({ "code": code, "cwd": d.root(), "timeout_ms": 0 }))
}

/// The connection of a script that uses the protocol itself.
const CONNECT: &str = r#"
import json, os, random, socket, sys, time
def connect():
    s = socket.socket(socket.AF_UNIX); s.settimeout(30); s.connect(os.environ["TOOLD_TOOLS"][5:]); return s
def ask(s, message):
    s.sendall(message if isinstance(message, bytes) else (json.dumps(message) + "\n").encode())
    line = b""
    while not line.endswith(b"\n"):
        part = s.recv(65536)
        if not part: return None
        line += part
    return json.loads(line)
def hello(token): return {"jsonrpc": "2.0", "id": 1, "method": "script.hello", "params": {"token": token, "pid": os.getpid()}}
def call(id, command): return {"jsonrpc": "2.0", "id": id, "method": "tools.call", "params": {"name": "terminal", "args": {"command": command}}}
TOKEN = os.environ["TOOLD_TOKEN"]
"#;

#[test]
fn a_script_that_multiplies_is_ended_with_all_that_it_started() {
    let d = Daemon::start();
    // 64 processes in six generations, some of them in sessions of their own.
    let code = "import os, time\nfor i in range(6):\n    if os.fork() == 0 and i % 2: os.setsid()\n\
        open('born-%d' % os.getpid(), 'w').close()\ntime.sleep(1000)";
    let script = id(&d.ok("script.run", json!({ "code": code, "cwd": d.root(), "yield_ms": 0 })));
    let born = || std::fs::read_dir(d.root()).unwrap().filter(|e| is_born(&e.as_ref().unwrap().file_name())).count();
    d.eventually("all are there", || born() == 64);
    d.ok("script.cancel", json!({ "id": script }));
    let result = d.ok("script.result", json!({ "id": script, "wait_ms": 60_000 }));
    assert_eq!((&result["status"], &result["calls"]["made"]), (&json!("interrupted"), &json!(0)), "{result}");
    let pids = std::fs::read_dir(d.root())
        .unwrap()
        .filter_map(|e| e.unwrap().file_name().to_str()?.strip_prefix("born-")?.parse::<i32>().ok());
    let left: Vec<i32> = pids.filter(|pid| !matches!(procfs::state(*pid), '-' | 'Z' | 'X')).collect();
    assert_eq!(left, [0i32; 0], "the answer of cancel means that the tree is empty");
}

fn is_born(name: &std::ffi::OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with("born-"))
}

#[test]
fn a_guessed_token_is_denied_as_often_as_it_is_tried_and_the_right_one_still_works() {
    let d = Daemon::start();
    let code = format!(
        "{CONNECT}{}",
        r#"
dice, kinds = random.Random(1), set()
guesses = ["", "0" * 64, TOKEN[:-1], TOKEN + "0", TOKEN.upper() + "x", TOKEN[::-1], "\0", None, TOKEN[:32]]
s = connect()
for i in range(3000):
    token = guesses[i] if i < len(guesses) else "%064x" % dice.getrandbits(256)
    answer = ask(s, hello(token))
    kinds.add((answer["error"]["data"]["kind"], answer["error"]["data"].get("reason")))
    if i % 500 == 0: kinds.add(ask(s, call("g-%d" % i, "touch guessed"))["error"]["data"]["kind"])
print(sorted(str(kind) for kind in kinds), os.path.exists("guessed"))
ask(s, hello(TOKEN))
print(ask(s, call("right", "echo right"))["result"]["result"]["output"].strip())
"#
    );
    let r = run(&d, &code);
    assert_eq!((&r["stderr"], &r["status"]), (&json!(""), &json!("ok")), "{r}");
    assert_eq!(r["output"], "[\"('denied', 'token')\", 'denied'] False\nright\n", "{r}");
    assert_eq!(r["calls"]["made"], 1, "{r}");
}

#[test]
fn a_flood_of_connections_and_endless_messages_costs_no_call_of_the_script() {
    let d = Daemon::start_with("max_message_bytes = 65536\n", &[]);
    let code = format!(
        "{CONNECT}{}",
        r#"
open_ones = []
for i in range(400):
    try: open_ones.append(connect())
    except OSError: break
for s in open_ones[:50]:
    try: s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * 200000)
    except OSError: pass
for s in open_ones: s.close()
def reach():
    while True:  # the places of connections that were closed are free a moment later
        try:
            s = connect()
            answer = ask(s, hello(TOKEN))
            if answer and "result" in answer: return s, answer
        except OSError: pass
        time.sleep(0.02)
s, answer = reach()
print(answer["result"]["script"].startswith("proc_"))
print(ask(s, b"[" * 60000 + b"\n")["error"]["code"], ask(s, b"{}\n")["error"]["code"])
from toold_tools import terminal, gather
print(sorted({one["output"] for one in gather([terminal.later("echo %d" % i) for i in range(40)], parallel=16)}, key=int) == ["%d\n" % i for i in range(40)])
"#
    );
    let r = run(&d, &code);
    assert_eq!((&r["stderr"], &r["status"]), (&json!(""), &json!("ok")), "{r}");
    assert_eq!(r["output"], "True\n-32004 -32600\nTrue\n", "{r}");
    assert_eq!(d.ok("daemon.info", json!({}))["counts"]["running"], 0);
}

#[test]
fn no_bytes_on_the_channel_upset_the_daemon_or_make_a_call_twice() {
    let d = Daemon::start();
    let code = format!(
        "{CONNECT}{}",
        r#"
dice = random.Random(7)
def seeds(i):
    yield json.dumps(call("f-%d" % i, "echo %d >> ran" % i))
    yield json.dumps({"jsonrpc": "2.0", "id": i, "method": "tools.list", "params": {}})
    yield json.dumps({"jsonrpc": "2.0", "id": i, "method": "script.report", "params": {"note": "n"}})
    yield json.dumps({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": "f-%d" % i}})
    yield json.dumps([call("b-%d" % i, "echo b%d >> ran" % i), hello("x")])
    yield json.dumps({"jsonrpc": "2.0", "id": i, "method": "kernel.next", "params": {"after": 0}})
def change(data):
    data = bytearray(data)
    for _ in range(dice.randrange(4)):
        at = dice.randrange(len(data) + 1)
        kind = dice.randrange(4)
        if kind == 0 and at < len(data): data[at] ^= 1 << dice.randrange(8)
        elif kind == 1: data[at:at] = bytes([dice.choice(b'\x00\xff"{}[]:,\\9\n')])
        elif kind == 2: del data[at:at + dice.randrange(9)]
        else: data[at:at] = data[:dice.randrange(20)]
    return bytes(data)
import threading
def drain(s):
    try:
        while s.recv(65536): pass
    except OSError: pass
for round in range(40):
    s = connect(); ask(s, hello(TOKEN))
    threading.Thread(target=drain, args=(s,), daemon=True).start()
    try:
        for i in range(10):
            for text in seeds(round * 10 + i): s.sendall(change(text.encode()) + b"\n")
        s.shutdown(socket.SHUT_WR)
    except OSError: pass
from toold_tools import terminal
print(terminal("echo alive")["output"].strip())
"#
    );
    let r = d.ok("script.run", json!({ "code": code, "cwd": d.root(), "max_calls": 5000 }));
    assert_eq!((&r["stderr"], &r["output"], &r["status"]), (&json!(""), &json!("alive\n"), &json!("ok")), "{r}");
    // A changed command may print anything else, but the same call is made once: no two calls have one id.
    let calls = d.ok("script.calls", json!({ "id": id(&r), "limit": 1000 }));
    let ids: Vec<&str> = calls["calls"].as_array().unwrap().iter().map(|one| one["call"].as_str().unwrap()).collect();
    let distinct: std::collections::BTreeSet<&&str> = ids.iter().collect();
    assert!(ids.len() > 50, "{} calls", ids.len());
    assert_eq!(ids.len(), distinct.len());
}
