//! Rebuilds the screen of a terminal process from its log. Nothing is kept between calls: the screen is the same after a
//! restart of the daemon and after the exit.
//!
//! The work is bounded: the end of the output is drawn, and before it the start, where programs set up the terminal. It
//! takes one turn among the searches, on a thread that no call waits for.

use super::Proc;
use crate::log::Log;
use crate::store::record::Record;
use std::io;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use toold_ansi::{DecGraphics, safe_start};
use toold_proto::pty::PtySize;

/// Bytes of the output's end that are drawn. A full screen with colours is 10 to 40 KiB.
const TAIL_LEN: u64 = 1024 * 1024;
/// Bytes of its start that are drawn before it.
const HEAD_LEN: u64 = 16 * 1024;
/// Bytes that are read at once.
const PIECE_LEN: usize = 64 * 1024;
/// The largest screen, in characters: 512 rows of 512. The emulator needs up to 64 bytes for each.
pub const MAX_CELLS: u32 = 512 * 512;
/// Rows that scrolled away and come back when the terminal grows.
const SCROLLBACK_ROWS: usize = 64;
/// The longest title that is kept.
const MAX_TITLE_LEN: usize = 1024;

/// The screen of a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screen {
    pub size: PtySize,
    pub text: String,
    /// Row and column, from 0.
    pub cursor: (u32, u32),
    pub cursor_visible: bool,
    pub title: Option<String>,
    pub alternate: bool,
    /// The program has turned on application cursor mode (DECCKM).
    pub application_cursor: bool,
    /// The end of the output that is drawn.
    pub end: u64,
}

/// The reason why there is no screen.
#[derive(Debug)]
pub enum ScreenError {
    NoTerminal,
    /// The terminal is larger than `MAX_CELLS`.
    TooLarge(PtySize),
    /// The log cannot be read, or the emulator failed over the output.
    Io(io::Error),
}

/// Rebuilds the screen as it is now.
pub async fn read(proc: &Arc<Proc>) -> Result<Screen, ScreenError> {
    let state = proc.state();
    let first = proc.spec.pty.ok_or(ScreenError::NoTerminal)?;
    let last = proc.terminal_size(&state).ok_or(ScreenError::NoTerminal)?;
    if last.rows.saturating_mul(last.cols) > MAX_CELLS {
        return Err(ScreenError::TooLarge(last));
    }
    let (dir, end) = (proc.dir.clone(), state.progress.counts.end);
    let work = move |cancelled: Arc<AtomicBool>| {
        // A record that cannot be read has no sizes: the output is drawn in the last one.
        let resizes = Record::open(&dir).ok().and_then(|record| record.resizes()).unwrap_or_default();
        let size = |rows: u16, cols: u16| PtySize { rows: rows.into(), cols: cols.into() };
        let changes: Vec<(u64, PtySize)> = resizes.all().iter().map(|r| (r.at, size(r.rows, r.cols))).collect();
        let first = match changes.first() {
            // A shim of an earlier version recorded no sizes.
            None => last,
            Some((_, known)) if resizes.is_cut() => *known,
            Some(_) => first,
        };
        replay(&Log::open(&dir, end)?, &Sizes { first, changes, last }, &cancelled)
    };
    proc.sink.searches.turn(work).await.flatten().map_err(ScreenError::Io)
}

/// The sizes that a terminal had.
struct Sizes {
    first: PtySize,
    /// Later ones, by the offset from which they count.
    changes: Vec<(u64, PtySize)>,
    last: PtySize,
}

