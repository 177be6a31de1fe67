//! The options that describe a process, shared by `run` and `exec`.

use super::{caller_env, ready, restart, sandbox, watch};
use crate::args;
use crate::error::CliError;
use clap::Args;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::PathBuf;
use toold_proto::params::{self, IfRunning, StdinMode};
use toold_proto::pty::{Pty, PtySize};

/// The headings of the options in the help.
pub const TERMINAL: &str = "Input and terminal";
pub const EVENTS: &str = "Events";
pub const OWNERSHIP: &str = "What it belongs to";
pub const LIMITS: &str = "Limits";

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Program {
    /// Run this text with a shell, in place of CMD
    #[arg(short, long, value_name = "TEXT")]
    command: Option<String>,
    /// The program and its arguments
    #[arg(value_name = "CMD", trailing_var_arg = true)]
    argv: Vec<String>,
}

#[derive(Debug, Args)]
pub struct Options {
    /// The directory it runs in [default: this one]
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    cwd: Option<PathBuf>,
    #[command(flatten)]
    env: caller_env::EnvOptions,
    /// The shell for -c [default: yours]
    #[arg(long, value_hint = clap::ValueHint::ExecutablePath)]
    shell: Option<String>,
    /// For -c: start the shell as a login shell, which reads your login files first; your variables override theirs
    #[arg(long)]
    login: bool,
    /// The default since `--login` exists
    #[arg(long, hide = true, conflicts_with = "login")]
    no_login: bool,
    /// Give it a terminal of its own, of this size or of the usual one
    #[arg(short = 't', long, help_heading = TERMINAL, value_name = "ROWSxCOLS", num_args = 0..=1, require_equals = true, value_parser = args::window)]
    pty: Option<Option<PtySize>>,
    /// Give it a stdin that `toolctl write` can write to; `run` passes its own on
    #[arg(long, help_heading = TERMINAL)]
    pub stdin: bool,
    /// Give it one pipe for stdout and stderr, so that their order is exact; all of it is stdout
    #[arg(long, help_heading = TERMINAL)]
    merge: bool,
    /// Kill it after this long
    #[arg(long, help_heading = LIMITS, value_name = "TIME", value_parser = args::duration_ms)]
    timeout: Option<u64>,
    /// A name to call it by, which no other running process has
    #[arg(long, value_parser = args::name)]
    name: Option<String>,
    /// A task, for `kill --task`, `list --task` and `events --task`
    #[arg(long = "task", alias = "task-id", value_name = "TASK", help_heading = OWNERSHIP)]
    task_id: Option<String>,
    /// A session, for `kill --session`, `list --session` and `events --session` [default: $TOOLD_SESSION, else the agent's]
    #[arg(long = "session", alias = "session-key", value_name = "KEY", help_heading = OWNERSHIP)]
    session_key: Option<String>,
    /// A label, for `list --label`; may be given again
    #[arg(long, help_heading = OWNERSHIP, value_name = "K=V", value_parser = args::pair)]
    label: Vec<(String, String)>,
    /// When a process of that --name runs: error (refuse), return (take that one) or restart (replace it) [default: error]
    #[arg(long, value_name = "WHAT", requires = "name", hide_possible_values = true, value_parser = args::enum_value::<IfRunning>())]
    if_running: Option<IfRunning>,
    #[command(flatten)]
    restart: restart::RestartOptions,
    /// Send a completion event when it ends
    #[arg(long, help_heading = EVENTS)]
    notify: bool,
    #[command(flatten)]
    watch: watch::Watches,
    /// Send a heartbeat event when there is new output, at most this often; 1m or more
    #[arg(long, help_heading = EVENTS, value_name = "TIME", value_parser = args::duration_ms)]
    heartbeat: Option<u64>,
    #[command(flatten)]
    ready: ready::ReadyOptions,
    /// Mark exits that this call reports as acknowledged by consumer NAME
    #[arg(long, help_heading = EVENTS, value_name = "NAME")]
    consumer: Option<String>,
    /// At most this much memory for it and all it starts, as in 512M
    #[arg(long, help_heading = LIMITS, value_name = "SIZE", value_parser = args::size_bytes)]
    memory: Option<u64>,
    /// At most this much CPU, in percent of one, as in 150%
    #[arg(long, help_heading = LIMITS, value_name = "PERCENT", value_parser = args::percent)]
    cpu: Option<u64>,
    /// At most this many processes and threads
    #[arg(long, help_heading = LIMITS, value_name = "N")]
    pids: Option<u64>,
    /// Keep at most this much output on disk, as in 10M: its beginning and its end
    #[arg(long, help_heading = LIMITS, value_name = "SIZE", value_parser = args::size_bytes)]
    output_max: Option<u64>,
    /// Refuse the start if one of these limits cannot be enforced here
    #[arg(long, help_heading = LIMITS)]
    require_limits: bool,
    /// Kill it when it has printed nothing for this long
    #[arg(long, help_heading = LIMITS, value_name = "TIME", value_parser = args::duration_ms)]
    idle: Option<u64>,
    #[command(flatten)]
    sandbox: sandbox::SandboxOptions,
    /// Run it on an overlay: nothing changes until `toolctl stage commit`
    #[arg(long)]
    stage: bool,
    /// Ask a person to run it under this wider profile
    #[arg(long, value_name = "PROFILE", requires = "reason")]
    escalate: Option<String>,
    /// The reason for --escalate; the person who decides reads it
    #[arg(long, value_name = "TEXT", requires = "escalate")]
    reason: Option<String>,
    /// The time that a person has to decide, if one must be asked; 0 denies instead of asking [default: 10m]
    #[arg(long, value_name = "TIME", value_parser = args::duration_ms)]
    approval_timeout: Option<u64>,
    /// A name for this call: the same again gives the same process and starts nothing
    #[arg(long, value_name = "ID")]
    request_id: Option<String>,
}

