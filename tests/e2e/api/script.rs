//! `script.run`, `script.result`, `script.calls` and `script.cancel`: programs that call tools.

use serde_json::{Value, json};
use std::fs;
use toold_test_support::rig::{Daemon, id};

/// Runs a Python script to its end.
fn run(d: &Daemon, code: &str) -> Value {
    run_with(d, code, json!({}))
}

fn run_with(d: &Daemon, code: &str, more: Value) -> Value {
    let mut call = json!({ "code": code, "cwd": d.home() });
    call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    d.ok("script.run", call)
}

/// Starts a Python script and returns its id.
fn start(d: &Daemon, code: &str, more: Value) -> String {
    let mut more = more;
    more["yield_ms"] = json!(0);
    id(&run_with(d, code, more))
}

fn types(d: &Daemon, process: &str) -> Vec<String> {
    let all = d.ok("events.next", json!({ "consumer": "test", "id": process, "limit": 100 }));
    all["events"].as_array().unwrap().iter().map(|e| e["type"].as_str().unwrap().to_string()).collect()
}

#[test]
fn a_script_calls_every_native_tool_and_returns_a_value() {
    let d = Daemon::start();
    let code = r#"
from toold_tools import terminal, read_file, write_file, search_files, patch, result, note, artifact, args
written = write_file("a.txt", "one\ntwo\n")
assert written["created"], written
assert read_file("a.txt")["content"] == "one\ntwo\n"
assert patch("a.txt", "two", "three")["status"] == "applied"
found = search_files("three", path=".")
assert found["total"] == 1 and found["matches"][0]["line"] == 2, found
files = search_files("*.txt", target="files")
assert [m["path"] for m in files["matches"]] == ["./a.txt"] or [m["path"] for m in files["matches"]] == ["a.txt"], files
ran = terminal("cat; exit 3", stdin="typed")
assert (ran["output"], ran["exit_code"], ran["timed_out"]) == ("typed", 3, False), ran
killed = terminal("kill -9 $$")
assert (killed["exit_code"], killed["signal"]) == (137, "SIGKILL"), killed
late = terminal("sleep 100", timeout=0.2)
assert late["timed_out"], late
note("half way")
artifact("a.txt")
print(args["x"])
result({"count": 1})
"#;
    let r = run_with(&d, code, json!({ "args": { "x": 7 } }));
    assert_eq!((&r["status"], &r["exit_code"], &r["stderr"]), (&json!("ok"), &json!(0), &json!("")), "{r}");
    assert_eq!((&r["output"], &r["value"]), (&json!("7\n"), &json!({ "count": 1 })), "{r}");
    assert_eq!((&r["calls"]["made"], &r["calls"]["failed"], &r["calls"]["refused"]), (&json!(8), &json!(0), &json!(0)));
    assert_eq!(r["artifacts"][0]["bytes"], 10, "{r}");
    assert_eq!(r["process"]["script"]["calls"], 8, "{r}");
    assert_eq!(types(&d, &id(&r)), ["started", "script_started", "script_note", "exited", "closed", "script_finished"]);
    let calls = d.ok("script.calls", json!({ "id": id(&r), "limit": 3, "detail": "full" }));
    assert_eq!((calls["total"].as_u64(), calls["calls"].as_array().unwrap().len()), (Some(8), 3), "{calls}");
    assert_eq!(calls["calls"][0]["args"]["content"], "one\ntwo\n");
    let rest = d.ok("script.calls", json!({ "id": id(&r), "after": calls["next"] }));
    assert_eq!(rest["calls"].as_array().unwrap().len(), 5, "{rest}");
    assert!(rest["calls"].as_array().unwrap().iter().any(|c| c["process"].is_string()), "{rest}");
}

