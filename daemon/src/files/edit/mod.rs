//! Replaces a text in the bytes of a file. Strategies are tried from the strictest on; the first that finds the text counts.
//! Pure.
//!
//! Strategies that ignore blanks only at the start of lines, or only at both ends of the whole text, find nothing that
//! `LineTrimmed` does not find before them: they are one.

mod lines;
mod segments;
mod similar;
mod text;

use lines::{IndentPair, LineIndex, Pattern, indent, reindent};
use segments::{Replace, blanks, locate, typography, view};
use similar::{Comparer, block_anchor, cut, nearest, similar_lines};
use std::borrow::Cow;
use std::ops::Range;
use text::FileText;
use toold_proto::files::EditStrategy;

/// Places that an error shows.
const MAX_MATCHES: usize = 5;
const MAX_NEAREST: usize = 3;
/// Characters of a line, and lines of a place, in an error.
const MAX_SHOWN_CHARS: usize = 200;
const MAX_SHOWN_LINES: usize = 12;
/// The shortest new text whose presence shows that the edit was made before.
const MIN_PRESENT_CHARS: usize = 8;

/// A request to replace `old` by `new`.
#[derive(Debug, Clone, Copy)]
pub struct Edit<'a> {
    pub old: &'a str,
    pub new: &'a str,
    pub replace_all: bool,
    pub fuzzy: bool,
}

/// The new content of a file.
#[derive(Debug, PartialEq)]
pub enum Edited {
    Changed {
        strategy: EditStrategy,
        count: u64,
        content: Vec<u8>,
    },
    /// The file has `new` already, and `old` nowhere.
    Unchanged,
}

/// A place in the file.
#[derive(Debug, Clone, PartialEq)]
pub struct EditPlace {
    /// From 1 on.
    pub line: u64,
    pub text: String,
    /// Part of the text that is the same. Only for near places.
    pub similarity: Option<f64>,
}

