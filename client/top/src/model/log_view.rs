//! The log of one process as a view: lines with their stream, where the view stands, a search, and the screen of a terminal.

use regex::{Regex, RegexBuilder};
use std::collections::VecDeque;
use std::num::NonZeroU16;
use toold_client::text::{escape_control, without_escapes};
use toold_proto::params::Stream;
use toold_proto::process::{Gap, Span};
use toold_proto::pty::PtySize;
use toold_proto::results::ScreenResult;

/// The bytes that are read at a time, and from the end at first.
pub const PAGE_LEN: u64 = 128 * 1024;
/// The lines that are read at a time in a view that begins at a line.
pub const PAGE_LINES: u64 = 500;
/// The longest log whose terminal is replayed from its start. The screen of a longer one comes from the daemon.
pub const MAX_REPLAY_LEN: u64 = 256 * 1024;
/// The lines that are kept in memory.
const MAX_LINES: usize = 20_000;
/// The longest pattern, compiled.
const MAX_PATTERN_LEN: usize = 1 << 20;
const TAB_COLUMNS: usize = 8;

/// The part of the log that is in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// Bytes from `start` to `end`, read on as they are written.
    Tail { start: u64, end: u64 },
    /// Lines from number `first` on. `next`: there are more.
    Lines { first: u64, next: Option<u64> },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    pub text: String,
    pub stderr: bool,
    /// Bytes of it in the log.
    len: u64,
}

pub struct Search {
    pub pattern: Regex,
    /// The line of the current match.
    pub at: Option<usize>,
}

pub struct LogView {
    pub id: String,
    pub source: Source,
    pub lines: VecDeque<LogLine>,
    /// The end of a line whose start is not in memory.
    head: Vec<u8>,
    /// The start of a line whose end is not written yet.
    partial: Vec<u8>,
    partial_stderr: bool,
    pub follow: bool,
    /// The first line on the screen, unless it follows.
    pub top: usize,
    /// Columns that are scrolled out on the left.
    pub left: usize,
    pub search: Option<Search>,
    screen: Option<Box<vt100::Parser>>,
    /// All of it was read and no more will come.
    pub complete: bool,
    pub loaded: bool,
    /// An earlier or later page is on its way.
    pub page_pending: bool,
}

impl LogView {
    /// Begins a view of the end of a log that reaches to `end` by now.
    pub fn tail(id: &str, end: u64, pty: Option<PtySize>) -> LogView {
        let start = if pty.is_some() && end <= MAX_REPLAY_LEN { 0 } else { end.saturating_sub(PAGE_LEN) };
        let screen = pty.map(|size| Box::new(parser(size)));
        LogView::new(id, Source::Tail { start, end: start }, screen)
    }

    /// Begins a view at a line.
    pub fn at_line(id: &str, line: u64) -> LogView {
        let first = line.saturating_sub(PAGE_LINES / 4);
        let mut view = LogView::new(id, Source::Lines { first, next: Some(first) }, None);
        (view.follow, view.top) = (false, usize::try_from(line - first).unwrap_or(0));
        view
    }

    fn new(id: &str, source: Source, screen: Option<Box<vt100::Parser>>) -> LogView {
        LogView {
            id: id.into(),
            source,
            lines: VecDeque::new(),
            head: Vec::new(),
            partial: Vec::new(),
            partial_stderr: false,
            follow: true,
            top: 0,
            left: 0,
            search: None,
            screen,
            complete: false,
            loaded: false,
            page_pending: false,
        }
    }

    /// Returns the terminal's screen, while the view follows.
    pub fn screen(&self) -> Option<&vt100::Screen> {
        self.screen.as_deref().filter(|_| self.follow).map(vt100::Parser::screen)
    }

    pub fn resize_screen(&mut self, size: PtySize) {
        if let Some(parser) = &mut self.screen {
            let (rows, cols) = sides(size);
            if parser.screen().size() != (rows, cols) {
                parser.set_size(rows, cols);
            }
        }
    }

