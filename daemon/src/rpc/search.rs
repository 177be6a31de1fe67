//! A pattern and its search along a growing log. `wait` and `ready` look with it.

use super::read::regex;
use crate::log::Log;
use crate::proc::Proc;
use crate::proc::state::State;
use crate::text::{self, PageEnd};
use std::io;
use std::sync::Arc;
use toold_proto::RpcError;
use toold_proto::params::Ansi;
use toold_proto::unions::Pattern;

/// What is shown of a line that matched, in bytes.
const LAST: usize = 2000;
/// How much of the log is looked at in one go.
const READ: usize = 256 * 1024;
/// A line without an end is looked at in windows of this size, each overlapping the one before by half.
const WINDOW: usize = 64 * 1024;

/// A pattern, ready to be looked for in a line.
pub enum Matcher {
    Text(Box<memchr::memmem::Finder<'static>>),
    Regex(regex::bytes::Regex),
}

impl Matcher {
    /// `param` is what the caller named the pattern.
    pub fn new(param: &str, pattern: &Pattern) -> Result<Matcher, RpcError> {
        match pattern {
            Pattern::Text(text) if text.is_empty() => Err(RpcError::param(param, "must not be empty")),
            Pattern::Text(text) => Ok(Matcher::Text(Box::new(memchr::memmem::Finder::new(text).into_owned()))),
            Pattern::Regex(text) => match regex(text) {
                Ok(regex) => Ok(Matcher::Regex(regex)),
                Err(why) => Err(RpcError::param(&format!("{param}.regex"), why)),
            },
        }
    }

    /// Whether the line's text matches, as `log` with `grep` sees it.
    fn matches(&self, line: &[u8], end: PageEnd) -> bool {
        let text = text::line_text(line, end, Ansi::Strip);
        match self {
            Matcher::Text(finder) => finder.find(&text).is_some(),
            Matcher::Regex(regex) => regex.is_match(&text),
        }
    }
}

/// A search along a growing log, line by line.
pub struct Search {
    matcher: Arc<Matcher>,
    at: u64,
    /// The line that has not ended yet.
    open: Vec<u8>,
}

impl Search {
    pub fn new(matcher: Arc<Matcher>) -> Search {
        Search { matcher, at: 0, open: Vec::new() }
    }

    /// Looks at everything up to where the log is now.
    pub fn look(&mut self, proc: &Proc, state: &State) -> io::Result<Option<String>> {
        let end = state.progress.counts.end;
        if self.at >= end {
            return Ok(None);
        }
        let log = Log::open(&proc.dir, end)?;
        while self.at < end {
            let page = log.read(self.at, READ, None)?;
            if page.gap.is_some() {
                self.open.clear();
            }
            let found = self.feed(&page.bytes);
            if page.next <= self.at || found.is_some() {
                return Ok(found);
            }
            self.at = page.next;
        }
        // A prompt has no newline: what is there of a line may match already.
        Ok(self.matcher.matches(&self.open, PageEnd::More).then(|| shown_line(&self.open)))
    }

    fn feed(&mut self, bytes: &[u8]) -> Option<String> {
        for line in bytes.split_inclusive(|b| *b == b'\n') {
            for piece in line.chunks(WINDOW / 2) {
                self.open.extend_from_slice(piece);
                let ended = piece.last() == Some(&b'\n');
                if (ended || self.open.len() >= WINDOW) && self.matcher.matches(&self.open, PageEnd::Last) {
                    return Some(shown_line(&self.open));
                }
                if ended {
                    self.open.clear();
                } else if self.open.len() >= WINDOW {
                    self.open.drain(..WINDOW / 2);
                }
            }
        }
        None
    }

    pub fn last_line(&self) -> Option<String> {
        self.matcher.matches(&self.open, PageEnd::Last).then(|| shown_line(&self.open))
    }
}

fn shown_line(line: &[u8]) -> String {
    let end = line.len().min(LAST);
    let text = text::line_text(&line[..end], PageEnd::Last, Ansi::Strip);
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_match_is_found_however_the_bytes_come_and_never_across_lines() {
        let text = b"one\ntwo READY three\nend".as_slice();
        for cut in 0..text.len() {
            let mut search =
                Search::new(Arc::new(Matcher::new("until.match", &Pattern::Text("READY".into())).expect("valid")));
            let first = search.feed(&text[..cut]);
            let found = first.or_else(|| search.feed(&text[cut..]));
            assert_eq!(found.as_deref(), Some("two READY three"), "{cut}");
        }
        let mut search =
            Search::new(Arc::new(Matcher::new("until.match", &Pattern::Regex("one.two".into())).expect("valid")));
        assert_eq!(search.feed(b"one\ntwo\n"), None);
    }

    #[test]
    fn a_match_is_looked_for_in_the_text_that_is_shown() {
        // The colours stood between the words, and a pattern for both was never found.
        let mut search =
            Search::new(Arc::new(Matcher::new("until.match", &Pattern::Text("okgo".into())).expect("valid")));
        assert_eq!(search.feed(b"\x1b[32mok\x1b[0mgo\r\n").as_deref(), Some("okgo"));
        let mut search =
            Search::new(Arc::new(Matcher::new("until.match", &Pattern::Regex("^okgo$".into())).expect("valid")));
        assert_eq!((search.feed(b"\x1b[32mok\x1b[0mgo"), search.last_line().as_deref()), (None, Some("okgo")));
    }

    #[test]
    fn a_line_without_end_is_searched_in_bounded_windows() {
        let mut search =
            Search::new(Arc::new(Matcher::new("until.match", &Pattern::Text("NEEDLE".into())).expect("valid")));
        assert_eq!(search.feed(&vec![b'x'; WINDOW * 3 - 3]), None);
        assert!(search.feed(b"NEEDLE\n").is_some());
        assert!(search.open.len() <= WINDOW + WINDOW / 2);
    }
}
