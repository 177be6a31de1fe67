//! Parameters and result of `log`: a page of one log, or the matching lines of several.

use crate::id::ProcId;
use crate::params::{Ansi, Stream, params};
use crate::process::Gap;
use crate::results::result;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

params!(
    LogParams {
        /// The process. Without it: a search of several logs, which needs `grep`.
        id: Option<String>,
        /// The processes whose logs are searched. Default without `id`: all, also those that have ended.
        ids: Option<Vec<String>>,
        /// The first line to show, from 0. Default: the last lines. Only with `id`.
        offset: Option<u64>,
        /// The most lines. Default: 200.
        limit: Option<u64>,
        stream: Option<Stream>,
        /// Only lines that match this regular expression.
        grep: Option<String>,
        ansi: Ansi,
        /// Only the last lines of the output. Only with `id`.
        tail_lines: Option<u64>,
        /// Show a line that was redrawn with a carriage return as it stood last. Default: true for text without escape sequences.
        collapse: Option<bool>,
        /// Hide secrets in the output: values that the process was given, known shapes, dumps of environments.
        redact: bool,
    }
);

result!(LogResult {
    /// Null in the result of a search of several logs.
    id: Option<ProcId>,
    /// The lines. In a search of several logs each is `name:line:text`, with the id of a process without a name.
    output: String,
    /// The lines of the log, or of all logs that were searched.
    total_lines: u64,
    /// Number of the first line in `output`, from 0. With `grep`: of the first match.
    first_line: u64,
    lines_shown: u64,
    /// Matching lines in the whole log, or in all logs that were searched. Only with `grep`.
    matched_lines: Option<u64>,
    /// The `offset` of the next page. Null: the end was reached.
    next_offset: Option<u64>,
    /// True if the output was cut to fit, or not all logs could be searched in the time for one call.
    truncated: bool,
    gap: Option<Gap>,
    /// The matching lines of a search of several logs, newest process first, and of each its last ones in their order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    matches: Option<Vec<LogMatch>>,
    /// The number of logs that were searched.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    searched: Option<u64>,
    /// The number of logs that were not searched to their ends: `limit` was reached, the time was over, or they cannot be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unsearched: Option<u64>,
});

result!(LogMatch {
    id: ProcId,
    name: Option<String>,
    /// The number of the line in its log, from 0, as `offset` takes it.
    line: u64,
    text: String,
});