#[test]
fn a_result_is_the_same_for_every_caller_also_after_a_restart() {
    let mut d = Daemon::start();
    let code = "from toold_tools import terminal, result\nresult([terminal('echo x')['output']])\nprint('out')";
    let first = run(&d, code);
    d.kill9();
    d.spawn();
    for _ in 0..2 {
        // It had `redacted_without`: the token of the ended script, which no reader can use, was a known value that was lost.
        assert_eq!(d.ok("script.result", json!({ "id": id(&first) })), first);
    }
}

#[test]
fn bad_input_is_refused_before_anything_runs() {
    let d = Daemon::start();
    d.refused_param("code", "script.run", json!({}));
    d.refused_param("code", "script.run", json!({ "code": "" }));
    d.refused_param("code", "script.run", json!({ "code": 7 }));
    d.refused_param("code", "script.run", json!({ "code": "1", "file": "x.py" }));
    d.refused_param("language", "script.run", json!({ "code": "1", "language": "perl" }));
    d.refused_param("tools[1]", "script.run", json!({ "code": "1", "tools": ["terminal", "no_such_tool"] }));
    d.refused_param("file", "script.run", json!({ "file": "/no/such/file.py" }));
    d.refused_param("cwd", "script.run", json!({ "code": "1", "cwd": "/no/such/dir" }));
    d.refused_param("argv", "script.run", json!({ "argv": [] }));
    d.refused_param("timeout_ms", "script.run", json!({ "code": "1", "timeout_ms": -1 }));
    d.refused_param("max_parallel", "script.run", json!({ "code": "1", "max_parallel": 0 }));
    d.refused_param("id", "script.result", json!({ "id": d.sh("exit 0") }));
    d.refused(-32001, "not_found", "script.result", json!({ "id": "proc_000000000000" }));
    assert_eq!(d.ids(json!({})).len(), 1, "nothing was started but the process of the test");
}

#[test]
fn a_missing_interpreter_is_unavailable_and_names_its_key() {
    let d = Daemon::start_with("[script]\npython = \"no-such-python\"\nnode = \"/no/such/node\"\n", &[]);
    let error = d.refused(-32008, "unavailable", "script.run", json!({ "code": "1" }));
    assert!(error["message"].as_str().unwrap().contains("script.python"), "{error}");
    let error = d.refused(-32008, "unavailable", "script.run", json!({ "code": "1", "language": "javascript" }));
    assert!(error["message"].as_str().unwrap().contains("script.node"), "{error}");
}

#[test]
fn an_interpreter_that_is_too_old_is_unavailable() {
    let dir = tempfile::tempdir().unwrap();
    let old = dir.path().join("old-python");
    fs::write(&old, "#!/bin/sh\necho 3.7\n").unwrap();
    fs::set_permissions(&old, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let d = Daemon::start_with(&format!("[script]\npython = {:?}\n", old.display().to_string()), &[]);
    let error = d.refused(-32008, "unavailable", "script.run", json!({ "code": "1" }));
    assert!(error["message"].as_str().unwrap().contains("3.8"), "{error}");
}

#[test]
fn only_the_tools_of_the_list_may_be_called_and_an_empty_list_is_none() {
    let d = Daemon::start();
    let code = r#"
import toold_tools as t
from toold_tools import ToolDenied
import json, os, socket
link = t.tools
def raw(name):
    # The list holds for a client without a stub too.
    s = socket.socket(socket.AF_UNIX); s.connect(os.environ["TOOLD_TOOLS"][5:])
    f = s.makefile("rw")
    def ask(id, method, params):
        f.write(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}) + "\n"); f.flush()
        return json.loads(f.readline())
    ask(1, "script.hello", {"token": os.environ["TOOLD_TOKEN"], "pid": os.getpid()})
    return ask("x-1", "tools.call", {"name": name, "args": {"command": "true", "path": "/etc/passwd"}})
for name in ["terminal", "web_search"]:
    print(name, raw(name)["error"]["data"]["kind"], raw(name)["error"]["data"]["reason"])
