//! Starts and stops the daemon: the order of everything.

use crate::approvals::Approvals;
use crate::backend::orphans::become_subreaper;
use crate::backend::process_limit::{OwnProcesses, ProcessLimit};
use crate::backend::{ExecShim, Launcher};
use crate::changes::Changes;
use crate::clock::{retention_ms, wall_ms};
use crate::config::{Config, ConfigError, ShimMode};
use crate::disk::{self, on_disk};
use crate::events::{Consumers, Journal, JournalLimits, maintenance};
use crate::file_calls::FileCalls;
use crate::listener::ListenAddr;
use crate::logging::{self, Format};
use crate::open_tools::{ToolParts, Tools, open_tools};
use crate::patch::Patches;
use crate::path_watch;
use crate::policy::Judge;
use crate::proc::event_sink::EventSink;
use crate::proc::search_pool::SearchPool;
use crate::proc::watch_gate::WatchGate;
use crate::redaction::Redaction;
use crate::registry::{JournalTail, Registry};
use crate::retention_clock;
use crate::rpc;
use crate::rpc::context::{Daemon, Paths};
use crate::rpc::wire::{self, Wire, WireLimits};
use crate::sandbox::resolve::OwnPaths;
use crate::script::run_dir;
use crate::stage::Stages;
use crate::state_dir::{self, StartError};
use crate::state_lock::StateLock;
use crate::stop_signals::StopSignals;
use crate::watchdog;
use clap::{CommandFactory, Parser, Subcommand};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use toold_shim::hooks;
use toold_shim::zygote::{self, StartAttributes};

/// Exit code for wrong flags or a wrong config: a restart would not help.
const USAGE_ERROR: u8 = 2;

/// Time that work on blocking threads gets at the end. All of it is safe to kill.
const BLOCKING_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Owns background processes for agents, editors and people.
#[derive(Debug, Parser)]
#[command(name = "toold", version)]
pub struct Args {
    /// The socket to listen on.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// The directory of processes, their logs and their exits.
    #[arg(long, value_name = "DIR")]
    state_dir: Option<PathBuf>,
    /// The config file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// The log format on stderr. Default: the journal if stderr is connected to it, else text.
    #[arg(long, value_enum, value_name = "FORMAT")]
    log_format: Option<Format>,
    /// Check the config and exit.
    #[arg(long)]
    check_config: bool,
    #[command(subcommand)]
    subcommand: Option<HiddenCommand>,
}

#[derive(Debug, Subcommand)]
enum HiddenCommand {
    /// Run as the shim of one process, with its control connection on stdin. For toold itself.
    #[command(hide = true)]
    Shim {
        /// The soft limit on descriptors of the program. None: unlimited.
        #[arg(long)]
        max_fds: Option<u64>,
        /// The timeslice of the program.
        #[arg(long, default_value_t = 0)]
        timeslice_ns: u64,
    },
    /// Try what a sandbox forbids. For toold itself.
    #[command(hide = true, name = "__probe")]
    Probe(crate::sandbox::probe::Targets),
    /// Print the manual page. For `toolctl man`.
    #[command(hide = true, name = "__man")]
    Man,
}

/// Runs the program.
pub fn main() -> ExitCode {
    toold_shim::sys::hide_process();
    hooks::init();
    let args = Args::parse();
    match args.subcommand {
        Some(HiddenCommand::Shim { max_fds, timeslice_ns }) => {
            let state_dir = args.state_dir.unwrap_or_default();
            zygote::exec_main(StartAttributes { max_fds, timeslice_ns }, &state_dir)
        }
        Some(HiddenCommand::Man) => return manual(),
        Some(HiddenCommand::Probe(targets)) => return crate::sandbox::probe::main(&targets),
        None => {}
    }
    let config_path = args.config.clone().or_else(toold_proto::paths::config);
    let asked_for = args.config.is_some() || std::env::var_os("TOOLD_CONFIG").is_some();
    let config = match load(config_path.as_deref(), asked_for) {
        Ok(config) => config,
        Err(e) => return fail(&format!("{e}"), USAGE_ERROR),
    };
    if args.check_config {
        if let Some(unusable) = crate::redaction::unusable_rules(&config.redact) {
            return fail(&unusable, USAGE_ERROR);
        }
        println!("{}: ok", config_path.map_or("the defaults".into(), |p| p.display().to_string()));
        return ExitCode::SUCCESS;
    }
    let socket = args.socket.clone().unwrap_or_else(toold_proto::paths::socket);
    let Some(state_dir) = args.state_dir.clone().or_else(toold_proto::paths::state_dir) else {
        return fail("there is no home directory for the state; set TOOLD_STATE_DIR or HOME", USAGE_ERROR);
    };
    let paths = match absolute(Paths { socket, state_dir, config: config_path }) {
        Ok(paths) => paths,
        Err(e) => return fail(&format!("find the working directory: {e}"), 1),
    };
    run(config, paths, args.log_format)
}

