//! The task that owns a process: talks to its shim, applies and publishes updates, and answers callers.

use super::handle::{Command, KillResult, Proc};
use super::launch::{LAUNCH_WAIT, is_lock_refused};
use super::lost::{self, Reaper};
use super::reach;
use super::shim_connection::{FrameWriter, ShimConnection};
use super::state::{Phase, Update};
use super::stopped_shim::ShimGuard;
use super::waiters::{Waiter, Waiters};
use super::write_queue::{WriteQueue, WriteStep};
use crate::backend::{LaunchFrame, Launcher};
use crate::clock::wall_ms;
use crate::disk::{on_disk, run_woken};
use crate::store::record::{LockOwner, Record};
use std::io;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::{Instant, sleep, sleep_until, timeout};
use toold_format::frame::{FromShim, ToShim};
use toold_format::step;
use toold_shim::hooks;
use tracing::{debug, info, warn};

/// Delay between two tries to connect to a shim that lives but does not accept yet, or any more. This is a poll: the
/// kernel has no event for a socket that starts to listen, nor for a lock that a dying process is about to release.
pub(super) const RECONNECT_DELAY: Duration = Duration::from_millis(5);
/// Number of tries before the shim is published as unreachable. The task then keeps trying, more slowly.
const RECONNECT_TRIES: u32 = 200;
const SLOW_RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// Time that a connected shim may hold a handshake permit. A slower one is served all the same.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_millis(200);

/// The way a task starts.
pub enum TaskStart {
    /// On a fresh connection. The launch frame is kept until a shim is known to have taken it.
    Launched { stream: UnixStream, frame: LaunchFrame },
    /// On the shim of an earlier daemon.
    Adopt,
}

pub struct Task {
    pub(super) proc: Arc<Proc>,
    inbox: mpsc::Receiver<Command>,
    pub(super) launcher: Arc<Launcher>,
    pub(super) record: Arc<Record>,
    nonce: [u8; 16],
    /// Opened while the program ran, so it pins its identity.
    pidfd: Option<std::os::fd::OwnedFd>,
    token: u64,
    writes: WriteQueue,
    kills: Vec<(u64, oneshot::Sender<KillResult>)>,
    waiters: Waiters,
    /// Dropped when the program has ended, before the end is published.
    running_guard: Option<Box<dyn Send + Sync>>,
    /// Another daemon started the shim, and may have launched it without waiting for the disk.
    pub(super) adopted: bool,
    pub(super) shim_guard: ShimGuard,
    reaper: Reaper,
    /// A kill came before a shim had started the program: it is not launched again.
    pub(super) canceled: bool,
    pub(super) relaunches: u32,
}

impl Task {
    pub fn new(
        proc: Arc<Proc>,
        inbox: mpsc::Receiver<Command>,
        launcher: Arc<Launcher>,
        record: Arc<Record>,
        nonce: [u8; 16],
    ) -> Task {
        let shim_level = proc.spec.shim_level;
        Task {
            proc,
            inbox,
            launcher,
            record,
            nonce,
            pidfd: None,
            token: 0,
            writes: WriteQueue::new(shim_level),
            kills: Vec::new(),
            waiters: Waiters::default(),
            running_guard: None,
            adopted: false,
            shim_guard: ShimGuard::Zygote,
            reaper: Reaper::Own,
            canceled: false,
            relaunches: 0,
        }
    }

    /// Keeps `running_guard` while the program runs.
    pub fn with_running_guard(self, running_guard: Option<Box<dyn Send + Sync>>) -> Task {
        Task { running_guard, ..self }
    }

