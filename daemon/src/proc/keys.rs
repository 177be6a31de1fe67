//! Turns keys into the bytes that a process gets for them: those of its terminal in its present mode, or of a pipe.

use super::Proc;
use super::screen::{self, ScreenError};
use std::sync::Arc;
use toold_proto::keys::{Key, KeyTarget};

/// The reason why keys cannot be typed. Nothing was written.
#[derive(Debug)]
pub enum KeysError {
    /// A pipe has no such key: its position in the list.
    NotOnPipe(usize),
    /// The mode of the terminal is not known.
    Screen(ScreenError),
}

/// Returns the bytes of all keys.
pub async fn key_bytes(proc: &Arc<Proc>, keys: &[Key]) -> Result<Vec<u8>, KeysError> {
    let target = if proc.spec.pty.is_none() {
        KeyTarget::Pipe
    } else if keys.iter().any(Key::depends_on_cursor_mode) {
        let screen = screen::read(proc).await.map_err(KeysError::Screen)?;
        KeyTarget::Terminal { application_cursor: screen.application_cursor }
    } else {
        KeyTarget::Terminal { application_cursor: false }
    };
    let mut bytes = Vec::new();
    for (n, key) in keys.iter().enumerate() {
        bytes.extend(key.bytes(target).ok_or(KeysError::NotOnPipe(n))?);
    }
    Ok(bytes)
}
