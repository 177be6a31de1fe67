//! `log`: shows a process's output by line, by time or by pattern, and with `-f` as it comes.

mod line_limit;
mod lines;
mod output;
mod range;
mod search;
mod several;
#[cfg(test)]
mod tests;
mod timed;

use super::Context;
use crate::args;
use crate::blocking::parse;
use crate::error::{CliError, DONE};
use crate::local_time::{TimeSpec, now_ms};
use crate::long_call::WhileWaiting;
use crate::process_ref::{self, PatternUse};
use line_limit::{Count, LineLimit, Reader};
use lines::{Picker, Wanted, first_line, last_lines};
use output::Output;
use range::Source;
use regex::Regex;
use std::process::Command;
use std::time::Duration;
use toold_proto::api;
use toold_proto::params::{self, Ansi, Encoding, Status, Stream};

/// The largest page that the daemon returns.
const MAX_PAGE_LINES: u64 = 100_000;
/// The distance at which the search for the last lines starts, and the largest.
const TAIL_WINDOW: (u64, u64) = (64 * 1024, 64 * 1024 * 1024);
/// The time that one poll waits for output. Only a bound: it answers on the first byte.
const POLL_WAIT_MS: u64 = 30_000;

/// Printed where the omitted lines were not counted.
const OMITTED_NOTE: &str = "earlier output is left out; -n all shows it";

const NOTES: &str = "A TIME is an age (10m), a time of day (14:30), a date, or \"2026-11-16 14:30:05\"; its precision is a \
tenth of a second. On a terminal control characters are shown as text, and more than a screen goes through $PAGER (less -R); \
without a pager the last 200 lines are shown, with a note. Without ID it is the process that runs, if one runs alone, or the newest if \
none does. Of several processes, lines come in the order of their times, behind the name of their process. --all searches every log that is kept, newest process first. -t shows times by the \
local clock: the log has them for what arrived together, so lines that came within a tenth of a second may share one. --color=always keeps the colours of the output, and no other \
escape sequences. -f continues after the daemon was restarted.";

#[derive(Debug, clap::Args)]
#[command(after_help = NOTES)]
pub struct Args {
    /// The processes: ids, names, patterns of names, @last or @failed
    #[arg(value_name = "ID")]
    pub ids: Vec<String>,
    #[arg(skip)]
    id: String,
    /// Search the logs of all processes, also of those that have ended, for --grep: `name:line:text`
    #[arg(long, requires = "grep", conflicts_with_all = ["ids", "follow", "offset", "since", "until", "after", "before", "context", "timestamps", "raw"])]
    all: bool,
    /// Show what comes too, until the output is closed
    #[arg(short, long, conflicts_with_all = ["offset", "until"])]
    follow: bool,
    /// At most this many lines, the last ones, or `all` [default: all; on a terminal 10 with -f, and 200 without a pager]
    #[arg(short = 'n', long, visible_alias = "tail", value_name = "N", value_parser = Count::parse)]
    lines: Option<Count>,
    /// From this line on, counted from 0
    #[arg(long, value_name = "N", conflicts_with_all = ["since", "until", "raw", "after", "before", "context"])]
    offset: Option<u64>,
    /// Only what was printed at that time or later: 10m (ago), 14:30, a date
    #[arg(long, value_name = "TIME", value_parser = TimeSpec::parse)]
    since: Option<TimeSpec>,
    /// Only what was printed until then
    #[arg(long, value_name = "TIME", value_parser = TimeSpec::parse)]
    until: Option<TimeSpec>,
    /// Only lines that match this regular expression
    #[arg(long, value_name = "RE")]
    grep: Option<String>,
    /// With --grep: also this many lines after each match
    #[arg(short = 'A', long, value_name = "N", requires = "grep")]
    after: Option<usize>,
    /// With --grep: also this many lines before each match
    #[arg(short = 'B', long, value_name = "N", requires = "grep")]
    before: Option<usize>,
    /// With --grep: also this many lines before and after each match
    #[arg(short = 'C', long, value_name = "N", requires = "grep")]
    context: Option<usize>,
    #[arg(long, hide_possible_values = true, help = args::with_values::<Stream>("Only this stream"), value_parser = args::enum_value::<Stream>())]
    stream: Option<Stream>,
    /// Show the time of each line, to a tenth of a second
    #[arg(short, long, conflicts_with_all = ["offset", "raw", "after", "before", "context"])]
    timestamps: bool,
    /// The bytes as they are, with their escape sequences
    #[arg(long)]
    raw: bool,
    /// Do not use a pager
    #[arg(long)]
    no_pager: bool,
}

