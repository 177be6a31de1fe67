//! `restart`: ends a process and starts it again, with the caller's environment.

use super::Context;
use super::kill::DEFAULT_GRACE_MS;
use super::options::caller_env::{self, EnvOptions};
use super::options::fields::{Fields, Selection};
use crate::args;
use crate::error::CliError;
use crate::render::{Style, poll};
use std::time::Duration;
use toold_proto::params::{EnvMode, ExecParams, RestartParams};
use toold_proto::{api, results};

const NOTES: &str = "Starts the same program again, with the same arguments, directory, name and limits. The new run has an id of \
its own, which is printed. The old one keeps running if its program or directory is gone.";

#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// The process: its id, a unique start of that, its name, @last or @failed
    pub id: String,
    #[command(flatten)]
    env: EnvOptions,
    #[command(flatten)]
    fields: Fields,
    /// Start it with the environment that it had; that is kept as long as something of it runs
    #[arg(long, conflicts_with_all = ["given", "files", "mode"])]
    keep_env: bool,
    /// The time it has to end before SIGKILL [default: 5s]
    #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
    grace: Option<u64>,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let Selection { fields, view, .. } = args.fields.select(cx, &[]);
    let (id, grace_ms) = (args.id.clone(), args.grace);
    let mut params = RestartParams { id, grace_ms, fields, view, ..RestartParams::default() };
    if !args.keep_env {
        let mut built = ExecParams::default();
        caller_env::add(&mut built, args.env, cx)?;
        if built.env_mode == EnvMode::Inherit {
            return Err(CliError::Usage(
                "--env-mode inherit: is not for restart; use --keep-env, clean or replace".into(),
            ));
        }
        (params.env, params.env_base64) = (Some(built.env), Some(built.env_base64).filter(|more| !more.is_empty()));
    }
    let grace = Duration::from_millis(args.grace.unwrap_or(DEFAULT_GRACE_MS));
    let mut meanwhile = cx.show_waiting(vec![args.id]);
    let raw = cx.call_long_once::<api::Restart>(&params, grace, &mut meanwhile)?;
    cx.show_only::<api::Restart>(&raw, text)
}

fn text(result: &results::RestartResult, style: Style) -> String {
    let process = &result.process;
    if !style.terminal() {
        return format!("{}\n", process.id);
    }
    let was = process.restart_of.map(|id| format!(", was {id}")).unwrap_or_default();
    format!("{}{was}\n", poll::summary(process))
}
