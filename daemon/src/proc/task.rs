//! The task that owns a process: it talks to the shim, publishes what it hears, and answers callers.

use super::handle::{Command, KillResult, Proc, WriteResult};
use super::link::{Link, Word};
use super::lost;
use super::state::{Phase, Update};
use crate::backend::Launcher;
use crate::clock::wall_ms;
use crate::store::record::{LockOwner, Record};
use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use toold_format::frame::{MAX_WRITE_LEN, ToShim, Wrote};
use toold_shim::address;
use toold_shim::hooks;
use tracing::{debug, info, warn};

/// Between two tries to reach a shim that lives but does not listen yet, or any more.
const RECONNECT_DELAY: Duration = Duration::from_millis(5);
/// Tries before it is called unreachable. It is tried on, more slowly.
const RECONNECT_TRIES: u32 = 200;
const SLOW_RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// How long a shim that was greeted has its turn. One that is slower is heard all the same.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_millis(200);

/// How a task begins.
pub enum TaskStart {
    /// A fresh connection; the launch is kept until it is known to have been taken.
    Launched { stream: UnixStream, launch: Vec<u8> },
    /// A shim of an earlier daemon.
    Adopt,
}

/// A write under way, piece by piece.
struct Writing {
    id: [u8; 16],
    data: Vec<u8>,
    at: u64,
    token: u64,
    deadline: Instant,
    stopping: bool,
    reply: oneshot::Sender<WriteResult>,
}

struct QueuedWrite {
    id: [u8; 16],
    data: Vec<u8>,
    timeout_ms: u64,
    reply: oneshot::Sender<WriteResult>,
}

pub struct Task {
    proc: Arc<Proc>,
    inbox: mpsc::Receiver<Command>,
    launcher: Arc<Launcher>,
    record: Arc<Record>,
    nonce: [u8; 16],
    /// Opened while the program ran: it pins who it was.
    pidfd: Option<std::os::fd::OwnedFd>,
    token: u64,
    writing: Option<Writing>,
    writes: VecDeque<QueuedWrite>,
    kills: Vec<(u64, oneshot::Sender<KillResult>)>,
    waiting: Vec<(u64, oneshot::Sender<i32>)>,
    /// What is let go of when the program has ended, before anybody hears of that.
    while_running: Option<Box<dyn Send + Sync>>,
    /// Its shim was started by another daemon, which may have told it not to wait for the disk.
    adopted: bool,
}

impl Task {
    pub fn new(
        proc: Arc<Proc>,
        inbox: mpsc::Receiver<Command>,
        launcher: Arc<Launcher>,
        record: Arc<Record>,
        nonce: [u8; 16],
    ) -> Task {
        Task {
            proc,
            inbox,
            launcher,
            record,
            nonce,
            pidfd: None,
            token: 0,
            writing: None,
            writes: VecDeque::new(),
            kills: Vec::new(),
            waiting: Vec::new(),
            while_running: None,
            adopted: false,
        }
    }

    /// Keeps this as long as the program runs.
    pub fn with_running_guard(self, while_running: Option<Box<dyn Send + Sync>>) -> Task {
        Task { while_running, ..self }
    }

    /// Runs until nothing about the process can change any more.
    pub async fn run(mut self, begin: TaskStart) {
        let (mut link, mut launch) = match begin {
            TaskStart::Launched { stream, launch } => (Some(Link::new(stream)), Some(launch)),
            TaskStart::Adopt => (None, None),
        };
        self.adopted = link.is_none();
        loop {
            if let Some(link) = &mut link {
                self.serve_connection(link, &mut launch).await;
                // Whoever asked and got no answer asks the next connection, or learns that it is over.
                self.waiting.clear();
            }
            if self.proc.published_state().is_final() {
                break;
            }
            link = match launch.take() {
                Some(launch) => self.relaunch(launch).await,
                None => self.reconnect().await,
            };
            if link.is_none() {
                break;
            }
        }
        self.finish();
    }

