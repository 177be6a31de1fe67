//! What everybody but its task holds of a process: reads never wait, changes await their effect.

use super::checkpoint::Checkpoint;
use super::event_sink::EventSink;
use super::state::{State, Update};
use super::tree;
use super::watcher::WatchTask;
use crate::store::record::{Record, Spec};
use crate::watch::Patterns;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use tokio::sync::{Notify, mpsc, oneshot, watch};
use toold_format::frame::Wrote;
use toold_format::slots::{Cause, Progress};

/// Requests waiting for one process. More than this and callers wait.
pub const INBOX_LEN: usize = 16;

/// Nobody waits for output.
const NO_REQUEST: u64 = u64::MAX;

/// A change that a process's task makes.
#[derive(Debug)]
pub enum Command {
    Write { id: [u8; 16], data: Vec<u8>, timeout_ms: u64, reply: oneshot::Sender<WriteResult> },
    Close { reply: oneshot::Sender<i32> },
    Resize { rows: u16, cols: u16, reply: oneshot::Sender<i32> },
    Signal { signal: i32, reply: oneshot::Sender<i32> },
    Kill { kill: Kill, reply: oneshot::Sender<KillResult> },
}

/// How a write ended.
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

/// What a kill did. Signals as bits.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KillResult {
    pub signals: u64,
    pub survivors: Vec<i32>,
}

/// Why nobody answered.
#[derive(Debug, PartialEq, Eq)]
pub enum NoReply {
    /// The process has no task any more, or the connection to its shim broke.
    Gone,
    /// Its shim lives and does not answer.
    Unresponsive,
}

/// A shim that has not answered for so long is looked at: a stopped one is woken.
const NUDGE_DELAY: Duration = Duration::from_secs(1);
/// What a shim that is not frozen needs at most, beyond the time that was asked for.
const REPLY_SLACK: Duration = Duration::from_secs(10);

/// One process, for everybody.
pub struct Proc {
    pub spec: Spec,
    pub dir: PathBuf,
    state: watch::Sender<State>,
    /// The shim's own counts, while it lives.
    record: Mutex<Option<Arc<Record>>>,
    inbox: Mutex<Option<mpsc::Sender<Command>>>,
    /// Output beyond this is waited for.
    output_request: AtomicU64,
    pub wake: Notify,
    pub sink: Arc<EventSink>,
    checkpoint: Mutex<Checkpoint>,
    /// Somebody is at it: telling what the disk refused, making the completion.
    retrying: AtomicBool,
    completing: AtomicBool,
    pub watch_task: Option<Box<WatchTask>>,
    /// Counts what was written to its stdin.
    pub input: watch::Sender<u64>,
    preview: Mutex<Option<Box<Preview>>>,
}

/// The end of the output as it was last shown, and how far the output had come.
struct Preview {
    at: (u64, bool),
    text: Arc<str>,
}

/// What a new handle is made with.
pub struct ProcInit {
    pub spec: Spec,
    pub dir: PathBuf,
    pub state: State,
    pub checkpoint: Checkpoint,
    pub sink: Arc<EventSink>,
    /// Ready to use, where they were made already.
    pub patterns: Option<Arc<Patterns>>,
}

impl Proc {
    /// A process with a task: the receiver is for it.
    pub fn new(start: ProcInit) -> (Proc, mpsc::Receiver<Command>) {
        let (send, receive) = mpsc::channel(INBOX_LEN);
        let mut proc = Proc::without_task(start);
        proc.inbox = Mutex::new(Some(send));
        (proc, receive)
    }

    /// The end of the output as a list shows it: read anew only if there is more of it since the last list.
    pub fn preview<E>(&self, state: &State, read: impl FnOnce() -> Result<String, E>) -> Result<Arc<str>, E> {
        let at = (state.progress.counts.end, state.closed);
        let known = |kept: &Option<Box<Preview>>| kept.as_ref().filter(|p| p.at == at).map(|p| p.text.clone());
        if let Some(text) = self.preview.lock().ok().and_then(|kept| known(&kept)) {
            return Ok(text);
        }
        let text: Arc<str> = read()?.into();
        if let Ok(mut kept) = self.preview.lock() {
            *kept = Some(Box::new(Preview { at, text: text.clone() }));
        }
        Ok(text)
    }

    /// From here on the counts are read where the shim writes them.
    pub fn set_record(&self, record: Arc<Record>) {
        if let Ok(mut place) = self.record.lock() {
            *place = Some(record);
        }
    }

    /// A process that is over.
    pub fn without_task(start: ProcInit) -> Proc {
        let ProcInit { spec, dir, state, checkpoint, sink, patterns } = start;
        let watch_task = (!spec.watch.is_empty()).then(|| Box::new(WatchTask::new(patterns)));
        Proc {
            spec,
            dir,
            state: watch::Sender::new(state),
            record: Mutex::new(None),
            inbox: Mutex::new(None),
            output_request: AtomicU64::new(NO_REQUEST),
            wake: Notify::new(),
            sink,
            checkpoint: Mutex::new(checkpoint),
            retrying: AtomicBool::new(false),
            completing: AtomicBool::new(false),
            watch_task,
            input: watch::Sender::new(0),
            preview: Mutex::new(None),
        }
    }

