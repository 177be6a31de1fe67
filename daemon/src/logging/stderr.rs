//! Writes lines to stderr, and limits the file that it is where `toolctl` started the daemon.

use nix::unistd::{dup2_stderr, dup2_stdout};
use rustix::event::{PollFd, PollFlags};
use rustix::io::Errno;
use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Standard error, and the limit on its file, if it has one.
#[derive(Default)]
pub struct StderrSink {
    limit: Option<FileLimit>,
}

struct FileLimit {
    path: PathBuf,
    max: u64,
    len: u64,
}

impl StderrSink {
    /// Takes the limit if stderr is the file at `path`.
    pub fn limit(&mut self, path: &Path, max: u64) {
        if let (Ok(found), Ok(ours)) = (std::fs::symlink_metadata(path), of_descriptor(io::stderr()))
            && is_same(&found, &ours)
            && ours.is_file()
        {
            self.limit = Some(FileLimit { path: path.into(), max, len: ours.len() });
        }
    }

    pub fn write(&mut self, line: &[u8]) -> io::Result<()> {
        if let Some(limit) = &mut self.limit {
            if limit.len > 0 && limit.len + line.len() as u64 > limit.max {
                limit.rotate()?;
            }
            limit.len += line.len() as u64;
        }
        write_all(line)
    }
}

impl FileLimit {
    /// Renames the file and begins another. If that is impossible, the file is emptied: it stays bounded.
    fn rotate(&mut self) -> io::Result<()> {
        self.len = 0;
        let mut older = self.path.clone().into_os_string();
        older.push(".1");
        let renewed = std::fs::rename(&self.path, older).and_then(|()| {
            let new = OpenOptions::new().append(true).create(true).mode(0o600).open(&self.path)?;
            point_at(&new)
        });
        let Err(error) = renewed else { return Ok(()) };
        rustix::fs::ftruncate(io::stderr(), 0)?;
        write_all(format!("toold: this log was emptied, since it cannot be renamed to .1: {error}\n").as_bytes())
    }
}

/// Makes stderr this file, and stdout too if it is the same one.
fn point_at(new: &File) -> io::Result<()> {
    let shared = is_same(&of_descriptor(io::stdout())?, &of_descriptor(io::stderr())?);
    dup2_stderr(new)?;
    if shared {
        dup2_stdout(new)?;
    }
    Ok(())
}

fn of_descriptor(stream: impl AsFd) -> io::Result<Metadata> {
    File::from(stream.as_fd().try_clone_to_owned()?).metadata()
}

fn is_same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Writes it all. Waits for a reader, also if another process made the descriptor non-blocking.
fn write_all(mut line: &[u8]) -> io::Result<()> {
    let stderr = io::stderr();
    while !line.is_empty() {
        match rustix::io::write(&stderr, line) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => line = &line[n..],
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => {
                let _ = rustix::event::poll(&mut [PollFd::new(&stderr, PollFlags::OUT)], None);
            }
            Err(e) => return Err(e.into()),
        }
    }
    Ok(())
}
