//! Keys, the mouse and pastes from the bytes of a terminal. Pure.
//!
//! crossterm's own reader waits on an edge-triggered poll: a key that comes together with a change of size is not read until the next
//! key, and the descriptor stays readable meanwhile. This one takes bytes that were read already.

use crate::update::Input;
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};

const ESC: u8 = 0x1b;
/// The longest sequence that is waited for. A longer one is not a key.
const MAX_SEQUENCE_LEN: usize = 64;
/// The most that is kept of a paste.
const MAX_PASTE_LEN: usize = 64 * 1024;
const PASTE_END: &[u8] = b"\x1b[201~";

#[derive(Default)]
pub struct KeyParser {
    /// The start of a sequence or of a character.
    pending: Vec<u8>,
    /// The text of a paste that has not ended.
    paste: Option<Vec<u8>>,
}

/// The start of the bytes, as a key.
enum Parsed {
    /// This many bytes, and what they mean.
    Input(usize, Option<Input>),
    PasteStart(usize),
    /// More bytes are needed.
    Incomplete,
}

impl KeyParser {
    /// Takes bytes that were read together. An escape at their end is the key of that name.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Input> {
        self.pending.extend_from_slice(bytes);
        let mut inputs = Vec::new();
        while !self.pending.is_empty() {
            if self.paste.is_some() {
                if !self.read_paste(&mut inputs) {
                    break;
                }
                continue;
            }
            match parse(&self.pending) {
                Parsed::Input(len, input) => {
                    inputs.extend(input);
                    self.pending.drain(..len);
                }
                Parsed::PasteStart(len) => {
                    self.pending.drain(..len);
                    self.paste = Some(Vec::new());
                }
                Parsed::Incomplete if self.pending.len() > MAX_SEQUENCE_LEN => self.pending.clear(),
                Parsed::Incomplete => break,
            }
        }
        inputs
    }

    /// Takes the text of a paste. Returns false if its end has not come.
    fn read_paste(&mut self, inputs: &mut Vec<Input>) -> bool {
        let Some(text) = &mut self.paste else { return true };
        let end = self.pending.windows(PASTE_END.len()).position(|part| part == PASTE_END);
        // The last bytes may be the start of the end.
        let taken = end.unwrap_or(self.pending.len().saturating_sub(PASTE_END.len() - 1));
        text.extend(self.pending.drain(..taken));
        text.truncate(MAX_PASTE_LEN);
        if end.is_some() {
            self.pending.drain(..PASTE_END.len());
            let text = self.paste.take().unwrap_or_default();
            inputs.push(Input::Paste(String::from_utf8_lossy(&text).into_owned()));
        }
        end.is_some()
    }
}

fn key(code: KeyCode) -> Option<Input> {
    Some(Input::Key(code.into()))
}

fn parse(bytes: &[u8]) -> Parsed {
    match bytes {
        [ESC] => Parsed::Input(1, key(KeyCode::Esc)),
        [ESC, b'[', rest @ ..] => control_sequence(rest),
        [ESC, b'O'] => Parsed::Incomplete,
        [ESC, b'O', letter, ..] => Parsed::Input(3, letter_key(*letter).and_then(key)),
        // The key Escape, and another that was typed before we read it.
        [ESC, ..] => Parsed::Input(1, key(KeyCode::Esc)),
        [b'\r' | b'\n', ..] => Parsed::Input(1, key(KeyCode::Enter)),
        [b'\t', ..] => Parsed::Input(1, key(KeyCode::Tab)),
        [0x7f | 0x08, ..] => Parsed::Input(1, key(KeyCode::Backspace)),
        [control @ 1..=26, ..] => {
            let letter = KeyCode::Char(char::from(b'a' + control - 1));
            Parsed::Input(1, Some(Input::Key(KeyEvent::new(letter, KeyModifiers::CONTROL))))
        }
        [0..=31, ..] => Parsed::Input(1, None),
        _ => character(bytes),
    }
}

fn character(bytes: &[u8]) -> Parsed {
    let len = match bytes[0] {
        0xf0..=0xf7 => 4,
        0xe0..=0xef => 3,
        0xc0..=0xdf => 2,
        // ASCII, or a byte that begins no character.
        _ => 1,
    };
    let Some(first) = bytes.get(..len) else { return Parsed::Incomplete };
    match std::str::from_utf8(first).ok().and_then(|text| text.chars().next()) {
        Some(c) => Parsed::Input(len, key(KeyCode::Char(c))),
        None => Parsed::Input(1, None),
    }
}

