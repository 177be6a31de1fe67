//! A new process: reserved, recorded, launched, and answered for when it runs.

use super::table::RequestSlot;
use super::{NamePolicy, Registry, RunningSlot, Spawned};
use crate::backend::cgroup;
use crate::clock::wall_ms;
use crate::proc::checkpoint::Checkpoint;
use crate::proc::handle::{Command, ProcInit};
use crate::proc::state::{Phase, State, Update};
use crate::proc::task::{Task, TaskStart};
use crate::proc::{Proc, monitors, view};
use crate::store::dir_pool::PreparedDir;
use crate::store::record::{self, NewRecord, Record, Spec};
use crate::watch::Patterns;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use toold_format::launch::{self, Numbers, Strings};
use toold_format::slots::Progress;
use toold_format::step;
use toold_proto::{ErrorKind, ProcId, RpcError};
use toold_shim::hooks;

/// How long a start may take before `exec` answers with `starting`.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Without a start for so long a burst is over.
const REFILL_PAUSE: Duration = Duration::from_millis(5);

pub use crate::spec::SpawnRequest;

/// Why there is no running process, with the record that stays if there is one.
pub enum SpawnError {
    Refused(RpcError),
    Failed(Arc<Proc>),
}

impl Registry {
    /// Starts a process, or gives the one that the same `request_id` was given. Answers when it runs.
    pub async fn spawn(
        self: &Arc<Self>,
        spawn_request: SpawnRequest,
        policy: NamePolicy,
    ) -> Result<Spawned, SpawnError> {
        let Some(request) = spawn_request.spec.request_id.clone() else {
            return self.spawn_named(spawn_request, policy).await;
        };
        loop {
            let mut pending = match self.claim(&request) {
                RequestClaim::Ours(done) => {
                    let outcome = self.spawn_named(spawn_request, policy).await;
                    match &outcome {
                        Err(SpawnError::Refused(_)) => self.table().remove_request(&request),
                        Ok(Spawned { proc, existing: true }) => self.table().alias_request(&request, proc.spec.id),
                        // It is in the table with its request.
                        Ok(_) | Err(SpawnError::Failed(_)) => {}
                    }
                    let _ = done.send(true);
                    return outcome;
                }
                RequestClaim::Started(proc) => {
                    let existing = proc.spec.request_id.as_ref() != Some(&request);
                    return self.wait_started(proc).await.map(|proc| Spawned { proc, existing });
                }
                RequestClaim::Pending(pending) => pending,
            };
            // An error is the end of whoever was at it: the claim is open again.
            let _ = pending.wait_for(|done| *done).await;
        }
    }

    fn claim(&self, request: &str) -> RequestClaim {
        let mut table = self.table();
        match table.request_slot(request) {
            Some(RequestSlot::Done(id)) => {
                if let Some(proc) = table.get(*id) {
                    return RequestClaim::Started(proc);
                }
            }
            Some(RequestSlot::Pending(pending)) if pending.has_changed().is_ok() => {
                return RequestClaim::Pending(pending.clone());
            }
            Some(RequestSlot::Pending(_)) | None => {}
        }
        let (done, pending) = watch::channel(false);
        table.insert_request(request, RequestSlot::Pending(pending));
        RequestClaim::Ours(done)
    }

    pub(super) async fn spawn_new(self: &Arc<Self>, spawn_request: SpawnRequest) -> Result<Arc<Proc>, SpawnError> {
        let limit = self.config.max_running as usize;
        let Some(slot) = RunningSlot::take(self, limit) else {
            let message = format!("{limit} processes run already; kill or wait for some, or raise the limit");
            return Err(SpawnError::Refused(RpcError::limit("max_running", message)));
        };
        let SpawnRequest { mut spec, env, wanted, patterns, unresolved } = spawn_request;
        spec.created_ms = wall_ms();
        spec.seq = self.seq.fetch_add(1, Ordering::AcqRel);
        let made = match self.config.survive_power_cut {
            true => self.dir_pool.take_or_prepare().await,
            false => self.dir_pool.take(),
        };
        let Created { proc, record, nonce, inbox, oom_file } =
            self.create_record(spec, &wanted, patterns, made).map_err(SpawnError::Refused)?;
        hooks::at("spawn.recorded");
        if let Some(errno) = unresolved {
            self.fail(&proc, &record, step::EXEC, errno).await;
            self.refill_pool();
            return Err(SpawnError::Failed(proc));
        }
        let launch = encode(&proc, env, oom_file.as_deref(), self.config.survive_power_cut);
        let begun = self.launcher.start(&launch).await;
        match begun {
            Ok(stream) => {
                let task = Task::new(proc.clone(), inbox, self.launcher.clone(), record, nonce);
                self.run(task, TaskStart::Launched { stream, launch }, proc.clone(), Some(slot));
            }
            Err(e) => {
                self.fail(&proc, &record, step::FORK, e.raw_os_error().unwrap_or(libc::EIO)).await;
                return Err(SpawnError::Failed(proc));
            }
        }
        self.refill_pool();
        self.wait_started(proc).await
    }

