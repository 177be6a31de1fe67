//! Claude Code, Codex and opencode without a person: what the model receives of toold, by tools, trailers and hooks.

use crate::agent_rig::{Agent, CLAUDE_SESSION, agent, conversation, steps, tool_names};
use regex::Regex;
use serde_json::{Value, json};
use std::fs;
use std::path::Path;
use toold_test_support::rig::{Daemon, id};

const TOOLS: [&str; 6] = ["proc_start", "proc_wait", "proc_read", "proc_write", "proc_kill", "proc_list"];

/// The plugin and the snippets as they are shipped.
pub fn shipped(path: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("client/agents").join(path).display().to_string()
}

/// The shell text that runs Claude Code once.
fn claude(plugin: &str) -> String {
    format!(
        "export ANTHROPIC_BASE_URL=$MODEL_URL ANTHROPIC_API_KEY=sk-test IS_SANDBOX=1 ENABLE_TOOL_SEARCH=false \
         CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
         exec $AGENT -p start {plugin} --session-id {CLAUDE_SESSION} --output-format stream-json --verbose \
         --dangerously-skip-permissions </dev/null"
    )
}

/// The shell text that runs Codex once, with the config as `toolctl integrate` writes it.
const CODEX: &str = "export CODEX_HOME=$HOME/.codex MOCK_KEY=x
    mkdir -p $CODEX_HOME
    printf '%s\n' 'model = \"mock\"' 'model_provider = \"mock\"' 'approval_policy = \"never\"' \
        'sandbox_mode = \"danger-full-access\"' '[model_providers.mock]' \
        'name = \"mock\"' \"base_url = \\\"$MODEL_URL/v1\\\"\" 'wire_api = \"responses\"' 'env_key = \"MOCK_KEY\"' >$CODEX_HOME/config.toml
    toolctl integrate codex
    exec $AGENT exec --json --skip-git-repo-check --dangerously-bypass-hook-trust start </dev/null";

/// The config of opencode that names the model, before ours is added.
pub const OPENCODE: &str = "export OPENCODE_DISABLE_AUTOUPDATE=1 OPENCODE_DISABLE_MODELS_FETCH=1
    export npm_config_registry=http://127.0.0.1:1/ npm_config_fetch_retries=0
    mkdir -p $XDG_CONFIG_HOME/opencode
    printf '%s' '{\"model\":\"mock/mock\",\"provider\":{\"mock\":{\"npm\":\"@ai-sdk/openai-compatible\",\"name\":\"mock\",\"options\":' \
        \"{\\\"baseURL\\\":\\\"$MODEL_URL/v1\\\",\\\"apiKey\\\":\\\"x\\\"}\" \
        ',\"models\":{\"mock\":{\"name\":\"mock\",\"tool_call\":true}}}}}' >$XDG_CONFIG_HOME/opencode/opencode.json
    toolctl integrate opencode";

/// Checks the requests of a model that followed `steps`: tools, first lines, trailer.
fn check_tools_and_trailer(requests: &[Value]) {
    let names = tool_names(&requests[0]);
    let ours: Vec<&str> = TOOLS.into_iter().filter(|tool| names.iter().any(|name| name.ends_with(tool))).collect();
    assert_eq!(ours, TOOLS, "{names:?}");
    let first = conversation(&requests[1]);
    let line = Regex::new(r"(?m)^proc_[0-9a-f]{12} \(build\) running \d+(\.\d)?s, pid \d+$").unwrap();
    assert!(line.is_match(&first), "the first line of the result: {first}");
    assert!(!first.lines().any(|line| line.starts_with("events:")), "nothing has happened yet: {first}");
    let trailer = Regex::new("(?m)^events: build exited 3 \\d+(\\.\\d)?s ago \"last line of build\"$").unwrap();
    let second = conversation(&requests[2]);
    assert!(trailer.is_match(&second), "the trailer: {second}");
    let last = conversation(requests.last().unwrap());
    assert_eq!(last.matches("build exited 3").count(), 1, "each end is reported once: {last}");
}

