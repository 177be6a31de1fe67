//! Makes a program's output safe for a terminal: nothing in it moves the cursor, hides text or reverses it.
//! The output may come in pieces of any size.

use super::text::ControlEscaper;
use toold_ansi::{State, TextStep};

/// The longest parameters of a colour. A longer sequence is dropped.
const MAX_COLOUR_LEN: usize = 64;
/// Ends every colour.
const RESET: &str = "\x1b[0m";

/// The escape sequences that stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    Nothing,
    Colours,
}

/// Output on its way to a terminal.
#[derive(Debug)]
pub struct Sanitizer {
    keep: Keep,
    state: State,
    /// The parameters of the current sequence, if it is a CSI.
    params: String,
    writer: ControlEscaper,
    /// The last character was a carriage return: a newline follows, or the same line again.
    returned: bool,
    /// The current line is not empty.
    open: bool,
    /// A colour may be in force.
    coloured: bool,
}

impl Sanitizer {
    pub fn new(keep: Keep) -> Sanitizer {
        Sanitizer {
            keep,
            state: State::Ground,
            params: String::new(),
            writer: ControlEscaper::default(),
            returned: false,
            open: false,
            coloured: false,
        }
    }

    /// Sanitizes complete output, and ends it with a newline.
    pub fn sanitize(mut self, text: &str) -> String {
        self.push(text) + &self.finish()
    }

    /// Takes more output, and returns the text to print.
    pub fn push(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            self.next(c, &mut out);
        }
        out
    }

    /// Closes an open line and an open colour.
    pub fn finish(&mut self) -> String {
        let colour = if std::mem::take(&mut self.coloured) { RESET } else { "" };
        let end = if std::mem::take(&mut self.open) { "\n" } else { "" };
        self.state = State::Ground;
        self.returned = false;
        let mut out = String::new();
        self.writer.finish(&mut out);
        format!("{out}{colour}{end}")
    }

    fn next(&mut self, c: char, out: &mut String) {
        if self.state == State::Ground {
            return self.text(c, out);
        }
        // Unlike the daemon, which counts bytes, xterm ends a string here.
        if self.state.is_string() && c == '\u{9c}' {
            self.state = State::Ground;
            return;
        }
        // The grammar does not distinguish bytes above ASCII.
        let byte = u8::try_from(c).ok().filter(u8::is_ascii).unwrap_or(0x80);
        match self.state.text_step(byte) {
            TextStep::Continues(next) => {
                if self.state == State::Escape {
                    self.params.clear();
                } else if self.state == State::Csi && self.params.len() < MAX_COLOUR_LEN {
                    self.params.push(c);
                }
                self.state = next;
            }
            TextStep::Ends => {
                if self.state == State::Csi && c == 'm' {
                    self.colour(out);
                }
                self.state = State::Ground;
            }
            TextStep::EndsBefore => {
                self.state = State::Ground;
                self.text(c, out);
            }
        }
    }

    fn text(&mut self, c: char, out: &mut String) {
        // A line that a carriage return would overwrite becomes a line of its own, so that nothing is hidden.
        if self.returned && !matches!(c, '\r' | '\n' | '\x0e' | '\x0f') {
            self.returned = false;
            if std::mem::take(&mut self.open) {
                out.push('\n');
            }
        }
        if matches!(c, '\x1b' | '\r' | '\n' | '\t' | '\x0e' | '\x0f') {
            self.writer.finish(out);
        }
        match c {
            '\x1b' => self.state = State::Escape,
            '\r' => self.returned = true,
            // Shifts of character sets, which ncurses writes and no terminal shows.
            '\x0e' | '\x0f' => {}
            '\n' => {
                self.returned = false;
                self.open = false;
                out.push(c);
            }
            '\t' => {
                self.open = true;
                out.push(c);
            }
            c => {
                self.open = true;
                self.writer.push(c, out);
            }
        }
    }

    fn colour(&mut self, out: &mut String) {
        let is_plain = self.params.len() < MAX_COLOUR_LEN
            && self.params.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b';' | b':'));
        if is_plain && self.keep == Keep::Colours {
            self.coloured = !matches!(self.params.as_str(), "" | "0");
            out.push_str(&format!("\x1b[{}m", self.params));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(keep: Keep, text: &str) -> String {
        Sanitizer::new(keep).sanitize(text)
    }

    #[test]
    fn a_terminal_gets_only_text_and_requested_colours() {
        let text = "a\x1b[1;31mred\x1b[0m\x1b[2J\x1b[?25l\x1b]0;title\x07\x1b]8;;u\x1b\\link\x1b(B\x0f\x1b=\x08\x07\u{9b}2J\tb\n";
        assert_eq!(shown(Keep::Nothing, text), "aredlink\\x08\\x07\\u{9b}2J\tb\n");
        assert_eq!(shown(Keep::Colours, text), "a\x1b[1;31mred\x1b[0mlink\\x08\\x07\\u{9b}2J\tb\n");
        assert_eq!(shown(Keep::Colours, "\x1b[>4;2m\x1b[1 m\x1b[38:2:1:2:3mx"), "\x1b[38:2:1:2:3mx\x1b[0m\n");
    }

    #[test]
    fn text_that_a_carriage_return_would_overwrite_gets_its_own_line() {
        assert_eq!(
            shown(Keep::Nothing, "10%\r20%\r\nok\r\r\n\rpaid: no\rpaid: yes"),
            "10%\n20%\nok\npaid: no\npaid: yes\n"
        );
    }

    #[test]
    fn a_joiner_is_text_also_if_its_neighbours_come_later() {
        let mut pieces = Sanitizer::new(Keep::Nothing);
        let shown: String =
            ["👩", "\u{200d}", "👧 می\u{200c}", "خ\u{200d}"].iter().map(|piece| pieces.push(piece)).collect();
        assert_eq!(shown + &pieces.finish(), "👩\u{200d}👧 می\u{200c}خ\\u{200d}\n");
    }

    #[test]
    fn a_title_without_an_end_hides_no_more_than_its_line() {
        assert_eq!(shown(Keep::Nothing, "a\x1b]0;evil\nb\x1b[12\nc\x1b"), "a\nb\nc\n");
    }

    proptest! {
        #[test]
        fn pieces_give_the_same_result_and_no_control_character_passes(
            text in "(\\PC|[\\x00-\\x1f\\x7f]|\x1b\\[[0-9;]{0,4}[a-zA-Z]|\x1b|\u{202e}){0,30}", cut in 0usize..60, colours: bool,
        ) {
            let keep = if colours { Keep::Colours } else { Keep::Nothing };
            let whole = shown(keep, &text);
            let cut = text.char_indices().map(|(at, _)| at).nth(cut).unwrap_or(text.len());
            let mut pieces = Sanitizer::new(keep);
            let joined = pieces.push(&text[..cut]) + &pieces.push(&text[cut..]) + &pieces.finish();
            prop_assert_eq!(&joined, &whole);
            let bare = crate::render::text::without_escapes(&whole);
            prop_assert!(!bare.chars().any(|c| c.is_control() && c != '\n' && c != '\t'), "{:?}", whole);
            prop_assert!(colours || !whole.contains('\x1b'));
        }
    }
}
