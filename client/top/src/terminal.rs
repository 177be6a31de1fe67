//! The terminal while we draw on all of it, restored on every way out: the end, an error, a panic, a signal.

use crate::model::State;
use crate::render::render;
use ratatui::backend::{Backend, CrosstermBackend};
use ratatui::buffer::Buffer;
use ratatui::crossterm::cursor::{Hide, MoveTo, Show};
use ratatui::crossterm::event::{DisableBracketedPaste, EnableBracketedPaste};
use ratatui::crossterm::style::Print;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{execute, queue};
use ratatui::layout::Rect;
use std::io::{self, BufWriter, Stdout, Write};
use std::sync::Once;

/// One frame fits.
const BUFFER_LEN: usize = 64 * 1024;
/// Buttons and the wheel, not every move, which would wake us for nothing.
const MOUSE_ON: &str = "\x1b[?1000h\x1b[?1006h";
const MOUSE_OFF: &str = "\x1b[?1006l\x1b[?1000l";
static PANIC_HOOK: Once = Once::new();

/// The whole terminal, and the frame on it. ratatui's own `Terminal` asks the terminal for the cursor at each change of size, and
/// fails on one that does not answer; this one only writes.
pub struct Fullscreen {
    backend: CrosstermBackend<BufWriter<Stdout>>,
    /// The frame on the screen. None: nothing is known of it.
    shown: Option<Buffer>,
    has_cursor: bool,
    entered: bool,
}

impl Fullscreen {
    pub fn enter() -> io::Result<Fullscreen> {
        PANIC_HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                restore();
                before(info);
            }));
        });
        enter()?;
        let backend = CrosstermBackend::new(BufWriter::with_capacity(BUFFER_LEN, io::stdout()));
        Ok(Fullscreen { backend, shown: None, has_cursor: false, entered: true })
    }

    /// Gives the terminal back, until `resume`.
    pub fn leave(&mut self) {
        if std::mem::take(&mut self.entered) {
            restore();
        }
    }

    pub fn resume(&mut self) -> io::Result<()> {
        enter()?;
        (self.entered, self.has_cursor) = (true, false);
        self.invalidate();
        Ok(())
    }

    /// Draws everything again with the next frame.
    pub fn invalidate(&mut self) {
        self.shown = None;
    }

    /// Draws the cells that differ from the frame on the screen.
    pub fn draw(&mut self, state: &State) -> io::Result<()> {
        let area = Rect::new(0, 0, state.columns, state.lines);
        let shown = match self.shown.take().filter(|shown| shown.area == area) {
            Some(shown) => shown,
            None => {
                queue!(self.backend, Clear(ClearType::All))?;
                Buffer::empty(area)
            }
        };
        let mut next = Buffer::empty(area);
        let cursor = render(state, &mut next);
        self.backend.draw(shown.diff(&next).into_iter())?;
        if let Some(cursor) = cursor {
            queue!(self.backend, MoveTo(cursor.x, cursor.y))?;
        }
        match (cursor.is_some(), self.has_cursor) {
            (true, false) => queue!(self.backend, Show)?,
            (false, true) => queue!(self.backend, Hide)?,
            (true, true) | (false, false) => {}
        }
        (self.has_cursor, self.shown) = (cursor.is_some(), Some(next));
        Write::flush(&mut self.backend)
    }

    /// Writes a sequence that draws nothing.
    pub fn write(&mut self, sequence: &str) -> io::Result<()> {
        let mut out = io::stdout();
        out.write_all(sequence.as_bytes())?;
        out.flush()
    }
}

impl Drop for Fullscreen {
    fn drop(&mut self) {
        self.leave();
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    let entered = execute!(io::stdout(), EnterAlternateScreen, Print(MOUSE_ON), EnableBracketedPaste, Hide);
    entered.inspect_err(|_| restore())
}

fn restore() {
    // If the terminal is gone, there is nothing to restore.
    let _ = execute!(io::stdout(), DisableBracketedPaste, Print(MOUSE_OFF), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}