"#;
    let r = run_with(&d, code, json!({ "tools": ["read_file"] }));
    assert_eq!(r["output"], "terminal denied not_allowed\nweb_search denied not_allowed\n", "{r}");
    assert_eq!((&r["calls"]["made"], &r["calls"]["refused"]), (&json!(0), &json!(4)), "{r}");
    let code = code.replace("[\"terminal\", \"web_search\"]", "[\"read_file\"]");
    let r = run_with(&d, &code, json!({ "tools": [] }));
    assert_eq!(r["output"], "read_file denied not_allowed\n", "{r}");
}

#[test]
fn the_budget_counts_calls_and_not_refusals() {
    let d = Daemon::start();
    let code = r#"
from toold_tools import read_file, ToolError, ToolLimit
open("f", "w").write("x")
try: read_file(path=7)
except ToolError as e: print(e.kind, e.data["pointer"])
for i in range(3):
    try: print(read_file("f")["content"])
    except ToolLimit as e: print(e.kind)
"#;
    let r = run_with(&d, code, json!({ "max_calls": 2 }));
    assert_eq!(r["output"], "invalid_params /path\nx\nx\nlimit\n", "{r}");
    assert_eq!((&r["calls"]["made"], &r["calls"]["refused"]), (&json!(2), &json!(2)), "{r}");
}

#[test]
fn errors_of_a_script_are_structured() {
    let d = Daemon::start();
    let r = run(&d, "x = 1\nraise ValueError('no good')\n");
    assert_eq!((&r["status"], &r["exit_code"]), (&json!("error"), &json!(1)), "{r}");
    let error = &r["error"];
    assert_eq!(
        (&error["type"], &error["message"], &error["line"]),
        (&json!("ValueError"), &json!("no good"), &json!(2)),
        "{r}"
    );
    assert!(error["traceback"].as_str().unwrap().contains("raise ValueError"), "{r}");
    assert!(r["stderr"].as_str().unwrap().ends_with("ValueError: no good\n"), "{r}");
    let r = run(&d, "print('never')\nif x\n");
    assert_eq!(
        (&r["error"]["type"], &r["error"]["line"], &r["output"]),
        (&json!("SyntaxError"), &json!(2), &json!("")),
        "{r}"
    );
    assert_eq!(r["hints"].as_array().unwrap().len(), 1, "{r}");
    let r = run(&d, "import sys; sys.exit(4)");
    assert_eq!((&r["status"], &r["exit_code"], &r["error"]), (&json!("error"), &json!(4), &Value::Null), "{r}");
}

#[test]
fn the_same_request_is_the_same_script_and_another_is_a_conflict() {
    let d = Daemon::start();
    let call = |code: &str| json!({ "code": code, "request_id": "r-1", "cwd": d.root() });
    let first = d.ok("script.run", call("print(1)"));
    let again = d.ok("script.run", call("print(1)"));
    assert_eq!((&again["id"], &again["output"], &again["existing"]), (&first["id"], &first["output"], &json!(true)));
    d.refused(-32009, "conflict", "script.run", call("print(2)"));
    assert_eq!(d.ids(json!({})).len(), 1);
}

#[test]
fn a_timeout_ends_the_script_and_is_its_status() {
    let d = Daemon::start();
    let r = run_with(&d, "import time\nprint('started')\ntime.sleep(100)", json!({ "timeout_ms": 1500 }));
    assert_eq!((&r["status"], &r["output"]), (&json!("timeout"), &json!("started\n")), "{r}");
    assert_eq!(r["process"]["reason"], "timeout", "{r}");
}

