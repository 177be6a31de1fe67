//! `script.run`: checks the call, makes the run directory and the channel, and starts the process.

use super::Scripts;
use super::live::{CALLS, LiveInit, LiveScript};
use super::run_dir::{self, Source};
use crate::admission;
use crate::disk;
use crate::proc::Proc;
use crate::proc::known_values::TOKEN_VAR;
use crate::proc::script::ScriptCalls;
use crate::registry::{NamePolicy, Spawned};
use crate::spec::{self, resolve_path};
use crate::store::record::RequestDigest;
use crate::store::script::{KernelSpec, ScriptSpec};
use crate::tools::journal::{CallJournal, FoundCalls};
use serde::Serialize;
use sha2::{Digest as _, Sha256};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use toold_format::fnv1a;
use toold_proto::approval::Caller;
use toold_proto::params::{ExecParams, IfRunning};
use toold_proto::script::{Language, ScriptRunParams};
use toold_proto::tools::Tool;
use toold_proto::{ErrorKind, ProcId, RpcError};
use toold_shim::hooks;

/// The digest of what a request runs.
pub(super) type Digest = Option<RequestDigest>;

/// The default bounds of a result.
const MAX_OUTPUT_BYTES: u64 = 50_000;
const MAX_STDERR_BYTES: u64 = 10_000;
/// The most that a call may choose for them: the log has all of it.
const MAX_EXCERPT_BYTES: u64 = 4 << 20;

/// A script that was started, or found by its `request_id`.
pub struct StartedScript {
    pub proc: crate::proc::readers::Reader,
    pub existing: bool,
}

/// The client that starts a script.
pub struct Starter {
    pub by: Caller,
}

/// The program of a call, checked.
enum Program {
    Language(Language),
    Argv(Vec<String>),
}

impl Scripts {
    /// Starts a script.
    pub async fn start(self: &Arc<Self>, call: ScriptRunParams, starter: Starter) -> Result<StartedScript, RpcError> {
        let program = check_program(&call)?;
        self.launch(call, program, None, starter).await
    }

    /// Starts a kernel.
    pub async fn start_kernel(
        self: &Arc<Self>,
        call: ScriptRunParams,
        kernel: KernelSpec,
        starter: Starter,
    ) -> Result<StartedScript, RpcError> {
        let language = call.language.unwrap_or(Language::Python);
        if language == Language::Bash {
            return Err(RpcError::param("language", "a kernel runs python or javascript"));
        }
        self.launch(call, Program::Language(language), Some(kernel), starter).await
    }

    async fn launch(
        self: &Arc<Self>,
        call: ScriptRunParams,
        program: Program,
        kernel: Option<KernelSpec>,
        starter: Starter,
    ) -> Result<StartedScript, RpcError> {
        let registry = &self.approvals.registry;
        let tools = self.tools_of(&call).await?;
        let mut exec = exec_params(&call, registry.config.script.timeout_ms, kernel.is_some())?;
        let session = self.judge.apply_session(&mut exec, &registry.config)?;
        let is_known = call.request_id.as_deref().is_some_and(|id| registry.knows_request(id));
        let max = registry.config.script.max_running;
        if !is_known && self.running() as u64 >= max {
            return Err(RpcError::limit("script.max_running", format!("{max} scripts and kernels run; wait for one")));
        }
        // Checks the rest before anything is made, and gives the variables that an interpreter is found by.
        let trial = ExecParams { argv: Some(vec!["/".into()]), ..exec.clone() };
        let trial = spec::build(&trial, &registry.config, &session.env_pass).map_err(RpcError::from)?;
        let cwd = trial.spec.cwd.clone();
        let file = call.file.as_ref().map(|file| PathBuf::from(resolve_path(Some(&cwd), file)));
        if let Some(file) = &file {
            std::fs::File::open(file).map_err(|e| RpcError::param("file", format!("{}: {e}", file.display())))?;
        }
        let interpreter = match &program {
            Program::Language(language) => Some((self.interpreter(*language, &trial.env).await?, *language)),
            Program::Argv(_) => None,
        };
        let digest = digest(&call, &tools, &exec);
        let id = ProcId::from_bits(random_bits()?);
        let run_dir = self.runs.join(id.to_string());
        let token = random_token()?;
        let names: Vec<String> = tools.iter().map(|tool| tool.name.clone()).collect();
        let spec = self.script_spec(&call, &program, names, &run_dir, &token, kernel)?;
        let made = MakeDir {
            dir: run_dir.clone(),
            owner: registry.procs_dir.clone(),
            language: interpreter.as_ref().map(|(_, language)| *language),
            code: call.code.clone(),
            file: file.clone(),
            is_kernel: spec.kernel.is_some(),
            tools,
            args: call.args.clone(),
        };
        let failed = |e| {
            let message = format!("make the run directory {}: {e}", run_dir.display());
            RpcError::new(ErrorKind::Unavailable, message)
        };
        let made = disk::blocking(move || made.make()).await.flatten();
        let (listener, rest) = made.inspect_err(|_| run_dir::clean(&run_dir)).map_err(failed)?;
        exec.argv = Some(match (interpreter, program) {
            (Some((interpreter, _)), _) => std::iter::once(interpreter).chain(rest).collect(),
            (None, Program::Argv(argv)) => argv,
            (None, Program::Language(_)) => unreachable!("a language has an interpreter"),
        });
        add_env(&mut exec, id, &run_dir, &token, file.as_deref());
        let calls = ScriptCalls::default();
        let max_kernels = (spec.kernel.is_some() && !is_known).then_some(registry.config.kernel.max);
        let started = Launch { id, spec, exec, digest, cwd, calls, starter, listener, max_kernels };
        let started = self.spawn(started).await;
        if !matches!(&started, Ok(started) if !started.existing) {
            let dir = run_dir.clone();
            let _ = disk::blocking(move || run_dir::clean(&dir)).await;
        }
        started
    }

