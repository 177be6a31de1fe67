//! Cuts output to a token budget: its head, a line that describes the omitted part, its tail.

use super::collapse::{self, LineStart, Tail, TailBound, TextForm, collapse_page, show_text};
use super::page::{LOOKAHEAD_LEN, PageEnd, PageStart, decode_page, first_char_len, is_continuation};
use memchr::memchr;
use std::io;
use toold_ansi::{ESC, escape_len, starts_escape};
use toold_proto::process::Truncated;

/// The maximum read for head and for tail where lines are redrawn, of which little is shown.
const MAX_COLLAPSED_BYTES: usize = 1024 * 1024;
/// The assumed length of a token.
const TOKEN_BYTES: u64 = 4;

/// Bytes of output without a gap, and the offset of the first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ByteRun {
    pub at: u64,
    pub bytes: Vec<u8>,
}

/// Output that can be read from both ends.
pub trait OutputSource {
    fn end(&self) -> u64;
    /// Returns up to `max` bytes from `from` on, or from the first kept byte after it.
    fn first(&self, from: u64, max: usize) -> io::Result<ByteRun>;
    /// Returns the last `max` kept bytes, or fewer.
    fn last(&self, max: usize) -> io::Result<ByteRun>;
}

/// Returns the text from `start` to the end if it fits into `max_tokens`; otherwise its head and its tail, each cut between
/// characters and escape sequences, with a line between them that does not count. Reads only what it returns, and a little
/// around the cuts.
pub fn fit_tokens(
    source: &dyn OutputSource,
    start: u64,
    max_tokens: u64,
    form: TextForm,
) -> io::Result<(String, Option<Truncated>)> {
    let end = source.end();
    if start >= end {
        return Ok((String::new(), None));
    }
    let budget = token_bytes(max_tokens);
    if end - start <= budget as u64 {
        let whole = source.first(start, budget)?;
        if whole.at == start && whole.bytes.len() as u64 == end - start {
            let text = show_text(&whole.bytes, PageEnd::Last, form);
            // Decoding makes invalid bytes longer.
            if text.len() <= budget {
                return Ok((text, None));
            }
        }
    }
    let (mut text, from) = head(source, start, budget / 2, form)?;
    let (tail, to) = tail(source, from, budget - budget / 2, form)?;
    if to <= from {
        return Ok((text + &tail, None));
    }
    let cut = omitted(from, to);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    text.push_str(&marker(&cut));
    text.push_str(&tail);
    Ok((text, Some(cut)))
}

/// Returns the length of tokens, in bytes.
pub fn token_bytes(tokens: u64) -> usize {
    usize::try_from(tokens.saturating_mul(TOKEN_BYTES)).unwrap_or(usize::MAX)
}

/// Describes a part of the output that a result leaves out.
pub fn omitted(from: u64, to: u64) -> Truncated {
    let omitted_bytes = to - from;
    Truncated { from, to, omitted_bytes, omitted_tokens: omitted_bytes.div_ceil(TOKEN_BYTES) }
}

fn marker(cut: &Truncated) -> String {
    let Truncated { from, to, omitted_bytes, omitted_tokens } = cut;
    format!("… {omitted_bytes} bytes ({omitted_tokens} tokens) cut here, cursor {from}..{to} …\n")
}

/// Returns the text of the first bytes, and the offset after them.
fn head(source: &dyn OutputSource, start: u64, budget: usize, form: TextForm) -> io::Result<(String, u64)> {
    if budget == 0 {
        return Ok((String::new(), start));
    }
    let mut run = source.first(start, budget.saturating_add(LOOKAHEAD_LEN))?;
    if form.redraws(&run.bytes) {
        run = source.first(start, MAX_COLLAPSED_BYTES.max(budget.saturating_add(LOOKAHEAD_LEN)))?;
        let (text, taken) = collapse_page(&run.bytes, budget, LineStart::Here, PageEnd::Last);
        return Ok((text, run.at + taken as u64));
    }
    let mut max = budget;
    loop {
        let (text, taken) = decode_page(&run.bytes, max, PageEnd::Last, form.ansi);
        if text.len() <= budget {
            return Ok((text, run.at + taken as u64));
        }
        max = shrink(max, budget, text.len());
        if max == 0 {
            // Even the first character is too long.
            return Ok((String::new(), run.at));
        }
    }
}

