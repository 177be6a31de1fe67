//! Reads the output of a process for its callers: a page after a cursor, lines, the tail, a preview, the whole within a
//! token budget. Nothing is consumed. Output that ends inside a character is cut there while more may follow.

use super::Proc;
use super::search_pool::{MAX_TURN_BYTES, MAX_TURN_NS};
use super::state::State;
use super::watcher::only_stream;
use crate::disk::call_on_disk;
use crate::log::{Grep, LinePage, LineQuery, Log, Page, cached_only};
use crate::matcher::BoundedRegex;
use crate::sys;
use crate::text::{self, PageEnd, TailBound, TextForm};
use base64::Engine;
use std::io;
use std::sync::Arc;
use tokio::time::{Instant, timeout_at};
use toold_format::Stream;
use toold_format::log::Counts;
use toold_proto::ProcId;
use toold_proto::params::{Ansi, Encoding};
use toold_proto::process::{Gap, Span, Truncated};
use toold_shim::hooks;

/// The length of a page without a cursor, in characters.
const TAIL_CHARS: usize = 1000;
/// The length that a search takes before it asks whether its turn is over.
const GREP_PIECE_LEN: u64 = 64 * 1024;
/// The length of a preview, in characters.
const PREVIEW_CHARS: usize = 200;
/// The characters read for one character of preview of a program on a terminal: it also writes colours and positions.
const PTY_OVERHEAD: usize = 10;

/// The output of a process could not be read or searched.
#[derive(Debug)]
pub enum OutputError {
    Read {
        id: ProcId,
        source: io::Error,
    },
    /// The pattern takes too long. The message is for the caller.
    TooSlow(String),
}

impl OutputError {
    /// For `map_err`.
    pub fn of(proc: &Proc) -> impl Fn(io::Error) -> OutputError + use<> {
        let id = proc.spec.id;
        move |source| OutputError::Read { id, source }
    }
}

/// Takes the output that was read, or `instead` if the log cannot be read. The process is known all the same, so the call
/// is answered, and the answer describes the error. A lack of resources is an error of the call: it can be repeated.
fn or_unreadable<T>(proc: &Proc, read: io::Result<T>, instead: impl FnOnce() -> T) -> Result<T, OutputError> {
    match read {
        Ok(output) => {
            proc.set_unreadable(None);
            Ok(output)
        }
        Err(e) if sys::is_transient(&e) => Err(OutputError::of(proc)(e)),
        Err(e) => {
            proc.set_unreadable(Some(unreadable(&e)));
            Ok(instead())
        }
    }
}

/// Describes an error of reading the output.
pub fn unreadable(e: &io::Error) -> String {
    format!("the output cannot be read: {e}")
}

/// Returns the gap that unreadable output is.
fn gap_to(from: u64, to: u64) -> Option<Gap> {
    (from < to).then_some(Gap { from, to })
}

/// The part of the output to read, and its form.
#[derive(Debug, Clone, Copy)]
pub struct PageQuery {
    /// None: the last characters.
    pub cursor: Option<u64>,
    pub max_len: usize,
    pub stream: Option<Stream>,
    pub encoding: Encoding,
    pub form: TextForm,
    /// Only the last lines. Only with `Text`.
    pub tail_lines: Option<usize>,
    pub spans: bool,
}

/// A page of output, decoded or in base64.
#[derive(Debug, Clone, PartialEq)]
pub struct OutputPage {
    pub output: String,
    pub from: u64,
    pub next: u64,
    pub gap: Option<Gap>,
    pub spans: Option<Vec<Span>>,
}

/// The whole output, cut in its middle if it is longer than a budget.
#[derive(Debug, Clone, PartialEq)]
pub struct FittedOutput {
    pub output: String,
    pub next: u64,
    pub truncated: Option<Truncated>,
    pub gap: Option<Gap>,
}