fn manual() -> ExitCode {
    let page = clap_mangen::Man::new(Args::command().subcommand_required(false));
    match page.render(&mut io::stdout()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => fail(&format!("write the manual page: {e}"), 1),
    }
}

fn load(path: Option<&std::path::Path>, asked_for: bool) -> Result<Config, ConfigError> {
    path.map_or_else(|| Ok(Config::default()), |path| Config::load(path, asked_for))
}

fn absolute(paths: Paths) -> io::Result<Paths> {
    Ok(Paths {
        socket: std::path::absolute(paths.socket)?,
        state_dir: std::path::absolute(paths.state_dir)?,
        config: paths.config.map(std::path::absolute).transpose()?,
    })
}

fn fail(message: &str, code: u8) -> ExitCode {
    eprintln!("toold: {message}");
    ExitCode::from(code)
}

/// Forks the zygote and clears the environment block while there is one thread, then starts the log, which has a thread.
/// From here on nothing is written to stderr but by the log.
fn run(config: Config, paths: Paths, format: Option<Format>) -> ExitCode {
    let limit = ProcessLimit::read();
    let own = OwnProcesses::for_limit(limit.as_ref());
    let is_subreaper = become_subreaper();
    let exec = ExecShim { state_dir: paths.state_dir.clone(), attributes: StartAttributes::read(), is_subreaper };
    let zygote = match config.shim {
        ShimMode::Zygote => zygote::start(&paths.state_dir, own.max_spares).ok(),
        ShimMode::Exec => None,
    };
    crate::sys::ignore_stray_signals();
    // After the fork, so that the variables are not in the zygote's memory either.
    let hidden = toold_shim::sys::move_environment();
    crate::sys::tune_malloc();
    let log = match logging::start(format) {
        Ok(log) => log,
        Err(e) => return fail(&format!("start a thread for the log: {e}"), 1),
    };
    if let Err(e) = hidden {
        tracing::warn!(%e, "failed to clear the environment block; jobs of root can read it");
    }
    if let Some(limit) = limit.filter(|_| own.keeps_threads) {
        tracing::warn!(%limit, "few processes are possible here; the daemon takes one worker and one spare shim");
    }
    match start(config, paths, (zygote, exec), own, &log) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            log.fail(&e.to_string());
            ExitCode::FAILURE
        }
    }
}

/// The two ways to start a shim.
type ShimSources = (Option<zygote::Zygote>, ExecShim);

/// Locks the state directory, then starts everything else. The zygote is older, so that it never holds the lock, not even
/// for a moment after a daemon was killed.
fn start(
    config: Config,
    paths: Paths,
    shims: ShimSources,
    own: OwnProcesses,
    log: &logging::DaemonLog,
) -> Result<(), StartError> {
    let lock = Arc::new(StateLock::take(&paths.state_dir)?);
    log.limit_file(&toold_proto::paths::daemon_log(&paths.state_dir), config.daemon_log_max_bytes);
    let addr = Arc::new(ListenAddr::prepare(&paths.socket)?);
    raise_fd_limit();
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(own.workers)
        .on_thread_start(crate::sys::set_short_timeslice)
        .max_blocking_threads(own.blocking_threads)
        .thread_keep_alive(if own.keeps_threads { Duration::MAX } else { Duration::from_secs(5) })
        .enable_all()
        .build()
        .map_err(|source| StartError::Io { doing: "start", path: "the runtime".into(), source })?;
    if own.keeps_threads {
        // One is there before the jobs have all the rest, and works off what the others cannot be started for.
        runtime.spawn_blocking(|| {});
    }
    // The lock is held here to the end: the next daemon may begin only when this one has removed its socket.
    let served = disk::run_monitored(&runtime, serve(config, paths, shims, addr, lock.clone()))
        .map_err(|source| StartError::Io { doing: "run", path: "the daemon".into(), source })
        .flatten();
    // A thread that searches, or that the disk does not answer, must not keep the daemon from ending.
    runtime.shutdown_timeout(BLOCKING_SHUTDOWN_TIMEOUT);
    served
}

/// Raises the limit on descriptors to its maximum: a process needs three. Processes get the limit that the daemon
/// started with.
fn raise_fd_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    let _ = setrlimit(Resource::Nofile, limit);
}

