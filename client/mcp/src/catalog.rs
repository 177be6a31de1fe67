//! The six tools, as `tools/list` shows them, and the instructions for the agent. Flat schemas, fixed order: every agent takes them
//! unchanged, and what the model pays for them is known.

use serde_json::Value;

/// The text that Codex and Gemini put before the model.
pub const INSTRUCTIONS: &str = "Use proc_start for anything that may run > 30 s or must outlive this chat: it survives you and this server. \
Do not poll: proc_wait answers at the end of a process, at a match, or when it asks for input. You are told of exits: a line \
`events:` ends a result. Ids and names stay valid; proc_list finds them again. proc_read goes on at the cursor of a result.";

/// One tool.
pub struct ToolEntry {
    pub name: &'static str,
    /// It changes nothing.
    pub is_read_only: bool,
    definition: &'static str,
}

impl ToolEntry {
    /// Returns the entry of `tools/list`.
    pub fn definition(&self) -> Value {
        serde_json::from_str(self.definition).unwrap_or_default()
    }
}

pub const TOOLS: [ToolEntry; 6] = [
    ToolEntry {
        name: "proc_start",
        is_read_only: false,
        definition: r#"{"name":"proc_start","description":"Run a shell command in the background. Answers when it ends, is ready, asks, or after wait_s","inputSchema":{"type":"object","properties":{"command":{"type":"string"},"cwd":{"type":"string"},"name":{"type":"string","description":"unique while it runs"},"env":{"type":"object","additionalProperties":{"type":"string"}},"wait_s":{"type":"number","description":"default 10"},"ready":{"type":"string","description":"regex of output, or port:3000"},"tty":{"type":"boolean"},"timeout_s":{"type":"number","description":"then kill"},"replace":{"type":"boolean","description":"end the one of this name"}},"required":["command"],"additionalProperties":false},"annotations":{"destructiveHint":false},"_meta":{"anthropic/alwaysLoad":true}}"#,
    },
    ToolEntry {
        name: "proc_wait",
        is_read_only: true,
        definition: r#"{"name":"proc_wait","description":"Wait until a process ends, meets a condition or asks for input. Still running: call again","inputSchema":{"type":"object","properties":{"ids":{"type":"array","items":{"type":"string"},"description":"ids or names; default all"},"all":{"type":"boolean"},"match":{"type":"string","description":"regex"},"port":{"type":"integer"},"quiet_s":{"type":"number"},"timeout_s":{"type":"number"}},"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":false},"_meta":{"anthropic/alwaysLoad":true}}"#,
    },
    ToolEntry {
        name: "proc_read",
        is_read_only: true,
        definition: r#"{"name":"proc_read","description":"Read output: the last lines, or from a cursor or line on","inputSchema":{"type":"object","properties":{"id":{"type":"string"},"lines":{"type":"integer","description":"default 60"},"cursor":{"type":"integer"},"from_line":{"type":"integer","description":"from 0"},"grep":{"type":"string"},"stream":{"type":"string","enum":["stdout","stderr"]}},"required":["id"],"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":false},"_meta":{"anthropic/alwaysLoad":true}}"#,
    },
    ToolEntry {
        name: "proc_write",
        is_read_only: false,
        definition: r#"{"name":"proc_write","description":"Type into a process, return what it prints","inputSchema":{"type":"object","properties":{"id":{"type":"string"},"text":{"type":"string"},"enter":{"type":"boolean","description":"default true"},"key":{"type":"string","enum":["enter","ctrl-c","ctrl-d","ctrl-z","esc","tab","up","down","left","right","close"]},"wait_s":{"type":"number","description":"default 1"}},"required":["id"],"additionalProperties":false},"annotations":{"destructiveHint":false},"_meta":{"anthropic/alwaysLoad":true}}"#,
    },
    ToolEntry {
        name: "proc_kill",
        is_read_only: false,
        definition: r#"{"name":"proc_kill","description":"End processes and all they started","inputSchema":{"type":"object","properties":{"ids":{"type":"array","items":{"type":"string"}},"signal":{"type":"string"}},"required":["ids"],"additionalProperties":false},"annotations":{"destructiveHint":true,"openWorldHint":false},"_meta":{"anthropic/alwaysLoad":true}}"#,
    },
    ToolEntry {
        name: "proc_list",
        is_read_only: true,
        definition: r#"{"name":"proc_list","description":"List your processes","inputSchema":{"type":"object","properties":{"everyone":{"type":"boolean"},"ended":{"type":"boolean"}},"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":false},"_meta":{"anthropic/alwaysLoad":true}}"#,
    },
];

/// Returns the tools that are offered.
pub fn offered(is_read_only: bool) -> impl Iterator<Item = &'static ToolEntry> {
    TOOLS.iter().filter(move |tool| tool.is_read_only || !is_read_only)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The most characters of the compact list, annotations and `_meta` included.
    const MAX_LIST_CHARS: usize = 3000;

    #[test]
    fn the_list_is_valid_flat_and_short() {
        let list: Vec<Value> = TOOLS.iter().map(ToolEntry::definition).collect();
        let text = serde_json::to_string(&list).expect("it prints");
        assert!(text.chars().count() <= MAX_LIST_CHARS, "{} characters", text.chars().count());
        for (tool, entry) in list.iter().zip(&TOOLS) {
            assert_eq!(tool["name"], entry.name);
            assert_eq!(tool["annotations"]["readOnlyHint"].as_bool().unwrap_or(false), entry.is_read_only);
            // Left out is true.
            let is_open = tool["annotations"]["openWorldHint"].as_bool().unwrap_or(true);
            assert_eq!(is_open, matches!(entry.name, "proc_start" | "proc_write"));
            assert_eq!(tool["_meta"]["anthropic/alwaysLoad"], true);
            let schema = &tool["inputSchema"];
            assert_eq!((&schema["type"], &schema["additionalProperties"]), (&"object".into(), &false.into()));
        }
        for keyword in ["$ref", "oneOf", "anyOf", "allOf", "outputSchema"] {
            assert!(!text.contains(keyword), "{keyword}");
        }
        assert!(INSTRUCTIONS.chars().count() <= 400, "{}", INSTRUCTIONS.chars().count());
    }
}