/// The reason why nothing was replaced.
#[derive(Debug, PartialEq)]
pub enum EditError {
    Param { param: &'static str, why: &'static str },
    NoMatch { nearest: Vec<EditPlace>, why: Option<&'static str> },
    Ambiguous { strategy: EditStrategy, count: u64, places: Vec<EditPlace> },
}

/// Replaces a text in a file.
pub fn edit(file: &[u8], request: &Edit<'_>) -> Result<Edited, EditError> {
    let param = |param, why| Err(EditError::Param { param, why });
    if request.old.trim().is_empty() {
        return param("old", "must have more than blanks; fs.write writes a whole file");
    }
    if request.old == request.new {
        return param("new", "must differ from old");
    }
    match FileText::decode(file) {
        Some(text) => edit_text(&text, request),
        None => edit_bytes(file, request),
    }
}

/// Replaces in a file that is not valid text: only the same bytes are found.
fn edit_bytes(file: &[u8], request: &Edit<'_>) -> Result<Edited, EditError> {
    let old = request.old.as_bytes();
    let found: Vec<usize> = memchr::memmem::find_iter(file, old).collect();
    let why = "the file is not valid UTF-8, so only the very same bytes are looked for";
    match found.len() {
        0 => return Err(EditError::NoMatch { nearest: Vec::new(), why: Some(why) }),
        count if count > 1 && !request.replace_all => {
            let place = |at: &usize| {
                let line = memchr::memchr_iter(b'\n', &file[..*at]).count() as u64 + 1;
                EditPlace { line, text: shown(request.old), similarity: None }
            };
            let places = found.iter().take(MAX_MATCHES).map(place).collect();
            return Err(EditError::Ambiguous { strategy: EditStrategy::Exact, count: count as u64, places });
        }
        _ => {}
    }
    let mut content = Vec::with_capacity(file.len());
    let mut from = 0;
    for at in &found {
        content.extend_from_slice(&file[from..*at]);
        content.extend_from_slice(request.new.as_bytes());
        from = at + old.len();
    }
    content.extend_from_slice(&file[from..]);
    Ok(Edited::Changed { strategy: EditStrategy::Exact, count: found.len() as u64, content })
}

fn edit_text(file: &FileText<'_>, request: &Edit<'_>) -> Result<Edited, EditError> {
    let is_converted = request.old.contains("\r\n");
    let (old, new) = (file.request(request.old, is_converted), file.request(request.new, is_converted));
    if old == new {
        return Err(EditError::Param { param: "new", why: "differs from old only in line ends, which the file keeps" });
    }
    let text: &str = &file.plain;
    if let Some(places) = exact(text, &old, &new) {
        return finish(file, request, EditStrategy::Exact, places);
    }
    let Some(index) = LineIndex::new(text) else {
        return Err(EditError::NoMatch {
            nearest: Vec::new(),
            why: Some("the file is too large for other strategies"),
        });
    };
    let search = FileSearch { text, index, old: &old, new: &new, pattern: Pattern::new(&old) };
    for strategy in [
        EditStrategy::LineTrimmed,
        EditStrategy::WhitespaceNormalized,
        EditStrategy::EscapeNormalized,
        EditStrategy::UnicodeNormalized,
    ] {
        let places = search.places(strategy);
        if !places.is_empty() {
            search.check_quotes(&places)?;
            return finish(file, request, strategy, places);
        }
    }
    // Before similar texts are accepted: after an edit the old and the new text may be similar.
    if new.chars().count() >= MIN_PRESENT_CHARS && text.contains(&new) {
        return Ok(Edited::Unchanged);
    }
    let fuzzy = [EditStrategy::BlockAnchor, EditStrategy::SimilarLines];
    for strategy in fuzzy.into_iter().filter(|_| request.fuzzy) {
        let places = search.places(strategy);
        if places.is_empty() {
            continue;
        }
        if request.replace_all {
            let why = "cannot be given where only a similar text is found; give the text of the file";
            return Err(EditError::Param { param: "replace_all", why });
        }
        search.check_quotes(&places)?;
        return finish(file, request, strategy, places);
    }
    Err(EditError::NoMatch { nearest: search.nearest(), why: None })
}

/// Text to replace, and the text to put there.
type Replacement = (Range<usize>, String);

fn exact(text: &str, old: &str, new: &str) -> Option<Vec<Replacement>> {
    let found: Vec<Replacement> = memchr::memmem::find_iter(text.as_bytes(), old.as_bytes())
        .map(|at| (at..at + old.len(), new.to_owned()))
        .collect();
    (!found.is_empty()).then_some(found)
}

fn finish(
    file: &FileText<'_>,
    request: &Edit<'_>,
    strategy: EditStrategy,
    places: Vec<Replacement>,
) -> Result<Edited, EditError> {
    let count = places.len() as u64;
    if count > 1 && !request.replace_all {
        let text: &str = &file.plain;
        let (mut line, mut from) = (1, 0);
        let shown = |(range, _): &Replacement| {
            line += memchr::memchr_iter(b'\n', &text.as_bytes()[from..range.start]).count() as u64;
            from = range.start;
            let start = text[..range.start].rfind('\n').map_or(0, |at| at + 1);
            let whole = text[start..].lines().next().unwrap_or_default();
            EditPlace { line, text: cut(whole, MAX_SHOWN_CHARS).to_owned(), similarity: None }
        };
        let places = places.iter().take(MAX_MATCHES).map(shown).collect();
        return Err(EditError::Ambiguous { strategy, count, places });
    }
    Ok(Edited::Changed { strategy, count, content: file.replace(&places) })
}

fn shown(text: &str) -> String {
    let lines = text.lines().take(MAX_SHOWN_LINES).map(|line| cut(line, MAX_SHOWN_CHARS));
    lines.collect::<Vec<_>>().join("\n")
}

/// A text that was not found as it is.
struct FileSearch<'a> {
    text: &'a str,
    index: LineIndex<'a>,
    old: &'a str,
    new: &'a str,
    pattern: Pattern<'a>,
}