impl Options {
    /// Returns the requested terminal: none, one of any size, or one of this size.
    pub fn terminal(&self) -> Option<Option<PtySize>> {
        self.pty
    }

    /// Takes the options about the environment. They need the caller's, and perhaps the daemon's config.
    pub fn take_env(&mut self) -> caller_env::EnvOptions {
        let mut env = std::mem::take(&mut self.env);
        env.is_elsewhere = self.cwd.is_some();
        env
    }

    /// Returns the requested readiness. `exec` and `run` wait for it in different ways.
    pub fn take_readiness(&mut self) -> Option<ready::Readiness> {
        std::mem::take(&mut self.ready).readiness()
    }
}

/// The size of a terminal that was requested without one.
#[derive(Clone, Copy)]
pub enum PtyDefault {
    /// The daemon's default.
    Daemon,
    /// The size of our terminal, if we have one.
    Ours(Option<PtySize>),
}

/// Builds the parameters of `exec`. They always carry a request id, so that the call can be made again after a lost
/// connection and still start one process.
pub fn params(what: Program, options: Options, pty: PtyDefault) -> Result<params::ExecParams, CliError> {
    let argv = (!what.argv.is_empty()).then_some(what.argv);
    let pty = match (options.pty, pty) {
        (None, _) => Pty::No,
        (Some(Some(size)), _) | (Some(None), PtyDefault::Ours(Some(size))) => Pty::Sized(size),
        (Some(None), PtyDefault::Daemon | PtyDefault::Ours(None)) => Pty::Default,
    };
    let login = what.command.as_ref().map(|_| options.login);
    // A terminal is its own stdin; a pipe beside it would be one too many.
    let stdin = if options.stdin && pty == Pty::No { StdinMode::Pipe } else { StdinMode::Null };
    Ok(params::ExecParams {
        command: what.command,
        argv,
        cwd: Some(directory(options.cwd)?),
        shell: options.shell,
        login,
        pty,
        stdin,
        merge: options.merge,
        timeout_ms: options.timeout.map(|ms| i64::try_from(ms).unwrap_or(i64::MAX)),
        name: options.name,
        task_id: options.task_id,
        session_key: options.session_key,
        labels: options.label.into_iter().collect(),
        notify: options.notify,
        watch: options.watch.0,
        heartbeat_ms: options.heartbeat,
        if_running: options.if_running.unwrap_or_default(),
        restart: options.restart.param(),
        consumer: options.consumer,
        limits: params::Limits {
            memory_bytes: options.memory,
            cpu_percent: options.cpu,
            pids: options.pids,
            output_bytes: options.output_max,
            idle_ms: options.idle,
        },
        require_limits: options.require_limits,
        sandbox: options.sandbox.param()?,
        escalate: options.escalate.zip(options.reason).map(|(to, reason)| params::Escalate { to, reason }),
        approval_timeout_ms: options.approval_timeout,
        stage: options.stage,
        request_id: Some(options.request_id.unwrap_or_else(random_id)),
        ..Default::default()
    })
}

