//! The programs beside `toolctl` that need a heavier stack, so that `toolctl poll` stays a millisecond: how one is found,
//! and the options that `toolctl` passes on to it.

pub use crate::cmd::top::Args as TopArgs;
pub use crate::cmd::web::Args as WebArgs;
pub use crate::sibling_program::path_of as program;

use crate::autostart::{self, DaemonFlags, StartError};
use crate::blocking::Client;
use crate::cmd::Context;
use crate::error::CliError;
use crate::sibling_program::become_program;
use std::ffi::OsString;
use std::path::PathBuf;
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

/// Becomes the program of a verb. Returns only if that fails.
pub(crate) fn exec(name: &'static str, args: Vec<OsString>, cx: &Context<'_>) -> Result<u8, CliError> {
    let colour = if cx.console.style.colour { "always" } else { "never" };
    let args = ["--color".into(), colour.into()].into_iter().chain(args).collect();
    become_program(name, name.trim_start_matches("toolctl-"), args, &cx.connection)
}
