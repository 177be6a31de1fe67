//! `inspect`: everything about one process.

use super::Context;
use crate::failure::Failure;
use crate::render;
use toold_proto::api;
use toold_proto::params;

#[derive(Debug, clap::Args)]
pub struct Args {
    pub id: String,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, Failure> {
    cx.look::<api::Inspect>(&params::Inspect { id: args.id }, render::inspect::inspect)
}
