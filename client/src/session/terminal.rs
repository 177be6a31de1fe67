//! A process on our own terminal: its size, our keys, and our words amid its output.

use super::{Request, Session};
use crate::error::CliError;
use crate::terminal::keys::{DetachKeys, DetachMatcher, Typed};
use crate::terminal::replay::ScreenSnapshot;
use crate::terminal::{KeyMode, Terminal};
use std::time::{Duration, Instant};
use toold_proto::api;
use toold_proto::params;
use toold_proto::params::Stream;
use toold_proto::pty::{Pty, PtySize};

/// A program that is asked to draw its screen anew has so long to see the size that is not to stay.
const TEMPORARY_SIZE_DURATION: Duration = Duration::from_millis(100);
/// Ctrl-C, which ends the looking of somebody who may not type.
const CTRL_C: u8 = 3;

/// What we may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Type, and give the terminal our size.
    Full,
    /// Type. The size was chosen by the person.
    FixedSize,
    ReadOnly,
}

/// Our terminal, and what we may do to the process's.
pub struct AttachedTerminal {
    access: Access,
    keys: DetachMatcher,
    /// Whether we read keys at all.
    reads: KeyMode,
    terminal: Option<Terminal>,
    /// Our size has changed while the last one was on its way.
    resize_queued: bool,
    /// When the size that is not to stay ends.
    temporary_size_until: Option<Instant>,
    /// The size of the process's screen, as far as we have heard; and whether the next page may tell one from before the size
    /// that we gave it.
    remote_size: Option<PtySize>,
    size_in_flight: bool,
    /// Such a page did tell another: the next one is not waited for.
    size_disputed: bool,
}

impl AttachedTerminal {
    pub fn new(access: Access, keys: DetachKeys, reads: KeyMode) -> AttachedTerminal {
        AttachedTerminal {
            access,
            keys: DetachMatcher::new(keys),
            reads,
            terminal: None,
            resize_queued: false,
            temporary_size_until: None,
            remote_size: None,
            size_in_flight: false,
            size_disputed: false,
        }
    }

    /// The process's screen is, or will be, of this size.
    fn set_remote_size(&mut self, size: Option<PtySize>) {
        let before = std::mem::replace(&mut self.remote_size, size);
        // Not the first that is heard of, nor the same again: then the program hears nothing, and all stays as it set it.
        if before.is_some_and(|before| Some(before) != size)
            && let Some(terminal) = &mut self.terminal
        {
            terminal.remote_resized();
        }
    }

    /// What was typed, as far as it is the process's. With nothing to type, Ctrl-C leaves as well.
    pub fn typed(&mut self, piece: &[u8]) -> Typed {
        match (self.access, self.keys.typed(piece)) {
            (Access::Full | Access::FixedSize, typed) => typed,
            (Access::ReadOnly, Typed::Keys(keys)) if !keys.contains(&CTRL_C) => Typed::Keys(Vec::new()),
            (Access::ReadOnly, Typed::Keys(_) | Typed::Detach(_)) => Typed::Detach(Vec::new()),
        }
    }
}

impl Session<'_, '_> {
    /// Stays with a process that is there already, from this cursor on, after its picture. `theirs` is the size of its screen
    /// where that is not ours to change: it decides how all is shown.
    pub fn attach(
        mut self,
        id: String,
        cursor: u64,
        snapshot: &ScreenSnapshot,
        redraw: bool,
        theirs: Option<PtySize>,
    ) -> Result<u8, CliError> {
        self.process = Some(id);
        self.progress.cursor = cursor;
        self.take_screen()?;
        if let Some(code) = self.update_remote_size(theirs)? {
            return Ok(code);
        }
        if let Some(code) = self.print(Stream::Stdout, &snapshot.bytes)? {
            return Ok(code);
        }
        if let Some(terminal) = self.terminal()
            && !snapshot.uses_cursor_addressing
        {
            terminal.forget_cursor_addressing();
        }
        if redraw {
            self.request_redraw()?
        } else {
            self.resize()?
        }
        self.poll(self.progress.first())?;
        self.run_loop()
    }

    /// Lends our terminal to the process.
    pub(super) fn take_screen(&mut self) -> Result<(), CliError> {
        if let Some(screen) = &mut self.plan.screen {
            let failed = |source| CliError::Io { doing: "set the terminal up", source };
            screen.terminal = Some(Terminal::enter(screen.reads).map_err(failed)?);
        }
        Ok(())
    }

    fn terminal(&mut self) -> Option<&mut Terminal> {
        self.plan.screen.as_mut()?.terminal.as_mut()
    }

    /// Our terminal is ours again, if it was not.
    pub(super) fn give_back(&mut self) {
        if let Some(terminal) = self.terminal() {
            terminal.leave();
        }
    }

    /// The same while the process goes on, on a line below what it has shown.
    pub(super) fn give_back_below(&mut self) {
        if let Some(terminal) = self.terminal() {
            terminal.leave_below();
        }
    }