/// The destination of the output, and the number of lines.
struct Destination {
    bound: LineLimit,
    pager: Option<Command>,
}

impl Args {
    /// Reports whether the options need this program's own search, because the daemon's `log` does not have them.
    fn is_special(&self) -> bool {
        let context = [self.after, self.before, self.context].iter().any(Option::is_some);
        let all = self.lines == Some(Count::All);
        self.follow || self.raw || self.timestamps || self.since.is_some() || self.until.is_some() || context || all
    }

    fn params(&self, limit: Option<u64>, ansi: Ansi) -> params::LogParams {
        params::LogParams {
            id: Some(self.id.clone()),
            offset: self.offset,
            limit,
            stream: self.stream,
            grep: self.grep.clone(),
            ansi,
            ..params::LogParams::default()
        }
    }

    /// Returns the parameters of a search of several logs. `ids`: of all.
    fn search_params(&self, ids: Option<Vec<String>>) -> params::LogParams {
        let limit = self.lines.and_then(Count::most).map(|most| most.clamp(1, MAX_PAGE_LINES));
        params::LogParams { id: None, ids, ..self.params(limit, Ansi::Strip) }
    }

    /// Returns an error for options that show one process.
    fn refuse_several(&self, json: bool) -> Result<(), CliError> {
        let given = [
            (json, "--json without --grep"),
            (self.raw, "--raw"),
            (self.offset.is_some(), "--offset"),
            (self.after.or(self.before).or(self.context).is_some(), "-A, -B and -C"),
        ];
        match given.iter().find(|(is_given, _)| *is_given) {
            Some((_, option)) => Err(CliError::Usage(format!("{option} show one process: give one ID"))),
            None => Ok(()),
        }
    }

    fn wanted(&self) -> Result<Option<Wanted>, CliError> {
        let Some(pattern) = &self.grep else { return Ok(None) };
        let grep = Regex::new(pattern).map_err(|e| CliError::Usage(format!("--grep: {e}")))?;
        let around = self.context.unwrap_or(0);
        Ok(Some(Wanted { grep, before: self.before.unwrap_or(around), after: self.after.unwrap_or(around) }))
    }
}

pub fn run(mut args: Args, cx: &mut Context<'_>) -> Result<u8, CliError> {
    if args.all {
        return search::run(args.search_params(None), args.no_pager, cx);
    }
    let ids = process_ref::expand(std::mem::take(&mut args.ids), PatternUse::Newest, &mut cx.connection)?;
    let ids =
        if ids.is_empty() { vec![process_ref::alone(process_ref::IfNone::Newest, &mut cx.connection)?] } else { ids };
    let has_several = ids.len() > 1;
    args.id.clone_from(&ids[0]);
    if has_several && cx.json && args.grep.is_some() && !args.is_special() && args.offset.is_none() {
        return search::run(args.search_params(Some(ids)), true, cx);
    }
    if has_several {
        args.refuse_several(cx.json)?;
    }
    if cx.json {
        if args.is_special() {
            let why = "--json prints one answer of the daemon as it is: it takes -n N, --offset, --grep and --stream; \
                       for the rest use `toolctl poll --json --cursor`";
            return Err(CliError::Usage(why.into()));
        }
        let params = args.params(args.lines.and_then(Count::most), Ansi::Strip);
        let raw = cx.connection.call_raw_with_retry::<api::Log>(|_| params.clone())?;
        return cx.document(&raw).map(|()| DONE);
    }
    let wanted = args.wanted()?;
    let pager = if args.follow || args.no_pager { None } else { output::pager(&cx.console) };
    let reader = match (cx.console.style.terminal(), args.follow, pager.is_some()) {
        (false, _, _) => Reader::Program,
        (true, true, _) => Reader::Follower,
        (true, false, true) => Reader::Pager,
        (true, false, false) => Reader::Terminal,
    };
    let timed = args.since.is_some() || args.until.is_some();
    let way = Destination { bound: LineLimit::of(args.lines, timed, reader), pager };
    if has_several || args.timestamps {
        return several::run(&args, &ids, way, wanted, cx);
    }
    if args.offset.is_some() {
        return from_line(args, way, cx);
    }
    // The pattern is for the text, and the daemon would also match escape sequences.
    let coloured = cx.console.keeps_colours && wanted.is_some();
    match way.bound.most() {
        Some(0) if !args.follow => Ok(DONE),
        Some(lines @ ..=MAX_PAGE_LINES) if !args.is_special() && !coloured => {
            last_lines_of(args, lines, way, wanted, cx)
        }
        Some(_) | None => by_cursor(args, way, wanted, cx),
    }
}

