//! Forced removal: `rm` with `-f`, in any spelling.

use crate::scan::{is_same_word, shown};
use crate::shells::base_name;
use serde::Serialize;

/// A dangerous command that was found in a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Danger {
    /// `forced_removal`.
    pub kind: &'static str,
    /// The command as it was found, at most its first 16 words.
    pub command: Vec<String>,
}

/// The most words of a command that a danger shows.
const MAX_SHOWN_WORDS: usize = 16;

impl Danger {
    /// Returns the danger of this command, if it has one.
    pub(crate) fn of(words: &[String]) -> Option<Danger> {
        let (program, args) = words.split_first()?;
        let is_rm = ["rm", "grm"].iter().any(|name| is_same_word(base_name(program), name));
        let mut options = args.iter().take_while(|arg| *arg != "--");
        (is_rm && options.any(|arg| is_force(&shown(arg)))).then(|| Danger {
            kind: "forced_removal",
            command: words.iter().take(MAX_SHOWN_WORDS).map(|word| shown(word)).collect(),
        })
    }

    /// The reason as a person reads it.
    pub(crate) fn text(&self) -> String {
        format!("forced removal: {}", self.command.join(" "))
    }
}

/// `-f` among other letters, or a beginning of `--force`.
fn is_force(arg: &str) -> bool {
    match arg.strip_prefix("--") {
        Some(long) => !long.is_empty() && "force".starts_with(long),
        None => arg.starts_with('-') && arg.contains('f'),
    }
}

/// Returns true if the text may contain `rm` in some spelling. False: it does not.
pub(crate) fn may_remove(text: &str) -> bool {
    let mut after_r = false;
    let mut after_dollar = false;
    for byte in text.bytes() {
        match byte {
            b'm' if after_r => return true,
            // A quoted text with escapes, a pattern, alternatives or a variable may become anything.
            b'\'' if after_dollar => return true,
            b'?' | b'*' | b'[' | b'{' | b'$' if after_r => return true,
            b'?' | b'*' | b']' | b'}' => after_r = true,
            b'\\' | b'\'' | b'"' | b'\n' => {}
            _ => after_r = byte == b'r',
        }
        after_dollar = byte == b'$';
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_dangerous(text: &str) -> bool {
        Danger::of(&text.split(' ').map(String::from).collect::<Vec<_>>()).is_some()
    }

    #[test]
    fn force_is_found_in_every_position_and_abbreviation() {
        for text in
            ["rm -f x", "rm -rf x", "rm -r -f x", "rm x -f", "/bin/rm -vf x", "rm --force x", "rm --fo x", "grm -f x"]
        {
            assert!(is_dangerous(text), "{text}");
            assert!(may_remove(text), "{text}");
        }
        for text in ["rm x", "rm -r x", "rm -- -f", "git rm -f x", "rm --verbose x", "rm -i x", "farm -f", "ls -f"] {
            assert!(!is_dangerous(text), "{text}");
        }
    }

    #[test]
    fn a_text_without_the_letters_needs_no_search() {
        for text in ["cargo test", "ls -lf", "git status", "echo r m", "true"] {
            assert!(!may_remove(text), "{text}");
        }
        for text in ["r\\m -f", "r''m -f", "\"r\"m", "$'\\x72m'", "r? -f", "?m -f", "{r,}m", "r*"] {
            assert!(may_remove(text), "{text}");
        }
    }
}
