//! Cuts the long values of a view, so that every answer has a bound whatever a record holds: records may be of a daemon
//! with larger limits. The fields that are cut are named in `cut`. Pure.

use std::collections::BTreeMap;
use toold_proto::patch::PatchResult;
use toold_proto::pattern::Pattern;
use toold_proto::process::{Failure, Process};

/// The longest values of a view, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct MaxLen {
    /// The command, and each of the lists: arguments, labels, watch patterns.
    pub text: usize,
    /// A key, name or path.
    pub key: usize,
}

/// One process in an answer.
pub const SINGLE: MaxLen = MaxLen { text: 1 << 20, key: 4096 };
/// One of many processes in an answer.
pub const LISTED: MaxLen = MaxLen { text: 4096, key: 4096 };
/// The length of a file of a patch in an answer, without its path.
const FILE_LEN: usize = 256;
/// The end of a value that is cut.
const MARK: char = '…';

/// Cuts the values that are longer than `max`.
pub fn cut(process: &mut Process, max: MaxLen) {
    let mut cut = process.cut.take().unwrap_or_default();
    let mut note = |is_cut: bool, field: &str| {
        if is_cut && !cut.iter().any(|known| known == field) {
            cut.push(field.to_string());
        }
    };
    note(cut_text(&mut process.command, max.text), "command");
    note(cut_list(&mut process.argv, max.text), "argv");
    note(cut_text(&mut process.cwd, max.key), "cwd");
    note(cut_labels(&mut process.labels, max.text), "labels");
    let keys = [
        (&mut process.name, "name"),
        (&mut process.task_id, "task_id"),
        (&mut process.session_key, "session_key"),
        (&mut process.request_id, "request_id"),
    ];
    for (key, field) in keys {
        note(key.as_mut().is_some_and(|key| cut_text(key, max.key)), field);
    }
    let cut_failure = |failure: &mut Failure| {
        let is_cut = failure.message.as_mut().is_some_and(|message| cut_text(message, max.key));
        cut_text(&mut failure.path, max.key) || is_cut
    };
    note(process.failure.as_mut().is_some_and(cut_failure), "failure");
    note(process.watch.as_mut().is_some_and(|watch| cut_patterns(&mut watch.patterns, max.text)), "watch");
    note(process.patch.as_mut().is_some_and(|patch| cut_patch(patch, max.text)), "patch");
    process.cut = (!cut.is_empty()).then_some(cut);
}

/// Cuts the diff of a patch, and its files. Returns true if they were too long.
fn cut_patch(patch: &mut PatchResult, max: usize) -> bool {
    let is_diff_cut = cut_text(&mut patch.diff, max);
    patch.diff_truncated |= is_diff_cut;
    let mut used = 0;
    let fitting = patch.files.iter().take_while(|file| {
        used += file.path.len() + FILE_LEN;
        used <= max
    });
    let count = fitting.count();
    let is_list_cut = count < patch.files.len();
    patch.files.truncate(count);
    is_diff_cut || is_list_cut
}

/// Cuts a text between two characters. Returns true if it was too long.
fn cut_text(text: &mut String, max: usize) -> bool {
    let is_long = text.len() > max;
    if is_long {
        let end = crate::text::last_char_end(text, max);
        text.truncate(end);
        text.push(MARK);
    }
    is_long
}

/// Cuts a list to the texts that fit, the last of them in part. Returns true if it was too long.
pub fn cut_list(list: &mut Vec<String>, max: usize) -> bool {
    let mut used = 0;
    let Some(at) = list.iter().position(|text| {
        used += text.len() + 1;
        used > max
    }) else {
        return false;
    };
    let room = max.saturating_sub(used - list[at].len());
    list.truncate(at + 1);
    cut_text(&mut list[at], room);
    // Texts of few bytes: the last may have fitted by itself.
    if !list[at].ends_with(MARK) {
        list[at].push(MARK);
    }
    true
}

fn cut_labels(labels: &mut BTreeMap<String, String>, max: usize) -> bool {
    let mut used = 0;
    let before = labels.len();
    let mut is_cut = false;
    labels.retain(|key, value| {
        let room = max.saturating_sub(used + key.len());
        used = used.saturating_add(key.len() + value.len() + 1);
        if room == 0 {
            return false;
        }
        is_cut |= cut_text(value, room);
        true
    });
    is_cut || labels.len() < before
}

fn cut_patterns(patterns: &mut Vec<Pattern>, max: usize) -> bool {
    let mut used = 0;
    let before = patterns.len();
    let mut is_cut = false;
    patterns.retain_mut(|pattern| {
        let (Pattern::Text(text) | Pattern::Regex(text)) = pattern;
        let room = max.saturating_sub(used);
        used = used.saturating_add(text.len() + 1);
        if room == 0 {
            return false;
        }
        is_cut |= cut_text(text, room);
        true
    });
    is_cut || patterns.len() < before
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_list_keeps_its_start_and_ends_in_a_mark() {
        let cut = |texts: &[&str], max: usize| {
            let mut list: Vec<String> = texts.iter().map(ToString::to_string).collect();
            cut_list(&mut list, max).then_some(list)
        };
        assert_eq!(cut(&["make", "test"], 10), None);
        assert_eq!(cut(&["make", "test", "all"], 10), Some(vec!["make".into(), "test".into(), "…".into()]));
        assert_eq!(cut(&["a-long-argument"], 7), Some(vec!["a-long…".into()]));
        assert_eq!(cut(&[""; 100], 10).map(|list| list.len()), Some(11));
        let mut text = "网站网站".to_string();
        assert!(cut_text(&mut text, 4) && text == "网…");
    }

    #[test]
    fn labels_that_do_not_fit_are_left_out_and_long_ones_cut() {
        let mut labels: BTreeMap<String, String> =
            [("a", "1".repeat(50)), ("b", "2".into())].map(|(key, value)| (key.to_string(), value)).into();
        assert!(cut_labels(&mut labels, 10));
        assert_eq!(labels.into_iter().collect::<Vec<_>>(), [("a".to_string(), format!("{}…", "1".repeat(9)))]);
    }
}
