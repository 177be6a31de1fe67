//! Starts a process. Reads in the order of a start: apply the name policy, create the record, launch, and wait until the
//! program runs. `request` comes before: it finds an earlier start of the same request.

use super::replacement::check_program;
use super::{FindError, Registry, RunningSlot};
use crate::backend::cgroup;
use crate::clock::{boot_ms, retention_ms, wall_ms};
use crate::proc::checkpoint::Checkpoint;
use crate::proc::handle::{Command, Kill, NoReply, ProcInit};
use crate::proc::kill::{GRACE_MS, kill_all};
use crate::proc::readers::Reader;
use crate::proc::state::{Phase, State, Update};
use crate::proc::task::{Task, TaskStart};
use crate::proc::{Proc, monitors, tree};
use crate::sandbox::SandboxError;
use crate::sandbox::wall::Prepared;
use crate::spec::{AskError, SpawnRequest};
use crate::store::dir_pool::PreparedDir;
use crate::store::record::{self, NewRecord, Record, Spec};
use crate::watch::Patterns;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;
use toold_format::slots::{Cause, Progress};
use toold_format::step;
use toold_proto::ProcId;
use toold_proto::params::IfRunning;
use toold_proto::process::{Failure, LimitReport, Member};
use toold_proto::results::KillStatus;
use toold_shim::hooks;

/// Time that a start may take before `exec` answers with `starting`.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// Time that the shim of a dead program may take to report the exit.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);
/// Time that the running slot of an ended process may take to become free.
const SLOT_TIMEOUT: Duration = Duration::from_secs(1);

/// The choice for a name that is in use, and the caller.
#[derive(Debug, Clone, Copy)]
pub struct NamePolicy {
    pub if_running: IfRunning,
    pub uid: u32,
    pub pid: i32,
}

/// A process that runs.
pub struct Spawned {
    /// It may have ended by now: it is kept for the caller, who reads its output.
    pub proc: Reader,
    /// True if this request did not start it.
    pub existing: bool,
}

/// The reason why a request has no running process.
pub enum SpawnError {
    /// This many processes wait already.
    TooManyPending { limit: u64 },
    /// A person must be asked, and the question was not recorded.
    Ask(AskError),
    /// A person must be asked before a process may replace a running one.
    AskToReplace,
    /// A process in `after` is not there.
    After(FindError),
    /// `max_running` processes run already.
    TooManyRunning { limit: u64 },
    /// This running process has the name.
    NameInUse(Arc<Proc>),
    /// A restart killed this process of the same name, and these members of its tree survived.
    Survivors { proc: Arc<Proc>, survivors: Vec<Member> },
    /// A restart would fail: the new program cannot be executed. The running process was not touched.
    NotExecutable(Failure),
    /// The caller requires these limits, and they cannot be enforced here.
    Unenforced(BTreeMap<String, LimitReport>),
    /// The record could not be created in this directory.
    Record { dir: PathBuf, source: io::Error },
    /// This process of the name runs, but that the request got it could not be recorded.
    Request { proc: Arc<Proc>, source: io::Error },
    /// The request got this process before, and was to run something else than this one.
    Conflict { proc: Arc<Proc>, request_id: String },
    /// The kernel gave no random bytes.
    Random(getrandom::Error),
    /// The random id belongs to another process.
    IdTaken(ProcId),
    /// The program could not be started. The record of the failed start stays.
    Failed(Arc<Proc>),
    /// It cannot be confined as it should be.
    Sandbox(SandboxError),
    /// A restart needs the values of the environment, and no shim has them any more.
    NoEnvironment(Arc<Proc>),
    /// The shim that has the values of the environment gave no answer.
    NoReply { proc: Arc<Proc>, why: NoReply },
}

// ---- name policy: one running process per name ----

