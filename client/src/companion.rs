//! The programs beside `toolctl` that need a heavier stack, so that `toolctl poll` stays a millisecond: how one is found,
//! and the options that `toolctl` passes on to it.

pub use crate::cmd::top::Args as TopArgs;
pub use crate::cmd::web::Args as WebArgs;

use crate::autostart::{self, DaemonFlags, StartError};
use crate::blocking::Client;
use crate::cmd::Context;
use crate::error::CliError;
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use toold_proto::paths;

/// The options of `toolctl` that a program beside it understands too.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct CompanionOptions {
    /// The daemon's socket [default: $TOOLD_SOCKET, else $XDG_RUNTIME_DIR/toold/toold.sock]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// The config file for the daemon, if this call starts it
    #[arg(long, value_name = "PATH")]
    pub config: Option<PathBuf>,
    /// Fail when no daemon runs; without this, one is started
    #[arg(long)]
    pub no_autostart: bool,
    /// When to use colours: auto obeys NO_COLOR
    #[arg(long, value_name = "WHEN", value_parser = ["auto", "always", "never"], default_value = "auto")]
    pub color: String,
}

impl CompanionOptions {
    pub fn socket(&self) -> PathBuf {
        self.socket.clone().unwrap_or_else(paths::socket)
    }

    /// Connects to the daemon, and starts it first if that is allowed and none runs.
    pub fn connect(&self) -> Result<Client, StartError> {
        let socket = self.socket();
        if self.no_autostart {
            return Client::connect(&socket).map_err(StartError::Unusable);
        }
        autostart::connect(&socket, &DaemonFlags { socket: self.socket.clone(), config: self.config.clone() })
    }
}

/// Becomes the program of this name beside `toolctl`, else in PATH. Returns only if that fails.
pub(crate) fn exec(name: &'static str, args: Vec<OsString>, cx: &Context<'_>) -> Result<u8, CliError> {
    let mut command = Command::new(program(name));
    command.arg("--socket").arg(cx.connection.socket());
    if let Some(config) = cx.connection.config() {
        command.arg("--config").arg(config);
    }
    if !cx.connection.may_autostart() {
        command.arg("--no-autostart");
    }
    command.args(["--color", if cx.console.style.colour { "always" } else { "never" }]);
    let source = command.args(args).exec();
    match source.kind() {
        io::ErrorKind::NotFound => Err(CliError::Unavailable(format!(
            "{name} is neither beside toolctl nor in PATH; install it: it comes with toold"
        ))),
        // Any other error names its cause.
        _ => Err(CliError::Unavailable(format!("cannot run {name}: {source}"))),
    }
}

/// Returns the path of a program: beside this one, else its name, which is looked up in PATH.
pub fn program(name: &str) -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join(name)));
    let runs = |path: &PathBuf| path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    beside.filter(runs).unwrap_or_else(|| name.into())
}
