//! A process's own events: what is due, told once, together with the note that it was.

use super::checkpoint::Told;
use super::completion;
use super::event_sink::{self, AGAIN};
use super::handle::Proc;
use super::state::{Phase, State};
use super::view;
use crate::events::Draft;
use serde_json::{Value, json};
use std::io;
use std::sync::Arc;
use toold_proto::event::EventType;

/// What an event shows of a command, in characters.
const COMMAND: usize = 2000;

/// Who is to hear of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    All,
    /// It is not pushed: who pulls finds it, marked.
    WhoAsks,
}

impl Proc {
    /// Whether a completion is wanted: asked for, or turned on by the watch.
    pub fn notify(&self) -> bool {
        self.spec.notify || self.told().promoted
    }

    /// Publishes one event with what is told after it, and notes both: in the journal, then in the record.
    pub fn tell(&self, kind: EventType, facts: &Value, change: impl FnOnce(&mut Told)) -> io::Result<u64> {
        self.tell_to(Audience::All, kind, facts, change)
    }

    pub fn tell_to(
        &self,
        audience: Audience,
        kind: EventType,
        facts: &Value,
        change: impl FnOnce(&mut Told),
    ) -> io::Result<u64> {
        let mut told = self.told_mut();
        let mut next = *told;
        change(&mut next);
        let spec = &self.spec;
        let state = next.state(kind);
        let Some(facts) = facts.as_object() else { return Err(io::ErrorKind::InvalidInput.into()) };
        let draft = Draft {
            kind,
            id: Some(spec.id),
            session_key: spec.session_key.as_deref(),
            task_id: spec.task_id.as_deref(),
            facts,
            state: &state,
            cancelled: audience == Audience::WhoAsks,
        };
        let seq = self.voice.journal.publish(&draft, event_sink::now(), |seq| {
            next.numbered(kind, seq);
            self.note(&next);
        })?;
        debug_assert_eq!(seq, next.seq);
        *told = next;
        Ok(seq)
    }

    /// Notes what the watch has come to, without an event.
    pub fn remark(&self, change: impl FnOnce(&mut Told)) {
        let mut told = self.told_mut();
        change(&mut told);
        self.note(&told);
    }

    /// Tells what is due in `state` and was not told yet, in its order. What the disk refuses is told later.
    pub fn tell_due(self: &Arc<Self>, state: &State) {
        if let Err(e) = self.try_due(state) {
            tracing::error!(id = %self.spec.id, %e, "an event could not be stored; it is tried again");
            self.tell_later();
        }
    }

    fn tell_later(self: &Arc<Self>) {
        if self.one_retry() {
            let proc = self.clone();
            tokio::spawn(async move {
                loop {
                    tokio::time::sleep(AGAIN).await;
                    if proc.try_due(&proc.peek()).is_ok() {
                        proc.retried();
                        break;
                    }
                }
            });
        }
    }

    fn try_due(self: &Arc<Self>, state: &State) -> io::Result<()> {
        if !self.spec.journaled && !self.told().started {
            return Ok(());
        }
        while let Some(kind) = due(&self.told(), state) {
            let facts = match kind {
                EventType::Started => self.started_facts(state),
                EventType::Exited => self.exited_facts(state),
                // `due` names no other.
                _ => json!({
                    "name": self.spec.name,
                    "bytes": state.progress.counts.end,
                    "lines": state.progress.counts.lines_of(None),
                }),
            };
            self.tell(kind, &facts, |_| {})?;
        }
        if state.ended() && !self.told().completed && self.notify() {
            completion::begin(self, state)?;
        }
        Ok(())
    }

    /// The command, cut where it is longer than anybody wants to read in an event.
    fn command_shown(&self) -> &str {
        let command = &self.spec.command;
        command.char_indices().nth(COMMAND).map_or(command, |(end, _)| &command[..end])
    }

    fn started_facts(&self, state: &State) -> Value {
        json!({ "pid": state.pid, "name": self.spec.name, "command": self.command_shown() })
    }

    fn exited_facts(&self, state: &State) -> Value {
        let mut facts = self.ending_facts(state);
        facts["status"] = json!(if matches!(state.phase, Phase::Lost { .. }) { "lost" } else { "exited" });
        facts["bytes"] = json!(state.progress.counts.end);
        facts["lines"] = json!(state.progress.counts.lines_of(None));
        facts
    }

    /// How it ended, as `exited` and `completion` tell it.
    pub fn ending_facts(&self, state: &State) -> Value {
        let ending = view::ending(&self.spec, state);
        let mut facts = json!({
            "name": self.spec.name,
            "command": self.command_shown(),
            "exit_code": ending.exit_code,
            "signal": ending.signal,
            "reason": ending.reason,
            "killed_by": ending.killed_by,
            "duration_ms": state.ended_ms().unwrap_or(0).saturating_sub(self.spec.created_ms),
        });
        if self.watching.is_some() {
            // What no later match will tell.
            facts["suppressed"] = json!(self.told().limiter.pending);
            facts["unseen_bytes"] = json!(self.told().unseen);
        }
        if let Some(failure) = ending.failure {
            facts["failure"] = json!(failure);
        }
        facts
    }
}

/// The next of a process's own events that `state` calls for.
fn due(told: &Told, state: &State) -> Option<EventType> {
    let ran = state.pid > 0 && !matches!(state.phase, Phase::Starting | Phase::Failed { .. });
    if ran && !told.started {
        return Some(EventType::Started);
    }
    if state.ended() && !told.exited {
        return Some(EventType::Exited);
    }
    // A program that never ran had no output to close.
    let closes = state.closed && !matches!(state.phase, Phase::Failed { .. });
    (closes && !told.closed).then_some(EventType::Closed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::state::News;
    use crate::store::slots::{Cause, Exit, Progress};

    fn tell_all(told: &mut Told, state: &State) -> Vec<EventType> {
        let mut all = Vec::new();
        while let Some(kind) = due(told, state) {
            told.numbered(kind, 7);
            all.push(kind);
        }
        all
    }

    #[test]
    fn each_event_is_due_once_and_in_order_however_much_happened_meanwhile() {
        let mut told = Told::default();
        let mut state = State::new(Progress::default());
        assert_eq!(tell_all(&mut told, &state), []);
        state.step(&News::Started { pid: 7, shim_pid: 6, ticks: 1 });
        assert_eq!(tell_all(&mut told, &state), [EventType::Started]);
        state.step(&News::Closed(Progress::default()));
        assert_eq!(tell_all(&mut told, &state), [EventType::Closed]);
        let exit = Exit {
            wait_status: 0,
            cause: Cause::Itself,
            oom: false,
            by_uid: 0,
            by_pid: 0,
            at_ms: 5,
            end: 0,
            cpu_us: 0,
            max_rss_kib: 0,
        };
        state.step(&News::Exited { exit, progress: Progress::default() });
        assert_eq!(tell_all(&mut told, &state), [EventType::Exited]);
        assert_eq!(tell_all(&mut Told::default(), &state), [EventType::Started, EventType::Exited, EventType::Closed]);
        let mut failed = State::new(Progress::default());
        failed.step(&News::Failed { step: 1, errno: 2, at_ms: 3 });
        assert_eq!(tell_all(&mut Told::default(), &failed), [EventType::Exited]);
    }
}
