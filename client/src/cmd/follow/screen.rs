//! A process on our own terminal: its size, our keys, and our words amid its output.

use super::{Asked, Follow};
use crate::failure::Failure;
use crate::terminal::keys::{DetachKeys, Lookout, Typed};
use crate::terminal::replay::Picture;
use crate::terminal::{Keys, Terminal};
use std::time::{Duration, Instant};
use toold_proto::api;
use toold_proto::params;
use toold_proto::params::Stream;
use toold_proto::unions::{Pty, PtySize};

/// A program that is asked to draw its screen anew has so long to see the size that is not to stay.
const STRETCH: Duration = Duration::from_millis(100);
/// Ctrl-C, which ends the looking of somebody who may not type.
const INTERRUPT: u8 = 3;

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
pub struct Screen {
    access: Access,
    keys: Lookout,
    /// Whether we read keys at all.
    reads: Keys,
    terminal: Option<Terminal>,
    /// Our size has changed while the last one was on its way.
    resized: bool,
    /// When the size that is not to stay ends.
    stretched: Option<Instant>,
}

impl Screen {
    pub fn new(access: Access, keys: DetachKeys, reads: Keys) -> Screen {
        Screen { access, keys: Lookout::new(keys), reads, terminal: None, resized: false, stretched: None }
    }

    /// What was typed, as far as it is the process's. With nothing to type, Ctrl-C leaves as well.
    pub fn typed(&mut self, piece: &[u8]) -> Typed {
        match (self.access, self.keys.typed(piece)) {
            (Access::Full | Access::FixedSize, typed) => typed,
            (Access::ReadOnly, Typed::Keys(keys)) if !keys.contains(&INTERRUPT) => Typed::Keys(Vec::new()),
            (Access::ReadOnly, Typed::Keys(_) | Typed::Detach(_)) => Typed::Detach(Vec::new()),
        }
    }
}

impl Follow<'_, '_> {
    /// Stays with a process that is there already, from this cursor on, after its picture.
    pub fn attach(mut self, id: String, cursor: u64, picture: &Picture, redraw: bool) -> Result<u8, Failure> {
        self.process = Some(id);
        self.progress.cursor = cursor;
        self.take_screen()?;
        if let Some(code) = self.print(Stream::Stdout, &picture.bytes)? {
            return Ok(code);
        }
        if let Some(terminal) = self.terminal()
            && !picture.placed
        {
            terminal.forget_places();
        }
        if redraw {
            self.ask_redraw()?
        } else {
            self.resize()?
        }
        self.poll(self.progress.first())?;
        self.stay()
    }

    /// Lends our terminal to the process.
    pub(super) fn take_screen(&mut self) -> Result<(), Failure> {
        if let Some(screen) = &mut self.plan.screen {
            let failed = |source| Failure::Io { doing: "set the terminal up", source };
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

    /// After a stop, whoever stopped us has used the terminal.
    pub(super) fn go_on(&mut self) -> Result<(), Failure> {
        let Some(terminal) = self.terminal() else { return Ok(()) };
        terminal.enter_again().map_err(|source| Failure::Io { doing: "set the terminal up", source })?;
        self.ask_redraw()
    }

    pub(super) fn shown(&mut self, bytes: &[u8]) {
        if let Some(terminal) = self.terminal() {
            terminal.shown(bytes);
        }
    }

    /// A word to the person, wherever it can be read.
    pub(super) fn tell(&mut self, text: &str) {
        match self.terminal() {
            Some(terminal) => terminal.say(text),
            None => self.cx.console.say(text),
        }
    }

    /// Says that the daemon was away, to who watches a terminal. Not before it has answered: a
    /// daemon that was killed takes connections until its last descriptor is closed.
    pub(super) fn say_back(&mut self) {
        if std::mem::take(&mut self.away)
            && let Some(terminal) = self.terminal()
        {
            terminal.say("the daemon went away and is back; nothing was lost");
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
    pub(super) fn resize(&mut self) -> Result<(), Failure> {
        let Some(size) = self.our_size() else { return Ok(()) };
        let waits = self.is_pending(Asked::Resize);
        if let Some(screen) = &mut self.plan.screen {
            (screen.resized, screen.stretched) = (waits, None);
        }
        if waits { Ok(()) } else { self.ask_size(size) }
    }

    fn ask_size(&mut self, size: PtySize) -> Result<(), Failure> {
        let params = params::Resize { id: self.id(), rows: size.rows, cols: size.cols };
        self.ask::<api::Resize>(Asked::Resize, &params, Duration::ZERO)
    }

    pub(super) fn resized(&mut self) -> Result<(), Failure> {
        match &self.plan.screen {
            Some(screen) if screen.resized => self.resize(),
            Some(_) | None => Ok(()),
        }
    }

    /// Makes a program draw its whole screen: it does so when its size changes, so for a moment
    /// it is a row less.
    fn ask_redraw(&mut self) -> Result<(), Failure> {
        match self.our_size() {
            Some(size) if size.rows > 1 && !self.is_pending(Asked::Resize) => {
                if let Some(screen) = &mut self.plan.screen {
                    screen.stretched = Some(Instant::now() + STRETCH);
                }
                self.ask_size(PtySize { rows: size.rows - 1, ..size })
            }
            Some(_) | None => self.resize(),
        }
    }

    /// When the true size is due.
    pub(super) fn resize_due(&self) -> Option<Instant> {
        self.plan.screen.as_ref()?.stretched
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::keys;

    #[test]
    fn a_looker_types_nothing_and_leaves_with_the_detach_key_or_ctrl_c() {
        let screen = |access| Screen::new(access, keys::parse("C-\\").expect("a key"), Keys::Taken);
        let mut looker = screen(Access::ReadOnly);
        assert_eq!(looker.typed(b"secret\r"), Typed::Keys(Vec::new()));
        assert_eq!(looker.typed(b"secret\x03"), Typed::Detach(Vec::new()));
        assert_eq!(looker.typed(b"secret\x1c"), Typed::Detach(Vec::new()));
        for access in [Access::Full, Access::FixedSize] {
            assert_eq!(screen(access).typed(b"a\x03"), Typed::Keys(b"a\x03".to_vec()));
            assert_eq!(screen(access).typed(b"a\x1c"), Typed::Detach(b"a".to_vec()));
        }
    }
}
