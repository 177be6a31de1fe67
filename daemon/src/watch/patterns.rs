//! The compiled patterns of a watch, for searching one line or many at once.

use super::multiline::to_multiline;
use crate::matcher::{self, BoundedRegex, MAX_PATTERN_LEN, Meter};
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind as TextKind};
use memchr::memmem::Finder;
use regex_automata::MatchKind;
use regex_syntax::hir::Hir;
use std::error::Error;
use std::fmt;
use std::ops::Range;
use toold_proto::pattern::Pattern;

/// The maximum number of patterns.
const MAX_PATTERNS: usize = 64;
/// The total length of texts up to which a full DFA is built, which takes up to a kilobyte per byte.
const MAX_DFA_TEXT_BYTES: usize = 1024;

/// An invalid pattern: its index and the reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidPattern {
    pub index: usize,
    pub reason: String,
}

impl fmt::Display for InvalidPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pattern {}: {}", self.index, self.reason)
    }
}

impl Error for InvalidPattern {}

/// The compiled patterns of one watch, shared in an `Arc`.
#[derive(Debug)]
pub struct Patterns {
    texts: Option<Texts>,
    regexes: Option<Regexes>,
}

impl Patterns {
    pub fn new(patterns: &[Pattern]) -> Result<Patterns, InvalidPattern> {
        if patterns.len() > MAX_PATTERNS {
            return Err(InvalidPattern {
                index: MAX_PATTERNS,
                reason: format!("at most {MAX_PATTERNS} patterns, not {}", patterns.len()),
            });
        }
        let (mut texts, mut regexes) = (Vec::new(), Vec::new());
        for (at, pattern) in patterns.iter().enumerate() {
            match pattern {
                Pattern::Text(text) => {
                    texts.push((at, checked(text).map_err(|reason| InvalidPattern { index: at, reason })?))
                }
                Pattern::Regex(text) => {
                    regexes.push((at, parsed(text).map_err(|reason| InvalidPattern { index: at, reason })?))
                }
            }
        }
        let texts = (!texts.is_empty()).then(|| Texts::new(&texts)).transpose()?;
        let regexes = (!regexes.is_empty()).then(|| Regexes::new(&regexes)).transpose()?;
        Ok(Patterns { texts, regexes })
    }

    /// Returns the first pattern of the list that matches a line's `text`. A regular expression has to match within `span`,
    /// and sees the text around it. After the meter has ended the search, the result is incomplete.
    pub(super) fn first(&self, text: &[u8], span: Range<usize>, meter: &Meter) -> Option<usize> {
        let found = self.texts.as_ref().and_then(|texts| texts.first(text));
        let regex = self.regexes.as_ref().and_then(|regexes| regexes.first(text, span, found, meter));
        regex.or(found)
    }

    /// Returns a position at or after `from` in a line that may match, in lines without escape sequences. No line before it
    /// matches.
    pub(super) fn candidate(&self, kind: PatternKind, lines: &[u8], from: usize, meter: &Meter) -> Option<usize> {
        match kind {
            PatternKind::Text => self.texts.as_ref()?.candidate(lines, from),
            PatternKind::Regex => self.regexes.as_ref()?.lines.candidate(lines, from, meter),
        }
    }

    /// Returns the most steps that a search takes per byte.
    pub fn cost(&self) -> u64 {
        self.regexes.as_ref().map_or(1, |regexes| regexes.line.cost().max(regexes.lines.cost()))
    }
}

/// The kinds of patterns, which are searched separately.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PatternKind {
    Text,
    Regex,
}

