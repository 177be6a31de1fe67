//! The user's terminal while a program's output is shown on it: raw, and restored on every way out.

mod boundary;
pub mod keys;
mod modes;
pub mod replay;
mod replay_buffer;
mod tokens;
mod viewport;

use crate::render::text::escape_control;
use crate::sys::{self, TerminalSettings};
use modes::Modes;
use replay::{snapshot, snapshot_in_place};
use replay_buffer::ReplayBuffer;
use std::borrow::Cow;
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use toold_proto::pty::PtySize;
use viewport::Viewport;

/// A message of ours that covers the program's text stays for this time.
const MESSAGE_DURATION: Duration = Duration::from_secs(3);

/// Use of the keys that are typed at our terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyMode {
    /// All of them go to the program, except the detach keys.
    Forwarded,
    /// Nothing reads them, so keys that send signals (Ctrl-C) still do.
    Unread,
}

/// The user's terminal. Restored when dropped and on a panic.
pub struct Terminal {
    saved: Arc<Mutex<SavedTerminal>>,
    /// A message of ours that waits for the end of an escape sequence of the program.
    pending_message: Option<String>,
    /// The program's output, kept to draw its screen again.
    replay: ReplayBuffer,
    /// The time at which the program's screen is drawn again without our message, and that message.
    redraw: Option<(Instant, String)>,
    /// Set while the program's screen has another size than ours and we draw it.
    viewport: Option<Viewport>,
}

/// The state that has to be restored. Shared with the panic hook.
struct SavedTerminal {
    /// Unbuffered, and independent of the lock of standard output, which the panicking thread may hold.
    tty: File,
    before: TerminalSettings,
    keys: KeyMode,
    modes: Modes,
    entered: bool,
    /// Its size when it was entered first.
    size: Option<PtySize>,
}

impl Terminal {
    /// Enters the terminal that is our standard output.
    pub fn enter(keys: KeyMode) -> io::Result<Terminal> {
        Terminal::enter_on(File::from(io::stdout().as_fd().try_clone_to_owned()?), keys)
    }

    fn enter_on(tty: File, keys: KeyMode) -> io::Result<Terminal> {
        let before = TerminalSettings::read(tty.as_fd())?;
        let size = sys::window_size(tty.as_fd()).filter(|size| size.rows > 0 && size.cols > 0);
        let mut saved = SavedTerminal { tty, before, keys, modes: Modes::default(), entered: false, size };
        saved.enter()?;
        let saved = Arc::new(Mutex::new(saved));
        let terminal =
            Terminal { saved, pending_message: None, replay: ReplayBuffer::default(), redraw: None, viewport: None };
        terminal.restore_on_panic();
        Ok(terminal)
    }

