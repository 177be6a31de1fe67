//! The terminal while we draw on all of it, restored on every way out: the end, an error, a panic, a signal.

use crate::model::State;
use crate::render::render;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use std::io::{self, BufWriter, Stdout, Write};
use std::sync::Once;

/// One frame fits.
const BUFFER_LEN: usize = 64 * 1024;
static PANIC_HOOK: Once = Once::new();

pub struct Fullscreen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
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
        let terminal = Terminal::new(backend).inspect_err(|_| restore())?;
        Ok(Fullscreen { terminal, entered: true })
    }

    /// Gives the terminal back, until `resume`.
    pub fn leave(&mut self) {
        if std::mem::take(&mut self.entered) {
            restore();
        }
    }

    pub fn resume(&mut self) -> io::Result<()> {
        enter()?;
        self.entered = true;
        self.terminal.clear()
    }

    /// Draws everything again with the next frame.
    pub fn invalidate(&mut self) -> io::Result<()> {
        self.terminal.clear()
    }

    pub fn draw(&mut self, state: &State) -> io::Result<()> {
        let drawn = self.terminal.draw(|frame| {
            if let Some(cursor) = render(state, frame.buffer_mut()) {
                frame.set_cursor_position(cursor);
            }
        });
        drawn.map(drop)
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
    let entered = execute!(io::stdout(), EnterAlternateScreen, EnableMouseCapture, EnableBracketedPaste, Hide);
    entered.inspect_err(|_| restore())
}

fn restore() {
    // If the terminal is gone, there is nothing to restore.
    let _ = execute!(io::stdout(), DisableBracketedPaste, DisableMouseCapture, LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}
