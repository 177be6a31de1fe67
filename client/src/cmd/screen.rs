//! `screen`: shows the screen of a process's terminal as text.

use super::Context;
use crate::blocking::parse;
use crate::error::{CliError, DONE};
use toold_proto::{api, params};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The process: its id, a unique start of that, its name, @last or @failed
    pub id: String,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let params = params::ScreenParams { id: args.id };
    let raw = cx.connection.call_raw_with_retry::<api::Screen>(|_| params.clone())?;
    if cx.json {
        return cx.document(&raw).map(|()| DONE);
    }
    cx.console.print_output(&parse::<api::Screen>(&raw)?.text)?;
    Ok(DONE)
}
