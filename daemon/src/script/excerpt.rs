//! The output of a script for a reader that may be a model: escape sequences stripped, secrets hidden, then cut.

use crate::log::Log;
use crate::proc::Proc;
use crate::redaction;
use crate::text::{PageEnd, TextForm};
use serde_json::Value;
use std::io;
use std::sync::Arc;
use toold_format::Stream;
use toold_proto::script::{Excerpt, RedactedRule, ScriptError};
use toold_redact::{ExcerptInput, KnownValues, Redactor, window_bytes};

/// Bytes per read.
const READ_LEN: usize = 256 * 1024;

/// The text of one stream.
pub(super) struct StreamText {
    pub text: String,
    /// None: it is complete.
    pub cut: Option<Excerpt>,
}

/// The redaction of one result: hides secrets and counts them.
pub(super) struct ResultRedaction<'a> {
    /// None: the caller wants none.
    redactor: Option<&'a Redactor>,
    known: Arc<KnownValues>,
    missing: Vec<String>,
    counts: Vec<RedactedRule>,
}

impl<'a> ResultRedaction<'a> {
    /// Makes the redaction for a result about a script.
    pub fn new(proc: &'a Proc) -> ResultRedaction<'a> {
        let redaction = &proc.sink.redaction;
        let is_wanted = redaction.is_enabled() && proc.spec.script.as_ref().is_some_and(|script| script.redact);
        let (known, missing) = if is_wanted { proc.secrets() } else { Default::default() };
        ResultRedaction { redactor: is_wanted.then(|| redaction.redactor()), known, missing, counts: Vec::new() }
    }

    fn add(&mut self, counts: Vec<toold_redact::RuleCount>) {
        for found in redaction::counts(counts) {
            match self.counts.iter_mut().find(|known| known.rule == found.rule) {
                Some(known) => known.count += found.count,
                None => self.counts.push(found),
            }
        }
    }

    fn text(&mut self, text: String) -> String {
        let Some(redactor) = self.redactor else { return text };
        let redacted = redactor.redact(&text, &self.known);
        self.add(redacted.counts);
        redacted.text
    }

    /// Redacts every text of a value.
    pub fn value(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(text)),
            Value::Array(list) => list.into_iter().map(|value| self.value(value)).collect(),
            Value::Object(map) => map.into_iter().map(|(key, value)| (self.text(key), self.value(value))).collect(),
            plain @ (Value::Null | Value::Bool(_) | Value::Number(_)) => plain,
        }
    }

    pub fn error(&mut self, error: ScriptError) -> ScriptError {
        ScriptError {
            kind: error.kind,
            message: self.text(error.message),
            line: error.line,
            traceback: self.text(error.traceback),
        }
    }

    /// Redacts the previews of arguments.
    pub fn previews(&mut self, calls: &mut [toold_proto::script::CallSummary]) {
        for call in calls {
            call.args_preview = self.text(std::mem::take(&mut call.args_preview));
        }
    }

    /// Keeps at most `max` bytes of a text, after it is redacted.
    fn excerpt(&mut self, text: &WholeText, max: usize) -> StreamText {
        let input = text.input();
        let made = match self.redactor {
            Some(redactor) => redactor.excerpt(input, max, &self.known),
            // The same cut, without a rule.
            None if text.total as usize <= max => return StreamText { text: text.head.clone(), cut: None },
            None => return plain_excerpt(text, max),
        };
        let joined = made.joined();
        let cut = made.cut.map(|cut| Excerpt {
            total: cut.total,
            kept: cut.kept,
            omitted: cut.omitted,
            head: cut.head,
            tail: cut.tail,
        });
        self.add(made.counts);
        StreamText { text: joined, cut }
    }

    /// Returns the replacements by rule.
    pub fn counts(self) -> (Vec<RedactedRule>, Vec<String>) {
        (self.counts, self.missing)
    }
}

/// Cuts a text whose secrets stay.
fn plain_excerpt(text: &WholeText, max: usize) -> StreamText {
    let (head_max, tail_max) = (max * 2 / 5, max - max * 2 / 5);
    let head = &text.head[..crate::text::last_char_end(&text.head, head_max)];
    let tail = text.tail.as_deref().unwrap_or(&text.head);
    let from = tail.len().saturating_sub(tail_max);
    let from = (from..=tail.len()).find(|at| tail.is_char_boundary(*at)).unwrap_or(tail.len());
    let tail = &tail[from..];
    let kept = (head.len() + tail.len()) as u64;
    let omitted = text.total - kept;
    let cut = Excerpt { total: text.total, kept, omitted, head: head.len() as u64, tail: tail.len() as u64 };
    StreamText { text: format!("{head}\n[… {omitted} bytes omitted …]\n{tail}"), cut: Some(cut) }
}

/// A text, or its two ends.
struct WholeText {
    head: String,
    /// None: `head` is all of it.
    tail: Option<String>,
    total: u64,
}

impl WholeText {
    fn input(&self) -> ExcerptInput<'_> {
        match &self.tail {
            None => ExcerptInput::Whole(&self.head),
            Some(tail) => ExcerptInput::Windows { head: &self.head, tail, total: self.total },
        }
    }
}

/// Reads one stream of a range of the output, with at most `max` bytes of it in the result.
pub(super) fn read_stream(
    proc: &Proc,
    end: PageEnd,
    stream: Stream,
    range: (u64, u64),
    max: u64,
    redaction: &mut ResultRedaction<'_>,
) -> io::Result<StreamText> {
    let text = read_ends(proc, end, stream, range, window_bytes(max as usize))?;
    Ok(redaction.excerpt(&text, max as usize))
}

/// Reads a stream to its end, and keeps all of it if it is short, else this many bytes of its two ends.
fn read_ends(
    proc: &Proc,
    end: PageEnd,
    stream: Stream,
    (from, to): (u64, u64),
    (head_len, tail_len): (usize, usize),
) -> io::Result<WholeText> {
    let log = Log::open(&proc.dir, to)?;
    let (mut at, mut total, mut head, mut tail) = (from, 0, String::new(), String::new());
    while at < to {
        let page = log.read_text(at, READ_LEN, Some(stream), TextForm::PLAIN, end)?;
        total += page.text.len() as u64;
        if head.len() < head_len + tail_len {
            head.push_str(&page.text);
        }
        tail.push_str(&page.text);
        if tail.len() > tail_len + READ_LEN {
            let cut = tail.len() - tail_len;
            let cut = (cut..=tail.len()).find(|at| tail.is_char_boundary(*at)).unwrap_or(tail.len());
            tail.drain(..cut);
        }
        if page.next <= at {
            break;
        }
        at = page.next;
    }
    if head.len() as u64 == total {
        return Ok(WholeText { head, tail: None, total });
    }
    head.truncate(crate::text::last_char_end(&head, head_len));
    let cut = tail.len().saturating_sub(tail_len);
    let cut = (cut..=tail.len()).find(|at| tail.is_char_boundary(*at)).unwrap_or(tail.len());
    Ok(WholeText { head, tail: Some(tail.split_off(cut)), total })
}
