//! `kill -9` of the daemon: servers go on, nothing is handshaken again, and each call is answered once.

use super::Rig;
use serde_json::json;
use std::fs;

#[test]
fn a_call_in_flight_is_answered_once_by_the_next_daemon() {
    for era in ["legacy", "modern"] {
        let mut rig = Rig::start(&["--era", era]);
        let _early = rig.begin("1", "effect", json!({ "text": "1", "gate": "one" }));
        let _late = rig.begin("2", "effect", json!({ "text": "2", "gate": "two" }));
        rig.waits_for("effect 1");
        rig.waits_for("effect 2");
        rig.d.kill9();
        // Answered while no daemon runs.
        rig.open("one");
        rig.d.spawn();
        for _ in 0..2 {
            let answer = rig.again("1", "effect", json!({ "text": "1", "gate": "one" }));
            assert_eq!(answer.unwrap()["result"]["text"], "done 1");
        }
        let mut late = rig.begin("2", "effect", json!({ "text": "2", "gate": "two" }));
        assert_eq!(rig.text("echo", json!({ "text": "meanwhile" })), "meanwhile");
        rig.open("two");
        assert_eq!(late.0.answer(late.1).unwrap()["result"]["text"], "done 2");
        let counts = ["start", "discover", "list", "effect 1", "effect 2"].map(|effect| rig.count(effect));
        assert_eq!(counts, [1; 5], "{era}: {:?}", rig.effects());
        assert_eq!(rig.count("initialize"), usize::from(era == "legacy"));
        rig.end();
    }
}

/// Kills the daemon at a hook, and returns when the next one runs.
pub fn killed_at(rig: &mut Rig, hook: &str, begin: impl FnOnce(&Rig)) {
    let hooks = rig.d.root().join("hooks");
    fs::write(hooks.join(hook), "").unwrap();
    begin(rig);
    let hit = hooks.join(format!("{hook}.hit"));
    rig.d.eventually(hook, || hit.exists());
    rig.d.kill9();
    fs::remove_file(hooks.join(hook)).unwrap();
    let _ = fs::remove_file(hit);
    rig.d.spawn();
}

pub fn with_hooks() -> Rig {
    let mut rig = Rig::prepare(&[]);
    let hooks = rig.d.root().join("hooks");
    fs::create_dir(&hooks).unwrap();
    rig.d.env.push(("TOOLD_HOOKS".into(), hooks.display().to_string()));
    rig.configure(&[], "", "");
    rig.d.spawn();
    rig
}

#[test]
fn a_daemon_that_is_killed_at_any_step_of_a_start_is_followed_by_one_that_goes_on() {
    for hook in ["mcp.started", "mcp.state_written", "mcp.write", "mcp.written", "mcp.handshake", "mcp.ready"] {
        let mut rig = with_hooks();
        killed_at(&mut rig, hook, |rig| drop(rig.begin("1", "effect", json!({ "text": "1" }))));
        let answer = rig.again("1", "effect", json!({ "text": "1" }));
        assert_eq!(answer.unwrap()["result"]["text"], "done 1", "{hook}");
        let counts = ["start", "discover", "initialize", "effect 1"].map(|effect| rig.count(effect));
        assert_eq!(counts, [1; 4], "{hook}: {:?}", rig.effects());
        rig.end();
    }
}

#[test]
fn a_daemon_that_is_killed_at_any_step_of_a_call_is_followed_by_one_that_goes_on() {
    for hook in ["mcp.recorded", "mcp.write", "mcp.written", "mcp.sent"] {
        let mut rig = with_hooks();
        assert_eq!(rig.text("echo", json!({ "text": "up" })), "up");
        killed_at(&mut rig, hook, |rig| drop(rig.begin("1", "effect", json!({ "text": "1" }))));
        let answer = rig.again("1", "effect", json!({ "text": "1" }));
        assert_eq!(answer.unwrap()["result"]["text"], "done 1", "{hook}");
        let counts = ["start", "discover", "initialize", "effect 1"].map(|effect| rig.count(effect));
        assert_eq!(counts, [1; 4], "{hook}: {:?}", rig.effects());
        rig.end();
    }
}

#[test]
fn a_daemon_that_is_killed_as_it_takes_over_a_server_is_followed_by_one_that_goes_on() {
    let mut rig = with_hooks();
    assert_eq!(rig.text("echo", json!({ "text": "up" })), "up");
    rig.d.kill9();
    fs::write(rig.d.root().join("hooks/mcp.attach"), "").unwrap();
    rig.d.spawn();
    killed_at(&mut rig, "mcp.attach", |rig| drop(rig.begin("1", "effect", json!({ "text": "1" }))));
    assert_eq!(rig.again("1", "effect", json!({ "text": "1" })).unwrap()["result"]["text"], "done 1");
    let counts = ["start", "discover", "initialize", "effect 1"].map(|effect| rig.count(effect));
    assert_eq!(counts, [1; 4], "{:?}", rig.effects());
    rig.end();
}

/// Without the file of the long message, the rest of it would be missing, and the next message would be taken for it.
#[test]
fn a_long_message_that_a_killed_daemon_began_is_ended_before_the_next_one() {
    let mut rig = Rig::start(&[]);
    assert_eq!(rig.text("echo", json!({ "text": "up" })), "up");
    let server = rig.d.program("mcp/fake");
    // A server that does not read: its pipe takes a part of the message.
    server.signal(libc::SIGSTOP);
    let long = "x".repeat(300_000);
    let _waiting = rig.begin("1", "echo", json!({ "text": long }));
    let file = rig.d.state().join("mcp/fake.write");
    rig.d.eventually("the message is being written", || file.exists());
    rig.d.kill9();
    rig.d.spawn();
    let mut other = rig.begin("2", "echo", json!({ "text": "other" }));
    server.signal(libc::SIGCONT);
    assert_eq!(other.0.answer(other.1).unwrap()["result"]["text"], "other");
    assert_eq!(rig.again("1", "echo", json!({ "text": long })).unwrap()["result"]["text"], long);
    rig.d.eventually("the message is whole", || !file.exists());
    assert_eq!(rig.count("start"), 1);
    rig.end();
}

