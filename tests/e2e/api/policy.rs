//! `policy.check`, `policy.reload` and `policy.suggest`: rules in the config directory, and the verdict of `exec`.

use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use toold_test_support::rig::{Daemon, id};

const RULES: &str = r#"
[[rule]]
prefix    = ["git", ["status", "diff"]]
verdict   = "allow"
unless    = ["--output"]
reason    = "reads only"
match     = ["git status -s"]
not_match = ["git push", "git diff --output=/x"]

[[rule]]
prefix  = ["git", "push"]
verdict = "ask"
reason  = "changes the remote"

[[rule]]
prefix  = ["curl"]
verdict = "deny"
reason  = "no downloads"
"#;

fn rule_path(d: &Daemon, name: &str) -> PathBuf {
    d.root().join("config/toold/rules").join(name)
}

/// Writes a rule file that only its owner can write.
pub fn write_rules(d: &Daemon, name: &str, text: &str) {
    let path = rule_path(d, name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
}

pub fn with_rules(config: &str, rules: &str) -> Daemon {
    let mut d = Daemon::prepare(config, &[]);
    write_rules(&d, "10-git.toml", rules);
    d.spawn();
    d
}

fn check(d: &Daemon, command: &str) -> Value {
    d.ok("policy.check", json!({ "command": command, "shell": "/bin/sh", "login": false }))
}

fn verdict(d: &Daemon, command: &str) -> Value {
    check(d, command)["verdict"].clone()
}

fn events(d: &Daemon, kind: &str) -> Vec<Value> {
    let all = d.ok("events.next", json!({ "consumer": kind, "types": [kind], "limit": 100 }));
    all["events"].as_array().unwrap().clone()
}

#[test]
fn a_check_reports_the_verdict_with_rules_commands_and_reasons() {
    let d = with_rules("", RULES);
    let found = check(&d, "git status && git push origin");
    assert_eq!(
        found,
        json!({
            "verdict": "ask",
            "plain": true,
            "commands": [["git", "status"], ["git", "push", "origin"]],
            "matches": found["matches"],
            "sandbox": { "profile": "full", "mode": "full", "network": "full", "roots": [] },
            "not_enforced": [],
            "reasons": found["reasons"],
        })
    );
    assert!(found["matches"].as_array().unwrap().contains(&json!({
        "file": "10-git.toml", "index": 1, "prefix": ["git", "push"], "verdict": "ask", "reason": "changes the remote"
    })));
    assert_eq!(found["reasons"][0], json!({ "label": "rule", "text": "changes the remote" }));
    let opaque = check(&d, "echo $(curl example.org)");
    assert_eq!(
        (&opaque["verdict"], &opaque["plain"], &opaque["commands"]),
        (&json!("deny"), &json!(false), &json!([]))
    );
    assert_eq!(verdict(&d, "ls"), "allow");
    // It runs nothing, and records nothing.
    assert_eq!(d.ids(json!({})), Vec::<String>::new());
    assert_eq!(events(&d, "denied"), Vec::<Value>::new());
    // What `exec` refuses is refused here too.
    d.refused_param("cwd", "policy.check", json!({ "command": "ls", "cwd": "/no/such/dir" }));
}

#[test]
fn a_denied_exec_starts_nothing_and_leaves_one_event() {
    let d = with_rules("", RULES);
    let marker = d.root().join("ran");
    let script = format!("touch {}; curl example.org", marker.display());
    let call = json!({ "argv": ["/bin/sh", "-c", script], "session_key": "s", "task_id": "t" });
    let error = d.refused(-32005, "denied", "exec", call);
    assert_eq!(error["data"]["reason"], "no downloads");
    assert_eq!(error["data"]["rule"], json!({ "file": "10-git.toml", "index": 2 }));
    assert!(!marker.exists());
    assert_eq!(d.ids(json!({})), Vec::<String>::new());
    let denied = events(&d, "denied");
    assert_eq!(denied.len(), 1, "{denied:?}");
    let event = &denied[0];
    assert_eq!((&event["id"], &event["session_key"], &event["task_id"]), (&Value::Null, &json!("s"), &json!("t")));
    assert_eq!((&event["reason"], &event["rule"]["index"]), (&json!("no downloads"), &json!(2)));
    assert!(event["command"].as_str().unwrap().contains("curl example.org"), "{event}");
    // What is not matched runs as before.
    assert_eq!(d.run("echo fine")["exit_code"], 0);
}

#[test]
fn a_request_that_has_its_process_is_not_judged_again() {
    let d = with_rules("", RULES);
    let call = json!({ "argv": ["/bin/sh", "-c", "exit 0"], "request_id": "r" });
    let first = id(&d.ok("exec", call.clone()));
    write_rules(&d, "20.toml", "[[rule]]\nprefix = ['sh']\nverdict = 'deny'\nreason = 'no shells'\n");
    d.ok("policy.reload", json!({}));
    let again = d.ok("exec", call);
    assert_eq!((id(&again), &again["existing"]), (first, &json!(true)));
    d.refused(-32005, "denied", "exec", json!({ "argv": ["/bin/sh", "-c", "exit 0"] }));
}

#[test]
fn a_reload_replaces_the_rules_or_keeps_them_all() {
    let d = with_rules("", RULES);
    assert_eq!(d.ok("daemon.info", json!({}))["policy"], json!({ "rules": 3, "files": 1, "errors": [] }));
    write_rules(&d, "20-make.toml", "[[rule]]\nprefix = ['make']\nverdict = 'deny'\nreason = 'no builds'\n");
    assert_eq!(verdict(&d, "make"), "allow", "not before a reload");
    assert_eq!(d.ok("policy.reload", json!({})), json!({ "rules": 4, "files": 2 }));
    assert_eq!(verdict(&d, "make"), "deny");

    let bad = "[[rule]]\nprefix = ['cat']\nverdict = 'deny'\nreason = 'x'\n\
        [[rule]]\nprefix = ['git', 'log']\nverdict = 'allow'\nmatch = ['git push']\n";
    write_rules(&d, "30-bad.toml", bad);
    let error = d.refused(-32602, "invalid_params", "policy.reload", json!({}));
    let data = &error["data"];
    assert_eq!(
        (&data["file"], &data["index"], &data["example"]),
        (&json!("30-bad.toml"), &json!(1), &json!("git push"))
    );
    assert!(error["message"].as_str().unwrap().contains("30-bad.toml: rule 1: example \"git push\""), "{error}");
    assert_eq!((verdict(&d, "make"), verdict(&d, "cat x")), (json!("deny"), json!("allow")), "the old set stays");
    assert_eq!(d.ok("daemon.info", json!({}))["policy"], json!({ "rules": 4, "files": 2, "errors": [] }));

    let loaded: Vec<Value> = events(&d, "policy_loaded").iter().map(|event| event["ok"].clone()).collect();
    assert_eq!(loaded, [json!(true), json!(true), json!(false)], "the start, a reload, a bad one");
    fs::remove_file(rule_path(&d, "30-bad.toml")).unwrap();
    fs::remove_file(rule_path(&d, "10-git.toml")).unwrap();
    assert_eq!(d.ok("policy.reload", json!({})), json!({ "rules": 1, "files": 1 }));
    assert_eq!(verdict(&d, "curl x"), "allow");
}

#[test]
fn rule_files_that_others_control_are_refused() {
    let d = with_rules("", RULES);
    let refused = |name: &str, part: &str| {
        let error = d.refused(-32602, "invalid_params", "policy.reload", json!({}));
        let message = error["message"].as_str().unwrap();
        assert!(message.starts_with(name) && message.contains(part), "{message}");
        fs::remove_file(rule_path(&d, name)).unwrap();
    };
    std::os::unix::fs::symlink(rule_path(&d, "10-git.toml"), rule_path(&d, "20.toml")).unwrap();
    refused("20.toml", "is a symbolic link");
    write_rules(&d, "30.toml", "");
    fs::set_permissions(rule_path(&d, "30.toml"), fs::Permissions::from_mode(0o664)).unwrap();
    refused("30.toml", "can be written by others");
    for wide in ["bash", "env", "sudo", "python3", "git", "rm", "npm"] {
        write_rules(&d, "40.toml", &format!("[[rule]]\nprefix = ['{wide}']\nverdict = 'allow'\n"));
        refused("40.toml", &format!("an allow for `{wide}` alone"));
    }
    assert_eq!(d.ok("policy.reload", json!({})), json!({ "rules": 3, "files": 1 }));
}

#[test]
fn a_bad_file_at_the_start_asks_about_all_that_it_may_have_judged() {
    let mut d = Daemon::prepare("", &[]);
    write_rules(&d, "10-git.toml", RULES);
    write_rules(&d, "20-bad.toml", "[[rule]]\nprefix = ['make']\nverdict = 'deny'\n");
    d.spawn();
    let why = "20-bad.toml: rule 0: reason is empty; ask and deny need one";
    let info = d.ok("daemon.info", json!({}));
    assert_eq!(info["policy"], json!({ "rules": 3, "files": 1, "errors": [why] }));
    assert!(d.log().contains("20-bad.toml: rule 0"), "{}", d.log());
    let loaded = events(&d, "policy_loaded");
    assert_eq!((&loaded[0]["ok"], &loaded[0]["errors"]), (&json!(false), &json!([why])));
    assert_eq!(verdict(&d, "make"), "ask");
    assert_eq!(verdict(&d, "sudo make"), "ask");
    assert_eq!((verdict(&d, "curl x"), verdict(&d, "ls")), (json!("deny"), json!("allow")), "the others hold");
    // A file that cannot be parsed may have judged anything.
    write_rules(&d, "20-bad.toml", "[[rule]");
    d.restart();
    assert_eq!((verdict(&d, "ls"), verdict(&d, "curl x")), (json!("ask"), json!("deny")));
    fs::remove_file(rule_path(&d, "20-bad.toml")).unwrap();
    d.ok("policy.reload", json!({}));
    assert_eq!(verdict(&d, "ls"), "allow");
}

#[test]
fn forced_removal_asks_in_every_spelling() {
    let d = Daemon::start();
    let spelled = [
        "rm -f x",
        "rm -rf x",
        "\\rm x --force",
        "sudo rm -f x",
        "env rm -f x",
        "sh -c 'rm -f x'",
        "trap 'rm -f x' EXIT",
        "echo $(rm -f x)",
        "find . -exec rm -f {} +",
        "r''m -f x",
        "for i in 1; do rm -f x; done",
    ];
    for command in spelled {
        let found = check(&d, command);
        assert_eq!((&found["verdict"], &found["danger"]["kind"]), (&json!("ask"), &json!("forced_removal")), "{found}");
    }
    for command in ["rm x", "echo rm -f", "git rm -f x"] {
        let found = check(&d, command);
        assert_eq!((&found["verdict"], found.get("danger")), (&json!("allow"), None), "{found}");
    }
    let nested = (0..9).fold("ls".to_string(), |text, _| format!("$({text})"));
    assert_eq!(verdict(&d, &format!("echo {nested}")), "ask");
    for (config, expected) in [("deny", "deny"), ("allow", "allow")] {
        let d = Daemon::start_with(&format!("[policy]\ndanger = \"{config}\"\n"), &[]);
        assert_eq!(verdict(&d, "rm -f x"), expected);
    }
    let never = Daemon::start_with("[policy]\napproval = \"never\"\n", &[]);
    let error = never.refused(-32005, "denied", "exec", json!({ "argv": ["rm", "-f", "/no/such/file"] }));
    assert!(error["data"]["reason"].as_str().unwrap().contains("approval is never"), "{error}");
}

#[test]
fn an_allow_holds_for_plain_text_and_a_trusted_program_only() {
    let d = with_rules("[policy]\napproval = \"untrusted\"\n", RULES);
    let work = d.root().join("work");
    fs::create_dir_all(work.join("bin")).unwrap();
    let judged = |more: Value| {
        let mut call = json!({ "command": "git status", "shell": "/bin/sh", "login": false, "cwd": work });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        d.ok("policy.check", call)["verdict"].clone()
    };
    assert_eq!(judged(json!({})), "allow");
    assert_eq!(judged(json!({ "command": "sh -c 'git status -s | git diff'" })), "allow");
    for opaque in ["git status > x", "git status $x", "git diff --output=x", "ls", "git status & ls"] {
        assert_eq!(judged(json!({ "command": opaque })), "ask", "{opaque}");
    }
    for name in ["PATH", "LD_PRELOAD", "GIT_PAGER", "BASH_ENV"] {
        assert_eq!(judged(json!({ "env": { name: "/x" } })), "ask", "{name}");
    }
    assert_eq!(judged(json!({ "env": { "LANG": "C" } })), "allow");
    // A login shell that reads a profile which the job can write.
    assert_eq!(judged(json!({ "login": true })), "allow");
    assert_eq!(judged(json!({ "login": true, "cwd": d.home() })), "ask");
    // A program in the working directory is not the one that the rule means.
    let own = work.join("bin/git");
    fs::write(&own, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&own, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", work.join("bin").display(), std::env::var("PATH").unwrap());
    let mut other = Daemon::prepare("[policy]\napproval = \"untrusted\"\n", &[("PATH", &path)]);
    write_rules(&other, "10-git.toml", RULES);
    other.spawn();
    let call = json!({ "command": "git status", "shell": "/bin/sh", "login": false, "cwd": work });
    assert_eq!(other.ok("policy.check", call.clone())["verdict"], "ask");
    let elsewhere = json!({ "command": "git status", "shell": "/bin/sh", "login": false, "cwd": other.home() });
    assert_eq!(other.ok("policy.check", elsewhere)["verdict"], "allow");
}

#[test]
fn a_session_decides_when_a_person_is_asked() {
    let d = with_rules("", RULES);
    let work = d.root().join("tmp");
    let judged = |session: &str, command: &str| {
        let call =
            json!({ "command": command, "shell": "/bin/sh", "login": false, "session_key": session, "cwd": work });
        d.ok("policy.check", call)["verdict"].clone()
    };
    for (session, approval) in [("n", "never"), ("u", "untrusted"), ("r", "on-request"), ("f", "on-failure")] {
        d.ok("session.configure", json!({ "session_key": session, "approval": approval }));
    }
    let cases = [
        ("git status", ["allow", "allow", "allow", "allow"]),
        ("make", ["allow", "ask", "allow", "allow"]),
        ("git push", ["deny", "ask", "ask", "ask"]),
        ("curl x", ["deny", "deny", "deny", "deny"]),
        ("rm -f x", ["deny", "ask", "ask", "ask"]),
    ];
    for (command, expected) in cases {
        assert_eq!(
            ["n", "u", "r", "f"].map(|session| judged(session, command)),
            expected.map(Value::from),
            "{command}"
        );
    }
    assert_eq!(judged("another", "make"), "allow");
}

#[test]
fn a_rule_grants_a_wider_profile_than_the_session_has() {
    let rules = "[[rule]]\nprefix = ['cargo', 'test']\nverdict = 'allow'\nsandbox = 'workspace-write'\n\
        [[rule]]\nprefix = ['ls']\nverdict = 'allow'\n";
    let d = with_rules("", rules);
    d.ok("session.configure", json!({ "session_key": "s", "sandbox": "read-only" }));
    let path = d.root().join("tmp");
    for name in ["cargo"] {
        // The rule holds for a program that is there.
        if !std::env::split_paths(&std::env::var_os("PATH").unwrap()).any(|dir| dir.join(name).exists()) {
            println!("skipped: {name} is not installed");
            return;
        }
    }
    let asked = |command: &str, profile: &str| {
        let call = json!({
            "command": command, "shell": "/bin/sh", "login": false, "session_key": "s", "sandbox": profile, "cwd": path
        });
        d.call("policy.check", call).map(|found| found["sandbox"]["profile"].clone())
    };
    assert_eq!(asked("cargo test", "workspace-write").unwrap(), "workspace-write");
    for (command, profile) in
        [("cargo test && ls", "workspace-write"), ("ls", "workspace-write"), ("cargo test", "full")]
    {
        let error = asked(command, profile).expect_err("no rule grants it");
        assert_eq!(error["data"]["kind"], "denied", "{command}: {error}");
    }
}

#[test]
fn an_exec_that_a_person_must_decide_on_waits_for_the_answer() {
    let d = with_rules("", RULES);
    let file = d.root().join("gone");
    fs::write(&file, "x").unwrap();
    let call = json!({ "argv": ["rm", "-f", file], "session_key": "s", "request_id": "r" });
    let asked = d.ok("exec", call.clone());
    assert_eq!(asked["status"], "pending", "{asked}");
    assert_eq!(id(&d.ok("exec", call)), id(&asked), "the same request asks once");
    let session = d.ok("session.get", json!({ "session_key": "s" }));
    let approval = &session["approvals"][0];
    assert_eq!(
        (&approval["process"], &approval["why"][0]["label"]),
        (&json!(id(&asked)), &json!("danger")),
        "{session}"
    );
    assert!(file.exists());
    let answer = json!({ "id": approval["id"], "decision": "approve", "digest": approval["digest"] });
    d.ok("approvals.decide", answer);
    assert_eq!(d.closed(&id(&asked))["exit_code"], 0);
    assert!(!file.exists());

    let pushed = d.sh_with("git push", json!({ "session_key": "s" }));
    let approval = d.ok("approvals.list", json!({}))["approvals"][0].clone();
    assert_eq!(approval["why"], json!([{ "label": "rule", "text": "changes the remote" }]), "{approval}");
    d.ok("approvals.decide", json!({ "id": approval["id"], "decision": "deny", "digest": approval["digest"] }));
    assert_eq!(d.process(&id(&pushed))["reason"], "denied");

    let error = d.refused(-32005, "denied", "exec", json!({ "argv": ["rm", "-f", file], "approval_timeout_ms": 0 }));
    assert!(error["data"]["reason"].as_str().unwrap().contains("approval_timeout_ms is 0"), "{error}");
    assert_eq!(events(&d, "denied").len(), 1, "a refusal without a question leaves an event");
}

#[test]
fn the_shipped_example_holds() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/packaging/rules/example.toml");
    let d = with_rules("", &fs::read_to_string(example).unwrap());
    assert_eq!(d.ok("daemon.info", json!({}))["policy"], json!({ "rules": 5, "files": 1, "errors": [] }));
    assert_eq!((verdict(&d, "git push"), verdict(&d, "sudo reboot")), (json!("ask"), json!("deny")));
}

#[test]
fn nothing_is_suggested_for_a_process_that_was_refused_nothing() {
    let d = Daemon::start();
    let proc = d.sh("exit 0");
    let none = json!({ "id": proc, "denials": 0, "roots": [], "network": null, "profile": null, "rules": null });
    assert_eq!(d.ok("policy.suggest", json!({ "id": proc })), none);
    d.refused(-32001, "not_found", "policy.suggest", json!({ "id": "proc_000000000000" }));
}