/// The plain substrings.
#[derive(Debug)]
struct Texts {
    any: AhoCorasick,
    /// Each text with its index in the user's list, in that order.
    each: Vec<(usize, Finder<'static>)>,
}

impl Texts {
    fn new(texts: &[(usize, &str)]) -> Result<Texts, InvalidPattern> {
        let bytes: usize = texts.iter().map(|(_, text)| text.len()).sum();
        // By default it builds a full DFA for few patterns: 256 MiB for the longest ones allowed.
        let kind = if bytes <= MAX_DFA_TEXT_BYTES { AhoCorasickKind::DFA } else { AhoCorasickKind::ContiguousNFA };
        // Only the leftmost match kinds get a SIMD prefilter: 9 GiB/s, where the standard kind has 0.5. The packed searcher
        // alone is not faster, and its time is unbounded when much almost matches.
        let any = AhoCorasick::builder()
            .match_kind(TextKind::LeftmostFirst)
            .kind(Some(kind))
            .build(texts.iter().map(|(_, text)| text));
        let at = texts.first().map_or(0, |(at, _)| *at);
        let any = any.map_err(|e| InvalidPattern { index: at, reason: e.to_string() })?;
        let each = texts.iter().map(|(at, text)| (*at, Finder::new(text).into_owned())).collect();
        Ok(Texts { any, each })
    }

    fn first(&self, text: &[u8]) -> Option<usize> {
        let found = self.any.find(text)?.pattern().as_usize();
        // This is the leftmost match. A pattern that is earlier in the list may match later in the line.
        let earlier = self.each.get(..found)?.iter().find(|(_, finder)| finder.find(text).is_some());
        earlier.or(self.each.get(found)).map(|(at, _)| *at)
    }

    fn candidate(&self, lines: &[u8], from: usize) -> Option<usize> {
        self.any.find(aho_corasick::Input::new(lines).range(from..)).map(|found| found.start())
    }
}

/// The regular expressions.
#[derive(Debug)]
struct Regexes {
    /// Matches the text of one line.
    line: BoundedRegex,
    /// Searches many lines. Finds each line that `line` matches, and possibly more.
    lines: BoundedRegex,
    /// Their indexes in the user's list.
    at: Vec<usize>,
}

impl Regexes {
    fn new(parsed: &[(usize, Hir)]) -> Result<Regexes, InvalidPattern> {
        let at: Vec<usize> = parsed.iter().map(|(at, _)| *at).collect();
        let strict: Vec<Hir> = parsed.iter().map(|(_, hir)| hir.clone()).collect();
        let line = compiled(&strict, &at, MatchKind::All)?;
        let multiline: Vec<Hir> = strict.iter().map(to_multiline).collect();
        let lines = compiled(&multiline, &at, MatchKind::LeftmostFirst)?;
        Ok(Regexes { line, lines, at })
    }

    /// Returns the first regular expression that matches and is before `before` in the list.
    fn first(&self, text: &[u8], span: Range<usize>, before: Option<usize>, meter: &Meter) -> Option<usize> {
        let comes_first = |at: &usize| before.is_none_or(|before| *at < before);
        self.at.first().filter(|at| comes_first(at))?;
        let first = self.line.first(text, span, meter)?;
        self.at.get(first).copied().filter(comes_first)
    }
}

/// Checks a pattern's text.
fn checked(text: &str) -> Result<&str, String> {
    if text.is_empty() {
        return Err("must not be empty: it would match every line".into());
    }
    if text.len() > MAX_PATTERN_LEN {
        return Err(format!("must be at most {MAX_PATTERN_LEN} bytes, not {}", text.len()));
    }
    if text.contains('\n') {
        return Err("must not have a newline in it: matching is by line, so it would never match".into());
    }
    Ok(text)
}

fn parsed(text: &str) -> Result<Hir, String> {
    matcher::parse(checked(text)?)
}

fn compiled(hirs: &[Hir], at: &[usize], kind: MatchKind) -> Result<BoundedRegex, InvalidPattern> {
    BoundedRegex::new(hirs, kind).map_err(|reason| {
        // Each may be small enough, and all together too large: report the first one over the limit. Halving, since each
        // try may take as long as the limit allows.
        let fits = |n: &usize| hirs.get(..*n).is_some_and(|some| BoundedRegex::new(some, kind).is_ok());
        let counts: Vec<usize> = (1..hirs.len()).collect();
        let small = counts.partition_point(fits);
        InvalidPattern { index: at.get(small).copied().unwrap_or_default(), reason }
    })
}
