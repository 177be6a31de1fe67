//! The redactor: three layers over one text, until nothing more is found.

use crate::OVERLAP_BYTES;
use crate::edges::{self, Open};
use crate::env_dump::{self, SecretNames};
use crate::foreign::ForeignRule;
use crate::known::KnownValues;
use crate::rule_file::RuleFile;
use crate::shapes::{CUT_TOKEN, ENV_DUMP, Shapes};
use crate::spans::{self, Label, Rendered, Span};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;

/// A replacement changes what is beside it, so that a rule may match there now. Own rules need at most three rounds; the bound is
/// for those of a foreign file.
const MAX_ROUNDS: usize = 16;
/// A character that stands for bytes which are not text, such as half a character at the edge of a window.
const REPLACEMENT_CHAR: char = '\u{fffd}';

/// Settings of a redactor.
#[derive(Debug, Clone, Default)]
pub struct RedactConfig {
    pub names: SecretNames,
    /// Rules in addition to our own.
    pub extra_rules: Vec<RuleFile>,
}

/// Finds and replaces secrets. It is empty until its first use.
pub struct Redactor {
    names: SecretNames,
    foreign: Vec<ForeignRule>,
    shapes: OnceLock<Shapes>,
}

/// A text without its secrets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Redacted {
    pub text: String,
    /// Replacements by rule, sorted by its name.
    pub counts: Vec<RuleCount>,
}

/// Several texts without their secrets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RedactedTexts {
    pub texts: Vec<String>,
    pub counts: Vec<RuleCount>,
}

/// The number of replacements of one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleCount {
    pub rule: String,
    pub count: u64,
}

impl Redactor {
    pub fn new(config: RedactConfig) -> Redactor {
        let foreign = config.extra_rules.into_iter().flat_map(|file| file.rules).collect();
        Redactor { names: config.names, foreign, shapes: OnceLock::new() }
    }

    /// The names of variables with secrets, for [`KnownValues::insert_env`].
    pub fn names(&self) -> &SecretNames {
        &self.names
    }

    /// Redacts a whole text. A part of a longer text needs [`Redactor::redact_part`] or [`Redactor::excerpt`].
    pub fn redact(&self, text: &str, known: &KnownValues) -> Redacted {
        let spans = self.secrets(text, known, Open::NONE);
        let text = Rendered::new(text, &spans, |label| self.label(known, label)).text;
        Redacted { text, counts: self.counts(known, &spans) }
    }

    /// Redacts several whole texts and counts over all of them.
    pub fn redact_all(&self, texts: &[&str], known: &KnownValues) -> RedactedTexts {
        let redacted: Vec<Redacted> = texts.iter().map(|text| self.redact(text, known)).collect();
        let counts = RuleCount::sum(redacted.iter().map(|one| one.counts.as_slice()));
        RedactedTexts { texts: redacted.into_iter().map(|one| one.text).collect(), counts }
    }

    /// Redacts a window of a longer text and returns a part of it. On each open side the window has [`OVERLAP_BYTES`] more than the
    /// part, or all that there is. A secret that crosses an edge of the part is one replacement in it.
    pub fn redact_part(&self, window: &str, part: Range<usize>, open: Open, known: &KnownValues) -> Redacted {
        let spans = self.secrets(window, known, open);
        let part = spans::floor_char(window, part.start)..spans::ceil_char(window, part.end);
        let inside: Vec<Span> = spans.into_iter().filter(|s| s.start < part.end && s.end > part.start).collect();
        let clipped = |s: &Span| {
            let range = s.start.max(part.start) - part.start..s.end.min(part.end) - part.start;
            Span::new(range, s.label)
        };
        let clipped: Vec<Span> = inside.iter().map(clipped).collect();
        let text = Rendered::new(&window[part], &clipped, |label| self.label(known, label)).text;
        Redacted { text, counts: self.counts(known, &clipped) }
    }

    /// Returns the secrets of a text, sorted and apart from each other. In the rendered text nothing more is found.
    pub(crate) fn secrets(&self, text: &str, known: &KnownValues, open: Open) -> Vec<Span> {
        let mut hidden = self.round(text, known, open);
        for _ in 1..MAX_ROUNDS {
            if hidden.is_empty() {
                break;
            }
            let rendered = Rendered::new(text, &hidden, |label| self.label(known, label));
            let found = self.round(&rendered.text, known, open);
            if found.is_empty() {
                break;
            }
            let original = |span: &Span| Span::new(rendered.to_original(&hidden, span.start..span.end), span.label);
            let found: Vec<Span> = found.iter().map(original).collect();
            hidden = spans::merge(hidden.into_iter().chain(found).collect());
        }
        hidden
    }

