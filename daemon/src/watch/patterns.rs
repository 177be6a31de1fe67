//! The compiled patterns of a watch, for searching one line or many at once.

use super::multiline::to_multiline;
use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind as TextKind};
use memchr::memmem::Finder;
use regex_automata::meta::Regex;
use regex_automata::{Input, MatchKind, PatternSet};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::Hir;
use std::error::Error;
use std::fmt;
use std::ops::Range;
use toold_proto::pattern::Pattern;

/// The maximum number of patterns.
const MAX_PATTERNS: usize = 64;
/// The maximum length of a pattern.
const MAX_PATTERN_LEN: usize = 4096;
/// The maximum size of all compiled regular expressions.
const MAX_REGEX_BYTES: usize = 2 << 20;
/// The size of the cache of a lazy DFA. A search that fills it clears it and continues.
const MAX_REGEX_CACHE_BYTES: usize = 1 << 20;
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
    /// and sees the text around it.
    pub(super) fn first(&self, text: &[u8], span: Range<usize>) -> Option<usize> {
        let found = self.texts.as_ref().and_then(|texts| texts.first(text));
        let regex = self.regexes.as_ref().and_then(|regexes| regexes.first(text, span, found));
        regex.or(found)
    }

    /// Returns a position at or after `from` in a line that may match, in lines without escape sequences. No line before it
    /// matches.
    pub(super) fn candidate(&self, kind: PatternKind, lines: &[u8], from: usize) -> Option<usize> {
        match kind {
            PatternKind::Text => self.texts.as_ref()?.candidate(lines, from),
            PatternKind::Regex => self.regexes.as_ref()?.candidate(lines, from),
        }
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
    line: Regex,
    /// Searches many lines. Finds each line that `line` matches, and possibly more.
    lines: Regex,
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
    fn first(&self, text: &[u8], span: Range<usize>, before: Option<usize>) -> Option<usize> {
        let comes_first = |at: &usize| before.is_none_or(|before| *at < before);
        self.at.first().filter(|at| comes_first(at))?;
        let input = Input::new(text).span(span);
        let mut which = PatternSet::new(self.at.len());
        self.line.which_overlapping_matches(&input, &mut which);
        let first = which.iter().next()?;
        self.at.get(first.as_usize()).copied().filter(comes_first)
    }

    fn candidate(&self, lines: &[u8], from: usize) -> Option<usize> {
        // A match is within one line, so its end identifies the line like its start, and costs one search less.
        let input = Input::new(lines).range(from..).earliest(true);
        self.lines.search_half(&input).map(|found| found.offset())
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
    // Output need not be UTF-8, so matches need not be either.
    ParserBuilder::new().utf8(false).build().parse(checked(text)?).map_err(|e| e.to_string())
}

fn compiled(hirs: &[Hir], at: &[usize], kind: MatchKind) -> Result<Regex, InvalidPattern> {
    build(hirs, kind).map_err(|reason| {
        // Each may be small enough, and all together too large: report the first one over the limit.
        let small =
            (1..hirs.len()).take_while(|n| hirs.get(..*n).is_some_and(|some| build(some, kind).is_ok())).count();
        InvalidPattern { index: at.get(small).copied().unwrap_or_default(), reason }
    })
}

fn build(hirs: &[Hir], kind: MatchKind) -> Result<Regex, String> {
    let config = Regex::config()
        .match_kind(kind)
        .utf8_empty(false)
        .nfa_size_limit(Some(MAX_REGEX_BYTES))
        .hybrid_cache_capacity(MAX_REGEX_CACHE_BYTES)
        .onepass(false)
        .dfa(false);
    Regex::builder().configure(config).build_many_from_hir(hirs).map_err(|e| match e.size_limit() {
        Some(limit) => format!("the regular expressions are too large: compiled they take more than {limit} bytes"),
        None => e.to_string(),
    })
}
