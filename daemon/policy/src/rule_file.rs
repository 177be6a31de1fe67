//! Rule files: parsed, and checked by their own examples. An error names the file, the index of the rule and the example.

use crate::lexer::plain_commands;
use crate::programs::is_too_wide;
use crate::rule::{Part, Rule, Verdict};
use crate::search::Search;
use std::fmt;
use toml::{Table, Value};

/// The file to which approvals append: its rules outrank an ask for the same command.
pub const APPROVED_FILE: &str = "approved.toml";

/// The reason why a rule file was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleError {
    pub file: String,
    /// The rule, counted from 0.
    pub index: Option<usize>,
    /// The example that failed.
    pub example: Option<String>,
    pub why: String,
}

impl fmt::Display for RuleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if let Some(index) = self.index {
            write!(f, ": rule {index}")?;
        }
        if let Some(example) = &self.example {
            write!(f, ": example {example:?}")?;
        }
        write!(f, ": {}", self.why)
    }
}

impl std::error::Error for RuleError {}

/// One file of rules.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleFile {
    pub name: String,
    pub rules: Vec<Rule>,
}

/// A file that was refused at the start. Everything that it may have judged is a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadFile {
    pub name: String,
    pub error: String,
    /// The beginnings of its rules. Nothing: not all of them are known, so it may have judged any command.
    pub prefixes: Option<Vec<Vec<Part>>>,
}

/// All rules, in the order of their files.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rules {
    pub files: Vec<RuleFile>,
    pub bad: Vec<BadFile>,
}

impl Rules {
    pub fn is_empty(&self) -> bool {
        self.bad.is_empty() && self.files.iter().all(|file| file.rules.is_empty())
    }

    /// The number of rules.
    pub fn count(&self) -> usize {
        self.files.iter().map(|file| file.rules.len()).sum()
    }
}

impl RuleFile {
    /// Parses and checks a file.
    pub fn parse(name: &str, text: &str) -> Result<RuleFile, RuleError> {
        let at = |index, why: String| RuleError { file: name.into(), index, example: None, why };
        let mut rules = Vec::new();
        for (index, value) in rule_values(text).map_err(|why| at(None, why))?.into_iter().enumerate() {
            let rule: Rule =
                value.try_into().map_err(|e: toml::de::Error| at(Some(index), first_line(&e.to_string())))?;
            check(&rule).map_err(|(example, why)| RuleError { file: name.into(), index: Some(index), example, why })?;
            rules.push(rule);
        }
        Ok(RuleFile { name: name.into(), rules })
    }
}

impl BadFile {
    /// Notes what a refused file may have judged.
    pub fn new(error: &RuleError, text: Option<&str>) -> BadFile {
        let prefix = |rule: Value| -> Option<Vec<Part>> {
            let prefix: Vec<Part> = rule.get("prefix")?.clone().try_into().ok()?;
            prefix.first().filter(|first| !first.words().is_empty())?;
            Some(prefix)
        };
        let rules = text.and_then(|text| rule_values(text).ok());
        let prefixes = rules.and_then(|rules| rules.into_iter().map(prefix).collect());
        BadFile { name: error.file.clone(), error: error.to_string(), prefixes }
    }
}

fn first_line(text: &str) -> String {
    text.trim().lines().next().unwrap_or_default().to_string()
}

/// The entries of `rule`, not yet checked.
fn rule_values(text: &str) -> Result<Vec<Value>, String> {
    let mut table: Table = text.parse().map_err(|e: toml::de::Error| e.to_string().trim().to_string())?;
    let rules = table.remove("rule");
    if let Some(key) = table.keys().next() {
        return Err(format!("unknown key `{key}`; rules are [[rule]]"));
    }
    match rules {
        None => Ok(Vec::new()),
        Some(Value::Array(rules)) => Ok(rules),
        Some(_) => Err("rules are [[rule]], not [rule]".into()),
    }
}

/// The failing example, if it is one, and the reason.
type Failed = (Option<String>, String);

fn check(rule: &Rule) -> Result<(), Failed> {
    let failed = |why: &str| Err((None, why.to_string()));
    if rule.prefix.is_empty() {
        return failed("prefix is empty");
    }
    if rule.prefix.iter().any(|part| part.words().is_empty() || part.words().iter().any(String::is_empty)) {
        return failed("prefix has an empty word or list");
    }
    if rule.unless.iter().any(String::is_empty) {
        return failed("unless has an empty word");
    }
    if rule.verdict != Verdict::Allow && rule.reason.trim().is_empty() {
        return failed("reason is empty; ask and deny need one");
    }
    if let Some(program) = rule.program.iter().find(|program| !program.starts_with('/')) {
        return Err((None, format!("program {program:?} is not an absolute path")));
    }
    match (rule.verdict, &rule.sandbox) {
        (Verdict::Ask | Verdict::Deny, Some(_)) => return failed("sandbox is for allow only"),
        (_, Some(name)) if name.is_empty() => return failed("sandbox is empty"),
        _ => {}
    }
    if rule.verdict == Verdict::Allow
        && let Some(words) = too_wide(&rule.prefix)
    {
        return Err((None, format!("an allow for `{words}` alone would allow anything; name what it may run")));
    }
    check_examples(rule)
}

/// The beginning of a prefix that is an interpreter or a wrapper alone, for one choice of its words.
fn too_wide(prefix: &[Part]) -> Option<String> {
    const MAX_CHOICES: usize = 1024;
    let mut choices: Vec<Vec<&str>> = vec![Vec::new()];
    for part in prefix {
        if choices.len() * part.words().len() > MAX_CHOICES {
            // Judged by what is known so far: more words only narrow it.
            break;
        }
        let mut longer = Vec::new();
        for choice in &choices {
            longer.extend(part.words().iter().map(|word| [choice.as_slice(), &[word.as_str()]].concat()));
        }
        choices = longer;
    }
    choices.into_iter().find(|words| is_too_wide(words)).map(|words| words.join(" "))
}

fn check_examples(rule: &Rule) -> Result<(), Failed> {
    for example in &rule.matching {
        if !is_example(rule, example) {
            return Err((Some(example.clone()), "the rule does not match it".into()));
        }
    }
    for example in &rule.not_match {
        if is_example(rule, example) {
            return Err((Some(example.clone()), "the rule matches it".into()));
        }
    }
    Ok(())
}

/// Returns true if the rule matches this text: an allow every command of it, another verdict any.
fn is_example(rule: &Rule, text: &str) -> bool {
    let plain = plain_commands(text);
    if rule.verdict == Verdict::Allow {
        return plain.is_some_and(|commands| commands.iter().all(|words| rule.matches(words)));
    }
    let search = plain.map_or_else(|| Search::in_text(text), |commands| Search::in_commands(&commands));
    search.candidates.iter().any(|candidate| rule.may_match(candidate.words()))
}