    /// Listens and speaks until the shim hangs up.
    async fn serve_connection(&mut self, link: &mut Link, launch: &mut Option<Vec<u8>>) {
        loop {
            let deadline = self.writing.as_ref().filter(|w| !w.stopping).map(|w| w.deadline);
            let due = async {
                match deadline {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            let sent = tokio::select! {
                biased;
                word = link.next(wall_ms) => match word {
                    Some(word) => {
                        launch.take();
                        self.on_message(word, link).await
                    }
                    None => return,
                },
                Some(command) = self.inbox.recv() => self.on_command(command, link).await,
                () = self.proc.wake.notified() => self.ring(link).await,
                () = due => self.stop_writing(link).await,
            };
            // A shim that left cannot be written to, but what it said before is still to be read.
            if let Err(e) = sent {
                debug!(id = %self.proc.spec.id, %e, "the shim does not listen any more");
            }
            if self.proc.published_state().is_final() {
                return;
            }
        }
    }

    async fn ring(&mut self, link: &mut Link) -> io::Result<()> {
        match self.proc.take_output_request() {
            Some(above) => link.send(&ToShim::Ring { above }).await,
            None => Ok(()),
        }
    }

    async fn on_message(&mut self, word: Word, link: &mut Link) -> io::Result<()> {
        match word {
            Word::Update(update) => {
                self.ensure_durable(&update).await;
                self.apply(&update);
                if matches!(update, Update::Exited { .. }) {
                    // Whoever waits for it is answered before what came along with it is looked at.
                    tokio::task::yield_now().await;
                }
                Ok(())
            }
            Word::Done { token, errno } => {
                if let Some(at) = self.waiting.iter().position(|(t, _)| *t == token) {
                    let _ = self.waiting.swap_remove(at).1.send(errno);
                }
                Ok(())
            }
            Word::Killed { token, signals, survivors } => {
                if let Some(at) = self.kills.iter().position(|(t, _)| *t == token) {
                    let _ = self.kills.swap_remove(at).1.send(KillResult { signals, survivors });
                }
                Ok(())
            }
            Word::Wrote { token, done, state } => self.wrote(token, done, state, link).await,
        }
    }

    /// What a shim could not put on record, or was not asked to wait for the disk with, is seen to before it is told.
    async fn ensure_durable(&self, update: &Update) {
        let unsure = match update {
            Update::Failed { step, errno, at_ms } if self.record.stage().is_none() => {
                self.record.set_failed(*step, *errno, *at_ms).is_ok()
            }
            Update::Exited { .. } | Update::Adopted { exit: Some(_), .. } => self.adopted,
            _ => false,
        };
        if unsure && let Err(e) = self.record.sync_async().await {
            warn!(id = %self.proc.spec.id, %e, "the disk refuses to keep how it ended");
        }
    }

    fn apply(&mut self, update: &Update) {
        let id = self.proc.spec.id;
        let mut next = self.proc.published_state();
        if !next.step(update) {
            return;
        }
        // An event is on disk before anybody hears of what it is about. Output is not an event.
        if !matches!(update, Update::Output(_) | Update::Unreachable | Update::Gone) {
            self.proc.scan_tail(&next);
            self.proc.publish_due(&next);
        }
        if next.has_ended() {
            self.while_running = None;
        }
        if !self.proc.publish_state(update) {
            return;
        }
        match update {
            Update::Started { pid, .. } | Update::Adopted { pid, exit: None, .. } => {
                self.pidfd = self.pidfd.take().or_else(|| crate::sys::pidfd_open(*pid).ok());
                debug!(%id, pid, "running");
            }
            Update::Adopted { .. } => debug!(%id, "adopted after its exit"),
            Update::Failed { step, errno, .. } => {
                info!(%id, step = toold_format::step::name(*step), errno, "did not start");
            }
            Update::Exited { exit, .. } => debug!(%id, status = exit.wait_status, "exited"),
            Update::Lost { wait_status, .. } => warn!(%id, ?wait_status, "lost: its shim died"),
            Update::Unreachable => warn!(%id, "its shim lives but does not answer"),
            Update::Output(_) | Update::Closed(_) | Update::Gone => debug!(%id, ?update, "news"),
        }
    }

    async fn on_command(&mut self, command: Command, link: &mut Link) -> io::Result<()> {
        self.token += 1;
        let token = self.token;
        match command {
            Command::Kill { kill, reply } => {
                self.kills.push((token, reply));
                let (signal, grace_ms, uid, pid) = (kill.signal, kill.grace_ms, kill.uid, kill.pid);
                link.send(&ToShim::Kill { token, signal, grace_ms, cause: kill.cause.code(), uid, pid }).await
            }
            Command::Signal { signal, reply } => {
                self.waiting.push((token, reply));
                link.send(&ToShim::Signal { token, signal }).await
            }
            Command::Resize { rows, cols, reply } => {
                self.waiting.push((token, reply));
                link.send(&ToShim::Resize { token, rows, cols }).await
            }
            Command::Close { reply } => {
                self.waiting.push((token, reply));
                link.send(&ToShim::Close { token }).await
            }
            Command::Write { id, data, timeout_ms, reply } => {
                self.writes.push_back(QueuedWrite { id, data, timeout_ms, reply });
                if self.writing.is_none() { self.next_write(link).await } else { Ok(()) }
            }
        }
    }

    async fn next_write(&mut self, link: &mut Link) -> io::Result<()> {
        let Some(QueuedWrite { id, data, timeout_ms, reply }) = self.writes.pop_front() else { return Ok(()) };
        let deadline = Instant::now() + Duration::from_millis(timeout_ms);
        self.writing = Some(Writing { id, data, at: 0, token: 0, deadline, stopping: false, reply });
        self.write_piece(link).await
    }

    async fn write_piece(&mut self, link: &mut Link) -> io::Result<()> {
        self.token += 1;
        let Some(writing) = &mut self.writing else { return Ok(()) };
        writing.token = self.token;
        let rest = &writing.data[(writing.at as usize).min(writing.data.len())..];
        let data = &rest[..rest.len().min(MAX_WRITE_LEN)];
        let (id, offset, total) = (writing.id, writing.at, writing.data.len() as u64);
        link.send(&ToShim::Write { token: self.token, id, offset, total, data }).await
    }

    async fn wrote(&mut self, token: u64, done: u64, state: Wrote, link: &mut Link) -> io::Result<()> {
        let Some(writing) = &mut self.writing else { return Ok(()) };
        if writing.token != token {
            return Ok(());
        }
        writing.at = done;
        if state == Wrote::More && !writing.stopping && Instant::now() < writing.deadline {
            return self.write_piece(link).await;
        }
        let state = if state == Wrote::More { Wrote::Stopped } else { state };
        if let Some(writing) = self.writing.take() {
            self.proc.input.send_modify(|count| *count += 1);
            let _ = writing.reply.send(WriteResult { done, state });
        }
        self.next_write(link).await
    }

    async fn stop_writing(&mut self, link: &mut Link) -> io::Result<()> {
        let Some(writing) = &mut self.writing else { return Ok(()) };
        writing.stopping = true;
        link.send(&ToShim::WriteStop { token: writing.token }).await
    }

    /// The launch was never taken, or its taker died. Only what provably never began is begun again.
    async fn relaunch(&mut self, launch: Vec<u8>) -> Option<Link> {
        while self.record.lock() == LockOwner::Shim {
            if self.record.stage().is_some() {
                return self.reconnect().await;
            }
            // It hung up before it began, so it is dying: its lock goes a moment later.
            sleep(RECONNECT_DELAY).await;
        }
        let began = self.record.stage().is_some();
        self.record.unlock();
        if began {
            return self.reconnect().await;
        }
        warn!(id = %self.proc.spec.id, "no shim took the launch; starting one by exec");
        match self.launcher.exec(&launch).await {
            Ok(stream) => {
                let mut link = Link::new(stream);
                self.serve_connection(&mut link, &mut None).await;
                if self.proc.published_state().is_final() { None } else { self.reconnect().await }
            }
            Err(e) => {
                let errno = e.raw_os_error().unwrap_or(libc::EIO);
                let update = Update::Failed { step: toold_format::step::FORK, errno, at_ms: wall_ms() };
                self.ensure_durable(&update).await;
                self.apply(&update);
                None
            }
        }
    }

    /// Connects to the shim as long as one lives. None: it does not, and what remains is published.
    async fn reconnect(&mut self) -> Option<Link> {
        let launcher = self.launcher.clone();
        for attempt in 0.. {
            // A turn, so that a thousand looks at shims do not all come before the first request.
            let turn = launcher.handshakes.acquire().await;
            if self.pidfd.is_none() {
                let state = self.proc.published_state();
                self.pidfd = super::tree::pin(state.pid, state.ticks);
            }
            hooks::at("recovery.reach");
            if self.record.lock() == LockOwner::Daemon {
                drop(turn);
                for update in lost::resolve_lost(&self.proc, &self.record, self.pidfd.take()).await {
                    self.apply(&update);
                }
                self.record.unlock();
                return None;
            }
            if let Ok(stream) = connect(&self.proc, &self.nonce) {
                let mut link = Link::new(stream);
                if link.send(&ToShim::Hello { nonce: self.nonce }).await.is_ok() {
                    let _ = timeout(HANDSHAKE_TIMEOUT, link.readable()).await;
                    // The kills of callers that still wait are asked for anew by them.
                    self.kills.clear();
                    self.writing = None;
                    self.proc.wake.notify_one();
                    return Some(link);
                }
            }
            drop(turn);
            if attempt == RECONNECT_TRIES {
                self.apply(&Update::Unreachable);
            }
            sleep(if attempt < RECONNECT_TRIES { RECONNECT_DELAY } else { SLOW_RECONNECT_DELAY }).await;
        }
        None
    }

    fn finish(self) {
        let state = self.proc.published_state();
        debug_assert!(state.is_final() || state.phase == Phase::Starting, "a task ends with its process");
        self.proc.close_inbox();
        debug!(id = %self.proc.spec.id, "over");
    }
}

/// Connects to the shim of a process.
fn connect(proc: &Proc, nonce: &[u8; 16]) -> io::Result<UnixStream> {
    let socket = address::connect_to(proc.spec.id.to_string().as_bytes(), nonce)?;
    UnixStream::from_std(std::os::unix::net::UnixStream::from(socket))
}
