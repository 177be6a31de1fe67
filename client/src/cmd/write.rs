//! `write` and `submit`: write to a process's stdin, as it is or as a line.

use super::Context;
use crate::error::{CliError, DONE, FAILED};
use crate::render::Style;
use crate::secret;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::io::Read;
use std::time::Duration;
use toold_proto::params;
use toold_proto::results;
use toold_proto::{api, api::Method};

/// The exit code after Ctrl-C at the prompt for a secret.
const INTERRUPTED: u8 = 130;
/// The time that the daemon gives a process to read what is written.
pub const READ_WAIT: Duration = Duration::from_secs(5);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The process: its id, a unique start of that, its name, @last or @failed
    pub id: String,
    /// The text, or - to read it from standard input
    #[arg(allow_hyphen_values = true, required_unless_present = "secret", conflicts_with = "secret")]
    text: Option<String>,
    /// Ask for the text without showing it, or read it from standard input; it is in no history, event, log or file
    #[arg(long)]
    secret: bool,
    /// A name for this text: the same again is acknowledged and not written twice
    #[arg(long, value_name = "ID")]
    write_id: Option<String>,
}

/// The end of the written text.
#[derive(Debug, Clone, Copy)]
pub enum End {
    Open,
    Newline,
}

pub fn run(args: Args, end: End, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let secret = args.secret;
    let mut params = params::WriteParams { id: args.id, write_id: args.write_id, secret, ..Default::default() };
    match args.text.as_deref() {
        None => match secret::read(&params.id)? {
            Some(secret) => params.data_base64 = Some(STANDARD.encode(secret)),
            None => return Ok(INTERRUPTED),
        },
        Some("-") => params.data_base64 = Some(STANDARD.encode(standard_input()?)),
        Some(text) => params.data = Some(text.into()),
    }
    match end {
        End::Open => send::<api::Write>(&params, cx),
        End::Newline => send::<api::Submit>(&params, cx),
    }
}

pub fn send<M: Method<Params = params::WriteParams, Result = results::WriteResult>>(
    params: &params::WriteParams,
    cx: &mut Context<'_>,
) -> Result<u8, CliError> {
    cx.connection.expect_wait(READ_WAIT);
    // Without a write id a second try could not be distinguished from a second text.
    let raw = match params.write_id {
        Some(_) => cx.connection.call_raw_with_retry::<M>(|_| params.clone())?,
        None => cx.connection.call_raw::<M>(params)?,
    };
    let result = cx.show::<M>(&raw, picture)?;
    if result.complete {
        return Ok(DONE);
    }
    if !cx.json {
        let count = result.bytes_written;
        cx.console.message(&format!("only {count} bytes went in before the timeout: the process does not read"));
    }
    Ok(FAILED)
}

fn picture(result: &results::WriteResult, _: Style) -> String {
    let before = if result.duplicate { " (written before)" } else { "" };
    format!("{} wrote {} bytes{before}\n", result.id, result.bytes_written)
}

pub fn standard_input() -> Result<Vec<u8>, CliError> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .map_err(|source| CliError::Io { doing: "read standard input", source })?;
    Ok(bytes)
}