/// Waits until there is output after the cursor, an exit or a close that is new to the caller, or the deadline, if
/// there is one. Returns the page and the state that it belongs to. `exit_seen`: the caller knows already that the process has exited.
pub async fn wait_page(
    proc: &Proc,
    mut query: PageQuery,
    deadline: Option<Instant>,
    exit_seen: impl FnOnce() -> bool,
) -> Result<(State, OutputPage), OutputError> {
    let mut updates = proc.subscribe();
    let before = proc.published_state();
    // An exit is new to a caller that has not seen it, however old it is.
    let old_exit = before.has_ended() && exit_seen();
    loop {
        updates.mark_unchanged();
        let state = proc.state();
        let page = read_cached_first(|| read_page(proc, &state, &query)).await?;
        // A gap without output is output that cannot be read.
        let is_empty = query.cursor.is_some() && page.output.is_empty() && page.gap.is_none();
        // A caller that waits for the rest of a program's output learns that it is stored.
        let is_drained = before.is_held_back() && !state.is_held_back();
        let is_closed = state.closed != before.closed || (state.has_ended() && state.closed);
        let is_changed = (state.has_ended() && !old_exit) || is_closed || is_drained;
        let at_end = page.next >= state.progress.counts.end;
        let Some(deadline) =
            deadline.filter(|deadline| is_empty && !(is_changed && at_end) && Instant::now() < *deadline)
        else {
            return Ok((state, page));
        };
        if query.cursor.is_some_and(|cursor| page.next > cursor) {
            // This page has nothing of the stream: on to the next.
            query.cursor = Some(page.next);
            continue;
        }
        // Nothing, or part of a character whose rest has yet to come.
        proc.notify_past(state.progress.counts.end);
        let _ = timeout_at(deadline, updates.changed()).await;
    }
}

/// Reads output that is in memory at once, and other output from the disk, in a task of the call's own: the calls behind it
/// on its connection do not wait for the disk.
pub async fn read_cached_first<T>(read: impl Fn() -> Result<T, OutputError>) -> Result<T, OutputError> {
    let from_disk = async {
        hooks::at("log.read_disk");
        read()
    };
    match cached_only(&read) {
        Err(OutputError::Read { source, .. }) if source.kind() == io::ErrorKind::WouldBlock => {
            call_on_disk(from_disk).await
        }
        done => done,
    }
}

/// Reads up to `max` bytes of one stream after a cursor, for a reader that follows the log.
pub async fn read_stream(
    proc: &Proc,
    state: &State,
    cursor: u64,
    max: usize,
    stream: Stream,
) -> Result<Page, OutputError> {
    let read = || open_log(proc, state).and_then(|log| log.read(cursor, max, Some(stream)));
    read_cached_first(|| read().map_err(OutputError::of(proc))).await
}

/// Opens the log up to the end of the state.
fn open_log(proc: &Proc, state: &State) -> io::Result<Log> {
    let counts = &state.progress.counts;
    Ok(Log::open(&proc.dir, counts.end)?.with_only(only_stream(counts)))
}

