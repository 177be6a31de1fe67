//! `deny`: denies one approval.

use super::{Context, approve};
use crate::error::CliError;
use toold_proto::approval::{Decision, Scope};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The approval, as `toolctl approvals` shows it
    #[arg(value_name = "APPROVAL")]
    approval: String,
    /// A message for the caller that asked
    #[arg(long, short = 'm', value_name = "TEXT")]
    message: Option<String>,
    /// Also withdraw everything else that waits of the same task
    #[arg(long)]
    abort: bool,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let decision = if args.abort { Decision::Abort } else { Decision::Deny };
    approve::decide(cx, args.approval, decision, Scope::Once, None, args.message)
}
