//! A rule of a file in gitleaks' format, and the lists of what it lets pass.

use crate::shapes::compile;
use regex_automata::meta::Regex;
use regex_automata::util::captures::Captures;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

/// A rule as it is in the file. It is compiled at its first use.
#[derive(Debug, Clone)]
pub(crate) struct ForeignRule {
    pub(crate) id: String,
    pub(crate) pattern: String,
    /// In lower case. Empty: the rule is applied to every text.
    pub(crate) keywords: Vec<String>,
    /// Bits per character that a secret has at least.
    pub(crate) entropy: f64,
    /// 0: the first group that matched, or the whole match.
    pub(crate) secret_group: usize,
    pub(crate) allowlists: Vec<Arc<Allowlist>>,
}

/// Texts that are not a secret although a rule matches.
#[derive(Debug, Clone, Default)]
pub(crate) struct Allowlist {
    pub(crate) regexes: Vec<String>,
    /// In lower case.
    pub(crate) stopwords: Vec<String>,
    pub(crate) target: AllowTarget,
    /// Every condition must hold, not one of them.
    pub(crate) needs_all: bool,
    /// Conditions on paths or commits: a text has neither, so they never hold.
    pub(crate) has_unknown_condition: bool,
    /// Compiled at the first use. The lists of a whole file are shared by its rules.
    pub(crate) compiled: OnceLock<Vec<Regex>>,
}

/// The text that an allowlist's expressions are compared with.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum AllowTarget {
    #[default]
    Secret,
    Match,
    Line,
}

impl ForeignRule {
    /// Appends the place of every secret. `regex` is compiled from the rule's pattern.
    pub(crate) fn find(&self, regex: &Regex, text: &[u8], found: &mut Vec<Range<usize>>) {
        if regex.captures_len() == 1 {
            let matches = regex.find_iter(text).map(|m| m.range());
            found.extend(matches.filter(|whole| self.is_secret(text, whole, whole)));
            return;
        }
        for captures in regex.captures_iter(text) {
            let Some(whole) = captures.get_match().map(|m| m.range()) else { continue };
            let secret = self.secret(&captures).unwrap_or_else(|| whole.clone());
            found.extend(self.is_secret(text, &whole, &secret).then_some(secret));
        }
    }

    fn secret(&self, captures: &Captures) -> Option<Range<usize>> {
        if self.secret_group > 0 {
            return captures.get_group(self.secret_group).map(|span| span.range());
        }
        let mut groups = captures.iter().skip(1).flatten().map(|span| span.range());
        groups.find(|group| !group.is_empty())
    }

    fn is_secret(&self, text: &[u8], whole: &Range<usize>, secret: &Range<usize>) -> bool {
        let value = &text[secret.clone()];
        let is_random = || self.entropy == 0.0 || entropy(value) > self.entropy;
        !secret.is_empty() && is_random() && !self.allowlists.iter().any(|list| list.allows(text, whole, value))
    }
}

impl Allowlist {
    fn allows(&self, text: &[u8], whole: &Range<usize>, secret: &[u8]) -> bool {
        let compile_all = || self.regexes.iter().filter_map(|pattern| compile(pattern).ok()).collect();
        let regexes: &Vec<Regex> = self.compiled.get_or_init(compile_all);
        let target = match self.target {
            AllowTarget::Secret => secret,
            AllowTarget::Match => &text[whole.clone()],
            AllowTarget::Line => line_of(text, whole),
        };
        let matches = || regexes.iter().any(|regex| regex.is_match(target));
        let stops = || {
            let lower = secret.to_ascii_lowercase();
            self.stopwords.iter().any(|stop| memchr::memmem::find(&lower, stop.as_bytes()).is_some())
        };
        if !self.needs_all {
            return matches() || stops();
        }
        let has_condition = !regexes.is_empty() || !self.stopwords.is_empty();
        has_condition
            && !self.has_unknown_condition
            && (regexes.is_empty() || matches())
            && (self.stopwords.is_empty() || stops())
    }
}

fn line_of<'a>(text: &'a [u8], part: &Range<usize>) -> &'a [u8] {
    let start = memchr::memrchr(b'\n', &text[..part.start]).map_or(0, |at| at + 1);
    let end = memchr::memchr(b'\n', &text[part.end..]).map_or(text.len(), |len| part.end + len);
    &text[start..end]
}

/// Shannon's entropy in bits per byte.
fn entropy(bytes: &[u8]) -> f64 {
    let mut counts = [0u32; 256];
    bytes.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let total = bytes.len() as f64;
    counts.iter().filter(|count| **count > 0).map(|count| f64::from(*count) / total).map(|p| -p * p.log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::entropy;

    #[test]
    fn entropy_counts_the_bits_of_a_byte() {
        assert_eq!([entropy(b""), entropy(b"aaaa"), entropy(b"abab"), entropy(b"abcd")], [0.0, 0.0, 1.0, 2.0]);
    }
}
