//! `policy.check` and `policy.suggest` beside what a confined process gets: they report what `exec` does.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use toold_test_support::rig::{Daemon, id};

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

/// Runs a call to its end.
#[track_caller]
fn run(d: &Daemon, call: Value) -> Value {
    d.closed(&id(&d.ok("exec", call)))
}

#[test]
fn a_check_reports_what_is_enforced_and_what_is_not_as_exec_does() {
    for mechanism in ["auto", "namespaces", "landlock"] {
        let d = Daemon::start_with(&format!("[sandbox]\nmechanism = \"{mechanism}\"\n"), &[]);
        fs::create_dir_all(d.home().join("ws/.git/hooks")).unwrap();
        for sandbox in [json!("read-only"), json!("workspace-write"), json!({ "network": "loopback" })] {
            let call = json!({ "argv": ["true"], "cwd": d.home().join("ws"), "sandbox": sandbox });
            let checked = d.ok("policy.check", call.clone());
            let ran = run(&d, call)["sandbox"].clone();
            // It was always empty.
            assert_eq!(checked["not_enforced"], ran["not_enforced"], "{mechanism}: {checked}");
            let checked_sandbox = &checked["sandbox"];
            let list = |from: &Value, key: &str| if from[key].is_null() { json!([]) } else { from[key].clone() };
            for key in ["profile", "roots", "protect", "unprotected", "network", "enforced", "by"] {
                assert_eq!(list(checked_sandbox, key), list(&ran, key), "{mechanism}, {key}: {checked}");
            }
            if mechanism == "landlock" {
                let gaps = checked["not_enforced"].as_array().unwrap();
                assert!(gaps.iter().any(|gap| gap["what"] == "hide" && gap["why"] != ""), "{checked}");
            }
        }
        let full = d.ok("policy.check", json!({ "argv": ["true"] }));
        assert_eq!((&full["not_enforced"], &full["sandbox"]["mode"]), (&json!([]), &json!("full")));
    }
}

#[test]
fn a_check_reports_what_a_profile_requires_in_vain() {
    let config =
        "[sandbox]\nmechanism = \"landlock\"\n[profile.strict]\nmode = \"workspace-write\"\nrequire = [\"hide\"]\n";
    let d = Daemon::start_with(config, &[]);
    let call = json!({ "argv": ["true"], "cwd": d.home(), "sandbox": "strict" });
    d.refused(-32008, "unavailable", "exec", call.clone());
    let checked = d.ok("policy.check", call);
    assert_eq!(checked["sandbox"]["require"], json!(["hide"]), "{checked}");
    assert!(checked["not_enforced"].as_array().unwrap().iter().any(|gap| gap["what"] == "hide"), "{checked}");
    let shown = d.ctl(&["policy", "check", "--sandbox", "strict", "--", "true"]);
    assert!(shown.stdout.contains("gap      the profile requires hide: it would not start\n"), "{shown:?}");
    assert_eq!(d.ids(json!({})), [""; 0], "nothing ran");
}

/// Pastes what `toolctl policy suggest` prints, and starts the daemon again.
fn paste(d: &mut Daemon, suggested: &str) {
    let (profile, rules) = suggested.split_once("\n# for a file in rules/:\n").expect("both parts");
    let dir = d.root().join("config/toold");
    let config = fs::read_to_string(dir.join("config.toml")).unwrap_or_default();
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("config.toml"), format!("{config}\n{profile}\n")).unwrap();
    fs::create_dir_all(dir.join("rules")).unwrap();
    fs::write(dir.join("rules/50-suggested.toml"), rules).unwrap();
    fs::set_permissions(dir.join("rules/50-suggested.toml"), fs::Permissions::from_mode(0o644)).unwrap();
    d.restart();
}

#[test]
fn a_suggestion_that_is_pasted_lets_the_same_job_write_without_a_question() {
    let mut d = Daemon::start_with("[policy]\nunmatched = \"ask\"\n", &[]);
    let outside = Outside::new(&d);
    let file = outside.0.join("made");
    let session = json!({ "session_key": "s", "cwd": d.home(), "sandbox": "workspace-write" });
    d.ok("session.configure", session);
    let call = |sandbox: Value| json!({ "argv": ["touch", file], "session_key": "s", "sandbox": sandbox, "approval_timeout_ms": 600_000 });
    let asked = d.ok("exec", call(json!("workspace-write")));
    assert_eq!(asked["status"], "pending", "{asked}");
    let approval = d.ok("approvals.list", json!({}))["approvals"][0].clone();
    d.ok("approvals.decide", json!({ "id": approval["id"], "decision": "approve", "digest": approval["digest"] }));
    let refused = d.closed(&id(&asked));
    assert_eq!((&refused["exit_code"], &refused["sandbox"]["denials"]["count"]), (&json!(1), &json!(1)), "{refused}");
    let found = d.ok("policy.suggest", json!({ "id": id(&asked) }));
    assert_eq!((&found["roots"], &found["network"]), (&json!([outside.0]), &Value::Null), "{found}");
    let shown = d.ctl(&["policy", "suggest", &id(&asked)]);
    assert_eq!(shown.code, 0, "{shown:?}");
    let rules = d.root().join("config/toold/rules");
    assert!(!rules.exists() && !file.exists(), "a suggestion writes nothing");

    paste(&mut d, &shown.stdout);
    assert_eq!(d.ok("policy.check", call(json!("suggested")))["verdict"], "allow");
    let done = run(&d, call(json!("suggested")));
    assert_eq!((&done["exit_code"], &done["approval"]), (&json!(0), &Value::Null), "{done}");
    assert!(file.exists());
    let mut other = call(json!("suggested"));
    (other["argv"][1], other["approval_timeout_ms"]) = (json!(outside.0.join("other")), json!(0));
    d.refused(-32005, "denied", "exec", other);
}

#[test]
fn a_suggestion_that_is_pasted_opens_the_network_that_was_refused() {
    let mut d = Daemon::start();
    let connect = |sandbox: &str| json!({ "argv": ["nc", "-z", "127.0.0.1", "7373"], "session_key": "s", "cwd": d.home(), "sandbox": sandbox });
    let refused = run(&d, connect("read-only"));
    assert_ne!(refused["exit_code"], 0);
    assert_eq!(refused["sandbox"]["denials"]["list"][0]["address"], "127.0.0.1:7373", "{refused}");
    let found = d.ok("policy.suggest", json!({ "id": id(&refused) }));
    assert_eq!((&found["roots"], &found["network"]), (&json!([]), &json!("loopback")), "{found}");
    assert!(found["profile"].as_str().unwrap().contains("mode = \"read-only\""), "no wider than needed: {found}");
    let call = connect("suggested");
    let shown = d.ctl(&["policy", "suggest", &id(&refused)]).stdout;
    paste(&mut d, &shown);
    let server = json!({ "argv": ["nc", "-l", "127.0.0.1", "7373"], "session_key": "s", "cwd": d.home(),
        "sandbox": "suggested", "ready": { "port": 7373 } });
    d.ok("exec", server);
    let done = run(&d, call);
    assert_eq!((&done["exit_code"], &done["sandbox"]["denials"]["count"]), (&json!(0), &json!(0)), "{done}");
}
