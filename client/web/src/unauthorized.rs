//! Connections that have not shown the token yet. There is room for a few: a new one takes the place of the oldest, so that
//! silent connections of other users of the machine keep no one out.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The most of them at a time.
const MAX_UNAUTHORIZED: usize = 64;

#[derive(Debug, Default)]
pub struct Unauthorized(Mutex<Waiting>);

#[derive(Debug, Default)]
struct Waiting {
    last: u64,
    /// In the order in which they came.
    streams: BTreeMap<u64, TcpStream>,
}

impl Unauthorized {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection and returns its number. The oldest one is closed if there are too many.
    pub fn add(&self, stream: TcpStream) -> u64 {
        let mut waiting = self.lock();
        if waiting.streams.len() >= MAX_UNAUTHORIZED
            && let Some((_, oldest)) = waiting.streams.pop_first()
        {
            // It is closed already if this fails.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        waiting.last += 1;
        let number = waiting.last;
        waiting.streams.insert(number, stream);
        number
    }

    /// Takes a connection out: it has shown the token, or has ended.
    pub fn remove(&self, number: u64) {
        self.lock().streams.remove(&number);
    }
}
