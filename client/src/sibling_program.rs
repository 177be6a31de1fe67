//! The programs beside `toolctl` that serve a command of it: they have what would make every other command slower.

use crate::connect::Connection;
use crate::error::CliError;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// Replaces this process by the program, which gets the options about the daemon and these arguments. It is the one beside
/// `toolctl`, else the one in `PATH`. Returns only if it cannot be run.
pub fn become_program(
    name: &'static str,
    verb: &str,
    args: Vec<OsString>,
    connection: &Connection,
) -> Result<u8, CliError> {
    let mut command = Command::new(path_of(name));
    command.arg("--socket").arg(connection.socket());
    if let Some(config) = connection.config() {
        command.arg("--config").arg(config);
    }
    if !connection.may_autostart() {
        command.arg("--no-autostart");
    }
    let source = command.args(args).exec();
    Err(match source.kind() {
        io::ErrorKind::NotFound => CliError::Unavailable(format!(
            "`toolctl {verb}` needs the program {name}, which is neither beside toolctl nor in PATH: install it"
        )),
        _ => CliError::Io { doing: "run a program beside toolctl", source },
    })
}

/// Returns the path of the program beside this one, or its name for a search in `PATH`.
pub fn path_of(name: &str) -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join(name)));
    let runs = |path: &PathBuf| path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    beside.filter(runs).unwrap_or_else(|| name.into())
}
