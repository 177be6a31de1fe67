//! `toolctl integrate` and what `toolctl doctor` reports about it, with the real files of a user and the real checks of an agent.

use crate::agent_rig::agent;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use toold_test_support::output::output_of;
use toold_test_support::rig::{Daemon, files, skip_unless};

const TARGETS: [&str; 7] = ["claude-code", "codex", "opencode", "gemini", "hermes", "nvim", "emacs"];

/// The targets whose files are in the source.
fn targets() -> Vec<&'static str> {
    let editors = Path::new(env!("CARGO_MANIFEST_DIR")).join("client/editors");
    let is_there = |target: &&str| {
        let is_editor = matches!(*target, "nvim" | "emacs");
        !(is_editor && skip_unless(editors.join(target).exists(), &format!("{target} is not part of the source")))
    };
    TARGETS.into_iter().filter(is_there).collect()
}

/// All files below the rig's home and config directory, with their text.
fn contents(d: &Daemon) -> Vec<(PathBuf, String)> {
    let dirs = [d.home(), d.root().join("config")];
    dirs.iter().flat_map(|dir| files(dir)).map(|path| (path.clone(), fs::read_to_string(path).unwrap())).collect()
}

#[test]
fn every_target_is_written_once_and_a_second_run_changes_nothing() {
    let d = Daemon::prepare("", &[]);
    let targets = targets();
    let shown: Vec<String> = targets.iter().map(|target| d.ctl(&["integrate", target, "--print"]).stdout).collect();
    assert_eq!(contents(&d), [], "--print writes nothing");
    for (target, shown) in targets.iter().zip(shown) {
        let before = contents(&d).len();
        let first = d.ctl(&["integrate", target]);
        assert_eq!((first.code, first.stderr.as_str()), (0, ""), "{target}: {first:?}");
        let written = contents(&d);
        assert!(written.len() > before, "{target}: {first:?}");
        let second = d.ctl(&["integrate", target, "--json"]);
        let report: Value = serde_json::from_str(&second.stdout).unwrap();
        let effects = report["files"].as_array().unwrap();
        assert!(!effects.is_empty() && effects.iter().all(|file| file["effect"] == "unchanged"), "{report}");
        assert!(effects.iter().all(|file| shown.contains(file["path"].as_str().unwrap())), "{target}: {shown}");
        assert_eq!(contents(&d), written, "{target}");
    }
    assert!(!d.socket().exists(), "no daemon is needed");
}

#[test]
fn a_config_that_cannot_be_read_stays_as_it_is_and_the_user_gets_the_text() {
    let d = Daemon::prepare("", &[]);
    let odd = [
        ("codex", "home/.codex/config.toml", "model = \n", "[[hooks.Stop]]"),
        ("opencode", "config/opencode/opencode.jsonc", "{ // mine\n}\n", "\"toold\""),
        ("gemini", "home/.gemini/settings.json", "{\"hooks\": 3}\n", "AfterAgent"),
        ("hermes", "home/.hermes/config.yaml", "{a: 1}\n", "mcp_servers:"),
    ];
    for (target, path, text, paste) in odd {
        let path = d.root().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        let before = contents(&d);
        let refused = d.ctl(&["integrate", target]);
        assert_eq!(refused.code, 1, "{target}");
        assert!(refused.stderr.contains(path.to_str().unwrap()) && refused.stdout.contains(paste), "{refused:?}");
        assert_eq!(contents(&d), before, "{target}: nothing is written, no other file either");
    }
}

#[test]
fn what_the_user_has_stays_and_doctor_tries_the_way_to_the_hook() {
    let d = Daemon::start();
    let config = d.home().join(".codex/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    let mine = "# mine\nmodel = \"x\"\n[mcp_servers.toold]\ncommand = \"toolctl\"\nargs = [\"mcp\", \"--read-only\"]\n";
    fs::write(&config, mine).unwrap();
    let doctor = || output_of(d.tool("toolctl", &["doctor"]).spawn().unwrap()).stdout;
    let before = doctor();
    assert!(before.contains("warning  codex") && before.contains("toolctl integrate codex"), "{before}");
    assert_eq!(d.ctl(&["integrate", "codex"]).code, 0);
    let text = fs::read_to_string(&config).unwrap();
    assert!(text.starts_with(mine) && text.matches("[mcp_servers.toold]").count() == 1, "{text}");
    let after = doctor();
    assert!(after.contains("ok       codex"), "{after}");
    assert!(after.contains("ok       wake-up     the end of a job reaches the hook Stop"), "{after}");
}

#[test]
fn the_plugin_passes_the_check_of_claude_code() {
    let Some(program) = agent("claude") else { return };
    let d = Daemon::prepare("", &[]);
    assert_eq!(d.ctl(&["integrate", "claude-code"]).code, 0);
    let installed = d.home().join(".claude/skills/toold");
    for dir in [&installed, &Path::new(env!("CARGO_MANIFEST_DIR")).join("client/agents/claude-code")] {
        let output = output_of(
            d.tool(program.to_str().unwrap(), &["plugin", "validate", dir.to_str().unwrap()]).spawn().unwrap(),
        );
        assert!(output.code == 0 && output.stdout.contains("Validation passed"), "{output:?}");
    }
}