    /// After a stop, whoever stopped us has used the terminal.
    pub(super) fn resume_terminal(&mut self) -> Result<(), CliError> {
        let Some(terminal) = self.terminal() else { return Ok(()) };
        terminal.reenter().map_err(|source| CliError::Io { doing: "set the terminal up", source })?;
        if terminal.has_viewport() {
            return self.fit().map(|_| ());
        }
        self.request_redraw()
    }

    /// What the program writes, if we have to draw it.
    pub(super) fn translate(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let viewed = self.terminal()?.has_viewport();
        let word = if viewed { self.size_status() } else { String::new() };
        self.terminal()?.translate(bytes, &word)
    }

    /// The process's screen has this size, a page says. One that was asked for before our size was given may be wrong.
    pub(super) fn update_remote_size(&mut self, theirs: Option<PtySize>) -> Result<Option<u8>, CliError> {
        match &mut self.plan.screen {
            Some(screen) if !screen.size_in_flight && theirs.is_some() => screen.set_remote_size(theirs),
            Some(screen) => {
                screen.size_disputed = screen.remote_size != theirs;
                return Ok(None);
            }
            None => return Ok(None),
        }
        self.fit()
    }

    /// Shows the screen as it fits ours.
    pub(super) fn fit(&mut self) -> Result<Option<u8>, CliError> {
        let Some(screen) = &self.plan.screen else { return Ok(None) };
        let ours_soon = screen.size_in_flight || screen.temporary_size_until.is_some();
        let viewed = screen.terminal.as_ref().is_some_and(Terminal::has_viewport);
        let Some(theirs) = screen.remote_size.filter(|_| screen.access != Access::FixedSize && (viewed || !ours_soon))
        else {
            return Ok(None);
        };
        let word = self.size_status();
        let bytes = self.terminal().map(|terminal| terminal.fit(theirs, &word)).unwrap_or_default();
        match self.put(Stream::Stdout, &bytes) {
            Err(CliError::OutputClosed | CliError::Io { .. }) => self.hung_up(libc::SIGHUP),
            done => done,
        }
    }

    /// What is to be said of a screen that is not of our size.
    fn size_status(&self) -> String {
        let Some(screen) = &self.plan.screen else { return String::new() };
        let ours = screen.terminal.as_ref().and_then(Terminal::size);
        let (Some(theirs), Some(ours)) = (screen.remote_size, ours) else { return String::new() };
        format_sizes(screen.access, theirs, ours)
    }

    pub(super) fn track_output(&mut self, bytes: &[u8]) {
        if let Some(terminal) = self.terminal() {
            terminal.track(bytes);
        }
    }

    /// A word to the person, wherever it can be read.
    pub(super) fn message(&mut self, text: &str) {
        match self.terminal() {
            Some(terminal) => terminal.message(text),
            None => self.cx.console.message(text),
        }
    }

    /// Says that the daemon was away, to who watches a terminal. Not before it has answered: a
    /// daemon that was killed takes connections until its last descriptor is closed.
    pub(super) fn report_reconnect(&mut self) {
        if std::mem::take(&mut self.away)
            && let Some(terminal) = self.terminal()
        {
            terminal.message("the daemon went away and is back; nothing was lost");
        }
    }

    /// Says it again where the program has drawn meanwhile, as one does that draws every second.
    pub(super) fn repeat_message(&mut self) {
        if let Some(terminal) = self.terminal() {
            terminal.repeat_message();
        }
    }

    /// When a word of ours on the program's screen has been there long enough.
    pub(super) fn redraw_due(&self) -> Option<Instant> {
        self.plan.screen.as_ref()?.terminal.as_ref()?.redraw_due()
    }

    /// Takes it away.
    pub(super) fn redraw(&mut self) {
        let was = match self.plan.exec.pty {
            Pty::Sized(size) => Some(size),
            Pty::No | Pty::Default => None,
        };
        let fixed = was.filter(|_| self.plan.screen.as_ref().is_some_and(|screen| screen.access == Access::FixedSize));
        if let Some(terminal) = self.terminal() {
            terminal.redraw(fixed);
        }
    }

    /// The size that the process's terminal is to have, if that is ours to say.
    fn our_size(&mut self) -> Option<PtySize> {
        match self.plan.screen.as_ref()?.access {
            Access::Full => self.terminal()?.size(),
            Access::FixedSize | Access::ReadOnly => None,
        }
    }

    /// Gives the process's terminal our size. One at a time: the daemon may answer two at once, in
    /// any order.
    pub(super) fn resize(&mut self) -> Result<(), CliError> {
        let Some(size) = self.our_size() else { return Ok(()) };
        let waits = self.is_pending(Request::Resize);
        if let Some(screen) = &mut self.plan.screen {
            (screen.resize_queued, screen.temporary_size_until) = (waits, None);
        }
        if waits { Ok(()) } else { self.request_size(size) }
    }