/// Returns the absolute directory of `--cwd`, or the current one.
pub fn directory(given: Option<PathBuf>) -> Result<String, CliError> {
    let io = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => CliError::NoDirectory,
        // The directory exists, and we may not know its path.
        _ => CliError::Io { doing: "find the working directory", source },
    };
    let path = match given {
        Some(path) => std::path::absolute(path).map_err(io)?,
        None => std::env::current_dir().map_err(io)?,
    };
    path.into_os_string()
        .into_string()
        .map_err(|path| CliError::Usage(format!("--cwd: {} is not UTF-8, which JSON cannot carry", path.display())))
}

/// Returns a unique id.
pub fn random_id() -> String {
    format!("toolctl-{}-{:016x}", std::process::id(), random_bits())
}

/// Returns 64 random bits that the system gave this thread.
pub fn random_bits() -> u64 {
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use crate::cli::test_run;
    use crate::testing::{FakeDaemon, Reply, started};
    use serde_json::json;

    #[test]
    fn every_option_reaches_the_daemon() {
        let created = Reply::result(json!({}));
        let fake = FakeDaemon::start(vec![vec![created, Reply::result(started(json!({"ready": "ready"})))]]);
        let line = "exec --cwd /tmp --env A=1 --env B=2=3 --env-mode replace --shell sh --login --merge --pty=24x80 --timeout 30s \
            --yield 2s --name n --task-id t --session-key s --label k=v --notify --heartbeat 2m --if-running return \
            --consumer me --watch w --ready-match up --ready-timeout 5s --memory 512M --cpu 150% --pids 9 \
            --output-max 10M --require-limits --idle 5m --sandbox ci --net loopback --root /srv --escalate full --reason why --approval-timeout 2m --stage --queue q --after x --after y --after-any --request-id r -c";
        let args: Vec<&str> = line.split_whitespace().chain(["echo hi"]).collect();
        assert_eq!(test_run(&fake, &args), (0, "proc_0123456789ab\n".into(), String::new()));
        let expected = json!({
            "command": "echo hi", "cwd": "/tmp", "env": {"A": "1", "B": "2=3"}, "env_mode": "replace", "shell": "sh",
            "login": true, "merge": true, "pty": {"rows": 24, "cols": 80}, "timeout_ms": 30000, "yield_ms": 2000, "name": "n",
            "task_id": "t", "session_key": "s", "labels": {"k": "v"}, "notify": true, "request_id": "r",
            "heartbeat_ms": 120000, "if_running": "return", "consumer": "me", "watch": ["w"], "ready": {"match": "up"},
            "ready_timeout_ms": 5000, "require_limits": true, "queue": "q", "after": ["x", "y"],
            "after_ok": false, "sandbox": {"profile": "ci", "network": "loopback", "roots": ["/srv"]},
            "escalate": {"to": "full", "reason": "why"}, "approval_timeout_ms": 120000, "stage": true,
            "limits": {"memory_bytes": 536870912, "cpu_percent": 150, "pids": 9, "output_bytes": 10485760, "idle_ms": 300000}
        });
        let created = json!({"consumer": "me", "limit": 1, "from": "now"});
        assert_eq!(fake.next_request(), ("events.next".into(), created), "a new consumer begins now");
        assert_eq!(fake.next_request(), ("exec".into(), expected));
    }

    #[test]
    fn a_command_keeps_its_own_flags_and_runs_where_we_are_and_has_a_request_id() {
        let here = std::env::current_dir().expect("a directory").display().to_string();
        for args in [&["exec", "--stdin", "--", "ls", "--json", "-c"][..], &["exec", "--stdin", "ls", "--json", "-c"]] {
            let fake = FakeDaemon::start(vec![vec![Reply::result(started(json!({})))]]);
            assert_eq!(test_run(&fake, args).0, 0);
            let (_, mut asked) = fake.next_request();
            let request_id = asked["request_id"].take();
            assert!(request_id.as_str().is_some_and(|id| id.starts_with("toolctl-")), "{request_id}");
            assert_eq!(
                asked,
                json!({"argv": ["ls", "--json", "-c"], "cwd": here, "env_mode": "replace", "stdin": "pipe", "request_id": null})
            );
        }
        assert_ne!(super::random_id(), super::random_id());
    }
}
