//! Finds the interpreter of a script, and checks its version once.

use super::Scripts;
use crate::clock::wall_ms;
use crate::disk;
use crate::proc::completion::output_end;
use crate::proc::output::read_fitted;
use crate::proc::state::State;
use crate::registry::{NamePolicy, Spawned};
use crate::spec::{self, find_program};
use crate::text::TextForm;
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Duration;
use toold_proto::params::{EnvMode, ExecParams, IfRunning};
use toold_proto::script::Language;
use toold_proto::{ErrorKind, RpcError};

/// The time in which an interpreter prints its version.
const PROBE_TIMEOUT: Duration = Duration::from_secs(20);
/// The label of the processes that ask an interpreter for its version.
const PROBE_LABEL: &str = "toold.probe";

/// A file and its state when it was looked at: another file under its name is another interpreter.
type FileIdentity = (PathBuf, u64, u64, i64);

/// The versions of interpreters that were looked at.
#[derive(Default)]
pub struct Interpreters {
    versions: Mutex<HashMap<FileIdentity, (u32, u32)>>,
}

/// An interpreter, as a language needs it.
struct Wanted {
    /// The name for a person.
    name: &'static str,
    key: &'static str,
    min: (u32, u32),
    print: &'static [&'static str],
}

fn wanted(language: Language) -> Option<Wanted> {
    match language {
        Language::Python => Some(Wanted {
            name: "Python",
            key: "script.python",
            min: (3, 8),
            print: &["-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
        }),
        Language::Javascript => Some(Wanted {
            name: "Node.js",
            key: "script.node",
            min: (18, 0),
            print: &["-p", "process.versions.node.split('.').slice(0, 2).join('.')"],
        }),
        Language::Bash => None,
    }
}

impl Scripts {
    /// Returns the interpreter of a language for a script with these variables.
    pub(super) async fn interpreter(&self, language: Language, env: &[Vec<u8>]) -> Result<String, RpcError> {
        let config = &self.approvals.registry.config.script;
        let variable = |name: &str| {
            let prefix = format!("{name}=");
            let value = env.iter().find_map(|variable| variable.strip_prefix(prefix.as_bytes()))?;
            std::str::from_utf8(value).ok().filter(|value| !value.is_empty())
        };
        let name = match language {
            Language::Python => {
                let prefix = variable("VIRTUAL_ENV").or_else(|| variable("CONDA_PREFIX"));
                let own = prefix.map(|prefix| Path::new(prefix).join("bin/python")).filter(|path| path.exists());
                own.map_or_else(|| config.python.clone(), |path| path.to_string_lossy().into_owned())
            }
            Language::Javascript => config.node.clone(),
            Language::Bash => "bash".into(),
        };
        let (program, errno) = find_program(&name, env);
        let Some(wanted) = wanted(language) else { return Ok(program) };
        let missing = errno.is_some() || !Path::new(&program).exists();
        if missing {
            let message = format!(
                "{name} was not found: install {} {}.{} or later, or set the config key `{}`",
                wanted.name, wanted.min.0, wanted.min.1, wanted.key
            );
            return Err(unavailable(message, &wanted));
        }
        let version = self.version(&program, &wanted).await?;
        if version < wanted.min {
            let message = format!(
                "{program} is {} {}.{}: install {}.{} or later, or set the config key `{}`",
                wanted.name, version.0, version.1, wanted.min.0, wanted.min.1, wanted.key
            );
            return Err(unavailable(message, &wanted));
        }
        Ok(program)
    }

    async fn version(&self, program: &str, wanted: &Wanted) -> Result<(u32, u32), RpcError> {
        let identity =
            std::fs::metadata(program).map(|found| (PathBuf::from(program), found.dev(), found.ino(), found.mtime()));
        let identity = identity.map_err(|e| unavailable(format!("{program}: {e}"), wanted))?;
        let known = self.interpreters.versions.lock().ok().and_then(|versions| versions.get(&identity).copied());
        if let Some(version) = known {
            return Ok(version);
        }
        let version = self.ask_version(program, wanted).await?;
        if let Ok(mut versions) = self.interpreters.versions.lock() {
            versions.insert(identity, version);
        }
        Ok(version)
    }

    /// Runs an interpreter that prints its version.
    async fn ask_version(&self, program: &str, wanted: &Wanted) -> Result<(u32, u32), RpcError> {
        let registry = &self.approvals.registry;
        let argv = std::iter::once(program).chain(wanted.print.iter().copied()).map(String::from).collect();
        let call = ExecParams {
            argv: Some(argv),
            cwd: Some("/".into()),
            env_mode: EnvMode::Clean,
            timeout_ms: Some(PROBE_TIMEOUT.as_millis() as i64),
            labels: [(PROBE_LABEL.to_owned(), wanted.name.to_owned())].into(),
            ..ExecParams::default()
        };
        let failed = |why: String| unavailable(format!("{program} does not print its version: {why}"), wanted);
        let request = spec::build(&call, &registry.config, &[]).map_err(RpcError::from)?;
        let (uid, pid) = (nix::unistd::getuid().as_raw(), std::process::id() as i32);
        let policy = NamePolicy { if_running: IfRunning::Error, uid, pid };
        let spawned = registry.spawn(request, policy).await;
        let Spawned { proc, .. } = spawned.map_err(|_| failed("it does not start".into()))?;
        let _ = tokio::time::timeout(PROBE_TIMEOUT * 2, proc.subscribe().wait_for(State::has_ended)).await;
        let state = proc.state();
        let text =
            read_fitted(&proc, &state, 100, None, TextForm::PLAIN).map(|fitted| fitted.output).unwrap_or_default();
        tracing::debug!(
            program,
            text,
            end = output_end(&state),
            at = wall_ms(),
            "asked an interpreter for its version"
        );
        let id = proc.spec.id;
        drop(proc);
        let registry = registry.clone();
        tokio::spawn(disk::on_disk(async move {
            let procs = registry.find(&id.to_string()).into_iter().collect();
            registry.forget_all(procs).await;
        }));
        let version =
            text.trim().split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        version.ok_or_else(|| failed(format!("it printed {:?}", text.trim())))
    }
}

fn unavailable(message: String, wanted: &Wanted) -> RpcError {
    RpcError::new(ErrorKind::Unavailable, message).with("config", wanted.key)
}
