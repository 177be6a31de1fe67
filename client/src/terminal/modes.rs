//! Terminal modes that a program's output has changed, and the sequences that reset exactly those. Pure.

use super::tokens::{Token, Tokenizer};
use std::collections::BTreeSet;
use std::fmt::Write;
use toold_ansi::State;

/// Private modes (`CSI ? n h`) that are off by default: cursor keys, reverse video, origin, mouse, focus, paste and other modes
/// in which the terminal sends to the program unasked.
const DEFAULT_OFF: [u16; 19] =
    [1, 5, 6, 9, 66, 69, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1015, 1016, 2004, 2026, 2031, 2048];
/// Private modes that are on by default: lines wrap, the cursor is shown.
const DEFAULT_ON: [u16; 2] = [7, 25];
/// The three modes that switch to the alternate screen.
const ALTERNATE_SCREEN_MODES: [u16; 3] = [47, 1047, 1049];
/// Origin mode and side margins, which our emulator does not know.
const UNSUPPORTED_MODES: [u16; 2] = [6, 69];

/// Resets the margins and keeps the cursor, which the reset alone would move home.
pub const RESET_MARGINS: &str = "\x1b7\x1b[r\x1b8";

/// Follows the modes in a program's output.
#[derive(Default)]
pub struct Modes {
    tokenizer: Tokenizer,
    state: ModeState,
}

/// Differences from a terminal's default state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct ModeState {
    /// Private modes that are changed, except those of the alternate screen.
    changed: BTreeSet<u16>,
    alternate: Option<u16>,
    keypad: bool,
    insert: bool,
    attributes: bool,
    margins: Option<(u16, u16)>,
    /// G0 is the character set of lines and corners.
    g0_graphics: bool,
    /// G1 is in use instead of G0.
    shift_out: bool,
    /// One of these was set since the screen was cleared.
    drew_graphics: bool,
    /// The keyboard protocol's stack of flags.
    keyboard_flags: Vec<u16>,
    modify_other_keys: u16,
    cursor_style: u16,
    /// Newlines since the cursor of the primary screen was last addressed, if it ever was.
    lines_since_addressing: Option<usize>,
    /// The cursor of the primary screen is not on a fresh line, as far as is known.
    mid_line: bool,
    /// The same of the saved cursor (`ESC 7`).
    saved_mid_line: bool,
}

impl Modes {
    pub fn feed(&mut self, bytes: &[u8]) {
        // Most output is plain text, which changes no mode.
        let plain = |byte: &u8| matches!(byte, 0x20..=0x7e | b'\t' | b'\n' | b'\r');
        if self.at_boundary() && bytes.iter().all(plain) {
            self.state.count_lines(bytes.iter().filter(|byte| **byte == b'\n').count());
            if let Some(last) = bytes.iter().rfind(|byte| **byte != b'\r') {
                self.state.set_mid_line(*last != b'\n');
            }
            return;
        }
        for byte in bytes {
            if let Some(token) = self.tokenizer.next(*byte) {
                self.state.apply(&token);
            }
        }
    }

    /// Returns true if the output so far does not end inside a character or sequence, so that a message can be printed.
    pub fn at_boundary(&self) -> bool {
        self.tokenizer.state() == State::Ground
    }

    /// Returns the number of these bytes up to the next boundary, or None if there is none in them.
    pub fn until_boundary(&self, bytes: &[u8]) -> Option<usize> {
        let mut state = self.tokenizer.state();
        let mut ends = |byte: &u8| {
            state = state.after(*byte);
            state == State::Ground
        };
        if self.at_boundary() { Some(0) } else { bytes.iter().position(&mut ends).map(|last| last + 1) }
    }

    /// Returns the first and the last row of the scrolling region, if one is set.
    pub fn margins(&self) -> Option<(u16, u16)> {
        self.state.margins
    }

    /// Forgets the scrolling region, as a terminal does when it is resized.
    pub fn forget_margins(&mut self) {
        self.state.margins = None;
    }

    pub fn alternate_screen(&self) -> bool {
        self.state.alternate.is_some()
    }

    /// Returns true if text was written at cursor positions, so that a line printed between would shift it: on the alternate
    /// screen or, as `top` does it, without one. After `rows` lines that text has scrolled away.
    pub fn uses_cursor_addressing(&self, rows: usize) -> bool {
        self.alternate_screen() || self.primary_uses_cursor_addressing(rows)
    }

    /// Returns the same for the primary screen, also while the alternate one is shown.
    pub fn primary_uses_cursor_addressing(&self, rows: usize) -> bool {
        self.state.lines_since_addressing.is_some_and(|lines| lines < rows)
    }

