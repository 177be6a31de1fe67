//! The output of several processes in one, in the order of its times, each line behind the name of its process; and `-t`.

use super::lines::Wanted;
use super::output::Output;
use super::range::{Source, report_gap};
use super::timed::{LineSplitter, TimedLine, line_ends};
use super::{Args, Destination, OMITTED_NOTE, POLL_WAIT_MS, TAIL_WINDOW, time_range};
use crate::blocking::{CallError, parse};
use crate::cmd::Context;
use crate::cmd::poll::bytes;
use crate::console::Console;
use crate::error::{CliError, DONE};
use crate::event_loop::{EventLoop, Incoming, Sources};
use crate::local_time;
use crate::render::Style;
use crate::render::text::{columns, cut, escape_control, pad, without_escapes};
use crate::sys::Interest;
use std::collections::VecDeque;
use std::os::fd::AsFd;
use std::time::Duration;
use toold_proto::api;
use toold_proto::params::{self, Ansi, Encoding, Status, Stream};
use toold_proto::results::PollResult;

/// The longest name in front of a line.
const MAX_NAME_WIDTH: usize = 24;
/// The colours of names, in turn: cyan, yellow, green, magenta, blue, red.
const COLOURS: [&str; 6] = ["36", "33", "32", "35", "34", "31"];
/// The size of one page.
const PAGE_LEN: u64 = 256 * 1024;

/// Shows the output of these processes, at least one.
pub fn run(
    args: &Args,
    ids: &[String],
    way: Destination,
    wanted: Option<Wanted>,
    cx: &mut Context<'_>,
) -> Result<u8, CliError> {
    let (since, until) = time_range(args)?;
    let mut logs = Vec::new();
    let mut left_out = false;
    for id in ids {
        let poll = params::PollParams {
            id: id.clone(),
            ansi: Ansi::Keep,
            encoding: Encoding::Base64,
            spans: true,
            ..Default::default()
        };
        let process = cx.connection.call_with_retry::<api::Poll>(&poll)?.process;
        let source = Source { poll: params::PollParams { id: process.id.to_string(), ..poll } };
        let begin = since.map_or(Ok(0), |ms| source.since(ms, process.cursor, cx))?;
        let end = until.map_or(Ok(process.cursor), |ms| source.until(ms, process.cursor, cx))?;
        let name = process.name.clone().unwrap_or_else(|| process.id.to_string());
        let mut log = ProcessLog { name, source, stream: args.stream, cursor: begin, end, ..Default::default() };
        match (way.bound.most(), &wanted) {
            (Some(most), None) => left_out |= log.skip_to_last(most, cx)?,
            (Some(most), Some(wanted)) => left_out |= log.keep_last_matches(most, wanted, args.follow, cx)?,
            (None, _) => {}
        }
        logs.push(log);
    }
    let left_out = left_out && way.bound.is_usual();
    if left_out && args.follow {
        cx.console.message(OMITTED_NOTE);
    }
    let output = Output::new(&cx.console, true, way.pager);
    let mut printer = Printer::new(output, &logs, ids.len() > 1, args.timestamps, cx.console.style, wanted);
    merge(&mut logs, &mut printer, args.follow, cx)?;
    if args.follow {
        follow(&mut logs, &mut printer, cx)?;
    }
    printer.output.finish(&mut cx.console)?;
    if left_out && !args.follow {
        cx.console.message(OMITTED_NOTE);
    }
    Ok(DONE)
}

/// The output of one process, from a cursor on.
#[derive(Default)]
struct ProcessLog {
    name: String,
    source: Source,
    stream: Option<Stream>,
    cursor: u64,
    /// The end of what was there at the start.
    end: u64,
    splitter: LineSplitter,
    ready: VecDeque<TimedLine>,
    /// Nothing more comes.
    is_over: bool,
}

impl ProcessLog {
    /// Reads the page at a cursor.
    fn page(&self, cursor: u64, cx: &mut Context<'_>) -> Result<PollResult, CliError> {
        let params = params::PollParams {
            cursor: Some(cursor),
            max_bytes: Some(PAGE_LEN.min(self.end.saturating_sub(cursor))),
            ..self.source.poll.clone()
        };
        cx.connection.call_with_retry::<api::Poll>(&params)
    }

