//! Signals as descriptors that can be waited for.

use signal_hook::consts::{SIGCONT, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::low_level::{emulate_default_handler, pipe};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;

/// The signals that end us, in the order in which they are checked.
const ENDING: [i32; 4] = [SIGTERM, SIGHUP, SIGINT, SIGQUIT];

/// One descriptor per signal.
pub struct Signals {
    ending: Vec<(i32, UnixStream)>,
    /// A new size, or continued after a stop.
    redraw: Vec<UnixStream>,
}

fn catch(signal: i32) -> io::Result<UnixStream> {
    let (read, write) = UnixStream::pair()?;
    read.set_nonblocking(true)?;
    pipe::register(signal, write)?;
    Ok(read)
}

impl Signals {
    pub fn catch() -> io::Result<Signals> {
        let ending = ENDING.into_iter().map(|signal| Ok((signal, catch(signal)?))).collect::<io::Result<_>>()?;
        Ok(Signals { ending, redraw: vec![catch(SIGWINCH)?, catch(SIGCONT)?] })
    }

    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.ending.iter().map(|(_, stream)| stream).chain(&self.redraw).map(AsFd::as_fd)
    }

    /// Takes a signal that ends us.
    pub fn take_ending(&self) -> Option<i32> {
        self.ending.iter().find(|(_, stream)| drained(stream)).map(|(signal, _)| *signal)
    }

    /// Takes the news that all must be drawn again.
    pub fn take_redraw(&self) -> bool {
        // All of them are drained.
        self.redraw.iter().filter(|stream| drained(stream)).count() > 0
    }

    /// Drops signals that a key meant for another program on the terminal.
    pub fn drop_keys(&self) {
        let keys = self.ending.iter().filter(|(signal, _)| matches!(*signal, SIGINT | SIGQUIT));
        for (_, stream) in keys {
            drained(stream);
        }
    }
}

/// Reads all that is there. Returns true if there was something.
fn drained(mut stream: &UnixStream) -> bool {
    let mut bytes = [0; 64];
    let mut any = false;
    while stream.read(&mut bytes).is_ok_and(|read| read > 0) {
        any = true;
    }
    any
}

/// Ends this process by the signal, as if it had not been caught.
pub fn die_by(signal: i32) -> crate::TopError {
    // It returns only if the signal cannot be raised.
    let _ = emulate_default_handler(signal);
    crate::TopError { message: format!("ended by signal {signal}"), code: 1 }
}
