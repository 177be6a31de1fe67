//! The user's terminal in a session: its size, the keys typed, and our messages in the program's output.

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

/// Time for which a program that is to redraw its screen gets another size.
const TEMPORARY_SIZE_DURATION: Duration = Duration::from_millis(100);
/// Ctrl-C, which detaches with read-only access.
const CTRL_C: u8 = 3;

/// Permissions of the session on the process's terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Typing, and setting our window size.
    Full,
    /// Typing. The user chose the size.
    FixedSize,
    ReadOnly,
}

/// The user's terminal, and the known size of the process's screen.
pub struct AttachedTerminal {
    access: Access,
    keys: DetachMatcher,
    key_mode: KeyMode,
    terminal: Option<Terminal>,
    /// Our window size changed while the last `resize` was not answered.
    resize_queued: bool,
    /// The time at which the temporary size of a redraw ends.
    temporary_size_until: Option<Instant>,
    /// Size of the process's screen, as far as is known.
    remote_size: Option<PtySize>,
    /// We sent a `resize`, so the next page may report the size before it.
    size_in_flight: bool,
    /// Such a page reported another size, so the next poll returns at once.
    size_disputed: bool,
}

impl AttachedTerminal {
    pub fn new(access: Access, keys: DetachKeys, key_mode: KeyMode) -> AttachedTerminal {
        AttachedTerminal {
            access,
            keys: DetachMatcher::new(keys),
            key_mode,
            terminal: None,
            resize_queued: false,
            temporary_size_until: None,
            remote_size: None,
            size_in_flight: false,
            size_disputed: false,
        }
    }

    /// Sets the size that the process's screen has or will have.
    fn set_remote_size(&mut self, size: Option<PtySize>) {
        let before = std::mem::replace(&mut self.remote_size, size);
        // The first known size and the same size again are not changes: the program gets no SIGWINCH and its margins stay.
        if before.is_some_and(|before| Some(before) != size)
            && let Some(terminal) = &mut self.terminal
        {
            terminal.remote_resized();
        }
    }

    /// Returns the meaning of typed input. With read-only access no key goes to the process, and Ctrl-C detaches too.
    pub fn typed(&mut self, piece: &[u8]) -> Typed {
        match (self.access, self.keys.typed(piece)) {
            (Access::Full | Access::FixedSize, typed) => typed,
            (Access::ReadOnly, Typed::Keys(keys)) if !keys.contains(&CTRL_C) => Typed::Keys(Vec::new()),
            (Access::ReadOnly, Typed::Keys(_) | Typed::Detach(_)) => Typed::Detach(Vec::new()),
        }
    }
}

impl Session<'_, '_> {
    /// Shows the snapshot of a running process and follows it from this cursor on. `theirs` is the size of its screen if we may
    /// not change it: then it decides how everything is shown.
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
        self.enter_terminal()?;
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

    /// Enters the user's terminal, if the session uses it.
    pub(super) fn enter_terminal(&mut self) -> Result<(), CliError> {
        if let Some(screen) = &mut self.options.screen {
            let failed = |source| CliError::Io { doing: "set up the terminal", source };
            screen.terminal = Some(Terminal::enter(screen.key_mode).map_err(failed)?);
        }
        Ok(())
    }

    fn terminal(&mut self) -> Option<&mut Terminal> {
        self.options.screen.as_mut()?.terminal.as_mut()
    }

    /// Restores the user's terminal.
    pub(super) fn restore_terminal(&mut self) {
        if let Some(terminal) = self.terminal() {
            terminal.leave();
        }
    }

    /// Restores it while the process keeps running, with the cursor below the process's text.
    pub(super) fn restore_terminal_below(&mut self) {
        if let Some(terminal) = self.terminal() {
            terminal.leave_below();
        }
    }

    /// Enters the terminal again after a stop, during which another program used it.
    pub(super) fn resume_terminal(&mut self) -> Result<(), CliError> {
        let Some(terminal) = self.terminal() else { return Ok(()) };
        terminal.reenter().map_err(|source| CliError::Io { doing: "set up the terminal", source })?;
        if terminal.has_viewport() {
            return self.fit().map(|_| ());
        }
        self.request_redraw()
    }

