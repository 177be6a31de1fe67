//! State of the daemon for `toolctl info`.

use super::table::{COLUMN_GAP, fact, title};
use super::text::{columns, pad, size};
use super::time::{duration, exact};
use super::{Style, Tint};
use serde_json::Value;
use std::collections::BTreeMap;
use toold_proto::results::{Breaker, BreakerState, DaemonInfoResult, Journal};

/// Width of the longest title.
const TITLE_WIDTH: usize = "connections".len();
/// Columns below which a value is put below its title.
const MIN_VALUE_WIDTH: usize = 24;

pub fn info(result: &DaemonInfoResult, style: Style) -> String {
    let counts = &result.counts;
    let mut known = vec![
        ("version", result.version.clone()),
        ("pid", result.pid.to_string()),
        ("uptime", duration(result.uptime_ms)),
        (
            "processes",
            format!(
                "{} running, {} starting, {} exited, {} lost",
                counts.running, counts.starting, counts.exited, counts.lost
            ),
        ),
        ("connections", counts.connections.to_string()),
        (
            "memory",
            format!("{} of the daemon, {} of processes", size(result.daemon.rss_bytes), size(result.usage.rss_bytes)),
        ),
        ("socket", result.paths.socket.clone()),
        ("state", result.paths.state_dir.clone()),
        ("config", result.paths.config.clone().unwrap_or_else(|| "-".into())),
    ];
    known.extend(journal(&result.events));
    known.push(("watch", breaker(&result.watch)));
    let line = |(key, value): (&str, String)| fact(&title(key, TITLE_WIDTH), "", &value, style);
    let mut out: String = known.into_iter().map(line).collect();
    out.push_str(&pairs("features", &result.features, style));
    out.push_str(&pairs("limits", &result.limits, style));
    out.extend(result.damaged.iter().map(|what| line(("damaged", what.clone()))));
    out
}

/// Returns the range of kept events and the position of each consumer.
fn journal(journal: &Journal) -> Vec<(&'static str, String)> {
    let range = match journal.last {
        0 => "none yet".into(),
        last => format!("{} to {last} are kept, {}", journal.oldest, size(journal.bytes)),
    };
    let consumer = |consumer: &toold_proto::results::Consumer| {
        let behind = journal.last.saturating_sub(consumer.position);
        format!("{} at {}, {behind} behind, used {}", consumer.name, consumer.position, consumer.used_at)
    };
    let titles = std::iter::once("consumers").chain(std::iter::repeat(""));
    let consumers = titles.zip(journal.consumers.iter().map(consumer));
    std::iter::once(("events", range)).chain(consumers).collect()
}

/// Describes the state of the global watch breaker.
fn breaker(breaker: &Breaker) -> String {
    match breaker.state {
        BreakerState::Passing => format!("passing, {} recent matches", breaker.recent),
        BreakerState::Silent => {
            let left = breaker.release_ms.map(|ms| format!(" for {} more", exact(ms))).unwrap_or_default();
            format!("silent{left}: too many matches over all processes, {} dropped", breaker.dropped)
        }
    }
}

/// Renders one pair per line, with the title at the first. If that leaves too few columns for the values, the title is above them.
fn pairs(key: &str, map: &BTreeMap<String, Value>, style: Style) -> String {
    let all: Vec<(&String, String)> = map.iter().map(|(key, value)| (key, format_value(key, value))).collect();
    let widest = all.iter().map(|(key, _)| columns(key)).max().unwrap_or(0);
    let longest = all.iter().map(|(_, value)| columns(value)).max().unwrap_or(0);
    let wanted = TITLE_WIDTH + COLUMN_GAP.len() + widest + COLUMN_GAP.len() + longest.min(MIN_VALUE_WIDTH);
    let above = !all.is_empty() && style.width.is_some_and(|width| width < wanted);
    let heading = if above { format!("{}\n", Tint::Faint.paint(&format!("{key}:"), style)) } else { String::new() };
    let titles = std::iter::once(title(key, TITLE_WIDTH)).chain(std::iter::repeat(title("", TITLE_WIDTH)));
    let titles = titles.map(|title| if above { COLUMN_GAP.to_owned() } else { title });
    let named = |name: &str| format!("{}{COLUMN_GAP}", pad(name, widest));
    heading
        + &titles.zip(&all).map(|(title, (name, value))| fact(&title, &named(name), value, style)).collect::<String>()
}

