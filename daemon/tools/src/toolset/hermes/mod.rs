//! The toolset of the Hermes agent: its tools, and their calls.

mod render;

pub use render::{
    ScriptEnd, ScriptOutcome, WaitEnd, close, error, execute_code, kill, list, log, poll, terminal, wait, write,
};

use super::{CallError, ToolsetCall, check_arguments, count, define, text};
use crate::native::{NATIVE_PROVIDER, is_native};
use crate::schema::Mismatch;
use serde_json::{Map, Value, json};
use toold_proto::tools::{Effect, Tool};

/// Actions of `process`.
const ACTIONS: [&str; 8] = ["list", "poll", "log", "wait", "kill", "write", "submit", "close"];
/// Lines of `log`.
const LOG_LINES: u64 = 200;

/// A call of a tool that only this toolset has.
#[derive(Debug, Clone, PartialEq)]
pub enum HermesCall {
    Process(ProcessCall),
    /// A Python script, as of `script.run`.
    ExecuteCode {
        code: String,
    },
}

/// An action of `process`. `id` is an id, a name or a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProcessCall {
    List,
    Poll {
        id: String,
    },
    Log {
        id: String,
        lines: LogLines,
        limit: u64,
    },
    /// Without a time: the longest that the daemon waits.
    Wait {
        id: String,
        timeout_seconds: Option<u64>,
    },
    Kill {
        id: String,
    },
    Write {
        id: String,
        data: String,
    },
    /// `data` and Enter.
    Submit {
        id: String,
        data: String,
    },
    Close {
        id: String,
    },
}

/// The lines that `log` returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLines {
    Last,
    /// From this line on, from 0.
    From(u64),
}

/// Returns the tools that rest on tools which the caller may use.
pub(super) fn tools(enabled: &[Tool], in_scripts: &[String]) -> Vec<Tool> {
    let native: Vec<&Tool> = enabled.iter().filter(|tool| tool.provider == NATIVE_PROVIDER).collect();
    let (terminal, others): (Vec<&Tool>, Vec<&Tool>) = native.iter().copied().partition(|tool| tool.name == "terminal");
    let process = terminal.iter().map(|_| process_tool());
    let mut tools: Vec<Tool> = terminal.iter().copied().cloned().chain(process).collect();
    let callable: Vec<&Tool> = native.iter().copied().filter(|tool| in_scripts.contains(&tool.name)).collect();
    tools.push(execute_code_tool(&callable));
    tools.extend(others.into_iter().cloned());
    tools
}

/// Reads a call, and checks the arguments of the tools that only this toolset has.
pub(super) fn parse(name: &str, mut args: Map<String, Value>) -> Result<ToolsetCall, CallError> {
    match name {
        "process" => {
            // Some models send a number.
            if let Some(Value::Number(id)) = args.get("session_id") {
                let id = id.to_string();
                args.insert("session_id".into(), id.into());
            }
            process(&Value::Object(args)).map(|call| ToolsetCall::Hermes(HermesCall::Process(call)))
        }
        "execute_code" => {
            let args = Value::Object(args);
            check_arguments(&[execute_code_tool(&[])], name, &args)?;
            let code = text(&args, "code").filter(|code| !code.trim().is_empty());
            let code = code.ok_or_else(|| mismatch("/code", "No code provided."))?;
            Ok(ToolsetCall::Hermes(HermesCall::ExecuteCode { code }))
        }
        _ if is_native(name) => Ok(ToolsetCall::Tool { name: name.into(), args }),
        _ => Err(CallError::UnknownTool),
    }
}

fn mismatch(pointer: &str, problem: &str) -> CallError {
    CallError::Arguments(Mismatch { pointer: pointer.into(), problem: problem.into() })
}

