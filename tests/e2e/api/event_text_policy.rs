//! The texts of the events of sandboxes, rules, approvals, patches, stages and tools, for the golden file of `event_text`.

use super::event_text::journal;
use super::events::until;
use serde_json::{Value, json};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use toold_test_support::rig::{Daemon, id};

/// Fields whose values differ from run to run, wherever they are in the text. The errno of a refusal is that of its mechanism.
const MASKED: [&str; 16] = [
    "seq",
    "at",
    "id",
    "pid",
    "uid",
    "program",
    "approval",
    "grant",
    "digest",
    "expires_at",
    "patch_id",
    "errno",
    "bytes",
    "duration_ms",
    "killed_by",
    "output_path",
];

const RULES: &str = "[[rule]]\nprefix = [\"curl\"]\nverdict = \"deny\"\nreason = \"no downloads\"\n";
const BAD_RULES: &str =
    "[[rule]]\nprefix = [\"git\", \"push\"]\nverdict = \"ask\"\nreason = \"asks\"\nmatch = [\"git pull\"]\n";

/// Replaces the values of the masked fields, and the directory of the rig.
fn masked(text: &str, d: &Daemon) -> String {
    let mut text = text.replace(d.root().to_str().unwrap(), "ROOT");
    for field in MASKED {
        let key = format!("\"{field}\":");
        let mut from = 0;
        while let Some(start) = text[from..].find(&key).map(|at| from + at + key.len()) {
            let value = &text[start..];
            let len = match value.strip_prefix('"') {
                Some(rest) => rest.find('"').unwrap() + 2,
                None => value.find([',', '}']).unwrap(),
            };
            if !value.starts_with("null") {
                text.replace_range(start..start + len, "…");
            }
            from = start;
        }
    }
    text
}

fn kind(text: &str) -> String {
    serde_json::from_str::<Value>(text).unwrap()["type"].as_str().unwrap().to_string()
}

/// Adds the events of these types, in their order.
fn add(d: &Daemon, label: &str, kinds: &[&str], lines: &mut Vec<String>) {
    let all = journal(d).into_iter().filter(|text| kinds.contains(&kind(text).as_str()));
    let before = lines.len();
    lines.extend(all.map(|text| format!("{label}: {}", masked(&text, d))));
    assert!(lines.len() > before, "{label}: no events");
}

fn rules(d: &Daemon, name: &str, text: &str) {
    let path = d.root().join("config/toold/rules").join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
}

/// Adds `policy_loaded`, `denied`, `approval_requested`, `approval_decided`, `grant_added`, `grant_revoked`, `inside_refused`.
fn approvals(lines: &mut Vec<String>) {
    let mut d = Daemon::prepare("", &[]);
    rules(&d, "10.toml", RULES);
    rules(&d, "20.toml", BAD_RULES);
    d.spawn();
    fs::remove_file(d.root().join("config/toold/rules/20.toml")).unwrap();
    d.ok("policy.reload", json!({}));
    add(&d, "rules", &["policy_loaded"], lines);
    let curl = json!({ "argv": ["curl", "x"], "cwd": "/", "session_key": "s", "task_id": "t" });
    d.refused(-32005, "denied", "exec", curl);
    add(&d, "rules", &["denied"], lines);

    let ask = |more: Value| {
        let mut call = json!({ "argv": ["rm", "-f", "no-such-file"], "cwd": "/", "session_key": "s", "task_id": "t" });
        call.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        id(&d.ok("exec", call))
    };
    let decide = |decision: &str, scope: &str| {
        let approval = d.ok("approvals.list", json!({}))["approvals"][0].clone();
        let call = json!({ "id": approval["id"], "decision": decision, "scope": scope, "digest": approval["digest"],
            "message": "by the test" });
        d.ok("approvals.decide", call)
    };
    d.closed(&{
        let asked = ask(json!({}));
        decide("approve", "session");
        asked
    });
    let grant = d.ok("grants.list", json!({}))["grants"][0]["id"].clone();
    d.ok("grants.revoke", json!({ "id": grant }));
    ask(json!({ "cwd": "/var" }));
    decide("deny", "once");
    let late = ask(json!({ "cwd": "/usr", "approval_timeout_ms": 1 }));
    until(&d, "late", json!({ "types": ["approval_decided"], "id": late }));
    let killed = ask(json!({ "cwd": "/etc" }));
    d.ok("kill", json!({ "id": killed }));
    until(&d, "killed", json!({ "types": ["approval_decided"], "id": killed }));
    let kinds = ["approval_requested", "approval_decided", "grant_added", "grant_revoked"];
    add(&d, "approvals", &kinds, lines);

    let revoke = json!({ "jsonrpc": "2.0", "id": 1, "method": "grants.revoke", "params": { "session_key": "s" } });
    d.sh_with(&format!("echo '{revoke}' | nc -NU {}", d.socket().display()), json!({ "name": "inside" }));
    until(&d, "inside", json!({ "types": ["inside_refused"] }));
    add(&d, "inside", &["inside_refused"], lines);
}

