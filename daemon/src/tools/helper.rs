//! Runs a helper program of the daemon to its end, as a process like any other: confined in time, and gone from the list when
//! its answer was read.

use crate::disk;
use crate::log::Log;
use crate::proc::Proc;
use crate::proc::completion::output_end;
use crate::proc::control::Control;
use crate::proc::state::State;
use crate::proc::stdin;
use crate::proc::{kill, view};
use crate::registry::{NamePolicy, Registry, Spawned};
use crate::spec;
use std::collections::BTreeMap;
use std::sync::Arc;
use toold_format::Stream;
use toold_format::slots::Cause;
use toold_proto::params::{EnvMode, ExecParams, IfRunning, StdinMode};
use toold_proto::{ErrorKind, RpcError};

/// The time that a helper gets beyond the time of its own work.
const EXTRA_MS: u64 = 10_000;
/// The most output of a helper that is read.
const MAX_OUTPUT_BYTES: usize = 64 << 20;
/// The most characters of stderr in an error.
const MAX_STDERR_CHARS: usize = 500;
/// The label of helpers.
pub const HELPER_LABEL: &str = "toold.helper";

/// A program to run.
pub struct Helper {
    pub argv: Vec<String>,
    /// For the label.
    pub name: &'static str,
    /// Values are on no disk.
    pub env: BTreeMap<String, String>,
    pub env_mode: EnvMode,
    pub input: Option<String>,
    pub timeout_ms: u64,
    pub session_key: Option<String>,
    pub task_id: Option<String>,
}

impl Helper {
    /// Runs it. Returns what it wrote to stdout, if it exited with 0.
    pub async fn run(self, registry: &Arc<Registry>) -> Result<Vec<u8>, RpcError> {
        let name = self.name;
        let call = ExecParams {
            argv: Some(self.argv),
            cwd: Some("/".into()),
            env: self.env,
            env_mode: self.env_mode,
            stdin: if self.input.is_some() { StdinMode::Pipe } else { StdinMode::Null },
            timeout_ms: i64::try_from(self.timeout_ms.saturating_add(EXTRA_MS)).ok(),
            session_key: self.session_key,
            task_id: self.task_id,
            labels: [(HELPER_LABEL.to_owned(), name.to_owned())].into(),
            ..ExecParams::default()
        };
        let request = spec::build(&call, &registry.config, &[]).map_err(RpcError::from)?;
        let (uid, pid) = (nix::unistd::getuid().as_raw(), std::process::id() as i32);
        let policy = NamePolicy { if_running: IfRunning::Error, uid, pid };
        let Spawned { proc, .. } = registry.spawn(request, policy).await.map_err(|error| {
            let error = RpcError::from(crate::approvals::ExecError::Spawn(error));
            RpcError::new(ErrorKind::Unavailable, format!("{name} does not start: {}", error.message))
        })?;
        let guard = EndHelper { registry: registry.clone(), proc: Some((*proc).clone()) };
        if let Some(input) = self.input {
            let _ = stdin::write(&proc, None, input.into_bytes(), self.timeout_ms).await;
            let _ = proc.control(Control::Close).await;
        }
        let _ = proc.subscribe().wait_for(State::has_ended).await;
        let reader: Arc<Proc> = (*proc).clone();
        let read = disk::blocking(move || output(&reader)).await.flatten();
        drop(guard);
        let (stdout, stderr, exit_code) =
            read.map_err(|e| RpcError::new(ErrorKind::Unavailable, format!("read the answer of {name}: {e}")))?;
        if exit_code != Some(0) {
            let stderr: String = String::from_utf8_lossy(&stderr).trim().chars().take(MAX_STDERR_CHARS).collect();
            let how = exit_code.map_or("was ended".to_owned(), |code| format!("exited with code {code}"));
            return Err(RpcError::new(ErrorKind::Unavailable, format!("{name} {how}: {stderr}")));
        }
        Ok(stdout)
    }
}

/// Reads both streams of a process that has ended.
fn output(proc: &Proc) -> std::io::Result<(Vec<u8>, Vec<u8>, Option<i32>)> {
    let state = proc.state();
    let log = Log::open(&proc.dir, output_end(&state))?;
    let read = |stream| -> std::io::Result<Vec<u8>> {
        let (mut at, mut all) = (0, Vec::new());
        while all.len() < MAX_OUTPUT_BYTES {
            let page = log.read(at, 1 << 20, Some(stream))?;
            all.extend_from_slice(&page.bytes);
            if page.next <= at {
                break;
            }
            at = page.next;
        }
        Ok(all)
    };
    Ok((read(Stream::Stdout)?, read(Stream::Stderr)?, view::outcome(&proc.spec, &state).exit_code))
}

/// Ends and forgets a helper when its caller has its answer, or does not wait for it any more.
struct EndHelper {
    registry: Arc<Registry>,
    proc: Option<Arc<Proc>>,
}

impl Drop for EndHelper {
    fn drop(&mut self) {
        let Some(proc) = self.proc.take() else { return };
        let registry = self.registry.clone();
        tokio::spawn(disk::on_disk(async move {
            if !proc.published_state().has_ended() {
                let kill = crate::proc::handle::Kill {
                    signal: libc::SIGTERM,
                    grace_ms: 1000,
                    cause: Cause::Client,
                    uid: nix::unistd::getuid().as_raw(),
                    pid: 0,
                };
                kill::kill_all(vec![proc.clone()], kill).await;
            }
            registry.forget_all(vec![proc]).await;
        }));
    }
}
