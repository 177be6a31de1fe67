//! The whole terminal, taken for a while and given back as it was, whichever way we leave.

mod sys;

use self::sys::SavedSettings;
use crate::render::Style;
use crate::render::text::{columns, without_escapes};
use std::io::{self, Write};
use std::os::fd::AsFd;

/// Another screen than the one with the shell's lines; no cursor; a long line is not continued.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

pub struct Fullscreen {
    keys: Option<SavedSettings>,
    /// What stands there.
    shown: String,
    entered: bool,
}

impl Fullscreen {
    pub fn enter() -> io::Result<Fullscreen> {
        let mut screen = Fullscreen { keys: None, shown: String::new(), entered: false };
        screen.take()?;
        Ok(screen)
    }

    fn take(&mut self) -> io::Result<()> {
        self.entered = true;
        self.keys = SavedSettings::disable_echo(io::stdin().as_fd());
        self.shown.clear();
        write(ENTER)
    }

    fn give_back(&mut self) {
        if std::mem::take(&mut self.entered) {
            // If the terminal is gone, there is nothing to give back.
            let _ = write(LEAVE);
            if let Some(keys) = self.keys.take() {
                keys.restore(io::stdin().as_fd());
            }
        }
    }

    /// Whether somebody can type to us.
    pub fn has_keys(&self) -> bool {
        self.keys.is_some()
    }

    /// Gives the terminal back, stands still until somebody continues us, and takes it again.
    pub fn suspend(&mut self) -> io::Result<()> {
        self.give_back();
        sys::suspend();
        self.take()
    }

    /// What is drawn next is drawn whole.
    pub fn invalidate(&mut self) {
        self.shown.clear();
    }

    /// Shows these lines on a screen of this width. Nothing is written when they stand there already.
    pub fn draw(&mut self, lines: &[String], width: Option<usize>) -> io::Result<()> {
        let frame = frame(lines, width);
        if frame == self.shown {
            return Ok(());
        }
        write(&frame)?;
        self.shown = frame;
        Ok(())
    }
}

impl Drop for Fullscreen {
    fn drop(&mut self) {
        self.give_back();
    }
}

/// The lines from the top, each written over what was there: nothing is blank in between. Behind a line that is as wide as the
/// screen nothing is erased: the cursor stands on its last character then, which would go.
fn frame(lines: &[String], width: Option<usize>) -> String {
    let narrower = |line: &str| width.is_none_or(|width| columns(&without_escapes(line)) < width);
    let drawn = |(n, line): (usize, &String)| match (n + 1 == lines.len(), narrower(line)) {
        (false, true) => format!("{line}\x1b[K\r\n"),
        (false, false) => format!("{line}\r\n"),
        (true, true) => format!("{line}\x1b[K\x1b[J"),
        (true, false) => format!("\x1b[J{line}"),
    };
    "\x1b[H".to_owned() + &lines.iter().enumerate().map(drawn).collect::<String>()
}

/// A table and a word about it as lines that fit: what is too much is counted in the last line.
pub fn fit(table: &str, word: Option<&str>, rows: usize, style: Style) -> Vec<String> {
    use crate::render::Tint;
    use crate::render::text::cut;
    let mut lines: Vec<String> = table.lines().map(str::to_owned).collect();
    let spare = usize::from(word.is_some());
    let most = rows.max(1).saturating_sub(spare);
    let mut said = word.map(str::to_owned);
    if lines.len() > most {
        let most = rows.max(1) - 1;
        let below = format!("{} more are below", lines.len() - most);
        said = Some(word.map_or(below.clone(), |word| format!("{below}; {word}")));
        lines.truncate(most);
    }
    lines.extend(said.map(|said| Tint::Faint.paint(&cut(&said, style.width.unwrap_or(usize::MAX)), style)));
    lines
}

fn write(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_starts_at_home_and_erases_only_what_it_does_not_write() {
        assert_eq!(frame(&["a".into(), "b".into()], Some(80)), "\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J");
    }

    #[test]
    fn the_last_character_of_a_line_as_wide_as_the_screen_stays() {
        // The broken code erased behind it, where the cursor stands on it: the sign of a cut was never seen.
        let lines = ["\x1b[1mab…\x1b[0m".into(), "cd…".into()];
        assert_eq!(frame(&lines, Some(3)), "\x1b[H\x1b[1mab…\x1b[0m\r\n\x1b[Jcd…");
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let style = Style::plain();
        let table = "head\n1\n2\n3\n";
        assert_eq!(fit(table, None, 4, style), ["head", "1", "2", "3"]);
        assert_eq!(fit(table, Some("word"), 5, style), ["head", "1", "2", "3", "word"]);
        assert_eq!(fit(table, Some("word"), 4, style), ["head", "1", "2", "1 more are below; word"]);
        assert_eq!(fit(table, None, 3, style), ["head", "1", "2 more are below"]);
        assert_eq!(fit(table, None, 0, style), ["4 more are below"]);
    }
}
