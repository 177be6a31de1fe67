//! Whether a page shows what happened: the same words, whatever ids, times, sizes and pids there were.

use regex::Regex;
use std::sync::LazyLock;

/// What differs from one run to the next, and what stands for it. In this order.
const PLACES: &[(&str, &str)] = &[
    (r"proc_[0-9a-f]{12}", "ID"),
    (r"\b(Mon|Tue|Wed|Thu|Fri|Sat|Sun) \d{4}-\d\d-\d\d", "DATE"),
    (r"\b\d{4}-\d\d-\d\d", "DATE"),
    (r"\b\d\d/[A-Z][a-z]{2}/\d{4}", "DATE"),
    (r"\b\d\d:\d\d:\d\d(\.\d+)?", "TIME"),
    (r"\b(\d+(\.\d+)?(ms|s|m|h|d) ?)+(\b|$)", "LONG "),
    (r"\b\d+(\.\d+)?[KMGT](iB)?\b", "SIZE"),
    (r"\bcursor \d+", "cursor N"),
    (r"\b(pid|shim|uid|abi|ABI) \d+\b", "$1 N"),
    (r#""(pid|uid|shim_pid|uptime_ms|seq)":\d+"#, r#""$1":N"#),
    (r"^ *\d+ +[SRDZT] ", "PID STATE "),
    (r"\b\d+(\.\d+)?%", "PERCENT"),
    (r"version \d+\.\d+\.\d+|\b(toold|toolctl) \d+\.\d+\.\d+", "VERSION"),
    (r"\bcgroup[12]?\b", "CGROUP"),
    (r"\s+", " "),
];

static RULES: LazyLock<Vec<(Regex, &str)>> =
    LazyLock::new(|| PLACES.iter().map(|(rule, place)| (Regex::new(rule).unwrap(), *place)).collect());

/// A line without what differs.
fn plain(line: &str) -> String {
    let all = RULES.iter().fold(line.to_owned(), |line, (rule, place)| rule.replace_all(&line, *place).into_owned());
    all.trim_end().to_owned()
}

/// Whether one line of a page says what one line of output does. `…` in the page is any text.
fn line_is(shown: &str, happened: &str) -> bool {
    let parts: Vec<String> = shown.split('…').map(|part| regex::escape(plain(part).trim())).collect();
    let all = format!("^ ?{}$", parts.join(r".*"));
    Regex::new(&all).unwrap().is_match(&plain(happened))
}

/// Whether the lines of a page are these. A line of a page that is only `…` is any number of lines.
pub fn same(shown: &[String], happened: &[&str]) -> bool {
    match (shown.split_first(), happened.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((first, rest)), _) if first.trim() == "…" => (0..=happened.len()).any(|n| same(rest, &happened[n..])),
        (Some(_), None) => false,
        (Some((first, rest)), Some((line, more))) => line_is(first, line) && same(rest, more),
    }
}

#[test]
fn what_differs_from_run_to_run_is_the_same_and_what_does_not_is_not() {
    let is =
        |shown: &[&str], happened: &[&str]| same(&shown.iter().map(|s| s.to_string()).collect::<Vec<_>>(), happened);
    assert!(is(&["proc_5a67e2d7cbe8 (web) running 0s"], &["proc_000000000001 (web) running  1m 12s"]));
    assert!(is(&["exit code 3"], &["exit code 3"]) && !is(&["exit code 3"], &["exit code 4"]));
    assert!(is(&["08:28:35  started  web  pid 24888: ma…"], &["23:59:01 started web pid 7: make all"]));
    assert!(is(&["first", "…", "last"], &["first", "2", "3", "last"]) && is(&["…"], &[]));
    assert!(!is(&["first"], &["first", "more"]) && !is(&["first", "more"], &["first"]) && !is(&[], &["unsaid"]));
}