    /// The latest state. Its counts are as fresh as the shim's last write.
    pub fn state(&self) -> State {
        let mut state = *self.state.borrow();
        if let Some(progress) = self.fresh_progress() {
            state.step(&Update::Output(progress));
        }
        state
    }

    /// The latest state that was announced: without a look at the counts.
    pub fn published_state(&self) -> State {
        *self.state.borrow()
    }

    /// What was told of it so far.
    pub fn checkpoint(&self) -> Checkpoint {
        *self.checkpoint_mut()
    }

    /// Held while one event is published, never across an await.
    pub(super) fn checkpoint_mut(&self) -> MutexGuard<'_, Checkpoint> {
        self.checkpoint.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Writes what was told into the record. The journal has it too, so a failure costs only if a crash follows.
    pub(super) fn store_checkpoint(&self, checkpoint: &Checkpoint) {
        let open = self.record.lock().ok().and_then(|record| record.clone());
        let noted = match open {
            Some(record) => record.set_checkpoint(&checkpoint.slot()),
            None => Record::open(&self.dir).and_then(|record| record.set_checkpoint(&checkpoint.slot())),
        };
        match noted {
            // Forgotten meanwhile.
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => tracing::warn!(id = %self.spec.id, %e, "what was told could not be noted"),
            Ok(()) => {}
        }
    }

    /// True for one caller at a time: it retries.
    pub(super) fn begin_retry(&self) -> bool {
        !self.retrying.swap(true, Ordering::AcqRel)
    }

    pub(super) fn end_retry(&self) {
        self.retrying.store(false, Ordering::Release);
    }

    /// True once: for who makes the completion.
    pub(super) fn claim_completion(&self) -> bool {
        !self.completing.swap(true, Ordering::AcqRel)
    }

    /// It could not be made: somebody tries again.
    pub(super) fn release_completion(&self) {
        self.completing.store(false, Ordering::Release);
    }

    fn fresh_progress(&self) -> Option<Progress> {
        self.record.lock().ok()?.as_ref()?.progress()
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
    fn set_unresponsive(&self) {
        self.state.send_if_modified(|state| state.step(&Update::Unreachable));
    }

    /// The bytes that a named write put in before the exit. None: it was never seen.
    pub fn written(&self, id: &[u8; 16]) -> Option<u64> {
        if *id == [0; 16] {
            return None;
        }
        Record::open(&self.dir).ok()?.written(id)
    }

    /// Publishes the final state of a process that never had a task.
    pub fn publish_final(&self, state: State) {
        self.publish_state(state);
        self.close_inbox();
    }

    /// Asks to be woken (through `subscribe`) when the output reaches beyond `cursor`.
    pub fn notify_past(&self, cursor: u64) {
        self.output_request.fetch_min(cursor, Ordering::AcqRel);
        self.wake.notify_one();
    }

    /// What to ask the shim for, once.
    pub(super) fn take_output_request(&self) -> Option<u64> {
        let output_request = self.output_request.swap(NO_REQUEST, Ordering::AcqRel);
        (output_request != NO_REQUEST).then_some(output_request)
    }

    /// The task is leaving: nobody can ask it for anything any more.
    pub(super) fn close_inbox(&self) {
        // A lock is poisoned only if a holder panicked, and none does anything but look or take.
        if let Ok(mut inbox) = self.inbox.lock() {
            inbox.take();
        }
        if let Ok(mut record) = self.record.lock() {
            record.take();
        }
    }

    async fn request<T>(&self, wait_ms: u64, make: impl FnOnce(oneshot::Sender<T>) -> Command) -> Result<T, NoReply> {
        let inbox = self.inbox.lock().ok().and_then(|i| i.clone()).ok_or(NoReply::Gone)?;
        let (reply, answer) = oneshot::channel();
        let command = make(reply);
        let asked = async {
            inbox.send(command).await.map_err(|_| NoReply::Gone)?;
            answer.await.map_err(|_| NoReply::Gone)
        };
        tokio::pin!(asked);
        if let Ok(answer) = tokio::time::timeout(NUDGE_DELAY, &mut asked).await {
            return answer;
        }
        tree::wake_shim(self.published_state().shim_pid);
        match tokio::time::timeout(REPLY_SLACK + Duration::from_millis(wait_ms), asked).await {
            Ok(answer) => answer,
            Err(_) => {
                self.set_unresponsive();
                Err(NoReply::Unresponsive)
            }
        }
    }

    pub async fn kill(&self, kill: Kill) -> Result<KillResult, NoReply> {
        self.request(kill.grace_ms, |reply| Command::Kill { kill, reply }).await
    }

    /// 0, or an errno.
    pub async fn signal(&self, signal: i32) -> Result<i32, NoReply> {
        self.request(0, |reply| Command::Signal { signal, reply }).await
    }

    pub async fn write(&self, id: [u8; 16], data: Vec<u8>, timeout_ms: u64) -> Result<WriteResult, NoReply> {
        // Others may be before it.
        self.request(timeout_ms.saturating_mul(INBOX_LEN as u64), |reply| Command::Write {
            id,
            data,
            timeout_ms,
            reply,
        })
        .await
    }

    pub async fn close(&self) -> Result<i32, NoReply> {
        self.request(0, |reply| Command::Close { reply }).await
    }

    pub async fn resize(&self, rows: u16, cols: u16) -> Result<i32, NoReply> {
        self.request(0, |reply| Command::Resize { rows, cols, reply }).await
    }
}
