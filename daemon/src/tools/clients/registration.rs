//! A registration: the tools that a client serves, checked. Pure.

use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use toold_proto::tools::{Effect, Tool, ToolDefinition, ToolState, ToolsRegisterParams};
use toold_proto::{ErrorKind, RpcError};
use toold_tools::{Definition, DefinitionError, check_definitions, check_provider, identifier};

/// The time for which calls wait for a client that has gone, unless its registration has another one.
pub const DEFAULT_RECONNECT_MS: u64 = 5_000;
/// The longest such time: a call must not wait for hours for a client that has crashed.
const MAX_RECONNECT_MS: u64 = 600_000;
/// Bytes of all definitions of a provider. The daemon keeps them; a server of a hundred tools has about 200,000.
const MAX_DEFINITIONS_BYTES: usize = 1 << 20;

/// The rules of this daemon for registrations.
#[derive(Debug, Clone, Default)]
pub struct RegistrationRules {
    /// The names of the MCP servers of the config.
    pub mcp_servers: Vec<String>,
    /// Bytes of a session key: `exec.max_key_bytes`.
    pub max_key_bytes: u64,
}

/// The tools of a client.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolRegistration {
    pub provider: String,
    /// With their full names, ready.
    pub tools: Vec<Arc<Tool>>,
    /// The session whose calls may use them. None: every session.
    pub session_key: Option<String>,
    pub reconnect: Duration,
    pub takeover: bool,
}

impl ToolRegistration {
    /// Checks the parameters of `tools.register`.
    pub fn new(params: ToolsRegisterParams, rules: &RegistrationRules) -> Result<ToolRegistration, RpcError> {
        check_name(&params.provider, rules)?;
        let reconnect_ms = params.reconnect_ms.unwrap_or(DEFAULT_RECONNECT_MS);
        if reconnect_ms > MAX_RECONNECT_MS {
            let problem = format!("must be at most {MAX_RECONNECT_MS}, not {reconnect_ms}");
            return Err(RpcError::param("reconnect_ms", problem));
        }
        check_session(params.session_key.as_deref(), rules)?;
        let definitions = params.tools.iter().map(|tool| Definition {
            name: &tool.name,
            description: &tool.description,
            input_schema: &tool.input_schema,
            output_schema: tool.output_schema.as_ref(),
        });
        check_definitions(definitions).map_err(definition_error)?;
        check_size(&params.tools)?;
        let tools = params.tools.into_iter().map(|tool| Arc::new(full(&params.provider, tool))).collect();
        Ok(ToolRegistration {
            provider: params.provider,
            tools,
            session_key: params.session_key,
            reconnect: Duration::from_millis(reconnect_ms),
            takeover: params.takeover,
        })
    }

    /// Finds a tool by its name without the provider.
    pub fn tool(&self, name: &str) -> Option<&Arc<Tool>> {
        self.tools.iter().find(|tool| short_name(tool) == name)
    }

    pub fn is_visible_to(&self, session_key: Option<&str>) -> bool {
        self.session_key.is_none() || self.session_key.as_deref() == session_key
    }
}

/// Returns the name without that of the provider.
fn short_name(tool: &Tool) -> &str {
    tool.name.get(tool.provider.len() + 1..).unwrap_or_default()
}

fn check_session(key: Option<&str>, rules: &RegistrationRules) -> Result<(), RpcError> {
    let Some(key) = key else { return Ok(()) };
    if key.is_empty() {
        return Err(RpcError::param("session_key", "must not be empty; leave it out to serve every session"));
    }
    if key.contains('\0') {
        return Err(RpcError::param("session_key", "must not contain a NUL character"));
    }
    let max = rules.max_key_bytes;
    if key.len() as u64 > max {
        let problem = format!("must be at most {max} bytes, not {} (config key `exec.max_key_bytes`)", key.len());
        return Err(RpcError::param("session_key", problem));
    }
    Ok(())
}

fn check_name(provider: &str, rules: &RegistrationRules) -> Result<(), RpcError> {
    check_provider(provider).map_err(definition_error)?;
    if provider.contains('-') {
        return Err(RpcError::param("provider", "must have lower-case letters, digits and `_` only"));
    }
    // Those of MCP servers may have other characters, which a script does not see.
    if let Some(server) = rules.mcp_servers.iter().find(|server| identifier(server) == identifier(provider)) {
        let problem = format!("is the name of the MCP server {server:?} of the config; choose another one");
        return Err(RpcError::param("provider", problem));
    }
    Ok(())
}

fn definition_error(error: DefinitionError) -> RpcError {
    let message = error.to_string();
    match error {
        DefinitionError::Provider { problem, .. } => RpcError::param("provider", problem),
        DefinitionError::Tool { name, .. } => RpcError::param("tools", message).with("tool", name),
        DefinitionError::SameIdentifier { first, second, identifier } => {
            RpcError::param("tools", message).with("tools", vec![first, second]).with("identifier", identifier)
        }
        DefinitionError::TooMany { .. } => RpcError::param("tools", message),
    }
}

