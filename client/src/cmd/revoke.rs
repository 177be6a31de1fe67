//! `revoke`: ends grants.

use super::Context;
use crate::error::CliError;
use crate::render::approval;
use toold_proto::api;
use toold_proto::approval::GrantsRevokeParams;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The grant, as `toolctl grants` shows it
    #[arg(value_name = "GRANT", required_unless_present = "session", conflicts_with = "session")]
    grant: Option<String>,
    /// All grants of this session
    #[arg(long, alias = "session-key", value_name = "KEY")]
    session: Option<String>,
    /// Also kill what still runs under them
    #[arg(long)]
    kill: bool,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let params = GrantsRevokeParams { id: args.grant, session_key: args.session, kill: args.kill };
    cx.call_once::<api::GrantsRevoke>(&params, |result, _| approval::revoked(result))
}
