//! HTML without a parser: the depth of its nesting, and its text, each in one pass over the bytes.

use std::collections::HashMap;

/// Elements that never have an end tag, and those that the next of their kind ends: they do not nest by themselves.
const FLAT: &str = " area base br col embed hr img input link meta param source track wbr p li dt dd option optgroup tr td \
    th tbody thead tfoot colgroup rb rt rp rtc html head body ";
/// Elements whose content is not text of the page.
const SKIPPED: [&str; 6] = ["script", "style", "noscript", "template", "svg", "title"];
/// Elements whose content is not HTML.
const RAW: [&str; 4] = ["script", "style", "textarea", "title"];
/// Elements after which a new line begins.
const BLOCKS: &str =
    " p div br li ul ol tr table h1 h2 h3 h4 h5 h6 section article header footer pre blockquote dl dt dd hr ";

enum Token<'a> {
    Text(&'a str),
    Open(String),
    Close(String),
}

/// Estimates how deeply the elements of a page are nested. Elements that are not closed count until the end, so the
/// estimate is too high for careless pages, and not too low for hostile ones.
pub fn nesting(html: &str) -> usize {
    let mut open: HashMap<String, usize> = HashMap::new();
    let (mut depth, mut deepest) = (0_usize, 0_usize);
    for token in tokens(html) {
        match token {
            Token::Open(name) if !contains(FLAT, &name) => {
                *open.entry(name).or_default() += 1;
                depth += 1;
                deepest = deepest.max(depth);
            }
            Token::Close(name) => {
                // An end tag without its start is ignored by a parser too, and must not hide the depth.
                if let Some(count) = open.get_mut(&name).filter(|count| **count > 0) {
                    *count -= 1;
                    depth -= 1;
                }
            }
            Token::Open(_) | Token::Text(_) => {}
        }
    }
    deepest
}

/// Returns the title and the text of a page, a line per block.
pub fn strip(html: &str) -> (String, String) {
    let (mut title, mut text) = (String::new(), String::new());
    let mut skipped: Vec<String> = Vec::new();
    for token in tokens(html) {
        match token {
            Token::Text(part) => match skipped.last() {
                None => push_text(&mut text, part),
                Some(name) if name == "title" && title.is_empty() => push_text(&mut title, part),
                Some(_) => {}
            },
            Token::Open(name) => {
                break_line(&mut text, &name);
                if SKIPPED.contains(&name.as_str()) && skipped.len() < 16 {
                    skipped.push(name);
                }
            }
            Token::Close(name) => {
                break_line(&mut text, &name);
                if let Some(at) = skipped.iter().rposition(|open| *open == name) {
                    skipped.truncate(at);
                }
            }
        }
    }
    (title.trim().to_string(), text.trim().to_string())
}

fn contains(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == name)
}

fn break_line(text: &mut String, name: &str) {
    if contains(BLOCKS, name) && !text.is_empty() && !text.ends_with('\n') {
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
}

/// Appends text with its white space collapsed and the common entities replaced.
fn push_text(text: &mut String, part: &str) {
    let part = if part.contains('&') { unescape(part) } else { part.to_string() };
    for c in part.chars() {
        let is_after_space = text.is_empty() || text.ends_with([' ', '\n']);
        match c {
            c if c.is_whitespace() && is_after_space => {}
            c if c.is_whitespace() => text.push(' '),
            c => text.push(c),
        }
    }
}

fn unescape(text: &str) -> String {
    const NAMED: [(&str, &str); 7] = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&apos;", "'"),
        ("&nbsp;", " "),
        // Last: `&amp;lt;` is the text `&lt;`.
        ("&amp;", "&"),
    ];
    NAMED.iter().fold(text.to_string(), |text, (entity, c)| text.replace(entity, c))
}

