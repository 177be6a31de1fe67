//! `pause`: stops a process and everything it started, until `resume`.

use super::Context;
use crate::error::CliError;
use crate::render;
use toold_proto::process::Process;
use toold_proto::{api, params};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The process: its id, a unique start of that, its name, @last or @failed
    pub id: String,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    cx.call_once::<api::Pause>(&params::PauseParams { id: args.id }, |result, _| text(&result.process))
}

fn text(process: &Process) -> String {
    let summary = render::poll::summary(process);
    match process.stopped {
        true => format!("{summary}\n"),
        false => format!("{summary}: SIGSTOP was sent, and it has not stopped yet\n"),
    }
}
