//! Compares a page with what happened: the same text, apart from ids, times, sizes and pids.

use regex::Regex;
use std::ops::Range;
use std::sync::LazyLock;

/// Values that differ from run to run, and their placeholders. Applied in this order.
const PLACEHOLDERS: &[(&str, &str)] = &[
    (r"(proc|appr|grant)_[0-9a-f]{12}", "ID"),
    (r"\b[0-9a-f]{8}-\d+\b", "CALL"),
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
    (GROUP, "CGROUP"),
    (BLANKS, " "),
];
const BLANKS: &str = r"\s+";
const GROUP: &str = r"\bcgroup[12]?\b";
static CGROUP: LazyLock<Regex> = LazyLock::new(|| Regex::new(GROUP).unwrap());

static RULES: LazyLock<Vec<(Regex, &str)>> =
    LazyLock::new(|| PLACEHOLDERS.iter().map(|(rule, place)| (Regex::new(rule).unwrap(), *place)).collect());

/// Replaces the values that differ from run to run by placeholders.
fn plain(line: &str) -> String {
    let all = RULES.iter().fold(line.to_owned(), |line, (rule, place)| rule.replace_all(&line, *place).into_owned());
    all.trim_end().to_owned()
}

/// Returns true if a line of a page matches a line of output. `…` in the page matches any text.
fn line_is(shown: &str, happened: &str) -> bool {
    let parts: Vec<String> = shown.split('…').map(|part| regex::escape(plain(part).trim())).collect();
    let all = format!("^ ?{}$", parts.join(r".*"));
    Regex::new(&all).unwrap().is_match(&plain(happened))
}

/// Returns true if the lines of a page match these. A line of a page that is only `…` matches any number of lines.
pub fn same(shown: &[String], happened: &[&str]) -> bool {
    pairs(shown, happened).is_some()
}

/// Pairs the lines of a page with those that happened, by number. None if they do not match.
pub fn pairs(shown: &[String], happened: &[&str]) -> Option<Vec<(usize, usize)>> {
    fn from(shown: &[String], happened: &[&str], at: (usize, usize)) -> Option<Vec<(usize, usize)>> {
        match (shown.get(at.0), happened.get(at.1)) {
            (None, None) => Some(Vec::new()),
            (None, Some(_)) => None,
            (Some(line), _) if line.trim() == "…" => {
                (at.1..=happened.len()).find_map(|next| from(shown, happened, (at.0 + 1, next)))
            }
            (Some(_), None) => None,
            (Some(line), Some(seen)) => {
                let mut rest = line_is(line, seen).then(|| from(shown, happened, (at.0 + 1, at.1 + 1))).flatten()?;
                rest.insert(0, at);
                Some(rest)
            }
        }
    }
    from(shown, happened, (0, 0))
}

/// Any value that differs from run to run.
static VALUE: LazyLock<Regex> = LazyLock::new(|| {
    let rules: Vec<&str> = PLACEHOLDERS.iter().map(|(rule, _)| *rule).filter(|rule| *rule != BLANKS).collect();
    Regex::new(&rules.join("|")).unwrap()
});

/// The values of one line of a page that differ, with their values of this run. None if the pairing is ambiguous.
pub fn values(shown: &str, happened: &str) -> Option<Vec<(Range<usize>, String)>> {
    let ranges: Vec<Range<usize>> = VALUE.find_iter(shown).map(|value| value.range()).collect();
    let fixed = |text: &str| {
        let parts =
            text.split('…').map(|part| part.split_whitespace().map(regex::escape).collect::<Vec<_>>().join(r"\s+"));
        format!(r"\s*{}\s*", parts.collect::<Vec<_>>().join(r"\s*.*?\s*"))
    };
    let (mut rule, mut end) = (String::from("^"), 0);
    for (n, value) in ranges.iter().enumerate() {
        rule += &format!("{}(?P<v{n}>{})", fixed(&shown[end..value.start]), VALUE.as_str());
        end = value.end;
    }
    rule += &format!("{}$", fixed(&shown[end..]));
    let found = Regex::new(&rule).unwrap().captures(happened)?;
    Some(ranges.into_iter().enumerate().map(|(n, range)| (range, found[format!("v{n}").as_str()].to_owned())).collect())
}

/// A line of a page with the values of this run. `…` stays.
pub fn updated_line(shown: &str, happened: &str) -> String {
    if !shown.contains('…') {
        // This is a property of the machine, not of the run.
        return CGROUP.find(shown).map_or(happened.into(), |group| CGROUP.replace_all(happened, group.as_str())).into();
    }
    let mut line = shown.to_owned();
    for (place, now) in values(shown, happened).unwrap_or_default().into_iter().rev() {
        line.replace_range(place, &now);
    }
    line
}

/// The ids in a line of a page, with those of this run.
pub fn ids(shown: &str, happened: &str) -> Vec<(String, String)> {
    let all = values(shown, happened).unwrap_or_default().into_iter();
    all.map(|(place, now)| (shown[place].to_owned(), now)).filter(|(then, _)| then.starts_with("proc_")).collect()
}

#[test]
fn values_that_differ_from_run_to_run_match_and_other_differences_do_not() {
    let is =
        |shown: &[&str], happened: &[&str]| same(&shown.iter().map(|s| s.to_string()).collect::<Vec<_>>(), happened);
    assert!(is(&["proc_5a67e2d7cbe8 (web) running 0s"], &["proc_000000000001 (web) running  1m 12s"]));
    assert!(is(&["exit code 3"], &["exit code 3"]) && !is(&["exit code 3"], &["exit code 4"]));
    assert!(is(&["08:28:35  started  web  pid 24888: ma…"], &["23:59:01 started web pid 7: make all"]));
    assert!(is(&["first", "…", "last"], &["first", "2", "3", "last"]) && is(&["…"], &[]));
    assert!(!is(&["first"], &["first", "more"]) && !is(&["first", "more"], &["first"]) && !is(&[], &["unsaid"]));
}

#[test]
fn an_updated_line_has_the_values_of_this_run_and_keeps_its_ellipses() {
    let shown = "08:28:35  started  web  pid 24888: ma…";
    assert_eq!(updated_line(shown, "23:59:01  started  web  pid 7: make all"), "23:59:01  started  web  pid 7: ma…");
    assert_eq!(updated_line("proc_5a67e2d7cbe8 runs 0s", "proc_000000000001 runs 12s"), "proc_000000000001 runs 12s");
    assert_eq!(
        updated_line("512M, by cgroup2", "64M, by cgroup1"),
        "64M, by cgroup2",
        "a property of the machine stays"
    );
    let two = ids("proc_5a67e2d7cbe8 … (proc_5a67e2d7cbe9)", "proc_000000000001 and more (proc_000000000002)");
    let pair = |a: &str, b: &str| (format!("proc_{a}"), format!("proc_{b}"));
    assert_eq!(two, [pair("5a67e2d7cbe8", "000000000001"), pair("5a67e2d7cbe9", "000000000002")]);
    assert_eq!(pairs(&["a".into(), "…".into(), "c".into()], &["a", "b", "b", "c"]), Some(vec![(0, 0), (2, 3)]));
}
