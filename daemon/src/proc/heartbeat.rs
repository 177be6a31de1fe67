//! The `heartbeat` event: new output, at most once per interval.

use super::event_sink::RETRY_DELAY;
use super::handle::Proc;
use super::state::State;
use crate::clock::{mono_ms, wall_ms};
use crate::log::Log;
use crate::text::PageEnd;
use std::sync::Arc;
use std::time::Duration;
use toold_proto::event::Heartbeat;
use toold_proto::params::Ansi;

/// Maximum number of characters of output in the event.
const MAX_OUTPUT_CHARS: usize = 200;

/// Publishes heartbeats until the program ends.
pub async fn run(proc: Arc<Proc>) {
    let Some(every) = proc.spec.heartbeat_ms else { return };
    let began = mono_ms().saturating_sub(wall_ms().saturating_sub(proc.started_ms()));
    let mut state_changes = proc.subscribe();
    loop {
        state_changes.mark_unchanged();
        let (state, checkpoint) = (proc.state(), proc.checkpoint());
        if state.has_ended() {
            return;
        }
        if state.progress.counts.end <= checkpoint.heartbeat_cursor {
            proc.notify_past(checkpoint.heartbeat_cursor);
            let _ = state_changes.changed().await;
            continue;
        }
        let due = began.max(checkpoint.heartbeat_at_ms).saturating_add(every);
        let wait = due.saturating_sub(mono_ms());
        if wait > 0 {
            let _ = tokio::time::timeout(Duration::from_millis(wait), state_changes.wait_for(State::has_ended)).await;
            continue;
        }
        if let Err(e) = beat(&proc, &state) {
            tracing::error!(id = %proc.spec.id, %e, "failed to store a heartbeat; trying again");
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }
}

fn beat(proc: &Proc, state: &State) -> std::io::Result<()> {
    let counts = state.progress.counts;
    let output = Log::open(&proc.dir, counts.end)?.last_chars(MAX_OUTPUT_CHARS, None, Ansi::Strip, PageEnd::More)?.text;
    let heartbeat = Heartbeat {
        name: proc.spec.name.clone(),
        bytes: counts.end,
        lines: counts.lines_of(None),
        new_bytes: counts.end - proc.checkpoint().heartbeat_cursor,
        cursor: counts.end,
        output,
    };
    proc.publish_event(&heartbeat, |checkpoint| {
        checkpoint.heartbeat_cursor = counts.end;
        checkpoint.heartbeat_at_ms = mono_ms();
    })?;
    Ok(())
}
