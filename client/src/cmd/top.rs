//! `top`: becomes `toolctl-top`, which shows processes live on the whole terminal.

use super::Context;
use crate::companion;
use crate::error::CliError;
use std::ffi::OsString;

const NOTES: &str = "Keys: enter log, a attach, i answer, K kill (KK: SIGKILL), R rerun, / filter, g grep over all logs, e editor, \
y copy, t tree, o by owner, s sort, Space mark, F forget, Tab next pane, ? help, q quit.";

#[derive(Debug, Clone, Default, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// Print one frame and exit; its size is that of COLUMNS and LINES, else 80x24
    #[arg(long)]
    pub once: bool,
    /// Show only processes whose name, command, owner, id or state has this text
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Show only processes of this session
    #[arg(long, value_name = "KEY")]
    pub session: Option<String>,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let mut passed: Vec<OsString> = Vec::new();
    if args.once {
        passed.push("--once".into());
    }
    for (flag, value) in [("--filter", args.filter), ("--session", args.session)] {
        passed.extend(value.map(|value| format!("{flag}={value}").into()));
    }
    companion::exec("toolctl-top", passed, cx)
}
