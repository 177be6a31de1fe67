//! The two ends of a program's streams: pipes, or a terminal.

use super::start::{StepFailed, failed_at};
use rustix::fd::OwnedFd;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::pty::OpenptFlags;
use toold_format::launch::Numbers;
use toold_format::step;

/// Pipes for output, and what stands for no input.
pub struct Pipes {
    out: (OwnedFd, OwnedFd),
    err: (OwnedFd, OwnedFd),
    null: OwnedFd,
}

impl Pipes {
    pub fn open() -> Result<Pipes, Errno> {
        let (out, err) = (pipe()?, pipe()?);
        nonblocking(&out.0)?;
        nonblocking(&err.0)?;
        let null = rustix::fs::open(c"/dev/null", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        Ok(Pipes { out, err, null })
    }
}

fn pipe() -> Result<(OwnedFd, OwnedFd), Errno> {
    rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
}

/// Our ends of the program's streams.
pub struct ParentStdio {
    pub out: OwnedFd,
    pub err: Option<OwnedFd>,
    pub stdin: Option<OwnedFd>,
    pub terminal: bool,
}

/// Its own.
pub struct ChildStdio {
    pub stdin: OwnedFd,
    pub stdout: OwnedFd,
    pub stderr: OwnedFd,
}

impl ParentStdio {
    pub(super) fn open(numbers: &Numbers, pipes: Option<Pipes>) -> Result<(ParentStdio, ChildStdio), StepFailed> {
        if numbers.pty {
            ParentStdio::terminal(numbers)
        } else {
            ParentStdio::pipes(numbers, pipes).map_err(failed_at(step::PIPE))
        }
    }

    fn terminal(numbers: &Numbers) -> Result<(ParentStdio, ChildStdio), StepFailed> {
        let fail = failed_at(step::PTY);
        let master =
            rustix::pty::openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).map_err(&fail)?;
        rustix::pty::unlockpt(&master).map_err(&fail)?;
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let slave = rustix::pty::ioctl_tiocgptpeer(&master, flags).map_err(&fail)?;
        let size = rustix::termios::Winsize { ws_row: numbers.rows, ws_col: numbers.cols, ws_xpixel: 0, ws_ypixel: 0 };
        rustix::termios::tcsetwinsize(&master, size).map_err(&fail)?;
        nonblocking(&master).map_err(&fail)?;
        let copy = || slave.try_clone().map_err(|_| StepFailed(step::PTY, Errno::MFILE));
        let theirs = ChildStdio { stdin: copy()?, stdout: copy()?, stderr: slave };
        Ok((ParentStdio { out: master, err: None, stdin: None, terminal: true }, theirs))
    }

    fn pipes(numbers: &Numbers, pipes: Option<Pipes>) -> Result<(ParentStdio, ChildStdio), Errno> {
        let Pipes { out, err, null } = pipes.map_or_else(Pipes::open, Ok)?;
        let (stdin, their_in) = if numbers.stdin_pipe {
            let (read, write) = pipe()?;
            nonblocking(&write)?;
            (Some(write), read)
        } else {
            (None, null)
        };
        let ends = ParentStdio { out: out.0, err: Some(err.0), stdin, terminal: false };
        Ok((ends, ChildStdio { stdin: their_in, stdout: out.1, stderr: err.1 }))
    }
}

pub fn nonblocking(fd: &OwnedFd) -> Result<(), Errno> {
    rustix::io::ioctl_fionbio(fd, true)
}