    /// Restores the terminal before the panic message is printed, so that it can be read.
    fn restore_on_panic(&self) {
        let saved = Arc::downgrade(&self.saved);
        let previous_hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            if let Some(saved) = saved.upgrade()
                // If the panicking thread holds the lock, unwinding drops the terminal and restores it.
                && let Ok(mut saved) = saved.try_lock()
            {
                saved.leave(None);
            }
            previous_hook(panic);
        }));
    }

    /// Returns the window size, or None if it is not known.
    pub fn size(&self) -> Option<PtySize> {
        self.with(|saved| sys::window_size(saved.tty.as_fd())).filter(|size| size.rows > 0 && size.cols > 0)
    }

    /// Returns the program's output as bytes for our screen, or None if they are the same. `status` is the last row of a viewport.
    pub fn translate(&mut self, bytes: &[u8], status: &str) -> Option<Vec<u8>> {
        let bytes = self.replay.push(bytes);
        match (&mut self.viewport, bytes) {
            (Some(viewport), bytes) => Some(viewport.draw(&bytes, status)),
            (None, Cow::Owned(bytes)) => Some(bytes),
            (None, Cow::Borrowed(_)) => None,
        }
    }

    /// Notes that the program's screen has another size than before.
    pub fn remote_resized(&mut self) {
        self.replay.resized();
    }

    pub fn has_viewport(&self) -> bool {
        self.viewport.is_some()
    }

    /// Returns the bytes to write now that the program's screen has the size `theirs`. If that is not our size, they show as much
    /// of it as fits, with `status` below it; else the program's output goes to our terminal unchanged from now on.
    pub fn fit(&mut self, theirs: PtySize, status: &str) -> Vec<u8> {
        let Some(ours) = self.size() else { return Vec::new() };
        let reset = self.with(|saved| saved.modes.reset_sequence().into_bytes());
        // One row less is temporary: another client sets that size to make the program redraw.
        let fits = theirs.cols == ours.cols && (theirs.rows == ours.rows || theirs.rows + 1 == ours.rows);
        match (fits, &mut self.viewport) {
            (true, None) => Vec::new(),
            (true, Some(_)) => {
                let bytes = [reset, snapshot(&self.replay.recorded(), ours, ours).bytes].concat();
                self.viewport = None;
                bytes
            }
            (false, Some(viewport)) => viewport.fit(theirs, ours, status),
            (false, None) => {
                let recorded = self.replay.recorded();
                let (mut viewport, begin) = Viewport::new(theirs, ours, &[recorded.head, recorded.tail].concat());
                let bytes = [reset, begin, viewport.draw(b"", status)].concat();
                self.viewport = Some(viewport);
                bytes
            }
        }
    }

    /// Follows the modes in output that was shown, and prints a message that waited for the end of a sequence.
    pub fn track(&mut self, bytes: &[u8]) {
        self.with(|saved| saved.modes.feed(bytes));
        if let Some(text) = self.pending_message.take() {
            self.message(&text);
        }
    }

    /// Forgets cursor positions in the output so far: they come from our snapshot of a program that writes line by line.
    pub fn forget_cursor_addressing(&mut self) {
        self.with(|saved| saved.modes.forget_cursor_addressing());
    }

    /// Prints one line of ours into the program's output. If the program addresses the cursor, the line goes into the last row so
    /// that nothing is shifted: on the alternate screen until the program writes there, else for [`MESSAGE_DURATION`].
    pub fn message(&mut self, text: &str) {
        // It may contain a message of the daemon, with a path or a name in it.
        let text = &escape_control(text);
        if let Some(covers) = self.message_in_last_row(text) {
            self.pending_message = None;
            if covers {
                self.redraw = Some((Instant::now() + MESSAGE_DURATION, text.to_owned()));
            }
            return;
        }
        let printed = self.with(|saved| {
            let at_boundary = saved.modes.at_boundary();
            if at_boundary {
                let begin = if saved.modes.mid_line() { "\r\n" } else { "" };
                saved.modes.set_fresh_line();
                // A terminal that is gone needs no message.
                let _ = saved.tty.write_all(format!("{begin}[toolctl: {text}]\r\n").as_bytes());
            }
            at_boundary
        });
        self.pending_message = (!printed).then(|| text.to_owned());
    }

    /// Prints the current message again, since the program may have drawn over it.
    pub fn repeat_message(&mut self) {
        if let Some((_, text)) = self.redraw.clone() {
            self.message_in_last_row(&text);
        }
    }

    /// Prints the message into the last row. Returns None if the program does not address the cursor or an escape sequence is
    /// unfinished, else whether the message covers text that has to be drawn again.
    fn message_in_last_row(&mut self, text: &str) -> Option<bool> {
        let rows = self.size()?.rows;
        self.with(|saved| {
            if !saved.modes.at_boundary() || !saved.modes.uses_cursor_addressing(rows as usize) {
                return None;
            }
            let line = format!("\x1b7\x1b[{rows};1H\x1b[m[toolctl: {text}]\x1b[K\x1b8");
            // A terminal that is gone needs no message.
            let _ = saved.tty.write_all(line.as_bytes());
            Some(!saved.modes.alternate_screen())
        })
    }

    /// Returns the time at which the program's screen is to be drawn again.
    pub fn redraw_due(&self) -> Option<Instant> {
        // Not inside a sequence of the program: its end arrives, or the program has stopped writing.
        let (at, _) = self.redraw.as_ref()?;
        self.with(|saved| saved.modes.at_boundary()).then_some(*at)
    }

    /// Draws the program's screen again. `theirs` is the size of the program's terminal if it is not ours.
    pub fn redraw(&mut self, theirs: Option<PtySize>) {
        self.redraw = None;
        let Some(size) = self.size().filter(|_| self.viewport.is_none()) else { return };
        let snapshot = snapshot_in_place(&self.replay.recorded(), theirs.unwrap_or(size), size);
        // A terminal that is gone needs no picture.
        let _ = self.with(|saved| saved.tty.write_all(&snapshot.bytes));
    }

    /// Restores the terminal, with the cursor on a fresh line.
    pub fn leave(&mut self) {
        // The screen behind a viewport is not what the program left there, so the cursor may be inside text.
        let size = self.size().filter(|_| self.viewport.is_some());
        self.with(|saved| saved.leave(size));
    }

    /// Restores the terminal while the program keeps running: below all text, if the cursor may be inside it.
    pub fn leave_below(&mut self) {
        let size = self.size();
        self.with(|saved| saved.leave(size));
    }

    /// Enters the terminal again, after another program used it.
    pub fn reenter(&mut self) -> io::Result<()> {
        if let Some(viewport) = &mut self.viewport {
            viewport.invalidate();
        }
        self.with(|saved| {
            saved.enter()?;
            let screen = if saved.modes.alternate_screen() { "\x1b[?1049h" } else { "" };
            saved.tty.write_all(format!("{screen}{}", saved.modes.enable_sequence()).as_bytes())
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut SavedTerminal) -> T) -> T {
        work(&mut self.saved.lock().unwrap_or_else(PoisonError::into_inner))
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

    /// Restores the terminal with the cursor on a fresh line; below all text, if the cursor may be inside it and the size is given.
    fn leave(&mut self, size: Option<PtySize>) {
        if !std::mem::take(&mut self.entered) {
            return;
        }
        let modes = &self.modes;
        let before = self.size;
        let is_resized = |size: &PtySize| !modes.alternate_screen() && before.is_some_and(|before| before != *size);
        let below = size.filter(|size| modes.primary_uses_cursor_addressing(size.rows as usize) || is_resized(size));
        let line = match below {
            Some(size) => format!("\x1b[{};1H\r\n", size.rows),
            None if modes.mid_line() => "\r\n".to_owned(),
            None => String::new(),
        };
        let reset = modes.reset_sequence();
        // The terminal may be gone, and we are leaving in any case.
        let _ = self.tty.write_all(format!("{reset}{line}").as_bytes());
        if !sys::is_background(self.tty.as_fd()) {
            let _ = self.before.apply(self.tty.as_fd());
        }
    }
}

#[cfg(test)]
mod tests;
