//! Lines out of text that comes in pieces: the last ones, and the ones that match. Pure.

use regex::Regex;

/// The end of a text.
#[derive(Debug, PartialEq, Eq)]
pub struct Tail {
    pub shown: String,
    /// The text was long enough to know these lines.
    pub enough: bool,
    /// With `grep`: the unfinished last line, which cannot be judged yet.
    pub held: String,
}

/// The last `wanted` lines of a text. Where it does not begin at a line (`whole` is false), its
/// first line is not one.
pub fn last(text: &str, wanted: usize, whole: bool, grep: Option<&Regex>) -> Tail {
    let begin = if whole { 0 } else { text.find('\n').map_or(text.len(), |at| at + 1) };
    let text = &text[begin..];
    let (text, held) = match grep {
        Some(_) => text.split_at(text.rfind('\n').map_or(0, |at| at + 1)),
        None => (text, ""),
    };
    let lines: Vec<&str> = text.split_inclusive('\n').filter(|line| matches(grep, line)).collect();
    let shown = lines[lines.len().saturating_sub(wanted)..].concat();
    Tail { shown, enough: whole || lines.len() >= wanted, held: held.to_owned() }
}

/// Text that is passed on as it comes, or with `grep` the matching lines once they are whole.
pub struct Lines<'a> {
    grep: Option<&'a Regex>,
    held: String,
    open: bool,
}

impl<'a> Lines<'a> {
    /// What comes after this tail.
    pub fn after(tail: &Tail, grep: Option<&'a Regex>) -> Lines<'a> {
        Lines { grep, held: tail.held.clone(), open: is_open(&tail.shown) }
    }

    /// More text: what of it to print now.
    pub fn push(&mut self, text: &str) -> String {
        let shown = match self.grep {
            None => text.to_owned(),
            Some(_) => {
                self.held.push_str(text);
                let rest = self.held.split_off(self.held.rfind('\n').map_or(0, |at| at + 1));
                let whole = std::mem::replace(&mut self.held, rest);
                whole.split_inclusive('\n').filter(|line| matches(self.grep, line)).collect()
            }
        };
        if !shown.is_empty() {
            self.open = is_open(&shown);
        }
        shown
    }

    /// The end: what is left to print, with a newline where one is missing.
    pub fn finish(mut self) -> String {
        let line = std::mem::take(&mut self.held);
        match !line.is_empty() && matches(self.grep, &line) {
            true => line + "\n",
            false if self.open => "\n".into(),
            false => String::new(),
        }
    }
}

fn matches(grep: Option<&Regex>, line: &str) -> bool {
    grep.is_none_or(|grep| grep.is_match(line.trim_end_matches(['\n', '\r'])))
}

fn is_open(text: &str) -> bool {
    !text.is_empty() && !text.ends_with('\n')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tail(shown: &str, enough: bool, held: &str) -> Tail {
        Tail { shown: shown.into(), enough, held: held.into() }
    }

    #[test]
    fn the_last_lines_are_whole_ones_and_an_unfinished_line_waits_for_its_judgement() {
        assert_eq!(last("a\nb\nc\n", 2, true, None), tail("b\nc\n", true, ""));
        assert_eq!(last("half\nb\nc", 2, false, None), tail("b\nc", true, ""));
        assert_eq!(last("half\nb\n", 2, false, None), tail("b\n", false, ""));
        assert_eq!(last("half", 2, false, None), tail("", false, ""));
        let grep = Regex::new("^x").expect("a pattern");
        assert_eq!(last("x1\ny\nx2\nx", 5, true, Some(&grep)), tail("x1\nx2\n", true, "x"));
        let mut lines = Lines::after(&tail("x2\n", true, "x"), Some(&grep));
        assert_eq!((lines.push("3\ny"), lines.push("\nx4")), ("x3\n".into(), String::new()));
        assert_eq!(lines.finish(), "x4\n");
    }

    #[test]
    fn text_without_a_pattern_passes_at_once_and_ends_with_a_newline() {
        let mut lines = Lines::after(&tail("a", true, ""), None);
        assert_eq!((lines.push("b"), lines.push("")), ("b".into(), String::new()));
        assert_eq!(lines.finish(), "\n");
        assert_eq!(Lines::after(&tail("a\n", true, ""), None).finish(), "");
    }

    proptest! {
        #[test]
        fn any_cut_of_the_text_gives_the_same_matching_lines(text in "[xy\n]{0,40}", cuts in proptest::collection::vec(0usize..41, 0..5)) {
            let grep = Regex::new("x").expect("a pattern");
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(text.len())).collect();
            cuts.sort_unstable();
            let mut lines = Lines::after(&tail("", true, ""), Some(&grep));
            let mut shown = String::new();
            let mut done = 0;
            for cut in cuts.into_iter().chain([text.len()]) {
                shown += &lines.push(&text[done..cut]);
                done = cut;
            }
            shown += &lines.finish();
            let expected: String = text.lines().filter(|l| l.contains('x')).map(|l| format!("{l}\n")).collect();
            prop_assert_eq!(shown, expected);
        }
    }
}
