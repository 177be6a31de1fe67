//! `list`: processes, newest first.

use super::Context;
use crate::args;
use crate::failure::{DONE, Failure};
use crate::render;
use std::time::{SystemTime, UNIX_EPOCH};
use toold_proto::api;
use toold_proto::params::{self, Status};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Only these: starting, running, exited or lost
    #[arg(long, value_parser = args::word::<Status>)]
    status: Option<Status>,
    /// Only of this task
    #[arg(long)]
    task: Option<String>,
    /// Only of this session
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
    /// Only with this label
    #[arg(long, value_name = "K[=V]")]
    label: Option<String>,
    /// At most so many [default: 200]
    #[arg(short = 'n', long, value_name = "N")]
    limit: Option<u64>,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, Failure> {
    let params = params::List {
        task_id: args.task,
        session_key: args.session,
        status: args.status,
        label: args.label,
        limit: args.limit,
    };
    let raw = cx.link.call_again_raw::<api::List>(|_| params.clone())?;
    if cx.json {
        return cx.document(&raw).map(|()| DONE);
    }
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |t| t.as_millis() as u64);
    let result = cx.show::<api::List>(&raw, |result, look| {
        render::list::list(result.processes.iter().map(|listed| &listed.process), now_ms, look)
    })?;
    let shown = result.processes.len() as u64;
    if shown < result.total {
        cx.console.say(&format!("{shown} of {} shown; -n {} shows all", result.total, result.total));
    }
    Ok(DONE)
}