/// Returns the times of `--since` and `--until` in milliseconds since 1970.
fn time_range(args: &Args) -> Result<(Option<u64>, Option<u64>), CliError> {
    let now = now_ms();
    let at = |when: Option<TimeSpec>| match when.map(|when| when.unix_ms(now)) {
        Some(None) => Err(CliError::Usage("there is no such time in the local calendar".into())),
        Some(Some(ms)) => Ok(Some(ms)),
        None => Ok(None),
    };
    Ok((at(args.since)?, at(args.until)?))
}

fn ansi(cx: &Context<'_>) -> Ansi {
    if cx.console.keeps_colours { Ansi::Keep } else { Ansi::Strip }
}

/// Shows the last lines. They are one answer of the daemon unless they are too long for that.
fn last_lines_of(
    args: Args,
    lines: u64,
    way: Destination,
    wanted: Option<Wanted>,
    cx: &mut Context<'_>,
) -> Result<u8, CliError> {
    let params = args.params(Some(lines), ansi(cx));
    let result = cx.connection.call_with_retry::<api::Log>(&params)?;
    if result.truncated {
        return by_cursor(args, way, wanted, cx);
    }
    let usual = way.bound.is_usual();
    let mut output = Output::new(&cx.console, false, way.pager);
    output.write(result.output.as_bytes(), &mut cx.console)?;
    output.finish(&mut cx.console)?;
    let before = result.matched_lines.map_or(result.first_line, |all| all.saturating_sub(result.lines_shown));
    if usual && before > 0 {
        let (are, them) = if before == 1 { ("line is", "it") } else { ("lines are", "them") };
        cx.console.message(&format!("{before} earlier {are} left out; -n all shows {them}"));
    }
    Ok(DONE)
}

/// Shows the lines from an offset on, one answer after the other.
fn from_line(args: Args, way: Destination, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let mut params = args.params(None, ansi(cx));
    let mut left = way.bound.most().unwrap_or(u64::MAX);
    let mut output = Output::new(&cx.console, false, way.pager);
    while left > 0 {
        params.limit = Some(left.min(MAX_PAGE_LINES));
        let result = cx.connection.call_with_retry::<api::Log>(&params)?;
        output.write(result.output.as_bytes(), &mut cx.console)?;
        left = left.saturating_sub(result.lines_shown);
        let next = result.next_offset.filter(|next| params.offset < Some(*next));
        let Some(next) = next else { break };
        params.offset = Some(next);
        if left == 0 && way.bound.is_usual() {
            output.finish(&mut cx.console)?;
            cx.console.message(&format!("there is more: --offset {next} goes on, -n all shows all of it"));
            return Ok(DONE);
        }
    }
    output.finish(&mut cx.console).map(|()| DONE)
}

/// Reads the output between two cursors, and with `-f` what comes after it.
struct LogReader {
    source: Source,
    output: Output,
    picker: Option<Picker>,
}

/// The end of a range of output.
struct Tail {
    shown: Vec<u8>,
    /// Later output is new, so no line is lost or shown twice.
    cursor: u64,
    /// There is more before it.
    left_out: bool,
}

