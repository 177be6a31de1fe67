//! Our terminal while it is lent to a program: raw, and given back as it was on every way out.

mod dec_graphics;
mod escape_state;
pub mod keys;
mod modes;
pub mod replay;
mod replay_buffer;
mod sys;
mod viewport;

use modes::Modes;
use replay::{snapshot, snapshot_in_place};
use replay_buffer::ReplayBuffer;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use sys::Settings;
#[cfg(test)]
pub use sys::pair;
use toold_proto::pty::PtySize;
use viewport::Viewport;

/// A line of ours in the place of the program's text is there so long.
const MESSAGE_DURATION: Duration = Duration::from_secs(3);

/// What our keys are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyMode {
    /// All of them are the program's, but one.
    Forwarded,
    /// We do not read them, so those that send signals to us still do.
    Unread,
}

/// The terminal. Dropped, or when we panic: as it was before.
pub struct Terminal {
    lent: Arc<Mutex<SavedTerminal>>,
    /// A line of ours that waits for the end of a sequence of the program's.
    pending_message: Option<String>,
    /// What the program has shown, and when it is to be shown again without a line of ours.
    replay: ReplayBuffer,
    redraw: Option<(Instant, String)>,
    /// The program's screen is of another size than ours, and drawn by us.
    viewport: Option<Viewport>,
}

/// What has to be given back. Shared with the hook that runs when we panic.
struct SavedTerminal {
    /// Unbuffered and apart from the standard output's lock, which may be held by who panics.
    tty: File,
    before: Settings,
    keys: KeyMode,
    modes: Modes,
    entered: bool,
    /// Its size when it was lent out first.
    size: Option<PtySize>,
}

impl Terminal {
    /// Lends out the terminal that is our standard output.
    pub fn enter(keys: KeyMode) -> io::Result<Terminal> {
        Terminal::enter_on(File::from(io::stdout().as_fd().try_clone_to_owned()?), keys)
    }

    fn enter_on(tty: File, keys: KeyMode) -> io::Result<Terminal> {
        let before = Settings::read(tty.as_fd())?;
        let size = crate::sys::window_size(tty.as_fd()).filter(|size| size.rows > 0 && size.cols > 0);
        let mut lent = SavedTerminal { tty, before, keys, modes: Modes::default(), entered: false, size };
        lent.enter()?;
        let lent = Arc::new(Mutex::new(lent));
        let terminal =
            Terminal { lent, pending_message: None, replay: ReplayBuffer::default(), redraw: None, viewport: None };
        terminal.restore_on_panic();
        Ok(terminal)
    }

    /// The words of a panic are to be read on a terminal that is itself again.
    fn restore_on_panic(&self) {
        let (lent, tell) = (Arc::downgrade(&self.lent), std::panic::take_hook());
        std::panic::set_hook(Box::new(move |panic| {
            if let Some(lent) = lent.upgrade()
                // Held by who panics: then it is given back when that is unwound.
                && let Ok(mut lent) = lent.try_lock()
            {
                lent.leave(None);
            }
            tell(panic);
        }));
    }

    pub fn size(&self) -> Option<PtySize> {
        self.with(|lent| crate::sys::window_size(lent.tty.as_fd())).filter(|size| size.rows > 0 && size.cols > 0)
    }

    /// What the program writes, as bytes for our screen. None: as they are.
    pub fn translate(&mut self, bytes: &[u8], word: &str) -> Option<Vec<u8>> {
        let bytes = self.replay.push(bytes);
        match (&mut self.viewport, bytes) {
            (Some(viewport), bytes) => Some(viewport.draw(&bytes, word)),
            (None, Cow::Owned(bytes)) => Some(bytes),
            (None, Cow::Borrowed(_)) => None,
        }
    }

    /// The program's screen has another size than before.
    pub fn remote_resized(&mut self) {
        self.replay.resized();
    }

    pub fn has_viewport(&self) -> bool {
        self.viewport.is_some()
    }

    /// What is to be written when the program's screen is of this size: if that is not ours, as much of it as fits and the word
    /// below it; else the program's bytes are shown as they are, from now on.
    pub fn fit(&mut self, theirs: PtySize, word: &str) -> Vec<u8> {
        let Some(ours) = self.size() else { return Vec::new() };
        let off = self.with(|lent| lent.modes.reset_sequence().into_bytes());
        // One row less is the size of a moment, with which somebody makes the program draw.
        let fits = theirs.cols == ours.cols && (theirs.rows == ours.rows || theirs.rows + 1 == ours.rows);
        match (fits, &mut self.viewport) {
            (true, None) => Vec::new(),
            (true, Some(_)) => {
                let bytes = [off, snapshot(&self.replay.recorded(), ours, ours).bytes].concat();
                self.viewport = None;
                bytes
            }
            (false, Some(viewport)) => viewport.fit(theirs, ours, word),
            (false, None) => {
                let recorded = self.replay.recorded();
                let (mut viewport, begin) = Viewport::new(theirs, ours, &[recorded.head, recorded.tail].concat());
                let bytes = [off, begin, viewport.draw(b"", word)].concat();
                self.viewport = Some(viewport);
                bytes
            }
        }
    }