    /// Returns the program's output as bytes for our terminal, or None if they are the same.
    pub(super) fn translate(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        let has_viewport = self.terminal()?.has_viewport();
        let status = if has_viewport { self.size_status() } else { String::new() };
        self.terminal()?.translate(bytes, &status)
    }

    /// Takes over the screen size that a page reports. A page that was requested before our `resize` may be outdated.
    pub(super) fn update_remote_size(&mut self, theirs: Option<PtySize>) -> Result<Option<u8>, CliError> {
        match &mut self.options.screen {
            Some(screen) if !screen.size_in_flight && theirs.is_some() => screen.set_remote_size(theirs),
            Some(screen) => {
                screen.size_disputed = screen.remote_size != theirs;
                return Ok(None);
            }
            None => return Ok(None),
        }
        self.fit()
    }

    /// Shows the process's screen, in a viewport if it does not have our size.
    pub(super) fn fit(&mut self) -> Result<Option<u8>, CliError> {
        let Some(screen) = &self.options.screen else { return Ok(None) };
        let ours_soon = screen.size_in_flight || screen.temporary_size_until.is_some();
        let has_viewport = screen.terminal.as_ref().is_some_and(Terminal::has_viewport);
        let Some(theirs) =
            screen.remote_size.filter(|_| screen.access != Access::FixedSize && (has_viewport || !ours_soon))
        else {
            return Ok(None);
        };
        let status = self.size_status();
        let bytes = self.terminal().map(|terminal| terminal.fit(theirs, &status)).unwrap_or_default();
        match self.put(Stream::Stdout, &bytes) {
            Err(CliError::OutputClosed | CliError::Io { .. }) => self.hung_up(libc::SIGHUP),
            done => done,
        }
    }

    /// Returns the status row of a viewport.
    fn size_status(&self) -> String {
        let Some(screen) = &self.options.screen else { return String::new() };
        let ours = screen.terminal.as_ref().and_then(Terminal::size);
        let (Some(theirs), Some(ours)) = (screen.remote_size, ours) else { return String::new() };
        format_sizes(screen.access, theirs, ours)
    }

    pub(super) fn track_output(&mut self, bytes: &[u8]) {
        if let Some(terminal) = self.terminal() {
            terminal.track(bytes);
        }
    }

    /// Prints a message to the user, on the terminal or on standard error.
    pub(super) fn message(&mut self, text: &str) {
        match self.terminal() {
            Some(terminal) => terminal.message(text),
            None => self.cx.console.message(text),
        }
    }

    /// Reports a reconnect on the terminal. Not before the daemon has answered: a daemon that was killed accepts connections
    /// until its last descriptor is closed.
    pub(super) fn report_reconnect(&mut self) {
        if std::mem::take(&mut self.disconnected)
            && let Some(terminal) = self.terminal()
        {
            terminal.message("reconnected to the daemon; no output was lost");
        }
    }

    /// Prints the current message again after output, since a program that draws every second covers it.
    pub(super) fn repeat_message(&mut self) {
        if let Some(terminal) = self.terminal() {
            terminal.repeat_message();
        }
    }

    /// Returns the time at which a message on the program's screen is to be removed.
    pub(super) fn redraw_due(&self) -> Option<Instant> {
        self.options.screen.as_ref()?.terminal.as_ref()?.redraw_due()
    }

    /// Removes the message by drawing the program's screen again.
    pub(super) fn redraw(&mut self) {
        let started_size = match self.options.exec.pty {
            Pty::Sized(size) => Some(size),
            Pty::No | Pty::Default => None,
        };
        let fixed = started_size
            .filter(|_| self.options.screen.as_ref().is_some_and(|screen| screen.access == Access::FixedSize));
        if let Some(terminal) = self.terminal() {
            terminal.redraw(fixed);
        }
    }

    /// Returns the size for the process's terminal, if the session may set it.
    fn our_size(&mut self) -> Option<PtySize> {
        match self.options.screen.as_ref()?.access {
            Access::Full => self.terminal()?.size(),
            Access::FixedSize | Access::ReadOnly => None,
        }
    }

    /// Sets the size of the process's terminal to ours. One request at a time: the daemon may run two in any order.
    pub(super) fn resize(&mut self) -> Result<(), CliError> {
        let Some(size) = self.our_size() else { return Ok(()) };
        let is_pending = self.is_pending(Request::Resize);
        if let Some(screen) = &mut self.options.screen {
            screen.resize_queued = is_pending;
            screen.temporary_size_until = None;
        }
        if is_pending { Ok(()) } else { self.request_size(size) }
    }

