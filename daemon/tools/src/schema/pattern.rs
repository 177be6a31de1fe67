//! Regular expressions of schemas: compiled once a check, bounded in size and work.

use regex_automata::meta::Regex;
use regex_automata::util::syntax;
use std::collections::HashMap;

/// A longer pattern is not checked.
const MAX_PATTERN_LEN: usize = 4096;
/// Memory of a compiled pattern.
const MAX_COMPILED_BYTES: usize = 128 * 1024;
/// Patterns of one check. Each costs up to a few milliseconds to compile.
const MAX_PATTERNS: usize = 64;
/// Bytes of a compiled pattern that one step per byte of text pays for: a search may visit all states at each byte.
const BYTES_PER_STEP: usize = 1024;

/// The patterns that a check has met.
#[derive(Default)]
pub struct Patterns<'a> {
    compiled: HashMap<&'a str, Option<Regex>>,
}

impl<'a> Patterns<'a> {
    /// Compiles a pattern, and returns the steps that a search of the text may cost. None: it cannot be checked, because it is
    /// too large, or of a dialect with more than regular expressions (look-ahead, back-references).
    pub fn prepare(&mut self, pattern: &'a str, text: &str) -> Option<u64> {
        if !self.compiled.contains_key(pattern) {
            if self.compiled.len() == MAX_PATTERNS {
                return None;
            }
            self.compiled.insert(pattern, compile(pattern));
        }
        let regex = self.compiled.get(pattern)?.as_ref()?;
        Some(text.len() as u64 * (1 + regex.memory_usage() / BYTES_PER_STEP) as u64)
    }

    /// Searches a text for a pattern that was prepared.
    pub fn is_match(&self, pattern: &str, text: &str) -> bool {
        self.compiled.get(pattern).and_then(Option::as_ref).is_none_or(|regex| regex.is_match(text))
    }
}

fn compile(pattern: &str) -> Option<Regex> {
    if pattern.len() > MAX_PATTERN_LEN {
        return None;
    }
    // Automata that are built during a search cost 2 MiB each; these texts are short.
    let config = Regex::config()
        .nfa_size_limit(Some(MAX_COMPILED_BYTES))
        .onepass_size_limit(Some(MAX_COMPILED_BYTES))
        .hybrid(false)
        .dfa(false);
    Regex::builder().configure(config).syntax(syntax::Config::new().nest_limit(100)).build(pattern).ok()
}
