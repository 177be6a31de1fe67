//! The rules at work: a search for all their keywords, then the regular expressions of those rules whose keyword occurs. Each is
//! compiled at its first use.

use crate::foreign::ForeignRule;
use crate::harmless;
use crate::pem;
use crate::rules::{self, Bounds, Shape};
use crate::rules_context::{self, Context};
use crate::spans::{Label, Span};
use aho_corasick::AhoCorasick;
use regex_automata::meta::{BuildError, Regex};
use regex_automata::util::{captures::Captures, syntax};
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::sync::OnceLock;

/// The bound on a compiled expression. Those of gitleaks' file need less than half of it.
const MAX_COMPILED_BYTES: usize = 4 << 20;
/// The bound on the states that one expression keeps while it searches. Beyond it they are made again.
const MAX_STATES_BYTES: usize = 256 << 10;

/// Rules that other modules find, by their place in the list.
pub(crate) const ENV_DUMP: usize = 1;
pub(crate) const CUT_TOKEN: usize = 2;

/// Every rule, and the search for their keywords.
pub(crate) struct Shapes {
    rules: Vec<Rule>,
    keywords: AhoCorasick,
    /// Rules of each keyword, by the keyword's number.
    owners: Vec<Vec<usize>>,
    /// Rules without a keyword.
    always: Vec<usize>,
    labels: HashSet<String>,
}

struct Rule {
    id: String,
    kind: RuleKind,
}

