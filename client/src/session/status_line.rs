//! When `run` may show a line of its own between a program's lines. Pure: time is an argument.

use crate::render::progress_line;
use crate::render::text::last_line;
use std::time::{Duration, Instant};
use toold_proto::params::Stream;

/// A program that has printed nothing for so long is quiet. Also the time between two of our lines.
const QUIET: Duration = Duration::from_secs(1);
/// Bytes of output that are kept to know the last line.
const KEPT: usize = 1024;

/// What was printed last, and when.
#[derive(Debug)]
pub struct Quiet {
    begin: Instant,
    /// When the next line of ours is due, should nothing be printed until then.
    due: Instant,
    /// Of each stream: its last line has no end yet.
    open: [bool; 2],
    tail: Vec<u8>,
    pace: Duration,
}

impl Quiet {
    pub fn since(begin: Instant) -> Quiet {
        Quiet::paced(begin, QUIET)
    }

    /// The same for a test that does not want to wait.
    pub fn paced(begin: Instant, pace: Duration) -> Quiet {
        Quiet { begin, due: begin + pace, open: [false; 2], tail: Vec::new(), pace }
    }

    /// The program printed this.
    pub fn printed(&mut self, stream: Stream, piece: &[u8], now: Instant) {
        let Some(end) = piece.last() else { return };
        let stream = match stream {
            Stream::Stdout => 0,
            Stream::Stderr => 1,
        };
        self.open[stream] = *end != b'\n';
        self.due = now + self.pace;
        self.tail.extend_from_slice(&piece[piece.len().saturating_sub(KEPT)..]);
        self.tail.drain(..self.tail.len().saturating_sub(KEPT));
    }

    /// When our line is to be shown. Never while one of the program's is open: ours would be in it.
    pub fn due(&self) -> Option<Instant> {
        (self.open == [false; 2]).then_some(self.due)
    }

    /// Our line, cut to the width. The next is due later.
    pub fn line(&mut self, id: &str, now: Instant, width: usize) -> String {
        self.due = now + self.pace;
        let elapsed = now.saturating_duration_since(self.begin).as_millis() as u64;
        let last = last_line(&String::from_utf8_lossy(&self.tail));
        progress_line::line(elapsed, &format!("{id} running"), last.as_deref(), width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_due_after_a_second_of_silence_and_never_inside_a_line_of_the_program() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut quiet = Quiet::since(begin);
        assert_eq!(quiet.due(), Some(at(1000)));
        quiet.printed(Stream::Stdout, b"one\n", at(700));
        assert_eq!(quiet.due(), Some(at(1700)));
        assert_eq!(quiet.line("p", at(1700), 80), "1s  p running: one");
        assert_eq!(quiet.due(), Some(at(2700)));
        quiet.printed(Stream::Stdout, b"50%", at(2000));
        assert_eq!(quiet.due(), None);
        quiet.printed(Stream::Stderr, b"warning\n", at(2100));
        assert_eq!(quiet.due(), None, "the other stream's line is still open");
        quiet.printed(Stream::Stdout, b"", at(2150));
        quiet.printed(Stream::Stdout, b" done\n", at(2200));
        assert_eq!(quiet.due(), Some(at(3200)));
        assert_eq!(quiet.line("p", at(65_200), 80), "1m05s  p running: done");
    }

    #[test]
    fn the_last_line_is_known_however_much_was_printed() {
        let begin = Instant::now();
        let mut quiet = Quiet::since(begin);
        quiet.printed(Stream::Stdout, &[b"x".repeat(10_000), b"\n\x1b[31mred\x1b[0m\n".to_vec()].concat(), begin);
        assert_eq!((quiet.line("p", begin, 80), quiet.tail.len()), ("0s  p running: red".into(), KEPT));
    }
}
