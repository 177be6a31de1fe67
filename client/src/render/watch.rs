//! Watch and completion notification of a process.

use super::text::escape_control;
use super::time::exact;
use toold_proto::pattern::Pattern;
use toold_proto::process::{Process, Watch, WatchState};

/// Returns the text for a table: `watching 3`, `disabled, notify`, `-`.
pub fn summary(process: &Process) -> String {
    let watch = process.watch.as_ref().map(|watch| match watch.state {
        WatchState::Watching | WatchState::Ended => format!("{} {}", state_name(watch.state), watch.hits),
        WatchState::Cooldown | WatchState::Silent | WatchState::Disabled => state_name(watch.state).to_owned(),
    });
    let notify = process.notify.then(|| "notify".to_owned());
    let all: Vec<String> = watch.into_iter().chain(notify).collect();
    if all.is_empty() { "-".into() } else { all.join(", ") }
}

/// Returns true if the process has a watch or notifies of its completion.
pub fn has_details(process: &Process) -> bool {
    process.watch.is_some() || process.notify
}

/// Returns state, counts, the note of the daemon and each pattern.
pub fn facts(watch: &Watch) -> Vec<(&'static str, String)> {
    let mut state = format!("{}, {} hits, {} suppressed", state_name(watch.state), watch.hits, watch.suppressed);
    if watch.strikes > 0 {
        state.push_str(&format!(", {} strikes", watch.strikes));
    }
    if watch.quiet_ms > 0 {
        state.push_str(&format!(", quiet for {} more", exact(watch.quiet_ms)));
    }
    let mut facts = vec![("watch", state)];
    facts.extend(watch.note.clone().map(|note| ("", note)));
    facts.extend(
        watch.patterns.iter().enumerate().map(|(n, pattern)| ("", format!("{n}: {}", format_pattern(pattern)))),
    );
    facts
}

fn format_pattern(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Text(text) => format!("\"{}\"", escape_control(text)),
        Pattern::Regex(regex) => format!("/{}/", escape_control(regex)),
    }
}

fn state_name(state: WatchState) -> &'static str {
    match state {
        WatchState::Watching => "watching",
        WatchState::Cooldown => "cooldown",
        WatchState::Silent => "silent",
        WatchState::Disabled => "disabled",
        WatchState::Ended => "ended",
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::testing::process;
    use serde_json::{Value, json};

    /// Returns a watch document with `changes`.
    pub fn watch(changes: Value) -> Value {
        let mut document = json!({"patterns": ["err\t", {"regex": "^x"}], "hits": 3, "suppressed": 0, "disabled": false,
            "state": "watching", "strikes": 0, "quiet_ms": 0, "note": null});
        document.as_object_mut().expect("an object").extend(changes.as_object().expect("an object").clone());
        document
    }

    #[test]
    fn a_table_shows_watch_state_and_notification() {
        let summary_of = |changes| summary(&serde_json::from_value(process(changes)).expect("a whole process"));
        assert_eq!(summary_of(json!({})), "-");
        assert_eq!(summary_of(json!({"notify": true})), "notify");
        assert_eq!(summary_of(json!({"watch": watch(json!({}))})), "watching 3");
        assert_eq!(
            summary_of(json!({"watch": watch(json!({"state": "disabled"})), "notify": true})),
            "disabled, notify"
        );
    }

    #[test]
    fn a_quiet_watch_shows_its_note() {
        let changes = json!({"state": "cooldown", "suppressed": 2, "strikes": 1, "quiet_ms": 9000, "note": "matched a moment ago"});
        let shown = facts(&serde_json::from_value(watch(changes)).expect("a whole watch"));
        let expected = [
            ("watch", "cooldown, 3 hits, 2 suppressed, 1 strikes, quiet for 9s more"),
            ("", "matched a moment ago"),
            ("", "0: \"err\\t\""),
            ("", "1: /^x/"),
        ];
        assert_eq!(shown, expected.map(|(key, value)| (key, value.to_owned())));
    }
}