/// Formats times and sizes as the command line takes them. The key is that of the config file.
fn format_value(key: &str, value: &Value) -> String {
    match value {
        Value::Bool(true) => "yes".into(),
        Value::Bool(false) => "no".into(),
        Value::String(text) => text.clone(),
        Value::Number(number) => match number.as_u64() {
            Some(ms) if key.ends_with("_ms") => exact(ms),
            Some(n) if key.ends_with("_bytes") => size(n),
            Some(_) | None => number.to_string(),
        },
        Value::Array(all) if all.is_empty() => "none".into(),
        Value::Array(all) => all.iter().map(|one| format_value(key, one)).collect::<Vec<_>>().join(", "),
        Value::Object(all) => {
            all.iter().map(|(key, one)| format!("{key} {}", format_value(key, one))).collect::<Vec<_>>().join(", ")
        }
        Value::Null => "none".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn info_shows_every_fact() {
        let mut document = crate::testing::info(3, 40);
        let shown = info(&serde_json::from_value(document.clone()).expect("a whole result"), Style::plain());
        assert!(
            shown.contains("events:      3 to 40 are kept, 2.0K\nwatch:       passing, 0 recent matches\n"),
            "{shown}"
        );
        document["events"]["consumers"] = json!([{"name": "me", "position": 38, "used_at": "2026"}, {"name": "you", "position": 40, "used_at": "2027"}]);
        document["watch"] = json!({"state": "silent", "recent": 16, "dropped": 5, "release_ms": 12000});
        let shown = info(&serde_json::from_value(document).expect("a whole result"), Style::plain());
        assert!(shown.contains("processes:   2 running, 0 starting, 3 exited, 0 lost\n"), "{shown}");
        assert!(shown.contains("memory:      13M of the daemon, 1.0M of processes\n"), "{shown}");
        let expected = "consumers:   me at 38, 2 behind, used 2026\n             you at 40, 0 behind, used 2027\n\
                    watch:       silent for 12s more: too many matches over all processes, 5 dropped\n";
        assert!(shown.contains(expected), "{shown}");
        let end = "features:    pidfd  yes\n\
                   limits:      max_running  4096\n             max_wait_ms  5ms\n\
                   damaged:     procs/x\n";
        assert!(shown.ends_with(end), "{shown}");
    }

    #[test]
    fn a_narrow_terminal_shows_every_value() {
        // The broken code cut them: at 40 columns it showed only the names of the limits.
        let mut document = crate::testing::info(3, 40);
        document["events"]["bytes"] = json!(810);
        document["paths"]["socket"] = json!("/run/user/1000/toold/toold.sock");
        document["features"]["cgroup"] = json!({"memory": "cgroup1", "cpu": "cgroup1", "pids": "cgroup1"});
        document["limits"]["watch.global_cooldown_ms"] = json!(30000);
        let result = serde_json::from_value(document).expect("a whole result");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let whole = info(&result, Style::plain());
        for width in [30, 40, 60, 80, 200] {
            let shown = info(&result, Style { width: Some(width), colour: false });
            assert!(shown.lines().all(|line| columns(line) <= width), "{width}: {shown}");
            assert!(width < 40 || words(&shown) == words(&whole), "{width}: {shown}");
        }
        let shown = info(&result, Style { width: Some(40), colour: false });
        for expected in [
            "\nsocket:\n    /run/user/1000/toold/toold.sock\n",
            "\nevents:      3 to 40 are kept, 810 bytes\n",
            "\nlimits:\n  max_running               4096\n",
            "\n  watch.global_cooldown_ms  30s\n",
        ] {
            assert!(shown.contains(expected), "{shown}");
        }
    }

    #[test]
    fn values_are_formatted_by_the_unit_in_their_key() {
        for (key, value, expected) in [
            ("retention.max_age_ms", json!(86_400_000), "1d"),
            ("log_max_bytes", json!(268_435_456), "256M"),
            ("events.lag_bytes", json!(512), "512 bytes"),
            ("max_running", json!(4096), "4096"),
            ("env.pass", json!([]), "none"),
            ("env.pass", json!(["A", "B"]), "A, B"),
            ("shim", json!("zygote"), "zygote"),
            ("zygote", json!(false), "no"),
            ("cgroup", json!({"cpu": "cgroup2", "memory": null}), "cpu cgroup2, memory none"),
        ] {
            assert_eq!(format_value(key, &value), expected, "{key}");
        }
    }
}
