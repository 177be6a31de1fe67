//! Idle agents that are woken by the end of a job: in a terminal, or as a server, and no person types.

use crate::agent_rig::{Agent, CLAUDE_SESSION, agent, conversation, has};
use crate::agents::{OPENCODE, shipped};
use regex::Regex;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use toold_test_support::rig::{Daemon, skip_unless};

/// The shell text of a terminal in which the command of `run.sh` runs. The file `screen` shows it.
const TERMINAL: &str = "
    tmux -S ../tmux -f /dev/null new-session -d -x 160 -y 50 'sh run.sh'
    while tmux -S ../tmux capture-pane -p >../screen.new; do mv ../screen.new ../screen; sleep 0.1; done";

/// A model that calls a tool and ends its turn. Whatever comes after that is a wake-up.
fn steps(tool: &str, arguments: Value) -> Value {
    json!([{"call": tool, "arguments": arguments}, {"text": "I wait for it"}, {"text": "I was woken"}])
}

/// The command of a job that ends with code 3 when the gate `build` opens.
fn job(d: &Daemon) -> String {
    format!("read -r _ < {}; echo last line; exit 3", d.root().join("build").display())
}

/// Opens the gate when the turn is over, which the agent shows by `sign`, and returns the conversation that the model then
/// receives. Before that sign the hook at the end of the turn may still run.
fn woken_by_the_end(d: &Daemon, mut agent: Agent<'_>, shows: &Path, sign: &str) -> String {
    let gate = d.gate("build");
    agent.request(1);
    d.eventually("the turn is over", || fs::read_to_string(shows).is_ok_and(|text| text.contains(sign)));
    gate.open();
    let woken = conversation(&agent.request(2));
    let phrase = Regex::new("build exited 3 \\d+(\\.\\d)?s ago \"last line\"").unwrap();
    assert_eq!(phrase.find_iter(&woken).count(), 1, "it is reported once: {woken}");
    woken
}

#[test]
fn an_idle_claude_code_is_woken_by_the_monitor_of_the_plugin() {
    let Some(program) = agent("claude") else { return };
    if skip_unless(has("tmux"), "there is no tmux") {
        return;
    }
    let d = Daemon::start();
    let work = d.root().join("agent/work");
    fs::create_dir_all(&work).unwrap();
    let settings = json!({"hasCompletedOnboarding": true, "bypassPermissionsModeAccepted": true, "theme": "dark",
        "customApiKeyResponses": {"approved": ["sk-test"]}, "projects": {work.to_str().unwrap(): {"hasTrustDialogAccepted": true}}});
    fs::write(d.home().join(".claude.json"), settings.to_string()).unwrap();
    let run = format!(
        "export ANTHROPIC_BASE_URL=$MODEL_URL ANTHROPIC_API_KEY=sk-test IS_SANDBOX=1 ENABLE_TOOL_SEARCH=false \
         CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
         exec {} --plugin-dir {} --session-id {CLAUDE_SESSION} --dangerously-skip-permissions start",
        program.display(),
        shipped("claude-code")
    );
    fs::write(work.join("run.sh"), run).unwrap();
    // A job of the agent's shell: it has the same owner as those of the tools.
    let arguments = json!({"command": format!("toolctl exec --notify --name build -c '{}'", job(&d)), "description": "starts a job"});
    let agent = Agent::start(&d, &program, &steps("Bash", arguments), TERMINAL);
    let screen = d.root().join("agent/screen");
    let woken = woken_by_the_end(&d, agent, &screen, "monitor still running");
    assert!(woken.contains("Monitor event"), "{woken}");
}

#[test]
fn an_idle_codex_is_woken_through_its_queue() {
    let Some(program) = agent("codex") else { return };
    if skip_unless(has("tmux"), "there is no tmux") {
        return;
    }
    let d = Daemon::start();
    let work = d.root().join("agent/work");
    fs::create_dir_all(&work).unwrap();
    let bin = program.parent().unwrap().display();
    let config = "model = \"mock\"\nmodel_provider = \"mock\"\napproval_policy = \"never\"\nsandbox_mode = \"danger-full-access\"\n\
        [model_providers.mock]\nname = \"mock\"\nwire_api = \"responses\"\nenv_key = \"MOCK_KEY\"\n";
    fs::create_dir_all(d.home().join(".codex")).unwrap();
    fs::write(d.home().join(".codex/config.toml"), config).unwrap();
    assert_eq!(d.ctl(&["integrate", "codex"]).code, 0);
    let trust = format!("[projects.\"{}\"]\ntrust_level = \"trusted\"\n", work.display());
    let written = fs::read_to_string(d.home().join(".codex/config.toml")).unwrap();
    fs::write(d.home().join(".codex/config.toml"), format!("{written}\n{trust}")).unwrap();
    let run = format!(
        "export PATH={bin}:$PATH MOCK_KEY=x
         exec codex -c model_providers.mock.base_url=\"$MODEL_URL/v1\" --dangerously-bypass-hook-trust start"
    );
    fs::write(work.join("run.sh"), run).unwrap();
    let arguments = json!({"command": job(&d), "name": "build", "wait_s": 0});
    let agent = Agent::start(&d, &program, &steps("proc_start", arguments), TERMINAL);
    let screen = d.root().join("agent/screen");
    let woken = woken_by_the_end(&d, agent, &screen, "Worked for");
    assert!(woken.lines().any(|line| line.starts_with("toold: ")), "the message names its sender: {woken}");
}

#[test]
fn an_idle_opencode_is_woken_by_its_plugin() {
    let Some(program) = agent("opencode") else { return };
    let d = Daemon::start();
    let work = d.root().join("agent/work");
    fs::create_dir_all(&work).unwrap();
    fs::write(work.join("ask.py"), include_str!("opencode_session.py")).unwrap();
    let arguments = json!({"command": job(&d), "name": "build", "wait_s": 0});
    let text = format!(
        "{OPENCODE}\n$AGENT serve --port 4099 --hostname 127.0.0.1 & python3 ask.py http://127.0.0.1:4099; wait"
    );
    let agent = Agent::start(&d, &program, &steps("proc_start", arguments), &text);
    let log = d.root().join("agent/log");
    let woken = woken_by_the_end(&d, agent, &log, "I wait for it");
    assert!(woken.lines().any(|line| line.starts_with("toold: build exited 3")), "{woken}");
}