    /// Returns true if the cursor of the primary screen may be behind text on its line.
    pub fn mid_line(&self) -> bool {
        self.state.mid_line
    }

    /// Notes that a message of ours ended its line.
    pub fn set_fresh_line(&mut self) {
        self.state.set_mid_line(false);
    }

    /// Forgets that the cursor was addressed: we did it, not the program.
    pub fn forget_cursor_addressing(&mut self) {
        self.state.lines_since_addressing = None;
    }

    /// Returns true if the output used a feature that the emulator cannot draw.
    pub fn exceeds_emulator(&self) -> bool {
        self.state.drew_graphics || UNSUPPORTED_MODES.iter().any(|mode| self.state.changed.contains(mode))
    }

    /// Returns the bytes that set the same modes in another terminal, whose screen is drawn already. They do not enter the
    /// alternate screen: that has to happen before drawing.
    pub fn enable_sequence(&self) -> String {
        let state = &self.state;
        let mut out = String::new();
        if let Some((top, bottom)) = state.margins {
            let _ = write!(out, "\x1b[{top};{bottom}r");
        }
        for mode in &state.changed {
            let set = if DEFAULT_ON.contains(mode) { 'l' } else { 'h' };
            let _ = write!(out, "\x1b[?{mode}{set}");
        }
        for (is_set, sequence) in [
            (state.keypad, "\x1b="),
            (state.insert, "\x1b[4h"),
            (state.g0_graphics, "\x1b(0"),
            (state.shift_out, "\x0e"),
        ] {
            out += if is_set { sequence } else { "" };
        }
        for flags in &state.keyboard_flags {
            let _ = write!(out, "\x1b[>{flags}u");
        }
        if state.modify_other_keys > 0 {
            let _ = write!(out, "\x1b[>4;{}m", state.modify_other_keys);
        }
        if state.cursor_style > 0 {
            let _ = write!(out, "\x1b[{} q", state.cursor_style);
        }
        out
    }

    /// Returns the bytes that reset the changed modes, and nothing else.
    pub fn reset_sequence(&self) -> String {
        let state = &self.state;
        let mut out = String::new();
        if !state.keyboard_flags.is_empty() {
            // Each screen has its own stack, so this comes before leaving the alternate one.
            let _ = write!(out, "\x1b[<{}u", state.keyboard_flags.len());
        }
        for mode in &state.changed {
            let set = if DEFAULT_ON.contains(mode) { 'h' } else { 'l' };
            let _ = write!(out, "\x1b[?{mode}{set}");
        }
        let simple = [
            (state.modify_other_keys > 0, "\x1b[>4;0m"),
            (state.cursor_style > 0, "\x1b[0 q"),
            (state.keypad, "\x1b>"),
            (state.insert, "\x1b[4l"),
            (state.g0_graphics, "\x1b(B"),
            (state.shift_out, "\x0f"),
            (state.attributes, "\x1b[m"),
            // Resetting the margins moves the cursor home. On the alternate screen that does not
            // matter, and there the saved position may be the other screen's.
            (state.margins.is_some() && state.alternate.is_some(), "\x1b[r"),
            (state.margins.is_some() && state.alternate.is_none(), RESET_MARGINS),
        ];
        simple.into_iter().filter(|(is_set, _)| *is_set).for_each(|(_, sequence)| out += sequence);
        if let Some(mode) = state.alternate {
            let _ = write!(out, "\x1b[?{mode}l");
        }
        out
    }
}

impl ModeState {
    fn set_mid_line(&mut self, mid_line: bool) {
        if self.alternate.is_none() {
            self.mid_line = mid_line;
        }
    }

    /// Notes that the cursor was addressed.
    fn address_cursor(&mut self) {
        self.set_mid_line(true);
        if self.alternate.is_none() {
            self.lines_since_addressing = Some(0);
        }
    }

    fn count_lines(&mut self, count: usize) {
        if self.alternate.is_some() {
            return;
        }
        self.lines_since_addressing = self.lines_since_addressing.map(|lines| lines.saturating_add(count));
    }

    fn set_private_mode(&mut self, mode: u16, set: bool) {
        if ALTERNATE_SCREEN_MODES.contains(&mode) {
            // Only one of the three restores the cursor position.
            self.mid_line |= !set && self.alternate.is_some() && mode != 1049;
            self.alternate = set.then_some(mode);
            self.drew_graphics = self.g0_graphics || self.shift_out;
        } else if DEFAULT_OFF.contains(&mode) && set || DEFAULT_ON.contains(&mode) && !set {
            self.changed.insert(mode);
        } else {
            self.changed.remove(&mode);
        }
    }

