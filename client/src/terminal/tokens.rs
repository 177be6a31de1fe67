//! Splits a terminal's output into text, control characters and escape sequences with their parameters. Pure.

use toold_ansi::{ESC, State};

/// The longest sequence that is interpreted. Terminals ignore longer ones too: they keep about 32 parameters.
const MAX_SEQUENCE_LEN: usize = 256;

/// One element of output. Strings (titles, links, images) are none.
#[derive(Debug, PartialEq, Eq)]
pub enum Token {
    /// A byte of a character.
    Text,
    Control(u8),
    /// `ESC`, intermediate bytes and a last byte, as in `ESC ( 0`.
    Escape {
        intermediates: Vec<u8>,
        last: u8,
    },
    /// `ESC [`, parameters and a last byte, as in `ESC [ ? 2 5 h`. A marker like `?` is the first intermediate byte.
    Csi {
        params: Vec<u16>,
        intermediates: Vec<u8>,
        last: u8,
    },
}

/// Finds tokens in output that may arrive in pieces.
#[derive(Default)]
pub struct Tokenizer {
    state: State,
    /// The bytes of the current sequence after its ESC.
    sequence: Vec<u8>,
}

impl Tokenizer {
    /// Returns the state after the output so far.
    pub fn state(&self) -> State {
        self.state
    }

    /// Takes one byte and returns the token that ends with it.
    pub fn next(&mut self, byte: u8) -> Option<Token> {
        let before = self.state;
        self.state = before.after(byte);
        if byte == ESC {
            self.sequence.clear();
            return None;
        }
        match before {
            State::Osc | State::String => None,
            // A terminal executes control characters inside a sequence too.
            _ if byte < 0x20 => Some(Token::Control(byte)),
            State::Ground | State::Char(_) => Some(Token::Text),
            State::Escape | State::EscapeIntermediate | State::Csi => {
                if matches!(byte, 0x20..=0x7e) && self.sequence.len() <= MAX_SEQUENCE_LEN {
                    self.sequence.push(byte);
                }
                (self.state == State::Ground).then(|| token(&self.sequence)).flatten()
            }
        }
    }
}

/// Returns the token of a whole sequence without its ESC, or None if it is malformed.
fn token(sequence: &[u8]) -> Option<Token> {
    match sequence {
        _ if sequence.len() > MAX_SEQUENCE_LEN => None,
        [b'[', rest @ .., last] => {
            let (marker, rest) = rest.split_at(usize::from(matches!(rest.first(), Some(0x3c..=0x3f))));
            let end = rest.iter().position(|byte| matches!(byte, 0x20..=0x2f)).unwrap_or(rest.len());
            let (params, intermediates) = rest.split_at(end);
            let is_valid = params.iter().all(|byte| matches!(byte, b'0'..=b'9' | b';' | b':'))
                && intermediates.iter().all(|byte| matches!(byte, 0x20..=0x2f));
            let params = || params.split(|byte| *byte == b';').map(number).collect();
            is_valid.then(|| Token::Csi {
                params: params(),
                intermediates: [marker, intermediates].concat(),
                last: *last,
            })
        }
        [intermediates @ .., last] => Some(Token::Escape { intermediates: intermediates.to_vec(), last: *last }),
        [] => None,
    }
}

/// Returns the number before the first colon; 0 if there is none.
fn number(param: &[u8]) -> u16 {
    let digits = param.iter().take_while(|byte| byte.is_ascii_digit());
    digits.fold(0, |number: u16, digit| number.saturating_mul(10).saturating_add(u16::from(digit - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use vte::{Params, Parser, Perform};

    fn tokens(bytes: &[u8]) -> Vec<Token> {
        let mut tokenizer = Tokenizer::default();
        bytes.iter().filter_map(|byte| tokenizer.next(*byte)).collect()
    }

    /// Records the tokens of `vte`.
    #[derive(Default)]
    struct Recorder(Vec<Token>);

    impl Perform for Recorder {
        fn print(&mut self, _: char) {
            self.0.push(Token::Text);
        }

        fn execute(&mut self, byte: u8) {
            self.0.push(Token::Control(byte));
        }

        fn esc_dispatch(&mut self, intermediates: &[u8], ignore: bool, last: u8) {
            if !ignore {
                self.0.push(Token::Escape { intermediates: intermediates.to_vec(), last });
            }
        }

        fn csi_dispatch(&mut self, params: &Params, intermediates: &[u8], ignore: bool, last: char) {
            if !ignore {
                let params = params.iter().filter_map(|param| param.first().copied()).collect();
                self.0.push(Token::Csi { params, intermediates: intermediates.to_vec(), last: last as u8 });
            }
        }
    }

    /// Removes the differences that do not matter: CAN and SUB have no effect but to end a sequence, and `vte` keeps two
    /// intermediate bytes.
    fn comparable(mut tokens: Vec<Token>) -> Vec<Token> {
        tokens.retain(|token| match token {
            Token::Control(byte) => !matches!(byte, 0x18 | 0x1a),
            Token::Escape { intermediates, .. } | Token::Csi { intermediates, .. } => intermediates.len() <= 2,
            Token::Text => true,
        });
        tokens
    }

    #[test]
    fn sequences_have_their_parameters_and_malformed_ones_are_dropped() {
        let csi = |params: &[u16], intermediates: &[u8], last| Token::Csi {
            params: params.to_vec(),
            intermediates: intermediates.to_vec(),
            last,
        };
        let escape = |intermediates: &[u8], last| Token::Escape { intermediates: intermediates.to_vec(), last };
        assert_eq!(
            tokens(b"a\x1b[?1049;25h\x1b(0\x1b[3\n8:2:1;4m\x1b[5 q\x1b[r\x1b[1?h\x1b]0;title\x07\x1b7"),
            [
                Token::Text,
                csi(&[1049, 25], b"?", b'h'),
                escape(b"(", b'0'),
                Token::Control(b'\n'),
                csi(&[38, 4], b"", b'm'),
                csi(&[5], b" ", b'q'),
                csi(&[0], b"", b'r'),
                escape(b"", b'7'),
            ]
        );
        let long = format!("\x1b[{}h", ";".repeat(MAX_SEQUENCE_LEN));
        assert_eq!(tokens(long.as_bytes()), []);
    }

    proptest! {
        #[test]
        fn the_tokens_are_those_of_vte(parts in proptest::collection::vec(prop_oneof![
            prop::sample::select(b"\x1b\x1b\x1b[[]P\\(?>;:0149mhqru !\x07\x18\n\x7f".as_slice()).prop_map(char::from),
            prop::char::range(' ', '~'),
        ], 0..40)) {
            let text: String = parts.into_iter().collect();
            let mut expected = Recorder::default();
            Parser::new().advance(&mut expected, text.as_bytes());
            prop_assert_eq!(comparable(tokens(text.as_bytes())), comparable(expected.0));
        }
    }
}