/// Reads one page.
pub fn read_page(proc: &Proc, state: &State, query: &PageQuery) -> Result<OutputPage, OutputError> {
    let read = || {
        let end = state.progress.counts.end;
        let log = open_log(proc, state)?;
        let PageQuery { max_len, stream, form, .. } = *query;
        let mut page = match (query.cursor, query.encoding) {
            // A gap before the last characters is not reported: the caller did not ask for what is before them.
            (None, Encoding::Text) => {
                let bound = tail_bound(query.tail_lines, TAIL_CHARS, max_len);
                let page = log.read_tail(bound, 0, stream, form, page_end(state))?;
                OutputPage { output: page.text, from: page.from, next: page.next, gap: None, spans: None }
            }
            (Some(cursor), Encoding::Text) if query.tail_lines.is_some() => {
                let bound = tail_bound(query.tail_lines, usize::MAX, max_len);
                let page = log.read_tail(bound, cursor.min(end), stream, form, page_end(state))?;
                OutputPage { output: page.text, from: page.from, next: page.next, gap: None, spans: None }
            }
            (None, Encoding::Base64) => {
                let page = log.tail(TAIL_CHARS, stream)?;
                OutputPage { output: to_base64(&page.bytes), from: page.from, next: page.next, gap: None, spans: None }
            }
            (Some(cursor), Encoding::Text) => {
                let page = log.read_text(cursor.min(end), max_len, stream, form, page_end(state))?;
                OutputPage { output: page.text, from: page.from, next: page.next, gap: page.gap, spans: None }
            }
            (Some(cursor), Encoding::Base64) => {
                let page = log.read(cursor.min(end), max_len, stream)?;
                let output = to_base64(&page.bytes);
                OutputPage { output, from: page.from, next: page.next, gap: page.gap, spans: None }
            }
        };
        if query.spans {
            page.spans = Some(log.spans(page.from, page.next)?);
        }
        Ok(page)
    };
    let end = state.progress.counts.end;
    or_unreadable(proc, read(), || OutputPage {
        output: String::new(),
        from: end,
        next: end,
        gap: gap_to(query.cursor.unwrap_or(0), end),
        spans: query.spans.then(Vec::new),
    })
}

/// Reads lines: the page as it is in the log, with its gap or else the first gap of the log, and its text.
pub fn read_lines(proc: &Proc, query: &LineQuery, form: TextForm) -> Result<(LinePage, String), OutputError> {
    let read = || {
        let state = proc.state();
        let mut counts = state.progress.counts;
        let mut log = open_log(proc, &state)?;
        if !state.closed {
            (log, counts) = log.until_char_boundary(query.stream, &counts)?;
        }
        let mut page = log.lines(query, &counts)?;
        // A gap anywhere in the log is reported with every page.
        page.gap = match page.gap {
            Some(gap) => Some(gap),
            None => log.first_gap(0)?,
        };
        let text = text::show_text(&page.bytes, page_end(&state), form);
        Ok((page, text))
    };
    read().map_err(OutputError::of(proc))
}

/// Searches all output for lines that match. Takes turns with other searches; the turn under way ends early if the
/// future is dropped.
pub async fn search_lines(
    proc: &Arc<Proc>,
    regex: &Arc<BoundedRegex>,
    query: &LineQuery<'_>,
    form: TextForm,
) -> Result<(LinePage, String), OutputError> {
    let read_error = OutputError::of(proc);
    let stream = query.stream;
    let mut grep = Grep::new(regex, query, proc.sink.searches.meter());
    let state = proc.state();
    let open = move |proc: &Proc| -> io::Result<(Log, Counts)> {
        let counts = state.progress.counts;
        let log = Log::open(&proc.dir, counts.end)?;
        if state.closed { Ok((log, counts)) } else { log.until_char_boundary(stream, &counts) }
    };
    loop {
        let worker = proc.clone();
        let work = move |cancelled| {
            grep.meter.begin_turn(cancelled);
            let searched = open(&worker).and_then(|(log, counts)| {
                let mut done = false;
                let mut left = MAX_TURN_BYTES;
                while !done && left > 0 && grep.meter.ended().is_none() && grep.meter.turn_ns() < MAX_TURN_NS {
                    done = grep.search(&log, &counts, GREP_PIECE_LEN)?;
                    left = left.saturating_sub(GREP_PIECE_LEN);
                }
                Ok((done, log.first_gap(0)?, counts))
            });
            grep.meter.end_turn();
            (grep, searched)
        };
        let (back, searched) = proc.sink.searches.turn(work).await.map_err(&read_error)?;
        grep = back;
        let (done, first_gap, counts) = searched.map_err(&read_error)?;
        if grep.meter.ended().is_some() {
            return Err(OutputError::TooSlow(proc.sink.searches.too_slow()));
        }
        if done {
            let mut page = grep.finish(&counts);
            page.gap = page.gap.or(first_gap);
            let text = text::show_text(&page.bytes, page_end(&state), form);
            return Ok((page, text));
        }
    }
}