    /// Takes a page and moves behind it.
    fn take(&mut self, page: &PollResult, cx: &mut Context<'_>) -> Result<(), CliError> {
        report_gap(page, cx);
        let spans = page.spans.as_deref().unwrap_or_default();
        self.ready.extend(self.splitter.push(page.from, &bytes(&page.output)?, spans, self.stream));
        self.cursor = self.cursor.max(page.next_cursor);
        Ok(())
    }

    /// Reads until a line is ready, or the end is reached.
    fn prepare(&mut self, cx: &mut Context<'_>) -> Result<(), CliError> {
        while self.ready.is_empty() && self.cursor < self.end {
            let (page, before) = (self.page(self.cursor, cx)?, self.cursor);
            self.take(&page, cx)?;
            if self.cursor == before {
                self.cursor = self.end;
            }
        }
        Ok(())
    }

    /// Moves to the start of the last lines. Returns true if lines are left out.
    fn skip_to_last(&mut self, most: u64, cx: &mut Context<'_>) -> Result<bool, CliError> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let (begin, mut window) = (self.cursor, TAIL_WINDOW.0);
        loop {
            let from = begin.max(self.end.saturating_sub(window));
            // The starts of the last lines, and one more.
            let mut starts: VecDeque<u64> = (from == begin).then_some(begin).into_iter().collect();
            let mut cursor = from;
            while cursor < self.end {
                let page = self.page(cursor, cx)?;
                let content = bytes(&page.output)?;
                let spans = page.spans.as_deref().unwrap_or_default();
                for start in line_ends(page.from, &content, spans, self.stream).filter(|start| *start < self.end) {
                    starts.push_back(start);
                    if starts.len() > most.saturating_add(1) {
                        starts.pop_front();
                    }
                }
                cursor = if page.next_cursor > cursor { page.next_cursor } else { self.end };
            }
            if most == 0 {
                self.cursor = self.end;
                return Ok(self.end > begin);
            }
            if from == begin || window >= TAIL_WINDOW.1 || starts.len() >= most {
                let first = starts.len().checked_sub(most).and_then(|first| starts.get(first)).or(starts.front());
                self.cursor = first.copied().unwrap_or(from);
                return Ok(self.cursor > begin);
            }
            window *= 4;
        }
    }

    /// Keeps the last lines that match of what is there. Returns true if others are left out.
    fn keep_last_matches(
        &mut self,
        most: u64,
        wanted: &Wanted,
        follows: bool,
        cx: &mut Context<'_>,
    ) -> Result<bool, CliError> {
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let mut kept = VecDeque::new();
        let mut left_out = false;
        loop {
            self.prepare(cx)?;
            if self.ready.is_empty() {
                if !follows {
                    self.ready.extend(self.splitter.finish());
                }
                if self.ready.is_empty() {
                    break;
                }
            }
            for line in self.ready.drain(..).filter(|line| wanted.matches(&line.bytes)) {
                kept.push_back(line);
                if kept.len() > most {
                    kept.pop_front();
                    left_out = true;
                }
            }
        }
        self.ready = kept;
        Ok(left_out)
    }
}

/// Prints what is there, the earliest line of all first.
fn merge(logs: &mut [ProcessLog], printer: &mut Printer, follows: bool, cx: &mut Context<'_>) -> Result<(), CliError> {
    loop {
        for log in logs.iter_mut() {
            log.prepare(cx)?;
            if log.ready.is_empty() && !follows {
                log.ready.extend(log.splitter.finish());
            }
        }
        let first = |(n, log): (usize, &ProcessLog)| log.ready.front().map(|line| (line.at_ms, n));
        let Some((_, n)) = logs.iter().enumerate().filter_map(first).min() else { return Ok(()) };
        if let Some(line) = logs[n].ready.pop_front() {
            printer.print(n, &line, &mut cx.console)?;
        }
    }
}

