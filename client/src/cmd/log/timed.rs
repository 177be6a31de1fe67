//! Whole lines with their times, out of pages with spans. Pure.
//!
//! The log has no time for each line. It has one for each piece that arrived: bytes of one stream that came within a tenth of a second
//! share the time of the first of them. A line has the time of the piece with its first byte.

use toold_proto::params::Stream;
use toold_proto::process::Span;

/// A line without its newline.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimedLine {
    pub at_ms: u64,
    pub bytes: Vec<u8>,
}

/// Splits output that comes in pages into lines.
#[derive(Debug, Default)]
pub struct LineSplitter {
    /// A line whose end has not come.
    open: Option<TimedLine>,
}

impl LineSplitter {
    /// Takes a page that begins at the cursor `from`, and returns the lines that are complete. Bytes of another stream than the
    /// wanted one are passed over.
    pub fn push(&mut self, from: u64, page: &[u8], spans: &[Span], wanted: Option<Stream>) -> Vec<TimedLine> {
        let mut lines = Vec::new();
        for span in spans.iter().filter(|span| wanted.is_none_or(|stream| span.stream == stream)) {
            for piece in within(from, page, span).split_inclusive(|b| *b == b'\n') {
                let line = self.open.get_or_insert_with(|| TimedLine { at_ms: span.at_ms, bytes: Vec::new() });
                line.bytes.extend_from_slice(piece.strip_suffix(b"\n").unwrap_or(piece));
                if piece.ends_with(b"\n") {
                    lines.extend(self.open.take());
                }
            }
        }
        lines
    }

    /// Ends the output: a line without a newline is a line.
    pub fn finish(&mut self) -> Option<TimedLine> {
        self.open.take()
    }
}

/// Returns the cursors at which lines of the wanted stream end, in order.
pub fn line_ends<'p>(
    from: u64,
    page: &'p [u8],
    spans: &'p [Span],
    wanted: Option<Stream>,
) -> impl Iterator<Item = u64> + 'p {
    let spans = spans.iter().filter(move |span| wanted.is_none_or(|stream| span.stream == stream));
    spans.flat_map(move |span| {
        let begin = span.from.max(from);
        let ends = within(from, page, span).iter().enumerate().filter(|(_, b)| **b == b'\n');
        ends.map(move |(at, _)| begin + at as u64 + 1)
    })
}

/// Returns the part of a page that a span covers.
fn within<'p>(from: u64, page: &'p [u8], span: &Span) -> &'p [u8] {
    let index = |cursor: u64| usize::try_from(cursor.saturating_sub(from)).unwrap_or(usize::MAX).min(page.len());
    &page[index(span.from)..index(span.to).max(index(span.from))]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(stream: Stream, from: u64, to: u64, at_ms: u64) -> Span {
        Span { stream, from, to, at_ms }
    }

    fn text(lines: &[TimedLine]) -> Vec<(u64, String)> {
        lines.iter().map(|line| (line.at_ms, String::from_utf8_lossy(&line.bytes).into_owned())).collect()
    }

    #[test]
    fn a_line_has_the_time_of_its_first_byte_and_one_stream_can_be_picked() {
        let page = b"one\ntwERR\no\nrest";
        let spans =
            [span(Stream::Stdout, 100, 106, 1), span(Stream::Stderr, 106, 110, 2), span(Stream::Stdout, 110, 116, 3)];
        let mut splitter = LineSplitter::default();
        let lines = splitter.push(100, page, &spans, Some(Stream::Stdout));
        assert_eq!(text(&lines), [(1, "one".into()), (1, "two".into())]);
        let more = splitter.push(116, b" of it\n", &[span(Stream::Stdout, 116, 123, 9)], Some(Stream::Stdout));
        assert_eq!(text(&more), [(3, "rest of it".into())]);
        assert_eq!(splitter.finish(), None);
        let lines = LineSplitter::default().push(100, page, &spans, None);
        assert_eq!(text(&lines), [(1, "one".into()), (1, "twERR".into()), (3, "o".into())]);
        assert_eq!(line_ends(100, page, &spans, None).collect::<Vec<_>>(), [104, 110, 112]);
        assert_eq!(line_ends(100, page, &spans, Some(Stream::Stderr)).collect::<Vec<_>>(), [110]);
    }

    #[test]
    fn spans_beyond_a_page_do_no_harm() {
        let spans = [span(Stream::Stdout, 0, 1000, 7), span(Stream::Stdout, 2000, 1000, 7)];
        let mut splitter = LineSplitter::default();
        assert_eq!(text(&splitter.push(10, b"a\nb", &spans, None)), [(7, "a".into())]);
        assert_eq!(splitter.finish().map(|line| line.bytes), Some(b"b".to_vec()));
    }
}