    /// Begins at the screen that the daemon knows, in place of the bytes that made it.
    pub fn seed_screen(&mut self, seen: &ScreenResult) {
        let Some(parser) = &mut self.screen else { return };
        let alternate = if seen.alternate { "\x1b[?1049h" } else { "" };
        let text = seen.text.replace('\n', "\r\n");
        let (row, col) = (seen.cursor.row + 1, seen.cursor.col + 1);
        let hidden = if seen.cursor.visible { "" } else { "\x1b[?25l" };
        parser.process(format!("{alternate}\x1b[H\x1b[J{text}\x1b[{row};{col}H{hidden}").as_bytes());
        self.source = Source::Tail { start: seen.next_cursor, end: seen.next_cursor };
    }

    /// Appends bytes that begin at `from`.
    pub fn append(&mut self, bytes: &[u8], from: u64, spans: &[Span], gap: Option<Gap>) {
        let Source::Tail { start, .. } = self.source else { return };
        if let Some(gap) = gap {
            if !self.partial.is_empty() {
                self.flush_partial();
            }
            let text = format!("… {} bytes were dropped …", gap.to - gap.from);
            self.lines.push_back(LogLine { text, stderr: false, len: gap.to - gap.from });
        }
        if let Some(screen) = &mut self.screen {
            screen.process(bytes);
        }
        let mut at = 0;
        while at < bytes.len() {
            if self.partial.is_empty() {
                self.partial_stderr = is_stderr(from + at as u64, spans);
            }
            let end = bytes[at..].iter().position(|b| *b == b'\n').map(|n| at + n);
            self.partial.extend_from_slice(&bytes[at..end.unwrap_or(bytes.len())]);
            if end.is_some() {
                // The first line of a view that begins inside of the log has lost its start.
                if start > 0 && !self.loaded && self.lines.is_empty() && self.head.is_empty() {
                    self.head = std::mem::take(&mut self.partial);
                    self.head.push(b'\n');
                } else {
                    self.flush_partial();
                }
            }
            at = end.map_or(bytes.len(), |end| end + 1);
        }
        self.source = Source::Tail { start, end: from + bytes.len() as u64 };
        self.loaded = true;
        self.drop_oldest();
    }

    fn flush_partial(&mut self) {
        let raw = std::mem::take(&mut self.partial);
        let len = raw.len() as u64 + 1;
        self.lines.push_back(LogLine { text: line_text(&raw), stderr: self.partial_stderr, len });
    }

    fn drop_oldest(&mut self) {
        let Source::Tail { start, end } = self.source else { return };
        let extra = self.lines.len().saturating_sub(MAX_LINES);
        if extra == 0 || !self.follow {
            return;
        }
        let dropped: u64 = self.lines.drain(..extra).map(|line| line.len).sum();
        self.source = Source::Tail { start: start + self.head.len() as u64 + dropped, end };
        self.head.clear();
        self.top = self.top.saturating_sub(extra);
        if let Some(search) = &mut self.search {
            search.at = search.at.and_then(|at| at.checked_sub(extra));
        }
    }

    /// Puts bytes before those in memory.
    pub fn prepend(&mut self, bytes: &[u8], from: u64, spans: &[Span]) {
        let Source::Tail { end, .. } = self.source else { return };
        let mut earlier = LogView::new(&self.id, Source::Tail { start: from, end: from }, None);
        earlier.append(bytes, from, spans, None);
        if !self.head.is_empty() {
            earlier.append(&std::mem::take(&mut self.head), from + bytes.len() as u64, &[], None);
        }
        self.put_before(earlier.lines);
        self.head = earlier.head;
        self.source = Source::Tail { start: from, end };
    }

    fn put_before(&mut self, earlier: VecDeque<LogLine>) {
        let added = earlier.len();
        earlier.into_iter().rev().for_each(|line| self.lines.push_front(line));
        self.top += added;
        if let Some(search) = &mut self.search {
            search.at = search.at.map(|at| at + added);
        }
    }

    /// Takes a page of numbered lines.
    pub fn add_lines(&mut self, text: &str, first: u64, next: Option<u64>) {
        let Source::Lines { first: known, next: known_next } = self.source else { return };
        let line = |text: &str| LogLine { text: line_text(text.as_bytes()), stderr: false, len: 0 };
        let page: VecDeque<LogLine> = text.lines().map(line).collect();
        if self.loaded && first < known {
            self.put_before(page);
            self.source = Source::Lines { first, next: known_next };
        } else {
            self.lines.extend(page);
            self.source = Source::Lines { first: known, next };
        }
        self.loaded = true;
    }