    /// Starts the process, with its authority in place before its first call.
    async fn spawn(self: &Arc<Self>, launch: Launch) -> Result<StartedScript, RpcError> {
        let Launch { id, spec, mut exec, digest, cwd, calls, starter, listener, max_kernels } = launch;
        let registry = &self.approvals.registry;
        let init = LiveInit {
            id,
            spec: &spec,
            cwd,
            session_key: exec.session_key.clone(),
            task_id: exec.task_id.clone(),
            sandbox: exec.sandbox.clone(),
            by: starter.by.clone(),
            calls: &calls,
        };
        let journal = CallJournal::new(registry.procs_dir.join(id.to_string()).join(CALLS));
        let live = Arc::new(self.make_live(init, journal, &FoundCalls::default()));
        self.insert(&live, max_kernels)?;
        registry.note_script();
        self.serve(listener, &live);
        hooks::at("script.channel");
        let policy = NamePolicy { if_running: IfRunning::Error, uid: starter.by.uid, pid: starter.by.pid };
        let extras = Scripts::extras(id, Box::new(spec), digest);
        let by = || starter.by.clone();
        let spawned = admission::exec(&self.approvals, &self.judge, &self.patches, &mut exec, policy, extras, by).await;
        match spawned {
            Ok(Spawned { proc, existing: false }) => {
                let started: &Arc<Proc> = &proc;
                started.show_calls(calls);
                self.follow(started.clone(), live);
                Ok(StartedScript { proc, existing: false })
            }
            Ok(Spawned { proc, existing: true }) => {
                self.abandon(&live);
                match proc.spec.script {
                    Some(_) => Ok(StartedScript { proc, existing: true }),
                    None => Err(RpcError::new(ErrorKind::Conflict, "the request_id was used for another process")),
                }
            }
            Err(error) => {
                self.abandon(&live);
                Err(error.into())
            }
        }
    }

    fn abandon(&self, live: &LiveScript) {
        live.owner.retire();
        live.closing.send_replace(true);
        self.remove(live.id);
    }

    /// Returns the tools that a script gets: those that it asks for, if its session may have them.
    async fn tools_of(&self, call: &ScriptRunParams) -> Result<Vec<Tool>, RpcError> {
        let (asked, by_config) = match &call.tools {
            Some(tools) => (tools, false),
            None => (&self.approvals.registry.config.script.tools, true),
        };
        let mut tools: Vec<Tool> = Vec::with_capacity(asked.len());
        for (at, name) in asked.iter().enumerate() {
            if tools.iter().any(|tool| tool.name == *name) {
                continue;
            }
            match self.dispatcher.providers.find(name, call.session_key.as_deref()).await {
                Some((_, tool)) => tools.push((*tool).clone()),
                None if by_config => {
                    let message = format!("there is no tool {name:?} (config key `script.tools`)");
                    return Err(RpcError::new(ErrorKind::Unavailable, message));
                }
                None => return Err(self.no_tool(at, name)),
            }
        }
        Ok(tools)
    }

