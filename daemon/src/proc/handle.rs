//! The handle of a process, for everything but its task: reads never wait, changes await their effect.

use super::checkpoint::Checkpoint;
use super::control::Control;
use super::event_sink::EventSink;
use super::hold::Hold;
use super::kept_env::{EnvPart, GivenPart};
use super::needs_input::{InputCounts, InputWaitCell};
use super::output_request::OutputRequest;
use super::pending::PendingCell;
use super::preview::Preview;
use super::script::ScriptCalls;
use super::state::{State, Update};
use super::tree;
use super::watcher::WatchTask;
use super::write_queue::QueuedWrite;
use crate::clock::wall_ms;
use crate::store::record::{Record, Spec};
use crate::watch::Patterns;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::time::Instant;
use toold_format::frame::Wrote;
use toold_format::slots::{Cause, Progress};
use toold_redact::KnownValues;
use toold_shim::hooks;

/// Maximum number of queued commands of one process. Further callers wait.
pub const INBOX_LEN: usize = 16;

/// A change that the task of a process makes. Small: each process has room for a block of them.
#[derive(Debug)]
pub enum Command {
    Write(Box<QueuedWrite>),
    /// Answered with 0 or an errno.
    Control {
        control: Control,
        reply: oneshot::Sender<i32>,
    },
    /// Reads an environment that the shim keeps, from `offset` on.
    ReadEnv {
        offset: u64,
        given: bool,
        reply: oneshot::Sender<EnvPart>,
    },
    /// Gives the shim a part of the environment of the next run.
    KeepEnv {
        part: Box<GivenPart>,
        reply: oneshot::Sender<i32>,
    },
    /// Moves the timeout of the program. Answered with 0 or an errno.
    ExtendTimeout {
        by_ms: i64,
        reply: oneshot::Sender<i32>,
    },
    /// Answered with the end of the output.
    Position(oneshot::Sender<u64>),
    Kill {
        kill: Box<Kill>,
        reply: oneshot::Sender<KillResult>,
    },
}

/// The result of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WriteResult {
    pub done: u64,
    pub state: Wrote,
}

#[derive(Debug, Clone, Copy)]
pub struct Kill {
    pub signal: i32,
    pub grace_ms: u64,
    pub cause: Cause,
    pub uid: u32,
    pub pid: i32,
}

/// The result of a kill. Signals are bits; a survivor 0 stands for some that cannot be listed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KillResult {
    pub signals: u64,
    pub survivors: Vec<i32>,
}

/// The reason why a command got no reply.
#[derive(Debug, PartialEq, Eq)]
pub enum NoReply {
    /// The process has no task any more, or the connection to its shim broke.
    Gone,
    /// The shim lives and does not answer.
    Unresponsive,
    /// The shim cannot be reached from here, see `Proc::unreachable`.
    Unreachable,
    /// It waits for its turn, and has no shim yet.
    Pending,
}

/// Time without a reply after which the shim is checked: a stopped one is continued.
const NUDGE_DELAY: Duration = Duration::from_secs(1);
/// Maximum time that a shim which is not frozen needs, beyond the requested time.
pub(super) const REPLY_SLACK: Duration = Duration::from_secs(10);

/// The longest time that a deadline is away: a client's number may be any, and a clock has an end.
const MAX_DEADLINE_MS: u64 = 1000 * 3600 * 24 * 365;

/// Returns the deadline of a call that may take this long.
pub(super) fn deadline_after(timeout_ms: u64) -> Instant {
    Instant::now() + Duration::from_millis(timeout_ms.min(MAX_DEADLINE_MS))
}