async fn serve(
    config: Config,
    paths: Paths,
    (zygote, exec): ShimSources,
    addr: Arc<ListenAddr>,
    lock: Arc<StateLock>,
) -> Result<(), StartError> {
    let (started, started_ms) = (Instant::now(), wall_ms());
    let (stop, stopped) = watch::channel(false);
    let is_ready = Arc::new(AtomicBool::new(false));
    // Before the first client can connect: one that did may send a signal.
    if let Some(signals) = StopSignals::install() {
        tokio::spawn(signals.stop(stop.clone(), is_ready.clone(), addr.clone()));
    }
    let listener = addr.listen()?;
    // Before files are opened that take the last descriptor: a client without an answer would not know why.
    let reserve =
        wire::ReserveFd::open().map_err(|source| StartError::Io { doing: "open", path: "/dev/null".into(), source })?;
    if !crate::proc::tree::has_proc() {
        tracing::warn!(
            "/proc is not mounted: kill and timeouts reach only the group of a program, and no usage is known"
        );
    }
    if let Some(path) = listener.local_addr().ok().as_ref().and_then(|addr| addr.as_pathname())
        && let Err(e) = lock.store_socket(path)
    {
        tracing::warn!(%e, "clients of another socket will not find this daemon");
    }
    let launcher = Launcher::new(zygote, config.shim, exec);
    let limits = WireLimits::from(&config);
    let clock = retention_clock::start(lock.dir());
    let clock = clock.map_err(|source| StartError::Io { doing: "read", path: lock.dir().into(), source })?;
    let EventStores { journal, consumers, sink, tail, damage } = open_events(&config, &lock.events_dir())?;
    let consumer_ttl_ms = config.events.consumer_ttl_ms;
    let registry = Registry::new(config, lock.procs_dir(), launcher, sink.clone(), own_paths(&paths));
    lock.damage().into_iter().chain(clock).chain(damage).for_each(|damage| registry.report_damage(damage));
    let read = |source| StartError::Io { doing: "read", path: lock.procs_dir(), source };
    let last_found = tail.last;
    registry.remove_fresh_stages();
    let count = registry.adopt(tail).await.map_err(read)?;
    let (judge, damage) = Judge::open(paths.config.as_deref(), lock.dir(), journal.clone());
    damage.into_iter().for_each(|damage| registry.report_damage(damage));
    let judge = Arc::new(judge);
    let approvals = Approvals::open(registry.clone(), judge.clone(), lock.dir(), last_found).await;
    let approvals =
        approvals.map_err(|source| StartError::Io { doing: "read", path: lock.dir().join("approvals"), source })?;
    let connections = Arc::new(AtomicUsize::new(0));
    let (changes, patches) = open_changes(&registry, &journal, lock.dir())?;
    let stages = Stages::new(registry.clone(), changes);
    let file_calls = FileCalls::new(approvals.clone(), judge.clone(), patches.clone());
    let Tools { scripts, direct_calls, client_tools, toolsets } = open_tools(&ToolParts {
        approvals: &approvals,
        judge: &judge,
        patches: &patches,
        file_calls: &file_calls,
        journal: &journal,
        state_dir: lock.dir(),
        socket: &paths.socket,
    });
    let daemon = Arc::new(Daemon {
        scripts: scripts.clone(),
        direct_calls,
        toolsets,
        registry: registry.clone(),
        approvals,
        judge,
        patches,
        journal: journal.clone(),
        consumers: consumers.clone(),
        file_calls,
        stages: stages.clone(),
        client_tools,
        paths,
        started_ms,
        started,
        stop,
        ports: Arc::default(),
        sessions: Arc::default(),
        connections: connections.clone(),
    });
    let own_uid = nix::unistd::getuid().as_raw();
    let wire = Wire::with_counter(rpc::module(daemon.clone()), limits, own_uid, connections);
    let channels = daemon.clone();
    scripts.open(Box::new(move |listener, live| rpc::channel::serve(channels.clone(), listener, live))).await;
    let authority = daemon.clone();
    wire.authorize_by(move |peer, method| authority.authorize(peer, method));
    let guarded = registry.clone();
    wire.refuse_by(move |peer| rpc::inside::refuse_sandboxed(&guarded, peer));
    tokio::spawn(registry.clone().retain());
    tokio::spawn(on_disk(stages.run()));
    tokio::spawn(registry.clone().run_scheduler());
    tokio::spawn(registry.clone().probe_at_start());
    tokio::spawn(registry.clone().run_flush());
    tokio::spawn(maintenance::run_flush(journal.clone(), consumers.clone()));
    tokio::spawn(on_disk(maintenance::run_retention(
        journal.clone(),
        consumers.clone(),
        consumer_ttl_ms,
        retention_ms,
    )));
    tokio::spawn(on_disk(async move { sink.watch_gate.run_release_timer().await }));
    is_ready.store(true, Relaxed);
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        socket = %daemon.paths.socket.display(),
        state = %daemon.paths.state_dir.display(),
        records = count,
        ms = started.elapsed().as_millis() as u64,
        "ready"
    );
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Ready]);
    crate::sys::release_start_text();
    watchdog::start(&wire);
    let (renewed, listeners) = mpsc::channel(1);
    let path_watch = tokio::spawn(path_watch::run(addr.clone(), lock.clone(), renewed));
    wire::serve_renewed(listener, listeners, reserve, wire, ending(stopped, lock.clone())).await;
    // It must not make the socket again that is removed below.
    path_watch.abort();
    let _ = path_watch.await;
    registry.flush_all().await;
    maintenance::flush_all(journal, consumers).await;
    let _ = sd_notify::notify(&[sd_notify::NotifyState::Stopping]);
    addr.remove();
    tracing::info!(running = registry.running(), "stopped; processes keep running");
    Ok(())
}

