//! Full-screen output on the alternate screen, with the terminal restored on every way out.

use crate::render::Style;
use crate::render::text::{columns, without_escapes};
use crate::sys::{self, TerminalSettings};
use std::io::{self, Write};
use std::os::fd::AsFd;

/// Enters the alternate screen, hides the cursor and turns off line wrapping.
const ENTER: &str = "\x1b[?1049h\x1b[?25l\x1b[?7l";
const LEAVE: &str = "\x1b[?7h\x1b[?25h\x1b[?1049l";

/// The terminal while we draw on all of it.
pub struct Fullscreen {
    /// The settings of standard input before, if it is a terminal.
    before: Option<TerminalSettings>,
    /// The frame on the screen.
    shown: String,
    entered: bool,
}

impl Fullscreen {
    pub fn enter() -> io::Result<Fullscreen> {
        let mut screen = Fullscreen { before: None, shown: String::new(), entered: false };
        screen.enter_screen()?;
        Ok(screen)
    }

    fn enter_screen(&mut self) -> io::Result<()> {
        self.entered = true;
        let before = TerminalSettings::read(io::stdin().as_fd()).ok();
        self.before = before.filter(|before| before.key_by_key().apply(io::stdin().as_fd()).is_ok());
        self.shown.clear();
        write(ENTER)
    }

    fn restore(&mut self) {
        if std::mem::take(&mut self.entered) {
            // If the terminal is gone, there is nothing to restore.
            let _ = write(LEAVE);
            if let Some(before) = self.before.take() {
                let _ = before.apply(io::stdin().as_fd());
            }
        }
    }

    /// Returns true if standard input is a terminal, so that keys can be read.
    pub fn has_keys(&self) -> bool {
        self.before.is_some()
    }

    /// Restores the terminal, stops this process until it is continued, and enters the screen again.
    pub fn suspend(&mut self) -> io::Result<()> {
        self.restore();
        sys::suspend();
        self.enter_screen()
    }

    /// Forgets the drawn frame, so that the next one is written completely.
    pub fn invalidate(&mut self) {
        self.shown.clear();
    }

    /// Shows these lines on a screen of this width. Writes nothing if they are there already.
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
        self.restore();
    }
}

/// Builds a frame: lines from the top, each written over the old one, so that nothing flickers. Nothing is erased behind a line
/// that is as wide as the screen: the cursor is on its last character then and would erase it.
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

/// Fits a table and a status line into `rows` lines. The last line counts the rows that do not fit.
pub fn fit(table: &str, status: Option<&str>, rows: usize, style: Style) -> Vec<String> {
    use crate::render::Tint;
    use crate::render::text::cut;
    let mut lines: Vec<String> = table.lines().map(str::to_owned).collect();
    let max_lines = rows.max(1).saturating_sub(usize::from(status.is_some()));
    let mut last = status.map(str::to_owned);
    if lines.len() > max_lines {
        let max_lines = rows.max(1) - 1;
        let below = format!("{} more are below", lines.len() - max_lines);
        last = Some(status.map_or(below.clone(), |status| format!("{below}; {status}")));
        lines.truncate(max_lines);
    }
    lines.extend(last.map(|last| Tint::Faint.paint(&cut(&last, style.width.unwrap_or(usize::MAX)), style)));
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
    fn a_frame_starts_at_home_and_erases_only_the_rest_of_each_line() {
        assert_eq!(frame(&["a".into(), "b".into()], Some(80)), "\x1b[Ha\x1b[K\r\nb\x1b[K\x1b[J");
    }

    #[test]
    fn the_last_character_of_a_line_as_wide_as_the_screen_stays() {
        // The broken code erased behind the line while the cursor was on its last character, so the `…` was never seen.
        let lines = ["\x1b[1mab…\x1b[0m".into(), "cd…".into()];
        assert_eq!(frame(&lines, Some(3)), "\x1b[H\x1b[1mab…\x1b[0m\r\n\x1b[Jcd…");
    }

    #[test]
    fn rows_that_do_not_fit_are_counted() {
        let style = Style::plain();
        let table = "head\n1\n2\n3\n";
        assert_eq!(fit(table, None, 4, style), ["head", "1", "2", "3"]);
        assert_eq!(fit(table, Some("status"), 5, style), ["head", "1", "2", "3", "status"]);
        assert_eq!(fit(table, Some("status"), 4, style), ["head", "1", "2", "1 more are below; status"]);
        assert_eq!(fit(table, None, 3, style), ["head", "1", "2 more are below"]);
        assert_eq!(fit(table, None, 0, style), ["4 more are below"]);
    }
}
