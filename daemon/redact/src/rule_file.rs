//! Rule files in gitleaks' format: the text of one in, rules and the reasons for those that were left out.
//!
//! The format is foreign: unknown keys are ignored. A rule that cannot be used is reported and the others are kept.

use crate::foreign::{AllowTarget, Allowlist, ForeignRule};
use crate::shapes::compile;
use std::sync::{Arc, OnceLock};
use toml::{Table, Value};

/// The rule of gitleaks that matches any assignment. It is left out: it hides ordinary code.
const NOISY_RULE: &str = "generic-api-key";
/// Ids are part of the redacted text.
const MAX_ID_LEN: usize = 64;

/// The rules of a file that can be used.
#[derive(Debug, Clone, Default)]
pub struct RuleFile {
    pub(crate) rules: Vec<ForeignRule>,
    /// Rules that were left out, with the reason.
    pub problems: Vec<RuleProblem>,
}

/// A rule that was left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RuleProblem {
    /// Its id, or its number in the file.
    pub rule: String,
    pub reason: String,
}

impl RuleFile {
    /// Reads the text of a rule file. Each expression is compiled once, so that a bad one is reported here and not at its first
    /// use. An error: the text is not TOML.
    pub fn parse(text: &str) -> Result<RuleFile, String> {
        let table: Table = text.parse().map_err(|e: toml::de::Error| first_line(&e.to_string()))?;
        let mut file = RuleFile::default();
        let mut global = Vec::new();
        for (table, targets) in global_allowlists(&table) {
            global.push((Arc::new(allowlist(table, "the file", &mut file.problems)), targets));
        }
        for (index, value) in tables(table.get("rules")).into_iter().enumerate() {
            let id = value.get("id").and_then(Value::as_str).map(plain_id);
            let name = id.unwrap_or_else(|| format!("rule {}", index + 1));
            match rule(value, &name, &mut file.problems) {
                Ok(mut rule) => {
                    let here = global.iter().filter(|(_, targets)| targets.is_empty() || targets.contains(&name));
                    rule.allowlists.extend(here.map(|(list, _)| list.clone()));
                    file.rules.push(rule);
                }
                Err(reason) => file.problems.push(RuleProblem { rule: name, reason }),
            }
        }
        Ok(file)
    }

