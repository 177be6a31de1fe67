//! `restart` of `exec`: a policy starts a process again, each run as a process of its own, until it gives up or a client ends it.

use serde_json::{Value, json};
use std::fs;
use toold_test_support::conn::Conn;
use toold_test_support::procfs;
use toold_test_support::rig::{Daemon, id};
use toold_test_support::sys::copy_program;

/// A script that appends a line to a file at each run, then does the rest.
fn script(d: &Daemon, rest: &str) -> String {
    format!("echo ran >> {}; {rest}", d.root().join("runs").display())
}

fn runs(d: &Daemon) -> usize {
    fs::read_to_string(d.root().join("runs")).unwrap_or_default().lines().count()
}

fn start(d: &Daemon, rest: &str, restart: Value) -> String {
    id(&d.sh_with(&script(d, rest), json!({ "name": "web", "restart": restart })))
}

/// All runs of the name, oldest first.
fn chain(d: &Daemon) -> Vec<Value> {
    let mut all = d.ok("list", json!({ "name": "web" }))["processes"].as_array().unwrap().clone();
    all.reverse();
    all
}

/// The newest run.
fn newest(d: &Daemon) -> Value {
    chain(d).pop().unwrap()
}

fn events(d: &Daemon, kind: &str) -> Vec<Value> {
    let call = json!({ "consumer": format!("of-{kind}"), "types": [kind], "limit": 100 });
    d.ok("events.next", call)["events"].as_array().unwrap().clone()
}

#[track_caller]
fn is_chain(all: &[Value]) {
    for pair in all.windows(2) {
        assert_eq!(pair[1]["restart_of"], pair[0]["id"], "{pair:?}");
        assert_eq!((&pair[1]["name"], &pair[1]["argv"]), (&pair[0]["name"], &pair[0]["argv"]));
    }
    assert_eq!(all[0]["restart_of"], json!(null));
}

#[test]
fn a_crash_loop_is_restarted_as_processes_of_their_own_and_ends_in_one_event() {
    let d = Daemon::start();
    let policy = json!({ "policy": "on-failure", "max": 3, "backoff_ms": 5, "max_backoff_ms": 20 });
    let first = start(&d, "exit 7", policy);
    d.eventually("it gave up", || !events(&d, "restart_gave_up").is_empty());
    let all = chain(&d);
    assert_eq!((all.len(), runs(&d)), (4, 4), "{all:?}");
    assert_eq!(all[0]["id"], json!(first));
    is_chain(&all);
    assert!(all.iter().all(|p| p["exit_code"] == 7 && p["status"] == "exited"), "{all:?}");
    let gave_up = events(&d, "restart_gave_up");
    let [event] = &gave_up[..] else { panic!("one event: {gave_up:?}") };
    let facts = (&event["id"], &event["name"], &event["restarts"], &event["exit_code"]);
    assert_eq!(facts, (&all[3]["id"], &json!("web"), &json!(3), &json!(7)));
    assert_eq!(events(&d, "exited").len(), 4);
    // Its shims are gone, and nothing follows.
    d.eventually("nothing is left", || {
        d.ok("forget", json!({ "older_than_ms": 0 }))["skipped"] == json!([]) && chain_is_empty(&d)
    });
    assert_eq!(runs(&d), 4);
}

fn chain_is_empty(d: &Daemon) -> bool {
    d.ids(json!({ "name": "web" })).is_empty()
}

#[test]
fn each_policy_applies_to_its_ends() {
    let d = Daemon::start();
    start(&d, "exit 0", json!({ "policy": "on-failure", "backoff_ms": 1 }));
    d.eventually("its shim is gone: it is not restarted", || {
        d.ok("forget", json!({ "older_than_ms": 0 }))["forgotten"] != json!([])
    });
    assert_eq!(runs(&d), 1);
    start(&d, "exit 0", json!({ "policy": "always", "max": 2, "backoff_ms": 1 }));
    d.eventually("it gave up", || !events(&d, "restart_gave_up").is_empty());
    assert_eq!(runs(&d), 1 + 3);
    // A signal that is not a kill of a client is a failure.
    let crashed = start(&d, "exec sleep 1000", json!({ "policy": "on-failure", "backoff_ms": 1 }));
    d.ok("signal", json!({ "id": crashed, "signal": "SIGSEGV" }));
    d.eventually("it runs again", || newest(&d)["restart_of"] == json!(crashed) && newest(&d)["status"] == "running");
}

