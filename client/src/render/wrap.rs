//! Sentences on a terminal: broken between words, and under themselves where something stands before them.

use super::text::{columns, wrap};

/// A sentence in less room than this is read word by word. It goes below what stands before it.
const LEAST: usize = 24;
/// How far it is moved in there.
const BELOW: usize = 4;

/// The text in lines of at most `width` columns. Only a word that is wider than that is broken itself.
pub fn words(text: &str, width: usize) -> Vec<String> {
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

/// A text with what stands before each of its lines: the start before the first, and spaces before the others. Where the start
/// leaves it too little room it stands alone.
pub fn hanging_indent(start: &str, text: &str, width: Option<usize>) -> Vec<(String, String)> {
    let wide = columns(start);
    let Some(width) = width else { return vec![(start.to_owned(), text.to_owned())] };
    let room = width.saturating_sub(wide);
    let longest = text.split_whitespace().map(columns).max().unwrap_or(0);
    // A path that has room below is better whole.
    let breaks = (room + 1..=width.saturating_sub(BELOW)).contains(&longest);
    if room >= LEAST && !breaks || columns(text) <= room {
        let starts = std::iter::once(start.to_owned()).chain(std::iter::repeat(" ".repeat(wide)));
        return starts.zip(words(text, room)).collect();
    }
    let title = start.trim_end();
    let indent = if title.is_empty() { 0 } else { columns(start) - columns(start.trim_start()) } + BELOW;
    let indent = indent.min(width.saturating_sub(1));
    let first = words(title.trim_start(), width).into_iter().map(|line| {
        let before = title.len() - title.trim_start().len();
        (" ".repeat(before.min(width.saturating_sub(columns(&line)))) + &line, String::new())
    });
    let rest = words(text, width - indent).into_iter().map(|line| (" ".repeat(indent), line));
    first.filter(|(title, _)| !title.trim().is_empty()).chain(rest).collect()
}

/// A page: paragraphs, which are filled anew, and moved in the rows of a table, whose last column is.
pub fn page(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut paragraph: Vec<&str> = Vec::new();
    for line in text.lines().chain([""]) {
        if !line.is_empty() && !line.starts_with(' ') {
            paragraph.push(line);
            continue;
        }
        if !paragraph.is_empty() {
            words(&paragraph.join(" "), width).iter().for_each(|line| out.push_str(&format!("{line}\n")));
            paragraph.clear();
        }
        let (start, text) = line.split_at(column(line));
        for (start, text) in hanging_indent(start, text, Some(width)) {
            out.push_str(format!("{start}{text}").trim_end());
            out.push('\n');
        }
    }
    out.truncate(out.trim_end().len());
    out + "\n"
}

/// Where the last column of a row begins: behind the first two spaces that follow a word.
fn column(row: &str) -> usize {
    let indent = row.len() - row.trim_start().len();
    let gap = row[indent..].find("  ").map(|at| indent + at);
    gap.map_or(indent, |at| row.len() - row[at..].trim_start().len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_between_words_and_only_a_word_that_is_too_long_is_broken() {
        assert_eq!(words("one two three", 7), ["one two", "three"]);
        assert_eq!(words("to /a/long/path it is", 6), ["to", "/a/lon", "g/path", "it is"]);
        assert_eq!(words("a   b", 5), ["a   b"], "what fits is left alone");
        assert_eq!((words("", 3), words("ab", 0)), (vec!["".into()], vec!["a".into(), "b".into()]));
    }

    #[test]
    fn a_text_stands_under_itself_or_below_its_start_where_that_leaves_no_room() {
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
    fn a_page_has_its_paragraphs_filled_and_its_tables_kept() {
        let text =
            "Title\n\nSome words that\nare filled.\n\n  key    what it is for those who ask\n         and more\n";
        assert_eq!(
            page(text, 36),
            "Title\n\nSome words that are filled.\n\n  key    what it is for those who\n         ask\n         and more\n"
        );
    }
}
