//! Random interleavings of calls, lost connections, repeats and kills of the daemon: each effect happens once.
//!
//! The scripts use the protocol of the channel themselves, so that a repeat comes at moments at which the stub would not send one.

use crate::random::Random;
use serde_json::json;
use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs;
use toold_test_support::rig::{Daemon, id};

/// Runs with other seeds: `TOOLD_CALL_SEEDS=50`.
const SEEDS: u64 = 3;
const THREADS: u64 = 8;
const EFFECTS: u64 = 25;

/// Threads that make effects, each on connections that they drop and repeat on at random.
const PROGRAM: &str = r#"
import json, os, random, socket, threading, time
from toold_tools import args
errors = []
class Link:
    def __init__(self):
        self.s = socket.socket(socket.AF_UNIX); self.s.settimeout(60); self.s.connect(os.environ["TOOLD_TOOLS"][5:])
        self.f = self.s.makefile("rwb")
        self.send({"jsonrpc": "2.0", "id": 0, "method": "script.hello", "params": {"token": os.environ["TOOLD_TOKEN"], "pid": os.getpid()}})
        self.read(0)
    def send(self, message):
        self.f.write((json.dumps(message) + "\n").encode()); self.f.flush()
    def read(self, id):
        while True:
            line = self.f.readline()
            if not line.endswith(b"\n"): raise OSError("cut")
            answer = json.loads(line)
            if answer["id"] == id: return answer
    def close(self):
        try: self.f.close()  # what was not sent before a kill is sent now, and fails
        except OSError: pass
        self.s.close()
def effect(dice, id, name, arguments):
    call = {"jsonrpc": "2.0", "id": id, "method": "tools.call", "params": {"name": name, "args": arguments}}
    while True:
        links = []
        try:
            links = [Link() for _ in range(dice.choice([1, 1, 2]))]
            for link in links: link.send(call)
            if dice.random() < 0.3: time.sleep(dice.random() * 0.01); continue
            answers = [link.read(id) for link in links]
            if any(answer != answers[0] for answer in answers): errors.append(["answers differ", id, answers])
            if "error" in answers[0]: errors.append([id, answers[0]["error"]])
            return answers[0]
        except OSError:
            time.sleep(0.005)
        finally:
            for link in links: link.close()
def work(t):
    dice = random.Random(args["seed"] * 1000 + t)
    for i in range(args["effects"]):
        key, kind = "%d-%d" % (t, i), dice.choice(["write", "run", "edit"])
        if kind == "write": effect(dice, "w" + key, "write_file", {"path": "out/" + key, "content": "x", "expect": "absent"})
        if kind == "run": effect(dice, "r" + key, "terminal", {"command": "echo %s >> ran" % key})
        if kind == "edit": effect(dice, "e" + key, "patch", {"path": "edit%d" % t, "old_string": "end", "new_string": key + "\nend"})
        made[kind].append(key)
made = {"write": [], "run": [], "edit": []}
for t in range(args["threads"]): open("edit%d" % t, "w").write("end\n")
threads = [threading.Thread(target=work, args=(t,)) for t in range(args["threads"])]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(json.dumps({"made": made, "errors": errors[:3]}))
"#;

#[test]
fn any_interleaving_of_calls_lost_connections_and_kills_gives_each_effect_once() {
    let seeds = std::env::var("TOOLD_CALL_SEEDS").ok().and_then(|n| n.parse().ok()).unwrap_or(SEEDS);
    for seed in 1..=seeds {
        let mut d = Daemon::start();
        let args = json!({ "seed": seed, "threads": THREADS, "effects": EFFECTS });
        let run = json!({ "code": PROGRAM, "args": args, "cwd": d.home(), "yield_ms": 0, "max_calls": 10_000 });
        let script = id(&d.ok("script.run", run));
        let mut random = Random(seed);
        let made = Cell::new(0);
        while d.process(&script)["status"] == "running" {
            let next = made.get() + 5 + random.below(40);
            d.eventually("more calls are made", || {
                let process = d.process(&script);
                made.set(process["script"]["calls"].as_u64().unwrap());
                made.get() >= next || process["status"] != "running"
            });
            d.kill9();
            d.spawn();
        }
        let result = d.ok("script.result", json!({ "id": script, "wait_ms": 60_000 }));
        assert_eq!((&result["status"], &result["stderr"]), (&json!("ok"), &json!("")), "seed {seed}: {result}");
        let found: serde_json::Value = serde_json::from_str(result["output"].as_str().unwrap()).unwrap();
        assert_eq!(found["errors"], json!([]), "seed {seed}");
        assert_eq!(result["calls"]["made"], THREADS * EFFECTS, "seed {seed}");
        let keys = |kind: &str| -> Vec<String> { serde_json::from_value(found["made"][kind].clone()).unwrap() };
        let sorted = |keys: Vec<String>| {
            let count = keys.len();
            let set: BTreeSet<String> = keys.into_iter().collect();
            assert_eq!(set.len(), count, "seed {seed}: an effect is there twice");
            set
        };
        let names = fs::read_dir(d.home().join("out")).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
        assert_eq!(sorted(names.collect()), sorted(keys("write")), "seed {seed}");
        let ran = fs::read_to_string(d.home().join("ran")).unwrap();
        assert_eq!(sorted(ran.lines().map(str::to_owned).collect()), sorted(keys("run")), "seed {seed}");
        let edits = (0..THREADS).map(|t| fs::read_to_string(d.home().join(format!("edit{t}"))).unwrap());
        let edits =
            edits.flat_map(|text| text.lines().filter(|line| *line != "end").map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(sorted(edits.collect()), sorted(keys("edit")), "seed {seed}");
    }
}
