//! Identifiers: a tool's name as Python and JavaScript can write it, the same in both.

use std::collections::BTreeMap;

/// Keywords of Python and JavaScript.
const KEYWORDS: &str = "False None True and as assert async await break class continue def del elif else except finally for \
    from global if import in is lambda nonlocal not or pass raise return try while with yield \
    arguments case catch const debugger default delete do enum eval export extends false function implements instanceof \
    interface let new null package private protected public static super switch this throw true typeof undefined var void";

/// Names that a stub has of its own, and builtins that its code uses or that a script would miss.
const RESERVED: &str = "tools result artifact note gather retry json_parse shell_quote args aio sys later annotations \
    abs all any bin bool bytes callable chr classmethod compile dict dir divmod enumerate exec exit filter float format \
    frozenset getattr globals hasattr hash help hex id input int isinstance issubclass iter len list locals map max min \
    next object oct open ord pow print property quit range repr reversed round set setattr slice sorted staticmethod str \
    sum super tuple type vars zip";

fn lists(list: &str, name: &str) -> bool {
    list.split_whitespace().any(|entry| entry == name)
}

/// Returns a part of a name with every character that no identifier has replaced by `_`.
fn plain(part: &str) -> String {
    let mut found: String = part.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
    if found.is_empty() || found.starts_with(|c: char| c.is_ascii_digit()) {
        found.insert(0, '_');
    }
    found
}

/// Returns the identifier of an attribute or a parameter.
pub(crate) fn member(part: &str) -> String {
    let found = plain(part);
    if lists(KEYWORDS, &found) || found == "locals" || found == "later" { found + "_" } else { found }
}

/// Splits a tool's name into its provider and the rest. A native tool has no provider.
pub(crate) fn split(name: &str) -> (Option<&str>, &str) {
    match name.split_once('.') {
        Some((provider, rest)) => (Some(provider), rest),
        None => (None, name),
    }
}

/// Returns the identifier of a name that a script can import.
pub(crate) fn importable(part: &str) -> String {
    let found = member(part);
    if lists(RESERVED, &found) { found + "_" } else { found }
}

/// Returns a tool's name as a script writes it after `tools.`: `linear.create-issue` is `linear.create_issue`, and a
/// keyword, a builtin or a helper of the stub gets a `_`.
pub fn identifier(name: &str) -> String {
    match split(name) {
        (Some(provider), rest) => format!("{}.{}", importable(provider), member(rest)),
        (None, rest) => importable(rest),
    }
}

/// Two names that are the same for a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Collision {
    pub identifier: String,
    pub first: String,
    pub second: String,
}

/// Finds names that give one identifier, or one that is also the identifier of a provider.
pub fn collisions<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<Collision> {
    let mut tools: BTreeMap<String, &str> = BTreeMap::new();
    let mut providers: BTreeMap<String, &str> = BTreeMap::new();
    let mut found = Vec::new();
    for name in names {
        let own = identifier(name);
        let clash = |first: &str| Collision { identifier: own.clone(), first: first.into(), second: name.into() };
        let provider = split(name).0;
        let same_provider = provider.map(importable);
        if let Some(first) = tools.get(&own).filter(|first| **first != name) {
            found.push(clash(first));
        } else if let Some(first) = same_provider.as_ref().and_then(|provider| tools.get(provider)) {
            found.push(clash(first));
        } else if let Some(first) = providers.get(&own) {
            found.push(clash(first));
        } else if let Some(first) = same_provider.as_ref().and_then(|own| providers.get(own))
            && split(first).0 != provider
        {
            found.push(clash(first));
        }
        if let Some(provider) = same_provider {
            providers.entry(provider).or_insert(name);
        }
        tools.entry(own).or_insert(name);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_an_identifier_of_both_languages() {
        let names =
            ["terminal", "linear.create-issue", "gh.get/pr.v2", "x.import", "x.delete", "list", "note.3d", "x.list"];
        let found: Vec<String> = names.iter().map(|name| identifier(name)).collect();
        assert_eq!(
            found,
            [
                "terminal",
                "linear.create_issue",
                "gh.get_pr_v2",
                "x.import_",
                "x.delete_",
                "list_",
                "note_._3d",
                "x.list"
            ]
        );
    }

    #[test]
    fn names_with_one_identifier_are_reported_with_both() {
        let found = collisions(["a.b-c", "a.b_c", "linear.x", "linear", "p-q.x", "p_q.y", "fine", "a.other"]);
        let found: Vec<_> =
            found.iter().map(|c| (c.identifier.as_str(), c.first.as_str(), c.second.as_str())).collect();
        assert_eq!(found, [("a.b_c", "a.b-c", "a.b_c"), ("linear", "linear.x", "linear"), ("p_q.y", "p-q.x", "p_q.y")]);
    }

    #[test]
    fn the_same_name_twice_is_not_a_collision() {
        assert_eq!(collisions(["terminal", "terminal"]), []);
    }
}