fn by_cursor(args: Args, way: Destination, wanted: Option<Wanted>, cx: &mut Context<'_>) -> Result<u8, CliError> {
    let (ansi, encoding) = if args.raw { (Ansi::Keep, Encoding::Base64) } else { (ansi(cx), Encoding::Text) };
    let poll = params::PollParams { id: args.id.clone(), stream: args.stream, ansi, encoding, ..Default::default() };
    let source = Source { poll };
    let (since, until) = time_range(&args)?;
    let output = Output::new(&cx.console, args.raw, way.pager);
    let mut reading = LogReader { source: source.clone(), output, picker: wanted.map(Picker::new) };
    let mut left_out = false;
    let cursor = match (since, until, way.bound.most()) {
        (None, None, None) => reading.all(0, None, cx)?,
        (_, _, most) => {
            let all = source.end(cx)?;
            let begin = since.map_or(Ok(0), |ms| source.since(ms, all, cx))?;
            let end = until.map_or(Ok(all), |ms| source.until(ms, all, cx))?;
            match most {
                None => reading.all(begin, Some(end), cx)?,
                Some(most) => {
                    let last = reading.last(begin, end, most, cx)?;
                    left_out = last.left_out && way.bound.is_usual();
                    if left_out && args.follow {
                        cx.console.message(OMITTED_NOTE);
                    }
                    reading.output.write(&last.shown, &mut cx.console)?;
                    last.cursor
                }
            }
        }
    };
    if args.follow {
        reading.follow(cursor, cx)?;
    }
    reading.finish(cx)?;
    if left_out && !args.follow {
        cx.console.message(OMITTED_NOTE);
    }
    Ok(DONE)
}

impl LogReader {
    /// Shows everything between two cursors, or up to the current end. Returns where it ended.
    fn all(&mut self, begin: u64, end: Option<u64>, cx: &mut Context<'_>) -> Result<u64, CliError> {
        let source = self.source.clone();
        source.between(begin, end, cx, |bytes, cx| self.write(bytes, cx))
    }

    /// Shows the last lines before `end`.
    fn last(&mut self, begin: u64, end: u64, most: u64, cx: &mut Context<'_>) -> Result<Tail, CliError> {
        let mut window = TAIL_WINDOW.0;
        loop {
            let from = begin.max(end.saturating_sub(window));
            let mut bytes = Vec::new();
            let cursor = self.source.between(from, Some(end), cx, |page, _| {
                bytes.extend_from_slice(page);
                Ok(())
            })?;
            let whole = from == begin;
            let bytes = &bytes[first_line(&bytes, whole)..];
            let enough = whole || window >= TAIL_WINDOW.1;
            match &mut self.picker {
                None => {
                    let start = last_lines(bytes, most);
                    if start.is_some() || enough {
                        let shown = bytes[start.unwrap_or(0)..].to_vec();
                        return Ok(Tail { left_out: !whole || shown.len() < bytes.len(), shown, cursor });
                    }
                }
                Some(picker) => {
                    let lines = picker.push(bytes);
                    let found = Picker::count(&lines);
                    if enough || found > most {
                        let lines = picker.last(lines, most);
                        return Ok(Tail { shown: picker.print(&lines), cursor, left_out: !whole || found > most });
                    }
                    picker.restart();
                }
            }
            window *= 4;
        }
    }

    fn follow(&mut self, mut cursor: u64, cx: &mut Context<'_>) -> Result<(), CliError> {
        loop {
            let params = params::PollParams { cursor: Some(cursor), wait_ms: POLL_WAIT_MS, ..self.source.poll.clone() };
            let wait = Duration::from_millis(POLL_WAIT_MS);
            let raw = cx.call_long::<api::Poll>(|_| params.clone(), wait, &mut WhileWaiting::ExitOnHangup)?;
            let page = parse::<api::Poll>(&raw)?;
            range::report_gap(&page, cx);
            let bytes = self.source.decode(&page)?;
            self.write(&bytes, cx)?;
            let over = page.process.closed || page.process.status == Status::Lost;
            if over && (page.next_cursor >= page.process.cursor || page.next_cursor <= cursor) {
                return Ok(());
            }
            cursor = cursor.max(page.next_cursor);
        }
    }

    fn write(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> Result<(), CliError> {
        match &mut self.picker {
            None => self.output.write(bytes, &mut cx.console),
            Some(picker) => {
                let lines = picker.push(bytes);
                let shown = picker.print(&lines);
                self.output.write(&shown, &mut cx.console)
            }
        }
    }

    fn finish(mut self, cx: &mut Context<'_>) -> Result<(), CliError> {
        if let Some(picker) = &mut self.picker {
            let lines = picker.finish();
            let shown = picker.print(&lines);
            self.output.write(&shown, &mut cx.console)?;
        }
        self.output.finish(&mut cx.console)
    }
}
