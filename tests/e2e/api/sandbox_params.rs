//! The parameter `sandbox` of `exec`: what is refused before anything runs.

use serde_json::{Value, json};
use std::fs;
use toold_test_support::output::output_of;
use toold_test_support::rig::Daemon;

/// Runs nothing that could be seen, if it is refused.
fn exec(d: &Daemon, sandbox: Value) -> Value {
    json!({"argv": ["/bin/touch", d.home().join("ran")], "cwd": d.home(), "sandbox": sandbox})
}

fn nothing_happened(d: &Daemon) {
    assert_eq!(d.ids(json!({})), Vec::<String>::new());
    assert!(!d.home().join("ran").exists());
    assert!(!d.state().join("tmp").exists(), "a refused call made a private /tmp");
}

#[test]
fn a_profile_or_a_root_that_cannot_be_used_is_refused_by_name_and_changes_nothing() {
    let d = Daemon::start();
    fs::write(d.home().join("file"), "").unwrap();
    let path = |name: &str| d.home().join(name).display().to_string();
    for (param, sandbox) in [
        ("sandbox", json!("nosuch")),
        ("sandbox.profile", json!({"profile": "nosuch"})),
        ("sandbox.roots", json!({"roots": [path("missing")]})),
        ("sandbox.roots", json!({"roots": [path("file")]})),
        ("sandbox.roots", json!({"roots": ["relative"]})),
        ("sandbox.roots", json!({"mode": "read-only", "roots": [path("")]})),
        ("sandbox.network", json!({"profile": "full", "network": "off"})),
        ("sandbox.require", json!({"mode": "full", "require": ["fs_write"]})),
        ("sandbox", json!({"mode": "writable"})),
        ("sandbox", json!({"network": "on"})),
        ("sandbox", json!({"require": ["everything"]})),
        ("sandbox", json!({"root": [path("")]})),
        ("sandbox", json!(true)),
    ] {
        d.refused_param(param, "exec", exec(&d, sandbox));
    }
    let unknown = d.refused(-32602, "invalid_params", "exec", exec(&d, json!("nosuch")));
    assert_eq!(unknown["data"]["profiles"], json!(["full", "workspace-write", "read-only"]));
    nothing_happened(&d);
}

#[test]
fn the_daemons_own_directories_cannot_be_roots() {
    let d = Daemon::start();
    d.refused_param("sandbox.roots", "exec", exec(&d, json!({"roots": [d.state()]})));
    let inside = json!({"argv": ["/bin/true"], "cwd": d.state(), "sandbox": "workspace-write"});
    d.refused_param("cwd", "exec", inside);
    nothing_happened(&d);
}

#[test]
fn nothing_is_wider_than_the_ceiling_of_the_config() {
    let config = "[policy]\ndefault = \"read-only\"\nmax = \"ci\"\n\
        [profile.ci]\nmode = \"workspace-write\"\nroots = [\"~/project\"]\nnetwork = \"loopback\"\n";
    let d = Daemon::start_with(config, &[]);
    fs::create_dir_all(d.home().join("project/src")).unwrap();
    for (key, sandbox) in [
        ("mode", json!("full")),
        ("network", json!({"profile": "ci", "network": "full"})),
        ("roots", json!({"profile": "ci", "roots": [d.home()]})),
        ("unix_sockets", json!({"profile": "ci", "unix_sockets": ["/run/docker.sock"]})),
        ("caches", json!({"profile": "ci", "caches": true})),
        // Its working directory, which would be a root.
        ("roots", json!("workspace-write")),
    ] {
        let error = d.refused(-32005, "denied", "exec", exec(&d, sandbox));
        assert_eq!((&error["data"]["reason"], &error["data"]["key"]), (&json!("ceiling"), &json!(key)), "{error}");
    }
    nothing_happened(&d);
    let output = d.ctl(&["exec", "--sandbox", "full", "--", "true"]);
    assert_eq!(output.code, 5, "{output:?}");
}

#[test]
fn a_config_with_a_profile_that_cannot_be_used_is_refused_by_its_key() {
    let d = Daemon::prepare("[profile.ci]\nmode = \"write\"\n", &[]);
    let check = |config: &str| {
        fs::write(d.root().join("config/toold/config.toml"), config).unwrap();
        let mut command = d.command();
        command.arg("--check-config").stderr(std::process::Stdio::piped());
        let output = output_of(command.spawn().unwrap());
        (output.code, output.stderr)
    };
    for (config, needle) in [
        ("[profile.ci]\nmode = \"write\"\n", "unknown variant `write`"),
        ("[policy]\ndefault = \"ci\"\n", "policy.default: there is no profile \"ci\""),
        (
            "[policy]\ndefault = \"read-only\"\nmax = \"read-only\"\n[profile.ci]\nmode = \"workspace-write\"\n",
            "profile.ci.mode: ci is wider than policy.max, read-only",
        ),
        ("[sandbox]\nmechanism = \"bwrap\"\n", "unknown variant `bwrap`"),
    ] {
        let (code, stderr) = check(config);
        assert!(code == 2 && stderr.contains(needle), "{config}: {code} {stderr}");
    }
    assert_eq!(check("[profile.ci]\nmode = \"workspace-write\"\n").0, 0);
}
