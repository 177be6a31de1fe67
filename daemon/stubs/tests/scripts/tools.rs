//! Tools of the fake daemon.

use serde_json::{Value, json};
use toold_proto::tools::{Effect, Tool, ToolState};

pub fn tool(name: &str, schema: Value) -> Tool {
    Tool {
        name: name.into(),
        provider: name.split_once('.').map_or("native", |(provider, _)| provider).into(),
        description: format!("Does {name}.\n\nSecond paragraph with \\ and \"\"\" in it."),
        input_schema: schema,
        output_schema: None,
        effect: Effect::Write,
        idempotent: false,
        parallel: true,
        timeout_ms: None,
        state: ToolState::Ready,
        why: None,
    }
}

/// Tools that the fake daemon knows how to answer, and some that only have awkward names.
pub fn all() -> Vec<Tool> {
    let open = json!({"type": "object", "properties": {"ms": {"type": "integer"}}, "additionalProperties": true});
    let mut found = vec![
        tool(
            "terminal",
            json!({
                "type": "object",
                "properties": {
                    "command": {"type": "string", "description": "a command line"},
                    "timeout": {"type": ["number", "null"], "default": null},
                    "workdir": {"type": "string"},
                    "background": {"type": "boolean", "default": false},
                    "mode": {"enum": ["a", "b"], "default": "a"}
                },
                "required": ["command"],
                "additionalProperties": false
            }),
        ),
        tool(
            "linear.create-issue",
            json!({
                "type": "object",
                "properties": {"title": {"type": "string"}, "from": {"type": "string"}, "labels": {"type": "array", "items": {"type": "string"}, "default": []}},
                "required": ["title"]
            }),
        ),
        tool("linear.import", json!({"type": "object"})),
        tool("list", json!({"type": "object"})),
    ];
    found.extend(["echo", "hang", "fail", "big", "odd", "twice", "reverse"].map(|name| tool(name, open.clone())));
    found
}