#[test]
fn the_waiting_time_is_shown_as_pending_and_a_kill_ends_the_policy() {
    for by in ["name", "old id", "session"] {
        let d = Daemon::start();
        let policy = json!({ "policy": "always", "backoff_ms": 3_600_000, "max_backoff_ms": 3_600_000 });
        let first = d.sh_with(&script(&d, "exit 3"), json!({ "name": "web", "restart": policy, "session_key": "s" }));
        d.eventually("the next run waits", || newest(&d)["status"] == "pending");
        let next = newest(&d);
        assert_eq!(next["restart_of"], first["id"]);
        assert!(next["pending_on"]["restart"]["at"].as_str().is_some(), "{next}");
        let call = match by {
            "name" => ("kill", json!({ "id": "web" })),
            "old id" => ("kill", json!({ "id": first["id"] })),
            _ => ("session.end", json!({ "session_key": "s" })),
        };
        d.ok(call.0, call.1);
        let ended = d.process(&id(&next));
        let facts = (&ended["status"], &ended["exit_code"], &ended["reason"]);
        assert_eq!(facts, (&json!("exited"), &json!(null), &json!("killed")), "{by}: {ended}");
        d.eventually("nothing is left", || {
            d.ok("forget", json!({ "older_than_ms": 0 }));
            chain_is_empty(&d)
        });
        assert_eq!(runs(&d), 1, "{by}");
    }
}

#[test]
fn a_kill_of_the_running_program_ends_the_policy() {
    for (method, params) in [("kill", json!({ "id": "web" })), ("session.end", json!({ "session_key": "s" }))] {
        let mut d = Daemon::start();
        let policy = json!({ "policy": "always", "backoff_ms": 1 });
        // It exits with a code of its own when it is killed, and is not started again.
        let rest = "trap 'exit 5' TERM; echo up; while :; do sleep 0.01; done";
        let more = json!({ "name": "web", "restart": policy, "session_key": "s" });
        let proc = id(&d.sh_with(&script(&d, rest), more));
        d.printed(&proc, "up");
        d.ok(method, params);
        d.restart();
        d.eventually("nothing is left", || {
            d.ok("forget", json!({ "older_than_ms": 0 }));
            chain_is_empty(&d)
        });
        assert_eq!(runs(&d), 1, "{method}");
    }
}

#[test]
fn the_verb_keeps_the_policy_and_starts_one_that_waits_at_once() {
    let d = Daemon::start();
    let policy = json!({ "policy": "on-failure", "backoff_ms": 5, "max": 2 });
    let first = id(&d.sh_with(
        &script(&d, "echo $MARK; exec sleep 1000"),
        json!({ "name": "web", "restart": policy, "env": { "MARK": "x" } }),
    ));
    let second = id(&d.ok("restart", json!({ "id": "web" })));
    d.ok("signal", json!({ "id": second, "signal": "SIGKILL" }));
    d.eventually("the policy restarts it", || {
        newest(&d)["restart_of"] == json!(second) && newest(&d)["status"] == "running"
    });
    d.printed(&id(&newest(&d)), "x");
    is_chain(&chain(&d));
    assert_eq!(d.process(&first)["reason"], "killed");
    // With a long delay, the verb does not wait for it.
    d.ok("kill", json!({ "id": "web" }));
    let slow = json!({ "policy": "always", "backoff_ms": 3_600_000, "max_backoff_ms": 3_600_000 });
    let more = json!({ "name": "slow", "restart": slow, "env": { "MARK": "y" } });
    let once = d.root().join("once");
    let third = id(&d.sh_with(&format!("echo $MARK; [ -e {0} ] && exec sleep 1000; touch {0}", once.display()), more));
    let waiting = || d.ok("list", json!({ "name": "slow" }))["processes"][0].clone();
    d.eventually("it waits", || waiting()["status"] == "pending");
    assert_eq!(waiting()["restart_of"], json!(third));
    let now = d.ok("restart", json!({ "id": "slow" }));
    assert_eq!(now["status"], "running", "{now}");
    d.printed(&id(&now), "y");
}

#[test]
fn values_pass_from_run_to_run_also_over_kill_9_of_the_daemon_and_an_exit_without_one() {
    let mut d = Daemon::start();
    let gate = d.gate("gate");
    let policy = json!({ "policy": "always", "backoff_ms": 1 });
    let rest = format!("echo mark $MARK; read x < {}; exit 1", d.root().join("gate").display());
    let first =
        id(&d.sh_with(&script(&d, &rest), json!({ "name": "web", "restart": policy, "env": { "MARK": "kept" } })));
    d.printed(&first, "mark kept");
    let program = d.program(&first);
    d.kill9();
    gate.open();
    assert!(program.dies_within(toold_test_support::rig::DEADLINE));
    d.spawn();
    d.eventually("it runs again", || runs(&d) == 2 && newest(&d)["status"] == "running");
    let second = newest(&d);
    assert_eq!((&second["restart_of"], &d.process(&first)["exit_code"]), (&json!(first), &json!(1)));
    d.printed(&id(&second), "mark kept");
    d.restart();
    assert_eq!(d.process(&id(&second))["status"], "running");
    assert_eq!(chain(&d).len(), 2);
}

