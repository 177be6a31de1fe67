//! Reads TOML by the program `toolctl-mcp`: `toolctl` itself has no parser for it, and a user who connects an agent has that program.

use serde_json::Value;

/// Parses TOML. The error is one line for a person. Unit tests have no program beside them: `tests/doors/integrate.rs` has.
#[cfg(test)]
pub fn read(text: &str) -> Result<Value, String> {
    toml::from_str(text).map_err(|e: toml::de::Error| format!("it is not TOML: {}", e.message()))
}

/// Parses TOML. The error is one line for a person.
#[cfg(not(test))]
pub fn read(text: &str) -> Result<Value, String> {
    use crate::sibling_program::path_of;
    use std::io::Write;
    use std::process::{Command, Stdio};

    let mut command = Command::new(path_of("toolctl-mcp"));
    command.arg("--read-toml").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let missing = |e: std::io::Error| format!("the program toolctl-mcp, which reads it, cannot be run: {e}");
    let mut child = command.spawn().map_err(missing)?;
    // It reads all before it writes, and the pipe is closed at the end of this line.
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(text.as_bytes())).transpose();
    let output = child.wait_with_output().map_err(missing)?;
    if !output.status.success() || written.is_err() {
        return Err(format!("it is not TOML: {}", String::from_utf8_lossy(&output.stderr).trim_end()));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| format!("toolctl-mcp answered nonsense: {e}"))
}
