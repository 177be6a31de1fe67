//! Output that a reader has not seen yet: all of it, or its beginning and its end; and the beginning of one stream.

use super::Proc;
use super::output::OutputError;
use super::state::State;
use super::watcher::only_stream;
use crate::log::Log;
use crate::text::{PageEnd, TailBound, TextForm};
use std::io;
use toold_format::Stream;

/// Bytes per read.
const READ_LEN: usize = 256 * 1024;
const FORM: TextForm = TextForm::COLLAPSED;

/// Output from a cursor on, as text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Unread {
    pub head: String,
    /// Bytes between head and tail that are left out, or that the log has dropped.
    pub omitted: u64,
    pub tail: String,
    /// The cursor after it.
    pub next: u64,
}

/// The beginning of one stream, as text.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StreamHead {
    pub text: String,
    /// Bytes before the text that the log has dropped.
    pub dropped: u64,
    /// Bytes of the stream after the text.
    pub more: u64,
}

/// Reads the output from a cursor on. Of more than `max` bytes only the first and the last half of `max` are read.
pub fn read_unread(proc: &Proc, state: &State, from: u64, max: u64) -> Result<Unread, OutputError> {
    read(proc, state, from, max).map_err(OutputError::of(proc))
}

fn read(proc: &Proc, state: &State, from: u64, max: u64) -> io::Result<Unread> {
    let log = open(proc, state)?;
    let (from, end) = (from.min(log.end()), page_end(state));
    let is_long = log.end() - from > max;
    let until = if is_long { from + max / 2 } else { log.end() };
    let (mut at, mut found) = (from, Unread::default());
    while at < until {
        let len = READ_LEN.min((until - at) as usize);
        let page = log.read_text(at, len, None, FORM, end)?;
        found.omitted += page.from - at;
        let part = if found.omitted == 0 { &mut found.head } else { &mut found.tail };
        part.push_str(&page.text);
        if page.next <= at {
            // The rest of a character has yet to come.
            break;
        }
        at = page.next;
    }
    if is_long {
        let bound = TailBound { bytes: (max / 2) as usize, ..TailBound::NONE };
        let page = log.read_tail(bound, at, None, FORM, end)?;
        found.omitted += page.from.saturating_sub(at);
        found.tail.push_str(&page.text);
        at = page.next.max(at);
    }
    found.next = at;
    Ok(found)
}

/// Reads the beginning of a stream, about `max` bytes.
pub fn read_stream_head(proc: &Proc, state: &State, stream: Stream, max: u64) -> Result<StreamHead, OutputError> {
    read_head(proc, state, stream, max).map_err(OutputError::of(proc))
}

fn read_head(proc: &Proc, state: &State, stream: Stream, max: u64) -> io::Result<StreamHead> {
    let log = open(proc, state)?;
    let (mut at, mut found) = (0, StreamHead::default());
    while at < log.end() && (found.text.len() as u64) < max {
        let page = log.read_text(at, READ_LEN, Some(stream), FORM, page_end(state))?;
        found.dropped += page.gap.map_or(0, |gap| gap.to - gap.from);
        found.text.push_str(&page.text);
        if page.next <= at {
            break;
        }
        at = page.next;
    }
    if at < log.end() {
        let rest = log.spans(at, log.end())?;
        let wire = crate::log::to_wire(stream);
        found.more = rest.iter().filter(|span| span.stream == wire).map(|span| span.to - span.from).sum();
    }
    Ok(found)
}

fn open(proc: &Proc, state: &State) -> io::Result<Log> {
    let counts = &state.progress.counts;
    Ok(Log::open(&proc.dir, counts.end)?.with_only(only_stream(counts)))
}

/// Returns `Last` once no caller will read on: an incomplete character at the end is shown then.
fn page_end(state: &State) -> PageEnd {
    if state.has_ended() { PageEnd::Last } else { PageEnd::More }
}