/// Adds `denial`, `protected_created`, `patch_applied`, `patch_reverted`, `stage_ready`.
fn files(lines: &mut Vec<String>) {
    let d = Daemon::start();
    let project = d.root().join("project");
    fs::create_dir(&project).unwrap();
    let script = "echo x > .envrc; echo x > /etc/toold-test; echo x > /etc/toold-test; exec nc -z 127.0.0.1 9";
    let call = json!({ "argv": ["bash", "-c", script], "cwd": project, "sandbox": "workspace-write", "name": "n",
        "session_key": "s", "task_id": "t" });
    d.closed(&id(&d.ok("exec", call)));
    until(&d, "made", json!({ "types": ["protected_created"] }));
    add(&d, "sandbox", &["denial", "protected_created"], lines);

    let patch = "*** Begin Patch\n*** Add File: f\n+one\n*** End Patch\n";
    let call = json!({ "patch": patch, "cwd": project, "session_key": "s", "task_id": "t" });
    let applied = d.ok("patch.apply", call);
    d.ok("patch.revert", json!({ "patch_id": applied["patch_id"] }));
    add(&d, "patch", &["patch_applied", "patch_reverted"], lines);

    let call = json!({ "argv": ["sh", "-c", "echo x > made"], "cwd": project, "stage": true, "name": "n" });
    d.ok("exec", call);
    until(&d, "ready", json!({ "types": ["stage_ready"] }));
    add(&d, "stage", &["stage_ready"], lines);
}

/// Adds `tool_provider`, in all of its states.
fn tools(lines: &mut Vec<String>) {
    let d = Daemon::start();
    let call = |takeover: bool| {
        let tools = json!([{ "name": "open", "input_schema": { "type": "object" } }]);
        json!({ "provider": "editor", "tools": tools, "session_key": "s", "takeover": takeover })
    };
    let (mut old, mut new) = (d.conn(), d.conn());
    old.call("tools.register", call(false)).unwrap();
    new.call("tools.register", call(true)).unwrap();
    new.call("tools.unregister", json!({ "provider": "editor" })).unwrap();
    old.call("tools.register", call(false)).unwrap();
    drop(old);
    d.eventually("it has gone", || journal(&d).iter().any(|text| text.contains("\"gone\"")));
    let before = lines.len();
    add(&d, "tools", &["tool_provider"], lines);
    let own = format!("pid {}", std::process::id());
    for line in &mut lines[before..] {
        // The pid, and the program and the time of an end.
        *line = line.replace(&own, "pid …");
        if let (Some(start), Some(end)) = (line.find(" ("), line.find("Z; ")) {
            line.replace_range(start..=end, " …");
        }
    }
}

/// Adds every event of this page. `sandbox_gap` is not among them: a machine without a gap has none.
pub fn all(lines: &mut Vec<String>) {
    approvals(lines);
    files(lines);
    tools(lines);
}
