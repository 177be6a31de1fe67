//! MCP servers as providers of tools: a server of the tests that misbehaves on demand, and real ones.

mod calls;
mod config;
mod hostile;
mod http;
mod real;
mod survive;

use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use toold_test_support::conn::{Answer, Conn};
use toold_test_support::rig::Daemon;

/// A daemon whose config has the server of the tests as `fake`.
struct Rig {
    d: Daemon,
    dir: PathBuf,
}

impl Rig {
    fn start(server: &[&str]) -> Rig {
        Rig::with(server, "", "")
    }

    /// `keys` are keys of the server, `config` is the beginning of the config.
    fn with(server: &[&str], keys: &str, config: &str) -> Rig {
        Rig::with_env(server, keys, config, &[])
    }

    fn with_env(server: &[&str], keys: &str, config: &str, env: &[(&str, &str)]) -> Rig {
        let mut rig = Rig::prepare(env);
        rig.configure(server, keys, config);
        rig.d.spawn();
        rig
    }

    fn prepare(env: &[(&str, &str)]) -> Rig {
        let d = Daemon::prepare("", env);
        let dir = d.root().join("fake");
        fs::create_dir(&dir).unwrap();
        fs::write(dir.join("server.py"), include_str!("fake_server.py")).unwrap();
        Rig { d, dir }
    }

    fn configure(&self, server: &[&str], keys: &str, config: &str) {
        let own = [&format!("{}/server.py", self.dir.display()), "--dir", self.dir.to_str().unwrap()];
        let command: Vec<&str> = ["python3"].into_iter().chain(own).chain(server.iter().copied()).collect();
        let text = format!("{config}\n[mcp.fake]\ncommand = {}\n{keys}\n", json!(command));
        fs::write(self.d.root().join("config/toold/config.toml"), text).unwrap();
    }

    fn call(&self, tool: &str, args: Value) -> Answer {
        self.d.call("tools.call", json!({ "name": format!("fake.{tool}"), "args": args }))
    }

    #[track_caller]
    fn text(&self, tool: &str, args: Value) -> String {
        let answer = self.call(tool, args).unwrap_or_else(|e| panic!("{tool}: {e}\n{}", self.d.log()));
        answer["result"]["text"].as_str().unwrap_or_else(|| panic!("{answer}")).into()
    }

    #[track_caller]
    fn error(&self, tool: &str, args: Value) -> Value {
        self.call(tool, args).expect_err("an error")
    }

    /// Sends a call that can be repeated, and does not wait for its answer.
    fn begin(&self, request: &str, tool: &str, args: Value) -> (Conn, u64) {
        let mut conn = self.d.conn();
        let params = json!({ "name": format!("fake.{tool}"), "args": args, "request_id": request });
        let id = conn.request("tools.call", params);
        (conn, id)
    }

    /// Repeats a call, and returns its answer.
    fn again(&self, request: &str, tool: &str, args: Value) -> Answer {
        let (mut conn, id) = self.begin(request, tool, args);
        conn.answer(id)
    }

    /// The effects that the server had.
    fn effects(&self) -> Vec<String> {
        let text = fs::read_to_string(self.dir.join("effects")).unwrap_or_default();
        text.lines().map(String::from).collect()
    }

    fn count(&self, effect: &str) -> usize {
        self.effects().iter().filter(|known| *known == effect).count()
    }

    fn waits_for(&self, effect: &str) {
        self.d.eventually(effect, || self.count(effect) > 0);
    }

    fn open(&self, gate: &str) {
        fs::write(self.dir.join(gate), "").unwrap();
    }

    /// The process of the server.
    fn process(&self) -> Value {
        self.d.process("mcp/fake")
    }

    fn tools(&self) -> Vec<Value> {
        self.d.ok("tools.list", json!({ "provider": "fake" }))["tools"].as_array().unwrap().clone()
    }

    fn names(&self) -> Vec<String> {
        self.tools().iter().map(|tool| tool["name"].as_str().unwrap().to_string()).collect()
    }

    /// Removes the rest, so that the check of the rig finds nothing.
    fn end(self) {
        self.d.ok("kill", json!({ "all": true }));
    }
}
