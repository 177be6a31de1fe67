//! The client of a call: its name, what it can do, its session, and how long one of its calls may wait.

use crate::message::{Era, Request, TASKS_EXTENSION};
use crate::sys;
use serde_json::{Map, Value};
use std::time::Duration;
use toold_client::agent_session;

/// The longest wait of a call of a client that gets no progress: many give up after 60 s.
const SILENT_WAIT: Duration = Duration::from_secs(50);
/// The longest wait with progress: below the 300 s after which Codex gives up all the same.
const PROGRESS_WAIT: Duration = Duration::from_secs(280);
/// The longest wait of Claude Code, which moves a long call into the background and wakes the agent with its result.
const CLAUDE_CODE_WAIT: Duration = Duration::from_secs(25 * 60);
/// The name by which Claude Code reports itself.
const CLAUDE_CODE: &str = "claude-code";

/// The handshake of the older era, for all requests after it.
#[derive(Debug, Clone, Default)]
pub struct Handshake {
    pub client: Option<String>,
    pub capabilities: Value,
}

/// The client of one request.
#[derive(Debug, Clone)]
pub struct ClientInfo {
    pub name: String,
    pub capabilities: Value,
    pub progress_token: Option<Value>,
    /// The thread of Codex.
    thread: Option<String>,
}

impl ClientInfo {
    /// Reads it from a request, or from the handshake before it.
    pub fn of(request: &Request, handshake: &Handshake) -> ClientInfo {
        let name = match request.era {
            Era::Modern => request.own_meta("clientInfo").and_then(|info| info["name"].as_str()).map(str::to_owned),
            Era::Legacy => None,
        };
        let capabilities = match request.era {
            Era::Modern => request.own_meta("clientCapabilities").cloned().unwrap_or_default(),
            Era::Legacy => handshake.capabilities.clone(),
        };
        let token = request.meta("progressToken").filter(|token| token.is_string() || token.is_number());
        ClientInfo {
            name: name.or_else(|| handshake.client.clone()).unwrap_or_else(|| "unknown".into()),
            capabilities,
            progress_token: token.cloned(),
            thread: request.meta("threadId").and_then(Value::as_str).filter(|id| !id.is_empty()).map(str::to_owned),
        }
    }

    /// Returns the longest wait of one call.
    pub fn max_wait(&self, option: Option<Duration>) -> Duration {
        match (option, &self.progress_token) {
            (Some(time), _) => time,
            (None, _) if self.name == CLAUDE_CODE => CLAUDE_CODE_WAIT,
            (None, Some(_)) => PROGRESS_WAIT,
            (None, None) => SILENT_WAIT,
        }
    }

    /// Reports whether the client takes a task in place of a result.
    pub fn has_tasks(&self) -> bool {
        self.capabilities["extensions"].get(TASKS_EXTENSION).is_some()
    }

    /// Reports whether the client shows forms to its user.
    pub fn has_elicitation(&self) -> bool {
        let elicitation = &self.capabilities["elicitation"];
        // Without a mode it is the form.
        elicitation.as_object().is_some_and(|modes| modes.is_empty() || modes.contains_key("form"))
    }

    /// Returns the session of a call: the option, else the argument that a plugin adds, else that of the agent, else one of
    /// this server.
    pub fn session(&self, option: Option<&str>, arguments: &Map<String, Value>) -> String {
        self.session_in(option, arguments, |name| std::env::var(name).ok())
    }

    fn session_in(
        &self,
        option: Option<&str>,
        arguments: &Map<String, Value>,
        var: impl Fn(&str) -> Option<String>,
    ) -> String {
        let set = |name: &str| var(name).filter(|value| !value.is_empty());
        let injected = arguments.get("_session").and_then(Value::as_str).filter(|key| !key.is_empty());
        if let Some(key) = option.or(injected) {
            return key.to_owned();
        }
        if let Some(key) = set(agent_session::SESSION_VAR) {
            return key;
        }
        let claude = set("CLAUDE_CODE_SESSION_ID").map(|id| format!("claude:{id}"));
        let codex = || self.thread.clone().or_else(|| set("CODEX_THREAD_ID")).map(|id| format!("codex:{id}"));
        claude.or_else(codex).unwrap_or_else(|| {
            let name: String = self.name.chars().filter(|c| !c.is_control()).take(40).collect();
            format!("mcp:{name}:{}-{}", std::process::id(), sys::own_start_ticks())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Message;
    use serde_json::json;

    fn client(meta: Value) -> ClientInfo {
        let line = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"_meta": meta}});
        let Message::Request(request) = Message::read(line.to_string().as_bytes()) else { panic!("a request") };
        ClientInfo::of(&request, &Handshake { client: Some("legacy".into()), capabilities: Value::Null })
    }

    #[test]
    fn a_wait_is_bounded_by_what_the_client_bears() {
        let named = |name: &str| {
            client(
                json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": {"name": name, "version": "1"}}),
            )
        };
        let seconds = |client: &ClientInfo, option| client.max_wait(option).as_secs();
        assert_eq!(seconds(&client(json!({})), None), 50);
        assert_eq!(seconds(&client(json!({"progressToken": 7})), None), 280);
        assert_eq!(seconds(&named("claude-code"), None), 1500);
        assert_eq!(seconds(&named("claude-code"), Some(Duration::from_secs(3))), 3);
    }

    #[test]
    fn the_session_is_the_most_exact_one_that_is_known() {
        let all = [("TOOLD_SESSION", "t"), ("CLAUDE_CODE_SESSION_ID", "c"), ("CODEX_THREAD_ID", "e")];
        let codex = client(json!({"threadId": "x"}));
        let session = |option: Option<&str>, injected: Value, vars: &[(&str, &str)]| {
            let arguments = injected.as_object().cloned().unwrap_or_default();
            codex.session_in(option, &arguments, |name| {
                vars.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
            })
        };
        assert_eq!(session(Some("o"), json!({"_session": "i"}), &all), "o");
        assert_eq!(session(None, json!({"_session": "i"}), &all), "i");
        assert_eq!(session(None, json!({}), &all), "t");
        assert_eq!(session(None, json!({}), &all[1..]), "claude:c");
        assert_eq!(session(None, json!({}), &all[2..]), "codex:x");
        let own = client(json!({})).session_in(None, &Map::new(), |_| None);
        assert!(own.starts_with(&format!("mcp:legacy:{}-", std::process::id())), "{own}");
    }
}
