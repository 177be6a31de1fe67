//! `approve`: approves one question.

use super::Context;
use crate::error::CliError;
use crate::render::approval;
use toold_proto::api;
use toold_proto::approval::{ApprovalsDecideParams, ApprovalsGetParams, Decision, GrantTerms, Scope};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The approval, as `toolctl approvals` shows it
    #[arg(value_name = "APPROVAL")]
    approval: String,
    /// Also allow the same command in the rest of its session
    #[arg(long, conflicts_with = "always")]
    session: bool,
    /// Also allow it always, by a rule in rules/approved.toml
    #[arg(long)]
    always: bool,
    /// Also allow the same tool in the rest of the script that asks
    #[arg(long, conflicts_with_all = ["session", "always"])]
    script: bool,
    /// With --script: at most N more calls
    #[arg(long, value_name = "N", requires = "script")]
    uses: Option<u64>,
    /// A message for the caller that asked
    #[arg(long, short = 'm', value_name = "TEXT")]
    message: Option<String>,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let scope = match (args.session, args.always, args.script) {
        (true, _, _) => Scope::Session,
        (false, true, _) => Scope::Always,
        (false, false, true) => Scope::Script,
        (false, false, false) => Scope::Once,
    };
    let grant = args.uses.map(|uses| GrantTerms { uses: Some(uses), ..GrantTerms::default() });
    decide(cx, args.approval, Decision::Approve, scope, grant, args.message)
}

/// Decides the approval as it is now: its digest comes with it.
pub fn decide(
    cx: &mut Context<'_>,
    id: String,
    decision: Decision,
    scope: Scope,
    grant: Option<GrantTerms>,
    message: Option<String>,
) -> Result<u8, CliError> {
    let shown = cx.connection.call_with_retry::<api::ApprovalsGet>(&ApprovalsGetParams { id: id.clone() })?;
    let params = ApprovalsDecideParams { id, decision, digest: shown.digest, scope, grant, message };
    cx.call_once::<api::ApprovalsDecide>(&params, |result, _| approval::decided(result))
}
