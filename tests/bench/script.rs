//! Scripts: the start of one beside the start of its interpreter, and a call from Python beside an echo over a socket from the same
//! Python.

use crate::Bench;
use crate::client::{Client, call};
use crate::report::Target::{PartOfFloor, TimesFloor};
use crate::report::{Figure, Unit};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use toold_test_support::rig::Daemon;

/// Measures an echo and a call, in turns, from one Python.
const CALLS: &str = r#"
import socket, time, os, json
from toold_tools import read_file, terminal, gather, result, args
open("small", "w").write("hello\n")
s = socket.socket(socket.AF_UNIX); s.connect(args["echo"])
line = b'{"jsonrpc":"2.0","id":"00000000-1","method":"tools.call","params":{"name":"read_file","args":{"path":"small"}}}\n'
def echo():
    s.sendall(line); got = b""
    while not got.endswith(b"\n"): got += s.recv(65536)
def timed(f):
    t = time.perf_counter(); f(); return (time.perf_counter() - t) * 1e6
read = lambda: read_file("small")
for i in range(50): echo(); read()
echoes, calls = [], []
for i in range(args["calls"]):
    echoes.append(timed(echo)); calls.append(timed(read))
def rate(n):
    t = time.perf_counter(); gather([terminal.later("sleep 0.1") for i in range(n * 2)], parallel=n); return n * 2 / (time.perf_counter() - t)
result({"echo": echoes, "call": calls, "one": rate(1), "many": rate(16)})
"#;

/// Returns the interpreter itself: a wrapper in front of it would be measured too.
pub fn python() -> Option<String> {
    let out = Command::new("python3").args(["-c", "import sys; print(sys.executable)"]).output().ok()?;
    String::from_utf8(out.stdout).ok().map(|path| path.trim().to_owned()).filter(|path| !path.is_empty())
}

/// Answers each line with itself.
fn serve_echo(path: &Path) {
    let listener = UnixListener::bind(path).unwrap();
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut buffer = [0; 65_536];
            while let Ok(count @ 1..) = stream.read(&mut buffer) {
                if stream.write_all(&buffer[..count]).is_err() {
                    break;
                }
            }
        }
    });
}

pub fn run(bench: &mut Bench) {
    let Some(python) = python() else { return bench.report.skip("script.run", "python3 is not installed") };
    let daemon = Daemon::start_with(&format!("[script]\npython = {python:?}\n"), &[]);
    let mut client = Client::open(&daemon.socket());
    let script = call("script.run", json!({ "code": "print(1)", "cwd": daemon.home() }));
    let env = json!({ "PYTHONUNBUFFERED": "1", "PYTHONDONTWRITEBYTECODE": "1" });
    let argv = [python.as_str(), "-X", "utf8", "-c", "print(1)"];
    let plain = call("exec", json!({ "argv": argv, "cwd": daemon.home(), "yield_ms": 60_000, "env": env }));
    let (mut ours, mut floor) = (Vec::new(), Vec::new());
    for repetition in 0..bench.pick(30, 100) {
        let (theirs, mine) = (client.ask(&plain) / 1e3, client.ask(&script) / 1e3);
        let answer: Value = serde_json::from_slice(client.last()).unwrap();
        assert_eq!(answer["result"]["output"], "1\n", "{answer}");
        if repetition > 0 {
            floor.push(theirs);
            ours.push(mine);
        }
    }
    let figure = Figure::new("script.run", Unit::Ms, &ours).floor("exec of python3 -c", &floor);
    bench.report.add(figure.target(TimesFloor(1.3)).note("print(1), to its result"));
}

pub fn calls(bench: &mut Bench) {
    let Some(python) = python() else { return bench.report.skip("script.call", "python3 is not installed") };
    let daemon = Daemon::start_with(&format!("[script]\npython = {python:?}\n"), &[]);
    let echo = daemon.root().join("echo.sock");
    serve_echo(&echo);
    let args = json!({ "echo": echo, "calls": bench.pick(1000, 5000) });
    let run = json!({ "code": CALLS, "cwd": daemon.home(), "args": args, "max_calls": 100_000, "yield_ms": 300_000 });
    let (answer, _) = Client::open(&daemon.socket()).checked(&call("script.run", run));
    let value = &answer["value"];
    let floats = |name: &str| -> Vec<f64> {
        let list = value[name].as_array().unwrap_or_else(|| panic!("{answer}"));
        list.iter().map(|v| v.as_f64().unwrap()).collect()
    };
    let figure = Figure::new("script.call", Unit::Us, &floats("call")).floor("echo from Python", &floats("echo"));
    bench.report.add(figure.target(TimesFloor(3.0)).note("read_file of six bytes"));
    let rate = |name: &str| [value[name].as_f64().unwrap()];
    let figure =
        Figure::new("script.call.parallel", Unit::PerSecond, &rate("many")).floor("one at a time", &rate("one"));
    bench.report.add(figure.target(PartOfFloor(4.0)).note("16 at a time, calls of 0.1 s"));
}
