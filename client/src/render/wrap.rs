//! Word wrapping with hanging indents.

use super::text::{columns, wrap};

/// Columns below which text is not put beside its start, but below it.
const MIN_TEXT_WIDTH: usize = 24;
/// Indent in columns of text below its start.
const BELOW_INDENT: usize = 4;

/// Breaks text into lines of at most `width` columns, between words. Only a word that is wider than that is broken.
pub fn word_wrap(text: &str, width: usize) -> Vec<String> {
    if columns(text) <= width {
        return vec![text.to_owned()];
    }
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut().filter(|line| columns(line) + 1 + columns(word) <= width) {
            Some(line) => *line = format!("{line} {word}"),
            None => lines.extend(wrap(word, width.max(1), usize::MAX)),
        }
    }
    lines
}

/// Returns the lines of a text, each with its prefix: the start before the first, and spaces before the others. If the start
/// leaves too few columns, it gets a line of its own.
pub fn hanging_indent(start: &str, text: &str, width: Option<usize>) -> Vec<(String, String)> {
    let start_width = columns(start);
    let Some(width) = width else { return vec![(start.to_owned(), text.to_owned())] };
    let room = width.saturating_sub(start_width);
    let longest = text.split_whitespace().map(columns).max().unwrap_or(0);
    // A path is not broken if it fits below.
    let fits_below = (room + 1..=width.saturating_sub(BELOW_INDENT)).contains(&longest);
    if room >= MIN_TEXT_WIDTH && !fits_below || columns(text) <= room {
        let starts = std::iter::once(start.to_owned()).chain(std::iter::repeat(" ".repeat(start_width)));
        return starts.zip(word_wrap(text, room)).collect();
    }
    let title = start.trim_end();
    let indent = if title.is_empty() { 0 } else { columns(start) - columns(start.trim_start()) } + BELOW_INDENT;
    let indent = indent.min(width.saturating_sub(1));
    let first = word_wrap(title.trim_start(), width).into_iter().map(|line| {
        let before = title.len() - title.trim_start().len();
        (" ".repeat(before.min(width.saturating_sub(columns(&line)))) + &line, String::new())
    });
    let rest = word_wrap(text, width - indent).into_iter().map(|line| (" ".repeat(indent), line));
    first.filter(|(title, _)| !title.trim().is_empty()).chain(rest).collect()
}

/// Wraps a page: paragraphs are filled again; in indented lines, which are rows of a table, only the last column is wrapped.
pub fn page(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut paragraph: Vec<&str> = Vec::new();
    for line in text.lines().chain([""]) {
        if !line.is_empty() && !line.starts_with(' ') {
            paragraph.push(line);
            continue;
        }
        if !paragraph.is_empty() {
            word_wrap(&paragraph.join(" "), width).iter().for_each(|line| out.push_str(&format!("{line}\n")));
            paragraph.clear();
        }
        let (start, text) = line.split_at(last_column(line));
        for (start, text) in hanging_indent(start, text, Some(width)) {
            out.push_str(format!("{start}{text}").trim_end());
            out.push('\n');
        }
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

/// Returns the start of a row's last column: behind the first two spaces that follow a word.
fn last_column(row: &str) -> usize {
    let indent = row.len() - row.trim_start().len();
    let gap = row[indent..].find("  ").map(|at| indent + at);
    gap.map_or(indent, |at| row.len() - row[at..].trim_start().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_break_between_words_and_only_a_too_long_word_is_broken() {
        assert_eq!(word_wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(word_wrap("to /a/long/path it is", 6), ["to", "/a/lon", "g/path", "it is"]);
        assert_eq!(word_wrap("a   b", 5), ["a   b"], "text that fits is unchanged");
        assert_eq!((word_wrap("", 3), word_wrap("ab", 0)), (vec!["".into()], vec!["a".into(), "b".into()]));
    }

    #[test]
    fn text_is_indented_by_its_start_or_put_below_it() {
        let shown = |width| -> Vec<String> {
            let lines = hanging_indent("  the start  ", "words that are shown to people here", width);
            lines.into_iter().map(|(start, text)| start + &text).collect()
        };
        assert_eq!(shown(None), ["  the start  words that are shown to people here"]);
        assert_eq!(shown(Some(40)), ["  the start  words that are shown to", "             people here"]);
        assert_eq!(shown(Some(30)), ["  the start", "      words that are shown to", "      people here"]);
        for width in 1..60 {
            assert!(shown(Some(width)).iter().all(|line| columns(line) <= width), "{width}: {:?}", shown(Some(width)));
        }
    }

    #[test]
    fn a_page_has_filled_paragraphs_and_keeps_its_tables() {
        let text =
            "Title\n\nSome words that\nare filled.\n\n  key    what it is for those who ask\n         and more\n";
        assert_eq!(
            page(text, 36),
            "Title\n\nSome words that are filled.\n\n  key    what it is for those who\n         ask\n         and more\n"
        );
    }
}
