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
use replay::{picture, picture_again};
use replay_buffer::Recent;
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
use viewport::View;

/// A line of ours in the place of the program's text is there so long.
const READ: Duration = Duration::from_secs(3);

/// What our keys are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keys {
    /// All of them are the program's, but one.
    Taken,
    /// We do not read them, so those that send signals to us still do.
    Left,
}

/// The terminal. Dropped, or when we panic: as it was before.
pub struct Terminal {
    lent: Arc<Mutex<Lent>>,
    /// A line of ours that waits for the end of a sequence of the program's.
    due: Option<String>,
    /// What the program has shown, and when it is to be shown again without a line of ours.
    recent: Recent,
    redraw: Option<(Instant, String)>,
    /// The program's screen is of another size than ours, and drawn by us.
    view: Option<View>,
}

/// What has to be given back. Shared with the hook that runs when we panic.
struct Lent {
    /// Unbuffered and apart from the standard output's lock, which may be held by who panics.
    tty: File,
    before: Settings,
    keys: Keys,
    modes: Modes,
    entered: bool,
    /// Its size when it was lent out first.
    size: Option<PtySize>,
}

impl Terminal {
    /// Lends out the terminal that is our standard output.
    pub fn enter(keys: Keys) -> io::Result<Terminal> {
        Terminal::enter_on(File::from(io::stdout().as_fd().try_clone_to_owned()?), keys)
    }

    fn enter_on(tty: File, keys: Keys) -> io::Result<Terminal> {
        let before = Settings::of(tty.as_fd())?;
        let size = crate::sys::window_size(tty.as_fd()).filter(|size| size.rows > 0 && size.cols > 0);
        let mut lent = Lent { tty, before, keys, modes: Modes::default(), entered: false, size };
        lent.enter()?;
        let lent = Arc::new(Mutex::new(lent));
        let terminal = Terminal { lent, due: None, recent: Recent::default(), redraw: None, view: None };
        terminal.mind_panics();
        Ok(terminal)
    }