    /// Runs until the state of the process is final. Each running process has this future: what is rare is boxed, and so
    /// takes no room in it.
    pub async fn run(&mut self, start: TaskStart) {
        let (mut connection, mut launch) = match start {
            TaskStart::Launched { stream, frame } => (Some(ShimConnection::new(stream)), Some(frame)),
            TaskStart::Adopt => (None, None),
        };
        self.adopted = connection.is_none();
        match connection {
            Some(_) if self.launcher.zygote_pid().is_some() => {}
            Some(_) => self.shim_guard.watch_start(&self.proc, &self.record),
            None => (self.shim_guard, self.reaper) = (ShimGuard::Missing, Reaper::Unknown),
        }
        loop {
            if let Some(connection) = &mut connection {
                self.serve_connection(connection, &mut launch).await;
                // A caller without an answer tries the next connection, or learns that the process has ended.
                self.waiters.clear();
            }
            if self.proc.published_state().is_final() {
                break;
            }
            connection = match launch.take() {
                Some(frame) => Box::pin(self.relaunch(frame, &mut launch)).await,
                None => Box::pin(self.reconnect()).await,
            };
            if connection.is_none() {
                break;
            }
        }
        self.finish();
    }

    /// Receives and sends until the shim closes the connection. Drops `launch` with the first frame: it was taken.
    async fn serve_connection(&mut self, connection: &mut ShimConnection, launch: &mut Option<LaunchFrame>) {
        let (mut reader, writer) = connection.split();
        // Those that were queued when the last connection broke.
        let mut sent = self.send_write(WriteStep::Next, writer).await;
        self.proc.resend_hold();
        loop {
            // A shim that exited cannot be written to, but frames that it sent before are still to be read.
            if let Err(e) = sent {
                debug!(id = %self.proc.spec.id, %e, "failed to send to the shim");
            }
            let deadline = self.writes.deadline();
            let is_waiting = launch.is_some();
            let untaken = async {
                match is_waiting {
                    true => sleep(LAUNCH_WAIT).await,
                    false => std::future::pending().await,
                }
            };
            let due = async {
                match deadline {
                    Some(at) => sleep_until(at).await,
                    None => std::future::pending().await,
                }
            };
            sent = tokio::select! {
                biased;
                frame = reader.next() => match frame {
                    Some((kind, body)) => {
                        let frame = FromShim::read(kind, body);
                        if frame.as_ref().is_some_and(is_lock_refused) {
                            // Another shim has the launch, or this daemon looked at the lock: the record shows which.
                            return;
                        }
                        launch.take();
                        match frame {
                            Some(frame) => self.on_message(frame, writer).await,
                            // A frame of a later version.
                            None => Ok(()),
                        }
                    }
                    None => return,
                },
                Some(command) = self.inbox.recv() => match command {
                    Command::Kill { reply, .. } if is_waiting && Box::pin(self.cancel_launch()).await => {
                        let _ = reply.send(KillResult::default());
                        Ok(())
                    }
                    command => self.on_command(command, writer).await,
                },
                () = untaken => {
                    if self.is_untaken() {
                        self.launcher.set_stalled();
                        return;
                    }
                    Ok(())
                }
                () = self.proc.wake.notified() => self.request_output(writer).await,
                () = due => self.send_write(WriteStep::Due, writer).await,
            };
            if self.proc.published_state().is_final() {
                return;
            }
        }
    }

    async fn request_output(&mut self, writer: FrameWriter<'_>) -> io::Result<()> {
        if let Some(above) = self.proc.take_output_request() {
            writer.send(&ToShim::Ring { above }).await?;
        }
        match self.proc.take_hold_frame() {
            Some(frame) => writer.send(&frame).await,
            None => Ok(()),
        }
    }