/// Returns the text of the last bytes, none of them before `from`, and the offset of the first.
fn tail(source: &dyn OutputSource, from: u64, budget: usize, form: TextForm) -> io::Result<(String, u64)> {
    let end = source.end();
    if budget == 0 {
        return Ok((String::new(), end));
    }
    let mut run = source.last(budget.saturating_add(LOOKAHEAD_LEN))?;
    let is_redrawn = form.redraws(&run.bytes);
    if is_redrawn {
        run = source.last(MAX_COLLAPSED_BYTES.max(budget.saturating_add(LOOKAHEAD_LEN)))?;
    }
    let run_end = run.at + run.bytes.len() as u64;
    if run_end <= from {
        return Ok((String::new(), end));
    }
    let earliest = usize::try_from(from.saturating_sub(run.at)).unwrap_or(usize::MAX);
    if is_redrawn {
        let page_start = if run.at <= from { PageStart::Whole } else { PageStart::Cut };
        let bound = TailBound { bytes: budget, ..TailBound::NONE };
        let bytes = run.bytes.get(earliest..).unwrap_or_default();
        let Tail { text, range, is_cut, .. } = collapse::tail(bytes, bound, page_start, PageEnd::Last, form);
        let start = run.at + (earliest + range.start) as u64;
        if !is_cut {
            return Ok((text, start));
        }
        // No byte is where a collapsed line is cut: the tail begins with the next one. A last line that does not fit is
        // not collapsed.
        if let Some((_, lines)) = text.split_once('\n')
            && let Some(newline) = bytes.get(range).and_then(|shown| memchr(b'\n', shown))
        {
            return Ok((lines.to_owned(), start + newline as u64 + 1));
        }
    }
    let mut max = budget;
    loop {
        let wanted = run.bytes.len().saturating_sub(max);
        // The end of the head is a boundary already.
        let cut = if wanted <= earliest { earliest } else { boundary(&run.bytes, wanted) };
        let bytes = run.bytes.get(cut..).unwrap_or_default();
        let (text, _) = decode_page(bytes, bytes.len(), PageEnd::Last, form.ansi);
        if text.len() <= budget {
            return Ok((text, run.at + cut as u64));
        }
        max = shrink(max, budget, text.len());
    }
}

/// Returns the number of bytes to try next, always fewer, after `tried` bytes became `got` bytes of text and only `budget`
/// fit.
fn shrink(tried: usize, budget: usize, got: usize) -> usize {
    let scaled = (tried as u128 * budget as u128 / got.max(1) as u128) as usize;
    scaled.min(tried.saturating_sub(1))
}

