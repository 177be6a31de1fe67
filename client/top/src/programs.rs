//! Other programs that get the terminal: `toolctl attach`, an editor or a pager.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::process::Command;
use toold_client::companion::program;

/// Attaches to a process. Returns what went wrong.
pub fn attach(id: &str, socket: &Path) -> Option<String> {
    let run = Command::new(program("toolctl")).arg("--socket").arg(socket).args(["attach", id]).status();
    run.err().map(|error| format!("cannot run toolctl attach: {error}"))
}

/// Opens a copy of a log in `$VISUAL`, else in the pager. A copy, because an editor must not change the log.
pub fn edit(name: &str, files: &[String]) -> Option<String> {
    let failed = |doing: &str, error: io::Error| Some(format!("cannot {doing}: {error}"));
    let copy = match copy(name, files) {
        Ok(copy) => copy,
        Err(error) => return failed("copy the log", error),
    };
    let set = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let editor = set("VISUAL").or_else(|| set("PAGER")).unwrap_or_else(|| "less".into());
    let status = Command::new("/bin/sh").args(["-c", &format!("{editor} \"$1\""), "sh"]).arg(copy.path()).status();
    match status {
        Err(error) => failed(&format!("run {editor}"), error),
        Ok(status) if status.code() == Some(127) => Some(format!("{editor} is not installed; set VISUAL or PAGER")),
        Ok(_) => None,
    }
}

fn copy(name: &str, files: &[String]) -> io::Result<tempfile::NamedTempFile> {
    let is_plain = |c: &char| c.is_ascii_alphanumeric() || "-_.".contains(*c);
    let name: String = name.chars().filter(is_plain).take(40).collect();
    let mut copy = tempfile::Builder::new().prefix(&format!("{name}-")).suffix(".log").tempfile()?;
    for file in files {
        copy.write_all(&toold_ansi::strip_complete(&fs::read(file)?))?;
    }
    copy.flush()?;
    Ok(copy)
}
