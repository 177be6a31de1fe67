//! The place of a client: a process of a script is one however it left its parent, and one that cannot be known is none.

use serde_json::{Value, json};
use std::fs;
use toold_test_support::output::output_of;
use toold_test_support::rig::{Daemon, id, skip_unless};
use toold_test_support::sys::is_root;

/// A program that prints how its channel and the daemon's socket (its argument) answer.
const CLIENT: &str = r#"
import json, os, socket, sys
def ask(f, method, params):
    f.write((json.dumps({"jsonrpc": "2.0", "id": "c-%d" % os.getpid(), "method": method, "params": params}) + "\n").encode()); f.flush()
    answer = json.loads(f.readline())
    return answer["error"]["data"]["reason"] if "error" in answer else "ok"
def connect(path):
    s = socket.socket(socket.AF_UNIX); s.connect(path); return s.makefile("rwb")
channel = connect(os.environ["TOOLD_TOOLS"][5:])
hello = ask(channel, "script.hello", {"token": os.environ["TOOLD_TOKEN"], "pid": os.getpid()})
print("channel", hello, "socket", ask(connect(sys.argv[1]), "exec", {"command": "true"}), flush=True)
"#;

/// Connects, forks, and asks when the process that connected has ended.
const ORPHAN: &str = r#"
import json, os, socket, sys, time
s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])
connected = os.getpid()
if os.fork():
    os._exit(0)
while os.path.exists("/proc/%d/exe" % connected) and os.getppid() == connected: time.sleep(0.01)
while os.path.isdir("/proc/%d" % connected): time.sleep(0.01)
s.sendall(b'{"jsonrpc":"2.0","id":1,"method":"list"}\n')
answer = json.loads(s.makefile().readline())
text = answer["error"]["data"]["reason"] if "error" in answer else "ok"
open(sys.argv[2] + ".tmp", "w").write(text); os.rename(sys.argv[2] + ".tmp", sys.argv[2])
"#;

fn programs(d: &Daemon) -> [String; 2] {
    [("client.py", CLIENT), ("orphan.py", ORPHAN)].map(|(name, text)| {
        fs::write(d.root().join(name), text).unwrap();
        d.root().join(name).display().to_string()
    })
}

fn run(d: &Daemon, code: &str) -> Value {
    let call = json!({ "language": "bash", "code": code, "cwd": d.root(), "tools": ["read_file"] });
    d.ok("script.run", call)
}

#[test]
fn a_process_of_a_script_is_inside_however_it_left_its_parent() {
    let d = Daemon::start();
    let [client, _] = programs(&d);
    let call = format!("python3 {client} {}", d.socket().display());
    let mut ways = vec![
        call.clone(),
        format!("setsid -w {call}"),
        // Its parents end first.
        format!(
            "mkfifo gate; (setsid sh -c 'read x < gate; {call} > late' & ) ; echo > gate; until test -s late; do sleep 0.01; done; cat late"
        ),
    ];
    let has_namespaces = is_root() && output_of(d.tool("unshare", &["-pf", "true"]).spawn().unwrap()).code == 0;
    if !skip_unless(has_namespaces, "no PID namespace") {
        ways.push(format!("unshare -pf {call}"));
        ways.push(format!("unshare -pf --mount-proc sh -c '{call}; true'"));
    }
    for way in ways {
        let r = run(&d, &way);
        assert_eq!(r["output"], "channel ok socket not_allowed\n", "{way}: {r}");
    }
}

#[test]
fn a_process_of_another_job_is_not_inside_even_with_the_token() {
    let d = Daemon::start();
    let [client, _] = programs(&d);
    let code = "echo $TOOLD_TOOLS $TOOLD_TOKEN; mkfifo held; read x < held";
    let call = json!({ "language": "bash", "code": code, "cwd": d.root(), "yield_ms": 0 });
    let script = id(&d.ok("script.run", call));
    let text = d.printed(&script, "t.sock")["output"].as_str().unwrap().to_owned();
    let (tools, token) = text.trim().split_once(' ').unwrap();
    let env = json!({ "TOOLD_TOOLS": tools, "TOOLD_TOKEN": token });
    let call = format!("python3 {client} {}", d.socket().display());
    let job = id(&d.sh_with(&call, json!({ "env": env })));
    d.closed(&job);
    assert_eq!(d.text(&job), "channel not_inside socket ok\n");
    d.ok("kill", json!({ "id": script }));
}

#[test]
fn a_client_that_has_ended_is_refused_once_a_script_may_have_started_it() {
    let d = Daemon::start();
    let [_, orphan] = programs(&d);
    let answer_of = |name: &str, outside: bool| {
        let path = d.root().join(name);
        let call = format!("python3 {orphan} {} {}", d.socket().display(), path.display());
        if outside {
            assert_eq!(output_of(d.tool("sh", &["-c", &call]).spawn().unwrap()).code, 0);
        } else {
            run(&d, &format!("{call}; until test -e {}; do sleep 0.01; done", path.display()));
        }
        d.eventually("it has its answer", || path.exists());
        fs::read_to_string(path).unwrap()
    };
    assert_eq!(answer_of("before", true), "ok", "no script has run");
    // The call was served with all rights, because the process that connected could not be looked at.
    assert_eq!(answer_of("inside", false), "unknown_client");
    assert_eq!(answer_of("after", true), "unknown_client", "a script could have started it");
    assert!(d.ok("list", json!({}))["processes"].is_array(), "others are served");
}