#[test]
fn claude_code_learns_of_ends_by_a_trailer_and_then_by_its_hook() {
    let Some(program) = agent("claude") else { return };
    let d = Daemon::start();
    let _gates = (d.gate("build"), d.gate("tests"));
    let work = d.root().join("agent/work");
    fs::create_dir_all(&work).unwrap();
    let here = id(&d.sh_with("read -r _ < /dev/zero & wait", json!({"name": "web", "cwd": work})));
    let run = Agent::start(&d, &program, &steps(&d), &claude(&format!("--plugin-dir {}", shipped("claude-code"))));
    let requests = run.requests();
    assert_eq!(requests.len(), 5);
    let start = conversation(&requests[0]);
    assert!(start.contains(&format!("{here} (web) running")), "SessionStart: {start}");
    check_tools_and_trailer(&requests);
    let last = conversation(&requests[4]);
    let feedback =
        Regex::new("Stop hook feedback:\ntoold: tests exited 4 \\d+(\\.\\d)?s ago \"last line of tests\"").unwrap();
    assert_eq!(feedback.find_iter(&last).count(), 1, "{last}");
    let owners: Vec<Value> = d.ok("list", json!({"session_key": format!("claude:{CLAUDE_SESSION}")}))["processes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|process| process["name"].clone())
        .collect();
    assert_eq!(owners.len(), 2, "the tools and the hook share a session: {owners:?}");
}

#[test]
fn codex_learns_of_ends_by_a_trailer_and_then_by_its_hook() {
    let Some(program) = agent("codex") else { return };
    let d = Daemon::start();
    let _gates = (d.gate("build"), d.gate("tests"));
    let work = d.root().join("agent/work");
    fs::create_dir_all(&work).unwrap();
    let here = id(&d.sh_with("read -r _ < /dev/zero & wait", json!({"name": "web", "cwd": work})));
    let requests = Agent::start(&d, &program, &steps(&d), CODEX).requests();
    assert_eq!(requests.len(), 5);
    let start = conversation(&requests[0]);
    assert!(start.contains(&format!("{here} (web) running")), "SessionStart: {start}");
    check_tools_and_trailer(&requests);
    let last = conversation(&requests[4]);
    let prompt =
        Regex::new("<hook_prompt[^>]*>toold: tests exited 4 \\d+(\\.\\d)?s ago \"last line of tests\"</hook_prompt>")
            .unwrap();
    assert_eq!(prompt.find_iter(&last).count(), 1, "{last}");
}

#[test]
fn gemini_cli_learns_of_ends_by_a_trailer_and_then_by_its_hook() {
    let Some(program) = agent("gemini") else { return };
    let d = Daemon::start();
    let _gates = (d.gate("build"), d.gate("tests"));
    let settings = json!({"security": {"auth": {"selectedType": "gemini-api-key"}}});
    fs::create_dir(d.home().join(".gemini")).unwrap();
    fs::write(d.home().join(".gemini/settings.json"), settings.to_string()).unwrap();
    assert_eq!(d.ctl(&["integrate", "gemini"]).code, 0);
    let run = "export GEMINI_API_KEY=x GOOGLE_GEMINI_BASE_URL=$MODEL_URL GEMINI_CLI_TRUST_WORKSPACE=true
        exec $AGENT --yolo -m gemini-2.5-pro --output-format stream-json -p start </dev/null";
    let requests = Agent::start(&d, &program, &steps(&d), run).requests();
    assert_eq!(requests.len(), 5);
    check_tools_and_trailer(&requests);
    let last = conversation(&requests[4]);
    let prompt = Regex::new("(?m)^toold: tests exited 4 \\d+(\\.\\d)?s ago \"last line of tests\"$").unwrap();
    assert_eq!(prompt.find_iter(&last).count(), 1, "{last}");
}

#[test]
fn opencode_learns_of_ends_by_a_trailer_and_its_plugin_names_the_session() {
    let Some(program) = agent("opencode") else { return };
    let d = Daemon::start();
    let _gates = (d.gate("build"), d.gate("tests"));
    let steps = json!([
        steps(&d)[0],
        {"call": "bash", "arguments": {"command": "echo session $TOOLD_SESSION", "description": "names the session"}},
        {"text": "I am done"},
    ]);
    let requests =
        Agent::start(&d, &program, &steps, &format!("{OPENCODE}\nexec $AGENT run --format json start </dev/null"))
            .requests();
    let names = tool_names(&requests[0]);
    assert!(TOOLS.iter().all(|tool| names.contains(&format!("toold_{tool}"))), "{names:?}");
    let first = conversation(&requests[1]);
    let line = Regex::new(r"(?m)^proc_[0-9a-f]{12} \(build\) running \d+(\.\d)?s, pid \d+$").unwrap();
    assert!(line.is_match(&first), "{first}");
    let second = conversation(&requests[2]);
    let session =
        Regex::new(r"(?m)^session (opencode:ses_\w+)$").unwrap().captures(&second).expect("the plugin sets it")[1]
            .to_owned();
    let owned = d.ok("list", json!({"session_key": session}));
    assert_eq!(owned["processes"][0]["name"], "build", "the tools and the shell share a session");
}
