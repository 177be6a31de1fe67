//! The options that confine a process.

use crate::args;
use crate::error::CliError;
use std::path::PathBuf;
use toold_proto::sandbox::{Network, SandboxOptions as Keys, SandboxSetting};

const SANDBOX: &str = "What it may touch";

#[derive(Debug, clap::Args)]
pub struct SandboxOptions {
    /// The profile: full, read-only, workspace-write (writes only below its directory) or one of the config
    #[arg(long, help_heading = SANDBOX, value_name = "PROFILE")]
    sandbox: Option<String>,
    /// Its network: off, loopback (shared by its session) or full [default: that of the profile]
    #[arg(long, help_heading = SANDBOX, value_name = "WHAT", hide_possible_values = true, value_parser = args::enum_value::<Network>())]
    net: Option<Network>,
    /// Another directory that it may write in; may be given again
    #[arg(long, help_heading = SANDBOX, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    root: Vec<PathBuf>,
}

impl SandboxOptions {
    /// Returns the parameter `sandbox`, if one of the options was given.
    pub fn param(self) -> Result<Option<SandboxSetting>, CliError> {
        let SandboxOptions { sandbox, net, root } = self;
        if net.is_none() && root.is_empty() {
            return Ok(sandbox.map(SandboxSetting::Name));
        }
        let roots = root.into_iter().map(absolute).collect::<Result<Vec<_>, _>>()?;
        Ok(Some(SandboxSetting::Options(Box::new(Keys { profile: sandbox, network: net, roots, ..Keys::default() }))))
    }
}

fn absolute(path: PathBuf) -> Result<String, CliError> {
    let path = std::path::absolute(path).map_err(CliError::io("find the working directory"))?;
    path.into_os_string()
        .into_string()
        .map_err(|path| CliError::Usage(format!("--root: {} is not UTF-8, which JSON cannot carry", path.display())))
}
