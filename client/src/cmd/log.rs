//! `log`: a process's output by line, by time or by pattern, and with `-f` as it comes.

mod lines;
mod output;
mod range;
#[cfg(test)]
mod tests;

use super::Context;
use super::long::Meanwhile;
use crate::args;
use crate::blocking::parse;
use crate::failure::{DONE, Failure};
use crate::local::{When, now_ms};
use lines::{Picker, Wanted, first_line, last_lines};
use output::Output;
use range::Source;
use regex::Regex;
use std::time::Duration;
use toold_proto::api;
use toold_proto::params::{self, Ansi, Encoding, Status, Stream};

/// How many lines stand before what is new, unless `-n` says otherwise.
const FOLLOW_LINES: u64 = 10;
/// How many lines are shown, unless `-n` or a time says otherwise.
const LINES: u64 = 200;
/// More the daemon does not give at once.
const LINES_MAX: u64 = 100_000;
/// How far back the last lines are looked for at first, and at most.
const WINDOW: (u64, u64) = (64 * 1024, 64 * 1024 * 1024);
/// How long one poll waits for news. Only a bound: it answers on the first byte.
const WAIT_MS: u64 = 30_000;

const HELP: &str = "A TIME is so long ago (10m), a time of day (14:30), a date, or \"2026-11-16 14:30:05\"; it is known to \
a tenth of a second. On a terminal control characters are written out, and more than a screen goes through $PAGER (less -R). \
--color=always keeps the colours of the output, and nothing else of its escape sequences. -f goes on when the daemon was away.

Examples:
  toolctl log web -f --grep 'error|warn' -C 2
  toolctl log web --since 10m --stream stderr";

#[derive(Debug, clap::Args)]
#[command(after_help = HELP)]
pub struct Args {
    /// The process: its id, a unique start of that, its name, @last or @failed
    pub id: String,
    /// Show what comes too, until the output is closed
    #[arg(short, long, conflicts_with_all = ["offset", "until"])]
    follow: bool,
    /// At most this many lines, the last ones [default: 200; 10 with -f; all with --since or --until]
    #[arg(short = 'n', long, value_name = "N")]
    lines: Option<u64>,
    /// From this line on, counted from 0 [default: the last lines]
    #[arg(long, value_name = "N", conflicts_with_all = ["since", "until", "raw", "after", "before", "context"])]
    offset: Option<u64>,
    /// Only what was printed at that time or later: 10m (ago), 14:30, a date
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    since: Option<When>,
    /// Only what was printed until then
    #[arg(long, value_name = "TIME", value_parser = When::parse)]
    until: Option<When>,
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
    #[arg(long, hide_possible_values = true, help = args::listed::<Stream>("Only this stream"), value_parser = args::word::<Stream>())]
    stream: Option<Stream>,
    /// The bytes as they are, with their escape sequences
    #[arg(long)]
    raw: bool,
    /// Do not use a pager
    #[arg(long)]
    no_pager: bool,
}

impl Args {
    /// What only this program can do, because the daemon's `log` knows nothing of it.
    fn is_special(&self) -> bool {
        let context = [self.after, self.before, self.context].iter().any(Option::is_some);
        self.follow || self.raw || self.since.is_some() || self.until.is_some() || context
    }

    fn params(&self, ansi: Ansi) -> params::Log {
        params::Log {
            id: self.id.clone(),
            offset: self.offset,
            limit: self.lines,
            stream: self.stream,
            grep: self.grep.clone(),
            ansi,
        }
    }

    fn wanted(&self) -> Result<Option<Wanted>, Failure> {
        let Some(pattern) = &self.grep else { return Ok(None) };
        let grep = Regex::new(pattern).map_err(|e| Failure::Usage(format!("--grep: {e}")))?;
        let around = self.context.unwrap_or(0);
        Ok(Some(Wanted { grep, before: self.before.unwrap_or(around), after: self.after.unwrap_or(around) }))
    }
}

pub fn run(args: Args, cx: &mut Context<'_>) -> Result<u8, Failure> {
    if cx.json {
        if args.is_special() {
            let why = "--json prints one answer of the daemon as it is: it takes -n, --offset, --grep and --stream; \
                       for the rest use `toolctl poll --json --cursor`";
            return Err(Failure::Usage(why.into()));
        }
        let params = args.params(Ansi::Strip);
        let raw = cx.link.call_again_raw::<api::Log>(|_| params.clone())?;
        return cx.document(&raw).map(|()| DONE);
    }
    let wanted = args.wanted()?;
    // A pattern is for the text, and the daemon would look at the colours too.
    let coloured = cx.console.keeps_colours && wanted.is_some() && args.offset.is_none();
    if args.is_special() || coloured || args.lines.is_some_and(|lines| lines > LINES_MAX) {
        return by_cursor(args, wanted, cx);
    }
    by_line(args, wanted, cx)
}

/// One answer of the daemon.
fn by_line(args: Args, wanted: Option<Wanted>, cx: &mut Context<'_>) -> Result<u8, Failure> {
    if args.lines == Some(0) {
        return Ok(DONE);
    }
    let ansi = if cx.console.keeps_colours { Ansi::Keep } else { Ansi::Strip };
    let result = cx.link.call_again::<api::Log>(&args.params(ansi))?;
    if result.truncated && args.offset.is_none() {
        return by_cursor(args, wanted, cx);
    }
    let mut output = Output::new(&cx.console, false, !args.no_pager);
    output.write(result.output.as_bytes(), &mut cx.console)?;
    output.finish(&mut cx.console)?;
    if let (true, Some(next)) = (result.truncated, result.next_offset) {
        cx.console.say(&format!("there is more; --offset {next} goes on"));
    }
    Ok(DONE)
}

