//! Toolsets: the same functions with the names, parameters and texts that certain models were trained on.
//!
//! A call goes `parse` → a [`ToolsetCall`], which the daemon runs → a function of `codex` or `hermes` that renders the outcome.

pub mod codex;
pub mod hermes;
pub mod text;

use crate::native::NATIVE_PROVIDER;
use crate::schema::{Mismatch, check};
use serde_json::{Map, Value, json};
use std::fmt;
use toold_proto::tools::{Effect, Tool, ToolState, Toolset};

/// A call of a tool of a toolset, as the daemon runs it.
#[derive(Debug, Clone, PartialEq)]
pub enum ToolsetCall {
    /// A tool of toold under its own name. Its arguments are not checked yet, and its result needs no text.
    Tool {
        name: String,
        args: Map<String, Value>,
    },
    Codex(codex::CodexCall),
    Hermes(hermes::HermesCall),
}

/// The reason why a call is not made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CallError {
    /// The toolset does not have this tool.
    UnknownTool,
    Arguments(Mismatch),
}

impl fmt::Display for CallError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallError::UnknownTool => f.write_str("no such tool"),
            CallError::Arguments(mismatch) => mismatch.fmt(f),
        }
    }
}

impl std::error::Error for CallError {}

impl From<Mismatch> for CallError {
    fn from(mismatch: Mismatch) -> CallError {
        CallError::Arguments(mismatch)
    }
}

/// Returns the tools of a toolset that rest on tools which the caller may use. A function that is disabled appears in none of
/// them, not in a description either. Tools of other providers follow under their own names. `in_scripts` are the names of tools
/// that scripts get.
pub fn toolset(toolset: Toolset, enabled: &[Tool], in_scripts: &[String]) -> Vec<Tool> {
    let has = |name: &str| enabled.iter().any(|tool| tool.provider == NATIVE_PROVIDER && tool.name == name);
    let mut tools = match toolset {
        Toolset::Toold => return enabled.to_vec(),
        Toolset::Codex => codex::tools(has),
        Toolset::Hermes => hermes::tools(enabled, in_scripts),
    };
    tools.extend(enabled.iter().filter(|tool| tool.provider != NATIVE_PROVIDER).cloned());
    tools
}

/// Reads a call of a tool of a toolset, and checks its arguments.
pub fn parse(toolset: Toolset, name: &str, args: Map<String, Value>) -> Result<ToolsetCall, CallError> {
    // Names of other providers have a dot, those of a toolset have none.
    if toolset == Toolset::Toold || name.contains('.') {
        return Ok(ToolsetCall::Tool { name: name.into(), args });
    }
    match toolset {
        Toolset::Codex => codex::parse(name, args).map(ToolsetCall::Codex),
        Toolset::Hermes | Toolset::Toold => hermes::parse(name, args),
    }
}

/// Checks arguments by the schema of a tool among those given.
fn check_arguments(tools: &[Tool], name: &str, args: &Value) -> Result<(), CallError> {
    let tool = tools.iter().find(|tool| tool.name == name).ok_or(CallError::UnknownTool)?;
    Ok(check(&tool.input_schema, args)?)
}

/// Makes a tool of a toolset. The function behind it is native, and its result is a text.
fn define(name: &str, effect: Effect, description: &str, required: &[&str], properties: Value) -> Tool {
    Tool {
        name: name.into(),
        provider: NATIVE_PROVIDER.into(),
        description: description.into(),
        input_schema: json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        }),
        output_schema: None,
        effect,
        idempotent: effect == Effect::Read,
        parallel: true,
        timeout_ms: None,
        state: ToolState::Ready,
        why: None,
    }
}

/// Returns an argument as a text.
fn text(args: &Value, name: &str) -> Option<String> {
    args.get(name).and_then(Value::as_str).map(String::from)
}

/// Returns an argument as a count. Models send `10000.0` too; less than 0 is 0.
fn count(args: &Value, name: &str) -> Option<u64> {
    let value = args.get(name)?;
    value.as_u64().or_else(|| value.as_f64().map(|number| number as u64))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::native;

    fn names(tools: &[Tool]) -> Vec<&str> {
        tools.iter().map(|tool| tool.name.as_str()).collect()
    }

    fn all() -> Vec<String> {
        native().into_iter().map(|tool| tool.name).collect()
    }

    fn without(name: &str) -> Vec<Tool> {
        native().into_iter().filter(|tool| tool.name != name).collect()
    }

    #[test]
    fn toolsets_have_the_names_that_models_know() {
        let codex = toolset(Toolset::Codex, &native(), &all());
        let expected = [
            "exec_command",
            "write_stdin",
            "shell",
            "shell_command",
            "apply_patch",
            "read_file",
            "list_dir",
            "grep_files",
        ];
        assert_eq!(names(&codex), expected);
        let hermes = toolset(Toolset::Hermes, &native(), &all());
        let expected = [
            "terminal",
            "process",
            "execute_code",
            "read_file",
            "write_file",
            "search_files",
            "patch",
            "web_search",
            "web_extract",
        ];
        assert_eq!(names(&hermes), expected);
        assert_eq!(toolset(Toolset::Toold, &native(), &all()), native());
    }

    #[test]
    fn a_disabled_function_is_described_nowhere() {
        for kind in [Toolset::Toold, Toolset::Codex, Toolset::Hermes] {
            for name in names(&native()) {
                let listed = serde_json::to_string(&toolset(kind, &without(name), &all())).expect("tools print");
                let mentions =
                    listed.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|part| part == &name).count();
                assert_eq!(mentions, 0, "{kind:?} without {name}: {listed}");
            }
        }
        let codex = toolset(Toolset::Codex, &without("terminal"), &all());
        assert_eq!(names(&codex), ["apply_patch", "read_file", "list_dir", "grep_files"]);
        let none = toolset(Toolset::Hermes, &[], &all());
        assert_eq!(names(&none), ["execute_code"]);
        assert!(!none[0].description.contains("import"), "{}", none[0].description);
    }

    #[test]
    fn tools_of_other_providers_keep_their_names() {
        let mut foreign = native().remove(0);
        (foreign.name, foreign.provider) = ("linear.create_issue".into(), "linear".into());
        for kind in [Toolset::Codex, Toolset::Hermes] {
            assert_eq!(toolset(kind, std::slice::from_ref(&foreign), &all()).last(), Some(&foreign));
            let call = parse(kind, "linear.create_issue", Map::new());
            assert_eq!(call, Ok(ToolsetCall::Tool { name: "linear.create_issue".into(), args: Map::new() }));
        }
    }

    #[test]
    fn a_tool_of_another_toolset_is_unknown() {
        assert_eq!(parse(Toolset::Codex, "terminal", Map::new()), Err(CallError::UnknownTool));
        assert_eq!(parse(Toolset::Hermes, "exec_command", Map::new()), Err(CallError::UnknownTool));
    }
}
