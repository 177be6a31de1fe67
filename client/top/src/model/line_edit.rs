//! A line that is typed: text and a cursor.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// The longest text that can be typed or pasted into a line.
const MAX_LEN: usize = 64 * 1024;

/// The outcome of a key in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edited {
    Changed,
    Submitted,
    Cancelled,
    Ignored,
}

#[derive(Clone, PartialEq, Eq, Default)]
pub struct LineEdit {
    text: String,
    /// A byte offset at a character.
    cursor: usize,
}

/// The text can be a password: it stays out of every debug print.
impl std::fmt::Debug for LineEdit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "LineEdit({} bytes)", self.text.len())
    }
}

impl LineEdit {
    pub fn with(text: &str) -> LineEdit {
        LineEdit { text: text.into(), cursor: text.len() }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the text before the cursor.
    pub fn before_cursor(&self) -> &str {
        &self.text[..self.cursor]
    }

    /// Inserts text at the cursor. Newlines and other control characters are left out.
    pub fn insert(&mut self, text: &str) {
        for c in text.chars().filter(|c| !c.is_control()) {
            if self.text.len() >= MAX_LEN {
                return;
            }
            self.text.insert(self.cursor, c);
            self.cursor += c.len_utf8();
        }
    }

    pub fn press(&mut self, key: KeyEvent) -> Edited {
        let ctrl = key.modifiers.contains(KeyModifiers::CONTROL);
        match key.code {
            KeyCode::Enter => return Edited::Submitted,
            KeyCode::Esc => return Edited::Cancelled,
            KeyCode::Char('c' | 'g') if ctrl => return Edited::Cancelled,
            KeyCode::Char('u') if ctrl => {
                self.text.drain(..self.cursor);
                self.cursor = 0;
            }
            KeyCode::Char('k') if ctrl => self.text.truncate(self.cursor),
            KeyCode::Char('a') if ctrl => self.cursor = 0,
            KeyCode::Char('e') if ctrl => self.cursor = self.text.len(),
            KeyCode::Char('w') if ctrl => {
                let kept = self.before_cursor().trim_end().rfind(' ').map_or(0, |at| at + 1);
                self.text.drain(kept..self.cursor);
                self.cursor = kept;
            }
            KeyCode::Char(_) if ctrl || key.modifiers.contains(KeyModifiers::ALT) => return Edited::Ignored,
            KeyCode::Char(c) => self.insert(c.encode_utf8(&mut [0; 4])),
            KeyCode::Backspace => {
                if let Some(c) = self.before_cursor().chars().next_back() {
                    self.cursor -= c.len_utf8();
                    self.text.remove(self.cursor);
                }
            }
            KeyCode::Delete if self.cursor < self.text.len() => drop(self.text.remove(self.cursor)),
            KeyCode::Left => self.cursor -= self.before_cursor().chars().next_back().map_or(0, char::len_utf8),
            KeyCode::Right => self.cursor += self.text[self.cursor..].chars().next().map_or(0, char::len_utf8),
            KeyCode::Home => self.cursor = 0,
            KeyCode::End => self.cursor = self.text.len(),
            // Keys that mean nothing in a line.
            _ => return Edited::Ignored,
        }
        Edited::Changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_edit_at_the_cursor_and_the_text_is_never_debug_printed() {
        let mut line = LineEdit::with("grüß gott");
        let ctrl = |c| KeyEvent::new(KeyCode::Char(c), KeyModifiers::CONTROL);
        assert_eq!(line.press(ctrl('w')), Edited::Changed);
        assert_eq!(line.press(KeyCode::Left.into()), Edited::Changed);
        assert_eq!(line.press(KeyCode::Backspace.into()), Edited::Changed);
        line.insert("x\ny");
        assert_eq!((line.text(), line.before_cursor()), ("grüxy ", "grüxy"));
        assert_eq!(line.press(KeyCode::Esc.into()), Edited::Cancelled);
        assert_eq!(format!("{line:?}"), "LineEdit(7 bytes)");
    }
}
