//! Cuts a long text to its beginning and end, after it is redacted: no cut divides a secret.

use crate::OVERLAP_BYTES;
use crate::edges::Open;
use crate::known::KnownValues;
use crate::redactor::{Redactor, RuleCount};
use crate::spans::{self, Span};

/// The share of the beginning. A traceback ends with the line that matters, so the end gets more.
const HEAD_PERCENT: usize = 40;

/// A text that is cut.
#[derive(Debug, Clone, Copy)]
pub enum ExcerptInput<'a> {
    Whole(&'a str),
    /// The first and last bytes of a text that was not read whole: as many as [`window_bytes`] returns.
    Windows {
        head: &'a str,
        tail: &'a str,
        /// The bytes of the text.
        total: u64,
    },
}

/// A redacted text, or its beginning and end.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Excerpt {
    pub head: String,
    /// Empty if nothing was cut.
    pub tail: String,
    pub cut: Option<Cut>,
    /// Replacements in `head` and `tail`, by rule.
    pub counts: Vec<RuleCount>,
}

/// Bytes of a text that was cut. They are counted before the redaction; a secret counts as kept if its replacement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cut {
    pub total: u64,
    /// `head` + `tail`
    pub kept: u64,
    pub omitted: u64,
    pub head: u64,
    pub tail: u64,
}

impl Excerpt {
    /// The text for a reader: with a line for the omitted bytes between beginning and end.
    pub fn joined(&self) -> String {
        let Some(cut) = self.cut else { return self.head.clone() };
        let line_end = if self.head.is_empty() || self.head.ends_with('\n') { "" } else { "\n" };
        format!("{}{line_end}[… {} bytes omitted …]\n{}", self.head, cut.omitted, self.tail)
    }
}

/// Returns the bytes to read of a text's beginning and end for an excerpt of `max_bytes`. A text that is not longer than both
/// together is read whole.
pub fn window_bytes(max_bytes: usize) -> (usize, usize) {
    let (head, tail) = budgets(max_bytes);
    (head + OVERLAP_BYTES, tail + OVERLAP_BYTES)
}

fn budgets(max_bytes: usize) -> (usize, usize) {
    let head = max_bytes / 100 * HEAD_PERCENT + max_bytes % 100 * HEAD_PERCENT / 100;
    (head, max_bytes - head)
}

impl Redactor {
    /// Redacts a text, then keeps at most `max_bytes` of it: 40 % at its beginning, 60 % at its end, whole characters and whole
    /// replacements. Nothing of a window's overlap is kept, because a secret may be cut there.
    pub fn excerpt(&self, input: ExcerptInput<'_>, max_bytes: usize, known: &KnownValues) -> Excerpt {
        match input {
            ExcerptInput::Whole(text) => self.excerpt_whole(text, max_bytes, known),
            ExcerptInput::Windows { head, tail, total } => {
                let (head_budget, tail_budget) = budgets(max_bytes);
                let first = self.secrets(head, known, Open { start: false, end: true });
                let last = self.secrets(tail, known, Open { start: true, end: false });
                let limit = spans::floor_char(head, head.len().saturating_sub(OVERLAP_BYTES));
                let from = spans::ceil_char(tail, OVERLAP_BYTES);
                let head = self.keep_head(Piece { text: head, spans: &first, known }, limit, head_budget);
                let tail = self.keep_tail(Piece { text: tail, spans: &last, known }, from, tail_budget);
                self.joined(head, tail, total)
            }
        }
    }

    fn excerpt_whole(&self, text: &str, max_bytes: usize, known: &KnownValues) -> Excerpt {
        let spans = self.secrets(text, known, Open::NONE);
        let piece = Piece { text, spans: &spans, known };
        let all = self.keep_head(piece, text.len(), max_bytes);
        if all.source_bytes == text.len() {
            return Excerpt { head: all.text, tail: String::new(), cut: None, counts: all.counts };
        }
        let (head_budget, tail_budget) = budgets(max_bytes);
        let head = self.keep_head(piece, text.len(), head_budget);
        let tail = self.keep_tail(piece, head.source_bytes, tail_budget);
        self.joined(head, tail, text.len() as u64)
    }

    fn joined(&self, head: KeptPart, tail: KeptPart, total: u64) -> Excerpt {
        let (head_bytes, tail_bytes) = (head.source_bytes as u64, tail.source_bytes as u64);
        let kept = (head_bytes + tail_bytes).min(total);
        let cut = Cut { total, kept, omitted: total - kept, head: head_bytes, tail: tail_bytes };
        let counts = RuleCount::sum([head.counts.as_slice(), tail.counts.as_slice()]);
        Excerpt { head: head.text, tail: tail.text, cut: Some(cut), counts }
    }

    /// Renders the beginning of a text up to `limit`, in at most `budget` bytes.
    fn keep_head(&self, piece: Piece<'_>, limit: usize, budget: usize) -> KeptPart {
        let Piece { text, spans, known } = piece;
        let mut out = String::new();
        let (mut at, mut shown) = (0, 0);
        for span in spans.iter().map(Some).chain([None]) {
            let plain_end = span.map_or(text.len(), |span| span.start).min(limit).max(at);
            let end = spans::floor_char(text, plain_end.min(at + budget - out.len()));
            out.push_str(&text[at..end]);
            at = end;
            let Some(span) = span.filter(|span| end == span.start && span.start < limit) else { break };
            let name = self.label(known, span.label);
            if spans::replacement_len(name) > budget - out.len() {
                break;
            }
            spans::push_replacement(&mut out, name);
            (at, shown) = (span.end, shown + 1);
        }
        KeptPart { text: out, source_bytes: at, counts: self.counts(known, &spans[..shown]) }
    }

    /// Renders the end of a text from `from` on, in at most `budget` bytes.
    fn keep_tail(&self, piece: Piece<'_>, from: usize, budget: usize) -> KeptPart {
        let Piece { text, spans, known } = piece;
        // Parts from the last one to the first one.
        let mut parts: Vec<String> = Vec::new();
        let (mut at, mut left, mut shown) = (text.len(), budget, 0);
        for span in spans.iter().rev().map(Some).chain([None]) {
            let plain_start = span.map_or(0, |span| span.end).max(from).min(at);
            let start = spans::ceil_char(text, plain_start.max(at.saturating_sub(left)));
            left -= at - start;
            parts.push(text[start..at].to_string());
            at = start;
            let Some(span) = span.filter(|span| start == span.end && span.end > from) else { break };
            let name = self.label(known, span.label);
            if spans::replacement_len(name) > left {
                break;
            }
            let mut replacement = String::new();
            spans::push_replacement(&mut replacement, name);
            left -= replacement.len();
            parts.push(replacement);
            (at, shown) = (span.start, shown + 1);
        }
        let kept = &spans[spans.len() - shown..];
        KeptPart {
            text: parts.into_iter().rev().collect(),
            source_bytes: text.len() - at,
            counts: self.counts(known, kept),
        }
    }
}

/// A text with its secrets.
#[derive(Clone, Copy)]
struct Piece<'a> {
    text: &'a str,
    spans: &'a [Span],
    known: &'a KnownValues,
}

/// The part of a text that is shown.
struct KeptPart {
    text: String,
    /// The bytes of the original that it stands for.
    source_bytes: usize,
    counts: Vec<RuleCount>,
}