impl FileSearch<'_> {
    fn places(&self, strategy: EditStrategy) -> Vec<Replacement> {
        match strategy {
            // Tried before.
            EditStrategy::Exact => Vec::new(),
            EditStrategy::LineTrimmed => {
                self.blocks(lines::find(&self.index, &self.pattern.lines, |line| line.trim().into()))
            }
            EditStrategy::WhitespaceNormalized => self.normalized(),
            EditStrategy::EscapeNormalized => self.unescaped(),
            EditStrategy::UnicodeNormalized => self.plain_typography(),
            EditStrategy::BlockAnchor => self.blocks(block_anchor(&self.index, &self.pattern, &Comparer::default())),
            EditStrategy::SimilarLines => self.blocks(similar_lines(&self.index, &self.pattern, &Comparer::default())),
        }
    }

    /// Replaces whole lines that begin at these ones.
    fn blocks(&self, found: Vec<usize>) -> Vec<Replacement> {
        let count = self.pattern.lines.len();
        let block = |first: usize| {
            let pairs: Vec<IndentPair<'_>> = self
                .pattern
                .lines
                .iter()
                .enumerate()
                .filter(|(_, line)| !line.trim().is_empty())
                .map(|(n, line)| IndentPair { line: n, old: indent(line), file: indent(self.index.line(first + n)) })
                .collect();
            let range = self.index.block(first, count, self.pattern.ends_with_newline);
            (range, reindent(self.new, &pairs, false))
        };
        found.into_iter().map(block).collect()
    }

    /// Finds a view of the old text in the view of the file.
    fn viewed(&self, replace: Replace) -> Vec<Range<usize>> {
        let (text, old) = (view(self.text, replace), view(self.old, replace));
        let ranges: Vec<Range<usize>> =
            memchr::memmem::find_iter(text.as_bytes(), old.as_bytes()).map(|at| at..at + old.len()).collect();
        if ranges.is_empty() { Vec::new() } else { locate(self.text, replace, &ranges) }
    }

    fn normalized(&self) -> Vec<Replacement> {
        let place = |range: Range<usize>| {
            let is_line_start = range.start == 0 || self.text.as_bytes()[range.start - 1] == b'\n';
            let region: Vec<&str> = self.text[range.clone()].split('\n').collect();
            let pairs: Vec<IndentPair<'_>> = self
                .pattern
                .lines
                .iter()
                .zip(region)
                .enumerate()
                .skip(usize::from(!is_line_start))
                .filter(|(_, (old, _))| !old.trim().is_empty())
                .map(|(line, (old, file))| IndentPair { line, old: indent(old), file: indent(file) })
                .collect();
            (range, reindent(self.new, &pairs, !is_line_start))
        };
        self.viewed(blanks).into_iter().map(place).collect()
    }

    fn unescaped(&self) -> Vec<Replacement> {
        if !["\\n", "\\t", "\\r"].iter().any(|escape| self.old.contains(escape)) {
            return Vec::new();
        }
        let lines = |text: &str| text.replace("\\r\\n", "\n").replace("\\n", "\n");
        let old = lines(self.old).replace("\\t", "\t").replace("\\r", "\r");
        let Some(found) = exact(self.text, &old, "").filter(|_| !old.trim().is_empty()) else { return Vec::new() };
        let place = |(range, _): Replacement| {
            // In the new text they may be meant as they stand, unless the place has the characters.
            let region = &self.text[range.clone()];
            let mut new = lines(self.new);
            for (escape, character) in [("\\t", "\t"), ("\\r", "\r")] {
                if region.contains(character) {
                    new = new.replace(escape, character);
                }
            }
            (range, new)
        };
        found.into_iter().map(place).collect()
    }

    fn plain_typography(&self) -> Vec<Replacement> {
        let within = self.viewed(typography);
        if !within.is_empty() {
            let place = |range: Range<usize>| {
                let new = keep_characters(&self.text[range.clone()], self.old, self.new);
                (range, new)
            };
            return within.into_iter().map(place).collect();
        }
        let key = |line: &str| Cow::Owned(view(line, typography).trim().to_owned());
        let found = lines::find(&self.index, &self.pattern.lines, |line| key(line));
        let places = self.blocks(found);
        let kept = |(range, new): Replacement| {
            let region = &self.text[range.clone()];
            // The lines of the region have the indentation of the file, as the new ones have it now.
            let new = keep_lines(region, &new);
            (range, new)
        };
        places.into_iter().map(kept).collect()
    }

    /// Refuses a place whose quotes are not escaped as both texts of the request have them: they would be after the edit.
    fn check_quotes(&self, places: &[Replacement]) -> Result<(), EditError> {
        let drifts = |escape: &&str| {
            let lacks = |(range, _): &Replacement| !self.text[range.clone()].contains(*escape);
            self.old.contains(*escape) && self.new.contains(*escape) && places.iter().any(lacks)
        };
        if ["\\'", "\\\""].iter().any(drifts) {
            let why = "old and new escape quotes that the file does not escape; give them as the file has them";
            return Err(EditError::NoMatch { nearest: self.nearest(), why: Some(why) });
        }
        Ok(())
    }

    fn nearest(&self) -> Vec<EditPlace> {
        let count = self.pattern.lines.len().min(MAX_SHOWN_LINES);
        let place = |near: similar::Near| {
            let last = (near.line + count).min(self.index.len());
            let lines: Vec<&str> = (near.line..last).map(|line| cut(self.index.line(line), MAX_SHOWN_CHARS)).collect();
            EditPlace { line: near.line as u64 + 1, text: lines.join("\n"), similarity: Some(near.similarity) }
        };
        nearest(&self.index, &self.pattern, MAX_NEAREST).into_iter().map(place).collect()
    }
}

