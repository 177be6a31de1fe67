//! A program's output for a terminal: nothing in it moves the cursor, hides text or turns it around.
//! It may come in pieces of any size.

use super::text::ControlEscaper;

/// A colour is not longer; what is, is dropped.
const LONGEST: usize = 64;
/// Ends every colour.
const RESET: &str = "\x1b[0m";

/// What is kept of escape sequences.
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
    writer: ControlEscaper,
    /// Something stands on the line.
    open: bool,
    /// A colour may be in force.
    coloured: bool,
}

/// Where in a sequence we are.
#[derive(Debug, PartialEq, Eq)]
enum State {
    Text,
    /// After a carriage return: a newline, or the same line once more.
    Return,
    Escape,
    /// `ESC (` and the like, which end with a letter.
    Short,
    /// `ESC [` and what followed so far.
    Control(String),
    /// A title, a link, a picture.
    String,
    /// An escape inside of it, which may end it.
    StringEscape,
}

impl Sanitizer {
    pub fn new(keep: Keep) -> Sanitizer {
        Sanitizer { keep, state: State::Text, writer: ControlEscaper::default(), open: false, coloured: false }
    }

    /// Output that is all here, with a newline at its end.
    pub fn sanitize(mut self, text: &str) -> String {
        self.push(text) + &self.finish()
    }

    /// More output: what of it to print.
    pub fn push(&mut self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            self.next(c, &mut out);
        }
        out
    }

    /// The end: a line that is open is closed, and so is a colour.
    pub fn finish(&mut self) -> String {
        let colour = if std::mem::take(&mut self.coloured) { RESET } else { "" };
        let end = if std::mem::take(&mut self.open) { "\n" } else { "" };
        self.state = State::Text;
        format!("{colour}{end}")
    }

    fn next(&mut self, c: char, out: &mut String) {
        match std::mem::replace(&mut self.state, State::Text) {
            State::Text => self.text(c, out),
            State::Return => self.returned(c, out),
            State::Escape => self.escape(c, out),
            State::Short => match c {
                ' '..='/' => self.state = State::Short,
                '0'..='~' => {}
                c => self.text(c, out),
            },
            State::Control(so_far) => self.control(so_far, c, out),
            State::String => self.string(c, out),
            State::StringEscape => match c {
                '\\' => {}
                c => self.escape(c, out),
            },
        }
    }

    fn text(&mut self, c: char, out: &mut String) {
        match c {
            '\x1b' => self.state = State::Escape,
            '\r' => self.state = State::Return,
            // The shifts of character sets, which ncurses writes and nobody sees.
            '\x0e' | '\x0f' => {}
            '\n' => {
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

    /// What would be written over is a line of its own, so that nothing is hidden.
    fn returned(&mut self, c: char, out: &mut String) {
        match c {
            '\r' | '\x0e' | '\x0f' => self.state = State::Return,
            '\n' => self.text(c, out),
            c => {
                if std::mem::take(&mut self.open) {
                    out.push('\n');
                }
                self.text(c, out);
            }
        }
    }

    fn escape(&mut self, c: char, out: &mut String) {
        match c {
            '[' => self.state = State::Control(String::new()),
            ']' | 'P' | 'X' | '^' | '_' => self.state = State::String,
            ' '..='/' => self.state = State::Short,
            // A sequence of two characters.
            '0'..='~' => {}
            c => self.text(c, out),
        }
    }

    fn control(&mut self, mut so_far: String, c: char, out: &mut String) {
        match c {
            ' '..='?' => {
                if so_far.len() < LONGEST {
                    so_far.push(c);
                }
                self.state = State::Control(so_far);
            }
            '@'..='~' => {
                let plain = so_far.len() < LONGEST && so_far.bytes().all(|b| matches!(b, b'0'..=b'9' | b';' | b':'));
                if c == 'm' && plain && self.keep == Keep::Colours {
                    self.coloured = !matches!(so_far.as_str(), "" | "0");
                    out.push_str(&format!("\x1b[{so_far}m"));
                }
            }
            // No sequence after all.
            c => self.text(c, out),
        }
    }

    fn string(&mut self, c: char, out: &mut String) {
        match c {
            '\x1b' => self.state = State::StringEscape,
            '\x07' | '\u{9c}' => {}
            // One without an end must not swallow the rest of the output.
            '\n' => self.text(c, out),
            _ => self.state = State::String,
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
    fn only_text_reaches_a_terminal_and_colours_where_they_were_asked_for() {
        let text = "a\x1b[1;31mred\x1b[0m\x1b[2J\x1b[?25l\x1b]0;title\x07\x1b]8;;u\x1b\\link\x1b(B\x0f\x1b=\x08\x07\u{9b}2J\tb\n";
        assert_eq!(shown(Keep::Nothing, text), "aredlink\\x08\\x07\\u{9b}2J\tb\n");
        assert_eq!(shown(Keep::Colours, text), "a\x1b[1;31mred\x1b[0mlink\\x08\\x07\\u{9b}2J\tb\n");
        assert_eq!(shown(Keep::Colours, "\x1b[>4;2m\x1b[1 m\x1b[38:2:1:2:3mx"), "\x1b[38:2:1:2:3mx\x1b[0m\n");
    }

    #[test]
    fn what_a_carriage_return_would_write_over_is_a_line_of_its_own() {
        assert_eq!(
            shown(Keep::Nothing, "10%\r20%\r\nok\r\r\n\rpaid: no\rpaid: yes"),
            "10%\n20%\nok\npaid: no\npaid: yes\n"
        );
    }

    #[test]
    fn a_title_without_an_end_hides_no_more_than_its_line() {
        assert_eq!(shown(Keep::Nothing, "a\x1b]0;evil\nb\x1b[12\nc\x1b"), "a\nb\nc\n");
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_and_no_control_character_passes(
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
