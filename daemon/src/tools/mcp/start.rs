//! Starts a server, or continues with the process that an earlier daemon started, and follows it to its end.

use super::backoff::StartVerdict;
use super::handshake::{self, HandshakeError};
use super::launch;
use super::server::{McpServer, Slot, Started};
use super::session::{Session, SessionOptions, Signal};
use super::state_file::{Era, SavedProcess};
use crate::disk::on_disk;
use crate::proc::Proc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;
use toold_format::slots::Cause;
use toold_proto::tools::ProviderState;
use toold_proto::{ErrorKind, RpcError};
use toold_shim::hooks;

/// Bytes of log that are read again after a restart, at most.
const CHECKPOINT_LEN: u64 = 4 << 20;
/// The time that a server which is ended on purpose may take.
pub const END_TIMEOUT: Duration = Duration::from_secs(30);

/// The reason why a start failed.
struct StartFailure {
    message: String,
    at_probe: bool,
}

impl McpServer {
    /// Returns the running server. Starts it, or continues with the process of an earlier daemon. A start goes on if the caller gives up.
    pub async fn session(self: &Arc<Self>) -> Result<Arc<Session>, RpcError> {
        let mut started = {
            let mut state = self.state();
            match &state.slot {
                Slot::Up(session) if session.is_open() => return Ok(session.clone()),
                Slot::Starting(started) => started.clone(),
                Slot::Up(_) | Slot::Down => {
                    let (done, started) = watch::channel(None);
                    let previous = match std::mem::replace(&mut state.slot, Slot::Starting(started.clone())) {
                        Slot::Up(session) => Some(session),
                        Slot::Down | Slot::Starting(_) => None,
                    };
                    tokio::spawn(on_disk(self.clone().start(previous, done)));
                    started
                }
            }
        };
        let outcome = started.wait_for(Option::is_some).await.ok().and_then(|outcome| outcome.clone());
        outcome
            .unwrap_or_else(|| Err(RpcError::new(ErrorKind::Internal, "the start of the server failed inside toold")))
    }

    async fn start(self: Arc<Self>, previous: Option<Arc<Session>>, done: watch::Sender<Started>) {
        if let Some(previous) = previous {
            // Its name is free when it has ended.
            let _ = tokio::time::timeout(END_TIMEOUT, previous.ended()).await;
        }
        let outcome = self.try_start().await;
        {
            let mut state = self.state();
            state.trouble = outcome.as_ref().err().map(|error| error.message.clone());
            state.slot = match &outcome {
                Ok(session) => Slot::Up(session.clone()),
                Err(_) => Slot::Down,
            };
        }
        match &outcome {
            Ok(session) => {
                self.publish(ProviderState::Ready, None);
                tokio::spawn(on_disk(self.clone().own(session.clone())));
            }
            Err(error) => self.publish(ProviderState::Gone, Some(error.message.clone())),
        }
        done.send_replace(Some(outcome));
    }

    async fn try_start(self: &Arc<Self>) -> Result<Arc<Session>, RpcError> {
        let verdict = self.state().backoff.verdict(Instant::now());
        match verdict {
            StartVerdict::Now => {}
            StartVerdict::At(at) => tokio::time::sleep_until(at).await,
            StartVerdict::Refused { until, why } => {
                let retry_ms = until.saturating_duration_since(Instant::now()).as_millis() as u64;
                let message = format!("mcp/{} failed too often and is not started for {retry_ms} ms; {why}", self.name);
                return Err(RpcError::new(ErrorKind::Unavailable, message).with("retry_after_ms", retry_ms));
            }
        }
        let deadline = Instant::now() + Duration::from_millis(self.config.start_timeout_ms);
        let era = self.era();
        let failure = match self.start_once(era.as_ref(), deadline).await? {
            Ok(session) => return Ok(session),
            // A server may end at a message that comes before `initialize`.
            Err(failure) if failure.at_probe && era.is_none() => {
                let legacy = Era::Legacy(String::new());
                match self.start_once(Some(&legacy), deadline).await? {
                    Ok(session) => return Ok(session),
                    Err(failure) => failure,
                }
            }
            Err(failure) => failure,
        };
        // It may be another program of the same name by now.
        self.save(|saved| saved.era = None);
        self.state().backoff.failed(Instant::now(), failure.message.clone());
        Err(RpcError::new(ErrorKind::Unavailable, failure.message).with("server", self.name.as_str()))
    }

