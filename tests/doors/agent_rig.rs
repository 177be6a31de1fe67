//! A coding agent in a network namespace of its own, with a model on loopback that answers from a script.

use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use toold_test_support::rig::{Daemon, skip_unless};

/// The session of Claude Code in these tests. It takes a UUID.
pub const CLAUDE_SESSION: &str = "67466000-1111-4222-8333-444444444444";

/// The directory of an installed agent. None: it is not there, and that was printed.
pub fn agent(name: &str) -> Option<PathBuf> {
    let test = std::env::current_exe().unwrap();
    let program = test.ancestors().nth(3).unwrap().join("door-programs/node_modules/.bin").join(name);
    let possible = program.exists() && can_unshare() && has("python3");
    let why = format!("{name} needs tests/door-programs, python3 and a network namespace");
    (!skip_unless(possible, &why)).then_some(program)
}

/// Reports whether a program is installed.
pub fn has(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", &format!("command -v {program}")]).stdout(Stdio::null()).status();
    found.is_ok_and(|status| status.success())
}

/// The way into a namespace: everything in it ends with its first program.
fn unshare() -> Command {
    let mut command = Command::new("unshare");
    if !toold_test_support::sys::is_root() {
        command.arg("--map-root-user");
    }
    command.args(["--net", "--pid", "--mount", "--fork", "--kill-child", "--mount-proc"]);
    command
}

fn can_unshare() -> bool {
    unshare().arg("true").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok_and(|status| status.success())
}

/// A running agent. It ends when this is dropped.
pub struct Agent<'d> {
    daemon: &'d Daemon,
    child: Child,
    dir: PathBuf,
}

impl<'d> Agent<'d> {
    /// Starts shell text that runs an agent, with MODEL_URL, AGENT (the program) and WORK (its directory) set.
    pub fn start(daemon: &'d Daemon, program: &Path, steps: &Value, text: &str) -> Agent<'d> {
        let dir = daemon.root().join("agent");
        let work = dir.join("work");
        fs::create_dir_all(dir.join("requests")).unwrap();
        fs::create_dir_all(&work).unwrap();
        fs::write(dir.join("script.json"), steps.to_string()).unwrap();
        let mock = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/doors/mock_model.py");
        let log = fs::File::create(dir.join("log")).unwrap();
        let outer = daemon.tool("true", &[]);
        let mut command = unshare();
        command.arg("python3").arg(mock).arg(dir.join("script.json")).arg(dir.join("requests"));
        command.args(["timeout", "50", "sh", "-c", text]).current_dir(&work).env_clear();
        command.envs(outer.get_envs().filter_map(|(key, value)| Some((key, value?))));
        command.env("AGENT", program).env("WORK", &work).env("TOOLD_SOCKET", daemon.socket());
        command.env("TERM", "xterm-256color").env("LANG", "C.UTF-8");
        let child = command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap();
        Agent { daemon, child, dir }
    }

    /// Everything that the agent printed.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.dir.join("log")).unwrap_or_default()).into_owned()
    }

    /// Waits for the model's request of this number, from 0.
    #[track_caller]
    pub fn request(&mut self, number: usize) -> Value {
        let path = self.dir.join(format!("requests/{number}.json"));
        let mut has_ended = false;
        let child = &mut self.child;
        self.daemon.eventually("the agent asks the model or ends", || {
            has_ended = child.try_wait().unwrap().is_some();
            path.exists() || has_ended
        });
        assert!(path.exists(), "the agent ended before request {number}: {}", self.log());
        serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
    }

    /// Waits for the end of the agent. Returns all requests that offered tools.
    #[track_caller]
    pub fn requests(mut self) -> Vec<Value> {
        let child = &mut self.child;
        self.daemon.eventually("the agent ends", || child.try_wait().unwrap().is_some());
        let read = |number: usize| fs::read_to_string(self.dir.join(format!("requests/{number}.json"))).ok();
        let all: Vec<Value> = (0..).map_while(read).map(|text| serde_json::from_str(&text).unwrap()).collect();
        assert!(!all.is_empty(), "{}", self.log());
        all
    }
}

impl Drop for Agent<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if std::thread::panicking() {
            eprintln!("the agent printed: {}", self.log());
        }
    }
}

/// All strings in a JSON value, in order, a line each: what a model reads.
pub fn text(value: &Value) -> String {
    match value {
        Value::String(text) => format!("{text}\n"),
        Value::Array(all) => all.iter().map(text).collect(),
        Value::Object(all) => all.values().map(text).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => String::new(),
    }
}

/// The conversation of a request, without tools and instructions.
pub fn conversation(request: &Value) -> String {
    ["messages", "input", "contents"].iter().map(|key| text(&request[key])).collect()
}

/// The names of the tools that a request offers.
pub fn tool_names(request: &Value) -> Vec<String> {
    let name = |tool: &Value| tool["name"].as_str().or(tool["function"]["name"].as_str()).map(str::to_owned);
    let inner = |tool: &Value| tool["tools"].as_array().or(tool["functionDeclarations"].as_array()).cloned();
    let tools = request["tools"].as_array().into_iter().flatten();
    tools.flat_map(|tool| inner(tool).unwrap_or_else(|| vec![tool.clone()])).filter_map(|tool| name(&tool)).collect()
}

/// The steps of a model that starts `build` and `tests`, learns of the one by a trailer and of the other by its hook.
pub fn steps(daemon: &Daemon) -> Value {
    // Wait for the next completion, by a consumer of our own.
    let published = "toolctl events --consumer test --from oldest --type completion -n 1 --wait 20s >/dev/null";
    let gate = |name: &str| daemon.root().join(name).display().to_string();
    let job = |name: &str, code: u8| {
        let command = format!("read -r _ < {}; echo last line of {name}; exit {code}", gate(name));
        json!({"command": command, "name": name, "wait_s": 0})
    };
    json!([
        {"call": "proc_start", "arguments": job("build", 3)},
        {"call": "proc_list", "arguments": {}, "before": format!("echo > {}; {published}", gate("build"))},
        {"call": "proc_start", "arguments": job("tests", 4)},
        {"text": "I am done", "before": format!("echo > {}; {published}", gate("tests"))},
        {"text": "now I am"},
    ])
}