/// Returns the first position from `cut` on that is not inside a character or an escape sequence.
fn boundary(bytes: &[u8], cut: usize) -> usize {
    let before = bytes.get(cut.saturating_sub(LOOKAHEAD_LEN)..cut).unwrap_or_default();
    let from = cut - before.len();
    let rest = |at: usize| bytes.get(at..).unwrap_or_default();
    let escape = (from..cut).rev().find(|at| bytes.get(*at) == Some(&ESC));
    // A C1 control has two bytes, and may be inside a title that ESC began.
    let control = (from..cut).rev().find(|at| bytes.get(*at).is_some_and(|b| *b >= 0x80) && starts_escape(rest(*at)));
    for at in [escape, control].into_iter().flatten() {
        let end = at + escape_len(rest(at)).unwrap_or(0);
        if end > cut {
            return end;
        }
    }
    for back in 1..=cut.min(3) {
        let at = cut - back;
        let Some(&lead) = bytes.get(at) else { break };
        if is_continuation(lead) {
            continue;
        }
        return cut.max(at + first_char_len(bytes.get(at..).unwrap_or_default()));
    }
    cut
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::cell::Cell;
    use toold_proto::params::Ansi;

    const KEEP: TextForm = TextForm { ansi: Ansi::Keep, collapse: false };

    /// Output in memory with one gap. Counts the bytes that were read.
    struct Output {
        bytes: Vec<u8>,
        gap: std::ops::Range<usize>,
        read: Cell<usize>,
    }

    impl Output {
        fn new(bytes: &[u8]) -> Output {
            Output { bytes: bytes.to_vec(), gap: 0..0, read: Cell::new(0) }
        }

        fn run(&self, from: usize, to: usize) -> io::Result<ByteRun> {
            self.read.set(self.read.get() + (to - from));
            Ok(ByteRun { at: from as u64, bytes: self.bytes.get(from..to).unwrap_or_default().to_vec() })
        }
    }

    impl OutputSource for Output {
        fn end(&self) -> u64 {
            self.bytes.len() as u64
        }

        fn first(&self, from: u64, max: usize) -> io::Result<ByteRun> {
            let mut from = from as usize;
            if self.gap.contains(&from) {
                from = self.gap.end;
            }
            let stop = if from < self.gap.start { self.gap.start } else { self.bytes.len() };
            self.run(from, stop.min(from.saturating_add(max)))
        }

        fn last(&self, max: usize) -> io::Result<ByteRun> {
            let (mut floor, mut end) = (self.gap.end, self.bytes.len());
            if floor == end && !self.gap.is_empty() {
                (floor, end) = (0, self.gap.start);
            }
            self.run(end.saturating_sub(max).max(floor), end)
        }
    }

    #[test]
    fn output_within_the_budget_is_complete_and_other_output_describes_the_omitted_part() {
        let source = Output::new(b"0123456789abcdefghijklmnopqrstuvwxyz");
        let fitted = [9, 4, 0].map(|tokens| fit_tokens(&source, 0, tokens, TextForm::PLAIN).ok());
        let cut = |from, to| Truncated { from, to, omitted_bytes: to - from, omitted_tokens: (to - from).div_ceil(4) };
        let expected = [
            ("0123456789abcdefghijklmnopqrstuvwxyz".to_owned(), None),
            ("01234567\n… 20 bytes (5 tokens) cut here, cursor 8..28 …\nstuvwxyz".to_owned(), Some(cut(8, 28))),
            ("… 36 bytes (9 tokens) cut here, cursor 0..36 …\n".to_owned(), Some(cut(0, 36))),
        ];
        assert_eq!(fitted, expected.map(Some));
        assert_eq!(fit_tokens(&source, 36, 0, TextForm::PLAIN).ok(), Some((String::new(), None)));
    }

    #[test]
    fn a_cut_is_never_inside_a_character_or_an_escape_sequence() {
        let source = Output::new("ab😀\x1b[31mred\x1b[0m middle \x1b[32mgreen\x1b[0m😀yz".as_bytes());
        let text = |tokens| fit_tokens(&source, 0, tokens, TextForm::PLAIN).ok().map(|(text, _)| text);
        let expected = [
            "ab\n… 42 bytes (11 tokens) cut here, cursor 2..44 …\nyz",
            "ab😀\n… 34 bytes (9 tokens) cut here, cursor 6..40 …\n😀yz",
        ];
        assert_eq!([text(2), text(3)], expected.map(|text| Some(text.to_owned())));
    }

    #[test]
    fn a_gap_is_part_of_the_omitted_range() {
        let source = Output { gap: 4..8, ..Output::new(b"0123....89ab") };
        let cut = Truncated { from: 4, to: 8, omitted_bytes: 4, omitted_tokens: 1 };
        let expected = ("0123\n… 4 bytes (1 tokens) cut here, cursor 4..8 …\n89ab".to_owned(), Some(cut));
        assert_eq!(fit_tokens(&source, 0, 100, TextForm::PLAIN).ok(), Some(expected));
    }

    #[test]
    fn the_budget_counts_lines_as_they_stood_last() {
        let progress: String = (0..20_000).map(|n| format!("\r{n} of 20000")).collect();
        let source = Output::new(format!("start\n{progress}\ndone\n").as_bytes());
        let expected = ("start\n19999 of 20000\ndone\n".to_owned(), None);
        assert_eq!(fit_tokens(&source, 0, 20, TextForm::COLLAPSED).ok(), Some(expected));
        let (text, cut) = fit_tokens(&source, 0, 3, TextForm::COLLAPSED).expect("it reads");
        let cut = cut.expect("cut");
        assert_eq!(text, format!("start\n{}done\n", marker(&cut)), "a collapsed line is not cut in a head");
    }

    #[test]
    fn only_head_and_tail_are_read() {
        let source = Output::new(&vec![b'x'; 10_000_000]);
        let cut = fit_tokens(&source, 0, 10_000, TextForm::PLAIN).ok().and_then(|(_, cut)| cut);
        let expected = Truncated { from: 20_000, to: 9_980_000, omitted_bytes: 9_960_000, omitted_tokens: 2_490_000 };
        assert_eq!((cut, source.read.get()), (Some(expected), 40_000 + 2 * LOOKAHEAD_LEN));
    }

    proptest! {
        #[test]
        fn head_and_tail_are_a_prefix_and_a_suffix_within_the_budget(
            text in "[a-zé€😀\n]{0,60}", noise in proptest::collection::vec(any::<u8>(), 0..10), tokens in 0_u64..20,
        ) {
            let bytes = [text.as_bytes(), &noise, text.as_bytes()].concat();
            let whole = decode_page(&bytes, bytes.len(), PageEnd::Last, Ansi::Keep).0;
            let source = Output::new(&bytes);
            let (shown, cut) = fit_tokens(&source, 0, tokens, KEEP)?;
            let Some(cut) = cut else {
                prop_assert_eq!(shown, whole);
                return Ok(());
            };
            let text = |from: u64, to: u64| {
                let bytes = bytes.get(from as usize..to as usize).unwrap_or_default();
                decode_page(bytes, bytes.len(), PageEnd::Last, Ansi::Keep).0
            };
            let (head, rest, tail) = (text(0, cut.from), text(cut.from, cut.to), text(cut.to, source.end()));
            let newline = if head.is_empty() || head.ends_with('\n') { "" } else { "\n" };
            prop_assert_eq!(shown, format!("{head}{newline}{}{tail}", marker(&cut)));
            prop_assert_eq!(format!("{head}{rest}{tail}"), whole);
            prop_assert!(head.len() + tail.len() <= 4 * tokens as usize && !rest.is_empty());
        }
    }
}