/// Returns `new` with the lines of the region in place of those that differ from them only in typography.
fn keep_lines(region: &str, new: &str) -> String {
    let mut own: Vec<&str> = region.split('\n').collect();
    let keep = |line: &str| {
        let plain = view(line, typography);
        let found = own.iter().position(|own| view(own, typography).trim_end() == plain.trim_end());
        found.map_or_else(|| line.to_owned(), |at| own.drain(..=at).next_back().unwrap_or_default().to_owned())
    };
    new.split('\n').map(keep).collect::<Vec<_>>().join("\n")
}

/// Returns `new` with the characters of the region where `new` is as `old`: whole lines, and the start and end of a changed line.
fn keep_characters(region: &str, old: &str, new: &str) -> String {
    let (own, old, new): (Vec<&str>, Vec<&str>, Vec<&str>) =
        (region.split('\n').collect(), old.split('\n').collect(), new.split('\n').collect());
    let is_same = |a: &str, b: &str| view(a, typography) == view(b, typography);
    let lead = old.iter().zip(&new).take_while(|(old, new)| is_same(old, new)).count();
    let most = old.len().min(new.len()) - lead;
    let tail = old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(old, new)| is_same(old, new)).count();
    let (own_middle, new_middle) = (&own[lead..own.len() - tail], &new[lead..new.len() - tail]);
    let mut kept: Vec<Cow<'_, str>> = own[..lead].iter().map(|line| Cow::Borrowed(*line)).collect();
    if own_middle.len() == new_middle.len() {
        kept.extend(own_middle.iter().zip(new_middle).map(|(own, new)| Cow::Owned(keep_ends(own, new))));
    } else {
        kept.push(Cow::Owned(keep_lines(&own_middle.join("\n"), &new_middle.join("\n"))));
        if new_middle.is_empty() {
            kept.pop();
        }
    }
    kept.extend(own[own.len() - tail..].iter().map(|line| Cow::Borrowed(*line)));
    kept.join("\n")
}

/// Returns the new line with the file's characters at its start and its end, as far as both lines are the same there.
fn keep_ends(own: &str, new: &str) -> String {
    let plain = |c: &str| view(c, typography);
    let chars = |text: &str| {
        let mut places: Vec<(usize, usize)> = Vec::new();
        while let Some(rest) = text.get(places.last().map_or(0, |last| last.1)..).filter(|rest| !rest.is_empty()) {
            // The plain forms of one character count as one.
            let form = ["--", "..."].into_iter().find(|form| rest.starts_with(form)).map(str::len);
            let len = form.unwrap_or_else(|| rest.chars().next().map_or(1, char::len_utf8));
            let start = text.len() - rest.len();
            places.push((start, start + len));
        }
        places
    };
    let (own_chars, new_chars) = (chars(own), chars(new));
    let same = |a: &(usize, usize), b: &(usize, usize)| plain(&own[a.0..a.1]) == plain(&new[b.0..b.1]);
    let lead = own_chars.iter().zip(&new_chars).take_while(|(a, b)| same(a, b)).count();
    let most = own_chars.len().min(new_chars.len()) - lead;
    let tail = own_chars.iter().rev().zip(new_chars.iter().rev()).take(most).take_while(|(a, b)| same(a, b)).count();
    let at = |chars: &[(usize, usize)], n: usize, text: &str| chars.get(n).map_or(text.len(), |c| c.0);
    let (own_lead, new_lead) = (at(&own_chars, lead, own), at(&new_chars, lead, new));
    let (own_tail, new_tail) =
        (at(&own_chars, own_chars.len() - tail, own), at(&new_chars, new_chars.len() - tail, new));
    format!("{}{}{}", &own[..own_lead], &new[new_lead..new_tail], &own[own_tail..])
}

#[cfg(test)]
mod tests;
