//! Calls of the toolset of codex.

use super::tools;
use crate::toolset::{CallError, check_arguments, count, text};
use serde_json::{Map, Value};
use std::ops::RangeInclusive;

/// Output of a session that waits for its reader: half of it is the beginning, half the end.
pub const MAX_UNREAD_BYTES: u64 = 1024 * 1024;

const EXEC_YIELD_MS: u64 = 10_000;
const WRITE_YIELD_MS: u64 = 250;
const YIELD_RANGE_MS: RangeInclusive<u64> = 250..=30_000;
/// A poll waits longer than a write: models poll as often as they may, and each poll costs a turn.
const POLL_RANGE_MS: RangeInclusive<u64> = 5_000..=300_000;
const MAX_OUTPUT_TOKENS: usize = 10_000;
/// More than this is not kept for a session.
const MOST_OUTPUT_TOKENS: usize = (MAX_UNREAD_BYTES / 4) as usize;
const SHELL_TIMEOUT_MS: u64 = 30_000;
/// Lines of one call, as of `fs.read`.
const MAX_READ_LINES: u64 = 2000;
const MAX_GREP_FILES: u64 = 2000;
const MAX_DIR_ENTRIES: u64 = 10_000;
const MAX_DIR_DEPTH: u64 = 64;

/// A call of a tool of codex.
#[derive(Debug, Clone, PartialEq)]
pub enum CodexCall {
    ExecCommand(ExecCommand),
    WriteStdin(WriteStdin),
    Shell(Shell),
    ApplyPatch {
        patch: String,
    },
    ReadFile {
        path: String,
        offset: u64,
        limit: u64,
    },
    ListDir {
        path: String,
        offset: u64,
        limit: u64,
        depth: u64,
    },
    /// Files with a match, the newest first.
    GrepFiles {
        pattern: String,
        glob: Option<String>,
        path: Option<String>,
        limit: u64,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub struct ExecCommand {
    pub cmd: String,
    pub workdir: Option<String>,
    /// The shell's program. None: that of the user.
    pub shell: Option<String>,
    pub login: bool,
    pub tty: bool,
    pub wait: Yield,
    pub max_output_tokens: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub struct WriteStdin {
    pub session_id: u64,
    pub chars: String,
    pub wait: Yield,
    pub max_output_tokens: usize,
}

impl WriteStdin {
    /// Returns true if nothing is written.
    pub fn is_poll(&self) -> bool {
        self.chars.is_empty()
    }

    /// Returns true for Ctrl-C. Without a terminal it is SIGINT to the process group.
    pub fn is_interrupt(&self) -> bool {
        self.chars == "\u{3}"
    }
}

/// A command that is waited for: `shell` or `shell_command`.
#[derive(Debug, Clone, PartialEq)]
pub struct Shell {
    pub program: Program,
    pub workdir: Option<String>,
    pub timeout_ms: u64,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Program {
    Argv(Vec<String>),
    /// A text for the user's shell.
    Script {
        command: String,
        login: bool,
    },
}

/// The time that a call waits for output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Yield {
    pub ms: u64,
    /// The line for the model if it asked for another time.
    pub note: Option<String>,
}

impl Yield {
    fn new(requested: Option<u64>, default: u64, range: RangeInclusive<u64>) -> Yield {
        let asked = requested.unwrap_or(default);
        let ms = asked.clamp(*range.start(), *range.end());
        let clamped = requested.filter(|asked| *asked != ms);
        let note = clamped.map(|asked| {
            format!("Yield time: {ms} ms (requested {asked} ms; the range is {}-{} ms)", range.start(), range.end())
        });
        Yield { ms, note }
    }
}

/// Reads a call, and checks its arguments by the schema of the tool.
pub fn parse(name: &str, args: Map<String, Value>) -> Result<CodexCall, CallError> {
    let args = Value::Object(without_nulls(args));
    check_arguments(&tools(|_| true), name, &args)?;
    Ok(match name {
        "exec_command" => CodexCall::ExecCommand(exec_command(&args)),
        "write_stdin" => CodexCall::WriteStdin(write_stdin(&args)),
        "shell" | "shell_command" => CodexCall::Shell(shell(&args)),
        "apply_patch" => CodexCall::ApplyPatch { patch: text(&args, "input").unwrap_or_default() },
        "read_file" => CodexCall::ReadFile {
            path: text(&args, "file_path").unwrap_or_default(),
            offset: count(&args, "offset").unwrap_or(1),
            limit: count(&args, "limit").unwrap_or(MAX_READ_LINES).min(MAX_READ_LINES),
        },
        "list_dir" => CodexCall::ListDir {
            path: text(&args, "dir_path").unwrap_or_default(),
            offset: count(&args, "offset").unwrap_or(1),
            limit: count(&args, "limit").unwrap_or(25).min(MAX_DIR_ENTRIES),
            depth: count(&args, "depth").unwrap_or(2).min(MAX_DIR_DEPTH),
        },
        "grep_files" => CodexCall::GrepFiles {
            pattern: text(&args, "pattern").unwrap_or_default(),
            glob: text(&args, "include").filter(|glob| !glob.trim().is_empty()),
            path: text(&args, "path"),
            limit: count(&args, "limit").unwrap_or(100).min(MAX_GREP_FILES),
        },
        _ => return Err(CallError::UnknownTool),
    })
}

/// Removes parameters that are null: a model that must give every parameter sends null for those that it does not use.
fn without_nulls(args: Map<String, Value>) -> Map<String, Value> {
    args.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

fn flag(args: &Value, name: &str, default: bool) -> bool {
    args.get(name).and_then(Value::as_bool).unwrap_or(default)
}

fn max_output_tokens(args: &Value) -> usize {
    count(args, "max_output_tokens").map_or(MAX_OUTPUT_TOKENS, |tokens| tokens.min(MOST_OUTPUT_TOKENS as u64) as usize)
}

fn exec_command(args: &Value) -> ExecCommand {
    ExecCommand {
        cmd: text(args, "cmd").unwrap_or_default(),
        workdir: text(args, "workdir").filter(|dir| !dir.is_empty()),
        shell: text(args, "shell").filter(|shell| !shell.is_empty()),
        login: flag(args, "login", true),
        tty: flag(args, "tty", false),
        wait: Yield::new(count(args, "yield_time_ms"), EXEC_YIELD_MS, YIELD_RANGE_MS),
        max_output_tokens: max_output_tokens(args),
    }
}

fn write_stdin(args: &Value) -> WriteStdin {
    let chars = text(args, "chars").unwrap_or_default();
    let (default, range) = match chars.is_empty() {
        true => (*POLL_RANGE_MS.start(), POLL_RANGE_MS),
        false => (WRITE_YIELD_MS, YIELD_RANGE_MS),
    };
    WriteStdin {
        session_id: count(args, "session_id").unwrap_or_default(),
        chars,
        wait: Yield::new(count(args, "yield_time_ms"), default, range),
        max_output_tokens: max_output_tokens(args),
    }
}

fn shell(args: &Value) -> Shell {
    let program = match args.get("command") {
        Some(Value::Array(argv)) => Program::Argv(argv.iter().filter_map(Value::as_str).map(String::from).collect()),
        _ => Program::Script { command: text(args, "command").unwrap_or_default(), login: flag(args, "login", true) },
    };
    Shell {
        program,
        workdir: text(args, "workdir").filter(|dir| !dir.is_empty()),
        timeout_ms: count(args, "timeout_ms").filter(|ms| *ms > 0).unwrap_or(SHELL_TIMEOUT_MS),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Mismatch;
    use serde_json::json;

    fn read(name: &str, args: Value) -> Result<CodexCall, CallError> {
        parse(name, args.as_object().expect("an object").clone())
    }

    fn wait(ms: u64) -> Yield {
        Yield { ms, note: None }
    }

    #[test]
    fn exec_command_has_its_defaults() {
        let call = ExecCommand {
            cmd: "ls".into(),
            workdir: None,
            shell: None,
            login: true,
            tty: false,
            wait: wait(10_000),
            max_output_tokens: 10_000,
        };
        assert_eq!(read("exec_command", json!({"cmd": "ls"})), Ok(CodexCall::ExecCommand(call.clone())));
        assert_eq!(
            read("exec_command", json!({"cmd": "ls", "workdir": "", "shell": null})),
            Ok(CodexCall::ExecCommand(call))
        );
    }

    #[test]
    fn a_yield_time_outside_its_range_is_clamped_with_a_note() {
        let waits = |name: &str, args: Value| match read(name, args) {
            Ok(CodexCall::ExecCommand(call)) => call.wait,
            Ok(CodexCall::WriteStdin(call)) => call.wait,
            other => panic!("{other:?}"),
        };
        let long = waits("exec_command", json!({"cmd": "x", "yield_time_ms": 60000}));
        assert_eq!(
            (long.ms, long.note.as_deref()),
            (30_000, Some("Yield time: 30000 ms (requested 60000 ms; the range is 250-30000 ms)"))
        );
        assert_eq!(waits("exec_command", json!({"cmd": "x", "yield_time_ms": -1.5})).ms, 250);
        assert_eq!(waits("exec_command", json!({"cmd": "x", "yield_time_ms": 1000.0})), wait(1000));
        assert_eq!(waits("write_stdin", json!({"session_id": 1000})), wait(5000));
        assert_eq!(waits("write_stdin", json!({"session_id": 1000, "yield_time_ms": 250})).ms, 5000);
        assert_eq!(waits("write_stdin", json!({"session_id": 1000, "yield_time_ms": 999999})).ms, 300_000);
        assert_eq!(waits("write_stdin", json!({"session_id": 1000, "chars": "y\n"})), wait(250));
        assert_eq!(waits("write_stdin", json!({"session_id": 1000, "chars": "y", "yield_time_ms": 40000})).ms, 30_000);
    }

    #[test]
    fn control_c_is_an_interrupt_and_nothing_is_a_poll() {
        let Ok(CodexCall::WriteStdin(call)) = read("write_stdin", json!({"session_id": 1000, "chars": "\u{3}"})) else {
            panic!("a call")
        };
        assert!(call.is_interrupt() && !call.is_poll());
        let Ok(CodexCall::WriteStdin(call)) = read("write_stdin", json!({"session_id": 1000})) else {
            panic!("a call")
        };
        assert!(call.is_poll() && !call.is_interrupt());
    }

    #[test]
    fn a_shell_call_is_an_argv_or_a_script() {
        let shell = |program| Ok(CodexCall::Shell(Shell { program, workdir: None, timeout_ms: 30_000 }));
        assert_eq!(
            read("shell", json!({"command": ["ls", "-l"]})),
            shell(Program::Argv(vec!["ls".into(), "-l".into()]))
        );
        let script = Program::Script { command: "ls | wc".into(), login: false };
        assert_eq!(read("shell_command", json!({"command": "ls | wc", "login": false})), shell(script));
    }

    #[test]
    fn files_have_their_defaults_and_bounds() {
        let read_file = CodexCall::ReadFile { path: "/a".into(), offset: 1, limit: 2000 };
        assert_eq!(read("read_file", json!({"file_path": "/a", "limit": 99999})), Ok(read_file));
        let list_dir = CodexCall::ListDir { path: "/a".into(), offset: 1, limit: 25, depth: 2 };
        assert_eq!(read("list_dir", json!({"dir_path": "/a"})), Ok(list_dir));
        let grep = CodexCall::GrepFiles { pattern: "x".into(), glob: None, path: None, limit: 100 };
        assert_eq!(read("grep_files", json!({"pattern": "x", "include": " "})), Ok(grep));
    }

    #[test]
    fn wrong_arguments_are_refused_with_their_place() {
        let refused = |name, args| match read(name, args) {
            Err(CallError::Arguments(Mismatch { pointer, .. })) => pointer,
            other => panic!("{other:?}"),
        };
        assert_eq!(refused("exec_command", json!({})), "/cmd");
        assert_eq!(
            refused("exec_command", json!({"cmd": "x", "sandbox_permissions": "require_escalated"})),
            "/sandbox_permissions"
        );
        assert_eq!(refused("write_stdin", json!({"session_id": "abc"})), "/session_id");
        assert_eq!(refused("shell", json!({"command": ["a", 1]})), "/command/1");
        assert_eq!(refused("read_file", json!({"file_path": "/a", "mode": "indentation"})), "/mode");
    }
}
