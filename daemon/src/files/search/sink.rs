//! Takes the lines of one file from the searcher.

use super::found::FileFound;
use grep_searcher::{Searcher, Sink, SinkContext, SinkMatch};
use std::collections::VecDeque;
use std::io;
use toold_proto::files::SearchMode;

/// Characters of a line in a result.
const MAX_TEXT_CHARS: usize = 500;

pub struct FileSink<'a, 'b> {
    found: &'a mut FileFound<'b>,
    context: usize,
    /// The last lines, for the context of the next match.
    recent: VecDeque<(u64, String)>,
}

impl<'a, 'b> FileSink<'a, 'b> {
    pub fn new(found: &'a mut FileFound<'b>, context: usize) -> FileSink<'a, 'b> {
        FileSink { found, context, recent: VecDeque::new() }
    }

    /// Adds a line to the context of the matches around it.
    fn add_context(&mut self, line: u64, text: &str) {
        if self.context == 0 {
            return;
        }
        for found in self.found.kept.iter_mut().rev().take(self.context) {
            let distance = line - found.line.unwrap_or(line);
            if distance > 0 && distance <= self.context as u64 {
                found.after.push(text.to_owned());
            }
        }
        if self.recent.len() == self.context {
            self.recent.pop_front();
        }
        self.recent.push_back((line, text.to_owned()));
    }
}

impl Sink for FileSink<'_, '_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        let first = found.line_number().unwrap_or(0);
        for (line, bytes) in (first..).zip(found.lines()) {
            let is_kept = self.found.count(line);
            if !is_kept && self.context == 0 {
                continue;
            }
            let (text, cut) = shown(bytes);
            let near = |(at, _): &&(u64, String)| line - at <= self.context as u64;
            let before = self.recent.iter().filter(near).map(|(_, text)| text.clone()).collect();
            self.add_context(line, &text);
            if is_kept {
                self.found.keep(line, text, cut, before);
            }
        }
        // One match is enough to know the file.
        Ok(self.found.mode != SearchMode::Files)
    }

    fn context(&mut self, _: &Searcher, context: &SinkContext<'_>) -> Result<bool, io::Error> {
        let (text, _) = shown(context.bytes());
        self.add_context(context.line_number().unwrap_or(0), &text);
        Ok(true)
    }
}

/// Returns the line without its end, cut after some characters.
fn shown(line: &[u8]) -> (String, bool) {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // A character has at most four bytes.
    let start = &line[..line.len().min(MAX_TEXT_CHARS * 4)];
    let text = String::from_utf8_lossy(start);
    match text.char_indices().nth(MAX_TEXT_CHARS) {
        Some((at, _)) => (text[..at].to_owned(), true),
        None => (text.into_owned(), start.len() < line.len()),
    }
}
