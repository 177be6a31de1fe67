//! Signals between jobs: of one session they get through, of others they do not.

use super::world::{User, World};
use serde_json::{Value, json};
use toold_test_support::rig::{id, skip_unless};
use toold_test_support::sys::is_root;

const WAITS: &str = "trap 'echo got it; exit 3' USR1; echo ready; while :; do sleep 0.02; done";

/// Starts a job of a session in a sandbox.
fn start(world: &World, session: Option<&str>, network: &str, script: &str) -> Value {
    let sandbox = json!({ "profile": "workspace-write", "network": network });
    let mut call = world.job(&json!(["/bin/sh", "-c", script]), &sandbox);
    if let Some(session) = session {
        call["session_key"] = json!(session);
    }
    world.daemon.ok("exec", call)
}

/// Runs a script in a job of a session, and returns its exit code.
fn run(world: &World, session: Option<&str>, script: &str) -> (i64, String) {
    let process = id(&start(world, session, "loopback", script));
    let ended = world.daemon.closed(&process);
    (ended["exit_code"].as_i64().unwrap_or(-1), world.daemon.text(&process))
}

fn siblings(user: User) {
    let mut world = World::new(user, "auto");
    let target = start(&world, Some("one"), "off", WAITS);
    let (job, pid) = (id(&target), target["pid"].as_i64().unwrap());
    world.daemon.printed(&job, "ready");
    let enforced = target["sandbox"]["enforced"].to_string();
    if skip_unless(enforced.contains("signals") && enforced.contains("tmp"), "signals are not enforced here") {
        return;
    }
    // Of another session, of none, and out of the sandbox: refused, also the question whether it is there.
    for session in [Some("two"), None] {
        for signal in ["0", "USR1", "KILL"] {
            let script = format!("exec 2>&1; kill -{signal} {pid}; kill -{signal} -{pid}");
            let (code, output) = run(&world, session, &script);
            let refused = output.matches("not permitted").count();
            assert!(code != 0 && refused == 2, "{user:?}, {session:?}, {signal}: {output}");
        }
    }
    let (code, output) = run(&world, Some("one"), "kill -0 $VICTIM 2>&1 || kill -KILL $VICTIM 2>&1");
    assert!(code != 0 && output.contains("not permitted"), "{user:?}: {output}");
    let daemon = world.daemon.pid();
    let shim = format!("kill -0 {daemon} || kill -0 $(awk '/^PPid/ {{ print $2 }}' /proc/{pid}/status)");
    assert_ne!(run(&world, Some("one"), &shim).0, 0, "{user:?}: neither the daemon nor a shim");
    assert_eq!(world.daemon.process(&job)["status"], "running");
    // Of the same session: with another network, and after the daemon was killed and started again.
    assert_eq!(run(&world, Some("one"), &format!("kill -0 {pid}")), (0, String::new()), "{user:?}");
    world.daemon.kill9();
    world.daemon.spawn();
    assert_eq!(run(&world, Some("one"), &format!("kill -USR1 {pid}")), (0, String::new()), "{user:?}");
    let ended = world.daemon.closed(&job);
    assert_eq!((&ended["exit_code"], world.daemon.text(&job).contains("got it")), (&json!(3), true), "{ended}");
    // A whole group, and by a descriptor.
    let target = start(&world, Some("one"), "off", "sleep 1000 & echo ready; wait");
    world.daemon.printed(&id(&target), "ready");
    let group = run(&world, Some("one"), &format!("kill -TERM -{}", target["pid"]));
    assert_eq!(group, (0, String::new()), "{user:?}");
    assert_eq!(world.daemon.closed(&id(&target))["signal"], "SIGTERM");
    let target = start(&world, Some("one"), "off", WAITS);
    world.daemon.printed(&id(&target), "ready");
    let argv = json!([world.at("bin/act"), "--exact", "sandbox::sys::signals_inside_a_job", "--ignored"]);
    let mut call = world.job(&argv, &json!("workspace-write"));
    call["session_key"] = json!("one");
    call["env"]["TARGET"] = json!(target["pid"].to_string());
    let sent = id(&world.daemon.ok("exec", call));
    assert_eq!(world.daemon.closed(&sent)["exit_code"], 0, "{user:?}: {}", world.daemon.text(&sent));
    assert_eq!(world.daemon.closed(&id(&target))["exit_code"], 3, "{user:?}");
}

#[test]
fn jobs_of_one_session_signal_each_other_and_no_others() {
    siblings(User::Own);
}

#[test]
fn jobs_of_an_ordinary_users_session_signal_each_other_and_no_others() {
    if skip_unless(is_root(), "another user needs root") {
        return;
    }
    siblings(User::Other);
}

/// The sender of a signal inside one job is the program, as everywhere.
#[test]
fn inside_a_job_the_kernel_itself_sends_signals() {
    let world = World::new(User::Own, "auto");
    let argv = json!([world.at("bin/act"), "--exact", "sandbox::sys::signals_itself_inside_a_job", "--ignored"]);
    let mut call = world.job(&argv, &json!("workspace-write"));
    call["session_key"] = json!("one");
    let process = id(&world.daemon.ok("exec", call));
    assert_eq!(world.daemon.closed(&process)["exit_code"], 0, "{}", world.daemon.text(&process));
}

/// Landlock alone does not know sessions: each job is a scope of its own.
#[test]
fn with_landlock_alone_no_job_signals_another() {
    let world = World::new(User::Own, "landlock");
    let target = start(&world, Some("one"), "off", WAITS);
    world.daemon.printed(&id(&target), "ready");
    if skip_unless(target["sandbox"]["enforced"].to_string().contains("signals"), "no scopes here") {
        return;
    }
    for session in ["one", "two"] {
        let process = id(&start(&world, Some(session), "off", &format!("kill -USR1 {}", target["pid"])));
        assert_ne!(world.daemon.closed(&process)["exit_code"], 0, "{session}");
    }
    assert_eq!(world.daemon.process(&id(&target))["status"], "running");
}
