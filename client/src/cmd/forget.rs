//! `forget`: remove finished processes and their logs.

use super::Context;
use crate::args;
use crate::failure::{DONE, Failure};
use toold_proto::api;
use toold_proto::params;

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
pub struct Args {
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    /// Everything that ended so long ago
    #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
    older_than: Option<u64>,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, Failure> {
    let ids = (!args.ids.is_empty()).then_some(args.ids);
    let raw = cx.link.call_raw::<api::Forget>(&params::Forget { ids, older_than_ms: args.older_than })?;
    let result = cx.show::<api::Forget>(&raw, |result, _| format!("forgot {}\n", result.forgotten.len()))?;
    if !result.skipped.is_empty() && !cx.json {
        let skipped: Vec<String> = result.skipped.iter().map(|id| id.to_string()).collect();
        cx.console.say(&format!("still running and kept: {}; kill them first", skipped.join(" ")));
    }
    Ok(DONE)
}
