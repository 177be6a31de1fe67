//! Attacks from inside: each works without a sandbox, and is refused in it, or reported as not enforced.

use super::sys::{ACTS, ALWAYS, results};
use super::world::{User, World};
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::symlink;
use toold_test_support::rig::{id, skip_unless};
use toold_test_support::sys::is_root;

fn names(list: &Value, key: Option<&str>) -> Vec<String> {
    let name = |item: &Value| key.map_or(item, |key| &item[key]).as_str().unwrap().to_owned();
    list.as_array().into_iter().flatten().map(name).collect()
}

/// Without a sandbox every act works: those that fail here prove nothing below.
fn all_work_without(world: &World, user: User) {
    let (_, output) = world.run(&world.acts(), &json!(null));
    let done = results(&output);
    assert!(output.contains("ACTS END"), "{output}");
    for act in ACTS {
        let possible = !act.needs_root || (user == User::Own && is_root());
        // The kernel here may be without it.
        let is_missing = ["vsock", "io_uring"].contains(&act.name) && !done[act.name].is_empty();
        if possible && !is_missing {
            assert_eq!(done[act.name], "", "{} works without a sandbox", act.name);
        }
    }
    // What the acts changed.
    for name in ["append", "truncate", "unlink", "meta"] {
        fs::write(world.at("outside").join(name), "bytes").unwrap();
    }
}

fn attack(user: User, mechanism: &str, complete: bool) {
    let world = World::new(user, mechanism);
    all_work_without(&world, user);
    for profile in ["workspace-write", "read-only"] {
        let case = format!("{user:?}, {mechanism}, {profile}");
        let before = world.untouchable();
        let (process, output) = world.run(&world.acts(), &json!(profile));
        assert!(output.contains("ACTS END"), "{case}: {process} {output}");
        let done = results(&output);
        let sandbox = &process["sandbox"];
        let enforced = names(&sandbox["enforced"], None);
        let lacking = names(&sandbox["not_enforced"], Some("what"));
        assert!(!complete || lacking.is_empty(), "{case}: {sandbox}");
        let mut broken = Vec::new();
        for act in ACTS {
            let is_enforced = act.measure == ALWAYS || enforced.iter().any(|name| name == act.measure);
            let is_reported = lacking.iter().any(|name| name == act.measure);
            if is_enforced && done[act.name].is_empty() {
                broken.push(format!("{} ({}) worked", act.name, act.measure));
            }
            if !is_enforced && !is_reported {
                broken.push(format!("{} is neither enforced nor reported", act.measure));
            }
        }
        assert!(broken.is_empty(), "{case}: {broken:#?}\n{sandbox}\n{output}");
        if complete {
            assert_eq!(world.untouchable(), before, "{case}");
        }
    }
}

#[test]
fn every_attack_of_a_root_daemons_job_is_refused() {
    if skip_unless(is_root(), "not root") {
        return;
    }
    attack(User::Own, "auto", true);
}

#[test]
fn every_attack_of_an_ordinary_users_job_is_refused() {
    if skip_unless(is_root(), "another user needs root") {
        return;
    }
    attack(User::Other, "auto", true);
}

/// Without namespaces less is enforced, and what is not is reported.
#[test]
fn without_user_namespaces_an_attack_is_refused_or_reported() {
    if skip_unless(is_root(), "another user needs root") {
        return;
    }
    attack(User::Own, "landlock", false);
    attack(User::Other, "landlock", false);
}

#[test]
fn a_root_or_directory_that_was_swapped_after_the_judgement_is_refused() {
    let world = World::new(User::Own, "auto");
    let work = world.at("work");
    // Judged when the call comes, started when its turn comes.
    world.daemon.ok("queues.set", json!({ "name": "q", "paused": true }));
    let mut call = world.job(&json!(["/bin/sh", "-c", "echo x > swapped"]), &json!("workspace-write"));
    call["queue"] = json!("q");
    let waits = id(&world.daemon.ok("exec", call));
    fs::rename(&work, world.at("moved")).unwrap();
    symlink(world.at("outside"), &work).unwrap();
    world.daemon.ok("queues.set", json!({ "name": "q", "paused": false }));
    let ended = world.daemon.closed(&waits);
    assert_eq!(ended["reason"], "failed_start", "{ended}");
    assert!(!world.at("outside/swapped").exists() && !world.at("moved/swapped").exists());
}

#[test]
fn all_of_it_is_inherited_and_survives_kill_9_of_the_daemon() {
    let mut world = World::new(User::Own, "auto");
    // It leaves its session, loses its parent, and waits.
    let script = format!(
        "setsid sh -c 'while ! [ -e {go} ]; do sleep 0.02; done; echo late > {out}; echo $? > {done}' </dev/null & exit 0",
        go = world.at("work/go").display(),
        out = world.at("outside/late").display(),
        done = world.at("work/done").display()
    );
    let started = world.daemon.ok("exec", world.job(&json!(["/bin/sh", "-c", script]), &json!("workspace-write")));
    world.daemon.exited(&id(&started));
    world.daemon.kill9();
    fs::write(world.at("work/go"), "").unwrap();
    world.daemon.spawn();
    let done = world.at("work/done");
    world.daemon.eventually("it tried", || fs::read_to_string(&done).is_ok_and(|text| !text.is_empty()));
    assert_ne!(fs::read_to_string(&done).unwrap().trim(), "0");
    assert!(!world.at("outside/late").exists());
}
