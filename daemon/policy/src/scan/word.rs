//! Words of a scanned text: marks of characters with a meaning, patterns, alternatives, assignments.

/// Marks of unquoted characters with a meaning, in words that the scanner returns.
pub(super) mod mark {
    pub const OPEN: char = '\u{e000}';
    pub const COMMA: char = '\u{e001}';
    pub const CLOSE: char = '\u{e002}';
    pub const STAR: char = '\u{e003}';
    pub const ANY: char = '\u{e004}';
    pub const BLANK: char = '\u{e005}';
    pub const UNKNOWN: char = '\u{e006}';
}

/// The most words that alternatives in braces become.
const MAX_ALTERNATIVES: usize = 64;

/// Returns a word as it stands in the text.
pub(crate) fn shown(word: &str) -> String {
    let plain = |c| match c {
        mark::OPEN => '{',
        mark::COMMA => ',',
        mark::CLOSE => '}',
        mark::STAR => '*',
        mark::ANY => '?',
        mark::BLANK => ' ',
        mark::UNKNOWN => '…',
        c => c,
    };
    word.chars().map(plain).collect()
}

/// Returns true if a scanned word is this text, or a pattern that matches it.
pub(crate) fn is_same_word(word: &str, text: &str) -> bool {
    if !word.contains([mark::STAR, mark::ANY]) {
        return word == text;
    }
    // A pattern without a letter is in every second command.
    if !word.chars().any(char::is_alphanumeric) {
        return false;
    }
    let (pattern, text): (Vec<char>, Vec<char>) = (word.chars().collect(), text.chars().collect());
    glob(&pattern, &text)
}

/// Matches without recursion: at a mismatch, the last star takes one character more.
fn glob(pattern: &[char], text: &[char]) -> bool {
    let (mut p, mut t, mut star) = (0, 0, None);
    while t < text.len() {
        match pattern.get(p) {
            Some(&mark::STAR) => {
                star = Some((p, t));
                p += 1;
            }
            Some(&c) if c == mark::ANY || c == text[t] => (p, t) = (p + 1, t + 1),
            _ => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, t) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == mark::STAR)
}

/// The name and the value of an assignment.
pub(crate) fn assignment(word: &str) -> Option<(&str, &str)> {
    let (name, value) = word.split_once('=')?;
    let name = name.strip_suffix('+').unwrap_or(name);
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_name.then_some((name, value))
}

/// The words that unquoted alternatives in braces become.
pub(super) fn alternatives(word: &str) -> Vec<String> {
    let mut words = vec![word.to_string()];
    loop {
        let Some((at, (before, inner, after))) =
            words.iter().enumerate().find_map(|(at, word)| Some((at, innermost(word)?)))
        else {
            return words;
        };
        let made: Vec<String> = inner.split(mark::COMMA).map(|choice| format!("{before}{choice}{after}")).collect();
        if words.len() + made.len() > MAX_ALTERNATIVES {
            return words;
        }
        words.splice(at..=at, made);
    }
}

/// The first pair of braces with a comma and no other pair inside.
fn innermost(word: &str) -> Option<(&str, &str, &str)> {
    for (close, _) in word.match_indices(mark::CLOSE) {
        let Some(open) = word[..close].rfind(mark::OPEN) else { continue };
        let inner = &word[open + mark::OPEN.len_utf8()..close];
        if inner.contains(mark::COMMA) && !inner.contains(mark::CLOSE) {
            return Some((&word[..open], inner, &word[close + mark::CLOSE.len_utf8()..]));
        }
    }
    None
}