/// One look at the output between two cursors, and with `-f` what comes after it.
struct Reading {
    source: Source,
    output: Output,
    picker: Option<Picker>,
}

fn by_cursor(args: Args, wanted: Option<Wanted>, cx: &mut Context<'_>) -> Result<u8, Failure> {
    let (ansi, encoding) = match (args.raw, cx.console.keeps_colours) {
        (true, _) => (Ansi::Keep, Encoding::Base64),
        (false, true) => (Ansi::Keep, Encoding::Text),
        (false, false) => (Ansi::Strip, Encoding::Text),
    };
    let poll = params::Poll { id: args.id.clone(), stream: args.stream, ansi, encoding, ..Default::default() };
    let source = Source { poll };
    let now = now_ms();
    let at = |when: Option<When>| match when.map(|when| when.unix_ms(now)) {
        Some(None) => Err(Failure::Usage("there is no such time in the local calendar".into())),
        Some(Some(ms)) => Ok(Some(ms)),
        None => Ok(None),
    };
    let (since, until) = (at(args.since)?, at(args.until)?);
    let all = source.end(cx)?;
    let begin = since.map_or(Ok(0), |ms| source.since(ms, all, cx))?;
    let end = until.map_or(Ok(all), |ms| source.until(ms, all, cx))?;
    let most = match (args.lines, since.is_some() || until.is_some(), args.follow) {
        (Some(lines), _, _) => Some(lines),
        (None, true, _) => None,
        (None, false, true) => Some(FOLLOW_LINES),
        (None, false, false) => Some(LINES),
    };
    let output = Output::new(&cx.console, args.raw, !args.follow && !args.no_pager);
    let mut reading = Reading { source, output, picker: wanted.map(Picker::new) };
    let cursor = match most {
        Some(most) => reading.last(begin, end, most, cx)?,
        None => reading.all(begin, end, cx)?,
    };
    if args.follow {
        reading.follow(cursor, cx)?;
    }
    reading.finish(cx)
}

impl Reading {
    /// Everything between two cursors. Where it really ended.
    fn all(&mut self, begin: u64, end: u64, cx: &mut Context<'_>) -> Result<u64, Failure> {
        let source = self.source.clone();
        source.between(begin, end, cx, |bytes, cx| self.write(bytes, cx))
    }

    /// The last lines before `end`, and the cursor after them: what comes later is new, so no line
    /// is lost or shown twice.
    fn last(&mut self, begin: u64, end: u64, most: u64, cx: &mut Context<'_>) -> Result<u64, Failure> {
        let mut window = WINDOW.0;
        loop {
            let from = begin.max(end.saturating_sub(window));
            let mut bytes = Vec::new();
            let cursor = self.source.between(from, end, cx, |page, _| {
                bytes.extend_from_slice(page);
                Ok(())
            })?;
            let whole = from == begin;
            let bytes = &bytes[first_line(&bytes, whole)..];
            let enough = whole || window >= WINDOW.1;
            match &mut self.picker {
                None => {
                    let start = last_lines(bytes, most);
                    if start.is_some() || enough {
                        self.output.write(&bytes[start.unwrap_or(0)..], &mut cx.console)?;
                        return Ok(cursor);
                    }
                }
                Some(picker) => {
                    let lines = picker.push(bytes);
                    if enough || Picker::count(&lines) > most {
                        let lines = picker.last(lines, most);
                        let shown = picker.print(&lines);
                        self.output.write(&shown, &mut cx.console)?;
                        return Ok(cursor);
                    }
                    picker.restart();
                }
            }
            window *= 4;
        }
    }

    fn follow(&mut self, mut cursor: u64, cx: &mut Context<'_>) -> Result<(), Failure> {
        loop {
            let params = params::Poll { cursor: Some(cursor), wait_ms: WAIT_MS, ..self.source.poll.clone() };
            let wait = Duration::from_millis(WAIT_MS);
            let raw = cx.call_long::<api::Poll>(|_| params.clone(), wait, &mut Meanwhile::MindReader)?;
            let page = parse::<api::Poll>(&raw)?;
            range::say_gap(&page, cx);
            let bytes = self.source.decode(&page)?;
            self.write(&bytes, cx)?;
            let over = page.process.closed || page.process.status == Status::Lost;
            if over && (page.next_cursor >= page.process.cursor || page.next_cursor <= cursor) {
                return Ok(());
            }
            cursor = cursor.max(page.next_cursor);
        }
    }

    fn write(&mut self, bytes: &[u8], cx: &mut Context<'_>) -> Result<(), Failure> {
        match &mut self.picker {
            None => self.output.write(bytes, &mut cx.console),
            Some(picker) => {
                let lines = picker.push(bytes);
                let shown = picker.print(&lines);
                self.output.write(&shown, &mut cx.console)
            }
        }
    }

    fn finish(mut self, cx: &mut Context<'_>) -> Result<u8, Failure> {
        if let Some(picker) = &mut self.picker {
            let lines = picker.finish();
            let shown = picker.print(&lines);
            self.output.write(&shown, &mut cx.console)?;
        }
        self.output.finish(&mut cx.console).map(|()| DONE)
    }
}
