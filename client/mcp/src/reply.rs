//! The reply of a tool: text for the agent, and what it states, so that the trailer does not repeat it.

use crate::view::Process;
use serde_json::{Value, json};

/// The most characters of output in a reply.
pub const MAX_OUTPUT_CHARS: usize = 8000;

/// The facts in a reply that events would report again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Stated {
    /// Processes whose end is stated.
    pub exits: Vec<String>,
    /// Processes whose question is stated, with the end of the output at that time.
    pub questions: Vec<(String, u64)>,
    pub approvals: Vec<String>,
}

impl Stated {
    pub fn add(&mut self, process: &Process) {
        if process.has_ended() {
            self.exits.push(process.id.clone());
        } else if process.needs_input.is_some() {
            self.questions.push((process.id.clone(), process.cursor));
        }
        self.approvals.extend(process.pending_approval().map(str::to_owned));
    }
}

/// The result of a tool.
#[derive(Debug, Clone, Default)]
pub struct Reply {
    pub lines: Vec<String>,
    pub is_error: bool,
    pub stated: Stated,
    /// The last process that it shows.
    pub process: Option<String>,
    /// The process that goes on as a task, if the client takes one.
    pub task: Option<Process>,
    /// A question for the user of the client, in place of a result.
    pub input_required: Option<Value>,
}

impl Reply {
    pub fn line(text: impl Into<String>) -> Reply {
        Reply { lines: vec![text.into()], ..Reply::default() }
    }

    pub fn error(text: impl Into<String>) -> Reply {
        Reply { is_error: true, ..Reply::line(text) }
    }

    pub fn push(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// Adds output as it is, without its last line end.
    pub fn push_output(&mut self, output: &str) {
        let output = output.trim_end_matches('\n');
        if !output.is_empty() {
            self.lines.push(output.to_owned());
        }
    }

    /// Returns the result of the call, text only: agents that are given structured content show nothing else.
    pub fn call_result(&self, trailer: Option<&str>) -> Value {
        let mut text = self.lines.join("\n");
        if let Some(trailer) = trailer {
            text.push_str("\nevents: ");
            text.push_str(trailer);
        }
        json!({"content": [{"type": "text", "text": text}], "isError": self.is_error})
    }
}

/// Keeps the end of the text, from the beginning of a line if it has one. Returns true if something was cut.
pub fn keep_end(text: &str, max_chars: usize) -> (&str, bool) {
    let count = text.chars().count();
    if count <= max_chars {
        return (text, false);
    }
    let from = text.char_indices().nth(count - max_chars).map_or(0, |(at, _)| at);
    let kept = &text[from..];
    match kept.find('\n') {
        Some(at) if at + 1 < kept.len() => (&kept[at + 1..], true),
        Some(_) | None => (kept, true),
    }
}

/// Keeps the beginning of the text. Returns true if something was cut.
pub fn keep_begin(text: &str, max_chars: usize) -> (&str, bool) {
    match text.char_indices().nth(max_chars) {
        None => (text, false),
        Some((at, _)) => (&text[..at], true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_text_is_kept_by_lines() {
        assert_eq!(keep_end("a\nb\n", 10), ("a\nb\n", false));
        assert_eq!(keep_end("aaaa\nbbb\nc\n", 6), ("c\n", true));
        assert_eq!(keep_end("äöüäöü", 3), ("äöü", true));
        assert_eq!(keep_begin("äöü", 2), ("äö", true));
    }
}
