//! Tracks how much of a process's output `run` has printed, and when it is done. Pure.

use crate::cmd::wait::{has_ended, own_code};
use std::time::{Duration, Instant};
use toold_proto::params::{Status, Stream};
use toold_proto::process::{Process, Span};
use toold_proto::results::PollResult;

/// The time that one poll waits for output. Only a bound: it answers on the first byte.
const POLL_WAIT: Duration = Duration::from_secs(30);
/// The same while the process waits for its turn: a start prints nothing, and is shown.
const PENDING_WAIT: Duration = Duration::from_secs(1);
/// The time after the exit for the output to close. A process that still holds it open then is an orphaned
/// descendant, which may never close it.
const CLOSE_WAIT: Duration = Duration::from_millis(100);

/// The action after a page.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// Poll again from the cursor, and wait this long.
    Poll(Duration),
    /// Everything is printed: exit with this code.
    Leave(u8),
}

/// The cursor, and the exit if it was seen.
#[derive(Debug, Default)]
pub struct Progress {
    /// Everything before it is printed.
    pub cursor: u64,
    /// The number of bytes printed.
    pub printed: u64,
    exit: Option<Exit>,
}

/// The end of the output when the exit was first seen, and the deadline for its close.
#[derive(Debug)]
struct Exit {
    end: u64,
    until: Instant,
}

/// Returns the time that a poll waits for the output of a process.
pub fn wait(process: &Process) -> Duration {
    if process.status == Status::Pending { PENDING_WAIT } else { POLL_WAIT }
}

impl Progress {
    /// Returns the time that the first poll waits.
    pub fn first(&self) -> Duration {
        POLL_WAIT
    }

    /// Reports whether the process is known to have ended.
    pub fn ended(&self) -> bool {
        self.exit.is_some()
    }

    /// Returns the number of bytes that the program wrote, and that were neither kept nor printed.
    pub fn missing(&self) -> u64 {
        let end = self.exit.as_ref().map_or(self.cursor, |exit| exit.end.max(self.cursor));
        end.saturating_sub(self.printed)
    }

    /// Records a page that has been printed.
    pub fn page(&mut self, page: &PollResult, now: Instant) -> Next {
        let grew = page.next_cursor > self.cursor;
        self.cursor = self.cursor.max(page.next_cursor);
        // Output of a program that was held back to its end is stored when we have read enough: it is on its way.
        if !has_ended(&page.process) || page.process.held_back == Some(true) {
            return Next::Poll(wait(&page.process));
        }
        let seen = self.exit.is_some();
        let exit = self.exit.get_or_insert(Exit { end: page.process.cursor, until: now + CLOSE_WAIT });
        if self.cursor < exit.end && grew {
            return Next::Poll(Duration::ZERO);
        }
        let closed = page.process.closed && self.cursor >= page.process.cursor;
        // An empty poll after the exit brings nothing more, even if it came back early: another poll would
        // spin.
        let quiet = seen && !grew;
        if closed || quiet || now >= exit.until {
            Next::Leave(own_code(&page.process))
        } else {
            Next::Poll(exit.until - now)
        }
    }
}

/// Splits the bytes of a page by stream, in the order they came. Bytes without a span are stdout's.
pub fn pieces<'a>(bytes: &'a [u8], from: u64, spans: &[Span]) -> Vec<(Stream, &'a [u8])> {
    let offset = |cursor: u64| (cursor.saturating_sub(from) as usize).min(bytes.len());
    let mut out = Vec::new();
    let mut done = 0;
    for span in spans {
        let (start, end) = (offset(span.from).max(done), offset(span.to));
        if start > done {
            out.push((Stream::Stdout, &bytes[done..start]));
        }
        if end > start {
            out.push((span.stream, &bytes[start..end]));
        }
        done = end.max(start);
    }
    if done < bytes.len() {
        out.push((Stream::Stdout, &bytes[done..]));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::page;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn poll(from: u64, bytes: &[u8], changes: Value) -> PollResult {
        serde_json::from_value(page(from, bytes, changes)).expect("a whole page")
    }

    fn exited(closed: bool, cursor: u64) -> Value {
        json!({"status": "exited", "reason": "exited", "exit_code": 3, "closed": closed, "cursor": cursor})
    }

    #[test]
    fn it_leaves_when_the_output_is_closed_and_all_of_it_is_printed() {
        let now = Instant::now();
        let mut progress = Progress::default();
        assert_eq!(progress.page(&poll(0, b"abc", json!({})), now), Next::Poll(POLL_WAIT));
        assert_eq!(progress.page(&poll(3, b"de", exited(true, 9)), now), Next::Poll(Duration::ZERO));
        assert_eq!(progress.page(&poll(5, b"fghi", exited(true, 9)), now), Next::Leave(3));
        assert_eq!(progress.cursor, 9);
    }

    #[test]
    fn an_orphan_that_holds_the_output_open_does_not_block_progress() {
        let now = Instant::now();
        let mut silent = Progress::default();
        assert_eq!(silent.page(&poll(0, b"a", exited(false, 1)), now), Next::Poll(CLOSE_WAIT));
        assert_eq!(silent.page(&poll(1, b"", exited(false, 1)), now), Next::Leave(3));
        let mut chatty = Progress::default();
        assert_eq!(chatty.page(&poll(0, b"a", exited(false, 1)), now), Next::Poll(CLOSE_WAIT));
        assert!(matches!(chatty.page(&poll(1, b"b", exited(false, 99)), now), Next::Poll(_)));
        assert_eq!(chatty.page(&poll(2, b"c", exited(false, 99)), now + CLOSE_WAIT), Next::Leave(3));
    }

    #[test]
    fn a_lost_process_is_code_1_and_output_that_never_comes_is_not_waited_for() {
        let now = Instant::now();
        let lost = json!({"status": "lost", "reason": "lost", "closed": true, "cursor": 50});
        let mut progress = Progress::default();
        assert!(matches!(progress.page(&poll(0, b"", lost.clone()), now), Next::Poll(_)));
        assert_eq!(progress.page(&poll(0, b"", lost), now), Next::Leave(1));
    }

    fn span(stream: Stream, from: u64, to: u64) -> Span {
        Span { stream, from, to, at_ms: 0 }
    }

    #[test]
    fn bytes_go_to_the_stream_they_came_from() {
        let spans = [span(Stream::Stdout, 8, 12), span(Stream::Stderr, 12, 14), span(Stream::Stdout, 14, 99)];
        let shown = pieces(b"outerrout", 10, &spans);
        let expected: [(Stream, &[u8]); 3] =
            [(Stream::Stdout, b"ou"), (Stream::Stderr, b"te"), (Stream::Stdout, b"rrout")];
        assert_eq!(shown, expected);
        assert_eq!(pieces(b"ab", 0, &[]), [(Stream::Stdout, &b"ab"[..])]);
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_or_doubled_whatever_the_spans(
            bytes in proptest::collection::vec(any::<u8>(), 0..50), from in 0u64..20,
            spans in proptest::collection::vec((any::<bool>(), 0u64..80, 0u64..80), 0..6),
        ) {
            let stream = |err| if err { Stream::Stderr } else { Stream::Stdout };
            let spans: Vec<Span> = spans.into_iter().map(|(err, a, b)| span(stream(err), a, b)).collect();
            let joined: Vec<u8> = pieces(&bytes, from, &spans).into_iter().flat_map(|(_, b)| b.to_vec()).collect();
            prop_assert_eq!(joined, bytes);
        }
    }
}