#[test]
fn the_rest_of_the_tree_is_gone_before_the_next_run() {
    let d = Daemon::start();
    let lock = d.root().join("lock");
    let rest = format!(
        "exec 9> {}; flock -n 9 || exit 9; setsid sleep 1000 & [ $(wc -l < {}) = 1 ] && exit 1; exec sleep 1000",
        lock.display(),
        d.root().join("runs").display()
    );
    start(&d, &rest, json!({ "policy": "on-failure", "backoff_ms": 1, "max": 1 }));
    d.eventually("the second run has the lock", || newest(&d)["status"] == "running" && runs(&d) == 2);
    assert_eq!(chain(&d).len(), 2);
}

#[test]
fn a_program_that_is_gone_is_tried_again_and_then_given_up() {
    let d = Daemon::start();
    let program = d.root().join("program");
    copy_program(std::path::Path::new("/bin/sleep"), &program);
    let policy = json!({ "policy": "always", "max": 2, "backoff_ms": 5 });
    let env = json!({ "MARK": "x" });
    let first = id(&d.ok("exec", json!({ "argv": [program, "1000"], "name": "web", "restart": policy, "env": env })));
    fs::remove_file(&program).unwrap();
    d.ok("signal", json!({ "id": first, "signal": "SIGKILL" }));
    d.eventually("it gave up", || !events(&d, "restart_gave_up").is_empty());
    let all = chain(&d);
    is_chain(&all);
    let reasons: Vec<&str> = all.iter().map(|p| p["reason"].as_str().unwrap()).collect();
    assert_eq!(reasons, ["signaled", "failed_start", "failed_start"]);
    assert_eq!(events(&d, "restart_gave_up").len(), 1);
    // The first start of all has its caller, who knows.
    d.refused(-32006, "spawn_failed", "exec", json!({ "argv": [program], "restart": "always" }));
    assert_eq!(d.ids(json!({ "status": "pending" })), [""; 0]);
}

#[test]
fn a_killed_shim_ends_the_policy_with_an_event() {
    let d = Daemon::start();
    let proc = start(&d, "exec sleep 1000", json!("always"));
    let shim = d.ok("inspect", json!({ "id": proc }))["shim_pid"].as_i64().unwrap() as i32;
    assert_eq!(procfs::name(shim), "toold-shim");
    toold_test_support::sys::Pidfd::open(shim).unwrap().signal(libc::SIGKILL);
    d.eventually("it gave up", || !events(&d, "restart_gave_up").is_empty());
    assert_eq!(d.process(&proc)["status"], "lost");
    assert_eq!((chain(&d).len(), runs(&d)), (1, 1));
}

/// The broken code stopped before it had let the shim go that kept the environment for the restart.
#[test]
fn a_shutdown_that_kills_leaves_no_shim_of_a_run_before() {
    let mut d = Daemon::prepare("", &[]);
    let hooks = d.root().join("hooks");
    fs::create_dir(&hooks).unwrap();
    d.env.push(("TOOLD_HOOKS".into(), hooks.display().to_string()));
    d.spawn();
    let held = hooks.join("restart.started");
    fs::write(&held, "").unwrap();
    let first = start(&d, "exec sleep 1000", json!({ "policy": "always", "backoff_ms": 1 }));
    let shim = d.ok("inspect", json!({ "id": first }))["shim_pid"].as_i64().unwrap() as i32;
    let shim = toold_test_support::sys::Pidfd::open(shim).unwrap();
    d.ok("signal", json!({ "id": first, "signal": "SIGKILL" }));
    d.eventually("the next run has started", || hooks.join("restart.started.hit").exists());
    let program = d.program(&id(&newest(&d)));
    let mut conn = d.conn();
    conn.request("daemon.shutdown", json!({ "kill": true }));
    assert!(program.dies_within(toold_test_support::rig::DEADLINE));
    fs::remove_file(&held).unwrap();
    assert_eq!(d.ended(), 0);
    assert!(shim.dies_within(toold_test_support::rig::DEADLINE));
}

#[test]
fn wrong_policies_are_refused_and_start_nothing() {
    let d = Daemon::start();
    let exec = |restart: Value| json!({ "argv": ["/bin/true"], "restart": restart });
    d.refused_param("restart", "exec", exec(json!("sometimes")));
    d.refused_param("restart", "exec", exec(json!(true)));
    d.refused_param("restart.tries", "exec", exec(json!({ "policy": "always", "tries": 3 })));
    d.refused_param("restart.policy", "exec", exec(json!({ "max": 3 })));
    d.refused_param("restart.max", "exec", exec(json!({ "policy": "always", "max": -1 })));
    d.refused_param("restart.backoff_ms", "exec", exec(json!({ "policy": "always", "backoff_ms": 0 })));
    let short = json!({ "policy": "always", "backoff_ms": 10, "max_backoff_ms": 9 });
    d.refused_param("restart.max_backoff_ms", "exec", exec(short));
    assert_eq!(d.ids(json!({})), [""; 0]);
    let mut conn: Conn = d.conn();
    assert!(conn.call("exec", exec(json!("no"))).is_ok());
}
