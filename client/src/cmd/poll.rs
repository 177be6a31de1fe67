//! `poll`: shows a process and its latest output.

use super::Context;
use super::options::fields::{Fields, Selection};
use crate::args;
use crate::blocking::{CallError, parse};
use crate::error::{CliError, DONE};
use crate::render::poll::header;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use std::time::Duration;
use toold_proto::api;
use toold_proto::params::{self, Ansi, Encoding, Stream};
use toold_proto::results;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// The process: its id, a unique start of that, its name, @last or @failed
    pub id: String,
    /// Only what came after this byte of the output; the last answer's next_cursor [default: the last 1000 characters]
    #[arg(long, value_name = "N")]
    cursor: Option<u64>,
    /// At most the last N lines, in place of the last 1000 characters
    #[arg(long, value_name = "N", conflicts_with = "raw")]
    tail: Option<u64>,
    /// With nothing new, wait up to this long for more output or the end
    #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
    wait: Option<u64>,
    #[arg(long, hide_possible_values = true, help = args::with_values::<Stream>("Only this stream"), value_parser = args::enum_value::<Stream>())]
    stream: Option<Stream>,
    /// The bytes as they are, with their escape sequences; base64 with --json
    #[arg(long)]
    raw: bool,
    #[command(flatten)]
    fields: Fields,
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let (ansi, encoding) = if args.raw { (Ansi::Keep, Encoding::Base64) } else { Default::default() };
    let Selection { fields, view, .. } = args.fields.select(cx, &[]);
    let params = params::PollParams {
        id: args.id,
        fields,
        view,
        cursor: args.cursor,
        tail_lines: args.tail,
        wait_ms: args.wait.unwrap_or(0),
        stream: args.stream,
        ansi,
        encoding,
        ..Default::default()
    };
    cx.connection.expect_wait(Duration::from_millis(params.wait_ms));
    let raw = cx.connection.call_raw_with_retry::<api::Poll>(|_| params.clone())?;
    if cx.json {
        return cx.document(&raw).map(|()| DONE);
    }
    let result = parse::<api::Poll>(&raw)?;
    if !cx.console.style.terminal() {
        // Beside the header, which a script may drop.
        missing(&result).iter().for_each(|line| cx.console.message(line));
    }
    cx.console.print(&header(&result.process, result.next_cursor, result.gap, cx.console.style))?;
    match encoding {
        Encoding::Text => cx.console.print_output(&result.output)?,
        Encoding::Base64 => cx.console.print_bytes(&bytes(&result.output)?)?,
    }
    Ok(DONE)
}

/// Describes output that is missing in this page, and in all of the process's.
fn missing(result: &results::PollResult) -> Vec<String> {
    let id = &result.process.id;
    let gap = result.gap.map(|gap| format!("{} bytes of output were not kept", gap.to.saturating_sub(gap.from)));
    let unstored = result.process.unstored_bytes;
    let refused =
        (unstored > 0).then(|| format!("{unstored} bytes of the output of {id} could not be written to disk"));
    gap.into_iter().chain(refused).collect()
}

/// Decodes the bytes of a page that was requested in base64.
pub fn bytes(output: &str) -> Result<Vec<u8>, CliError> {
    STANDARD.decode(output).map_err(|e| CallError::Protocol(format!("the output is not base64: {e}")).into())
}
