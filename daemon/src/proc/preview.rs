//! The end of the output of a process, as a list shows it. It is read again only when the output has grown.

use super::handle::Proc;
use super::state::State;
use std::sync::Arc;

/// The end of the output as last listed, and the position for which it was read.
pub struct Preview {
    at: (u64, bool),
    text: Arc<str>,
}

fn preview_position(state: &State) -> (u64, bool) {
    (state.progress.counts.end, state.closed)
}

impl Proc {
    /// Returns the end of the output for a list, if it was read and the output has not grown since.
    pub fn known_preview(&self, state: &State) -> Option<Arc<str>> {
        let kept = self.preview.lock().ok()?;
        kept.as_ref().filter(|kept| kept.at == preview_position(state)).map(|kept| kept.text.clone())
    }

    /// Returns the end of the output for a list. Reads it only if the output has grown since the last list.
    pub fn preview<E>(&self, state: &State, read: impl FnOnce() -> Result<String, E>) -> Result<Arc<str>, E> {
        if let Some(text) = self.known_preview(state) {
            return Ok(text);
        }
        let at = preview_position(state);
        let text: Arc<str> = read()?.into();
        if let Ok(mut kept) = self.preview.lock() {
            *kept = Some(Box::new(Preview { at, text: text.clone() }));
        }
        Ok(text)
    }
}
