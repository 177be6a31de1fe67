//! Rule files in gitleaks' format: what is read, what is left out and why, and what the rules then replace.

use crate::samples::{ALPHANUMERIC, noise};
use toold_redact::{KnownValues, RedactConfig, Redactor, RuleFile};

const FILE: &str = r#"
title = "example"
[extend]
useDefault = true

[[allowlists]]
description = "for every rule"
regexes = ['''^acme-allowed''']
stopwords = ["sample"]

[[rules]]
id = "acme-key"
description = "a key of a vendor"
regex = '''(?i)acme[_-]?key\s*=\s*"?(acme-[a-z0-9-]{20,40})"?'''
keywords = ["ACME"]
tags = ["key"]
[[rules.allowlists]]
regexTarget = "line"
regexes = ['''# fake$''', '''(?:{[^}]+})''', '''[z-a]''']

[[rules]]
id = "random id"
regex = '''rid-([a-zA-Z0-9]{16})(-x)?'''
secretGroup = 1
entropy = 3
keywords = ["rid-"]
[rules.allowlist]
stopwords = ["ABCD"]

[[rules]]
id = "bad"
regex = '''(unclosed'''

[[rules]]
id = "large"
regex = '''(?:[a-z0-9]{1000}){1000}'''

[[rules]]
id = "group"
regex = '''abc'''
secretGroup = 1

[[rules]]
id = "only-a-path"
path = '''\.pem$'''

[[rules]]
id = "generic-api-key"
regex = '''key=(.+)'''

[[rules]]
regex = '''q?'''
"#;

fn redactor() -> Redactor {
    let file = RuleFile::parse(FILE).expect("TOML");
    Redactor::new(RedactConfig { extra_rules: vec![file], ..RedactConfig::default() })
}

fn redact(text: &str) -> String {
    redactor().redact(text, &KnownValues::new()).text
}

#[test]
fn rules_that_cannot_be_used_are_reported_and_the_others_are_kept() {
    let file = RuleFile::parse(FILE).expect("TOML");
    let problems: Vec<String> = file.problems.iter().map(|p| format!("{}: {}", p.rule, p.reason)).collect();
    let expected = [
        "acme-key: an expression of its allowlist was left out: invalid character class range, the start must be <= the end",
        "bad: regex: unclosed group",
        "large: regex: needs more than 4194304 bytes once compiled",
        "group: secretGroup is the number of no group of its regex",
        "only-a-path: left out, because it has no regex: paths of files are not searched",
        "generic-api-key: left out, because it matches ordinary code",
        "rule 8: regex matches the empty text",
    ];
    assert_eq!((file.len(), problems), (2, expected.map(String::from).to_vec()));
    assert!(RuleFile::parse("[[rules").is_err());
    assert!(RuleFile::parse("").is_ok_and(|file| file.is_empty() && file.problems.is_empty()));
}

#[test]
fn a_rule_replaces_its_group_and_respects_its_lists() {
    let key = format!("acme-{}", noise("abcdefghijklmnop0123456789", 24, 1));
    assert_eq!(redact(&format!("ACME_KEY=\"{key}\"")), "ACME_KEY=\"[redacted:acme-key]\"");
    for allowed in [format!("ACME_KEY=\"{key}\" # fake"), "acme_key=acme-allowed-0123456789abc".into()] {
        assert_eq!(redact(&allowed), allowed);
    }
    let stopped = format!("acme_key=acme-sample-{}", noise("abcdef0123", 20, 1));
    assert_eq!(redact(&stopped), stopped);
}

#[test]
fn entropy_and_stopwords_decide() {
    let id = noise(ALPHANUMERIC, 16, 3);
    assert_eq!(redact(&format!("rid-{id}-x")), "rid-[redacted:random-id]-x");
    for kept in ["rid-aaaaaaaabbbbbbbb", "rid-abcdEFGHijkl0123"] {
        assert_eq!(redact(kept), kept);
    }
}

#[test]
fn a_match_that_begins_inside_of_a_character_hides_all_of_it() {
    let file = RuleFile::parse("[[rules]]\nid = 'bytes'\nregex = '.key.'\n").expect("TOML");
    let redactor = Redactor::new(RedactConfig { extra_rules: vec![file], ..RedactConfig::default() });
    assert_eq!(redactor.redact("aékeyéb", &KnownValues::new()).text, "a[redacted:bytes]b");
}