/// One process.
pub struct Proc {
    pub spec: Spec,
    pub dir: PathBuf,
    pub(super) state: watch::Sender<State>,
    /// The record, for the shim's own counts. None after the shim exited.
    record: Mutex<Option<Arc<Record>>>,
    pub(super) inbox: Mutex<Option<mpsc::Sender<Command>>>,
    output_request: OutputRequest,
    pub wake: Notify,
    /// None: it was started without `hold`, so its shim may not know one.
    pub(super) hold: Option<Box<Hold>>,
    pub sink: Arc<EventSink>,
    checkpoint: Mutex<Checkpoint>,
    /// Held while the checkpoint changes, also while the disk is written.
    publishing: Mutex<()>,
    /// Set while a task retries an event that the disk refused, or makes the completion.
    retrying: AtomicBool,
    completing: AtomicBool,
    supervised: AtomicBool,
    /// Calls that will read its output, see `readers`.
    pub(super) readers: AtomicU32,
    pub watch_task: Option<Box<WatchTask>>,
    pub input: watch::Sender<InputCounts>,
    pub(super) preview: Mutex<Option<Box<Preview>>>,
    pub(super) input_wait: InputWaitCell,
    /// None in almost all processes.
    trouble: Mutex<Option<Box<Trouble>>>,
    /// The wait for its turn, and its retry. None: it started at once, and has no retry.
    pub(super) pending: Option<Box<PendingCell>>,
    /// The calls of a script. None: it is none.
    pub script: Option<Box<OnceLock<ScriptCalls>>>,
    /// The secrets that it was given, if texts about it may need them.
    pub(super) known: Mutex<Option<Arc<KnownValues>>>,
}

/// The troubles of a process.
#[derive(Default)]
struct Trouble {
    /// Descriptions of the damage found in its directory.
    damage: Vec<String>,
    /// The error of the last try to read its output, if that failed.
    unreadable: Option<String>,
    /// The reason why its shim cannot be reached, while that is so.
    unreachable: Option<String>,
}

/// The parts of a new handle.
pub struct ProcInit {
    pub spec: Spec,
    pub dir: PathBuf,
    pub state: State,
    pub checkpoint: Checkpoint,
    pub sink: Arc<EventSink>,
    /// Compiled patterns, if the request has compiled them.
    pub patterns: Option<Arc<Patterns>>,
    /// Descriptions of the damage that recovery found.
    pub damage: Vec<String>,
}

impl Proc {
    /// Creates a process with a task. The receiver is for the task.
    pub fn new(start: ProcInit) -> (Proc, mpsc::Receiver<Command>) {
        let proc = Proc::without_task(start);
        let inbox = proc.open_inbox();
        (proc, inbox)
    }

    /// Reads the counts from the record from now on, where the shim writes them.
    pub fn set_record(&self, record: Arc<Record>) {
        if let Ok(mut place) = self.record.lock() {
            *place = Some(record);
        }
    }

    /// Creates a process that has ended, or waits for its turn.
    pub fn without_task(start: ProcInit) -> Proc {
        let ProcInit { spec, dir, state, checkpoint, sink, patterns, damage } = start;
        let hold = spec.hold.then(Box::default);
        let pending = PendingCell::of(&spec);
        let script = spec.script.is_some().then(Box::default);
        let watch_task = (!spec.watch.is_empty()).then(|| Box::new(WatchTask::new(patterns)));
        Proc {
            spec,
            dir,
            state: watch::Sender::new(state),
            record: Mutex::new(None),
            inbox: Mutex::new(None),
            output_request: OutputRequest::default(),
            wake: Notify::new(),
            hold,
            sink,
            checkpoint: Mutex::new(checkpoint),
            publishing: Mutex::new(()),
            retrying: AtomicBool::new(false),
            completing: AtomicBool::new(false),
            supervised: AtomicBool::new(false),
            readers: AtomicU32::new(0),
            watch_task,
            input: watch::Sender::default(),
            preview: Mutex::new(None),
            input_wait: InputWaitCell::default(),
            trouble: Mutex::new((!damage.is_empty()).then(|| Box::new(Trouble { damage, ..Trouble::default() }))),
            pending,
            script,
            known: Mutex::default(),
        }
    }

    /// Returns descriptions of the damage in its directory, and of what cannot be read there now.
    pub fn damage(&self) -> Vec<String> {
        self.trouble(|trouble| trouble.damage.iter().chain(&trouble.unreadable).cloned().collect()).unwrap_or_default()
    }