    fn request_size(&mut self, size: PtySize) -> Result<(), CliError> {
        let params = params::Resize { id: self.id(), rows: size.rows, cols: size.cols };
        if let Some(screen) = &mut self.plan.screen {
            screen.size_in_flight = true;
            screen.set_remote_size(Some(size));
        }
        self.ask::<api::Resize>(Request::Resize, &params, Duration::ZERO)
    }

    pub(super) fn on_resized(&mut self) -> Result<Option<u8>, CliError> {
        match &self.plan.screen {
            Some(screen) if screen.resize_queued => self.resize().map(|()| None),
            // It is ours now.
            Some(_) => self.fit(),
            None => Ok(None),
        }
    }

    /// How long the next page may take. It tells the size that we gave, unless that is still on its way.
    pub(super) fn page_wait(&mut self, wait: Duration) -> Duration {
        let waits = self.is_pending(Request::Resize);
        match &mut self.plan.screen {
            Some(screen) if !waits => {
                screen.size_in_flight = false;
                if std::mem::take(&mut screen.size_disputed) { Duration::ZERO } else { wait }
            }
            Some(_) | None => wait,
        }
    }

    /// Makes a program draw its whole screen: it does so when its size changes, so for a moment
    /// it is a row less.
    fn request_redraw(&mut self) -> Result<(), CliError> {
        match self.our_size() {
            Some(size) if size.rows > 1 && !self.is_pending(Request::Resize) => {
                if let Some(screen) = &mut self.plan.screen {
                    screen.temporary_size_until = Some(Instant::now() + TEMPORARY_SIZE_DURATION);
                }
                self.request_size(PtySize { rows: size.rows - 1, ..size })
            }
            Some(_) | None => self.resize(),
        }
    }

    /// When the true size is due.
    pub(super) fn resize_due(&self) -> Option<Instant> {
        self.plan.screen.as_ref()?.temporary_size_until
    }
}

/// The longest word about both sizes that fits into our window, or the shortest there is.
fn format_sizes(access: Access, theirs: PtySize, ours: PtySize) -> String {
    let width = ours.cols as usize;
    let (theirs, ours) = (format!("{}x{}", theirs.rows, theirs.cols), format!("{}x{}", ours.rows, ours.cols));
    let both = format!("toolctl: its screen is {theirs}, your window {ours}");
    let long = match access {
        Access::ReadOnly => vec![format!("[{both}; Ctrl-C leaves]")],
        Access::Full | Access::FixedSize => vec![
            format!("[toolctl: {theirs} is the size of who resized last; resize your window to make it yours, {ours}]"),
            format!("[{both}; resize yours to change it]"),
        ],
    };
    let short = [format!("[{both}]"), format!("[its {theirs}, yours {ours}]")];
    let shortest = format!("{theirs}/{ours}");
    long.into_iter().chain(short).find(|word| word.len() <= width).unwrap_or(shortest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::keys;

    #[test]
    fn both_sizes_stand_in_a_window_of_any_width() {
        // The broken code had one wording, whose end with our size was cut in a window of 80 columns.
        let theirs = PtySize { rows: 40, cols: 120 };
        for (access, cols, word) in [
            (
                Access::Full,
                100,
                "[toolctl: 40x120 is the size of who resized last; resize your window to make it yours, 24x100]",
            ),
            (Access::Full, 80, "[toolctl: its screen is 40x120, your window 24x80; resize yours to change it]"),
            (Access::Full, 60, "[toolctl: its screen is 40x120, your window 24x60]"),
            (Access::Full, 40, "[its 40x120, yours 24x40]"),
            (Access::Full, 20, "40x120/24x20"),
            (Access::ReadOnly, 80, "[toolctl: its screen is 40x120, your window 24x80; Ctrl-C leaves]"),
            (Access::ReadOnly, 60, "[toolctl: its screen is 40x120, your window 24x60]"),
        ] {
            assert_eq!(format_sizes(access, theirs, PtySize { rows: 24, cols }), word);
        }
    }

    #[test]
    fn a_looker_types_nothing_and_leaves_with_the_detach_key_or_ctrl_c() {
        let screen = |access| AttachedTerminal::new(access, keys::parse("C-\\").expect("a key"), KeyMode::Forwarded);
        let mut viewer = screen(Access::ReadOnly);
        assert_eq!(viewer.typed(b"secret\r"), Typed::Keys(Vec::new()));
        assert_eq!(viewer.typed(b"secret\x03"), Typed::Detach(Vec::new()));
        assert_eq!(viewer.typed(b"secret\x1c"), Typed::Detach(Vec::new()));
        for access in [Access::Full, Access::FixedSize] {
            assert_eq!(screen(access).typed(b"a\x03"), Typed::Keys(b"a\x03".to_vec()));
            assert_eq!(screen(access).typed(b"a\x1c"), Typed::Detach(b"a".to_vec()));
        }
    }
}
