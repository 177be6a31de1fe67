//! Reads a secret: from the keyboard without showing it, or one line from standard input that is not a terminal.

use crate::cmd::write::standard_input;
use crate::error::CliError;
use crate::render::text::escape_control;
use crate::sys::{self, Interest, Signals, TerminalSettings};
use std::fs::File;
use std::io::{self, IsTerminal, Read, Write};
use std::os::fd::AsFd;

/// Asks for the secret that `who` waits for. From a pipe, the newline at its end is not part of it. None: cancelled.
pub fn read(who: &str) -> Result<Option<Vec<u8>>, CliError> {
    if !io::stdin().is_terminal() {
        let mut secret = standard_input()?;
        for end in [b'\n', b'\r'] {
            secret.pop_if(|last| *last == end);
        }
        return Ok(Some(secret));
    }
    let failed = |source| CliError::Io { doing: "read the secret from the terminal", source };
    let tty = File::options().read(true).write(true).open("/dev/tty").map_err(failed)?;
    let prompt = format!("secret for {}: ", escape_control(who));
    // A signal that would end us waits until the terminal is as before, and ends us then: it stays pending.
    let signals = Signals::catch(&[libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT]).map_err(failed)?;
    let hidden = HiddenTerminal::enter(&tty).map_err(failed)?;
    let line = (&tty).write_all(prompt.as_bytes()).and_then(|()| read_line(&mut Keys { tty: &tty, signals: &signals }));
    drop(hidden);
    // The newline that was typed is not shown either.
    let _ = (&tty).write_all(b"\n");
    drop(signals);
    line.map_err(failed)
}

/// The keys that are typed, until a signal comes.
struct Keys<'a> {
    tty: &'a File,
    signals: &'a Signals,
}

impl Read for Keys<'_> {
    fn read(&mut self, keys: &mut [u8]) -> io::Result<usize> {
        let watched = [Some((self.signals.as_fd(), Interest::Readable)), Some((self.tty.as_fd(), Interest::Readable))];
        let [has_signal, _] = sys::poll(watched, None)?;
        if has_signal { Err(io::Error::other("a signal came")) } else { self.tty.read(keys) }
    }
}

/// A terminal that delivers every key and shows none, until it is dropped. Keys that send signals do not: a signal would
/// end us and leave the terminal like this.
struct HiddenTerminal<'a> {
    tty: &'a File,
    before: TerminalSettings,
}

impl HiddenTerminal<'_> {
    fn enter(tty: &File) -> io::Result<HiddenTerminal<'_>> {
        let before = TerminalSettings::read(tty.as_fd())?;
        before.raw().apply(tty.as_fd())?;
        Ok(HiddenTerminal { tty, before })
    }
}

impl Drop for HiddenTerminal<'_> {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = self.before.apply(self.tty.as_fd());
    }
}

/// Reads keys up to Enter. None: Ctrl-C, or Ctrl-D before any other key.
fn read_line(keys: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let mut key = [0];
    while keys.read(&mut key)? == 1 {
        match key[0] {
            b'\r' | b'\n' => return Ok(Some(line)),
            0x03 => return Ok(None),
            0x04 if line.is_empty() => return Ok(None),
            0x04 => return Ok(Some(line)),
            0x08 | 0x7f => erase_character(&mut line),
            0x15 => line.clear(),
            byte => line.push(byte),
        }
    }
    Err(io::ErrorKind::UnexpectedEof.into())
}

/// Removes the last character, which has up to four bytes.
fn erase_character(line: &mut Vec<u8>) {
    while line.pop_if(|byte| *byte & 0xc0 == 0x80).is_some() {}
    line.pop();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_can_be_corrected_and_cancelled() {
        let line = |keys: &[u8]| {
            read_line(&mut &keys[..]).expect("it is read").map(|line| String::from_utf8(line).expect("text"))
        };
        assert_eq!(line(b"hunter2\r").as_deref(), Some("hunter2"));
        assert_eq!(line("paß\x7f\x7fss\n".as_bytes()).as_deref(), Some("pss"));
        assert_eq!(line(b"wrong\x15right\r").as_deref(), Some("right"));
        assert_eq!((line(b"ab\x03"), line(b"\x04"), line(b"ab\x04").as_deref()), (None, None, Some("ab")));
        assert!(read_line(&mut &b"no end"[..]).is_err());
    }
}