    /// Handles `CSI ! p`, which resets everything but the screens, the mouse and the keyboard.
    fn soft_reset(&mut self) {
        self.changed.retain(|mode| ![1, 6, 7, 25, 66, 69].contains(mode));
        let kept = std::mem::take(self);
        self.changed = kept.changed;
        self.alternate = kept.alternate;
        self.keyboard_flags = kept.keyboard_flags;
        self.modify_other_keys = kept.modify_other_keys;
        self.cursor_style = kept.cursor_style;
        self.drew_graphics = kept.drew_graphics;
        self.lines_since_addressing = kept.lines_since_addressing;
        self.mid_line = kept.mid_line;
        self.saved_mid_line = kept.saved_mid_line;
    }

    fn keyboard(&mut self, kind: u8, params: &[u16]) {
        let first = params.first().copied().unwrap_or(0);
        match kind {
            b'>' if self.keyboard_flags.len() < 16 => self.keyboard_flags.push(first),
            b'<' => self.keyboard_flags.truncate(self.keyboard_flags.len().saturating_sub(first.max(1).into())),
            b'=' => match self.keyboard_flags.last_mut() {
                Some(flags) => *flags = first,
                None => self.keyboard_flags.push(first),
            },
            // A query, or more flags than a terminal keeps.
            _ => {}
        }
    }

    fn apply(&mut self, token: &Token) {
        match token {
            Token::Text => self.set_mid_line(true),
            Token::Control(byte) => self.control(*byte),
            Token::Escape { intermediates, last } => self.escape(intermediates, *last),
            Token::Csi { params, intermediates, last } => self.csi(params, intermediates, *last),
        }
    }

    fn control(&mut self, byte: u8) {
        match byte {
            0x0e => {
                self.shift_out = true;
                self.drew_graphics = true;
            }
            0x0f => self.shift_out = false,
            b'\n' => {
                self.count_lines(1);
                self.set_mid_line(false);
            }
            b'\t' => self.set_mid_line(true),
            // Moves the cursor, or rings the bell.
            _ => {}
        }
    }

    fn escape(&mut self, intermediates: &[u8], last: u8) {
        match (intermediates, last) {
            ([], b'=') => self.keypad = true,
            ([], b'>') => self.keypad = false,
            ([], b'c') => *self = ModeState::default(),
            ([], b'7') => self.saved_mid_line = self.mid_line,
            ([], b'8') => self.set_mid_line(self.saved_mid_line),
            ([b'('], b'0') => {
                self.g0_graphics = true;
                self.drew_graphics = true;
            }
            ([b'('], _) => self.g0_graphics = false,
            // Changes the screen, not the terminal.
            _ => {}
        }
    }

