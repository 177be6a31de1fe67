//! `pause`: stops a process and everything it started, until `resume`.

use super::Context;
use super::options::fields::{Fields, Selection};
use crate::error::CliError;
use crate::render;
use toold_proto::process::Process;
use toold_proto::{api, params};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The process: its id, a unique start of that, its name, @last or @failed
    pub id: String,
    #[command(flatten)]
    fields: Fields,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let Selection { fields, view, .. } = args.fields.select(cx, &[]);
    let params = params::PauseParams { id: args.id, fields, view };
    cx.call_once::<api::Pause>(&params, |result, _| text(&result.process))
}

fn text(process: &Process) -> String {
    let summary = render::poll::summary(process);
    match process.stopped {
        true => format!("{summary}\n"),
        false => format!("{summary}: SIGSTOP was sent, and it has not stopped yet\n"),
    }
}
