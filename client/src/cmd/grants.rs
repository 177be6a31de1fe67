//! `grants`: lists what persons allowed for the rest of a session.

use super::Context;
use crate::error::CliError;
use crate::render::approval;
use toold_proto::api;
use toold_proto::approval::GrantsListParams;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only those of this session
    #[arg(long, alias = "session-key", value_name = "KEY")]
    session: Option<String>,
    /// Also those that are revoked or over
    #[arg(long, short = 'a')]
    all: bool,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let params = GrantsListParams { session_key: args.session, all: args.all };
    cx.query::<api::GrantsList>(&params, |result, style| approval::grants(&result.grants, style))
}