    fn trouble<T>(&self, read: impl FnOnce(&Trouble) -> T) -> Option<T> {
        self.trouble.lock().ok()?.as_deref().map(read)
    }

    /// Remembers whether the output could be read. The next try may succeed: a mode can be changed.
    pub fn set_unreadable(&self, why: Option<String>) {
        if let Ok(mut trouble) = self.trouble.lock()
            && trouble.as_ref().and_then(|trouble| trouble.unreadable.as_ref()) != why.as_ref()
        {
            tracing::warn!(id = %self.spec.id, ?why, "the output became readable or unreadable");
            trouble.get_or_insert_default().unreadable = why;
        }
    }

    /// Remembers damage that was found while the process was used, once.
    pub fn report_damage(&self, what: String) {
        if let Ok(mut trouble) = self.trouble.lock()
            && !trouble.as_ref().is_some_and(|trouble| trouble.damage.contains(&what))
        {
            tracing::error!(id = %self.spec.id, damage = what, "found damaged state");
            trouble.get_or_insert_default().damage.push(what);
        }
    }

    /// Returns the latest state, with counts as of the shim's last write.
    pub fn state(&self) -> State {
        let mut state = *self.state.borrow();
        let detached = state.detached;
        if let Some(progress) = self.fresh_progress() {
            state.step(&Update::Output(progress));
        }
        // The counts are in the record, and prove nothing about the connection.
        state.detached = detached;
        state
    }

    /// Returns the published state, without reading the counts.
    pub fn published_state(&self) -> State {
        *self.state.borrow()
    }