    /// Returns the error for a tool that a session cannot have.
    fn no_tool(&self, at: usize, name: &str) -> RpcError {
        if self.dispatcher.providers.is_hidden(name) {
            let message = format!("{name} is denied: it belongs to another session");
            return RpcError::new(ErrorKind::Denied, message).with("reason", "not_allowed").with("tool", name);
        }
        RpcError::param(&format!("tools[{at}]"), format!("there is no tool {name:?}; tools.list lists them"))
    }

    fn script_spec(
        &self,
        call: &ScriptRunParams,
        program: &Program,
        tools: Vec<String>,
        run_dir: &Path,
        token: &str,
        kernel: Option<KernelSpec>,
    ) -> Result<ScriptSpec, RpcError> {
        let config = &self.approvals.registry.config;
        let call_timeout_ms = match call.call_timeout_ms {
            Some(ms) => u64::try_from(ms).map_err(|_| RpcError::too_small("call_timeout_ms", 0, ms))?,
            None => config.script.call_timeout_ms,
        };
        if call.max_parallel == Some(0) {
            return Err(RpcError::too_small("max_parallel", 1, 0));
        }
        Ok(ScriptSpec {
            language: match program {
                Program::Language(language) => Some(*language),
                Program::Argv(_) => None,
            },
            tools,
            max_calls: call.max_calls.unwrap_or(config.script.max_calls),
            max_parallel: call.max_parallel.unwrap_or(config.script.max_parallel),
            call_timeout_ms,
            max_output_bytes: call.max_output_bytes.unwrap_or(MAX_OUTPUT_BYTES).min(MAX_EXCERPT_BYTES),
            max_stderr_bytes: call.max_stderr_bytes.unwrap_or(MAX_STDERR_BYTES).min(MAX_EXCERPT_BYTES),
            redact: call.redact.unwrap_or(config.redact.enabled),
            run_dir: run_dir.into(),
            token_sha256: format!("{:x}", Sha256::digest(token.as_bytes())),
            sandbox: call.sandbox.clone(),
            kernel,
        })
    }
}

/// The parts of a start that is ready.
struct Launch {
    id: ProcId,
    spec: ScriptSpec,
    exec: ExecParams,
    digest: Digest,
    cwd: String,
    calls: ScriptCalls,
    starter: Starter,
    listener: std::os::unix::net::UnixListener,
    /// The most kernels of its session, if it is one.
    max_kernels: Option<u64>,
}

/// The content of a run directory.
struct MakeDir {
    dir: PathBuf,
    /// The state directory.
    owner: PathBuf,
    /// None: any program.
    language: Option<Language>,
    code: Option<String>,
    file: Option<PathBuf>,
    is_kernel: bool,
    tools: Vec<Tool>,
    args: Option<serde_json::Value>,
}

impl MakeDir {
    /// Makes it. Returns its channel, and the arguments of the interpreter.
    fn make(self) -> std::io::Result<(std::os::unix::net::UnixListener, Vec<String>)> {
        run_dir::make(&self.dir, &self.owner)?;
        let listener = run_dir::listen(&self.dir)?;
        let source = match (&self.file, &self.code) {
            _ if self.is_kernel => None,
            (Some(file), _) => Some(Source::File(file)),
            (None, code) => Some(Source::Code(code.as_deref().unwrap_or_default())),
        };
        let rest = match self.language {
            Some(language) => run_dir::fill(&self.dir, language, source.as_ref(), &self.tools, self.args.as_ref())?,
            None => {
                if let Some(args) = &self.args {
                    std::fs::write(self.dir.join("args.json"), args.to_string())?;
                }
                Vec::new()
            }
        };
        Ok((listener, rest))
    }
}

/// Checks which program a call names.
fn check_program(call: &ScriptRunParams) -> Result<Program, RpcError> {
    let given = [call.code.is_some(), call.file.is_some(), call.argv.is_some()];
    if given.iter().filter(|given| **given).count() != 1 {
        return Err(RpcError::param("code", "give exactly one of `code`, `file` and `argv`"));
    }
    if let Some(argv) = &call.argv {
        if call.language.is_some() {
            return Err(RpcError::param("language", "goes with `code` or `file`, not with `argv`"));
        }
        if argv.first().is_none_or(String::is_empty) {
            return Err(RpcError::param("argv", "must not be empty"));
        }
        return Ok(Program::Argv(argv.clone()));
    }
    if call.code.as_ref().is_some_and(|code| code.trim().is_empty()) {
        return Err(RpcError::param("code", "must not be empty"));
    }
    if call.file.as_ref().is_some_and(String::is_empty) {
        return Err(RpcError::param("file", "must not be empty"));
    }
    let by_ending = call.file.as_ref().and_then(|file| match Path::new(file).extension()?.to_str()? {
        "mjs" | "js" => Some(Language::Javascript),
        "sh" | "bash" => Some(Language::Bash),
        _ => None,
    });
    Ok(Program::Language(call.language.or(by_ending).unwrap_or(Language::Python)))
}

