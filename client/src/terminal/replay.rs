//! The screen that a program's output left, as bytes for another terminal. Pure.

use super::boundary::{boundary_len, split_sequences};
use super::modes::{Modes, RESET_MARGINS};
use std::num::NonZeroU16;
use std::panic::{AssertUnwindSafe, catch_unwind};
use toold_ansi::safe_start;
use toold_proto::pty::PtySize;

/// Bytes of the output's end that are replayed. A full screen with colours is 10 to 40 KiB.
pub const TAIL_LEN: u64 = 256 * 1024;
/// Bytes of its start, where programs set up the terminal.
pub const HEAD_LEN: u64 = 16 * 1024;
/// Sequences that remove everything before them from the screen.
const CLEAR_SEQUENCES: [&[u8]; 3] = [b"\x1b[2J", b"\x1b[?1049h", b"\x1bc"];

/// The known part of a program's output.
#[derive(Debug, Default)]
pub struct RecordedOutput {
    /// Its start, which often sets up the terminal. Empty if `tail` is the whole output.
    pub head: Vec<u8>,
    pub tail: Vec<u8>,
}

/// Bytes that draw a screen, and facts about it.
pub struct ScreenSnapshot {
    pub bytes: Vec<u8>,
    /// Number of bytes of the tail that it covers. The rest is an unfinished sequence.
    pub used: usize,
    /// The alternate screen is active.
    pub full_screen: bool,
    /// The program writes at cursor positions, not line by line.
    pub uses_cursor_addressing: bool,
    /// The known margins cover only a part of the screen: they may have been all of it before it grew.
    pub outgrown: bool,
}

/// Draws the screen of a program whose terminal has the size `was` on a terminal of the size `now`. The text there scrolls away
/// first, or stays behind the alternate screen. Nothing in the result makes the terminal answer.
pub fn snapshot(recorded: &RecordedOutput, was: PtySize, now: PtySize) -> ScreenSnapshot {
    build_snapshot(recorded, was, now, &b"\r\n".repeat(now.rows as usize))
}

/// Draws the same over the text that is there.
pub fn snapshot_in_place(recorded: &RecordedOutput, was: PtySize, now: PtySize) -> ScreenSnapshot {
    build_snapshot(recorded, was, now, b"")
}

fn build_snapshot(recorded: &RecordedOutput, was: PtySize, now: PtySize, scroll: &[u8]) -> ScreenSnapshot {
    let used = boundary_len(&recorded.tail);
    let begin = if recorded.head.is_empty() { 0 } else { safe_start(&recorded.tail[..used]) };
    let tail = &recorded.tail[begin..used];
    let head = &recorded.head[..boundary_len(&recorded.head)];
    let mut modes = Modes::default();
    modes.feed(head);
    modes.feed(tail);
    // On the alternate screen programs set margins briefly, and then to the whole screen. The size of the screen at that time is
    // not recorded.
    let from_top = modes.alternate_screen() && modes.margins().is_some_and(|(top, _)| top == 1);
    let outgrown = from_top && modes.margins().is_some_and(|(_, bottom)| u32::from(bottom) < was.rows);
    let reset_margins = modes.margins().is_some() && (from_top || was != now);
    if reset_margins {
        modes.forget_margins();
    }
    let emulated = if modes.exceeds_emulator() { None } else { catch_panic(|| emulate(head, tail, &modes, was, now)) };
    // A full-screen program is drawn on the alternate screen, and the text of ours comes back after it.
    let mut bytes = Vec::new();
    if !modes.alternate_screen() {
        bytes = [scroll, b"\x1b[m\x1b[H\x1b[J"].concat();
    }
    bytes.extend(emulated.unwrap_or_else(|| {
        let reset = if reset_margins { RESET_MARGINS.as_bytes() } else { b"" };
        [&raw_replay(head, tail), reset].concat()
    }));
    ScreenSnapshot {
        bytes,
        used,
        full_screen: modes.alternate_screen(),
        uses_cursor_addressing: modes.uses_cursor_addressing(was.rows as usize),
        outgrown,
    }
}

/// Feeds the output to an emulator and returns its screen.
fn emulate(head: &[u8], tail: &[u8], modes: &Modes, was: PtySize, now: PtySize) -> Vec<u8> {
    let (rows, cols) = parser_size(was);
    let (rows_now, cols_now) = parser_size(now);
    let mut emulator = vt100::Parser::new(rows, cols, 0);
    emulator.process(head);
    emulator.process(tail);
    emulator.set_size(rows_now, cols_now);
    let mut out = String::new();
    let screen = emulator.screen();
    if modes.alternate_screen() {
        out += "\x1b[?1049h";
    }
    out += &screen.contents_formatted();
    out += "\x1b[?25h";
    out += &modes.enable_sequence();
    // The emulator puts a cursor behind the last column there by writing that column again.
    out += "\x1b[m";
    out += &screen.cursor_state_formatted();
    out += &screen.attributes_formatted();
    out.into_bytes()
}

