//! `resume`: continues a process that is stopped.

use super::Context;
use crate::error::CliError;
use crate::render;
use toold_proto::{api, params};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The process: its id, a unique start of that, its name, @last or @failed
    pub id: String,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    cx.call_once::<api::Resume>(&params::ResumeParams { id: args.id }, |result, _| {
        format!("{}\n", render::poll::summary(&result.process))
    })
}
