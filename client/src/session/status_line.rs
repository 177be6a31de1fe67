//! The status line that `run` shows between the lines of a quiet program. Pure: time is an argument.

use crate::render::progress_line;
use crate::render::text::last_line;
use std::time::{Duration, Instant};
use toold_proto::params::{Status, Stream};
use toold_proto::process::Process;

/// The silence after which a program is quiet. Also the time between two status lines.
const QUIET_DELAY: Duration = Duration::from_secs(1);
/// The bytes of output that are kept for the last line.
const TAIL_LEN: usize = 1024;

/// The last output, and its time.
#[derive(Debug)]
pub struct StatusLine {
    begin: Instant,
    /// The time of the next status line, if nothing is printed until then.
    due: Instant,
    /// For each stream: its last line is not complete.
    open: [bool; 2],
    tail: Vec<u8>,
    pace: Duration,
    state: &'static str,
}

impl StatusLine {
    pub fn since(begin: Instant) -> StatusLine {
        StatusLine::paced(begin, QUIET_DELAY)
    }

    /// Sets another pace, for tests.
    pub fn paced(begin: Instant, pace: Duration) -> StatusLine {
        StatusLine { begin, due: begin + pace, open: [false; 2], tail: Vec::new(), pace, state: "running" }
    }

    /// Records what the program printed.
    pub fn printed(&mut self, stream: Stream, piece: &[u8], now: Instant) {
        let Some(end) = piece.last() else { return };
        let stream = match stream {
            Stream::Stdout => 0,
            Stream::Stderr => 1,
        };
        self.open[stream] = *end != b'\n';
        self.due = now + self.pace;
        self.tail.extend_from_slice(&piece[piece.len().saturating_sub(TAIL_LEN)..]);
        self.tail.drain(..self.tail.len().saturating_sub(TAIL_LEN));
    }

    /// Records the state of the process: it may wait for its turn, or for a person.
    pub fn saw(&mut self, process: &Process) {
        self.state = if process.status == Status::Pending { "pending" } else { "running" };
    }

    /// Returns when the status line is due. Never while a line of the program is open: ours would be inside it.
    pub fn due(&self) -> Option<Instant> {
        (self.open == [false; 2]).then_some(self.due)
    }

    /// Returns the status line, cut to the width: the process and its state, and its last line. The next is due later.
    pub fn line(&mut self, id: &str, now: Instant, width: usize) -> String {
        self.due = now + self.pace;
        let elapsed = now.saturating_duration_since(self.begin).as_millis() as u64;
        let last = last_line(&String::from_utf8_lossy(&self.tail));
        progress_line::line(elapsed, &format!("{id} {}", self.state), last.as_deref(), width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_due_after_a_second_of_silence_and_never_inside_a_line_of_the_program() {
        let begin = Instant::now();
        let at = |ms| begin + Duration::from_millis(ms);
        let mut quiet = StatusLine::since(begin);
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
        let mut quiet = StatusLine::since(begin);
        quiet.printed(Stream::Stdout, &[b"x".repeat(10_000), b"\n\x1b[31mred\x1b[0m\n".to_vec()].concat(), begin);
        assert_eq!((quiet.line("p", begin, 80), quiet.tail.len()), ("0s  p running: red".into(), TAIL_LEN));
    }
}
