//! The toolset of codex: its tools, and their calls.

mod call;
mod render;

pub use call::{CodexCall, ExecCommand, MAX_UNREAD_BYTES, Program, Shell, WriteStdin, Yield, parse};
pub use render::{
    End, Exec, ExecState, Output, ShellOutcome, StreamText, chunk_id, exec, failure, grep_files, list_dir, patch,
    patch_refused, read_file, shell, unknown_session,
};

use super::define;
use serde_json::json;
use toold_proto::tools::{Effect, Tool};

/// The first number of a session of `exec_command`, per `session_key`.
pub const FIRST_SESSION_ID: u64 = 1000;

/// Returns the tools that rest on native tools which `has` returns true for.
pub(super) fn tools(has: impl Fn(&str) -> bool) -> Vec<Tool> {
    let groups = [
        ("terminal", vec![exec_command(), write_stdin(), shell_argv(), shell_command()]),
        ("patch", vec![apply_patch()]),
        ("read_file", vec![read_file_tool()]),
        ("search_files", vec![list_dir_tool(), grep_files_tool()]),
    ];
    groups.into_iter().filter(|(native, _)| has(native)).flat_map(|(_, tools)| tools).collect()
}

fn exec_command() -> Tool {
    define(
        "exec_command",
        Effect::Exec,
        "Runs a command, returning its output, or a session ID for ongoing interaction if it is still running.",
        &["cmd"],
        json!({
            "cmd": {"type": "string", "minLength": 1, "description": "Shell command to execute."},
            "workdir": {"type": "string", "description": "Working directory of the command. Defaults to that of the session."},
            "shell": {"type": "string", "description": "Shell binary to launch. Defaults to the user's shell."},
            "login": {"type": "boolean", "default": true, "description": "Run the shell as a login shell. Defaults to true."},
            "tty": {"type": "boolean", "default": false,
                "description": "True allocates a PTY for the command; false or omitted uses plain pipes."},
            "yield_time_ms": {"type": "number", "default": 10000,
                "description": "Time to wait for output before returning. Defaults to 10000 ms; the range is 250-30000 ms."},
            "max_output_tokens": {"type": "number", "default": 10000,
                "description": "Output token budget. Defaults to 10000 tokens; the middle of a longer output is left out."}
        }),
    )
}

fn write_stdin() -> Tool {
    define(
        "write_stdin",
        Effect::Exec,
        "Writes characters to a running exec_command session and returns the output since the last call.",
        &["session_id"],
        json!({
            "session_id": {"type": "integer", "minimum": 0, "description": "Identifier of the running session."},
            "chars": {"type": "string", "default": "",
                "description": "Characters to write to stdin. Empty, the default, polls without writing. \\u0003 interrupts."},
            "yield_time_ms": {"type": "number",
                "description": "Time to wait for output before returning. Defaults to 250 ms after a write (at most 30000 ms); an empty poll waits 5000-300000 ms."},
            "max_output_tokens": {"type": "number", "default": 10000,
                "description": "Output token budget. Defaults to 10000 tokens; the middle of a longer output is left out."}
        }),
    )
}

fn shell_argv() -> Tool {
    define(
        "shell",
        Effect::Exec,
        "Runs a command and returns its output.\n- The arguments are passed to execvp(). Most terminal commands should be prefixed \
         with [\"bash\", \"-lc\"].\n- Always set `workdir`. Do not use `cd` unless absolutely necessary.",
        &["command"],
        json!({
            "command": {"type": "array", "items": {"type": "string"}, "minItems": 1, "description": "The command to execute"},
            "workdir": {"type": "string", "description": "The working directory to execute the command in"},
            "timeout_ms": {"type": "number", "default": 30000, "description": "The timeout for the command in milliseconds"}
        }),
    )
}

fn shell_command() -> Tool {
    define(
        "shell_command",
        Effect::Exec,
        "Runs a shell command and returns its output.\n- Always set `workdir`. Do not use `cd` unless absolutely necessary.",
        &["command"],
        json!({
            "command": {"type": "string", "minLength": 1,
                "description": "The shell script to execute in the user's default shell"},
            "workdir": {"type": "string", "description": "The working directory to execute the command in"},
            "timeout_ms": {"type": "number", "default": 30000, "description": "The timeout for the command in milliseconds"},
            "login": {"type": "boolean", "default": true, "description": "Run the shell as a login shell. Defaults to true."}
        }),
    )
}

fn apply_patch() -> Tool {
    define(
        "apply_patch",
        Effect::Write,
        "Edits files with a patch; all of it happens or nothing.\n\
         *** Begin Patch\n[ one or more file sections ]\n*** End Patch\n\
         A section begins with one of:\n\
         *** Add File: <path> - every following line begins with + (the content).\n\
         *** Delete File: <path> - nothing follows.\n\
         *** Update File: <path> - optionally followed by *** Move to: <new path>, then hunks.\n\
         A hunk begins with @@, optionally followed by a class or function that contains the change. Each of its lines begins with \
         ' ' (context), '-' (removed) or '+' (added). Give 3 lines of context above and below each change.",
        &["input"],
        json!({"input": {"type": "string", "minLength": 1, "description": "The entire patch"}}),
    )
}

fn read_file_tool() -> Tool {
    define(
        "read_file",
        Effect::Read,
        "Reads a local file with 1-indexed line numbers.",
        &["file_path"],
        json!({
            "file_path": {"type": "string", "minLength": 1, "description": "Absolute path to the file"},
            "offset": {"type": "number", "minimum": 1, "default": 1,
                "description": "The line number to start reading from. Must be 1 or greater."},
            "limit": {"type": "number", "minimum": 1, "default": 2000, "description": "The maximum number of lines to return."}
        }),
    )
}

fn list_dir_tool() -> Tool {
    define(
        "list_dir",
        Effect::Read,
        "Lists entries in a local directory with simple type labels: / directory, @ link, ? other.",
        &["dir_path"],
        json!({
            "dir_path": {"type": "string", "minLength": 1, "description": "Absolute path to the directory to list."},
            "offset": {"type": "number", "minimum": 1, "default": 1,
                "description": "The entry number to start listing from. Must be 1 or greater."},
            "limit": {"type": "number", "minimum": 1, "default": 25, "description": "The maximum number of entries to return."},
            "depth": {"type": "number", "minimum": 1, "default": 2,
                "description": "The maximum directory depth to traverse. Must be 1 or greater."}
        }),
    )
}

fn grep_files_tool() -> Tool {
    define(
        "grep_files",
        Effect::Read,
        "Finds files whose contents match the pattern and lists them by modification time.",
        &["pattern"],
        json!({
            "pattern": {"type": "string", "minLength": 1, "description": "Regular expression pattern to search for."},
            "include": {"type": "string",
                "description": "Optional glob that limits which files are searched (e.g. \"*.rs\" or \"*.{ts,tsx}\")."},
            "path": {"type": "string",
                "description": "Directory or file path to search. Defaults to the session's working directory."},
            "limit": {"type": "number", "minimum": 1, "default": 100,
                "description": "Maximum number of file paths to return (defaults to 100)."}
        }),
    )
}