impl Registry {
    /// Starts a process, unless one of its name runs and is wanted instead. `return` and `restart` hold the name's lock
    /// meanwhile; a plain start needs none, because the table refuses a name in use.
    pub(super) async fn spawn_named(
        self: &Arc<Self>,
        request: SpawnRequest,
        policy: NamePolicy,
    ) -> Result<Spawned, SpawnError> {
        let new = |proc| Spawned { proc, existing: false };
        let name = match (&request.spec.name, policy.if_running) {
            (None, _) | (_, IfRunning::Error) => return self.spawn_new(request).await.map(new),
            // The running one would be killed before a person has answered.
            (Some(_), IfRunning::Restart) if request.ask.is_some() => return Err(SpawnError::AskToReplace),
            (Some(name), IfRunning::Return | IfRunning::Restart) => name.clone(),
        };
        let _guard = self.names.lock(&name).await;
        loop {
            match policy.if_running {
                IfRunning::Restart => self.kill_all_named(&name, &request, policy).await?,
                IfRunning::Return | IfRunning::Error => {
                    if let Some(proc) = self.find_running(&name).await {
                        self.record_request(&request, &proc).await?;
                        return Ok(Spawned { proc: proc.add_reader(), existing: true });
                    }
                }
            }
            match self.spawn_new(request.clone()).await {
                // A plain start took the name in between: return or kill that one.
                Err(SpawnError::NameInUse(_)) => {}
                outcome => return outcome.map(new),
            }
        }
    }

    /// Returns the running process of that name. If its program is already dead, waits for the exit to be reported, so
    /// that no caller gets a dead process.
    async fn find_running(&self, name: &str) -> Option<Arc<Proc>> {
        let proc = self.table().named(name)?;
        let state = proc.published_state();
        if state.phase == Phase::Starting {
            return wait_started(proc).await.ok().filter(|proc| !proc.published_state().has_ended());
        }
        if state.phase == Phase::Running && state.ticks != 0 && !tree::is_running(state.pid, state.ticks) {
            let _ = timeout(EXIT_TIMEOUT, proc.subscribe().wait_for(State::has_ended)).await;
        }
        (!proc.published_state().has_ended()).then_some(proc)
    }

    /// Kills every tree of that name, also the rest of one whose program has ended.
    async fn kill_all_named(&self, name: &str, request: &SpawnRequest, policy: NamePolicy) -> Result<(), SpawnError> {
        let mut procs = self.table().all_named(name);
        procs.retain(|proc| !proc.published_state().is_final());
        if procs.is_empty() {
            return Ok(());
        }
        check_program(request)?;
        self.check_limits(request)?;
        let NamePolicy { uid, pid, .. } = policy;
        let kill = Kill { signal: libc::SIGTERM, grace_ms: GRACE_MS, cause: Cause::Client, uid, pid };
        let killed = kill_all(procs.clone(), kill).await;
        for (proc, killed) in procs.into_iter().zip(killed) {
            if killed.status == KillStatus::Survivors {
                return Err(SpawnError::Survivors { proc, survivors: killed.survivors });
            }
        }
        // The task that frees the slot learns of the exit when we do, and may be a moment behind us.
        let limit = self.config.max_running as usize;
        let _ = timeout(SLOT_TIMEOUT, self.running.subscribe().wait_for(|running| *running < limit)).await;
        Ok(())
    }
}

// ---- create the record ----

/// Dropped when the program has ended.
pub(super) type RunningGuard = Box<dyn Send + Sync>;

/// A process that is recorded and not launched yet.
pub(super) struct Created {
    pub proc: Arc<Proc>,
    pub record: Arc<Record>,
    pub nonce: [u8; 16],
    pub inbox: mpsc::Receiver<Command>,
    pub oom_file: Option<PathBuf>,
    /// The confinement of its program. Set before the launch.
    pub confinement: Option<Box<Prepared>>,
}

impl Registry {
    async fn spawn_new(self: &Arc<Self>, request: SpawnRequest) -> Result<Reader, SpawnError> {
        if request.spec.pending.is_some() || request.ask.is_some() {
            return self.spawn_pending(request).await;
        }
        let slot = self.take_slot()?;
        self.spawn_in(request, slot).await
    }

    pub(super) fn take_slot(self: &Arc<Self>) -> Result<RunningSlot, SpawnError> {
        let limit = self.config.max_running;
        RunningSlot::take(self, limit as usize).ok_or(SpawnError::TooManyRunning { limit })
    }

