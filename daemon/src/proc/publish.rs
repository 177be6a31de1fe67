//! Publishes each lifecycle event exactly once, in one journal record with the checkpoint.

use super::checkpoint::Checkpoint;
use super::completion;
use super::event_sink::{self, RETRY_DELAY};
use super::handle::Proc;
use super::state::{Phase, State};
use super::view;
use crate::disk::on_disk;
use crate::events::NewEvent;
use std::io;
use std::sync::Arc;
use toold_proto::event::{self, Closed, EventFields, Exited, Started};
use toold_proto::params::Status;

/// Maximum number of characters of a command in an event.
const MAX_COMMAND_CHARS: usize = 2000;

/// The receivers of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    All,
    /// It is not pushed. A consumer that pulls gets it, marked as cancelled.
    PullOnly,
}

impl Proc {
    /// Returns true if a completion is wanted: by the request, or because the watch turned it on.
    pub fn notify(&self) -> bool {
        self.spec.notify || self.checkpoint().notify_enabled
    }

    /// Publishes one event together with the changed checkpoint: in the journal, then in the record.
    pub fn publish_event(&self, event: &dyn EventFields, change: impl FnOnce(&mut Checkpoint)) -> io::Result<u64> {
        self.publish_event_to(Audience::All, event, change)
    }

    pub fn publish_event_to(
        &self,
        audience: Audience,
        event: &dyn EventFields,
        change: impl FnOnce(&mut Checkpoint),
    ) -> io::Result<u64> {
        let (_publishing, mut next) = self.begin_publish();
        change(&mut next);
        let spec = &self.spec;
        let kind = event.event_type();
        let state = next.state(kind);
        let draft = NewEvent {
            fields: event,
            id: Some(spec.id),
            session_key: spec.session_key.as_deref(),
            task_id: spec.task_id.as_deref(),
            state: &state,
            cancelled: audience == Audience::PullOnly,
        };
        let seq = self.sink.journal.publish(&draft, event_sink::now(), |seq| {
            next.mark_published(kind, seq);
            self.set_checkpoint(next);
            self.store_checkpoint(&next);
        })?;
        debug_assert_eq!(seq, next.seq);
        Ok(seq)
    }

    /// Changes the checkpoint without an event.
    pub fn update_checkpoint(&self, change: impl FnOnce(&mut Checkpoint)) {
        let (_publishing, mut next) = self.begin_publish();
        change(&mut next);
        self.store_checkpoint(&next);
        self.set_checkpoint(next);
    }

    /// Publishes the events that `state` calls for and that were not published yet, in order. Retries later if the disk
    /// refuses.
    pub fn publish_due(self: &Arc<Self>, state: &State) {
        if let Err(e) = self.try_publish_due(state) {
            tracing::error!(id = %self.spec.id, %e, "failed to store an event; trying again");
            self.retry_publish();
        }
    }

    fn retry_publish(self: &Arc<Self>) {
        if self.begin_retry() {
            let proc = self.clone();
            tokio::spawn(on_disk(async move {
                loop {
                    tokio::time::sleep(RETRY_DELAY).await;
                    if proc.try_publish_due(&proc.published_state()).is_ok() {
                        proc.end_retry();
                        break;
                    }
                }
            }));
        }
    }

    fn try_publish_due(self: &Arc<Self>, state: &State) -> io::Result<()> {
        if !self.spec.journaled && !self.checkpoint().started {
            return Ok(());
        }
        if self.spec.sandbox.is_some() && self.checkpoint().started {
            self.publish_sandbox_due(state)?;
        }
        while let Some(due) = next_due(&self.checkpoint(), state) {
            match due {
                Due::Started => self.publish_event(&self.started(state), |_| {})?,
                Due::Exited => self.publish_event(&self.exited(state), |_| {})?,
                Due::Closed => self.publish_event(&self.closed(state), |_| {})?,
            };
        }
        if state.has_ended() && !self.checkpoint().completed && self.notify() {
            completion::publish_or_spawn(self, state)?;
        }
        Ok(())
    }

