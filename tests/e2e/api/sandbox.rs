//! Confined processes: their report, their events, and what a restart keeps.

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use toold_test_support::rig::{Daemon, id};

/// A directory of a daemon's home, with a repository.
fn workspace(d: &Daemon) -> PathBuf {
    let dir = d.home().join("ws");
    fs::create_dir_all(dir.join(".git/hooks")).unwrap();
    fs::write(dir.join(".git/config"), "").unwrap();
    dir
}

/// A directory outside of every root that is not in `/tmp`, which is private. Removed with it.
struct Outside(PathBuf);

impl Outside {
    fn new(d: &Daemon) -> Outside {
        let dir = PathBuf::from("/var/tmp").join(d.root().file_name().unwrap());
        fs::create_dir(&dir).unwrap();
        Outside(dir.canonicalize().unwrap())
    }
}

impl Drop for Outside {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs shell text in a sandbox to its end.
#[track_caller]
fn run(d: &Daemon, script: &str, sandbox: Value, more: Value) -> Value {
    let mut params = json!({"cwd": d.home().join("ws"), "sandbox": sandbox});
    params.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let started = id(&d.sh_with(script, params));
    d.closed(&started)
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().unwrap().iter().map(|one| one.as_str().unwrap().to_string()).collect()
}

fn events(d: &Daemon, kind: &str) -> Vec<Value> {
    let found = d.ok("events.next", json!({"consumer": format!("see-{kind}"), "types": [kind]}));
    found["events"].as_array().unwrap().clone()
}

#[test]
fn a_confined_process_reports_its_profile_and_what_is_enforced() {
    let d = Daemon::start();
    let dir = workspace(&d);
    let p = run(&d, "echo x > made && echo y > .git/config", json!("workspace-write"), json!({}));
    assert_eq!(p["exit_code"], 2, "{p}");
    assert!(dir.join("made").exists());
    let sandbox = &p["sandbox"];
    assert_eq!((&sandbox["profile"], &sandbox["network"]), (&json!("workspace-write"), &json!("off")));
    assert_ne!(sandbox["kind"], "none");
    assert_eq!(sandbox["roots"], json!([dir]));
    let (protect, unprotected) = (strings(&sandbox["protect"]), strings(&sandbox["unprotected"]));
    let at = |name: &str| dir.join(name).display().to_string();
    assert_eq!(protect, [at(".git/config"), at(".git/hooks")]);
    for name in [".envrc", ".toold", ".git/commondir"] {
        assert!(unprotected.contains(&at(name)), "{unprotected:?}");
    }
    let enforced = strings(&sandbox["enforced"]);
    let missing: Vec<&str> =
        sandbox["not_enforced"].as_array().unwrap().iter().map(|one| one["what"].as_str().unwrap()).collect();
    for measure in ["fs_write", "fs_metadata", "protect", "hide", "tmp", "network", "unix_sockets", "signals", "setuid"]
    {
        let is_enforced = enforced.iter().any(|one| one == measure);
        assert!(is_enforced != missing.contains(&measure), "{measure}: {sandbox}");
    }
    assert!(enforced.iter().any(|one| one == "fs_write"), "{sandbox}");
    assert_eq!(sandbox["by"]["seccomp"], true);
    // The report is that of the record.
    let again = d.ok("inspect", json!({"id": p["id"]}));
    assert_eq!(again["sandbox"]["enforced"], sandbox["enforced"]);
}

#[test]
fn refused_calls_are_listed_counted_and_published_once_each() {
    let mut d = Daemon::start();
    workspace(&d);
    let outside = Outside::new(&d);
    let outside = &outside.0;
    std::os::unix::fs::symlink(outside, d.home().join("ws/link")).unwrap();
    let script = format!("for n in 1 2 3; do echo x > {0}/a; done; echo x > link/b; exit 7", outside.display());
    let p = run(&d, &script, json!("workspace-write"), json!({"name": "refused"}));
    let denials = &p["sandbox"]["denials"];
    assert_eq!((&p["exit_code"], &denials["count"]), (&json!(7), &json!(4)), "{p}");
    let list = denials["list"].as_array().unwrap();
    let path = |name: &str| json!(outside.join(name));
    assert_eq!(
        (&list[0]["path"], &list[0]["count"], &list[1]["path"]),
        (&path("a"), &json!(3), &path("b")),
        "{denials}"
    );
    assert_eq!(list[1]["via"], json!(d.home().join("ws/link/b")), "{denials}");
    assert_eq!(denials["observed"], json!(["fs_write", "network"]));
    assert_eq!(denials["unknown"], json!(["fs_read"]));
    d.restart();
    assert_eq!(&d.process(&id(&p))["sandbox"]["denials"], denials, "the report survives the daemon");
    let published = events(&d, "denial");
    let paths: Vec<&Value> = published.iter().map(|event| &event["path"]).collect();
    assert_eq!(paths, [&path("a"), &path("b")], "{published:?}");
    assert_eq!((&published[0]["id"], &published[0]["name"]), (&p["id"], &json!("refused")));
}

#[test]
fn at_most_twenty_refusals_of_a_process_are_events_and_64_are_listed() {
    let d = Daemon::start();
    workspace(&d);
    let outside = Outside::new(&d);
    let outside = &outside.0;
    let script = format!("for n in $(seq 100); do echo x > {}/$n; done", outside.display());
    let p = run(&d, &script, json!("workspace-write"), json!({}));
    let denials = &p["sandbox"]["denials"];
    assert_eq!((denials["list"].as_array().unwrap().len(), &denials["count"]), (64, &json!(100)), "{denials}");
    assert_eq!(events(&d, "denial").len(), 20);
}

#[test]
fn a_protected_path_that_the_job_made_is_an_event_and_is_never_made_for_it() {
    let d = Daemon::start();
    let dir = workspace(&d);
    let p = run(&d, "ls -a; echo x > .envrc", json!("workspace-write"), json!({}));
    assert_eq!(p["exit_code"], 0, "{p}");
    let made = events(&d, "protected_created");
    assert_eq!(made.iter().map(|event| &event["path"]).collect::<Vec<_>>(), [&json!(dir.join(".envrc"))]);
    assert!(!dir.join(".toold").exists() && !dir.join(".claude").exists());
    // Now it is there, and protected.
    let p = run(&d, "echo y > .envrc", json!("workspace-write"), json!({}));
    assert_ne!(p["exit_code"], 0);
    assert_eq!(fs::read_to_string(dir.join(".envrc")).unwrap(), "x\n");
    assert_eq!(events(&d, "protected_created").len(), 1, "one event for each that a job made");
}

#[test]
fn a_measure_that_is_required_and_cannot_be_enforced_starts_nothing() {
    let d = Daemon::start_with("[sandbox]\nmechanism = \"landlock\"\n", &[]);
    workspace(&d);
    let params = json!({"argv": ["/bin/touch", "ran"], "cwd": d.home().join("ws"),
        "sandbox": {"mode": "workspace-write", "require": ["fs_write", "hide"]}});
    let error = d.refused(-32008, "unavailable", "exec", params);
    assert_eq!(error["data"]["not_enforced"][0]["what"], "hide", "{error}");
    assert_eq!(d.ids(json!({})), Vec::<String>::new());
    assert!(!d.home().join("ws/ran").exists());
    // Without the requirement the gap is reported.
    let p = run(&d, "true", json!("workspace-write"), json!({}));
    assert_eq!((&p["sandbox"]["kind"], &p["exit_code"]), (&json!("landlock"), &json!(0)), "{p}");
}

#[test]
fn a_restart_and_a_queue_keep_the_sandbox_and_a_swapped_root_is_refused() {
    let d = Daemon::start();
    let dir = workspace(&d);
    let outside = Outside::new(&d);
    let secret = outside.0.join("secret");
    let script = format!("echo x > {} || echo confined", secret.display());
    let p = run(&d, &script, json!("workspace-write"), json!({"queue": "q"}));
    assert_eq!(d.text(&id(&p)).lines().last(), Some("confined"), "{p}");
    let again = id(&d.ok("restart", json!({"id": p["id"]})));
    let again = d.closed(&again);
    assert_eq!(again["sandbox"]["enforced"], p["sandbox"]["enforced"]);
    assert_eq!(d.text(&id(&again)).lines().last(), Some("confined"));
    fs::rename(&dir, d.home().join("moved")).unwrap();
    fs::create_dir(&dir).unwrap();
    let error = d.refused(-32005, "denied", "restart", json!({"id": p["id"]}));
    assert_eq!((&error["data"]["reason"], &error["data"]["path"]), (&json!("swapped"), &json!(dir)), "{error}");
    assert!(!secret.exists());
}

#[test]
fn the_private_tmp_is_shared_by_a_session_and_removed_with_it() {
    let d = Daemon::start();
    workspace(&d);
    let of = |key: &str| json!({"session_key": key});
    let first = run(&d, "echo one > /tmp/file", json!("workspace-write"), of("a"));
    if !strings(&first["sandbox"]["enforced"]).contains(&"tmp".to_string()) {
        eprintln!("skipped: no private /tmp here");
        return;
    }
    let cat = |key: &str| d.text(&id(&run(&d, "cat /tmp/file 2>/dev/null; echo end", json!("read-only"), of(key))));
    assert_eq!((cat("a"), cat("b")), ("one\nend\n".into(), "end\n".into()));
    assert!(!std::path::Path::new("/tmp/file").exists());
    d.ok("session.end", json!({"session_key": "a"}));
    assert_eq!(cat("a"), "end\n");
    d.ok("session.end", json!({"session_key": "a"}));
    d.ok("session.end", json!({"session_key": "b"}));
    assert_eq!(fs::read_dir(d.state().join("tmp")).unwrap().count(), 0);
}

#[test]
fn the_check_of_the_sandbox_finds_no_gap_and_daemon_info_has_it() {
    let d = Daemon::start();
    let probe = d.ok("sandbox.probe", json!({}));
    assert_eq!(probe["gaps"], json!([]), "{probe}");
    let tried: Vec<&Value> = probe["mechanisms"].as_array().unwrap().iter().map(|one| &one["mechanism"]).collect();
    assert_eq!(tried, ["auto", "namespaces", "landlock"]);
    let acts = probe["acts"].as_array().unwrap();
    for mechanism in probe["mechanisms"].as_array().unwrap().iter().filter(|one| one["available"] == true) {
        let of: Vec<&Value> = acts.iter().filter(|act| act["mechanism"] == mechanism["mechanism"]).collect();
        assert_eq!(of.len(), 12, "{probe}");
        assert!(of.iter().all(|act| act["got"] != "unknown"), "{probe}");
        assert!(of.iter().any(|act| act["act"] == "write" && act["got"] == "refused"), "{probe}");
    }
    assert_eq!(d.ok("daemon.info", json!({}))["sandbox"], probe);
    assert_eq!(d.ids(json!({})), Vec::<String>::new(), "a check is in no list");
    assert_eq!(events(&d, "started"), Vec::<Value>::new());
    assert_eq!(fs::read_dir(d.state().join("probe")).map_or(0, Iterator::count), 0);
}

#[test]
fn the_daemon_checks_the_sandbox_by_itself_after_its_start() {
    let d = Daemon::start();
    d.eventually("a check", || d.ok("daemon.info", json!({}))["sandbox"].is_object());
    assert_eq!(d.ok("daemon.info", json!({}))["sandbox"]["gaps"], json!([]));
}