    /// Counts what was shown, and says what waited for its end.
    pub fn track(&mut self, bytes: &[u8]) {
        self.with(|lent| lent.modes.feed(bytes));
        if let Some(text) = self.pending_message.take() {
            self.message(&text);
        }
    }

    /// What was shown last was a picture of ours, of a program that writes line by line.
    pub fn forget_cursor_addressing(&mut self) {
        self.with(|lent| lent.modes.forget_cursor_addressing());
    }

    /// One line of ours amid the program's. Where text stands at places it is in the last row, so that nothing is shifted: on a
    /// full screen until the program writes there, else for a while.
    pub fn message(&mut self, text: &str) {
        if let Some(covers) = self.message_in_last_row(text) {
            self.pending_message = None;
            if covers {
                self.redraw = Some((Instant::now() + MESSAGE_DURATION, text.to_owned()));
            }
            return;
        }
        let said = self.with(|lent| {
            let may = lent.modes.at_boundary();
            if may {
                let begin = if lent.modes.mid_line() { "\r\n" } else { "" };
                lent.modes.set_fresh_line();
                // If nobody sees it, nothing is lost.
                let _ = lent.tty.write_all(format!("{begin}[toolctl: {text}]\r\n").as_bytes());
            }
            may
        });
        self.pending_message = (!said).then(|| text.to_owned());
    }

    /// Says again what the program may have drawn over since, as long as it is to be read.
    pub fn repeat_message(&mut self) {
        if let Some((_, text)) = self.redraw.clone() {
            self.message_in_last_row(&text);
        }
    }

    /// None where text does not stand at places, or a sequence of the program's is not whole. Whether it covers what is to be
    /// shown again.
    fn message_in_last_row(&mut self, text: &str) -> Option<bool> {
        let rows = self.size()?.rows;
        self.with(|lent| {
            if !lent.modes.at_boundary() || !lent.modes.uses_cursor_addressing(rows as usize) {
                return None;
            }
            let line = format!("\x1b7\x1b[{rows};1H\x1b[m[toolctl: {text}]\x1b[K\x1b8");
            // If nobody sees it, nothing is lost.
            let _ = lent.tty.write_all(line.as_bytes());
            Some(!lent.modes.alternate_screen())
        })
    }

    /// When the program's text is to be shown again.
    pub fn redraw_due(&self) -> Option<Instant> {
        // Not inside a sequence of the program's: what ends it comes, or the program has stopped writing.
        let (at, _) = self.redraw.as_ref()?;
        self.with(|lent| lent.modes.at_boundary()).then_some(*at)
    }

    /// Shows it again, of a program whose terminal has this size.
    pub fn redraw(&mut self, was: Option<PtySize>) {
        self.redraw = None;
        let Some(size) = self.size().filter(|_| self.viewport.is_none()) else { return };
        let again = snapshot_in_place(&self.replay.recorded(), was.unwrap_or(size), size);
        // If nobody sees it, nothing is lost.
        let _ = self.with(|lent| lent.tty.write_all(&again.bytes));
    }

    /// Gives it back, on a line of its own.
    pub fn leave(&mut self) {
        // What stands behind a view is not what the program has left, so the cursor may be amid it.
        let size = self.size().filter(|_| self.viewport.is_some());
        self.with(|lent| lent.leave(size));
    }

    /// The same while the program goes on: below all that stands there, if the cursor may be amid it.
    pub fn leave_below(&mut self) {
        let size = self.size();
        self.with(|lent| lent.leave(size));
    }

    /// Lends it out again, after somebody else had it.
    pub fn reenter(&mut self) -> io::Result<()> {
        if let Some(viewport) = &mut self.viewport {
            viewport.invalidate();
        }
        self.with(|lent| {
            lent.enter()?;
            let screen = if lent.modes.alternate_screen() { "\x1b[?1049h" } else { "" };
            lent.tty.write_all(format!("{screen}{}", lent.modes.enable_sequence()).as_bytes())
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut SavedTerminal) -> T) -> T {
        work(&mut self.lent.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}

impl SavedTerminal {
    fn enter(&mut self) -> io::Result<()> {
        let settings = match self.keys {
            KeyMode::Forwarded => self.before.raw(),
            KeyMode::Unread => self.before.raw_output(),
        };
        settings.apply(self.tty.as_fd())?;
        self.entered = true;
        Ok(())
    }

    /// Gives it back on a fresh line; below all that stands there, if the cursor may be amid it and the size is given.
    fn leave(&mut self, size: Option<PtySize>) {
        if !std::mem::take(&mut self.entered) {
            return;
        }
        let (modes, before) = (&self.modes, self.size);
        let moved = |size: &PtySize| !modes.alternate_screen() && before.is_some_and(|before| before != *size);
        let below = size.filter(|size| modes.primary_uses_cursor_addressing(size.rows as usize) || moved(size));
        let line = match below {
            Some(size) => format!("\x1b[{};1H\r\n", size.rows),
            None if modes.mid_line() => "\r\n".to_owned(),
            None => String::new(),
        };
        let off = modes.reset_sequence();
        // The terminal may be gone, and we are leaving in any case.
        let _ = self.tty.write_all(format!("{off}{line}").as_bytes());
        if !sys::is_background(self.tty.as_fd()) {
            let _ = self.before.apply(self.tty.as_fd());
        }
    }
}

#[cfg(test)]
mod tests;