    async fn on_message(&mut self, frame: FromShim<'_>, writer: FrameWriter<'_>) -> io::Result<()> {
        if let FromShim::Wrote { .. } | FromShim::Done { .. } | FromShim::Killed { .. } | FromShim::Position { .. } =
            frame
        {
            self.proc.set_responsive();
        }
        let update = match frame {
            FromShim::Welcome { shim_pid, pid, progress, exit, closed } => {
                Update::Adopted { shim_pid, pid, progress, exit, closed }
            }
            FromShim::Started { pid, shim_pid, ticks } => Update::Started { pid, shim_pid, ticks },
            FromShim::Failed { step, errno } => Update::Failed { step, errno, at_ms: wall_ms() },
            FromShim::Bell { progress } => {
                self.proc.on_bell(progress.counts.end);
                Update::Output(progress)
            }
            FromShim::Exited { exit, progress } => Update::Exited { exit, progress },
            FromShim::Closed { progress } => Update::Closed(progress),
            FromShim::Gone => Update::Gone,
            FromShim::Wrote { token, done, state } => {
                let sent = self.send_write(WriteStep::Wrote { token, done, state }, writer).await;
                run_woken().await;
                return sent;
            }
            FromShim::Done { .. } | FromShim::Env { .. } | FromShim::Position { .. } => {
                self.waiters.answer(&frame);
                run_woken().await;
                return Ok(());
            }
            FromShim::Denied { .. } => {
                // The file of refusals has it. Of what can be many, the first are events.
                if self.proc.has_denial_events_left() {
                    on_disk(async { self.proc.publish_due(&self.proc.published_state()) }).await;
                }
                return Ok(());
            }
            // A spare that makes namespaces has no process.
            FromShim::Namespaces => return Ok(()),
            FromShim::Killed { token, signals, survivors } => {
                if let Some(at) = self.kills.iter().position(|(t, _)| *t == token) {
                    let survivors = survivors.as_chunks::<4>().0.iter().map(|pid| i32::from_le_bytes(*pid)).collect();
                    let _ = self.kills.swap_remove(at).1.send(KillResult { signals, survivors });
                }
                run_woken().await;
                return Ok(());
            }
        };
        if let Update::Adopted { shim_pid, .. } = update
            && self.adopted
        {
            self.reaper = Reaper::above(shim_pid, &self.launcher);
        }
        let exited = matches!(update, Update::Exited { .. });
        self.ensure_durable(&update).await;
        self.apply(update).await;
        if exited {
            run_woken().await;
        }
        Ok(())
    }

    /// Computes the next state, publishes the events that are due, then the state.
    pub(super) async fn apply(&mut self, update: Update) {
        let id = self.proc.spec.id;
        let mut next = self.proc.published_state();
        if !next.step(&update) {
            return;
        }
        // An event is stored before the state that caused it is published. New output is not an event.
        if !matches!(update, Update::Output(_) | Update::Unreachable | Update::Gone) {
            on_disk(async {
                self.proc.scan_tail(&next).await;
                self.proc.publish_due(&next);
            })
            .await;
        }
        let has_ended = next.has_ended() && !self.proc.published_state().has_ended();
        if has_ended {
            self.running_guard = None;
        }
        self.proc.publish_state(next);
        if has_ended {
            self.proc.sink.ends.ended.notify_one();
        }
        match update {
            Update::Started { pid, .. } | Update::Adopted { pid, exit: None, .. } => {
                self.pidfd = self.pidfd.take().or_else(|| crate::sys::pidfd_open(pid).ok());
                self.shim_guard.watch(&self.proc, self.pidfd.as_ref());
                debug!(%id, pid, "running");
            }
            Update::Adopted { .. } => debug!(%id, "adopted after its exit"),
            Update::Failed { step, errno, .. } => info!(%id, step = step::name(step), errno, "failed to start"),
            Update::Exited { exit, .. } => debug!(%id, status = exit.wait_status, "exited"),
            Update::Lost { wait_status, .. } => warn!(%id, ?wait_status, "lost: the shim died"),
            Update::Unreachable => warn!(%id, why = self.proc.unreachable(), "the shim lives but does not answer"),
            Update::TreeUnknown => warn!(%id, "processes that left the session of the program may be alive"),
            Update::Approved
            | Update::Launching
            | Update::Canceled(_)
            | Update::Output(_)
            | Update::Closed(_)
            | Update::Gone => {
                debug!(%id, ?update, "update");
            }
        }
    }