#[test]
fn a_server_that_died_with_the_daemon_answered_before_or_may_have_done_it() {
    let mut rig = Rig::start(&[]);
    for request in ["1", "2", "3"] {
        let tool = if request == "3" { "look" } else { "effect" };
        drop(rig.begin(request, tool, json!({ "text": request, "gate": request })));
        rig.waits_for(&format!("{tool} {request}"));
    }
    let server = rig.d.program("mcp/fake");
    rig.d.kill9();
    rig.open("1");
    let log = rig.d.state().join("procs");
    let grep = || rig.d.tool("grep", &["-rqF", "done 1", log.to_str().unwrap()]).status().unwrap().success();
    rig.d.eventually("the answer is in the log", grep);
    server.signal(libc::SIGKILL);
    rig.d.eventually("the server is dead", || server.is_dead());
    rig.d.spawn();
    let again = |request: &str, tool: &str| rig.again(request, tool, json!({ "text": request, "gate": request }));
    assert_eq!(again("1", "effect").unwrap()["result"]["text"], "done 1");
    assert_eq!(again("2", "effect").unwrap_err()["data"]["kind"], "outcome_unknown");
    rig.open("3");
    assert_eq!(again("3", "look").unwrap()["result"]["text"], "seen 3", "it changes nothing, so it is sent again");
    assert_eq!(["effect 1", "effect 2", "look 3"].map(|effect| rig.count(effect)), [1, 1, 2]);
    rig.end();
}

#[test]
fn a_damaged_file_of_a_server_is_reported_and_costs_a_list() {
    let mut rig = Rig::start(&[]);
    assert_eq!(rig.text("echo", json!({ "text": "up" })), "up");
    rig.d.kill9();
    let file = rig.d.state().join("mcp/fake.json");
    let mut bytes = fs::read(&file).unwrap();
    bytes[40] ^= 1;
    fs::write(&file, bytes).unwrap();
    rig.d.spawn();
    assert_eq!(rig.text("echo", json!({ "text": "again" })), "again");
    let damaged = rig.d.ok("daemon.info", json!({}))["damaged"].to_string();
    assert!(damaged.contains("mcp/fake.json"), "{damaged}");
    let counts = ["start", "discover", "initialize", "list"].map(|effect| rig.count(effect));
    assert_eq!(counts, [1, 1, 1, 2], "the handshake is in the log: {:?}", rig.effects());
    rig.end();
}

#[test]
fn many_calls_over_many_killed_daemons_happen_once_each() {
    let mut rig = Rig::start(&[]);
    let mut done = 0;
    for round in 0..6 {
        let calls: Vec<_> = (0..20)
            .map(|n| format!("{round}-{n}"))
            .map(|name| (rig.begin(&name, "effect", json!({ "text": name })), name))
            .collect();
        rig.waits_for(&format!("effect {round}-{}", round * 3));
        rig.d.restart();
        for (_, name) in calls {
            let answer = rig.again(&name, "effect", json!({ "text": name }));
            assert_eq!(answer.unwrap()["result"]["text"], format!("done {name}"));
            done += 1;
        }
    }
    let effects: Vec<String> = rig.effects().into_iter().filter(|effect| effect.starts_with("effect")).collect();
    let distinct: std::collections::HashSet<&String> = effects.iter().collect();
    assert_eq!((done, effects.len(), distinct.len()), (120, 120, 120));
    assert_eq!(rig.count("start"), 1);
    rig.end();
}

#[test]
fn a_script_calls_a_tool_of_a_server_over_a_killed_daemon() {
    let mut rig = Rig::start(&[]);
    let code = "from toold_tools import tools, result\nresult(tools.fake.effect(text='1', gate='one')['text'])";
    let run = json!({ "code": code, "language": "python", "tools": ["fake.effect"], "yield_ms": 0 });
    let script = rig.d.ok("script.run", run)["id"].as_str().unwrap().to_string();
    rig.waits_for("effect 1");
    rig.d.kill9();
    rig.open("one");
    rig.d.spawn();
    let result = rig.d.ok("script.result", json!({ "id": script, "wait_ms": 30000 }));
    assert_eq!((&result["status"], &result["value"]), (&json!("ok"), &json!("done 1")), "{result}");
    assert_eq!((rig.count("effect 1"), rig.count("start")), (1, 1));
    rig.end();
}

#[test]
fn events_report_a_server_that_is_ready_and_one_that_is_gone() {
    let rig = Rig::start(&[]);
    assert_eq!(rig.error("die", json!({}))["data"]["kind"], "outcome_unknown");
    let states = || -> Vec<String> {
        let next = json!({ "consumer": "test", "types": ["tool_provider"], "limit": 100 });
        let all = rig.d.ok("events.next", next)["events"].as_array().unwrap().clone();
        all.iter().map(|event| event["state"].as_str().unwrap_or_default().to_string()).collect()
    };
    let mut seen = Vec::new();
    rig.d.eventually("both events", || {
        seen = states();
        seen.len() == 2
    });
    assert_eq!(seen, ["ready", "gone"]);
    rig.end();
}