fn process(args: &Value) -> Result<ProcessCall, CallError> {
    let action = args.get("action").and_then(Value::as_str).unwrap_or_default();
    if !ACTIONS.contains(&action) {
        let problem = format!("Unknown process action: {action}. Use: {}", ACTIONS.join(", "));
        return Err(mismatch("/action", &problem));
    }
    check_arguments(&[process_tool()], "process", args)?;
    if action == "list" {
        return Ok(ProcessCall::List);
    }
    let id = text(args, "session_id").filter(|id| !id.is_empty());
    let id = id.ok_or_else(|| mismatch("/session_id", &format!("session_id is required for {action}")))?;
    let data = || text(args, "data").unwrap_or_default();
    Ok(match action {
        "poll" => ProcessCall::Poll { id },
        "log" => ProcessCall::Log {
            id,
            lines: count(args, "offset").map_or(LogLines::Last, LogLines::From),
            limit: count(args, "limit").unwrap_or(LOG_LINES),
        },
        "wait" => ProcessCall::Wait { id, timeout_seconds: count(args, "timeout") },
        "kill" => ProcessCall::Kill { id },
        "write" => ProcessCall::Write { id, data: data() },
        "submit" => ProcessCall::Submit { id, data: data() },
        // The check above leaves only `close`.
        _ => ProcessCall::Close { id },
    })
}

fn process_tool() -> Tool {
    define(
        "process",
        Effect::Exec,
        "Manage background processes started with terminal(background=true). Actions: list (show all), poll (status and new output), \
         log (output with pagination), wait (block until done or timeout), kill (terminate), write (send raw stdin data without \
         newline), submit (send data and Enter, for answering prompts), close (close stdin).",
        &["action"],
        json!({
            "action": {"type": "string", "enum": ACTIONS, "description": "Action to perform"},
            "session_id": {"type": ["string", "null"],
                "description": "Process ID (from terminal background output). Required for all actions except list."},
            "data": {"type": ["string", "null"], "description": "Text to send to stdin (for write and submit)"},
            "timeout": {"type": ["integer", "null"], "minimum": 1, "description": "Max seconds to block for wait"},
            "offset": {"type": ["integer", "null"], "minimum": 0, "description": "Line offset for log (default: the last lines)"},
            "limit": {"type": ["integer", "null"], "minimum": 1, "description": "Max lines for log (default: 200)"}
        }),
    )
}

/// Makes the tool that runs scripts. Its description has the tools that the script may call, and no others.
fn execute_code_tool(callable: &[&Tool]) -> Tool {
    let mut description = String::from(
        "Run a Python script, with the standard library, in the working directory. Print the final result to stdout; it is all \
         that comes back. Limits: 5 minutes, 50 KB of output.",
    );
    if !callable.is_empty() {
        let signatures: Vec<String> = callable.iter().map(|tool| format!("  {}", signature(tool))).collect();
        description.push_str(&format!(
            " The script can call tools. Use it for 3 or more calls with logic between them: loops, filters of large outputs, \
             branches. Use normal tool calls for a single call.\n\nAvailable via `from toold_tools import ...`; each returns a dict \
             and raises ToolError:\n\n{}\n\nAlso json_parse(text), shell_quote(s), retry(fn, max_attempts=3, delay=2), \
             gather([tool.later(...), ...], parallel=8) for calls at the same time.",
            signatures.join("\n")
        ));
    }
    define(
        "execute_code",
        Effect::Exec,
        &description,
        &["code"],
        json!({"code": {"type": "string", "description": "Python code to execute"}}),
    )
}