    /// Makes one try. The outer error is one that another try does not help against.
    async fn start_once(
        self: &Arc<Self>,
        era: Option<&Era>,
        deadline: Instant,
    ) -> Result<Result<Arc<Session>, StartFailure>, RpcError> {
        let registry = &self.shared.registry;
        let mut found = launch::find(registry, &self.name);
        if let Some(proc) = found.take_if(|proc| !self.owns(proc)) {
            launch::end(&proc, Cause::Client).await;
        }
        let saved = self.loaded().saved.process.clone();
        let (proc, cursor) = match found {
            Some(proc) => match saved.filter(|saved| saved.id == proc.spec.id) {
                Some(SavedProcess { ready: true, cursor, .. }) if self.era().is_some() => {
                    hooks::at("mcp.attach");
                    return Ok(Ok(self.follow(proc, cursor, &[])));
                }
                // An earlier daemon ended before it could record the handshake: its answers are in the log.
                Some(_) | None => (proc, 0),
            },
            None => {
                let proc = launch::launch(registry, &self.name, &self.config, &self.shared.bridge).await;
                let proc = proc.inspect_err(|e| self.state().backoff.failed(Instant::now(), e.message.clone()))?;
                hooks::at("mcp.started");
                (proc, 0)
            }
        };
        self.save(|saved| saved.process = Some(SavedProcess { id: proc.spec.id, ready: false, cursor: 0 }));
        let session = self.follow(proc.clone(), cursor, handshake::FIRST_REQUESTS);
        match self.prepare(&session, era, deadline).await {
            Ok(()) => Ok(Ok(session)),
            Err(error) => {
                session.close();
                let is_at_probe = error == HandshakeError::Ended { at_probe: true };
                let failure = StartFailure { message: self.failure(&proc, error), at_probe: is_at_probe };
                launch::kill(&proc, Cause::Client).await;
                Ok(Err(failure))
            }
        }
    }

    /// Makes the handshake and the first list, and records both.
    async fn prepare(
        self: &Arc<Self>,
        session: &Arc<Session>,
        era: Option<&Era>,
        deadline: Instant,
    ) -> Result<(), HandshakeError> {
        let hello = handshake::handshake(session, era, deadline).await?;
        hooks::at("mcp.handshake");
        let tools = match hello.has_tools {
            true => self.list(session, &hello.era, deadline).await?,
            false => Vec::new(),
        };
        let process = SavedProcess { id: session.proc.spec.id, ready: true, cursor: session.position() };
        self.save(|saved| {
            (saved.era, saved.process, saved.tools) = (Some(hello.era), Some(process), Some(tools));
        });
        hooks::at("mcp.ready");
        Ok(())
    }

    fn follow(self: &Arc<Self>, proc: Arc<Proc>, cursor: u64, early: &'static [&'static str]) -> Arc<Session> {
        let options = SessionOptions {
            max_line_len: self.shared.max_answer_len,
            long_write: self.shared.dir.join(format!("{}.write", self.name)),
            checkpoint_len: CHECKPOINT_LEN,
            early,
        };
        let server = Arc::downgrade(self);
        Session::start(proc, cursor, options, move |signal| on_signal(&server, signal))
    }

    /// Follows a running server to its end, and ends it when it is not used any more.
    async fn own(self: Arc<Self>, session: Arc<Session>) {
        let idle = Duration::from_millis(self.config.idle_ms);
        let mut wait = idle;
        loop {
            tokio::select! {
                () = session.ended() => break,
                () = self.checkpoint_due.notified() => self.checkpoint(),
                () = self.tools_changed.notified() => {
                    if let Err(e) = self.list_again(&session).await {
                        tracing::warn!(server = self.name, %e, "failed to list the tools of an MCP server again");
                    }
                }
                () = tokio::time::sleep(wait) => match session.close_if_idle(idle) {
                    Err(left) => wait = left,
                    Ok(()) => {
                        tracing::debug!(server = self.name, "ending an MCP server that is not used");
                        session.is_retired.store(true, Relaxed);
                        launch::end(&session.proc, Cause::Idle).await;
                    }
                },
            }
        }
        let (strays, garbage) = (session.strays.load(Relaxed), session.garbage.load(Relaxed));
        tracing::debug!(server = self.name, strays, garbage, "an MCP server has ended");
        let mut why = "it was not used, and starts again with the next call".to_string();
        if !session.is_retired.load(Relaxed) {
            why = format!("the MCP server mcp/{} ended; {}", self.name, launch::printed(&session.proc));
            self.state().backoff.failed(Instant::now(), why.clone());
            // Its program has ended; a descendant would compete with the next one.
            launch::kill(&session.proc, Cause::Client).await;
        }
        {
            let mut state = self.state();
            if matches!(&state.slot, Slot::Up(current) if Arc::ptr_eq(current, &session)) {
                state.slot = Slot::Down;
            }
        }
        self.publish(ProviderState::Gone, Some(why));
    }
}

fn on_signal(server: &Weak<McpServer>, signal: Signal) {
    let Some(server) = server.upgrade() else { return };
    match signal {
        Signal::ToolsChanged => server.tools_changed.notify_one(),
        Signal::Checkpoint => server.checkpoint_due.notify_one(),
    }
}