    fn refill_pool(self: &Arc<Self>) {
        if self.dir_pool.begin_refill() {
            tokio::spawn(self.clone().run_refill());
        }
    }

    /// Makes directories for starts to come, a few at a time, in pauses between starts or when hardly any are left.
    async fn run_refill(self: Arc<Self>) {
        loop {
            let before = self.dir_pool.taken();
            if !self.dir_pool.is_nearly_empty() {
                tokio::time::sleep(REFILL_PAUSE).await;
                if self.dir_pool.taken() != before {
                    continue;
                }
            }
            let registry = self.clone();
            if !tokio::task::spawn_blocking(move || registry.dir_pool.refill_some()).await.unwrap_or(false) {
                break;
            }
        }
        self.dir_pool.end_refill();
    }

    /// Runs a process's task in the background, and counts the program as running until it ends.
    pub(super) fn run(
        self: &Arc<Self>,
        task: Task,
        spawn_named: TaskStart,
        proc: Arc<Proc>,
        slot: Option<RunningSlot>,
    ) {
        monitors::spawn_monitors(&proc);
        let registry = self.clone();
        let task = task.with_running_guard(slot.map(|slot| Box::new(slot) as Box<dyn Send + Sync>));
        tokio::spawn(async move {
            task.run(spawn_named).await;
            cgroup::remove(&proc.spec.cgroups);
            registry.queue_flush(&proc.dir);
            registry.queue_retention(&proc);
        });
    }

    /// The process once it runs or is known not to.
    pub(super) async fn wait_started(&self, proc: Arc<Proc>) -> Result<Arc<Proc>, SpawnError> {
        let mut state = proc.subscribe();
        let started = state.wait_for(|s| s.phase != Phase::Starting);
        let _ = tokio::time::timeout(START_TIMEOUT, started).await;
        match proc.published_state().phase {
            Phase::Failed { .. } => Err(SpawnError::Failed(proc)),
            Phase::Starting | Phase::Running | Phase::Exited { .. } | Phase::Lost { .. } => Ok(proc),
        }
    }

    /// Gives an id and makes the record. The name, if any, is taken from here on.
    fn create_record(
        &self,
        mut spec: Spec,
        wanted: &cgroup::RequestedLimits,
        patterns: Option<Arc<Patterns>>,
        made: Option<PreparedDir>,
    ) -> Result<Created, RpcError> {
        let disk = |e: io::Error| {
            RpcError::new(ErrorKind::SpawnFailed, format!("record the process in {}: {e}", self.procs_dir.display()))
                .with("step", "record")
                .with("errno", e.raw_os_error().unwrap_or(0))
                .with("path", self.procs_dir.display().to_string())
        };
        let mut random = [0u8; 24];
        getrandom::fill(&mut random)
            .map_err(|e| RpcError::new(ErrorKind::Internal, format!("no random bytes: {e}")))?;
        let (nonce, bits) =
            random.split_first_chunk::<16>().ok_or_else(|| RpcError::new(ErrorKind::Internal, "split"))?;
        let nonce = *nonce;
        let bits = bits.iter().fold(0u64, |n, b| n << 8 | u64::from(*b));
        let rows_cols = spec.pty.map_or((0, 0), |s| (s.rows as u16, s.cols as u16));
        let progress = Progress { rows: rows_cols.0, cols: rows_cols.1, ..Progress::default() };
        spec.id = ProcId::from_bits(bits);
        let enforced = wanted.enforce(spec.id, spec.log_max_bytes);
        (spec.limits, spec.cgroups) = (enforced.reports, enforced.dirs);
        let dir = self.procs_dir.join(spec.id.to_string());
        let (state, sink) = (State::new(progress), self.sink.clone());
        let (proc, inbox) = Proc::new(ProcInit { spec, dir, state, checkpoint: Checkpoint::default(), sink, patterns });
        let groups = proc.spec.cgroups.clone();
        let proc = match self.insert(proc) {
            Ok(proc) => proc,
            Err(refused) => {
                cgroup::remove(&groups);
                made.into_iter().for_each(|made| self.dir_pool.give_back(made));
                return Err(refused);
            }
        };
        // The table is not locked meanwhile: a slow disk delays this process and no other.
        let new = NewRecord { spec: &proc.spec, progress: &progress, nonce, boot: self.boot };
        let ahead = made.map(|made| record::create_in(made, &proc.dir, &new));
        // One that failed was swept away from outside; or its reason is met again.
        match ahead.and_then(Result::ok).map_or_else(|| self.create(&proc.dir, &new), Ok) {
            Ok(record) => {
                let record = Arc::new(record);
                proc.set_record(record.clone());
                Ok(Created { proc, record, nonce, inbox, oom_file: enforced.oom_file })
            }
            Err(e) => {
                self.table().remove(proc.spec.id);
                cgroup::remove(&proc.spec.cgroups);
                Err(disk(e))
            }
        }
    }

