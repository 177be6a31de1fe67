//! `log --all --grep`: the lines of many logs that match, as the daemon found them.

use super::output::{self, Output};
use crate::blocking::parse;
use crate::cmd::Context;
use crate::error::{CliError, DONE};
use std::time::Duration;
use toold_proto::api;
use toold_proto::params::LogParams;

/// The time that the daemon may search.
const SEARCH_TIME: Duration = Duration::from_secs(10);

/// Shows the result of a search of several logs.
pub fn run(params: LogParams, no_pager: bool, cx: &mut Context<'_>) -> Result<u8, CliError> {
    cx.connection.expect_wait(SEARCH_TIME);
    let raw = cx.connection.call_raw_with_retry::<api::Log>(|_| params.clone())?;
    if cx.json {
        return cx.document(&raw).map(|()| DONE);
    }
    let result = parse::<api::Log>(&raw)?;
    let pager = if no_pager { None } else { output::pager(&cx.console) };
    let mut output = Output::new(&cx.console, false, pager);
    output.write(result.output.as_bytes(), &mut cx.console)?;
    output.finish(&mut cx.console)?;
    if result.truncated {
        let (shown, searched, left) =
            (result.lines_shown, result.searched.unwrap_or(0), result.unsearched.unwrap_or(0));
        let logs = if searched == 1 { "log" } else { "logs" };
        cx.console.message(&format!(
            "{shown} lines of {searched} {logs} are shown, {left} logs were not searched; -n N shows more, a narrower --grep too"
        ));
    }
    Ok(DONE)
}
