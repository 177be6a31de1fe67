//! `forget`: removes finished processes and their logs.

use super::Context;
use crate::args;
use crate::error::{CliError, DONE, FAILED};
use crate::long_call::Work;
use crate::process_ref::{self, PatternUse};
use std::time::Duration;
use toold_proto::api;
use toold_proto::params;

/// The time that it may take: there may be many processes, and a disk may be slow.
const TIMEOUT: Duration = Duration::from_secs(600);

const NOTES: &str = "On a terminal it shows how many are left while it takes longer than a second.";

#[derive(Debug, clap::Args)]
#[command(after_help = NOTES, override_usage = "toolctl forget [OPTIONS] ID...\n       toolctl forget [OPTIONS] --all | --failed | --older-than TIME")]
pub struct Args {
    /// The processes: ids, names, patterns of names, @last or @failed
    #[arg(value_name = "ID", required_unless_present_any = ["all", "failed", "older_than"], conflicts_with_all = ["all", "failed", "older_than"])]
    pub ids: Vec<String>,
    /// Every process that has ended
    #[arg(long, conflicts_with_all = ["failed", "older_than"])]
    all: bool,
    /// Every process that failed, as `list --failed` shows them
    #[arg(long)]
    failed: bool,
    /// Every process that ended at least this long ago
    #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
    older_than: Option<u64>,
}

fn removed(count: usize) -> String {
    match count {
        1 => "removed 1 process\n".into(),
        count => format!("removed {count} processes\n"),
    }
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let ids = process_ref::expand(args.ids, PatternUse::Ended, &mut cx.connection)?;
    let ids = (!ids.is_empty()).then_some(ids);
    let named = ids.is_some();
    let older_than_ms = args.older_than.or(args.all.then_some(0));
    let params = params::ForgetParams { ids, older_than_ms, failed: args.failed };
    let mut meanwhile = cx.show_work(Work::Forgetting);
    let raw = cx.call_long_once::<api::Forget>(&params, TIMEOUT, &mut meanwhile)?;
    let result = cx.show::<api::Forget>(&raw, |result, _| removed(result.forgotten.len()))?;
    if !result.skipped.is_empty() && !cx.json {
        let skipped: Vec<String> = result.skipped.iter().map(|id| id.to_string()).collect();
        cx.console.message(&format!("still running and kept: {}; kill them first", skipped.join(" ")));
    }
    // A process that was named and still exists is a failure.
    Ok(if named && !result.skipped.is_empty() { FAILED } else { DONE })
}
