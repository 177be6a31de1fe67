//! `resume`: continues a process that is stopped.

use super::Context;
use super::options::fields::{Fields, Selection};
use crate::error::CliError;
use crate::render;
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
    let params = params::ResumeParams { id: args.id, fields, view };
    cx.call_once::<api::Resume>(&params, |result, _| format!("{}\n", render::poll::summary(&result.process)))
}