/// Returns the signature of a tool in Python: `read_file(path: str, offset: int = 1, limit: int = 500)`.
fn signature(tool: &Tool) -> String {
    let required = tool.input_schema["required"].as_array();
    let is_required = |name: &str| required.is_some_and(|required| required.iter().any(|entry| entry == name));
    let parameter = |(name, schema): (&String, &Value)| {
        let kind = match schema["type"].as_str().or(schema["type"][0].as_str()) {
            Some("string") => "str",
            Some("integer") => "int",
            Some("number") => "float",
            Some("boolean") => "bool",
            Some("array") => "list",
            Some("object") => "dict",
            _ => "object",
        };
        if is_required(name) {
            return format!("{name}: {kind}");
        }
        let default = match schema.get("default") {
            None | Some(Value::Null) => "None".into(),
            Some(Value::Bool(true)) => "True".into(),
            Some(Value::Bool(false)) => "False".into(),
            Some(other) => other.to_string(),
        };
        format!("{name}: {kind} = {default}")
    };
    let parameters = tool.input_schema["properties"].as_object().into_iter().flatten().map(parameter);
    format!("{}({})", tool.name, parameters.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::native::native;
    use crate::toolset;
    use toold_proto::tools::Toolset;

    fn read(name: &str, args: Value) -> Result<ToolsetCall, CallError> {
        toolset::parse(Toolset::Hermes, name, args.as_object().expect("an object").clone())
    }

    fn process_call(args: Value) -> ProcessCall {
        match read("process", args) {
            Ok(ToolsetCall::Hermes(HermesCall::Process(call))) => call,
            other => panic!("{other:?}"),
        }
    }

    fn problem(name: &str, args: Value) -> (String, String) {
        match read(name, args) {
            Err(CallError::Arguments(Mismatch { pointer, problem })) => (pointer, problem),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_action_is_dispatched() {
        let id = || String::from("proc_1");
        let cases = [
            (json!({"action": "list"}), ProcessCall::List),
            (json!({"action": "poll", "session_id": "proc_1"}), ProcessCall::Poll { id: id() }),
            (
                json!({"action": "log", "session_id": "proc_1"}),
                ProcessCall::Log { id: id(), lines: LogLines::Last, limit: 200 },
            ),
            (
                json!({"action": "log", "session_id": "proc_1", "offset": 0, "limit": 5}),
                ProcessCall::Log { id: id(), lines: LogLines::From(0), limit: 5 },
            ),
            (json!({"action": "wait", "session_id": "proc_1"}), ProcessCall::Wait { id: id(), timeout_seconds: None }),
            (
                json!({"action": "wait", "session_id": "proc_1", "timeout": 30}),
                ProcessCall::Wait { id: id(), timeout_seconds: Some(30) },
            ),
            (json!({"action": "kill", "session_id": "proc_1"}), ProcessCall::Kill { id: id() }),
            (
                json!({"action": "write", "session_id": "proc_1", "data": "y"}),
                ProcessCall::Write { id: id(), data: "y".into() },
            ),
            (
                json!({"action": "submit", "session_id": "proc_1", "data": null}),
                ProcessCall::Submit { id: id(), data: "".into() },
            ),
            (json!({"action": "close", "session_id": 42}), ProcessCall::Close { id: "42".into() }),
        ];
        for (args, expected) in cases {
            assert_eq!(process_call(args.clone()), expected, "{args}");
        }
    }

    #[test]
    fn a_missing_id_names_the_action_and_an_unknown_action_the_known_ones() {
        for action in &ACTIONS[1..] {
            let expected = ("/session_id".into(), format!("session_id is required for {action}"));
            assert_eq!(problem("process", json!({"action": action})), expected);
        }
        let known = "Unknown process action: stop. Use: list, poll, log, wait, kill, write, submit, close";
        assert_eq!(problem("process", json!({"action": "stop"})), ("/action".into(), known.into()));
        assert_eq!(problem("process", json!({"action": "wait", "session_id": "a", "timeout": 0})).0, "/timeout");
    }

    #[test]
    fn code_must_be_a_text_that_is_not_empty() {
        let call = ToolsetCall::Hermes(HermesCall::ExecuteCode { code: "print(1)".into() });
        assert_eq!(read("execute_code", json!({"code": "print(1)"})), Ok(call));
        assert_eq!(problem("execute_code", json!({"code": " \n"})), ("/code".into(), "No code provided.".into()));
        assert_eq!(problem("execute_code", json!({"code": 1})).0, "/code");
        assert_eq!(problem("execute_code", json!({"command": "ls"})).0, "/code");
    }

    #[test]
    fn a_script_sees_the_signatures_of_its_tools() {
        let native = native();
        let read_file = native.iter().find(|tool| tool.name == "read_file").expect("a tool");
        assert_eq!(signature(read_file), "read_file(path: str, offset: int = 1, limit: int = 500)");
        let tool = execute_code_tool(&[read_file]);
        assert!(tool.description.contains("\n  read_file(path: str, offset: int = 1, limit: int = 500)\n"));
    }
}
