//! `forget`: removes finished processes and their logs.

use super::Context;
use crate::args;
use crate::error::{CliError, DONE, FAILED};
use crate::long_call::Work;
use std::time::Duration;
use toold_proto::api;
use toold_proto::params;

/// The time that it may take: there may be many processes, and a disk may be slow.
const TIMEOUT: Duration = Duration::from_secs(600);

const NOTES: &str = "On a terminal it shows how many are left while it takes longer than a second.";

#[derive(Debug, clap::Args)]
#[command(after_help = NOTES, override_usage = "toolctl forget [OPTIONS] ID...\n       toolctl forget [OPTIONS] --older-than TIME")]
#[group(required = true, multiple = false)]
pub struct Args {
    /// The processes, each by its id, a unique start of that, its name, @last or @failed
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Every process that ended at least this long ago
    #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
    older_than: Option<u64>,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let ids = (!args.ids.is_empty()).then_some(args.ids);
    let named = ids.is_some();
    let params = params::ForgetParams { ids, older_than_ms: args.older_than };
    let mut meanwhile = cx.show_work(Work::Forgetting);
    let raw = cx.call_long_once::<api::Forget>(&params, TIMEOUT, &mut meanwhile)?;
    let result = cx.show::<api::Forget>(&raw, |result, _| format!("forgot {}\n", result.forgotten.len()))?;
    if !result.skipped.is_empty() && !cx.json {
        let skipped: Vec<String> = result.skipped.iter().map(|id| id.to_string()).collect();
        cx.console.message(&format!("still running and kept: {}; kill them first", skipped.join(" ")));
    }
    // A process that was named and still exists is a failure.
    Ok(if named && !result.skipped.is_empty() { FAILED } else { DONE })
}