/// Returns rows and columns for the emulator, with its defaults for sizes that it does not accept.
pub(super) fn parser_size(size: PtySize) -> (NonZeroU16, NonZeroU16) {
    let side = |n: u32, default| u16::try_from(n).ok().and_then(NonZeroU16::new).unwrap_or(default);
    (side(size.rows, vt100::Parser::DEFAULT_ROWS), side(size.cols, vt100::Parser::DEFAULT_COLS))
}

/// Returns the bytes themselves from the last clear on, without queries.
fn raw_replay(head: &[u8], tail: &[u8]) -> Vec<u8> {
    let ends = |mark: &&[u8]| tail.windows(mark.len()).rposition(|part| part == *mark);
    let begin = CLEAR_SEQUENCES.iter().filter_map(ends).max().unwrap_or(0);
    let mut modes = Modes::default();
    modes.feed(head);
    modes.feed(&tail[..begin]);
    let mut out = Vec::new();
    if modes.alternate_screen() {
        out.extend(b"\x1b[?1049h\x1b[H");
    }
    out.extend(modes.enable_sequence().bytes());
    split_sequences(&tail[begin..]).filter(|piece| !is_query(piece)).for_each(|piece| out.extend(piece));
    out
}

/// Returns true if the terminal would answer this old sequence. Titles and other control strings count as queries too: some
/// are, and none is on the screen.
fn is_query(piece: &[u8]) -> bool {
    match piece {
        [0x1b, b'[', middle @ .., end] => match end {
            b'c' | b'n' | b't' | b'x' => true,
            b'p' => middle.contains(&b'$'),
            b'q' => middle.starts_with(b">"),
            b'u' => middle.starts_with(b"?"),
            // Draws, or sets a mode.
            _ => false,
        },
        [0x1b, b']' | b'P' | b'X' | b'^' | b'_' | b'Z', ..] | [0x05] => true,
        // Text, or a sequence of two characters.
        _ => false,
    }
}