fn own_paths(paths: &Paths) -> OwnPaths {
    let rules = paths.config.as_ref().and_then(|config| config.parent()).map(|dir| dir.join("rules"));
    let runs = run_dir::base(paths.socket.parent().unwrap_or(Path::new("/")));
    OwnPaths { state_dir: paths.state_dir.clone(), socket: paths.socket.clone(), rules, runs }
}

/// Returns a signal that follows the stop, after the lock file is marked as that of a daemon that is ending: no client may find the socket
/// closed before that.
fn ending(mut stopped: watch::Receiver<bool>, lock: Arc<StateLock>) -> watch::Receiver<bool> {
    let (close, closing) = watch::channel(false);
    tokio::spawn(async move {
        let _ = stopped.wait_for(|stop| *stop).await;
        lock.mark_ending();
        let _ = close.send(true);
    });
    closing
}

/// Ends the changes of files that a crash has interrupted, before any call is served.
fn open_changes(
    registry: &Registry,
    journal: &Arc<Journal>,
    state_dir: &Path,
) -> Result<(Arc<Changes>, Arc<Patches>), StartError> {
    let dir = state_dir.join("changes");
    let opened = Changes::open(dir.clone(), registry.config.patch.keep_ms);
    let (changes, recovered, damage) = opened.map_err(|source| StartError::Io { doing: "open", path: dir, source })?;
    let patches = Arc::new(Patches::new(changes.clone(), journal.clone(), &registry.config));
    let left_alone = patches.recover(&recovered);
    damage.into_iter().chain(left_alone).for_each(|damage| registry.report_damage(damage));
    tokio::spawn(changes.clone().run_expiry());
    Ok((changes, patches))
}

/// The journal and the consumers that earlier daemons left in the state directory.
struct EventStores {
    journal: Arc<Journal>,
    consumers: Arc<Consumers>,
    sink: Arc<EventSink>,
    tail: JournalTail,
    /// Descriptions of damage found while opening.
    damage: Vec<String>,
}

fn open_events(config: &Config, dir: &Path) -> Result<EventStores, StartError> {
    let failed = |source| StartError::Io { doing: "open", path: dir.into(), source };
    let (now, events) = (retention_ms(), &config.events);
    let limits = JournalLimits {
        segment_bytes: events.segment_bytes,
        max_bytes: events.max_bytes,
        max_age_ms: events.max_age_ms,
    };
    let mut damage = state_dir::missing_files(dir);
    let (consumers, found) =
        Consumers::open(&dir.join("consumers"), events.consumer_ttl_ms, events.max_consumers as usize, now)
            .map_err(failed)?;
    let (journal, opened) = Journal::open(dir, limits, now, 0).map_err(failed)?;
    let journal = Arc::new(journal);
    consumers.recreate_lost(journal.oldest(), now).map_err(failed)?;
    let tail = JournalTail { states: opened.states, last: opened.last_found };
    damage.extend(found.into_iter().chain(opened.damage));
    damage.extend(journal.advance_past(consumers.highest()));
    // The breaker's events belong to no process: they are stored under id 0.
    let breaker = tail.states.get(&0).cloned();
    let (gate, reset) =
        WatchGate::open(journal.clone(), dir, &config.watch, crate::clock::boot_id(), breaker).map_err(failed)?;
    damage.extend(reset);
    damage.extend(journal.advance_past(gate.last_seq()));
    let searches = SearchPool::new(config.max_searches, config.max_search_ms_per_mib);
    let sink = Arc::new(EventSink::new(journal.clone(), gate, searches, Redaction::new(config.redact.clone())));
    Ok(EventStores { journal, consumers: Arc::new(consumers), sink, tail, damage })
}
