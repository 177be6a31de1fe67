//! `kill`: end processes and everything they started.

use super::Context;
use crate::args;
use crate::failure::{DONE, FAILED, Failure};
use crate::render;
use toold_proto::api;
use toold_proto::params;
use toold_proto::results::KillStatus;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    whom: Whom,
    /// The first signal [default: SIGTERM]
    #[arg(short, long, value_name = "SIG", value_parser = args::signal)]
    signal: Option<String>,
    /// How long they have before SIGKILL [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
    grace: Option<u64>,
}

#[derive(Debug, clap::Args)]
#[group(required = true, multiple = false)]
struct Whom {
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Everything that runs
    #[arg(long)]
    all: bool,
    /// What this task runs
    #[arg(long, value_name = "TASK")]
    task: Option<String>,
    /// What this session runs
    #[arg(long, value_name = "KEY")]
    session: Option<String>,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, Failure> {
    let (id, ids) = one_or_many(args.whom.ids);
    let params = params::Kill {
        id,
        ids,
        task_id: args.whom.task,
        session_key: args.whom.session,
        all: args.whom.all.then_some(true),
        signal: args.signal,
        grace_ms: args.grace,
    };
    let raw = cx.link.call_raw::<api::Kill>(&params)?;
    let result = cx.show::<api::Kill>(&raw, |result, look| render::kill::kill(&result.results, look))?;
    match result.status {
        KillStatus::Killed | KillStatus::AlreadyExited => Ok(DONE),
        KillStatus::Survivors => {
            if !cx.json {
                cx.console
                    .say("some processes cannot be killed now; those in state D wait for a device or a network disk");
            }
            Ok(FAILED)
        }
    }
}

/// `id` for one, `ids` for several.
pub fn one_or_many(mut ids: Vec<String>) -> (Option<String>, Option<Vec<String>>) {
    match ids.len() {
        0 => (None, None),
        1 => (ids.pop(), None),
        _ => (None, Some(ids)),
    }
}
