//! The changes of a stage, as `stage` prints them.

use super::text::{count, escape_control, size};
use super::{Style, Tint};
use toold_proto::event::StageReady;
use toold_proto::stage::{StageCommitResult, StageDiffResult, StageState, StagedFile, StagedOp};

/// Renders a diff, with colours at a terminal, then one line per change and the remarks.
pub fn diff(result: &StageDiffResult, style: Style) -> String {
    let mut text = String::new();
    for line in result.diff.lines() {
        let tint = match line.as_bytes() {
            [b'+', b'+', b'+', ..] | [b'-', b'-', b'-', ..] | [b'd', b'i', b'f', b'f', ..] => Tint::Heading,
            [b'@', b'@', ..] => Tint::Busy,
            [b'+', ..] => Tint::Good,
            [b'-', ..] => Tint::Bad,
            _ => Tint::None,
        };
        // A tab is a part of the text; anything else could move the cursor.
        let shown: Vec<String> = line.split('\t').map(escape_control).collect();
        text += &(tint.paint(&shown.join("\t"), style) + "\n");
    }
    if !text.is_empty() {
        text.push('\n');
    }
    result.files.iter().for_each(|file| text += &change(file, style));
    if result.truncated {
        text += "not everything is shown; a commit has all of it\n";
    }
    for path in &result.skipped {
        text += &format!("not carried over, for it is a pipe, a socket or a device: {}\n", escape_control(path));
    }
    let state = match result.state {
        StageState::Running => "so far, the process runs",
        StageState::Ready => "not committed",
        StageState::Committed => "committed",
        StageState::Discarded => "discarded",
    };
    match result.state {
        StageState::Running | StageState::Ready => {
            text += &format!("{}  {}, {state}\n", result.id, count(result.total, "change"));
        }
        StageState::Committed | StageState::Discarded => text += &format!("{}  {state}\n", result.id),
    }
    text
}

/// Formats a stage that waits: `3 changes, 8.0K, in /home/me/project`.
pub fn ready(event: &StageReady) -> String {
    let changes = match (event.files, event.bytes) {
        (Some(files), Some(bytes)) => format!("{}, {}", count(files, "change"), size(bytes)),
        _ => event.message.clone().unwrap_or_default(),
    };
    format!("{changes}, in {}", event.roots.join(", "))
}

/// Renders one line per change that was made, and the number of all.
pub fn committed(result: &StageCommitResult, style: Style) -> String {
    let mut text: String = result.files.iter().map(|file| change(file, style)).collect();
    let left = match result.left {
        0 => String::new(),
        left => format!(", {left} left"),
    };
    text += &format!("{}  {} committed{left}\n", result.id, count(result.total, "change"));
    text
}

/// Renders one change: `M /home/me/a`, with the letters of git.
fn change(file: &StagedFile, style: Style) -> String {
    let (mark, tint) = match file.op {
        StagedOp::Add => ("A", Tint::Good),
        StagedOp::Update => ("M", Tint::None),
        StagedOp::Metadata => ("m", Tint::None),
        StagedOp::Delete => ("D", Tint::Bad),
    };
    let modes = match (file.op, &file.before_mode, &file.mode) {
        (StagedOp::Metadata, Some(before), Some(after)) if before != after => format!("  {before} -> {after}"),
        _ => String::new(),
    };
    let conflict = if file.conflict { "  changed below meanwhile" } else { "" };
    let line = format!("{mark} {}{modes}", escape_control(&file.path));
    format!("{}{}\n", tint.paint(&line, style), Tint::Bad.paint(conflict, style))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_diff_has_colours_at_a_terminal_and_no_escape_sequences_of_files() {
        let result: StageDiffResult = serde_json::from_value(json!({
            "id": "proc_0123456789ab", "state": "ready", "roots": ["/w"], "digest": "d", "total": 2, "truncated": true, "skipped": ["/w/p"],
            "files": [
                {"path": "/w/a", "op": "update", "kind": "file", "conflict": true},
                {"path": "/w/b", "op": "metadata", "kind": "file", "before_mode": "644", "mode": "755"},
            ],
            "diff": "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+\u{1b}[31m\n",
        }))
        .expect("a result");
        let plain = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-x\n+\\x1b[31m\n\nM /w/a  changed below meanwhile\nm /w/b  644 -> 755\n\
            not everything is shown; a commit has all of it\n\
            not carried over, for it is a pipe, a socket or a device: /w/p\nproc_0123456789ab  2 changes, not committed\n";
        let shown = diff(&result, Style::plain());
        assert!(!shown.contains('\u{1b}'), "{shown}");
        assert_eq!(shown.lines().count(), plain.lines().count(), "{shown}");
        assert!(shown.contains("M /w/a  changed below meanwhile\nm /w/b  644 -> 755\n"), "{shown}");
        let coloured = diff(&result, Style { width: Some(80), colour: true });
        assert!(coloured.contains("\u{1b}[31m-x\u{1b}[0m\n"), "{coloured}");
    }
}