/// Splits HTML into text and tags. Comments and declarations are left out; the content of raw elements is one text.
fn tokens(html: &str) -> impl Iterator<Item = Token<'_>> {
    let mut rest = html;
    let mut raw: Option<String> = None;
    std::iter::from_fn(move || {
        loop {
            if rest.is_empty() {
                return None;
            }
            if let Some(name) = raw.take() {
                let end = find_end_tag(rest, &name);
                let (text, after) = rest.split_at(end);
                rest = after;
                return Some(Token::Text(text));
            }
            if !rest.starts_with('<') {
                let (text, after) = rest.split_at(rest.find('<').unwrap_or(rest.len()));
                rest = after;
                return Some(Token::Text(text));
            }
            if let Some(comment) = rest.strip_prefix("<!--") {
                rest = comment.find("-->").map_or("", |end| &comment[end + 3..]);
                continue;
            }
            let is_close = rest.as_bytes().get(1) == Some(&b'/');
            let name = tag_name(&rest[1 + usize::from(is_close)..]);
            if name.is_empty() && !rest[1..].starts_with(['!', '?', '/']) {
                let (text, after) = rest.split_at(1);
                rest = after;
                return Some(Token::Text(text));
            }
            let (tag, after) = rest.split_at(tag_end(rest));
            rest = after;
            if name.is_empty() {
                continue;
            }
            if is_close {
                return Some(Token::Close(name));
            }
            if RAW.contains(&name.as_str()) && !tag.ends_with("/>") {
                raw = Some(name.clone());
            }
            return Some(Token::Open(name));
        }
    })
}

fn tag_name(text: &str) -> String {
    let is_name = text.starts_with(|c: char| c.is_ascii_alphabetic());
    let name = text.split(|c: char| c.is_ascii_whitespace() || c == '/' || c == '>').next().unwrap_or("");
    // Longer names differ only in their ends.
    if is_name { name.chars().take(32).collect::<String>().to_ascii_lowercase() } else { String::new() }
}

/// Returns the length of a tag, its `>` included. A `>` in quotes does not end it.
fn tag_end(tag: &str) -> usize {
    let mut quote = None;
    for (at, byte) in tag.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return at + 1,
            (None, b'"' | b'\'') if tag[..at].trim_end().ends_with('=') => quote = Some(byte),
            (Some(open), byte) if open == byte => quote = None,
            _ => {}
        }
    }
    tag.len()
}

/// Returns the place of the end tag of a raw element, or the end of the text.
fn find_end_tag(text: &str, name: &str) -> usize {
    let mut from = 0;
    while let Some(at) = text[from..].find("</") {
        let at = from + at;
        if tag_name(&text[at + 2..]) == name {
            return at;
        }
        from = at + 2;
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_removed_and_blocks_are_lines() {
        let html = "<!DOCTYPE html><html><head><title>A &amp; B</title><style>p{color:red}</style></head><body><!-- no -->
            <h1>Head</h1><p class=\"a>b\">One  two<br>three &lt;x&gt; 1 < 2<script>if (a < b) alert('</p>')</script><ul><li>i<li>j</ul>";
        let (title, text) = strip(html);
        assert_eq!(title, "A & B");
        assert_eq!(text, "Head\nOne two\nthree <x> 1 < 2\ni\nj");
    }

    #[test]
    fn the_depth_cannot_be_hidden() {
        assert_eq!(nesting("<div><p>a<p>b<br><img></div><div></div>"), 1);
        assert_eq!(nesting(&"<span></div>".repeat(100)), 100);
        assert_eq!(nesting(&"<div><table></div>".repeat(100)), 101);
        assert_eq!(nesting(&"<DIV a='>' b=\"</div>\">".repeat(100)), 100);
        assert_eq!(nesting(&"<ul><li>".repeat(100)), 100);
        assert_eq!(nesting("<script>'<div>'.repeat('<div>')</script>"), 1);
    }

    #[test]
    fn broken_html_ends() {
        for html in [
            "<",
            "</",
            "<a",
            "<a href='",
            "<!--",
            "<!",
            "<script>",
            "<script></scrip",
            "a<b",
            "<ä>",
            "</ä>",
            "&",
            "<a =\"\">é",
        ] {
            strip(html);
            nesting(html);
        }
    }

    #[test]
    fn a_megabyte_of_open_quotes_is_one_pass() {
        strip(&"<a b='".repeat(200_000));
        strip(&"<script></".repeat(100_000));
        strip(&"<!--".repeat(250_000));
    }
}