    /// Returns the checkpoint. Never waits for the disk.
    pub fn checkpoint(&self) -> Checkpoint {
        *self.checkpoint.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Locks the checkpoint for a change, never across an await. `set_checkpoint` ends the change.
    pub(super) fn begin_publish(&self) -> (MutexGuard<'_, ()>, Checkpoint) {
        let guard = self.publishing.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        (guard, self.checkpoint())
    }

    pub(super) fn set_checkpoint(&self, next: Checkpoint) {
        *self.checkpoint.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = next;
    }

    /// Writes the checkpoint into the record. The journal has it too, so a failure matters only if a crash follows.
    pub(super) fn store_checkpoint(&self, checkpoint: &Checkpoint) {
        let open = self.record.lock().ok().and_then(|record| record.clone());
        let noted = match open {
            Some(record) => record.set_checkpoint(&checkpoint.slot()),
            None => Record::open(&self.dir).and_then(|record| record.set_checkpoint(&checkpoint.slot())),
        };
        match noted {
            // The process was forgotten meanwhile.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => tracing::warn!(id = %self.spec.id, %e, "failed to write the event checkpoint"),
            Ok(()) => {}
        }
    }

    /// Returns true for one caller at a time: that one retries.
    pub(super) fn begin_retry(&self) -> bool {
        !self.retrying.swap(true, Ordering::AcqRel)
    }

    pub(super) fn end_retry(&self) {
        self.retrying.store(false, Ordering::Release);
    }

    /// Returns true for one caller: that one makes the completion.
    pub(super) fn claim_completion(&self) -> bool {
        !self.completing.swap(true, Ordering::AcqRel)
    }

    /// Returns true for one caller: that one follows the process, and restarts it by its policy.
    pub fn begin_supervision(&self) -> bool {
        !self.supervised.swap(true, Ordering::AcqRel)
    }

    /// Lets another caller make the completion, after a failure.
    pub(super) fn release_completion(&self) {
        self.completing.store(false, Ordering::Release);
    }

    fn fresh_progress(&self) -> Option<Progress> {
        self.record.lock().ok()?.as_ref()?.progress()
    }

    /// Returns the inode of the pipe that the program has as stdin, if its shim recorded it.
    pub(super) fn stdin_inode(&self) -> Option<u64> {
        let launch = self.record.lock().ok()?.as_ref()?.launch()?;
        (launch.stdin_inode != 0).then_some(launch.stdin_inode)
    }

    pub fn subscribe(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// Publishes the state that the task computed. An update from the shim proves that it answers, so a concurrent
    /// `set_unresponsive` may be overwritten.
    pub(super) fn publish_state(&self, next: State) {
        self.state.send_if_modified(|state| std::mem::replace(state, next) != next);
    }

    /// Marks the shim as unresponsive until it sends something.
    pub(super) fn set_unresponsive(&self) {
        self.state.send_if_modified(|state| state.step(&Update::Unreachable));
    }

    /// Notes that the shim answered.
    pub(super) fn set_responsive(&self) {
        self.state.send_if_modified(|state| std::mem::take(&mut state.detached));
    }

    /// Returns the reason why the shim cannot be reached, and what to do about it.
    pub fn unreachable(&self) -> Option<String> {
        self.trouble(|trouble| trouble.unreachable.clone()).flatten()
    }

    pub(super) fn set_unreachable(&self, why: Option<String>) {
        if let Ok(mut trouble) = self.trouble.lock()
            && (why.is_some() || trouble.is_some())
        {
            trouble.get_or_insert_default().unreachable = why;
        }
    }

    /// Notes in the record that the program is not wanted any more. Returns the pid of the shim that has the launch; 0
    /// if that one has not come to it.
    pub(super) fn cancel_start(&self) -> std::io::Result<i32> {
        let record = self.record.lock().ok().and_then(|record| record.clone());
        let record = record.ok_or(std::io::ErrorKind::NotFound)?;
        record.set_canceled(wall_ms())?;
        hooks::at("kill.canceled");
        // Read afterwards: a shim that has forked by now is recorded, and one that has not reads the note.
        Ok(record.launch().map_or(0, |launch| launch.shim_pid))
    }

    /// Publishes the final state of a process that never had a task.
    pub fn publish_final(&self, state: State) {
        self.publish_state(state);
        self.close_inbox();
    }

    /// Requests a change of the state (see `subscribe`) when the output grows beyond `cursor`.
    pub fn notify_past(&self, cursor: u64) {
        self.output_request.add(cursor);
        self.wake.notify_one();
    }

    /// Takes the request to send to the shim.
    pub(super) fn take_output_request(&self) -> Option<u64> {
        self.output_request.take()
    }

    /// Asks the shim again for those that wait for more output than it rang for.
    pub(super) fn on_bell(&self, end: u64) {
        if self.output_request.on_bell(end) {
            self.wake.notify_one();
        }
    }

    /// Closes the inbox: the task ends, and nothing can be requested any more.
    pub fn close_inbox(&self) {
        // A lock is poisoned only if a holder panicked, and no holder does more than read or take.
        if let Ok(mut inbox) = self.inbox.lock() {
            inbox.take();
        }
        if let Ok(mut record) = self.record.lock() {
            record.take();
        }
    }

    pub(super) async fn request<T>(
        &self,
        wait_ms: u64,
        make: impl FnOnce(oneshot::Sender<T>) -> Command,
    ) -> Result<T, NoReply> {
        let inbox = self.inbox.lock().ok().and_then(|i| i.clone()).ok_or_else(|| self.no_inbox())?;
        if self.unreachable().is_some() {
            return Err(NoReply::Unreachable);
        }
        let (reply, answer) = oneshot::channel();
        let command = make(reply);
        let asked = async {
            inbox.send(command).await.map_err(|_| NoReply::Gone)?;
            let gone = |_| if self.unreachable().is_some() { NoReply::Unreachable } else { NoReply::Gone };
            answer.await.map_err(gone)
        };
        tokio::pin!(asked);
        if let Ok(answer) = tokio::time::timeout(NUDGE_DELAY, &mut asked).await {
            return answer;
        }
        tree::wake_shim(self.published_state().shim_pid);
        match tokio::time::timeout(REPLY_SLACK.saturating_add(Duration::from_millis(wait_ms)), asked).await {
            Ok(answer) => answer,
            Err(_) => {
                self.set_unresponsive();
                Err(NoReply::Unresponsive)
            }
        }
    }

    pub async fn kill(&self, kill: Kill) -> Result<KillResult, NoReply> {
        self.request(kill.grace_ms, |reply| Command::Kill { kill: Box::new(kill), reply }).await
    }
}