    async fn on_command(&mut self, command: Command, writer: FrameWriter<'_>) -> io::Result<()> {
        self.token += 1;
        let token = self.token;
        match command {
            Command::Kill { kill, reply } => {
                self.kills.push((token, reply));
                let (signal, grace_ms, uid, pid) = (kill.signal, kill.grace_ms, kill.uid, kill.pid);
                writer.send(&ToShim::Kill { token, signal, grace_ms, cause: kill.cause.code(), uid, pid }).await
            }
            Command::Control { control, reply } => {
                self.waiters.push(token, Waiter::Errno(reply));
                writer.send(&control.frame(token)).await
            }
            Command::ExtendTimeout { by_ms, reply } => {
                self.waiters.push(token, Waiter::Errno(reply));
                writer.send(&ToShim::ExtendTimeout { token, by_ms }).await
            }
            Command::ReadEnv { offset, given, reply } => {
                self.waiters.push(token, Waiter::Env(reply));
                writer.send(&ToShim::ReadEnv { token, offset, given }).await
            }
            Command::KeepEnv { part, reply } => {
                self.waiters.push(token, Waiter::Errno(reply));
                let (offset, total, data) = (part.offset, part.total, &part.data[..]);
                writer.send(&ToShim::KeepEnv { token, offset, total, data }).await
            }
            Command::Position(reply) => {
                self.waiters.push(token, Waiter::Position(reply));
                writer.send(&ToShim::Position { token }).await
            }
            Command::Write(write) => {
                self.writes.push(write);
                self.send_write(WriteStep::Next, writer).await
            }
        }
    }

    /// Advances the writes, and sends the frames that are due.
    async fn send_write(&mut self, step: WriteStep, writer: FrameWriter<'_>) -> io::Result<()> {
        let ended = match step {
            WriteStep::Next => false,
            WriteStep::Due => self.writes.on_deadline(Instant::now()),
            WriteStep::Wrote { token, done, state } => self.writes.on_wrote(token, done, state, Instant::now()),
        };
        if ended {
            self.proc.input.send_modify(|counts| counts.writes += 1);
        }
        while let Some(frame) = self.writes.next_frame(&mut self.token) {
            writer.send(&frame).await?;
        }
        Ok(())
    }

    pub(super) async fn reconnect(&mut self) -> Option<ShimConnection> {
        on_disk(self.connect_again()).await
    }

    /// Connects to the shim while one lives. If none does, resolves and publishes the end, and returns None.
    async fn connect_again(&mut self) -> Option<ShimConnection> {
        let launcher = self.launcher.clone();
        for attempt in 0.. {
            // A permit, so that a thousand handshakes do not all come before the first request.
            let permit = launcher.handshakes.acquire().await;
            if self.pidfd.is_none() {
                let state = self.proc.published_state();
                self.pidfd = super::tree::pin(state.pid, state.ticks).unwrap_or_default();
            }
            self.shim_guard.watch(&self.proc, self.pidfd.as_ref());
            hooks::at("recovery.reach");
            if self.record.lock() == LockOwner::Daemon {
                drop(permit);
                let (pidfd, reaper) = (self.pidfd.take(), &self.reaper);
                for update in lost::resolve_lost(&self.proc, &self.record, pidfd, reaper, &launcher).await {
                    self.apply(update).await;
                }
                self.record.unlock();
                return None;
            }
            if let Ok(stream) = reach::connect(&self.proc, &self.nonce) {
                let connection = ShimConnection::new(stream);
                if connection.writer().send(&ToShim::Hello { nonce: self.nonce }).await.is_ok() {
                    let _ = timeout(HANDSHAKE_TIMEOUT, connection.readable()).await;
                    // Callers that still wait for a kill request it again.
                    self.kills.clear();
                    self.writes.disconnect();
                    self.proc.wake.notify_one();
                    self.proc.set_unreachable(None);
                    return Some(connection);
                }
            }
            drop(permit);
            let unreachable = reach::explain(&self.proc);
            let is_unreachable = unreachable.is_some();
            if is_unreachable {
                self.set_unreachable(unreachable);
            }
            if attempt == RECONNECT_TRIES || is_unreachable {
                self.apply(Update::Unreachable).await;
            }
            let is_slow = attempt >= RECONNECT_TRIES || is_unreachable;
            sleep(if is_slow { SLOW_RECONNECT_DELAY } else { RECONNECT_DELAY }).await;
        }
        None
    }

    /// Publishes why the shim cannot be reached. Callers that wait for it learn that now.
    fn set_unreachable(&mut self, why: Option<String>) {
        self.proc.set_unreachable(why);
        while self.inbox.try_recv().is_ok() {}
    }

    fn finish(&self) {
        let state = self.proc.published_state();
        debug_assert!(state.is_final() || state.phase == Phase::Starting, "a task ends with its process");
        self.proc.close_inbox();
        debug!(id = %self.proc.spec.id, "task finished");
    }
}