/// Returns the result, or None if the emulator panics over a program's output. The panic is not printed, since there is another
/// way to show the output.
pub(super) fn catch_panic<T>(work: impl FnOnce() -> T) -> Option<T> {
    let hook = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| {}));
    let result = catch_unwind(AssertUnwindSafe(work)).ok();
    std::panic::set_hook(hook);
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SIZE: PtySize = PtySize { rows: 6, cols: 20 };

    fn seen(bytes: &[u8], size: PtySize) -> vt100::Parser {
        let rows = NonZeroU16::new(size.rows as u16).expect("a size");
        let mut parser = vt100::Parser::new(rows, NonZeroU16::new(size.cols as u16).expect("a size"), 0);
        parser.process(bytes);
        parser
    }

    fn shown(tail: &[u8]) -> vt100::Parser {
        let recorded = RecordedOutput { head: Vec::new(), tail: tail.into() };
        let mut bytes = b"an old line\r\n$ toolctl attach x\r\n".to_vec();
        bytes.extend(snapshot(&recorded, SIZE, SIZE).bytes);
        seen(&bytes, SIZE)
    }

    #[test]
    fn a_snapshot_shows_the_screen_that_the_program_left() {
        let full = b"$ prog\r\n\x1b[?1049h\x1b[?25l\x1b[2J\x1b[2;3Htitle\x1b[4;5H\x1b[31mred\x1b[2;3HTITLE\x1b[?1000h";
        let (actual, expected) = (shown(full), seen(full, SIZE));
        assert_eq!(actual.screen().state_formatted(), expected.screen().state_formatted());
        assert!(actual.screen().alternate_screen() && actual.screen().hide_cursor());
        let mut after = actual;
        after.process(b"\x1b[?1049l");
        assert_eq!(after.screen().contents(), "an old line\n$ toolctl attach x", "our text is still there behind it");
    }

    #[test]
    fn a_snapshot_in_place_does_not_scroll() {
        let table = b"\x1b[H\x1b[Jone\x1b[K\r\n\x1b[31mtwo\x1b[m\x1b[K\r\n\x1b[2;4H";
        let mut actual = seen(table, SIZE);
        actual.process(b"\x1b7\x1b[6;1H[toolctl: a message]\x1b8 and other damage");
        actual
            .process(&snapshot_in_place(&RecordedOutput { head: Vec::new(), tail: table.to_vec() }, SIZE, SIZE).bytes);
        assert_eq!(actual.screen().state_formatted(), seen(table, SIZE).screen().state_formatted());
    }

    #[test]
    fn an_unfinished_sequence_is_not_part_of_the_snapshot() {
        let recorded = RecordedOutput { head: Vec::new(), tail: b"one\r\ntwo\x1b[3".to_vec() };
        let snapshot = snapshot(&recorded, SIZE, SIZE);
        assert_eq!((snapshot.used, snapshot.full_screen), (8, false));
        let mut all = seen(&snapshot.bytes, SIZE);
        all.process(b"\x1b[31m!");
        assert_eq!(all.screen().contents(), "one\ntwo!");
    }

    #[test]
    fn modes_set_in_the_head_apply_although_the_middle_is_missing() {
        let recorded =
            RecordedOutput { head: b"\x1b[?1049h\x1b[?25l".to_vec(), tail: b"4;4Hjunk\x1b[2J\x1b[HTop".to_vec() };
        let screen = seen(&snapshot(&recorded, SIZE, SIZE).bytes, SIZE);
        assert_eq!(screen.screen().contents(), "Top");
        assert!(screen.screen().alternate_screen() && screen.screen().hide_cursor());
    }

    #[test]
    fn output_that_the_emulator_cannot_draw_is_replayed_without_queries() {
        let old = b"old\x1b[2J".as_slice();
        let fresh = b"\x1b[2J\x1b[H\x1b[c\x1b[6n\x1b]11;?\x07\x1b(0lqqk\x1b(B\x1b[>q".as_slice();
        let recorded = RecordedOutput { head: Vec::new(), tail: [old, fresh].concat() };
        let bytes = snapshot(&recorded, SIZE, SIZE).bytes;
        let expected = b"\x1b[2J\x1b[H\x1b(0lqqk\x1b(B";
        assert!(bytes.ends_with(&[b"\x1b[H\x1b[J", &expected[..]].concat()), "{:?}", String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn a_smaller_terminal_shows_the_part_that_fits() {
        let recorded =
            RecordedOutput { head: Vec::new(), tail: b"\x1b[?1049h\x1b[1;1Habcdefghij\x1b[2;1Hxyz".to_vec() };
        let now = PtySize { rows: 3, cols: 4 };
        let screen = seen(&snapshot(&recorded, SIZE, now).bytes, now);
        assert_eq!(screen.screen().contents(), "abcd\nxyz");
    }

    #[test]
    fn margins_of_another_size_are_dropped() {
        let large = PtySize { rows: 9, cols: 20 };
        // The emulator cannot draw the last one, so it is replayed.
        for program in ["\x1b[?1049h\x1b[1;6r", "\x1b[2;5r", "\x1b[?1049h\x1b[1;6r\x1b(0q\x1b(B"] {
            let recorded = RecordedOutput { head: Vec::new(), tail: format!("{program}\x1b[2;3H").into_bytes() };
            let snapshot = snapshot(&recorded, SIZE, large);
            let mut modes = Modes::default();
            modes.feed(&snapshot.bytes);
            assert_eq!((modes.margins(), snapshot.outgrown), (None, false), "{program:?}");
            assert_eq!(seen(&snapshot.bytes, large).screen().cursor_position(), (1, 2), "{program:?}");
        }
        let known = |tail: &str, size| {
            let snapshot = snapshot(&RecordedOutput { head: Vec::new(), tail: tail.into() }, size, size);
            let mut modes = Modes::default();
            modes.feed(&snapshot.bytes);
            (modes.margins(), snapshot.outgrown)
        };
        assert_eq!(known("\x1b[1;5r", SIZE), (Some((1, 5)), false));
        assert_eq!(known("\x1b[?1049h\x1b[2;5r", SIZE), (Some((2, 5)), false));
        assert_eq!(known("\x1b[?1049h\x1b[1;6r", SIZE), (None, false), "the whole screen");
        assert_eq!(known("\x1b[?1049h\x1b[1;6r", large), (None, true), "the whole screen before it grew, perhaps");
    }

    #[test]
    fn a_panic_of_the_emulator_gives_none() {
        assert_eq!((catch_panic(|| 1), catch_panic(|| -> i32 { panic!("over a program's output") })), (Some(1), None));
    }

    fn output() -> impl Strategy<Value = Vec<u8>> {
        let part = prop_oneof![
            Just("text\r\n".to_owned()),
            Just("日本".to_owned()),
            Just("\x1b[2J".to_owned()),
            Just("\x1b[?1049h".to_owned()),
            Just("\x1b[?1049l".to_owned()),
            Just("\x1b[?25l".to_owned()),
            Just("\x1b[7m".to_owned()),
            Just("\x1b[K".to_owned()),
            Just("\x1b[L".to_owned()),
            (0u8..9, 0u8..25).prop_map(|(row, col)| format!("\x1b[{row};{col}H")),
            "[a-z]{1,12}",
        ];
        proptest::collection::vec(part, 0..30).prop_map(|parts| parts.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn any_screen_equals_its_snapshot(tail in output()) {
            let (actual, expected) = (shown(&tail), seen(&tail, SIZE));
            prop_assert_eq!(actual.screen().contents_formatted(), expected.screen().contents_formatted());
            prop_assert_eq!(actual.screen().alternate_screen(), expected.screen().alternate_screen());
        }

        #[test]
        fn any_bytes_give_a_snapshot(head in proptest::collection::vec(any::<u8>(), 0..40), tail in proptest::collection::vec(any::<u8>(), 0..200), rows in 0u32..5, cols in 0u32..5) {
            let recorded = RecordedOutput { head, tail };
            let odd = PtySize { rows, cols };
            prop_assert!(snapshot(&recorded, odd, SIZE).used <= recorded.tail.len());
            prop_assert!(snapshot(&recorded, SIZE, odd).used <= recorded.tail.len());
        }
    }
}
