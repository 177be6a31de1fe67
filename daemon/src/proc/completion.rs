//! The `completion` event: the end of a process and its last output, for a client that was not connected.

use super::checkpoint::Checkpoint;
use super::event_sink::RETRY_DELAY;
use super::handle::Proc;
use super::publish::Audience;
use super::state::{Phase, State};
use crate::clock::retention_ms;
use crate::disk;
use crate::events::{ConsumerError, ConsumerName, Consumers, ExitMark, Journal};
use crate::log::Log;
use crate::text::PageEnd;
use sha2::{Digest, Sha256};
use std::fmt::Write;
use std::io;
use std::sync::Arc;
use toold_format::slots::Cause;
use toold_proto::event::{Completion, OutputSummary};
use toold_proto::params::Ansi;
use toold_redact::{OVERLAP_BYTES, Open};

/// Maximum number of characters of output in the event.
const MAX_OUTPUT_CHARS: usize = 2000;
/// Output up to this size is hashed before the exit is published, so a client that waits for the exit finds the
/// completion. More is hashed in the background, and nothing waits for it.
const MAX_INLINE_HASH_BYTES: u64 = 64 * 1024;
/// Bytes per read.
const READ_LEN: usize = 256 * 1024;

/// Publishes the completion of a process that has ended: at once if that is quick, else in the background.
pub fn publish_or_spawn(proc: &Arc<Proc>, state: &State) -> io::Result<()> {
    if !proc.claim_completion() {
        return Ok(());
    }
    if !proc.is_scanned(state) || output_end(state) > MAX_INLINE_HASH_BYTES {
        tokio::spawn(publish_later(proc.clone(), *state));
        return Ok(());
    }
    publish(proc, state).inspect_err(|_| proc.release_completion())
}

async fn publish_later(proc: Arc<Proc>, state: State) {
    // A match in the last lines is published before the completion.
    proc.wait_scanned(&state).await;
    loop {
        let (worker, at) = (proc.clone(), state);
        match disk::blocking(move || publish(&worker, &at)).await {
            Ok(Ok(())) => return,
            Ok(Err(e)) => {
                tracing::error!(id = %proc.spec.id, %e, "failed to store the completion; trying again")
            }
            Err(e) => return tracing::error!(id = %proc.spec.id, %e, "the completion task failed"),
        }
        tokio::time::sleep(RETRY_DELAY).await;
    }
}

/// Acknowledges the exit of a process for a consumer that got it in the answer to a call: its `completion` if it asked
/// for one, else its `exited`.
pub fn acknowledge_exit(
    proc: &Proc,
    name: &ConsumerName,
    consumers: &Consumers,
    journal: &Journal,
) -> Result<(), ConsumerError> {
    let checkpoint = proc.checkpoint();
    let exit_seq = match (proc.notify(), checkpoint.completed) {
        (false, _) => checkpoint.exited_seq,
        (true, true) => checkpoint.completed_seq,
        // The completion is not published yet.
        (true, false) => 0,
    };
    let bounds = journal.bounds();
    let mark = ExitMark { newest_seq: bounds.last, exit_seq };
    consumers.mark_exit_seen(name, proc.spec.id, mark, bounds, retention_ms())
}

/// Returns the end of the program's own output. Output after the exit is an orphaned descendant's.
pub fn output_end(state: &State) -> u64 {
    match state.phase {
        Phase::Exited { exit, .. } => exit.end.min(state.progress.counts.end),
        Phase::Pending | Phase::Starting | Phase::Running | Phase::Failed { .. } | Phase::Lost { .. } => {
            state.progress.counts.end
        }
    }
}

fn publish(proc: &Proc, state: &State) -> io::Result<()> {
    if proc.checkpoint().completed {
        return Ok(());
    }
    let (summary, output_error) = match summarize(proc, state) {
        Ok(summary) => (Some(summary), None),
        // An unreadable log must not prevent the event.
        Err(e) => {
            tracing::warn!(id = %proc.spec.id, %e, "failed to read the output for the completion");
            (None, Some(e.to_string()))
        }
    };
    let cancelled = cancelled(state);
    let completion = Completion { outcome: proc.outcome(state), summary, cancelled, output_error };
    let audience = if cancelled { Audience::PullOnly } else { Audience::All };
    proc.publish_event_to(audience, &completion, |_: &mut Checkpoint| {}).map(|_| ())
}

/// Returns true if the end of its session ended the process: such a completion is not pushed.
fn cancelled(state: &State) -> bool {
    matches!(state.phase, Phase::Exited { exit, .. } if exit.cause == Cause::SessionEnd)
}

fn summarize(proc: &Proc, state: &State) -> io::Result<OutputSummary> {
    let output_end = output_end(state);
    let log = Log::open(&proc.dir, output_end)?;
    let output = redacted_tail(proc, &log)?;
    let (sha256, lines) = hash(&log, output_end)?;
    let counts = state.progress.counts;
    let path = proc.dir.join("log");
    Ok(OutputSummary {
        output,
        output_path: path.exists().then(|| path.display().to_string()),
        bytes: output_end,
        lines: if counts.end == output_end { counts.lines_of(None) } else { lines },
        sha256,
        dropped_bytes: counts.dropped,
        unstored_bytes: counts.unstored,
    })
}

/// Returns the last characters without secrets. More is read, so that no secret is cut in half before it is found.
fn redacted_tail(proc: &Proc, log: &Log) -> io::Result<String> {
    let redaction = &proc.sink.redaction;
    if !redaction.is_enabled() {
        return Ok(log.last_chars(MAX_OUTPUT_CHARS, None, Ansi::Strip, PageEnd::Last)?.text);
    }
    let window = log.last_chars(MAX_OUTPUT_CHARS + OVERLAP_BYTES, None, Ansi::Strip, PageEnd::Last)?;
    let from = window.text.char_indices().rev().nth(MAX_OUTPUT_CHARS - 1).map_or(0, |(at, _)| at);
    let open = Open { start: window.from > 0, end: false };
    let (known, _) = proc.secrets();
    Ok(redaction.redactor().redact_part(&window.text, from..window.text.len(), open, &known).text)
}

/// Hashes everything up to `end`, and counts lines. Returns no hash if bytes are missing: it would be the hash of other
/// output.
fn hash(log: &Log, output_end: u64) -> io::Result<(Option<String>, u64)> {
    let (mut hash, mut at, mut whole, mut newlines, mut last) = (Sha256::new(), 0, true, 0, b'\n');
    while at < output_end {
        let page = log.read(at, READ_LEN, None)?;
        whole &= page.gap.is_none();
        hash.update(&page.bytes);
        newlines += memchr::memchr_iter(b'\n', &page.bytes).count() as u64;
        last = page.bytes.last().copied().unwrap_or(last);
        if page.next <= at {
            whole = false;
            break;
        }
        at = page.next;
    }
    let hex = hash.finalize().iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    });
    Ok((whole.then_some(hex), newlines + u64::from(last != b'\n')))
}