    fn csi(&mut self, params: &[u16], intermediates: &[u8], last: u8) {
        let get = |i: usize| params.get(i).copied().unwrap_or(0);
        match (intermediates, last) {
            ([b'?'], b'h' | b'l') => params.iter().for_each(|mode| self.set_private_mode(*mode, last == b'h')),
            ([], b'h' | b'l') if get(0) == 4 => self.insert = last == b'h',
            ([], b'm') => self.attributes = !matches!(params, [] | [0]),
            ([], b'r') => self.margins = (get(0) > 1 || get(1) > 0).then(|| (get(0).max(1), get(1))),
            ([], b'H' | b'f' | b'd') => self.address_cursor(),
            ([], b'A'..=b'G') => self.set_mid_line(true),
            ([], b'J') if get(0) == 2 => self.drew_graphics = self.g0_graphics || self.shift_out,
            ([b'!'], b'p') => self.soft_reset(),
            ([b' '], b'q') => self.cursor_style = get(0),
            ([b'>'], b'm') if get(0) == 4 => self.modify_other_keys = get(1),
            ([kind @ (b'>' | b'<' | b'=')], b'u') => self.keyboard(*kind, params),
            // Changes the screen, not the terminal.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn after(output: &str) -> Modes {
        let mut modes = Modes::default();
        modes.feed(output.as_bytes());
        modes
    }

    #[test]
    fn exactly_the_changed_modes_are_reset() {
        let cases = [
            ("plain \x1b[2J\x1b[5;5H text\r\n", ""),
            ("\x1b[?1049h\x1b[?25l\x1b[?1002;1006h", "\x1b[?25h\x1b[?1002l\x1b[?1006l\x1b[?1049l"),
            ("\x1b[?1049h\x1b[?2004h\x1b[?2004l\x1b[?1049l", ""),
            ("\x1b[31mred", "\x1b[m"),
            ("\x1b[31mred\x1b[0m", ""),
            ("\x1b[2;10r", "\x1b7\x1b[r\x1b8"),
            ("\x1b[?47h\x1b[2;10r", "\x1b[r\x1b[?47l"),
            ("\x1b[2;10r\x1b[r", ""),
            ("\x1b=\x1b[?1h\x1b(0\x0e", "\x1b[?1l\x1b>\x1b(B\x0f"),
            ("\x1b[>1u\x1b[>3u\x1b[>4;2m\x1b[5 q", "\x1b[<2u\x1b[>4;0m\x1b[0 q"),
            ("\x1b[>1u\x1b[<u", ""),
            ("\x1b[?1049h\x1b[?25l\x1b[1m\x1bc", ""),
            ("\x1b[?7l\x1b[?25l\x1b[4h\x1b[!p", ""),
        ];
        for (output, off) in cases {
            assert_eq!(after(output).reset_sequence(), off, "{output:?}");
        }
    }

    #[test]
    fn a_sequence_may_arrive_in_any_pieces() {
        let output = "text\x1b[?1049h\x1b[?25ltext\x1b]0;plain title\x07\x1b[1mé";
        let mut modes = Modes::default();
        output.as_bytes().iter().for_each(|byte| modes.feed(&[*byte]));
        assert_eq!((&modes.state, modes.at_boundary()), (&after(output).state, true));
    }

    #[test]
    fn the_same_modes_can_be_set_in_another_terminal() {
        let output = "\x1b[?1h\x1b[?25l\x1b[?1003h\x1b=\x1b[3;9r\x1b[>5u\x1b[>4;1m\x1b[2 q\x1b[4h";
        let modes = after(output);
        assert_eq!(after(&modes.enable_sequence()).state, modes.state);
        assert_eq!(after(&(modes.enable_sequence() + &modes.reset_sequence())).state, ModeState::default());
    }

    #[test]
    fn cursor_addressing_counts_until_a_screen_of_lines_follows() {
        let rows = 5;
        assert!(!after("one\r\ntwo\x1b[K\x1b[31m\r\n").uses_cursor_addressing(rows));
        assert!(after("\x1b[H\x1b[2Jtop\r\nprog 1\r\nprog 2\r\n").uses_cursor_addressing(rows));
        assert!(
            !after(&format!("\x1b[H\x1b[2J$ {}", "line\r\n".repeat(rows))).uses_cursor_addressing(rows),
            "as after `clear`"
        );
        assert!(after(&format!("\x1b[?1049h{}", "line\r\n".repeat(rows))).uses_cursor_addressing(rows));
    }

    #[test]
    fn a_line_is_fresh_if_the_primary_screen_shows_nothing_on_it() {
        for fresh in
            ["", "text\r\n", "text\n\r", "\x1b[31m\r\n\x1b[m\x1b[?25h", "\x1b[?1049h\x1b[5;5Htext\x1b[?1049l\x1b[?1l"]
        {
            assert!(!after(fresh).mid_line(), "{fresh:?}");
        }
        for mid in [
            "$ ",
            "\r\n$ \x1b[m",
            "$ \x1b[?1049h\r\n",
            "$ \x1b[?1049h\r\n\x1b[?1049l",
            "\n\x1b[3;3H",
            "\x1b[?47h\x1b[?47l",
        ] {
            assert!(after(mid).mid_line(), "{mid:?}");
        }
        let behind = after("\x1b[?1049h\x1b[5;5Htext");
        assert!(behind.uses_cursor_addressing(9) && !behind.primary_uses_cursor_addressing(9));
    }

    #[test]
    fn features_that_the_emulator_cannot_draw_are_detected() {
        assert!(after("\x1b(0lqk\x1b(B").exceeds_emulator() && after("\x1b[?6h").exceeds_emulator());
        assert!(!after("\x1b(0lqk\x1b(B\x1b[2J\x1b(B").exceeds_emulator(), "the screen was cleared");
    }

    proptest! {
        #[test]
        fn every_mode_is_reset_by_the_reset_sequence(parts in proptest::collection::vec(prop_oneof![
            Just("\x1b[?1049h"), Just("\x1b[?47l"), Just("\x1b[?25l"), Just("\x1b[?1000;1006h"), Just("\x1b[m"), Just("\x1b[1;4m"),
            Just("\x1b[2;3r"), Just("\x1b(0"), Just("\x0e"), Just("\x1b[>1u"), Just("\x1b[<9u"), Just("\x1b[=3u"), Just("\x1b="),
            Just("\x1b[3 q"), Just("\x1b[!p"), Just("text"),
        ], 0..12)) {
            let modes = after(&parts.concat());
            let left = after(&(parts.concat() + &modes.reset_sequence()));
            prop_assert_eq!(left.reset_sequence(), "");
        }
    }
}