    /// Returns the command, cut to `MAX_COMMAND_CHARS`.
    fn command_shown(&self) -> &str {
        let command = &self.spec.command;
        command.char_indices().nth(MAX_COMMAND_CHARS).map_or(command, |(end, _)| &command[..end])
    }

    fn started(&self, state: &State) -> Started {
        Started { pid: state.pid, name: self.spec.name.clone(), command: self.command_shown().to_owned() }
    }

    fn exited(&self, state: &State) -> Exited {
        Exited {
            outcome: self.outcome(state),
            status: if matches!(state.phase, Phase::Lost { .. }) { Status::Lost } else { Status::Exited },
            bytes: state.progress.counts.end,
            lines: state.progress.counts.lines_of(None),
        }
    }

    fn closed(&self, state: &State) -> Closed {
        Closed {
            name: self.spec.name.clone(),
            bytes: state.progress.counts.end,
            lines: state.progress.counts.lines_of(None),
        }
    }

    /// Returns the end of the process, as `exited` and `completion` report it.
    pub fn outcome(&self, state: &State) -> event::Outcome {
        let outcome = view::outcome(&self.spec, state);
        // No later match reports these.
        let checkpoint = self.watch_task.is_some().then(|| self.checkpoint());
        event::Outcome {
            name: self.spec.name.clone(),
            command: self.command_shown().to_owned(),
            exit_code: outcome.exit_code,
            signal: outcome.signal,
            reason: outcome.reason,
            killed_by: outcome.killed_by,
            duration_ms: self.uptime_ms(state, 0),
            suppressed: checkpoint.as_ref().map(|checkpoint| checkpoint.limiter.pending),
            unseen_bytes: checkpoint.as_ref().map(|checkpoint| checkpoint.unscanned_bytes),
            failure: outcome.failure,
        }
    }
}

/// A lifecycle event that a process's state calls for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    Started,
    Exited,
    Closed,
}

/// Returns the next lifecycle event that `state` calls for.
fn next_due(checkpoint: &Checkpoint, state: &State) -> Option<Due> {
    let ran = state.pid > 0 && !matches!(state.phase, Phase::Pending | Phase::Starting | Phase::Failed { .. });
    if ran && !checkpoint.started {
        return Some(Due::Started);
    }
    if state.has_ended() && !checkpoint.exited {
        return Some(Due::Exited);
    }
    // A program that never ran had no output to close.
    let closes = state.closed && !matches!(state.phase, Phase::Failed { .. });
    (closes && !checkpoint.closed).then_some(Due::Closed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::state::Update;
    use crate::proc::state::tests::exit;
    use toold_format::slots::Progress;
    use toold_proto::event::EventType;

    fn publish_all(checkpoint: &mut Checkpoint, state: &State) -> Vec<Due> {
        let mut all = Vec::new();
        while let Some(due) = next_due(checkpoint, state) {
            let kind = match due {
                Due::Started => EventType::Started,
                Due::Exited => EventType::Exited,
                Due::Closed => EventType::Closed,
            };
            checkpoint.mark_published(kind, 7);
            all.push(due);
        }
        all
    }

    #[test]
    fn each_event_is_due_once_and_in_order_however_much_happened_meanwhile() {
        let mut checkpoint = Checkpoint::default();
        let mut state = State::new(Progress::default());
        assert_eq!(publish_all(&mut checkpoint, &state), []);
        state.step(&Update::Started { pid: 7, shim_pid: 6, ticks: 1 });
        assert_eq!(publish_all(&mut checkpoint, &state), [Due::Started]);
        state.step(&Update::Closed(Progress::default()));
        assert_eq!(publish_all(&mut checkpoint, &state), [Due::Closed]);
        state.step(&Update::Exited { exit: exit(0), progress: Progress::default() });
        assert_eq!(publish_all(&mut checkpoint, &state), [Due::Exited]);
        assert_eq!(publish_all(&mut Checkpoint::default(), &state), [Due::Started, Due::Exited, Due::Closed]);
        let mut failed = State::new(Progress::default());
        failed.step(&Update::Failed { step: 1, errno: 2, at_ms: 3 });
        assert_eq!(publish_all(&mut Checkpoint::default(), &failed), [Due::Exited]);
    }
}
