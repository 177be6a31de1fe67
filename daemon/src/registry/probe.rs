//! Checks the sandbox of this machine: starts confined processes that try what is forbidden. They are in no list and have no
//! events.

use super::Registry;
use super::launch::encode;
use crate::backend::LaunchFrame;
use crate::clock::wall_ms;
use crate::config::policy::Mechanism;
use crate::disk;
use crate::proc::Proc;
use crate::proc::checkpoint::Checkpoint;
use crate::proc::handle::ProcInit;
use crate::proc::state::{Phase, State};
use crate::proc::task::{Task, TaskStart};
use crate::sandbox::plan::{ConfinedMode, Judged, Plan, Protected};
use crate::sandbox::probe::{self, Targets};
use crate::sandbox::wall::{Prepared, Unavailable, Walls};
use crate::spec;
use crate::store::record::{self, NewRecord};
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tokio::time::timeout;
use toold_format::slots::Progress;
use toold_proto::ProcId;
use toold_proto::event::SandboxGap;
use toold_proto::params::{EnvMode, ExecParams};
use toold_proto::sandbox::Network;
use toold_proto::sandbox_probe::{ProbedAct, ProbedMechanism, SandboxProbeResult};
use toold_proto::time::rfc3339;

/// The directory in the state directory in which probes run.
const DIR: &str = "probe";
/// Time that one probe may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(10);
/// Time after the start before the first check: calls of a client that waits for the daemon come first.
const FIRST_PROBE_DELAY: Duration = Duration::from_secs(2);

/// The mechanisms that are tried, as the config names them.
const MECHANISMS: [(&str, Mechanism); 3] =
    [("auto", Mechanism::Auto), ("namespaces", Mechanism::Namespaces), ("landlock", Mechanism::Landlock)];

/// The result of one probe.
struct Tried {
    prepared: ProbedMechanism,
    acts: Vec<ProbedAct>,
}

/// Sockets of the daemon that a probe tries to reach.
struct Sockets {
    tcp: TcpListener,
    udp: UdpSocket,
    _abstract: UnixListener,
    _path: UnixListener,
}

