//! `info`: shows the daemon itself.

use super::Context;
use crate::error::CliError;
use crate::render;
use toold_proto::api;
use toold_proto::params;

pub fn run(cx: &mut Context<'_>) -> Result<u8, CliError> {
    cx.query::<api::DaemonInfo>(&params::Empty::default(), render::info::info)
}