    /// Returns the lines, and the last one that is not complete yet.
    pub fn len(&self) -> usize {
        self.lines.len() + usize::from(!self.partial.is_empty())
    }

    pub fn line(&self, at: usize) -> Option<LogLine> {
        if let Some(line) = self.lines.get(at) {
            return Some(line.clone());
        }
        let is_partial = at == self.lines.len() && !self.partial.is_empty();
        is_partial.then(|| LogLine { text: line_text(&self.partial), stderr: self.partial_stderr, len: 0 })
    }

    /// Returns the number of a line in the log, from 1, if it is known.
    pub fn number(&self, at: usize) -> Option<u64> {
        match self.source {
            Source::Tail { start: 0, .. } => Some(at as u64 + 1),
            Source::Tail { .. } => None,
            Source::Lines { first, .. } => Some(first + at as u64 + 1),
        }
    }

    /// Returns the first line on a screen of this height.
    pub fn first_visible(&self, height: usize) -> usize {
        let last = self.len().saturating_sub(height);
        if self.follow { last } else { self.top.min(last) }
    }

    /// Scrolls. At the end the view follows again.
    pub fn scroll(&mut self, by: isize, height: usize) {
        let last = self.len().saturating_sub(height);
        let top = self.first_visible(height).saturating_add_signed(by).min(last);
        let reads_on = matches!(self.source, Source::Tail { .. });
        self.top = top;
        self.follow = reads_on && by > 0 && top == last || (self.follow && by == 0);
    }

    /// Begins a search at the first line on the screen.
    pub fn search(&mut self, pattern: &str, height: usize) -> Result<bool, String> {
        let pattern = compile(pattern)?;
        let from = self.first_visible(height);
        self.search = Some(Search { pattern, at: None });
        Ok(self.find(from, true, height))
    }

    /// Goes to the next match, or the one before, around the end.
    pub fn next_match(&mut self, forward: bool, height: usize) -> bool {
        let Some(search) = &self.search else { return false };
        let len = self.len().max(1);
        let here = search.at.unwrap_or(self.first_visible(height));
        let from = if forward { (here + 1) % len } else { (here + len - 1) % len };
        self.find(from, forward, height)
    }

    fn find(&mut self, from: usize, forward: bool, height: usize) -> bool {
        let len = self.len();
        let Some(search) = &self.search else { return false };
        let step = |n: usize| if forward { (from + n) % len } else { (from + len - n) % len };
        let is_match = |at: &usize| self.line(*at).is_some_and(|line| search.pattern.is_match(&line.text));
        let found = (0..len).map(step).find(is_match);
        if let (Some(at), Some(search)) = (found, &mut self.search) {
            search.at = Some(at);
            self.follow = false;
            let visible = self.top.min(len.saturating_sub(height));
            if at < visible || at >= visible + height.max(1) {
                self.top = at.saturating_sub(height / 2);
            } else {
                self.top = visible;
            }
        }
        found.is_some()
    }
}

/// Compiles a pattern that a person typed. Lower case alone matches any case.
pub fn compile(pattern: &str) -> Result<Regex, String> {
    let any_case = !pattern.chars().any(char::is_uppercase);
    let built = RegexBuilder::new(pattern).case_insensitive(any_case).size_limit(MAX_PATTERN_LEN).build();
    built.map_err(|error| error.to_string().lines().last().unwrap_or("it is wrong").to_owned())
}

fn sides(size: PtySize) -> (NonZeroU16, NonZeroU16) {
    let side = |n: u32| NonZeroU16::new(u16::try_from(n).unwrap_or(u16::MAX)).unwrap_or(NonZeroU16::MIN);
    (side(size.rows), side(size.cols))
}

fn parser(size: PtySize) -> vt100::Parser {
    let (rows, cols) = sides(size);
    vt100::Parser::new(rows, cols, 0)
}

fn is_stderr(at: u64, spans: &[Span]) -> bool {
    spans.iter().any(|span| span.from <= at && at < span.to && span.stream == Stream::Stderr)
}

