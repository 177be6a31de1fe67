//! A view of a text in which some sequences stand for others, and the way back from the view to the text. Pure.

use std::ops::Range;

/// A part of the text and its form in the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewPart<'a> {
    pub source: &'a str,
    pub view: &'a str,
}

/// Returns the length of the sequence at the start of a text that has another form, and that form.
pub type Replace = fn(&str) -> Option<(usize, &'static str)>;

/// Replaces runs of blanks and tabs by one blank.
pub fn blanks(text: &str) -> Option<(usize, &'static str)> {
    let run = text.bytes().take_while(|b| matches!(b, b' ' | b'\t')).count();
    (run > 0).then_some((run, " "))
}

/// Replaces typographic characters by plain ones.
pub fn typography(text: &str) -> Option<(usize, &'static str)> {
    let first = text.chars().next().filter(|c| !c.is_ascii())?;
    let plain = match first {
        '\u{2018}'..='\u{201b}' => "'",
        '\u{201c}'..='\u{201f}' => "\"",
        '\u{2010}'..='\u{2013}' | '\u{2212}' => "-",
        '\u{2014}' | '\u{2015}' => "--",
        '\u{2026}' => "...",
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => " ",
        _ => return None,
    };
    Some((first.len_utf8(), plain))
}

/// Splits a text at what `replace` finds.
pub fn segments(text: &str, replace: Replace) -> impl Iterator<Item = ViewPart<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let (len, view) = match replace(rest) {
            Some((len, view)) => (len, Some(view)),
            None => {
                let next = rest.char_indices().skip(1).find(|(at, _)| replace(&rest[*at..]).is_some());
                (next.map_or(rest.len(), |(at, _)| at), None)
            }
        };
        let (source, tail) = rest.split_at(len);
        rest = tail;
        Some(ViewPart { source, view: view.unwrap_or(source) })
    })
}

/// Returns the view of a text.
pub fn view(text: &str, replace: Replace) -> String {
    segments(text, replace).map(|segment| segment.view).collect()
}

/// Returns the parts of the text that ranges of the view stand for. The ranges are in order and do not overlap.
pub fn locate(text: &str, replace: Replace, ranges: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::with_capacity(ranges.len());
    let (mut source_at, mut view_at, mut next) = (0, 0, 0);
    let mut open = None;
    for segment in segments(text, replace) {
        let (source_end, view_end) = (source_at + segment.source.len(), view_at + segment.view.len());
        let is_same = std::ptr::eq(segment.source, segment.view);
        while let Some(range) = ranges.get(next) {
            if open.is_none() && range.start < view_end {
                open = Some(if is_same { source_at + (range.start - view_at) } else { source_at });
            }
            match open {
                Some(start) if range.end <= view_end => {
                    found.push(start..if is_same { source_at + (range.end - view_at) } else { source_end });
                    open = None;
                    next += 1;
                }
                _ => break,
            }
        }
        (source_at, view_at) = (source_end, view_end);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_the_view_leads_to_the_text_that_it_stands_for() {
        let text = "a  \tb c\u{2014}d\u{2026}";
        assert_eq!(view(text, blanks), "a b c\u{2014}d\u{2026}");
        assert_eq!(view(text, typography), "a  \tb c--d...");
        let part = |replace: Replace, needle: &str| {
            let at = view(text, replace).find(needle).expect("in the view");
            let range =
                locate(text, replace, std::slice::from_ref(&(at..at + needle.len()))).pop().expect("in the text");
            &text[range]
        };
        assert_eq!(part(blanks, "a b"), "a  \tb");
        assert_eq!(part(blanks, " b"), "  \tb");
        assert_eq!(part(typography, "c--d"), "c\u{2014}d");
        assert_eq!(part(typography, "-d.."), "\u{2014}d\u{2026}", "a part of a form is the whole sequence");
    }

    #[test]
    fn several_ranges_are_located_in_one_pass() {
        let text = "x  y  x  y";
        let ranges = locate(text, blanks, &[0..3, 4..7]);
        assert_eq!(ranges, [0..4, 6..10]);
        assert_eq!(
            locate(text, blanks, std::slice::from_ref(&(7..7))),
            Vec::<Range<usize>>::new(),
            "an empty range at the end stands for nothing"
        );
    }
}