enum RuleKind {
    PrivateKey(OnceLock<Option<Regex>>),
    /// A rule that is not an expression: other modules find it.
    Elsewhere,
    Shape(&'static Shape, OnceLock<Option<Regex>>),
    Context(&'static Context, OnceLock<Option<Regex>>),
    Foreign(ForeignRule, OnceLock<Option<Regex>>),
}

impl Shapes {
    pub(crate) fn new(foreign: &[ForeignRule]) -> Shapes {
        let mut rules = vec![
            Rule { id: "private-key".into(), kind: RuleKind::PrivateKey(OnceLock::new()) },
            Rule { id: "env-dump".into(), kind: RuleKind::Elsewhere },
            Rule { id: "cut-token".into(), kind: RuleKind::Elsewhere },
        ];
        let shapes = rules::SHAPES.iter();
        rules.extend(shapes.map(|s| Rule { id: s.id.into(), kind: RuleKind::Shape(s, OnceLock::new()) }));
        let contexts = rules_context::CONTEXTS.iter();
        rules.extend(contexts.map(|c| Rule { id: c.id.into(), kind: RuleKind::Context(c, OnceLock::new()) }));
        let foreign = foreign.iter().cloned();
        rules.extend(foreign.map(|f| Rule { id: f.id.clone(), kind: RuleKind::Foreign(f, OnceLock::new()) }));

        let mut by_keyword: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut always = Vec::new();
        for (index, rule) in rules.iter().enumerate() {
            let keywords = rule.keywords();
            if keywords.is_empty() && !matches!(rule.kind, RuleKind::Elsewhere) {
                always.push(index);
            }
            keywords.into_iter().for_each(|keyword| by_keyword.entry(keyword).or_default().push(index));
        }
        let keywords = AhoCorasick::builder()
            .ascii_case_insensitive(true)
            .build(by_keyword.keys())
            .expect("keywords are few and short");
        let labels = rules.iter().map(|rule| rule.id.clone()).collect();
        Shapes { keywords, owners: by_keyword.into_values().collect(), always, labels, rules }
    }

    pub(crate) fn id(&self, index: usize) -> &str {
        &self.rules[index].id
    }

    pub(crate) fn has_label(&self, label: &str) -> bool {
        self.labels.contains(label)
    }

    /// Appends a span for every secret that a rule finds.
    pub(crate) fn find(&self, text: &str, spans: &mut Vec<Span>) {
        let mut due = vec![false; self.rules.len()];
        self.always.iter().for_each(|index| due[*index] = true);
        for found in self.keywords.find_overlapping_iter(text) {
            self.owners[found.pattern()].iter().for_each(|index| due[*index] = true);
        }
        for (index, _) in due.iter().enumerate().filter(|(_, due)| **due) {
            let mut found = Vec::new();
            self.rules[index].find(text, &mut found);
            spans.extend(found.into_iter().map(|range| Span::new(range, Label::Rule(index))));
        }
    }

    #[cfg(test)]
    pub(crate) fn compiled_rules(&self) -> usize {
        let is_compiled = |rule: &&Rule| match &rule.kind {
            RuleKind::Elsewhere => false,
            RuleKind::PrivateKey(regex) | RuleKind::Shape(_, regex) => regex.get().is_some(),
            RuleKind::Context(_, regex) | RuleKind::Foreign(_, regex) => regex.get().is_some(),
        };
        self.rules.iter().filter(is_compiled).count()
    }
}

impl Rule {
    fn keywords(&self) -> Vec<String> {
        let owned = |list: &[&str]| list.iter().map(|keyword| keyword.to_ascii_lowercase()).collect();
        match &self.kind {
            RuleKind::PrivateKey(_) => vec!["private key".into()],
            RuleKind::Elsewhere => Vec::new(),
            RuleKind::Shape(shape, _) => owned(shape.keywords),
            RuleKind::Context(context, _) => owned(context.keywords),
            RuleKind::Foreign(rule, _) => rule.keywords.clone(),
        }
    }

    fn find(&self, text: &str, found: &mut Vec<Range<usize>>) {
        let bytes = text.as_bytes();
        match &self.kind {
            RuleKind::Elsewhere => {}
            RuleKind::PrivateKey(regex) => {
                if let Some(regex) = regex.get_or_init(|| compile(pem::BOUNDARY).ok()) {
                    pem::find(bytes, regex, found);
                }
            }
            RuleKind::Shape(shape, regex) => {
                if let Some(regex) = regex.get_or_init(|| compile(&bounded(shape)).ok()) {
                    let secrets = secrets(regex, bytes);
                    found.extend(secrets.filter(|range| !harmless::is_sample_token(&bytes[range.clone()])));
                }
            }
            RuleKind::Context(context, regex) => {
                if let Some(regex) = regex.get_or_init(|| compile(context.pattern).ok()) {
                    let secrets = secrets(regex, bytes);
                    found.extend(secrets.filter(|range| context.value.is_secret(&bytes[range.clone()])));
                }
            }
            RuleKind::Foreign(rule, regex) => {
                if let Some(regex) = regex.get_or_init(|| compile(&rule.pattern).ok()) {
                    rule.find(regex, bytes, found);
                }
            }
        }
    }
}

/// Compiles an expression over bytes with ASCII classes: Unicode ones need seconds and hundreds of megabytes.
pub(crate) fn compile(pattern: &str) -> Result<Regex, Box<BuildError>> {
    let config = Regex::config()
        .utf8_empty(false)
        .nfa_size_limit(Some(MAX_COMPILED_BYTES))
        .hybrid_cache_capacity(MAX_STATES_BYTES)
        .onepass(false);
    let syntax = syntax::Config::new().unicode(false).utf8(false);
    Regex::builder().configure(config).syntax(syntax).build(pattern).map_err(Box::new)
}

fn bounded(shape: &Shape) -> String {
    match shape.bounds {
        Bounds::Free => shape.pattern.to_string(),
        Bounds::Left => format!(r"\b(?:{})", shape.pattern),
        Bounds::Both => format!(r"\b(?:{})\b", shape.pattern),
    }
}

/// The places of the secrets: the first group of the expression, or the whole match if it has none.
fn secrets<'a>(regex: &'a Regex, bytes: &'a [u8]) -> Box<dyn Iterator<Item = Range<usize>> + 'a> {
    if regex.captures_len() == 1 {
        return Box::new(regex.find_iter(bytes).map(|m| m.range()));
    }
    let group = |captures: Captures| captures.get_group(1).or_else(|| captures.get_match().map(|m| m.span()));
    Box::new(regex.captures_iter(bytes).filter_map(group).map(|span| span.range()))
}

#[cfg(test)]
mod tests {
    use crate::rules::SHAPES;
    use crate::{KnownValues, RedactConfig, Redactor};
    use proptest::strategy::{Strategy, ValueTree};
    use proptest::string::string_regex;
    use proptest::test_runner::TestRunner;

    const SAMPLES: usize = 8;

    #[test]
    fn every_rule_hides_whatever_its_pattern_describes() {
        let (redactor, mut runner) = (Redactor::new(RedactConfig::default()), TestRunner::deterministic());
        let mut wrong = Vec::new();
        for shape in SHAPES {
            let pattern = string_regex(shape.pattern).expect(shape.id);
            for _ in 0..SAMPLES {
                let secret = pattern.new_tree(&mut runner).expect(shape.id).current();
                let redacted = redactor.redact(&format!("before \"{secret}\" after"), &KnownValues::new()).text;
                let end = &secret[secret.len() - 8..];
                if redacted.contains(end) || !redacted.starts_with("before ") || !redacted.ends_with(" after") {
                    wrong.push(format!("{}: {secret} became {redacted}", shape.id));
                }
            }
        }
        assert_eq!(wrong, [""; 0]);
    }
}
