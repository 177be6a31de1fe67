//! Hides secrets in a part of the output. The text around the part is read too, so that no secret is cut in half before it is
//! found.

use super::Proc;
use super::state::State;
use crate::log::Log;
use crate::text::{PageEnd, TextForm};
use std::io;
use toold_format::Stream;
use toold_proto::process::{InputWait, Process};
use toold_redact::{KnownValues, OVERLAP_BYTES, Open};

/// A part of the output, by its cursors.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    pub from: u64,
    pub to: u64,
    pub stream: Option<Stream>,
}

impl Proc {
    /// Redacts the prompt in a description: it is a part of the output too.
    pub fn redact_prompt(&self, process: &mut Process, known: &KnownValues) {
        if let Some(InputWait { prompt, .. }) = &mut process.needs_input {
            // What is left of it may begin in a secret.
            let open = Open { start: true, end: false };
            let redactor = self.sink.redaction.redactor();
            *prompt = redactor.redact_part(prompt, 0..prompt.len(), open, known).text;
        }
    }
}

/// Redacts the text of a part of the output.
pub fn redact(proc: &Proc, state: &State, text: &str, part: Part, known: &KnownValues) -> io::Result<String> {
    let log = Log::open(&proc.dir, state.progress.counts.end)?;
    let read = |from: u64, to: u64| -> io::Result<String> {
        if from >= to {
            return Ok(String::new());
        }
        let page = log.read_text(from, (to - from) as usize, part.stream, TextForm::PLAIN, PageEnd::Last)?;
        Ok(page.text)
    };
    let overlap = OVERLAP_BYTES as u64;
    let before = read(part.from.saturating_sub(overlap), part.from)?;
    let after = read(part.to, part.to.saturating_add(overlap).min(state.progress.counts.end))?;
    let window = [before.as_str(), text, after.as_str()].concat();
    let open = Open { start: part.from > overlap, end: part.to + overlap < state.progress.counts.end };
    let range = before.len()..before.len() + text.len();
    Ok(proc.sink.redaction.redactor().redact_part(&window, range, open, known).text)
}