fn exec_params(call: &ScriptRunParams, default_timeout_ms: u64, is_kernel: bool) -> Result<ExecParams, RpcError> {
    let timeout_ms = match call.timeout_ms {
        Some(ms) if ms < 0 => return Err(RpcError::too_small("timeout_ms", 0, ms)),
        Some(0) => None,
        Some(ms) => Some(ms),
        // A kernel ends when it is idle.
        None if is_kernel => None,
        None => i64::try_from(default_timeout_ms).ok().filter(|ms| *ms > 0),
    };
    Ok(ExecParams {
        cwd: call.cwd.clone(),
        env: call.env.clone(),
        env_mode: call.env_mode,
        sandbox: call.sandbox.clone(),
        limits: call.limits.clone(),
        timeout_ms,
        name: call.name.clone(),
        task_id: call.task_id.clone(),
        session_key: call.session_key.clone(),
        labels: call.labels.clone(),
        notify: call.notify,
        watch: call.watch.clone(),
        backend: call.backend.clone(),
        request_id: call.request_id.clone(),
        ..ExecParams::default()
    })
}

/// Adds the variables by which a script finds its channel, and those that make Python print at once and as UTF-8.
fn add_env(exec: &mut ExecParams, id: ProcId, run_dir: &Path, token: &str, file: Option<&Path>) {
    let channel = format!("unix:{}", run_dir::channel_path(run_dir).display());
    let mut set = |name: &str, value: String| {
        exec.env_base64.remove(name);
        exec.env.insert(name.into(), value);
    };
    set("TOOLD_TOOLS", channel);
    set(TOKEN_VAR, token.into());
    set("TOOLD_SCRIPT", id.to_string());
    set("TOOLD_SCRIPT_DIR", run_dir.to_string_lossy().into_owned());
    if let Some(file) = file {
        set("TOOLD_SCRIPT_FILE", file.to_string_lossy().into_owned());
    }
    set("PYTHONUNBUFFERED", "1".into());
    set("PYTHONDONTWRITEBYTECODE", "1".into());
}

/// Returns the digest by which a `request_id` that is used for another script is noticed.
fn digest(call: &ScriptRunParams, tools: &[Tool], exec: &ExecParams) -> Digest {
    #[derive(Serialize)]
    struct Parts<'a> {
        code: Option<&'a str>,
        file: Option<&'a str>,
        argv: Option<&'a [String]>,
        language: Option<Language>,
        tools: Vec<&'a str>,
        args: Option<&'a serde_json::Value>,
        cwd: Option<&'a str>,
        env_names: Vec<&'a str>,
        limits: &'a toold_proto::params::Limits,
        sandbox: Option<&'a toold_proto::sandbox::SandboxSetting>,
        name: Option<&'a str>,
    }
    call.request_id.as_ref()?;
    let parts = Parts {
        code: call.code.as_deref(),
        file: call.file.as_deref(),
        argv: call.argv.as_deref(),
        language: call.language,
        tools: tools.iter().map(|tool| tool.name.as_str()).collect(),
        args: call.args.as_ref(),
        cwd: exec.cwd.as_deref(),
        env_names: call.env.keys().map(String::as_str).collect(),
        limits: &call.limits,
        sandbox: call.sandbox.as_ref(),
        name: call.name.as_deref(),
    };
    let json = serde_json::to_vec(&parts).ok()?;
    Some(NonZeroU64::new(fnv1a(&json)).unwrap_or(NonZeroU64::MIN))
}

fn random_bits() -> Result<u64, RpcError> {
    let mut random = [0u8; 8];
    getrandom::fill(&mut random).map_err(no_random)?;
    Ok(u64::from_be_bytes(random))
}

/// Makes a token of 32 random bytes, in hex.
fn random_token() -> Result<String, RpcError> {
    let mut random = [0u8; 32];
    getrandom::fill(&mut random).map_err(no_random)?;
    Ok(random.iter().map(|byte| format!("{byte:02x}")).collect())
}

fn no_random(e: getrandom::Error) -> RpcError {
    RpcError::new(ErrorKind::Unavailable, format!("the kernel gave no random bytes: {e}"))
}