impl Registry {
    /// Returns the last check.
    pub fn last_probe(&self) -> Option<Arc<SandboxProbeResult>> {
        self.probed.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).clone()
    }

    /// Tries the forbidden acts under each mechanism. Only one check runs at a time.
    pub async fn probe(self: &Arc<Self>) -> Arc<SandboxProbeResult> {
        let _probing = self.probing.lock().await;
        let mut result = SandboxProbeResult { at: rfc3339(wall_ms()), ..SandboxProbeResult::default() };
        for (name, mechanism) in MECHANISMS {
            let Tried { prepared, acts } = self.probe_mechanism(name, mechanism).await;
            result.mechanisms.push(prepared);
            result.acts.extend(acts);
        }
        let is_gap = |act: &&ProbedAct| act.expected == "refused" && act.got == "done";
        result.gaps = result.acts.iter().filter(is_gap).cloned().collect();
        for gap in &result.gaps {
            let message = format!("a process confined by {} could do it: {}", gap.mechanism, gap.act);
            tracing::warn!(mechanism = gap.mechanism, act = gap.act, "a sandbox has a gap");
            let (mechanism, act, measure) = (gap.mechanism.clone(), gap.act.clone(), gap.measure.clone());
            self.sink.watch_gate.publish_of_daemon(&SandboxGap { mechanism, act, measure, message });
        }
        let result = Arc::new(result);
        *self.probed.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(result.clone());
        result
    }

    /// Checks once, some time after the start, and removes what earlier daemons left of probes and of private directories.
    pub async fn probe_at_start(self: Arc<Self>) {
        tokio::time::sleep(FIRST_PROBE_DELAY).await;
        let registry = self.clone();
        let _ = disk::blocking(move || {
            let _ = std::fs::remove_dir_all(registry.probe_dir());
            registry.remove_unused_tmp();
        })
        .await;
        // At a hook it would stop in the place of the process that is meant.
        if toold_shim::hooks::variable().is_none() {
            self.probe().await;
            // Most daemons have nothing else to do with it for a long time.
            crate::sys::release_start_text();
            crate::sys::trim_malloc();
        }
    }

    fn probe_dir(&self) -> PathBuf {
        self.resolver.own_paths().state_dir.join(DIR)
    }

    async fn probe_mechanism(self: &Arc<Self>, name: &str, mechanism: Mechanism) -> Tried {
        let unavailable = |why: String| Tried {
            prepared: ProbedMechanism { mechanism: name.into(), available: false, why: Some(why), by: None },
            acts: Vec::new(),
        };
        let mut random = [0u8; 8];
        if let Err(e) = getrandom::fill(&mut random) {
            return unavailable(format!("no random bytes: {e}"));
        }
        let bits = u64::from_le_bytes(random);
        let dir = self.probe_dir().join(format!("{bits:016x}"));
        let tried = self.try_acts(name, mechanism, &dir, bits).await;
        let removed = dir.clone();
        let _ = disk::blocking(move || std::fs::remove_dir_all(removed)).await;
        tried.unwrap_or_else(unavailable)
    }

    async fn try_acts(
        self: &Arc<Self>,
        name: &str,
        mechanism: Mechanism,
        dir: &Path,
        bits: u64,
    ) -> Result<Tried, String> {
        let failed = |doing: &'static str| move |e: io::Error| format!("{doing}: {e}");
        probe::make_dir(dir).map_err(failed("make its directory"))?;
        toold_shim::hooks::at("probe.made");
        let abstract_name = format!("toold-probe-{bits:016x}");
        let sockets = open_sockets(dir, &abstract_name).map_err(failed("open its sockets"))?;
        let targets = Targets {
            dir: dir.canonicalize().map_err(failed("find its directory"))?,
            tcp: sockets.tcp.local_addr().map_err(failed("open its sockets"))?,
            udp: sockets.udp.local_addr().map_err(failed("open its sockets"))?,
            abstract_name,
            daemon: std::process::id() as i32,
        };
        let plan = plan(&targets.dir, bits).map_err(failed("open its directories"))?;
        let walls = Walls::new(self.launcher.clone(), mechanism);
        let prepared = walls.prepare(&plan, Vec::new).await.map_err(|e| match e {
            Unavailable::NotEnforced(missing) => missing.first().map_or_else(String::new, |first| first.why.clone()),
            Unavailable::Failed(e) => e.to_string(),
            Unavailable::NoStage(why) => why,
        })?;
        let (enforced, by) = (prepared.enforced.clone(), prepared.by.clone());
        self.run_unlisted(&targets, prepared).await?;
        drop(sockets);
        let results = std::fs::read_to_string(targets.dir.join(probe::ROOT).join(probe::RESULTS)).unwrap_or_default();
        let acts = probe::ACTS.iter().map(|(act, measure, _)| ProbedAct {
            mechanism: name.into(),
            act: (*act).into(),
            measure: measure.name().into(),
            expected: if enforced.contains(measure) { "refused" } else { "not_enforced" }.into(),
            got: probe::result_of(act, &results).into(),
        });
        let prepared = ProbedMechanism { mechanism: name.into(), available: true, why: None, by: Some(by) };
        Ok(Tried { prepared, acts: acts.collect() })
    }

    /// Runs the acts to their end, as a process that no list has.
    async fn run_unlisted(self: &Arc<Self>, targets: &Targets, prepared: Prepared) -> Result<(), String> {
        let text = |arg: std::ffi::OsString| arg.into_string().map_err(|_| "its path is not UTF-8".to_string());
        let args = targets.args().into_iter().map(text).collect::<Result<Vec<_>, _>>()?;
        let argv = ["/proc/self/exe".to_string(), "__probe".into()].into_iter().chain(args).collect();
        let call = ExecParams {
            argv: Some(argv),
            cwd: Some(text(targets.dir.join(probe::ROOT).into())?),
            env_mode: EnvMode::Clean,
            timeout_ms: Some(PROBE_TIMEOUT.as_millis() as i64),
            ..ExecParams::default()
        };
        let mut request = spec::build(&call, &self.config, &[]).map_err(|e| format!("{e:?}"))?;
        let mut random = [0u8; 24];
        getrandom::fill(&mut random).map_err(|e| format!("no random bytes: {e}"))?;
        let nonce: [u8; 16] = std::array::from_fn(|at| random[at]);
        request.spec.id = ProcId::from_bits(u64::from_be_bytes(std::array::from_fn(|at| random[16 + at])));
        (request.spec.journaled, request.spec.created_ms) = (false, wall_ms());
        let (progress, checkpoint) = (Progress::default(), Checkpoint::default());
        let (proc, inbox) = Proc::new(ProcInit {
            spec: request.spec,
            dir: targets.dir.join("proc"),
            state: State::new(progress),
            checkpoint,
            sink: self.sink.clone(),
            patterns: None,
            damage: Vec::new(),
        });
        let slot = &checkpoint.slot();
        let new = NewRecord { spec: &proc.spec, progress: &progress, nonce, boot: self.boot, checkpoint: slot };
        let record = record::create(&proc.dir, &new, false).map_err(|e| format!("record it: {e}"))?;
        let (proc, record) = (Arc::new(proc), Arc::new(record));
        proc.set_record(record.clone());
        let block = encode(&proc, None, request.env, None, &self.config);
        let Prepared { block: sandbox, fds, lease, .. } = prepared;
        let frame = LaunchFrame::launch_sandboxed(&sandbox, &block, fds);
        let stream = self.launcher.start(&frame).await.map_err(|e| format!("start it: {e}"))?;
        let task = Task::new(proc.clone(), inbox, self.launcher.clone(), record, nonce);
        let mut task = task.with_running_guard(Some(Box::new(lease)));
        let ended = timeout(PROBE_TIMEOUT * 2, task.run(TaskStart::Launched { stream, frame })).await;
        match (ended, proc.published_state().phase) {
            (Ok(()), Phase::Failed { .. }) => {
                let failure = crate::proc::view::outcome(&proc.spec, &proc.published_state()).failure;
                Err(failure.map_or_else(String::new, |failure| format!("{}: {}", failure.step, failure.error)))
            }
            (Ok(()), _) => Ok(()),
            (Err(_), _) => Err("it did not end".into()),
        }
    }
}

