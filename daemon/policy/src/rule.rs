//! One rule: the words it begins with, and its verdict. Allow rules match strictly, ask and deny rules loosely.

use crate::scan::is_same_word;
use crate::shells::base_name;
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// The verdict on a call. The strictest one is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Allow,
    Ask,
    Deny,
}

/// One position of a prefix: a word, or any of several.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Part {
    One(String),
    Any(Vec<String>),
}

impl Part {
    pub(crate) fn words(&self) -> &[String] {
        match self {
            Part::One(word) => std::slice::from_ref(word),
            Part::Any(words) => words,
        }
    }

    fn has(&self, word: &str) -> bool {
        self.words().iter().any(|own| own == word)
    }

    fn may_be(&self, word: &str) -> bool {
        self.words().iter().any(|own| is_same_word(word, own))
    }

    /// The program of a command: by its whole path, or by its name if the rule has only that.
    fn may_be_program(&self, word: &str) -> bool {
        self.may_be(word) || self.words().iter().any(|own| !own.contains('/') && is_same_word(base_name(word), own))
    }
}

/// A rule as its file has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub prefix: Vec<Part>,
    pub verdict: Verdict,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unless: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    #[serde(default, rename = "match", skip_serializing_if = "Vec::is_empty")]
    pub matching: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_match: Vec<String>,
}

impl Rule {
    /// A rule that allows commands which begin so.
    pub fn allow(prefix: Vec<Part>, sandbox: Option<String>) -> Rule {
        Rule {
            prefix,
            verdict: Verdict::Allow,
            unless: Vec::new(),
            program: Vec::new(),
            sandbox,
            reason: String::new(),
            matching: Vec::new(),
            not_match: Vec::new(),
        }
    }

    /// Returns the rule as text for a rule file.
    pub fn to_toml(&self) -> String {
        let list =
            |words: &[String]| format!("[{}]", words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(", "));
        let part = |part: &Part| match part {
            Part::One(word) => quoted(word),
            Part::Any(words) => list(words),
        };
        let verdict = match self.verdict {
            Verdict::Allow => "allow",
            Verdict::Ask => "ask",
            Verdict::Deny => "deny",
        };
        let prefix = self.prefix.iter().map(part).collect::<Vec<_>>().join(", ");
        let mut text = format!("[[rule]]\nprefix = [{prefix}]\nverdict = \"{verdict}\"\n");
        let lists = [
            ("unless", &self.unless),
            ("program", &self.program),
            ("match", &self.matching),
            ("not_match", &self.not_match),
        ];
        for (key, words) in lists.into_iter().filter(|(_, words)| !words.is_empty()) {
            let _ = writeln!(text, "{key} = {}", list(words));
        }
        if let Some(sandbox) = &self.sandbox {
            let _ = writeln!(text, "sandbox = {}", quoted(sandbox));
        }
        if !self.reason.is_empty() {
            let _ = writeln!(text, "reason = {}", quoted(&self.reason));
        }
        text
    }

    /// Returns true if the command begins exactly as the rule, and no later word is an exception.
    pub(crate) fn matches(&self, words: &[String]) -> bool {
        words.len() >= self.prefix.len()
            && self.prefix.iter().zip(words).all(|(part, word)| part.has(word))
            && !words[self.prefix.len()..].iter().any(|word| self.is_exception(word))
    }

    /// Returns true if the command may be meant by the rule: its program by name, options and their values between the
    /// words of the prefix.
    pub(crate) fn may_match(&self, words: &[String]) -> bool {
        let Some((first, parts)) = self.prefix.split_first() else { return false };
        let Some((program, args)) = words.split_first() else { return false };
        if !first.may_be_program(program) {
            return false;
        }
        let mut used = vec![false; args.len().min(MAX_SEARCHED_WORDS)];
        let args = &args[..used.len()];
        find_parts(parts, args, 0, &mut used)
            && !args.iter().zip(&used).any(|(word, is_used)| !is_used && self.is_exception(word))
    }

    fn is_exception(&self, word: &str) -> bool {
        self.unless.iter().any(|unless| {
            word.strip_prefix(unless.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
        })
    }
}

/// The most words of a command that are compared with a prefix.
const MAX_SEARCHED_WORDS: usize = 4096;

/// Finds the parts in order, with options between them, each with at most one value. Marks the words that are parts.
fn find_parts(parts: &[Part], args: &[String], at: usize, used: &mut [bool]) -> bool {
    let Some((part, rest)) = parts.split_first() else { return true };
    let Some(word) = args.get(at) else { return false };
    if part.may_be(word) {
        used[at] = true;
        if find_parts(rest, args, at + 1, used) {
            return true;
        }
        used[at] = false;
    }
    // Tries the value of an option first as a part, then as a value.
    let mut next = at;
    while args.get(next).is_some_and(|word| word.starts_with('-')) {
        next += 1;
        if args.get(next).is_some_and(|word| part.may_be(word)) {
            used[next] = true;
            if find_parts(rest, args, next + 1, used) {
                return true;
            }
            used[next] = false;
        }
        if args.get(next).is_some_and(|word| !word.starts_with('-')) {
            next += 1;
            if args.get(next).is_some_and(|word| part.may_be(word)) {
                used[next] = true;
                if find_parts(rest, args, next + 1, used) {
                    return true;
                }
                used[next] = false;
            }
        }
    }
    false
}

/// A basic string of TOML.
fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                let _ = write!(quoted, "\\u{:04x}", c as u32);
            }
            c => quoted.push(c),
        }
    }
    quoted + "\""
}