/// Reads the whole output without escape sequences, cut in its middle to fit the token budget; or only its last lines.
pub fn read_fitted(
    proc: &Proc,
    state: &State,
    max_tokens: u64,
    tail_lines: Option<usize>,
    form: TextForm,
) -> Result<FittedOutput, OutputError> {
    let read = || {
        let mut log = open_log(proc, state)?;
        if !state.closed {
            let end = log.char_boundary_end()?;
            log = log.until(end);
        }
        let (output, truncated) = match tail_lines {
            None => text::fit_tokens(&log, 0, max_tokens, form)?,
            Some(_) => {
                let bound = tail_bound(tail_lines, usize::MAX, text::token_bytes(max_tokens));
                let page = log.read_tail(bound, 0, None, form, PageEnd::Last)?;
                (page.text, (page.from > 0).then(|| text::omitted(0, page.from)))
            }
        };
        Ok(FittedOutput { output, next: log.end(), truncated, gap: log.first_gap(0)? })
    };
    let end = state.progress.counts.end;
    let instead = || FittedOutput { output: String::new(), next: end, truncated: None, gap: gap_to(0, end) };
    or_unreadable(proc, read(), instead)
}

/// Reads the end of the output within bounds, without escape sequences, and the cursor after it.
pub fn read_tail(proc: &Proc, state: &State, bound: TailBound, form: TextForm) -> Result<(String, u64), OutputError> {
    or_unreadable(proc, tail(proc, state, bound, form), || (String::new(), state.progress.counts.end))
}

fn tail(proc: &Proc, state: &State, bound: TailBound, form: TextForm) -> io::Result<(String, u64)> {
    let log = open_log(proc, state)?;
    let page = log.read_tail(bound, 0, None, form, page_end(state))?;
    Ok((page.text, page.next))
}

/// Returns the bounds of a tail: lines within bytes, or else characters.
pub fn tail_bound(lines: Option<usize>, chars: usize, bytes: usize) -> TailBound {
    match lines {
        Some(lines) => TailBound { lines, bytes, ..TailBound::NONE },
        None => TailBound { chars, ..TailBound::NONE },
    }
}

/// Returns the end of the output for a list, if it needs no disk.
pub fn known_preview(proc: &Proc, state: &State) -> Option<Arc<str>> {
    if state.progress.counts.end == 0 { Some(Arc::default()) } else { proc.known_preview(state) }
}

/// Returns the end of the output for a list. It is read again only after new output. It is empty if the output cannot be
/// read, for whatever reason: a list is possible all the same.
pub fn preview(proc: &Proc, state: &State) -> Arc<str> {
    proc.preview(state, || read_preview(proc, state)).unwrap_or_else(|e| {
        proc.set_unreadable(Some(unreadable(&e)));
        "".into()
    })
}

/// Reads the last characters. A program on a terminal draws anywhere: for that, the rows that it drew last.
fn read_preview(proc: &Proc, state: &State) -> io::Result<String> {
    if proc.spec.pty.is_none() {
        let bound = TailBound { chars: PREVIEW_CHARS, ..TailBound::NONE };
        return Ok(tail(proc, state, bound, TextForm::PLAIN)?.0);
    }
    let log = open_log(proc, state)?;
    let page = log.last_chars(PREVIEW_CHARS * PTY_OVERHEAD, None, Ansi::Keep, page_end(state))?;
    let rows = toold_ansi::strip_to_rows(&page.text);
    let skipped = rows.chars().count().saturating_sub(PREVIEW_CHARS);
    Ok(rows.chars().skip(skipped).collect())
}

/// Returns `More` while an incomplete character at the end of the log may still be completed.
fn page_end(state: &State) -> PageEnd {
    if state.closed { PageEnd::Last } else { PageEnd::More }
}

fn to_base64(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}