fn plan(dir: &Path, bits: u64) -> io::Result<Plan> {
    let root = || Judged::open(&dir.join(probe::ROOT));
    Ok(Plan {
        profile: DIR.into(),
        mode: ConfinedMode::WorkspaceWrite,
        network: Network::Off,
        session: Some(format!("probe-{bits:016x}")),
        cwd: root()?,
        roots: vec![root()?],
        protect: vec![Protected { at: Judged::open(&dir.join(probe::ROOT).join(".git/hooks"))?, root: 0 }],
        git_names: Vec::new(),
        unprotected: Vec::new(),
        guarded: Vec::new(),
        linked: Vec::new(),
        hide: vec![Judged::open(&dir.join(probe::HIDDEN))?, Judged::open(&dir.join(probe::SOCKETS))?],
        unix_sockets: Vec::new(),
        channel: None,
        require: Vec::new(),
        observe: false,
        tmp: Judged::open(&dir.join(probe::TMP))?,
    })
}

fn open_sockets(dir: &Path, abstract_name: &str) -> io::Result<Sockets> {
    Ok(Sockets {
        tcp: TcpListener::bind("127.0.0.1:0")?,
        udp: UdpSocket::bind("127.0.0.1:0")?,
        _abstract: UnixListener::bind_addr(&SocketAddr::from_abstract_name(abstract_name)?)?,
        _path: UnixListener::bind(dir.join(probe::SOCKETS).join(probe::SOCKET))?,
    })
}
