//! One process of a name: give the one that runs, or end it and start anew. Who does either has the name to itself
//! meanwhile; a plain start needs no lock, as the table refuses a name in use.

use super::Registry;
use super::spawn::{SpawnError, SpawnRequest};
use crate::clock::wall_ms;
use crate::proc::handle::Kill;
use crate::proc::kill::{GRACE_MS, kill_all};
use crate::proc::state::{Phase, State};
use crate::proc::{Proc, tree, view};
use crate::store::record::Spec;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{sleep, timeout};
use toold_format::slots::Cause;
use toold_format::step;
use toold_proto::params::IfRunning;
use toold_proto::results::{KillStatus, Killed};
use toold_proto::{ErrorKind, RpcError};

/// How long the shim of a program that is dead may take to tell.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// Looks, a millisecond apart, for the place under `max_running` of a process that has ended.
const PLACE_LOOKS: usize = 1000;

/// What to do when a process of that name runs, and who asks.
#[derive(Debug, Clone, Copy)]
pub struct NamePolicy {
    pub if_running: IfRunning,
    pub uid: u32,
    pub pid: i32,
}

/// A process that runs.
pub struct Spawned {
    pub proc: Arc<Proc>,
    /// It ran already.
    pub existing: bool,
}

impl Registry {
    /// Starts a process, unless one of its name runs and is wanted instead.
    pub(super) async fn spawn_named(
        self: &Arc<Self>,
        request: SpawnRequest,
        policy: NamePolicy,
    ) -> Result<Spawned, SpawnError> {
        let new = |proc| Spawned { proc, existing: false };
        let Some(name) = request.spec.name.clone() else { return self.spawn_new(request).await.map(new) };
        match policy.if_running {
            IfRunning::Error => self.spawn_new(request).await.map(new),
            IfRunning::Return => {
                let _held = self.names.lock(&name).await;
                loop {
                    if let Some(proc) = self.find_running(&name).await {
                        return Ok(Spawned { proc, existing: true });
                    }
                    match self.spawn_new(request.clone()).await {
                        Err(e) if in_use(&e) => {} // A plain start was faster: that one is given.
                        done => return done.map(new),
                    }
                }
            }
            IfRunning::Restart => {
                let _held = self.names.lock(&name).await;
                loop {
                    self.kill_all_named(&name, &request, policy).await.map_err(SpawnError::Refused)?;
                    match self.spawn_new(request.clone()).await {
                        Err(e) if in_use(&e) => {} // A plain start was faster: that one is ended too.
                        done => return done.map(new),
                    }
                }
            }
        }
    }

    /// The process of that name that runs. One that is found dead is waited for, so that it is not given away.
    async fn find_running(&self, name: &str) -> Option<Arc<Proc>> {
        let proc = self.table().named(name)?;
        let state = proc.published_state();
        if state.phase == Phase::Starting {
            return self.wait_started(proc).await.ok().filter(|proc| !proc.published_state().has_ended());
        }
        if state.phase == Phase::Running && state.ticks != 0 && !tree::runs(state.pid, state.ticks) {
            let _ = timeout(EXIT_TIMEOUT, proc.subscribe().wait_for(State::has_ended)).await;
        }
        (!proc.published_state().has_ended()).then_some(proc)
    }

    /// Kills every tree of that name, also what is left of one whose program has ended.
    async fn kill_all_named(&self, name: &str, request: &SpawnRequest, policy: NamePolicy) -> Result<(), RpcError> {
        let left: Vec<Arc<Proc>> =
            self.table().all_named(name).into_iter().filter(|p| !p.published_state().is_final()).collect();
        if left.is_empty() {
            return Ok(());
        }
        check_program(request)?;
        let (uid, pid) = (policy.uid, policy.pid);
        let kill = Kill { signal: libc::SIGTERM, grace_ms: GRACE_MS, cause: Cause::Client, uid, pid };
        let killed = kill_all(left.clone(), kill).await;
        if let Some((proc, killed)) = left.iter().zip(&killed).find(|(_, k)| k.status == KillStatus::Survivors) {
            return Err(survived(name, proc, killed));
        }
        // Whoever counts the running hears of the end as we do, and may be a moment behind us.
        for _ in 0..PLACE_LOOKS {
            if self.running() < self.config.max_running as usize {
                break;
            }
            sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    }
}

fn in_use(error: &SpawnError) -> bool {
    match error {
        SpawnError::Refused(error) => error.code == ErrorKind::AlreadyExists.code(),
        SpawnError::Failed(_) => false,
    }
}

/// Refuses a program that is not there while what is to be replaced still runs.
fn check_program(request: &SpawnRequest) -> Result<(), RpcError> {
    let spec = &request.spec;
    let path = Path::new(&spec.cwd).join(&spec.program);
    let found = accessat(CWD, &path, Access::EXEC_OK, AtFlags::EACCESS).map_err(|e| e.raw_os_error());
    match request.unresolved.map_or(found, Err) {
        Ok(()) => Ok(()),
        Err(errno) => Err(not_there(spec, errno)),
    }
}

fn not_there(spec: &Spec, errno: i32) -> RpcError {
    let failure = view::failure(spec, step::EXEC, errno);
    let why = io::Error::from_raw_os_error(errno);
    let message = format!("{} {}: {why}; what runs was left alone", failure.step, failure.path);
    RpcError::new(ErrorKind::SpawnFailed, message)
        .with("step", failure.step)
        .with("errno", failure.errno)
        .with("error", failure.error)
        .with("path", failure.path)
}

fn survived(name: &str, proc: &Proc, killed: &Killed) -> RpcError {
    let pids: Vec<String> = killed.survivors.iter().map(|m| m.pid.to_string()).collect();
    let message = format!(
        "the name {name:?} is in use: {} was killed, and of its tree survived pid {}",
        proc.spec.id,
        pids.join(", ")
    );
    RpcError::new(ErrorKind::AlreadyExists, message)
        .with("process", serde_json::to_value(proc.view(wall_ms())).unwrap_or_default())
        .with("survivors", serde_json::to_value(&killed.survivors).unwrap_or_default())
}