    fn create(&self, dir: &Path, new: &NewRecord<'_>) -> io::Result<Record> {
        match self.config.survive_power_cut {
            // Only where none could be made ahead, or that was swept away: most times the disk refuses this too.
            true => tokio::task::block_in_place(|| record::create(dir, new, true)),
            false => record::create(dir, new, false),
        }
    }

    /// Records and publishes a start that failed before any shim had it.
    async fn fail(&self, proc: &Arc<Proc>, record: &Arc<Record>, step: u32, errno: i32) {
        let at_ms = wall_ms();
        let recorded = match record.set_failed(step, errno, at_ms) {
            Ok(()) if self.config.survive_power_cut => record.sync_async().await,
            recorded => recorded,
        };
        if let Err(e) = recorded {
            tracing::warn!(id = %proc.spec.id, %e, "the failed start could not be recorded");
        }
        let update = Update::Failed { step, errno, at_ms };
        let mut state = proc.published_state();
        state.step(&update);
        proc.publish_due(&state);
        proc.publish_failure(&update);
        self.queue_flush(&proc.dir);
        self.queue_retention(proc);
    }

    /// Puts a new process into the table, unless its name is taken.
    fn insert(&self, proc: Proc) -> Result<Arc<Proc>, RpcError> {
        let (spec, mut table) = (&proc.spec, self.table());
        if let Some(holder) =
            spec.name.as_deref().and_then(|name| table.named(name)).filter(|p| !p.published_state().has_ended())
        {
            let name = spec.name.as_deref().unwrap_or_default();
            let message = format!("the name {name:?} is in use by {}", holder.spec.id);
            let process = serde_json::to_value(holder.view(wall_ms())).unwrap_or_default();
            return Err(RpcError::new(ErrorKind::AlreadyExists, message).with("process", process));
        }
        if table.contains(spec.id) {
            return Err(RpcError::new(ErrorKind::Internal, format!("the id {} came up twice; ask again", spec.id)));
        }
        let proc = Arc::new(proc);
        table.insert(proc.clone());
        Ok(proc)
    }
}

/// A process that is recorded and has not begun.
struct Created {
    proc: Arc<Proc>,
    record: Arc<Record>,
    nonce: [u8; 16],
    inbox: mpsc::Receiver<Command>,
    oom_file: Option<PathBuf>,
}

enum RequestClaim {
    Ours(watch::Sender<bool>),
    Pending(watch::Receiver<bool>),
    Started(Arc<Proc>),
}

fn encode(proc: &Proc, env: Vec<Vec<u8>>, oom_file: Option<&Path>, sync: bool) -> Vec<u8> {
    let spec = &proc.spec;
    let numbers = Numbers {
        pty: spec.pty.is_some(),
        stdin_pipe: spec.stdin_pipe,
        sync,
        rows: spec.pty.map_or(0, |s| s.rows as u16),
        cols: spec.pty.map_or(0, |s| s.cols as u16),
        log_max_bytes: spec.log_max_bytes,
        timeout_ms: spec.timeout_ms.unwrap_or(0),
        idle_ms: spec.idle_ms.unwrap_or(0),
        grace_ms: spec.timeout_grace_ms,
    };
    let strings = Strings {
        dir: proc.dir.as_os_str().as_bytes(),
        cwd: spec.cwd.as_bytes(),
        program: spec.program.as_bytes(),
        oom_file: oom_file.map_or(b"", |p| p.as_os_str().as_bytes()),
        cgroups: spec.cgroups.iter().map(|d| d.join("cgroup.procs").as_os_str().as_bytes().to_vec()).collect(),
        argv: spec.argv.iter().map(String::as_bytes).collect(),
        env,
    };
    launch::encode(&numbers, &strings)
}

/// The error of `exec` for a program that could not start.
pub fn spawn_failed(proc: &Proc) -> RpcError {
    let process = proc.view(wall_ms());
    let Some(failure) = view::outcome(&proc.spec, &proc.published_state()).failure else {
        return RpcError::new(ErrorKind::Internal, "a start failed without a reason");
    };
    let why = io::Error::from_raw_os_error(failure.errno);
    let message = format!("{} {}: {why}", failure.step, failure.path);
    RpcError::new(ErrorKind::SpawnFailed, message)
        .with("step", failure.step)
        .with("errno", failure.errno)
        .with("error", failure.error)
        .with("path", failure.path)
        .with("id", proc.spec.id.to_string())
        .with("process", serde_json::to_value(process).unwrap_or_default())
}
