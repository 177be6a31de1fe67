//! Titles of commits: `area: imperative`.

use crate::none;
use crate::source::root;
use regex::Regex;
use std::process::Command;

/// The last commit before the rule.
const BEFORE: &str = "ab10968acff9";

/// Verbs that only look like a past tense or a gerund.
const VERBS: [&str; 11] =
    ["embed", "feed", "seed", "shed", "need", "speed", "proceed", "exceed", "bring", "string", "wring"];

#[test]
fn a_commit_is_titled_by_area_and_imperative() {
    if !root().join(".git").exists() {
        eprintln!("skipped: not a git checkout");
        return;
    }
    let range = format!("{BEFORE}..HEAD");
    let log = Command::new("git").args(["log", "--no-merges", "--format=%h %s", &range]).current_dir(root()).output();
    let Ok(log) = log.inspect_err(|e| eprintln!("skipped: git: {e}")) else { return };
    if !log.status.success() {
        eprintln!("skipped: {}", String::from_utf8_lossy(&log.stderr).trim());
        return;
    }
    let log = String::from_utf8_lossy(&log.stdout).into_owned();
    let broken = log.lines().filter(|line| !line.split_once(' ').is_some_and(|(_, title)| is_title(title)));
    none("`area: imperative`, as in `log: follow across a daemon restart`", broken.map(String::from).collect());
}

fn is_title(title: &str) -> bool {
    let title_form = Regex::new(r"^[a-z0-9_./-]+(?:, [a-z0-9_./-]+)*: ([a-z-]+)\b.*[^.]$").expect("a valid pattern");
    let Some(verb) = title_form.captures(title).map(|found| found[1].to_string()) else { return false };
    VERBS.contains(&verb.as_str()) || !(verb.ends_with("ed") || verb.ends_with("ing"))
}

#[test]
fn titles_without_an_area_or_with_a_past_tense_are_refused() {
    let good =
        ["log: follow across a daemon restart", "proc, registry: rename Foo to Checkpoint", "tests/support: embed it"];
    let bad =
        ["follow a log", "Log: follow", "log: Follow", "log: followed it", "log: following", "log: follow it.", "wip"];
    assert!(good.iter().all(|title| is_title(title)), "{good:?}");
    assert!(!bad.iter().any(|title| is_title(title)), "{bad:?}");
}
