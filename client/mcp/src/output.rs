//! The messages to the client: one JSON object a line, whole lines, from any thread. It knows which of them the client has read.

use crate::sys::{self, Unread};
use serde_json::Value;
use std::io::{self, Write};
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Standard output.
#[derive(Default)]
pub struct Output {
    writer: Mutex<()>,
    /// Bytes written so far.
    written: AtomicU64,
    is_broken: AtomicBool,
}

/// The end of a message in the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark(u64);

impl Output {
    /// Writes a message. Blocks while the client does not read. An error means that the client is gone.
    pub fn send(&self, message: &Value) -> io::Result<Mark> {
        let line = format!("{message}\n");
        let _writer = self.writer.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut out = io::stdout().lock();
        let wrote = out.write_all(line.as_bytes()).and_then(|()| out.flush());
        if wrote.is_err() {
            self.is_broken.store(true, Ordering::Relaxed);
        }
        wrote?;
        // Counted after it was written: what counts as read was written for certain.
        Ok(Mark(self.written.fetch_add(line.len() as u64, Ordering::SeqCst) + line.len() as u64))
    }

    /// Writes a message that is not worth an error: a notification.
    pub fn notify(&self, method: &str, params: Value) {
        let _ = self.send(&serde_json::json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Reports whether the client has read everything up to this mark.
    pub fn is_read(&self, mark: Mark) -> bool {
        let written = self.written.load(Ordering::SeqCst);
        match sys::unread(io::stdout().as_fd()) {
            Unread::Bytes(unread) => written.saturating_sub(unread) >= mark.0,
            Unread::Some => false,
            Unread::Unknown => true,
        }
    }

    /// Reports whether a write has failed: there is no one who will read.
    pub fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Relaxed)
    }
}