fn check_size(tools: &[ToolDefinition]) -> Result<(), RpcError> {
    let schema = |schema: &Value| serde_json::to_string(schema).map_or(0, |text| text.len());
    let bytes: usize = tools
        .iter()
        .map(|tool| {
            let output = tool.output_schema.as_ref().map_or(0, schema);
            tool.name.len() + tool.description.len() + schema(&tool.input_schema) + output
        })
        .sum();
    if bytes > MAX_DEFINITIONS_BYTES {
        let message = format!("the tools have {bytes} bytes; those of a provider have at most {MAX_DEFINITIONS_BYTES}");
        return Err(RpcError::new(ErrorKind::Limit, message).with("limit", "tool_definitions"));
    }
    match tools.iter().position(|tool| tool.timeout_ms == Some(0)) {
        Some(index) => Err(RpcError::too_small(&format!("tools[{index}].timeout_ms"), 1, 0)),
        None => Ok(()),
    }
}

fn full(provider: &str, tool: ToolDefinition) -> Tool {
    Tool {
        name: format!("{provider}.{}", tool.name),
        provider: provider.into(),
        description: tool.description,
        input_schema: tool.input_schema,
        output_schema: tool.output_schema,
        effect: tool.effect.unwrap_or(Effect::Write),
        idempotent: tool.idempotent,
        parallel: tool.parallel.unwrap_or(true),
        timeout_ms: tool.timeout_ms,
        state: ToolState::Ready,
        why: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn register(value: Value) -> Result<ToolRegistration, RpcError> {
        let rules = RegistrationRules { mcp_servers: vec!["my-server".into()], max_key_bytes: 100 };
        ToolRegistration::new(serde_json::from_value(value).expect("parameters"), &rules)
    }

    fn tool(name: &str) -> Value {
        json!({ "name": name, "description": "x", "input_schema": { "type": "object" } })
    }

    #[test]
    fn a_tool_has_its_full_name_and_the_defaults() {
        let registration = register(json!({ "provider": "linear", "tools": [tool("createIssue")] })).expect("legal");
        let tool = Tool {
            name: "linear.createIssue".into(),
            provider: "linear".into(),
            description: "x".into(),
            input_schema: json!({ "type": "object" }),
            output_schema: None,
            effect: Effect::Write,
            idempotent: false,
            parallel: true,
            timeout_ms: None,
            state: ToolState::Ready,
            why: None,
        };
        assert_eq!(registration.tool("createIssue").map(|found| &**found), Some(&tool));
        assert_eq!((registration.reconnect.as_millis(), registration.takeover), (5000, false));
        assert!(registration.is_visible_to(None) && registration.is_visible_to(Some("s")));
    }

    #[test]
    fn a_registration_that_is_refused_names_the_parameter() {
        let named = |provider: &str| json!({ "provider": provider, "tools": [tool("a")] });
        for (call, param) in [
            (named("native"), "provider"),
            (named("terminal"), "provider"),
            (named("my_server"), "provider"),
            (named("a-b"), "provider"),
            (named("A"), "provider"),
            (json!({ "provider": "p", "tools": [tool("a b")] }), "tools"),
            (json!({ "provider": "p", "tools": [tool("a-b"), tool("a_b")] }), "tools"),
            (json!({ "provider": "p", "tools": [], "reconnect_ms": 600_001 }), "reconnect_ms"),
            (json!({ "provider": "p", "tools": [], "session_key": "" }), "session_key"),
            (json!({ "provider": "p", "tools": [], "session_key": "x".repeat(101) }), "session_key"),
        ] {
            let error = register(call.clone()).expect_err("refused");
            assert_eq!((error.kind(), &error.data["param"]), (Some(ErrorKind::InvalidParams), &json!(param)), "{call}");
        }
        let both =
            register(json!({ "provider": "p", "tools": [tool("a-b"), tool("a_b")] })).expect_err("one identifier");
        assert_eq!((&both.data["tools"], &both.data["identifier"]), (&json!(["a-b", "a_b"]), &json!("a_b")));
        let mut slow = tool("a");
        slow["timeout_ms"] = json!(0);
        let slow = register(json!({ "provider": "p", "tools": [slow] })).expect_err("no time");
        assert_eq!(slow.data["param"], json!("tools[0].timeout_ms"));
    }

    #[test]
    fn the_definitions_of_a_provider_have_a_bound_together() {
        let long = |index: usize| json!({ "name": format!("t{index}"), "description": "x".repeat(60_000), "input_schema": { "type": "object" } });
        let call = |count: usize| json!({ "provider": "p", "tools": (0..count).map(long).collect::<Vec<_>>() });
        assert!(register(call(17)).is_ok());
        assert_eq!(register(call(18)).expect_err("too long").kind(), Some(ErrorKind::Limit));
    }
}
