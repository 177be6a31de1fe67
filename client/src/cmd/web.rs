//! `web`: becomes `toolctl-web`, which shows processes live in a browser.

use super::Context;
use crate::companion;
use crate::error::CliError;
use std::ffi::OsString;

const NOTES: &str = "Stays in the foreground until Ctrl-C and prints the address to open. It listens on 127.0.0.1 alone, and the \
address carries a token that a browser must have. Without --write the page can only look.";

#[derive(Debug, Clone, Default, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// Also pass calls that change something: answer, kill, start
    #[arg(long)]
    pub write: bool,
    /// The port to listen on [default: a free one]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let mut passed: Vec<OsString> = Vec::new();
    if args.write {
        passed.push("--write".into());
    }
    passed.extend(args.port.map(|port| format!("--port={port}").into()));
    companion::exec("toolctl-web", passed, cx)
}