/// Returns the bytes of a line as text that moves no cursor: escapes are removed, a line that was redrawn with carriage returns
/// is as it stood last, tabs are spaces.
fn line_text(raw: &[u8]) -> String {
    let text = without_escapes(&String::from_utf8_lossy(raw));
    let text = text.trim_end_matches('\r');
    let mut drawn: Vec<char> = Vec::new();
    for part in text.split('\r') {
        let part: Vec<char> = part.chars().collect();
        let kept = drawn.split_off(part.len().min(drawn.len()));
        drawn = part;
        drawn.extend(kept);
    }
    let mut out = String::new();
    for c in drawn {
        match c {
            '\t' => out.extend(std::iter::repeat_n(' ', TAB_COLUMNS - out.chars().count() % TAB_COLUMNS)),
            c => out.push(c),
        }
    }
    escape_control(&out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(view: &LogView) -> Vec<String> {
        (0..view.len()).filter_map(|at| view.line(at)).map(|line| line.text).collect()
    }

    fn err(from: u64, to: u64) -> Span {
        Span { stream: Stream::Stderr, from, to, at_ms: 0 }
    }

    #[test]
    fn lines_keep_their_stream_across_any_cut_and_an_open_line_is_shown() {
        let bytes = b"one\ntwo\n\nbar 1%\rbar 99%\r\n\x1b[31mred\x1b[m";
        for cut in 0..bytes.len() {
            let mut view = LogView::tail("p", 0, None);
            view.append(&bytes[..cut], 0, &[err(4, 8)], None);
            view.append(&bytes[cut..], cut as u64, &[err(4, 8)], None);
            assert_eq!(texts(&view), ["one", "two", "", "bar 99%", "red"], "cut at {cut}");
            let tinted: Vec<bool> = (0..5).filter_map(|at| view.line(at)).map(|line| line.stderr).collect();
            assert_eq!(tinted, [false, true, false, false, false], "cut at {cut}");
        }
    }

    #[test]
    fn an_earlier_page_joins_the_line_that_was_cut() {
        let mut view = LogView::tail("p", PAGE_LEN + 7, None);
        view.append(b"ond\nthird\n", 7, &[], None);
        assert_eq!(texts(&view), ["third"]);
        view.prepend(b"first\nsec", 0, &[]);
        assert_eq!(texts(&view), ["first", "second", "third"]);
        assert_eq!((view.source, view.number(1)), (Source::Tail { start: 0, end: 17 }, Some(2)));
    }

    #[test]
    fn a_view_follows_until_it_is_scrolled_and_again_at_the_end() {
        let mut view = LogView::tail("p", 0, None);
        view.append(b"a\nb\nc\nd\ne\n", 0, &[], None);
        assert_eq!(view.first_visible(2), 3);
        view.scroll(-2, 2);
        view.append(b"f\n", 10, &[], None);
        assert_eq!((view.follow, view.first_visible(2)), (false, 1));
        view.scroll(9, 2);
        assert_eq!((view.follow, view.first_visible(2)), (true, 4));
    }

    #[test]
    fn a_search_goes_round_in_both_directions() {
        let mut view = LogView::tail("p", 0, None);
        view.append(b"Error 1\nok\nerror 2\nok\n", 0, &[], None);
        assert_eq!(view.search("error \\d", 4), Ok(true));
        let at = |view: &LogView| view.search.as_ref().and_then(|search| search.at);
        assert_eq!((at(&view), view.follow), (Some(0), false));
        assert!(view.next_match(true, 4) && at(&view) == Some(2));
        assert!(view.next_match(true, 4) && at(&view) == Some(0));
        assert!(view.next_match(false, 4) && at(&view) == Some(2));
        assert_eq!(view.search("nothing", 4), Ok(false));
        assert!(view.search("(", 4).is_err());
    }

    #[test]
    fn a_terminal_is_a_screen_while_it_is_followed() {
        let size = PtySize { rows: 3, cols: 10 };
        let mut view = LogView::tail("p", 12, Some(size));
        view.append(b"\x1b[2J\x1b[2;3Hhi", 0, &[], None);
        assert_eq!(view.screen().map(|screen| screen.contents()).as_deref(), Some("\n  hi"));
        view.append(b"\r\n1\r\n2\r\n3", 10, &[], None);
        view.scroll(-1, 2);
        assert!(view.screen().is_none(), "the text is shown when it is scrolled");
    }
}