    /// Starts a process at once.
    pub(super) async fn spawn_in(
        self: &Arc<Self>,
        request: SpawnRequest,
        slot: RunningSlot,
    ) -> Result<Reader, SpawnError> {
        let mut request = request;
        let confinement = self.prepare(&mut request).await?;
        let SpawnRequest { spec, env, wanted, patterns, unresolved, .. } = request;
        let durable = self.config.survive_power_cut;
        let prepared = if durable { self.dir_pool.take_or_prepare().await } else { self.dir_pool.take() };
        let mut created = self.create_record(spec, &wanted, patterns, prepared)?;
        created.confinement = confinement;
        hooks::at("spawn.recorded");
        let reader = created.proc.add_reader();
        self.supervise(&created.proc);
        let launched = match unresolved {
            Some(errno) => self.fail(&created.proc, Some(&created.record), step::EXEC, errno).await,
            None => self.launch(created, None, env, slot).await,
        };
        self.dir_pool.refill_in_background();
        wait_started(launched?).await.map(|_| reader)
    }

    /// Assigns the id, takes the name and writes the record.
    pub(super) fn create_record(
        &self,
        mut spec: Spec,
        wanted: &cgroup::RequestedLimits,
        patterns: Option<Arc<Patterns>>,
        prepared: Option<PreparedDir>,
    ) -> Result<Created, SpawnError> {
        spec.created_ms = wall_ms();
        spec.seq = self.seq.fetch_add(1, Ordering::AcqRel);
        let mut random = [0u8; 24];
        getrandom::fill(&mut random).map_err(SpawnError::Random)?;
        let nonce: [u8; 16] = std::array::from_fn(|at| random[at]);
        // A question names its process before there is a record of it.
        if spec.id.bits() == 0 {
            spec.id = ProcId::from_bits(u64::from_be_bytes(std::array::from_fn(|at| random[16 + at])));
        }
        let (rows, cols) = spec.pty.map_or((0, 0), |size| (size.rows as u16, size.cols as u16));
        let progress = Progress { rows, cols, ..Progress::default() };
        let owner = cgroup::GroupOwner::new(&self.procs_dir);
        let enforced = wanted.enforce(spec.id, owner, spec.log_max_bytes);
        hooks::at("spawn.grouped");
        if let Some(limits) = wanted.refuse(&enforced) {
            prepared.into_iter().for_each(|prepared| self.dir_pool.give_back(prepared));
            return Err(SpawnError::Unenforced(limits));
        }
        spec.limits = enforced.reports;
        spec.cgroups = enforced.dirs;
        let cgroups = spec.cgroups.clone();
        let dir = self.procs_dir.join(spec.id.to_string());
        let state = match &spec.pending {
            Some(pending) => State::pending(progress, pending.approval.is_some()),
            None => State::new(progress),
        };
        let checkpoint = Checkpoint::default();
        let (proc, inbox) =
            Proc::new(ProcInit { spec, dir, state, checkpoint, sink: self.sink.clone(), patterns, damage: Vec::new() });
        let proc = match self.insert(proc) {
            Ok(proc) => proc,
            Err(e) => {
                cgroup::remove(&cgroups);
                prepared.into_iter().for_each(|prepared| self.dir_pool.give_back(prepared));
                return Err(e);
            }
        };
        // The table is not locked here: a slow disk delays this process and no other.
        match self.write_record(&proc, &progress, nonce, prepared) {
            Ok(record) => {
                let record = Arc::new(record);
                proc.set_record(record.clone());
                Ok(Created { proc, record, nonce, inbox, oom_file: enforced.oom_file, confinement: None })
            }
            Err(source) => {
                self.table().remove(proc.spec.id);
                cgroup::remove(&cgroups);
                Err(SpawnError::Record { dir: self.procs_dir.clone(), source })
            }
        }
    }