    fn request_size(&mut self, size: PtySize) -> Result<(), CliError> {
        let params = params::ResizeParams { id: self.id(), rows: size.rows, cols: size.cols };
        if let Some(screen) = &mut self.options.screen {
            screen.size_in_flight = true;
            screen.set_remote_size(Some(size));
        }
        self.ask::<api::Resize>(Request::Resize, &params, Duration::ZERO)
    }

    pub(super) fn on_resized(&mut self) -> Result<Option<u8>, CliError> {
        match &self.options.screen {
            Some(screen) if screen.resize_queued => self.resize().map(|()| None),
            // The screen has our size now.
            Some(_) => self.fit(),
            None => Ok(None),
        }
    }

    /// Returns the time that the next poll may wait. Its page reports the size that we set, unless the `resize` is still pending.
    pub(super) fn page_wait(&mut self, wait: Duration) -> Duration {
        let is_pending = self.is_pending(Request::Resize);
        match &mut self.options.screen {
            Some(screen) if !is_pending => {
                screen.size_in_flight = false;
                if std::mem::take(&mut screen.size_disputed) { Duration::ZERO } else { wait }
            }
            Some(_) | None => wait,
        }
    }

    /// Makes the program redraw its whole screen by setting a size with one row less for a moment.
    fn request_redraw(&mut self) -> Result<(), CliError> {
        match self.our_size() {
            Some(size) if size.rows > 1 && !self.is_pending(Request::Resize) => {
                if let Some(screen) = &mut self.options.screen {
                    screen.temporary_size_until = Some(Instant::now() + TEMPORARY_SIZE_DURATION);
                }
                self.request_size(PtySize { rows: size.rows - 1, ..size })
            }
            Some(_) | None => self.resize(),
        }
    }

    /// Returns the time at which the temporary size ends.
    pub(super) fn resize_due(&self) -> Option<Instant> {
        self.options.screen.as_ref()?.temporary_size_until
    }
}

/// Returns the longest text about both sizes that fits into our window, or the shortest one.
fn format_sizes(access: Access, theirs: PtySize, ours: PtySize) -> String {
    let width = ours.cols as usize;
    let (theirs, ours) = (format!("{}x{}", theirs.rows, theirs.cols), format!("{}x{}", ours.rows, ours.cols));
    let both = format!("toolctl: its screen is {theirs}, your window {ours}");
    let long = match access {
        Access::ReadOnly => vec![format!("[{both}; Ctrl-C leaves]")],
        Access::Full | Access::FixedSize => vec![
            format!("[toolctl: another client resized the screen to {theirs}; resize your window to make it {ours}]"),
            format!("[{both}; resize yours to change it]"),
        ],
    };
    let short = [format!("[{both}]"), format!("[its {theirs}, yours {ours}]")];
    let shortest = format!("{theirs}/{ours}");
    long.into_iter().chain(short).find(|text| text.len() <= width).unwrap_or(shortest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::keys;

    #[test]
    fn a_window_of_any_width_shows_both_sizes() {
        // The broken code had one text, whose end with our size was cut off in a window of 80 columns.
        let theirs = PtySize { rows: 40, cols: 120 };
        for (access, cols, text) in [
            (
                Access::Full,
                100,
                "[toolctl: another client resized the screen to 40x120; resize your window to make it 24x100]",
            ),
            (Access::Full, 80, "[toolctl: its screen is 40x120, your window 24x80; resize yours to change it]"),
            (Access::Full, 60, "[toolctl: its screen is 40x120, your window 24x60]"),
            (Access::Full, 40, "[its 40x120, yours 24x40]"),
            (Access::Full, 20, "40x120/24x20"),
            (Access::ReadOnly, 80, "[toolctl: its screen is 40x120, your window 24x80; Ctrl-C leaves]"),
            (Access::ReadOnly, 60, "[toolctl: its screen is 40x120, your window 24x60]"),
        ] {
            assert_eq!(format_sizes(access, theirs, PtySize { rows: 24, cols }), text);
        }
    }

    #[test]
    fn read_only_access_forwards_no_keys_and_detaches_with_the_key_or_ctrl_c() {
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