/// Draws the output.
fn replay(log: &Log, sizes: &Sizes, cancelled: &AtomicBool) -> io::Result<Screen> {
    let end = log.end();
    let mut emulator = Emulator::new(sizes.first);
    let mut resizes = sizes.changes.iter().peekable();
    let mut buffer = vec![0; PIECE_LEN];
    let tail = end.saturating_sub(TAIL_LEN);
    let parts = if tail > HEAD_LEN { [0..HEAD_LEN, tail..end] } else { [0..end, end..end] };
    for part in parts {
        let (mut at, mut is_cut) = (part.start, part.start > 0);
        while at < part.end {
            if cancelled.load(Ordering::Relaxed) {
                return Err(io::ErrorKind::Interrupted.into());
            }
            while let Some((_, size)) = resizes.next_if(|(from, _)| *from <= at) {
                emulator.resize(*size);
            }
            let until = resizes.peek().map_or(part.end, |(from, _)| part.end.min(*from));
            let room = PIECE_LEN.min(usize::try_from(until - at).unwrap_or(PIECE_LEN));
            let filled = log.read_into(at, &mut buffer[..room])?;
            let bytes = &buffer[..usize::try_from(filled.next - filled.from).unwrap_or(0).min(room)];
            is_cut |= filled.gap.is_some();
            if std::mem::take(&mut is_cut) {
                emulator.cancel_sequence();
                emulator.process(&bytes[safe_start(bytes)..]);
            } else {
                emulator.process(bytes);
            }
            if filled.next <= at {
                break;
            }
            at = filled.next;
        }
    }
    emulator.resize(sizes.last);
    Ok(emulator.screen(end))
}

/// A terminal without a window.
struct Emulator {
    parser: vt100::Parser<Title>,
    graphics: DecGraphics,
}

#[derive(Default)]
struct Title(Option<Vec<u8>>);

impl vt100::Callbacks for Title {
    fn set_window_title(&mut self, _: &mut vt100::Screen, title: &[u8]) {
        self.0 = Some(title[..title.len().min(MAX_TITLE_LEN)].to_vec());
    }
}

impl Emulator {
    fn new(size: PtySize) -> Emulator {
        let default = (vt100::Parser::DEFAULT_ROWS, vt100::Parser::DEFAULT_COLS);
        let (rows, cols) = emulated_size(size).unwrap_or(default);
        let parser = vt100::Parser::new_with_callbacks(rows, cols, SCROLLBACK_ROWS, Title::default());
        Emulator { parser, graphics: DecGraphics::default() }
    }

    /// Sets the size. One that is too large is left out: a smaller one follows it, or there is no screen.
    fn resize(&mut self, size: PtySize) {
        if let Some((rows, cols)) = emulated_size(size) {
            self.parser.set_size(rows, cols);
        }
    }

    fn process(&mut self, bytes: &[u8]) {
        // The emulator does not know the character set of lines and corners.
        let text = self.graphics.translate(bytes);
        self.parser.process(&text);
    }

    /// Ends a sequence whose end is missing.
    fn cancel_sequence(&mut self) {
        self.process(b"\x18");
    }

    fn screen(&self, end: u64) -> Screen {
        let screen = self.parser.screen();
        let (rows, cols) = screen.size();
        let mut text = String::new();
        for row in screen.rows(0, cols.get()) {
            text.push_str(row.trim_end_matches(' '));
            text.push('\n');
        }
        text.truncate(text.trim_end_matches('\n').len());
        let (row, col) = screen.cursor_position();
        let title = self.parser.callbacks().0.as_deref().map(|title| String::from_utf8_lossy(title).into_owned());
        Screen {
            size: PtySize { rows: rows.get().into(), cols: cols.get().into() },
            text,
            // After a character in the last column the cursor is behind it.
            cursor: (row.into(), col.min(cols.get() - 1).into()),
            cursor_visible: !screen.hide_cursor(),
            title: title.filter(|title| !title.is_empty()),
            alternate: screen.alternate_screen(),
            application_cursor: screen.application_cursor(),
            end,
        }
    }
}