#[test]
fn a_cancelled_script_loses_its_authority_then_its_calls_then_its_tree() {
    let d = Daemon::start();
    let code = "from toold_tools import terminal\nprint('go')\nterminal('echo $$ > pid; exec sleep 1000')";
    let script = start(&d, code, json!({}));
    let pid = d.home().join("pid");
    d.eventually("the command runs", || fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')));
    let command: i32 = fs::read_to_string(&pid).unwrap().trim().parse().unwrap();
    let cancelled = d.ok("script.cancel", json!({ "id": script }));
    assert_eq!(
        (&cancelled["status"], cancelled["calls"].as_array().unwrap().len()),
        (&json!("cancelled"), 1),
        "{cancelled}"
    );
    assert!(!std::path::Path::new(&format!("/proc/{command}")).exists(), "the tree of the call is gone");
    let r = d.ok("script.result", json!({ "id": script }));
    assert_eq!((&r["status"], &r["process"]["reason"]), (&json!("interrupted"), &json!("killed")), "{r}");
    assert_eq!(r["calls"]["log"][0]["status"], "cancelled", "{r}");
    assert_eq!(d.ok("script.cancel", json!({ "id": script }))["status"], "ended");
}

#[test]
fn one_call_can_be_cancelled_and_the_script_goes_on() {
    let d = Daemon::start();
    let code = "from toold_tools import terminal, ToolError\ntry: terminal('sleep 1000')\nexcept ToolError as e: print(e.kind)";
    let script = start(&d, code, json!({}));
    let calls = || d.ok("script.calls", json!({ "id": script }))["calls"].clone();
    d.eventually("the call is made", || calls().as_array().unwrap().len() == 1);
    let call = calls()[0]["call"].clone();
    let cancelled = d.ok("script.cancel", json!({ "id": script, "call": call }));
    assert_eq!(cancelled["calls"], json!([call]), "{cancelled}");
    let r = d.ok("script.result", json!({ "id": script, "wait_ms": 30000 }));
    assert_eq!((&r["status"], &r["output"]), (&json!("ok"), &json!("cancelled\n")), "{r}");
}

#[test]
fn commands_of_a_script_that_has_ended_are_killed_but_not_those_in_the_background() {
    let d = Daemon::start();
    let code = r#"
from toold_tools import terminal
import threading, os, time
back = terminal("echo back >> marks; exec sleep 1000", background=True)
print(back["process"])
threading.Thread(target=lambda: terminal("echo front >> marks; exec sleep 1000"), daemon=True).start()
while open("marks").read().count("\n") < 2 if os.path.exists("marks") else True: time.sleep(0.01)
os._exit(0)
"#;
    let r = run(&d, code);
    assert_eq!(r["status"], "ok", "{r}");
    let back = r["output"].as_str().unwrap().trim().to_owned();
    let calls = d.ok("script.calls", json!({ "id": id(&r) }))["calls"].clone();
    let front = d.ids(json!({})).into_iter().find(|p| *p != back && *p != id(&r)).unwrap();
    assert_eq!(d.process(&front)["reason"], "killed", "{calls}");
    assert_eq!(d.process(&back)["status"], "running", "{calls}");
    d.ok("kill", json!({ "id": back }));
}

#[test]
fn background_commands_can_be_forbidden() {
    let d = Daemon::start_with("[script]\nbackground = false\n", &[]);
    let code = "from toold_tools import terminal, ToolDenied\ntry: terminal('sleep 1', background=True)\nexcept ToolDenied as e: print(e.data['reason'])";
    assert_eq!(run(&d, code)["output"], "background\n");
}

#[test]
fn output_is_cut_in_its_middle_and_the_log_has_all_of_it() {
    let d = Daemon::start();
    let code = "import sys\nprint('ä' * 40000)\nsys.stderr.write('e' * 30000 + 'last')";
    let r = run(&d, code);
    let cut = &r["output_truncated"];
    assert_eq!(cut["total"], 80_001, "{cut}");
    assert_eq!(cut["kept"].as_u64().unwrap() + cut["omitted"].as_u64().unwrap(), 80_001, "{cut}");
    assert!(cut["kept"].as_u64().unwrap() <= 50_000 && cut["head"].as_u64().unwrap() <= 20_000, "{cut}");
    assert!(r["stderr"].as_str().unwrap().ends_with("last"), "the end of stderr is kept");
    assert_eq!(d.bytes(&id(&r)).len(), 80_001 + 30_004);
}

#[test]
fn any_program_and_the_shell_have_the_channel() {
    let d = Daemon::start();
    let code = r#"
printf '{"jsonrpc":"2.0","id":1,"method":"script.hello","params":{"token":"%s","pid":1}}\n' "$TOOLD_TOKEN" > in
printf '{"jsonrpc":"2.0","id":"s-1","method":"tools.call","params":{"name":"terminal","args":{"command":"echo from the shell"}}}\n' >> in
python3 - <<'EOF'
import os, socket
s = socket.socket(socket.AF_UNIX); s.connect(os.environ["TOOLD_TOOLS"][5:]); s.sendall(open("in", "rb").read())
f = s.makefile(); f.readline(); print(f.readline())
EOF
"#;
    let r = run_with(&d, code, json!({ "language": "bash" }));
    assert!(r["output"].as_str().unwrap().contains("from the shell"), "{r}");
    let r = d.ok("script.run", json!({ "argv": ["/bin/sh", "-c", "echo $TOOLD_SCRIPT"], "cwd": d.root() }));
    assert_eq!(r["output"], format!("{}\n", id(&r)), "{r}");
}

#[test]
fn a_script_file_runs_in_its_place() {
    let d = Daemon::start();
    fs::write(d.home().join("helper_module.py"), "VALUE = 5\n").unwrap();
    fs::write(d.home().join("job.py"), "import helper_module\nprint(__file__, helper_module.VALUE)\n").unwrap();
    let r = d.ok("script.run", json!({ "file": "job.py", "cwd": d.home() }));
    assert_eq!(r["output"], format!("{} 5\n", d.home().join("job.py").display()), "{r}");
    assert!(!d.home().join("__pycache__").exists(), "nothing is written into the directory");
}

#[test]
fn nothing_of_a_script_is_left_in_the_runtime_directory() {
    let d = Daemon::start();
    let r = run(&d, "from toold_tools import terminal\nterminal('true')");
    assert_eq!(r["status"], "ok", "{r}");
    let runs = d.socket().parent().unwrap().join("s");
    assert_eq!(fs::read_dir(runs).map(|dir| dir.count()).unwrap_or(0), 0);
}

#[test]
fn scripts_are_bounded_in_number() {
    let d = Daemon::start_with("[script]\nmax_running = 1\n", &[]);
    let first = start(&d, "import time\ntime.sleep(1000)", json!({}));
    let error = d.refused(-32004, "limit", "script.run", json!({ "code": "1" }));
    assert_eq!(error["data"]["limit"], "script.max_running", "{error}");
    d.ok("kill", json!({ "id": first }));
    d.ok("script.result", json!({ "id": first }));
    assert_eq!(run(&d, "print(1)")["output"], "1\n");
}

#[test]
fn each_call_is_an_event_if_the_config_asks_for_it() {
    let d = Daemon::start_with("[events]\ncalls = true\n", &[]);
    let code = "from toold_tools import *\nterminal('echo 1')\ntry: read_file('missing')\nexcept ToolError: pass";
    let script = id(&run(&d, code));
    let all = d.ok("events.next", json!({ "consumer": "test", "id": script, "types": ["script_call"], "limit": 100 }));
    let calls = d.ok("script.calls", json!({ "id": script }))["calls"].as_array().unwrap().clone();
    let events = all["events"].as_array().unwrap();
    assert_eq!(events.len(), 2, "{all}");
    for (event, call) in events.iter().zip(&calls) {
        for field in ["call", "tool", "status", "ms", "bytes", "error"] {
            assert_eq!(event[field], call[field], "{field}: {event} {call}");
        }
    }
    assert_eq!((&events[0]["status"], &events[1]["error"]), (&json!("ok"), &json!("not_found")), "{all}");
}

#[test]
fn a_script_is_not_restarted() {
    let d = Daemon::start();
    let script = id(&run(&d, "print(1)"));
    d.refused(-32602, "invalid_params", "restart", json!({ "id": script }));
}
