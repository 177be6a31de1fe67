//! Scripts in a sandbox: each reaches its own channel, and neither the daemon's socket nor the channel of another script.

use super::world::{User, World};
use serde_json::{Value, json};
use std::fs;
use toold_test_support::rig::skip_unless;
use toold_test_support::sys::is_root;

/// Prints what it reaches, calls a tool, waits for the file `go` and calls a tool once more.
const CODE: &str = r#"
import os, socket, time
from toold_tools import terminal, args
own = os.environ["TOOLD_SCRIPT_DIR"]
def connect(path):
    try:
        socket.socket(socket.AF_UNIX).connect(path)
        return "connected"
    except OSError as e:
        return e.strerror
def attempt(act):
    try:
        act()
        return "done"
    except OSError as e:
        return e.strerror
runs = os.path.dirname(own)
print("runs", [os.path.join(runs, name) == own for name in os.listdir(runs)])
print("beside", os.listdir(os.path.dirname(runs)))
print("socket", connect(args["socket"]))
print("write", attempt(lambda: open(own + "/t", "w")), attempt(lambda: os.unlink(own + "/t.sock")))
print("call", terminal("echo one")["output"].strip(), flush=True)
open("ready-" + os.environ["TOOLD_SCRIPT"], "w").close()
while not os.path.exists("go"):
    time.sleep(0.01)
print("call", terminal("echo two")["output"].strip())
"#;

fn start(world: &World, name: &str) -> String {
    let call = json!({
        "language": "python", "code": CODE, "cwd": world.at("work"), "sandbox": "workspace-write", "name": name,
        "session_key": "s", "tools": ["terminal"], "args": { "socket": world.daemon.socket() }, "yield_ms": 0,
    });
    world.daemon.ok("script.run", call)["id"].as_str().unwrap().into()
}

fn result(world: &World, id: &str) -> Value {
    world.daemon.ok("script.result", json!({ "id": id, "wait_ms": 30_000 }))
}

#[test]
fn a_confined_script_reaches_its_own_channel_also_after_a_restart_of_the_daemon() {
    let own = ["auto", "namespaces", "landlock"].map(|mechanism| (User::Own, mechanism));
    let other = is_root().then_some((User::Other, "auto"));
    for (user, mechanism) in own.into_iter().chain(other) {
        let mut world = World::new(user, mechanism);
        let ids = ["one", "two"].map(|name| start(&world, name));
        for id in &ids {
            let ready = world.at(&format!("work/ready-{id}"));
            world.daemon.eventually("it has called a tool", || {
                ready.exists() || world.daemon.process(id)["status"] == "exited"
            });
        }
        world.daemon.restart();
        fs::write(world.at("work/go"), "").unwrap();
        for id in &ids {
            let ended = result(&world, id);
            let is_walled = world.daemon.process(id)["sandbox"]["enforced"].to_string().contains("unix_sockets");
            if skip_unless(is_walled || mechanism == "landlock", "no mounts here") {
                return;
            }
            let refused = if is_walled { "Read-only file system" } else { "Permission denied" };
            let output = ended["output"].as_str().unwrap();
            assert_eq!(ended["status"], "ok", "{mechanism}: {ended}");
            assert!(output.contains(&format!("write {refused} {refused}\n")), "{mechanism}: {output}");
            assert!(output.ends_with("call one\ncall two\n"), "{mechanism}: {output}");
            if is_walled {
                assert!(output.starts_with("runs [True]\nbeside ['s']\nsocket No such file"), "{mechanism}: {output}");
                // A connection that works is not a refusal.
                let process = world.daemon.process(id);
                let refused = process["sandbox"]["denials"]["list"].as_array().unwrap();
                let refused = refused.iter().filter(|call| call["op"] == "connect").map(|call| &call["address"]);
                assert_eq!(refused.collect::<Vec<_>>(), [&json!(world.daemon.socket())], "{mechanism}");
            }
        }
    }
}

#[test]
fn a_job_sees_no_run_directory_of_a_script() {
    let world = World::new(User::Own, "auto");
    let script = start(&world, "one");
    let dir = world.daemon.socket().with_file_name("s").join(&script);
    assert!(dir.join("t.sock").exists(), "{}", dir.display());
    let mut job = world.job(&json!(["ls", dir]), &json!("workspace-write"));
    job["session_key"] = json!("s");
    let job = world.daemon.ok("exec", job)["id"].as_str().unwrap().to_string();
    let ended = world.daemon.closed(&job);
    if skip_unless(ended["sandbox"]["enforced"].to_string().contains("hide"), "no mounts here") {
        return;
    }
    assert_eq!(ended["exit_code"], 2, "{}", world.daemon.text(&job));
    assert!(world.daemon.text(&job).contains("No such file or directory"));
}