/// Parses what follows `ESC [`.
fn control_sequence(rest: &[u8]) -> Parsed {
    let Some(end) = rest.iter().position(|byte| !(0x20..=0x3f).contains(byte)) else { return Parsed::Incomplete };
    let len = end + 3;
    let (params, last) = (std::str::from_utf8(&rest[..end]).unwrap_or_default(), rest[end]);
    if last == ESC {
        // The sequence was cut off, and another one begins.
        return Parsed::Input(len - 1, None);
    }
    let first = params.split(';').next().unwrap_or_default();
    match (last, params.strip_prefix('<')) {
        (b'M' | b'm', Some(mouse)) => Parsed::Input(len, mouse_event(mouse, last == b'M')),
        (b'~', None) if first == "200" => Parsed::PasteStart(len),
        (b'~', None) => Parsed::Input(len, numbered_key(first).and_then(key)),
        (letter, None) => Parsed::Input(len, letter_key(letter).and_then(key)),
        (_, Some(_)) => Parsed::Input(len, None),
    }
}

fn letter_key(letter: u8) -> Option<KeyCode> {
    Some(match letter {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'H' => KeyCode::Home,
        b'F' => KeyCode::End,
        b'Z' => KeyCode::BackTab,
        b'P' => KeyCode::F(1),
        // Keys that mean nothing here.
        _ => return None,
    })
}

fn numbered_key(number: &str) -> Option<KeyCode> {
    Some(match number {
        "1" | "7" => KeyCode::Home,
        "4" | "8" => KeyCode::End,
        "3" => KeyCode::Delete,
        "5" => KeyCode::PageUp,
        "6" => KeyCode::PageDown,
        "11" => KeyCode::F(1),
        // Keys that mean nothing here.
        _ => return None,
    })
}

/// Reads `button;column;row`, both from 1.
fn mouse_event(params: &str, pressed: bool) -> Option<Input> {
    let mut numbers = params.split(';').map(|number| number.parse::<u16>().ok());
    let (button, column, row) = (numbers.next()??, numbers.next()??, numbers.next()??);
    let kind = match (button, pressed) {
        (0, true) => MouseEventKind::Down(MouseButton::Left),
        (64, true) => MouseEventKind::ScrollUp,
        (65, true) => MouseEventKind::ScrollDown,
        // Other buttons, releases and moves mean nothing here.
        _ => return None,
    };
    let (column, row) = (column.saturating_sub(1), row.saturating_sub(1));
    Some(Input::Mouse(MouseEvent { kind, column, row, modifiers: KeyModifiers::NONE }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(input: &Input) -> String {
        match input {
            Input::Key(key) if key.modifiers.contains(KeyModifiers::CONTROL) => format!("C-{}", key.code),
            Input::Key(key) => format!("{:?}", key.code),
            Input::Mouse(event) => format!("{:?} {} {}", event.kind, event.column, event.row),
            Input::Paste(text) => format!("paste {text}"),
            _ => "another input".into(),
        }
    }

    fn names(parts: &[&[u8]]) -> Vec<String> {
        let mut parser = KeyParser::default();
        parts.iter().flat_map(|part| parser.feed(part)).map(|input| name(&input)).collect()
    }

    #[test]
    fn keys_the_mouse_and_pastes_are_read_from_any_cut() {
        let bytes =
            "aü漢\x1b[A\x1b[1;5B\x1bOP\x1b[5~\x1b[Z\r\x03\x1b[<64;3;4M\x1b[<0;1;2M\x1b[<0;1;2m\x1b[200~x\ny\x1b[201~q"
                .as_bytes();
        let expected = [
            "Char('a')",
            "Char('ü')",
            "Char('漢')",
            "Up",
            "Down",
            "F(1)",
            "PageUp",
            "BackTab",
            "Enter",
            "C-c",
            "ScrollUp 2 3",
            "Down(Left) 0 1",
            "paste x\ny",
            "Char('q')",
        ];
        assert_eq!(names(&[bytes]), expected);
        // An escape alone at the end of a read is a key, so no cut is there.
        for cut in (1..bytes.len()).filter(|cut| bytes[cut - 1] != ESC) {
            assert_eq!(names(&[&bytes[..cut], &bytes[cut..]]), expected, "cut at {cut}");
        }
    }

    #[test]
    fn an_escape_is_a_key_alone_and_before_another_key() {
        assert_eq!(names(&[b"\x1b", b"q"]), ["Esc", "Char('q')"]);
        assert_eq!(names(&[b"\x1bK"]), ["Esc", "Char('K')"]);
        assert_eq!(names(&[b"\x1b[1;\x1b[B"]), ["Down"], "a sequence that was cut off is dropped");
        assert_eq!(names(&[b"\xff\x00\x1b[?1;2cx"]), ["Char('x')"]);
    }
}