/// Prints new lines as they are complete, until the output of every process is closed.
fn follow(logs: &mut [ProcessLog], printer: &mut Printer, cx: &mut Context<'_>) -> Result<(), CliError> {
    let wait = Duration::from_millis(POLL_WAIT_MS);
    let mut events: EventLoop<usize> = EventLoop::new();
    let next = |log: &ProcessLog| params::PollParams {
        cursor: Some(log.cursor),
        max_bytes: Some(PAGE_LEN),
        wait_ms: POLL_WAIT_MS,
        ..log.source.poll.clone()
    };
    for (n, log) in logs.iter().enumerate() {
        events.send::<api::Poll>(&mut cx.connection, n, &next(log), wait)?;
    }
    while logs.iter().any(|log| !log.is_over) {
        match events.next(&mut cx.connection)? {
            Some(Incoming::Answer(n, outcome)) => {
                let page = parse::<api::Poll>(&outcome.map_err(CallError::Rpc)?)?;
                let log = &mut logs[n];
                let before = log.cursor;
                log.take(&page, cx)?;
                let is_final = page.process.closed || page.process.status == Status::Lost;
                log.is_over = is_final && (log.cursor >= page.process.cursor || log.cursor == before);
                if log.is_over {
                    log.ready.extend(log.splitter.finish());
                }
                while let Some(line) = log.ready.pop_front() {
                    printer.print(n, &line, &mut cx.console)?;
                }
                if !log.is_over {
                    events.send::<api::Poll>(&mut cx.connection, n, &next(log), wait)?;
                }
            }
            // There is no subscription.
            Some(Incoming::Push(_)) => {}
            None => {
                let stdout = std::io::stdout();
                let output = cx.console.is_real.then(|| (stdout.as_fd(), Interest::HungUp));
                let wake = events.wait(&mut cx.connection, Sources { output, ..Default::default() }, None)?;
                if wake.output {
                    return Err(CliError::OutputClosed);
                }
                if let Some(notice) = &wake.notice {
                    cx.console.message(notice);
                }
                if let Some(lost) = wake.lost {
                    events.reconnect(&mut cx.connection, lost)?;
                }
            }
        }
    }
    Ok(())
}

/// Prints lines behind their times and the names of their processes.
struct Printer {
    output: Output,
    /// The name of each process as it is printed. Empty for one process alone.
    names: Vec<String>,
    timestamps: bool,
    wanted: Option<Wanted>,
}

impl Printer {
    fn new(
        output: Output,
        logs: &[ProcessLog],
        several: bool,
        timestamps: bool,
        style: Style,
        wanted: Option<Wanted>,
    ) -> Printer {
        let shown: Vec<String> = logs.iter().map(|log| cut(&escape_control(&log.name), MAX_NAME_WIDTH)).collect();
        let width = shown.iter().map(|name| columns(name)).max().unwrap_or(0);
        let name = |(n, name): (usize, String)| match (several, style.colour) {
            (false, _) => String::new(),
            (true, false) => format!("{} | ", pad(&name, width)),
            (true, true) => format!("\x1b[{}m{} |\x1b[0m ", COLOURS[n % COLOURS.len()], pad(&name, width)),
        };
        Printer { output, names: shown.into_iter().enumerate().map(name).collect(), timestamps, wanted }
    }

    fn print(&mut self, n: usize, line: &TimedLine, console: &mut Console<'_>) -> Result<(), CliError> {
        if self.wanted.as_ref().is_some_and(|wanted| !wanted.matches(&line.bytes)) {
            return Ok(());
        }
        let time = if self.timestamps { local_time::stamp(line.at_ms) + "  " } else { String::new() };
        let text = as_it_stood_last(&String::from_utf8_lossy(&line.bytes)).to_owned();
        let text = match console.sanitizer() {
            Some(sanitizer) => sanitizer.sanitize(&text),
            None => without_escapes(&text),
        };
        let name = self.names.get(n).map(String::as_str).unwrap_or_default();
        self.output.write(format!("{time}{name}{}\n", text.trim_end_matches('\n')).as_bytes(), console)
    }
}

/// Returns a line without what a carriage return let the rest overwrite.
fn as_it_stood_last(line: &str) -> &str {
    let line = line.trim_end_matches('\r');
    line.rsplit('\r').next().unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::as_it_stood_last;

    #[test]
    fn a_progress_line_is_shown_as_it_stood_last() {
        assert_eq!(as_it_stood_last("10%\r50%\r100%\r"), "100%");
        assert_eq!((as_it_stood_last("plain"), as_it_stood_last("\r")), ("plain", ""));
    }
}