    /// The number of rules that can be used.
    pub fn len(&self) -> usize {
        self.rules.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

fn rule(table: &Table, id: &str, problems: &mut Vec<RuleProblem>) -> Result<ForeignRule, String> {
    if id == NOISY_RULE {
        return Err("left out, because it matches ordinary code".into());
    }
    let pattern = match table.get("regex") {
        Some(Value::String(pattern)) => with_literal_braces(pattern),
        Some(_) => return Err("regex is not a string".into()),
        None => return Err("left out, because it has no regex: paths of files are not searched".into()),
    };
    let regex = compile(&pattern).map_err(|e| reason("regex", &e))?;
    if regex.is_match("") {
        return Err("regex matches the empty text".into());
    }
    let secret_group = table.get("secretGroup").and_then(Value::as_integer).unwrap_or(0);
    let secret_group = usize::try_from(secret_group).ok().filter(|group| *group < regex.captures_len());
    let secret_group = secret_group.ok_or("secretGroup is the number of no group of its regex")?;
    let entropy = table.get("entropy").and_then(|v| v.as_float().or(v.as_integer().map(|n| n as f64))).unwrap_or(0.0);
    let lists = tables(table.get("allowlist")).into_iter().chain(tables(table.get("allowlists")));
    let allowlists = lists.map(|list| Arc::new(allowlist(list, id, problems))).collect();
    let keywords = lower_strings(table.get("keywords"));
    Ok(ForeignRule { id: id.to_string(), pattern, keywords, entropy, secret_group, allowlists })
}

/// Reads an allowlist without the expressions that cannot be compiled: it hides more then, not less.
fn allowlist(table: &Table, rule: &str, problems: &mut Vec<RuleProblem>) -> Allowlist {
    let mut regexes = Vec::new();
    for pattern in strings(table.get("regexes")) {
        let pattern = with_literal_braces(&pattern);
        match compile(&pattern) {
            Ok(_) => regexes.push(pattern),
            Err(e) => {
                let reason = reason("an expression of its allowlist was left out", &e);
                problems.push(RuleProblem { rule: rule.into(), reason });
            }
        }
    }
    let text = |key: &str| table.get(key).and_then(Value::as_str).unwrap_or_default().to_ascii_lowercase();
    Allowlist {
        regexes,
        stopwords: lower_strings(table.get("stopwords")),
        target: match text("regexTarget").as_str() {
            "match" => AllowTarget::Match,
            "line" => AllowTarget::Line,
            // `secret`, and targets of later versions.
            _ => AllowTarget::Secret,
        },
        needs_all: matches!(text("condition").as_str(), "and" | "&&"),
        has_unknown_condition: ["paths", "commits"].iter().any(|key| !strings(table.get(*key)).is_empty()),
        compiled: OnceLock::new(),
    }
}

/// Escapes braces that begin no repetition. In Go's syntax, the format's, they stand for themselves.
fn with_literal_braces(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let (mut rest, mut in_class, mut can_repeat) = (pattern, false, false);
    while let Some(c) = rest.chars().next() {
        let len = match c {
            // `\x{1F}` and `\p{L}` keep their braces.
            '\\' if rest[1..].starts_with(['x', 'p', 'P']) && rest[2..].starts_with('{') => 3,
            '\\' => 1 + rest[1..].chars().next().map_or(0, char::len_utf8),
            _ => c.len_utf8(),
        };
        match c {
            '[' if !in_class => {
                in_class = true;
                // A bracket right at the start of a class stands for itself.
                let start = 1 + rest[1..].starts_with('^') as usize;
                let start = start + rest[start..].starts_with(']') as usize;
                out.push_str(&rest[..start]);
                rest = &rest[start..];
                continue;
            }
            ']' => in_class = false,
            '{' if !(in_class || can_repeat && is_repetition(rest)) => out.push('\\'),
            _ => {}
        }
        can_repeat = !matches!(c, '(' | '|' | '^');
        out.push_str(&rest[..len]);
        rest = &rest[len..];
    }
    out
}

/// Recognises `{3}`, `{3,}` and `{3,5}` at the start of a text.
fn is_repetition(text: &str) -> bool {
    let Some((inner, _)) = text[1..].split_once('}') else { return false };
    let (min, max) = inner.split_once(',').unwrap_or((inner, ""));
    let is_count = |count: &str| count.bytes().all(|b| b.is_ascii_digit());
    !min.is_empty() && is_count(min) && is_count(max)
}

/// Lists the allowlists of the whole file with the rules that they are for. No rule: for all.
fn global_allowlists(table: &Table) -> Vec<(&Table, Vec<String>)> {
    let lists = tables(table.get("allowlist")).into_iter().chain(tables(table.get("allowlists")));
    lists.map(|list| (list, strings(list.get("targetRules")).iter().map(|id| plain_id(id)).collect())).collect()
}

/// Returns the tables of a value: one, or an array of them.
fn tables(value: Option<&Value>) -> Vec<&Table> {
    match value {
        Some(Value::Table(table)) => vec![table],
        Some(Value::Array(values)) => values.iter().filter_map(Value::as_table).collect(),
        // Another type is not of this format.
        _ => Vec::new(),
    }
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let values = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    values.iter().filter_map(Value::as_str).filter(|text| !text.is_empty()).map(String::from).collect()
}

fn lower_strings(value: Option<&Value>) -> Vec<String> {
    strings(value).iter().map(|text| text.to_ascii_lowercase()).collect()
}

fn plain_id(id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    id.chars().take(MAX_ID_LEN).map(|c| if is_plain(c) { c } else { '-' }).collect()
}

fn reason(place: &str, error: &regex_automata::meta::BuildError) -> String {
    let mut text = error.to_string();
    if let Some(syntax) = error.syntax_error() {
        // The last line of a syntax error names it; those before draw the expression.
        text = syntax.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_string();
    } else if let Some(limit) = error.size_limit() {
        text = format!("needs more than {limit} bytes once compiled");
    }
    format!("{place}: {text}")
}

fn first_line(text: &str) -> String {
    text.trim().lines().next().unwrap_or_default().to_string()
}

#[cfg(test)]
mod tests {
    use super::with_literal_braces;

    #[test]
    fn braces_that_begin_no_repetition_are_escaped() {
        let cases = [
            (r"a{3}b{3,}c{3,5}", r"a{3}b{3,}c{3,5}"),
            (r"\$(?:{[^}]+})", r"\$(?:\{[^}]+})"),
            (r"^{{x}}", r"^\{\{x}}"),
            (r"[{a]{2}[^]{]{", r"[{a]{2}[^]{]\{"),
            (r"\{\x{1f}\p{L}{2}", r"\{\x{1f}\p{L}{2}"),
            (r"a{,3}é{b", r"a\{,3}é\{b"),
            ("\\", "\\"),
        ];
        for (pattern, expected) in cases {
            assert_eq!(with_literal_braces(pattern), expected);
        }
    }
}