    /// The words of a panic are to be read on a terminal that is itself again.
    fn mind_panics(&self) {
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
    pub fn drawn(&mut self, bytes: &[u8], word: &str) -> Option<Vec<u8>> {
        let bytes = self.recent.push(bytes);
        match (&mut self.view, bytes) {
            (Some(view), bytes) => Some(view.draw(&bytes, word)),
            (None, Cow::Owned(bytes)) => Some(bytes),
            (None, Cow::Borrowed(_)) => None,
        }
    }

    /// The program's screen has another size than before.
    pub fn resized(&mut self) {
        self.recent.resized();
    }

    pub fn has_view(&self) -> bool {
        self.view.is_some()
    }

    /// What is to be written when the program's screen is of this size: if that is not ours, as much of it as fits and the word
    /// below it; else the program's bytes are shown as they are, from now on.
    pub fn fit(&mut self, theirs: PtySize, word: &str) -> Vec<u8> {
        let Some(ours) = self.size() else { return Vec::new() };
        let off = self.with(|lent| lent.modes.off().into_bytes());
        // One row less is the size of a moment, with which somebody makes the program draw.
        let fits = theirs.cols == ours.cols && (theirs.rows == ours.rows || theirs.rows + 1 == ours.rows);
        match (fits, &mut self.view) {
            (true, None) => Vec::new(),
            (true, Some(_)) => {
                let bytes = [off, picture(&self.recent.recorded(), ours, ours).bytes].concat();
                self.view = None;
                bytes
            }
            (false, Some(view)) => view.fit(theirs, ours, word),
            (false, None) => {
                let recorded = self.recent.recorded();
                let (mut view, begin) = View::new(theirs, ours, &[recorded.head, recorded.tail].concat());
                let bytes = [off, begin, view.draw(b"", word)].concat();
                self.view = Some(view);
                bytes
            }
        }
    }

    /// Counts what was shown, and says what waited for its end.
    pub fn shown(&mut self, bytes: &[u8]) {
        self.with(|lent| lent.modes.feed(bytes));
        if let Some(text) = self.due.take() {
            self.say(&text);
        }
    }

    /// What was shown last was a picture of ours, of a program that writes line by line.
    pub fn forget_places(&mut self) {
        self.with(|lent| lent.modes.forget_places());
    }

    /// One line of ours amid the program's. Where text stands at places it is in the last row, so that nothing is shifted: on a
    /// full screen until the program writes there, else for a while.
    pub fn say(&mut self, text: &str) {
        if let Some(covers) = self.say_in_last_row(text) {
            self.due = None;
            if covers {
                self.redraw = Some((Instant::now() + READ, text.to_owned()));
            }
            return;
        }
        let said = self.with(|lent| {
            let may = lent.modes.between();
            if may {
                let begin = if lent.modes.amid_line() { "\r\n" } else { "" };
                lent.modes.on_fresh_line();
                // If nobody sees it, nothing is lost.
                let _ = lent.tty.write_all(format!("{begin}[toolctl: {text}]\r\n").as_bytes());
            }
            may
        });
        self.due = (!said).then(|| text.to_owned());
    }

    /// Says again what the program may have drawn over since, as long as it is to be read.
    pub fn repeat(&mut self) {
        if let Some((_, text)) = self.redraw.clone() {
            self.say_in_last_row(&text);
        }
    }

    /// None where text does not stand at places, or a sequence of the program's is not whole. Whether it covers what is to be
    /// shown again.
    fn say_in_last_row(&mut self, text: &str) -> Option<bool> {
        let rows = self.size()?.rows;
        self.with(|lent| {
            if !lent.modes.between() || !lent.modes.placed(rows as usize) {
                return None;
            }
            let line = format!("\x1b7\x1b[{rows};1H\x1b[m[toolctl: {text}]\x1b[K\x1b8");
            // If nobody sees it, nothing is lost.
            let _ = lent.tty.write_all(line.as_bytes());
            Some(!lent.modes.alternate())
        })
    }

    /// When the program's text is to be shown again.
    pub fn redraw_due(&self) -> Option<Instant> {
        // Not inside a sequence of the program's: what ends it comes, or the program has stopped writing.
        let (at, _) = self.redraw.as_ref()?;
        self.with(|lent| lent.modes.between()).then_some(*at)
    }

    /// Shows it again, of a program whose terminal has this size.
    pub fn redraw(&mut self, was: Option<PtySize>) {
        self.redraw = None;
        let Some(size) = self.size().filter(|_| self.view.is_none()) else { return };
        let again = picture_again(&self.recent.recorded(), was.unwrap_or(size), size);
        // If nobody sees it, nothing is lost.
        let _ = self.with(|lent| lent.tty.write_all(&again.bytes));
    }

    /// Gives it back, on a line of its own.
    pub fn leave(&mut self) {
        // What stands behind a view is not what the program has left, so the cursor may be amid it.
        let size = self.size().filter(|_| self.view.is_some());
        self.with(|lent| lent.leave(size));
    }

    /// The same while the program goes on: below all that stands there, if the cursor may be amid it.
    pub fn leave_below(&mut self) {
        let size = self.size();
        self.with(|lent| lent.leave(size));
    }

    /// Lends it out again, after somebody else had it.
    pub fn enter_again(&mut self) -> io::Result<()> {
        if let Some(view) = &mut self.view {
            view.forget();
        }
        self.with(|lent| {
            lent.enter()?;
            let screen = if lent.modes.alternate() { "\x1b[?1049h" } else { "" };
            lent.tty.write_all(format!("{screen}{}", lent.modes.on()).as_bytes())
        })
    }

    fn with<T>(&self, work: impl FnOnce(&mut Lent) -> T) -> T {
        work(&mut self.lent.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Lent {
    fn enter(&mut self) -> io::Result<()> {
        let settings = match self.keys {
            Keys::Taken => self.before.raw(),
            Keys::Left => self.before.watching(),
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
        let moved = |size: &PtySize| !modes.alternate() && before.is_some_and(|before| before != *size);
        let below = size.filter(|size| modes.placed_behind(size.rows as usize) || moved(size));
        let line = match below {
            Some(size) => format!("\x1b[{};1H\r\n", size.rows),
            None if modes.amid_line() => "\r\n".to_owned(),
            None => String::new(),
        };
        let off = modes.off();
        // The terminal may be gone, and we are leaving in any case.
        let _ = self.tty.write_all(format!("{off}{line}").as_bytes());
        if !sys::is_background(self.tty.as_fd()) {
            let _ = self.before.apply(self.tty.as_fd());
        }
    }
}

#[cfg(test)]
mod tests;
