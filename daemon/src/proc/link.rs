//! The daemon's end of a connection to a shim.

use super::state::Update;
use std::io;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use toold_format::frame::{self, FromShim, MAX_FROM_SHIM_LEN, ToShim, Wrote};

/// What a shim said, owned.
#[derive(Debug)]
pub enum Word {
    Update(Update),
    Wrote { token: u64, done: u64, state: Wrote },
    Done { token: u64, errno: i32 },
    Killed { token: u64, signals: u64, survivors: Vec<i32> },
}

/// A shim's usual words are shorter than this together.
const ROOM: usize = 512;

pub struct Link {
    stream: UnixStream,
    input: Vec<u8>,
    at: usize,
}

impl Link {
    pub fn new(stream: UnixStream) -> Link {
        Link { stream, input: Vec::new(), at: 0 }
    }

    pub async fn send(&mut self, frame: &ToShim<'_>) -> io::Result<()> {
        let mut bytes = Vec::with_capacity(64);
        frame.put(&mut bytes);
        self.stream.write_all(&bytes).await
    }

    /// Comes back when the shim has said something, or has hung up.
    pub async fn readable(&self) {
        let _ = self.stream.readable().await;
    }

    /// The next word. None: the shim hung up. Safe to cancel: nothing read is forgotten.
    pub async fn next(&mut self, now_ms: impl Fn() -> u64) -> Option<Word> {
        loop {
            match frame::next_frame(&self.input[self.at..], MAX_FROM_SHIM_LEN) {
                Ok(Some((kind, body, length))) => {
                    let word = FromShim::read(kind, body).map(|f| word(&f, &now_ms));
                    self.at += length;
                    // A frame of a later version says nothing to us.
                    if let Some(word) = word {
                        return Some(word);
                    }
                }
                Ok(None) => {
                    self.input.drain(..self.at);
                    self.at = 0;
                    // Room for an exit and what follows it, so that one read takes them all.
                    self.input.reserve(ROOM);
                    match self.stream.read_buf(&mut self.input).await {
                        Ok(0) | Err(_) => return None,
                        Ok(_) => {}
                    }
                }
                Err(frame::BadFrame) => return None,
            }
        }
    }
}

fn word(frame: &FromShim<'_>, now_ms: &impl Fn() -> u64) -> Word {
    Word::Update(match *frame {
        FromShim::Welcome { shim_pid, pid, progress, exit, closed } => {
            Update::Adopted { shim_pid, pid, progress, exit, closed }
        }
        FromShim::Started { pid, shim_pid, ticks } => Update::Started { pid, shim_pid, ticks },
        FromShim::Failed { step, errno } => Update::Failed { step, errno, at_ms: now_ms() },
        FromShim::Bell { progress } => Update::Output(progress),
        FromShim::Exited { exit, progress } => Update::Exited { exit, progress },
        FromShim::Closed { progress } => Update::Closed(progress),
        FromShim::Gone => Update::Gone,
        FromShim::Wrote { token, done, state } => return Word::Wrote { token, done, state },
        FromShim::Done { token, errno } => return Word::Done { token, errno },
        FromShim::Killed { token, signals, survivors } => {
            let survivors = survivors.chunks_exact(4).map(|b| i32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
            return Word::Killed { token, signals, survivors };
        }
    })
}
