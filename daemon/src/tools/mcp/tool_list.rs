//! The tools of a server: as it lists them, and as toold lists them. Pure.

use crate::config::mcp::McpConfig;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::HashSet;
use toold_proto::tools::{Effect, Tool, ToolState};
use toold_tools::definition::MAX_PROVIDER_TOOLS;
use toold_tools::{Definition, check_definition, identifier};

/// The most pages of one list: a server may answer with a next page for ever.
pub const MAX_PAGES: usize = 200;
/// The most bytes of all tools of one server.
pub const MAX_LIST_BYTES: usize = 4 << 20;

/// Hints of a server about a tool. They are not trusted where they would matter: the config overrides them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Annotations {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only_hint: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idempotent_hint: Option<bool>,
}

/// A tool as its server lists it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerTool {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(default)]
    pub input_schema: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_schema: Option<Value>,
    #[serde(default)]
    pub annotations: Option<Annotations>,
}

/// The tools of a server, page by page.
#[derive(Debug, Default)]
pub struct ToolList {
    pub tools: Vec<ServerTool>,
    /// Reasons why others were left out.
    pub refused: Vec<String>,
    identifiers: HashSet<String>,
    bytes: usize,
}

impl ToolList {
    /// Adds a page. One wrong tool does not take the others with it. Returns the position of the next page.
    pub fn add(&mut self, mut result: Value) -> Result<Option<String>, String> {
        let listed = match result.get_mut("tools").map(Value::take) {
            Some(Value::Array(listed)) => listed,
            Some(_) | None => return Err("its list of tools has no `tools`".into()),
        };
        for tool in listed {
            self.bytes += tool.to_string().len();
            if self.bytes > MAX_LIST_BYTES || self.tools.len() >= MAX_PROVIDER_TOOLS {
                return Err(format!(
                    "it has more than {MAX_PROVIDER_TOOLS} tools, or more than {MAX_LIST_BYTES} bytes of them"
                ));
            }
            match self.check(tool) {
                Ok(tool) => self.tools.push(tool),
                Err(why) => self.refused.push(why),
            }
        }
        // An empty text is a position too.
        Ok(result.get("nextCursor").and_then(Value::as_str).map(String::from))
    }

    fn check(&mut self, tool: Value) -> Result<ServerTool, String> {
        let mut tool: ServerTool = serde_json::from_value(tool).map_err(|e| format!("a tool cannot be read: {e}"))?;
        if !tool.input_schema.is_object() {
            tool.input_schema = Value::Object(Map::from_iter([("type".to_string(), "object".into())]));
        }
        let definition = Definition {
            name: &tool.name,
            description: tool.description.as_deref().unwrap_or_default(),
            input_schema: &tool.input_schema,
            output_schema: None,
        };
        check_definition(&definition).map_err(|e| e.to_string())?;
        if !self.identifiers.insert(identifier(&tool.name)) {
            return Err(format!("tool {:?} has the identifier of another one in scripts", tool.name));
        }
        Ok(tool)
    }
}

/// Returns true if the config lets this tool be called.
pub fn is_allowed(config: &McpConfig, name: &str) -> bool {
    config.tools.as_ref().is_none_or(|allowed| allowed.iter().any(|allowed| allowed == name))
}

/// Returns the effect of a tool, and true if a call of it may be repeated.
pub fn effect(config: &McpConfig, tool: &ServerTool) -> (Effect, bool) {
    let hints = tool.annotations.clone().unwrap_or_default();
    let is_read = hints.read_only_hint == Some(true);
    let by_hints = if is_read { Effect::Read } else { Effect::Write };
    let effect = config.effect_override.get(&tool.name).copied().unwrap_or(by_hints);
    // Where the config denies that it only reads, its hint proves nothing.
    let is_idempotent = effect == Effect::Read || hints.idempotent_hint == Some(true);
    (effect, is_idempotent)
}

/// Returns the tools that can be called, with their full names.
pub fn to_tools(
    provider: &str,
    config: &McpConfig,
    listed: &[ServerTool],
    state: ToolState,
    why: Option<&str>,
) -> Vec<Tool> {
    let allowed = listed.iter().filter(|tool| is_allowed(config, &tool.name));
    let tool = |tool: &ServerTool| {
        let (effect, idempotent) = effect(config, tool);
        Tool {
            name: format!("{provider}.{}", tool.name),
            provider: provider.into(),
            description: tool.description.clone().or_else(|| tool.title.clone()).unwrap_or_default(),
            input_schema: tool.input_schema.clone(),
            // The result that a caller gets has the structured content in `structured`, so that its schema is not that of the whole.
            output_schema: None,
            effect,
            idempotent,
            parallel: true,
            timeout_ms: config.timeout_ms,
            state,
            why: why.map(String::from),
        }
    };
    allowed.map(tool).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_wrong_tool_is_left_out_and_an_empty_cursor_is_a_next_page() {
        let mut list = ToolList::default();
        let page = json!({"tools": [{"name": "a", "inputSchema": {"type": "object"}}, {"name": 7}, {"name": "b c"}, {}, {"name": "x.Y-z"},
            {"name": "x_Y_z"}, {"name": "n", "inputSchema": {"type": "array"}}], "nextCursor": ""});
        assert_eq!(list.add(page), Ok(Some(String::new())));
        assert_eq!(list.add(json!({"tools": [{"name": "last"}], "nextCursor": null})), Ok(None));
        let names: Vec<&str> = list.tools.iter().map(|tool| tool.name.as_str()).collect();
        assert_eq!((names, list.refused.len()), (vec!["a", "x.Y-z", "last"], 5), "{:?}", list.refused);
        assert_eq!(list.tools[2].input_schema, json!({"type": "object"}));
        assert!(list.add(json!({})).is_err());
        let long = json!({"tools": [{"name": "long", "description": "x".repeat(MAX_LIST_BYTES)}]});
        assert!(list.add(long).is_err());
    }

    #[test]
    fn annotations_give_the_effect_and_the_config_wins() {
        let config = McpConfig {
            effect_override: [("lies".to_string(), Effect::Exec), ("reads".to_string(), Effect::Read)].into(),
            tools: Some(vec!["lies".into(), "reads".into(), "plain".into(), "look".into(), "again".into()]),
            timeout_ms: Some(7),
            ..McpConfig::of_command(&["x"])
        };
        let listed = json!([
            {"name": "plain", "description": "d"},
            {"name": "look", "title": "t", "annotations": {"readOnlyHint": true}},
            {"name": "again", "annotations": {"idempotentHint": true, "readOnlyHint": false}},
            {"name": "lies", "annotations": {"readOnlyHint": true}},
            {"name": "reads"},
            {"name": "hidden"},
        ]);
        let listed: Vec<ServerTool> = serde_json::from_value(listed).expect("tools");
        let tools = to_tools("s", &config, &listed, ToolState::Ready, None);
        let seen: Vec<_> = tools.iter().map(|t| (t.name.as_str(), t.effect, t.idempotent)).collect();
        let expected = [
            ("s.plain", Effect::Write, false),
            ("s.look", Effect::Read, true),
            ("s.again", Effect::Write, true),
            ("s.lies", Effect::Exec, false),
            ("s.reads", Effect::Read, true),
        ];
        assert_eq!(seen, expected);
        assert_eq!((tools[0].description.as_str(), tools[1].description.as_str()), ("d", "t"));
        assert_eq!(tools[0].timeout_ms, Some(7));
    }
}