    /// Applies every layer once.
    fn round(&self, text: &str, known: &KnownValues, open: Open) -> Vec<Span> {
        let bytes = text.as_bytes();
        let mut found = Vec::new();
        known.find(bytes, &mut found);
        if open.end {
            known.find_cut_end(text.trim_end_matches(REPLACEMENT_CHAR).as_bytes(), OVERLAP_BYTES, &mut found);
        }
        if open.start {
            let trimmed = text.trim_start_matches(REPLACEMENT_CHAR);
            let skipped = text.len() - trimmed.len();
            let first = found.len();
            known.find_cut_start(trimmed.as_bytes(), OVERLAP_BYTES, &mut found);
            found[first..].iter_mut().for_each(|span| span.end += skipped);
        }
        let known_count = found.len();
        self.shapes().find(text, &mut found);
        let mut values = Vec::new();
        env_dump::find(text, &self.names, open, &mut values);
        found.extend(values.into_iter().map(|range| Span::new(range, Label::Rule(ENV_DUMP))));
        let fragments = edges::find_fragments(text, open).into_iter();
        found.extend(fragments.map(|range| Span::new(range, Label::Rule(CUT_TOKEN))));
        let replaced = self.replacements(text, known, &found[..known_count]);
        spans::widen_to_characters(text, &mut found);
        spans::spare_replacements(spans::merge(found), &replaced)
    }

    /// Returns replacements that are in the text already: those of our rules and labels, and those of variables that this caller
    /// does not know, unless they hold a known value.
    fn replacements(&self, text: &str, known: &KnownValues, values: &[Span]) -> Vec<Range<usize>> {
        let is_variable = |label: &str| {
            let name = label.strip_prefix("env:");
            name.is_some_and(|name| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_'))
        };
        let values = spans::merge(values.to_vec());
        let holds_value = |place: &Range<usize>| {
            let next = values.partition_point(|value| value.end <= place.start);
            values.get(next).is_some_and(|value| value.start < place.end)
        };
        let found = spans::find_replacements(text).into_iter().filter(|(place, label)| {
            let label = &text[label.clone()];
            known.has_label(label) || self.shapes().has_label(label) || (is_variable(label) && !holds_value(place))
        });
        found.map(|(place, _)| place).collect()
    }

    pub(crate) fn label<'a>(&'a self, known: &'a KnownValues, label: Label) -> &'a str {
        match label {
            Label::Known(index) => known.label(index),
            Label::Rule(index) => self.shapes().id(index),
        }
    }

    pub(crate) fn counts(&self, known: &KnownValues, spans: &[Span]) -> Vec<RuleCount> {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for span in spans {
            *counts.entry(self.label(known, span.label)).or_default() += 1;
        }
        counts.into_iter().map(|(rule, count)| RuleCount { rule: rule.into(), count }).collect()
    }

    fn shapes(&self) -> &Shapes {
        self.shapes.get_or_init(|| Shapes::new(&self.foreign))
    }

    #[cfg(test)]
    pub(crate) fn compiled_rules(&self) -> Option<usize> {
        self.shapes.get().map(Shapes::compiled_rules)
    }
}

impl RuleCount {
    /// Adds up the counts of several texts.
    pub fn sum<'a>(counts: impl IntoIterator<Item = &'a [RuleCount]>) -> Vec<RuleCount> {
        let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
        for count in counts.into_iter().flatten() {
            *sums.entry(&count.rule).or_default() += count.count;
        }
        sums.into_iter().map(|(rule, count)| RuleCount { rule: rule.into(), count }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_built_before_the_first_use_and_a_rule_is_compiled_when_its_keyword_occurs() {
        let redactor = Redactor::new(RedactConfig::default());
        assert_eq!(redactor.compiled_rules(), None);
        redactor.redact("no keyword of a rule", &KnownValues::new());
        assert_eq!(redactor.compiled_rules(), Some(0));
        redactor.redact("a text with glpat- in it", &KnownValues::new());
        assert_eq!(redactor.compiled_rules(), Some(1));
    }
}
