//! Spans of a text that are hidden: merged, rendered as `[redacted:rule]`, and mapped between the text and its redacted form.

use std::ops::Range;

/// The opening of a replacement.
const OPENING: &str = "[redacted:";
/// The longest label that is read back as a replacement.
const MAX_LABEL_LEN: usize = 80;

/// Names the rule of a span by its place in the list of known values or of rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Label {
    Known(usize),
    Rule(usize),
}

/// A part of a text that is hidden.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
    pub(crate) label: Label,
}

impl Span {
    pub(crate) fn new(range: Range<usize>, label: Label) -> Span {
        Span { start: range.start, end: range.end, label }
    }

    fn len(&self) -> usize {
        self.end - self.start
    }
}

/// Sorts spans and joins those that overlap. The longest one gives its label; of equal ones a known value does.
pub(crate) fn merge(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end), span.label));
    let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
    let mut longest = 0;
    for span in spans {
        match merged.last_mut() {
            Some(last) if span.start < last.end => {
                last.end = last.end.max(span.end);
                if span.len() > longest {
                    (longest, last.label) = (span.len(), span.label);
                }
            }
            _ => {
                longest = span.len();
                merged.push(span);
            }
        }
    }
    merged
}

/// Widens spans to whole characters: a rule of a foreign file may match a part of one.
pub(crate) fn widen_to_characters(text: &str, spans: &mut [Span]) {
    for span in spans {
        span.start = floor_char(text, span.start);
        span.end = ceil_char(text, span.end);
    }
}

/// The last character boundary at or before a place.
pub(crate) fn floor_char(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The first character boundary at or after a place.
pub(crate) fn ceil_char(text: &str, mut at: usize) -> usize {
    at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}

/// A text with its spans replaced.
pub(crate) struct Rendered {
    pub(crate) text: String,
    /// The place of each replacement, in the order of the spans.
    replacements: Vec<Range<usize>>,
}

impl Rendered {
    pub(crate) fn new<'a>(original: &str, spans: &[Span], name: impl Fn(Label) -> &'a str) -> Rendered {
        let mut text = String::with_capacity(original.len());
        let mut replacements = Vec::with_capacity(spans.len());
        let mut at = 0;
        for span in spans {
            text.push_str(&original[at..span.start]);
            let start = text.len();
            push_replacement(&mut text, name(span.label));
            replacements.push(start..text.len());
            at = span.end;
        }
        text.push_str(&original[at..]);
        Rendered { text, replacements }
    }

    /// Returns the part of the original that a part of the rendered text stands for.
    pub(crate) fn to_original(&self, spans: &[Span], range: Range<usize>) -> Range<usize> {
        let before_start = self.replacements.partition_point(|replaced| replaced.end <= range.start);
        let start = match self.replacements.get(before_start) {
            Some(replaced) if replaced.start <= range.start => spans[before_start].start,
            _ => self.shifted(spans, before_start, range.start),
        };
        let before_end = self.replacements.partition_point(|replaced| replaced.end < range.end);
        let end = match self.replacements.get(before_end) {
            Some(replaced) if replaced.start < range.end => spans[before_end].end,
            _ => self.shifted(spans, before_end, range.end),
        };
        start..end
    }

    /// Maps a place outside of replacements, `count` of which are before it.
    fn shifted(&self, spans: &[Span], count: usize, at: usize) -> usize {
        match count.checked_sub(1) {
            None => at,
            Some(last) => at - self.replacements[last].end + spans[last].end,
        }
    }
}

pub(crate) fn push_replacement(text: &mut String, name: &str) {
    text.push_str(OPENING);
    text.push_str(name);
    text.push(']');
}

pub(crate) fn replacement_len(name: &str) -> usize {
    OPENING.len() + name.len() + 1
}

/// Finds replacements that are in the text already, with the place of their label.
pub(crate) fn find_replacements(text: &str) -> Vec<(Range<usize>, Range<usize>)> {
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    for start in memchr::memmem::find_iter(bytes, OPENING) {
        let label = start + OPENING.len();
        let window = &bytes[label..bytes.len().min(label + MAX_LABEL_LEN + 1)];
        if let Some(len) = memchr::memchr2(b']', b'[', window).filter(|len| *len > 0 && window[*len] == b']') {
            found.push((start..label + len + 1, label..label + len));
        }
    }
    found
}

/// Drops spans that hide nothing but replacements, and widens the others to whole replacements. Both lists are sorted.
pub(crate) fn spare_replacements(spans: Vec<Span>, replacements: &[Range<usize>]) -> Vec<Span> {
    let widen = |mut span: Span| {
        let first = replacements.partition_point(|replaced| replaced.end <= span.start);
        let (end, mut free) = (span.end, span.len());
        let touched = replacements[first..].iter().take_while(|replaced| replaced.start < end);
        for replaced in touched {
            free -= replaced.end.min(end) - replaced.start.max(span.start);
            (span.start, span.end) = (span.start.min(replaced.start), span.end.max(replaced.end));
        }
        (free > 0).then_some(span)
    };
    merge(spans.into_iter().filter_map(widen).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(range: Range<usize>, rule: usize) -> Span {
        Span::new(range, Label::Rule(rule))
    }

    #[test]
    fn overlapping_spans_become_one_with_the_label_of_the_longest() {
        let spans = vec![span(8..9, 3), span(0..4, 1), span(3..8, 2)];
        assert_eq!(merge(spans), [span(0..8, 2), span(8..9, 3)]);
    }

    #[test]
    fn a_known_value_wins_over_a_rule_that_matches_the_same() {
        let known = Span::new(2..9, Label::Known(0));
        assert_eq!(merge(vec![span(2..9, 0), known]), [known]);
    }

    #[test]
    fn a_rendered_place_maps_back_to_the_original() {
        let spans = [span(2..5, 0), span(7..8, 1)];
        let rendered = Rendered::new("ab345fg8i", &spans, |label| if label == Label::Rule(0) { "x" } else { "yy" });
        assert_eq!(rendered.text, "ab[redacted:x]fg[redacted:yy]i");
        assert_eq!(rendered.to_original(&spans, 0..2), 0..2);
        assert_eq!(rendered.to_original(&spans, 0..3), 0..5);
        assert_eq!(rendered.to_original(&spans, 14..16), 5..7);
        assert_eq!(rendered.to_original(&spans, 13..30), 2..9);
        assert_eq!(rendered.to_original(&spans, 29..30), 8..9);
    }

    #[test]
    fn a_span_of_replacements_alone_is_dropped_and_another_one_is_widened() {
        let spans = vec![span(2..6, 0), span(8..12, 1)];
        assert_eq!(spare_replacements(spans, &[1..7, 10..15]), [span(8..15, 1)]);
    }

    #[test]
    fn replacements_are_found_with_their_labels() {
        let text = "a [redacted:x] [redacted:] [redacted:[redacted:y]";
        assert_eq!(find_replacements(text), [(2..14, 12..13), (37..49, 47..48)]);
    }
}