    /// Puts a new process into the table, unless its name is in use.
    fn insert(&self, proc: Proc) -> Result<Arc<Proc>, SpawnError> {
        let mut table = self.table();
        let holder = proc.spec.name.as_deref().and_then(|name| table.named(name));
        let replaced = proc.spec.pending.as_ref().and_then(|pending| pending.replaces);
        let holder = holder.filter(|holder| Some(holder.spec.id) != replaced);
        if let Some(holder) = holder.filter(|holder| !holder.published_state().has_ended()) {
            return Err(SpawnError::NameInUse(holder));
        }
        if table.contains(proc.spec.id) {
            return Err(SpawnError::IdTaken(proc.spec.id));
        }
        self.note_sandbox(&proc);
        let proc = Arc::new(proc);
        table.insert(proc.clone());
        Ok(proc)
    }

    fn write_record(
        &self,
        proc: &Proc,
        progress: &Progress,
        nonce: [u8; 16],
        prepared: Option<PreparedDir>,
    ) -> io::Result<Record> {
        let checkpoint = &Checkpoint::default().slot();
        let new = NewRecord { spec: &proc.spec, progress, nonce, boot: self.boot, checkpoint };
        // This fails if the directory was removed from outside; any other reason also fails below.
        if let Some(Ok(record)) = prepared.map(|prepared| record::create_in(prepared, &proc.dir, &new)) {
            return Ok(record);
        }
        if self.config.survive_power_cut {
            // Only after the pool could not prepare a directory or one was removed: usually the disk refuses this too.
            tokio::task::block_in_place(|| record::create(&proc.dir, &new, true))
        } else {
            record::create(&proc.dir, &new, false)
        }
    }
}

// ---- failed starts and tasks ----

impl Registry {
    /// Records and publishes a start that failed before any shim had it. `record`: None if it cannot be opened.
    pub(super) async fn fail(
        &self,
        proc: &Arc<Proc>,
        record: Option<&Arc<Record>>,
        step: u32,
        errno: i32,
    ) -> Result<Arc<Proc>, SpawnError> {
        let at_ms = wall_ms();
        let set =
            record.map_or_else(|| Err(io::ErrorKind::NotFound.into()), |record| record.set_failed(step, errno, at_ms));
        let recorded = match (set, record) {
            (Ok(()), Some(record)) if self.config.survive_power_cut => record.sync_async().await,
            (recorded, _) => recorded,
        };
        if let Err(e) = recorded {
            tracing::warn!(id = %proc.spec.id, %e, "failed to record a failed start");
        }
        let mut state = proc.published_state();
        state.step(&Update::Failed { step, errno, at_ms });
        proc.publish_due(&state);
        proc.publish_final(state);
        self.queue_flush(&proc.dir);
        self.queue_retention(proc, 0, retention_ms());
        self.queue_ended_stage(proc);
        self.sink.ends.ended.notify_one();
        Err(SpawnError::Failed(proc.clone()))
    }

    /// Runs a process's task in the background. The program holds its running slot until it ends.
    pub(super) fn run_task(
        self: &Arc<Self>,
        task: Task,
        start: TaskStart,
        proc: Arc<Proc>,
        guard: Option<RunningGuard>,
    ) {
        monitors::spawn_monitors(&proc);
        let (registry, began_ms) = (self.clone(), boot_ms());
        let mut task = task.with_running_guard(guard);
        tokio::spawn(async move {
            task.run(start).await;
            drop(task);
            cgroup::remove(&proc.spec.cgroups);
            registry.queue_flush(&proc.dir);
            // The wall clock may have jumped since the end, but this daemon knows for how long it has had the process.
            let age = wall_ms().saturating_sub(proc.published_state().ended_ms().unwrap_or(0));
            registry.queue_retention(&proc, age.min(boot_ms().saturating_sub(began_ms)), retention_ms());
            registry.queue_ended_stage(&proc);
        });
    }
}

/// Waits until the program runs or has failed to start.
pub(super) async fn wait_started(proc: Arc<Proc>) -> Result<Arc<Proc>, SpawnError> {
    let mut state = proc.subscribe();
    let started = state.wait_for(|state| state.phase != Phase::Starting);
    let _ = timeout(START_TIMEOUT, started).await;
    match proc.published_state().phase {
        Phase::Failed { .. } => Err(SpawnError::Failed(proc)),
        Phase::Pending | Phase::Starting | Phase::Running | Phase::Exited { .. } | Phase::Lost { .. } => Ok(proc),
    }
}