/// Returns rows and columns for the emulator. None: too large, or zero.
fn emulated_size(size: PtySize) -> Option<(NonZeroU16, NonZeroU16)> {
    let side = |n: u32| u16::try_from(n).ok().and_then(NonZeroU16::new);
    let fits = size.rows.saturating_mul(size.cols) <= MAX_CELLS;
    Some((side(size.rows)?, side(size.cols)?)).filter(|_| fits)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const SIZE: PtySize = PtySize { rows: 6, cols: 20 };

    /// Returns the log of one file with these bytes.
    fn log(bytes: &[u8]) -> Log {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(bytes).expect("it is written");
        Log::of_files(0, file, None).expect("a log")
    }

    fn drawn_with(bytes: &[u8], sizes: &Sizes) -> Screen {
        replay(&log(bytes), sizes, &AtomicBool::new(false)).expect("it is read")
    }

    fn drawn(bytes: &[u8]) -> Screen {
        drawn_with(bytes, &Sizes { first: SIZE, changes: Vec::new(), last: SIZE })
    }

    #[test]
    fn a_screen_has_its_rows_cursor_title_and_modes() {
        let screen = drawn(
            b"old\x1b[?1049h\x1b[?1h\x1b[?25l\x1b[2J\x1b]2;a title\x07\x1b[2;3Hrow two   \x1b(0\x1b[4;1Hlqk\x1b(B\x1b[2;3H",
        );
        assert_eq!(
            screen,
            Screen {
                size: SIZE,
                text: "\n  row two\n\n┌─┐".into(),
                cursor: (1, 2),
                cursor_visible: false,
                title: Some("a title".into()),
                alternate: true,
                application_cursor: true,
                end: screen.end,
            }
        );
        let plain = drawn(b"$ echo hi\r\nhi\r\n$ ");
        assert_eq!((plain.text.as_str(), plain.cursor, plain.alternate), ("$ echo hi\nhi\n$", (2, 2), false));
        assert_eq!((drawn(b"").text, drawn(b"01234567890123456789").cursor), (String::new(), (0, 19)));
    }

    #[test]
    fn only_start_and_end_of_long_output_are_drawn() {
        let mut output = b"\x1b[?1049h\x1b[?1h\x1b[1;1Hframe".to_vec();
        output.resize(HEAD_LEN as usize - 3, 0);
        // The head ends inside a sequence, and the middle would switch the screen.
        output.extend(b"\x1b[31");
        output.extend(b"m\x1b[?1049l".repeat(TAIL_LEN as usize / 9));
        let tail = b"\x1b[4;4Hend ".repeat(TAIL_LEN as usize / 10 + 1);
        output.extend(&tail);
        let screen = drawn(&output);
        assert_eq!(
            (screen.text.as_str(), screen.alternate, screen.application_cursor),
            ("frame\n\n\n   end", true, true)
        );
        assert_eq!(screen.end, output.len() as u64);
    }

    #[test]
    fn output_is_drawn_in_the_size_that_the_terminal_had() {
        let large = PtySize { rows: 8, cols: 30 };
        let before = b"\x1b[?1049h\x1b[1;6r\x1b[6;1Hlast".to_vec();
        // The broken code kept the margins of the small screen: the new line scrolled rows 1 to 6.
        let after = b"\x1b[2J\x1b[1;1Htop\x1b[6;1Hsix\nseven\x1b[1;26Hwide";
        let sizes = Sizes { first: SIZE, changes: vec![(before.len() as u64, large)], last: large };
        let screen = drawn_with(&[&before[..], after].concat(), &sizes);
        assert_eq!(
            (screen.text.as_str(), screen.size),
            ("top                      wide\n\n\n\n\nsix\n   seven", large)
        );
        let shrunk = Sizes { first: large, changes: vec![(3, SIZE)], last: SIZE };
        assert_eq!(drawn_with(b"\x1b[8;1Hbottom", &shrunk).size, SIZE);
        let huge = PtySize { rows: 10_000, cols: 10_000 };
        let detour = Sizes { first: SIZE, changes: vec![(2, huge), (3, SIZE)], last: SIZE };
        assert_eq!(drawn_with(b"hello", &detour).text, "hello");
    }

    #[test]
    fn a_caller_that_has_gone_stops_the_work() {
        let sizes = Sizes { first: SIZE, changes: Vec::new(), last: SIZE };
        let stopped = replay(&log(b"text"), &sizes, &AtomicBool::new(true));
        assert_eq!(stopped.map_err(|e| e.kind()), Err(io::ErrorKind::Interrupted));
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_and_sizes_give_a_screen(
            bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..300),
            changes in proptest::collection::vec((0u64..300, 1u32..9, 1u32..9), 0..5),
        ) {
            let mut changes: Vec<_> = changes.into_iter().map(|(at, rows, cols)| (at, PtySize { rows, cols })).collect();
            changes.sort_by_key(|(at, _)| *at);
            let screen = drawn_with(&bytes, &Sizes { first: SIZE, changes, last: SIZE });
            proptest::prop_assert!(screen.text.lines().count() <= 6 && screen.cursor.0 < 6 && screen.cursor.1 < 20);
        }
    }
}
