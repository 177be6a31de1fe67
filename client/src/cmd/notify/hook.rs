//! The command of `--run`, and the variables in its environment.

use crate::render::status;
use crate::render::text::escape_control;
use std::io;
use std::process::{Command, ExitStatus, Stdio};
use toold_proto::results::Waited;

/// The largest number of characters in a variable. The kernel accepts 128 KiB a string, and a command can be longer.
const MAX_VALUE_CHARS: usize = 30_000;

/// Returns the facts of a process that ended as variables. All are set; unknown ones are empty, and hide a `TOOLD_…` of
/// our own environment.
pub fn environment(waited: &Waited, log: Option<String>) -> Vec<(&'static str, String)> {
    let process = &waited.process;
    let known = |value: Option<&str>| value.unwrap_or_default().to_owned();
    let facts = vec![
        ("TOOLD_ID", process.id.to_string()),
        ("TOOLD_NAME", known(process.name.as_deref())),
        ("TOOLD_COMMAND", process.command.clone()),
        ("TOOLD_STATUS", status::name(process.status).into()),
        ("TOOLD_EXIT_CODE", process.exit_code.map(|code| code.to_string()).unwrap_or_default()),
        ("TOOLD_SIGNAL", known(process.signal.as_deref())),
        ("TOOLD_REASON", known(process.reason.map(status::reason))),
        ("TOOLD_DURATION_MS", process.uptime_ms.to_string()),
        ("TOOLD_OUTPUT", waited.output.clone()),
        ("TOOLD_BYTES", process.bytes.to_string()),
        ("TOOLD_LINES", process.lines.to_string()),
        ("TOOLD_LOG", log.unwrap_or_default()),
    ];
    // An environment cannot hold a NUL, and output can.
    let fitting =
        |text: String| text.chars().take(MAX_VALUE_CHARS).map(|c| if c == '\0' { '\u{fffd}' } else { c }).collect();
    facts.into_iter().map(|(name, value)| (name, fitting(value))).collect()
}

/// Runs the command to its end. With `--json` our output is one document, so the command's output goes to standard
/// error.
pub fn run(command: &str, environment: Vec<(&'static str, String)>, json: bool) -> Result<(), String> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", command]).envs(environment).stdin(Stdio::null());
    if json {
        shell.stdout(io::stderr());
    }
    check_status(shell.status())
}

fn check_status(ended: io::Result<ExitStatus>) -> Result<(), String> {
    match ended {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("the command of --run ended with {}", escape_control(&status.to_string()))),
        Err(error) => Err(format!("the command of --run did not start: {error}")),
    }
}
