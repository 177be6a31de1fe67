//! Checks an `exec` call and builds the specification. An error names the parameter, and nothing has happened yet.

use super::{InvalidParam, SpawnRequest, SpecError, digest, env, lengths, login_env, pending};
use crate::backend::cgroup;
use crate::config::Config;
use crate::store::record::Spec;
use crate::store::restart::RestartSpec;
use crate::store::{namespaces, shim_level};
use crate::watch::Patterns;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use toold_proto::ProcId;
use toold_proto::params::{EnvMode, ExecParams, IfRunning, StdinMode};
use toold_proto::pty::{Pty, PtySize};

/// The terminal size if the call has none.
const DEFAULT_TERMINAL: PtySize = PtySize { rows: 24, cols: 80 };
/// The most rows or columns. A larger terminal is a mistake of the caller.
const MAX_TERMINAL_SIZE: u32 = 10_000;
/// The smallest output limit: less has no room for a head and a tail.
const MIN_OUTPUT_BYTES: u64 = 65_536;

/// Builds a spawn request from an `exec` call. `pass`: names that its session passes on, beside those of the config.
pub fn build(call: &ExecParams, config: &Config, pass: &[String]) -> Result<SpawnRequest, SpecError> {
    lengths::check(call, &config.exec)?;
    reject_nul(call)?;
    let pty = terminal(call.pty)?;
    let cwd = working_dir(call.cwd.as_deref())?;
    check_name(call.name.as_deref(), config.exec.max_name_bytes)?;
    if call.name.is_none() && call.if_running != IfRunning::Error {
        return Err(SpecError::from(InvalidParam::new(
            "if_running",
            "needs `name`: it applies to the running process of that name",
        )));
    }
    if let Some(timeout) = call.timeout_ms.filter(|t| *t <= 0) {
        return Err(SpecError::from(InvalidParam::too_small("timeout_ms", 1, timeout)));
    }
    match call.backend.as_deref() {
        None | Some("local") => {}
        Some(other) => {
            return Err(SpecError::UnknownBackend(other.into()));
        }
    }
    let patterns = patterns(call)?;
    if let Some(ms) = call.heartbeat_ms.filter(|ms| *ms < config.events.min_heartbeat_ms) {
        let least = config.events.min_heartbeat_ms;
        return Err(SpecError::from(InvalidParam::too_small("heartbeat_ms", least, ms as i64)));
    }
    let log_max_bytes = check_limits(call, config)?;
    let pending = pending::spec(call, config)?;
    let given = env::given(&call.env, &call.env_base64)?;
    let all_passed: Vec<String>;
    let pass = if pass.is_empty() {
        &config.env.pass
    } else {
        all_passed = [&config.env.pass, pass].concat();
        &all_passed
    };
    let mut env = env::build(call.env_mode, daemon_vars(), pass, &given, pty.is_some());
    let CommandLine { mut argv, command, program } = self::argv(call, &env)?;
    let env_names = env.keys().cloned().collect();
    if call.command.is_some()
        && call.login.unwrap_or(true)
        && let [_, _, text] = &mut argv[..]
        && let Some((with, script)) = login_env::preserve_env(&program, text, &given)
    {
        *text = with;
        env.insert(login_env::ENV_VAR.into(), script);
    }
    let (program, unresolved) = search_path(&program, env.get("PATH").map(Vec::as_slice));
    let enforced = cgroup::RequestedLimits::new(&call.limits, call.require_limits);
    let spec = Spec {
        id: ProcId::from_bits(0),
        name: call.name.clone(),
        command,
        argv,
        program,
        cwd,
        backend: "local".into(),
        env_names,
        pty,
        stdin_pipe: call.stdin == StdinMode::Pipe && pty.is_none(),
        merge: call.merge,
        hold: call.hold,
        timeout_ms: call.timeout_ms.map(|t| t as u64),
        idle_ms: call.limits.idle_ms,
        timeout_grace_ms: config.timeout_grace_ms,
        log_max_bytes,
        task_id: call.task_id.clone(),
        session_key: call.session_key.clone(),
        started_by: None,
        labels: call.labels.clone(),
        notify: call.notify,
        watch: call.watch.clone(),
        request_id: call.request_id.clone(),
        request_digest: digest::digest(call),
        heartbeat_ms: call.heartbeat_ms,
        journaled: true,
        shim_level: shim_level::OWN,
        namespaces: namespaces::own(),
        pending,
        env_mode: given.is_empty().then_some(call.env_mode),
        restart: restart_policy(call)?,
        sandbox: None,
        policy: None,
        patch: None,
        stage: call.stage.then(Box::default),
        script: None,
        limits: BTreeMap::new(),
        require_limits: call.require_limits,
        cgroups: Vec::new(),
        created_ms: 0,
        seq: 0,
    };
    let after = call.after.clone();
    Ok(SpawnRequest { spec, env: variables(env), wanted: enforced, patterns, unresolved, after, plan: None, ask: None })
}

fn variables(env: BTreeMap<String, Vec<u8>>) -> Vec<Vec<u8>> {
    env.into_iter().map(|(name, value)| [name.as_bytes(), b"=", &value].concat()).collect()
}

/// Builds the environment of a recorded process whose call had no variables of its own.
pub fn daemon_env(spec: &Spec, mode: EnvMode, config: &Config) -> Vec<Vec<u8>> {
    let session = spec.policy.iter().flat_map(|policy| &policy.env_pass);
    let pass: Vec<String> = config.env.pass.iter().chain(session).cloned().collect();
    variables(env::build(mode, daemon_vars(), &pass, &BTreeMap::new(), spec.pty.is_some()))
}

/// Returns the restart policy, if the call has one.
fn restart_policy(call: &ExecParams) -> Result<Option<Box<RestartSpec>>, InvalidParam> {
    let options = call.restart.0;
    if options.backoff_ms == Some(0) {
        return Err(InvalidParam::too_small("restart.backoff_ms", 1, 0));
    }
    let policy = RestartSpec::from_options(options);
    if let Some(policy) = policy.filter(|policy| policy.max_backoff_ms < policy.backoff_ms) {
        let given = i64::try_from(policy.max_backoff_ms).unwrap_or(i64::MAX);
        return Err(InvalidParam::too_small("restart.max_backoff_ms", policy.backoff_ms, given));
    }
    Ok(policy.map(Box::new))
}

/// Compiles the watch patterns.
fn patterns(call: &ExecParams) -> Result<Option<Arc<Patterns>>, InvalidParam> {
    if call.watch.is_empty() {
        return Ok(None);
    }
    let made =
        Patterns::new(&call.watch).map_err(|bad| InvalidParam::new(format!("watch[{}]", bad.index), bad.reason))?;
    Ok(Some(Arc::new(made)))
}

/// Returns the variables of the daemon whose names are text. A daemon without HOME, as in a container, has those that a
/// login sets from the user database.
fn daemon_vars() -> impl Iterator<Item = (String, Vec<u8>)> {
    let own = std::env::vars_os().filter_map(|(n, v)| Some((n.into_string().ok()?, v.into_vec())));
    let missing = if std::env::var_os("HOME").is_none() { login_vars() } else { Vec::new() };
    missing.into_iter().chain(own)
}

/// Returns HOME, USER, LOGNAME and SHELL of this user. Empty: the user database does not have it.
fn login_vars() -> Vec<(String, Vec<u8>)> {
    let Some(user) = nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten() else { return Vec::new() };
    let (home, shell) = (user.dir.into_os_string().into_vec(), user.shell.into_os_string().into_vec());
    let name = user.name.into_bytes();
    let vars = [("HOME", home), ("USER", name.clone()), ("LOGNAME", name), ("SHELL", shell)];
    vars.into_iter().filter(|(_, value)| !value.is_empty()).map(|(name, value)| (name.into(), value)).collect()
}

/// Checks that no string contains a NUL. `env` has its own check.
fn reject_nul(call: &ExecParams) -> Result<(), InvalidParam> {
    let one = |param: &str, text: &str| {
        if text.contains('\0') {
            return Err(InvalidParam::new(param, "must not contain a NUL character"));
        }
        Ok(())
    };
    let single = [
        ("command", &call.command),
        ("cwd", &call.cwd),
        ("shell", &call.shell),
        ("name", &call.name),
        ("task_id", &call.task_id),
        ("session_key", &call.session_key),
        ("request_id", &call.request_id),
    ];
    for (param, text) in single {
        one(param, text.as_deref().unwrap_or_default())?;
    }
    if call.request_id.as_deref() == Some("") {
        return Err(InvalidParam::new("request_id", "must not be empty"));
    }
    for (at, arg) in call.argv.iter().flatten().enumerate() {
        one(&format!("argv[{at}]"), arg)?;
    }
    Ok(())
}

pub fn terminal_size(rows: u32, cols: u32) -> Result<PtySize, InvalidParam> {
    for (name, value) in [("rows", rows), ("cols", cols)] {
        if !(1..=MAX_TERMINAL_SIZE).contains(&value) {
            return Err(InvalidParam::new(name, format!("must be 1 to {MAX_TERMINAL_SIZE}, not {value}")));
        }
    }
    Ok(PtySize { rows, cols })
}

fn terminal(pty: Pty) -> Result<Option<PtySize>, InvalidParam> {
    match pty {
        Pty::No => Ok(None),
        Pty::Default => Ok(Some(DEFAULT_TERMINAL)),
        Pty::Sized(PtySize { rows, cols }) => terminal_size(rows, cols)
            .map(Some)
            .map_err(|invalid| InvalidParam { param: format!("pty.{}", invalid.param), ..invalid }),
    }
}

fn working_dir(cwd: Option<&str>) -> Result<String, InvalidParam> {
    let Some(cwd) = cwd else {
        let home = daemon_vars().filter(|(name, _)| name == "HOME").map(|(_, home)| home).last();
        let home = home.and_then(|home| String::from_utf8(home).ok()).filter(|home| Path::new(home).is_dir());
        return Ok(home.unwrap_or_else(|| "/".into()));
    };
    if !cwd.starts_with('/') {
        return Err(InvalidParam::new("cwd", format!("must be an absolute path, not {cwd:?}")));
    }
    match std::fs::metadata(cwd) {
        Ok(found) if found.is_dir() => Ok(cwd.into()),
        Ok(_) => Err(InvalidParam::new("cwd", format!("{cwd} is not a directory"))),
        Err(e) => Err(InvalidParam::new("cwd", format!("{cwd}: {e}"))),
    }
}

fn check_name(name: Option<&str>, max_len: u64) -> Result<(), InvalidParam> {
    let Some(name) = name else { return Ok(()) };
    if name.is_empty() || name.trim() != name || !name.chars().all(is_visible) {
        let message = format!(
            "must be 1 to {max_len} bytes of visible text, without / * ? and without blanks at its ends, not {name:?}"
        );
        return Err(InvalidParam::new("name", message));
    }
    if name.starts_with("proc_") {
        return Err(InvalidParam::new("name", "must not look like an id: it starts with proc_"));
    }
    if name.starts_with('-') {
        return Err(InvalidParam::new("name", format!("must not begin with -, as options do, not {name:?}")));
    }
    if matches!(name, "." | "..") {
        return Err(InvalidParam::new("name", format!("must not be . or .., which are directories, not {name:?}")));
    }
    // Clients resolve @last and @failed themselves.
    if name.starts_with('@') {
        return Err(InvalidParam::new("name", format!("must not begin with @, as @last and @failed do, not {name:?}")));
    }
    Ok(())
}

/// Returns true for a character that a name may have: one that is seen, and that is neither a pattern's nor a path's.
fn is_visible(c: char) -> bool {
    let is_hidden = matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff0}'..='\u{ffff}' | '\u{e0000}'..='\u{e0fff}');
    !is_hidden && !c.is_control() && (c == ' ' || !c.is_whitespace()) && !matches!(c, '/' | '*' | '?')
}

/// Checks every limit. Returns the bytes of output to keep.
fn check_limits(call: &ExecParams, config: &Config) -> Result<u64, InvalidParam> {
    let l = &call.limits;
    let all = [
        ("limits.memory_bytes", l.memory_bytes),
        ("limits.cpu_percent", l.cpu_percent),
        ("limits.pids", l.pids),
        ("limits.output_bytes", l.output_bytes),
        ("limits.idle_ms", l.idle_ms),
    ];
    if let Some((param, _)) = all.iter().find(|(_, value)| *value == Some(0)) {
        return Err(InvalidParam::too_small(*param, 1, 0));
    }
    Ok(l.output_bytes.map_or(config.log_max_bytes, |bytes| bytes.max(MIN_OUTPUT_BYTES).min(config.log_max_bytes)))
}

/// The arguments, the command as a person would type it, and the program to find.
struct CommandLine {
    argv: Vec<String>,
    command: String,
    program: String,
}

fn argv(call: &ExecParams, env: &env::Variables) -> Result<CommandLine, InvalidParam> {
    match (&call.command, &call.argv) {
        (Some(_), Some(_)) => Err(InvalidParam::new("command", "give either command or argv, not both")),
        (None, None) => Err(InvalidParam::new("command", "give command (shell text) or argv")),
        (Some(command), None) if command.trim().is_empty() => Err(InvalidParam::new("command", "must not be empty")),
        (Some(command), None) => {
            let shell = call.shell.clone().unwrap_or_else(|| default_shell(env));
            if shell.is_empty() {
                return Err(InvalidParam::new("shell", "must not be empty"));
            }
            let (name, flags) = match (call.login.unwrap_or(true), ShellKind::of(&shell)) {
                (false, _) => (shell.clone(), "-c"),
                // It takes no -l beside other flags, and is a login shell by its name.
                (true, ShellKind::Csh) => (format!("-{}", base_name(&shell)), "-c"),
                (true, ShellKind::TakesLogin | ShellKind::Unknown) => (shell.clone(), "-lc"),
            };
            Ok(CommandLine {
                argv: vec![name, flags.into(), command.clone()],
                command: command.clone(),
                program: shell,
            })
        }
        (None, Some(argv)) => match argv.first() {
            None => Err(InvalidParam::new("argv", "must not be empty")),
            Some(first) if first.is_empty() => Err(InvalidParam::new("argv[0]", "must name a program")),
            Some(first) => {
                let command = argv.iter().map(|arg| shell_quote(arg)).collect::<Vec<_>>().join(" ");
                Ok(CommandLine { argv: argv.clone(), command, program: first.clone() })
            }
        },
    }
}

/// The flags by which a shell runs a command as a login shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShellKind {
    TakesLogin,
    Csh,
    Unknown,
}

impl ShellKind {
    fn of(shell: &str) -> ShellKind {
        match base_name(shell) {
            "csh" | "tcsh" => ShellKind::Csh,
            _ if login_env::is_known_shell(shell) => ShellKind::TakesLogin,
            _ => ShellKind::Unknown,
        }
    }
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or_default()
}

/// Returns the shell of the user, or `/bin/sh` if that shell runs nothing or is not known to run a command.
fn default_shell(env: &env::Variables) -> String {
    let usable = |shell: &String| {
        shell.starts_with('/')
            && ShellKind::of(shell) != ShellKind::Unknown
            && executable_file(Path::new(shell)) == Some(true)
    };
    // Not the SHELL of the caller that started the daemon, unless the mode passes it on.
    let own = || env.get("SHELL").cloned().and_then(|shell| String::from_utf8(shell).ok()).filter(usable);
    let passwd = || {
        let user = nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten()?;
        user.shell.to_str().map(String::from).filter(usable)
    };
    own().or_else(passwd).unwrap_or_else(|| "/bin/sh".into())
}

/// Quotes an argument for a shell, if that is needed.
fn shell_quote(arg: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"%+,-./:=@_^".contains(&b);
    if !arg.is_empty() && arg.bytes().all(plain) {
        return arg.into();
    }
    format!("'{}'", arg.replace('\'', r"'\''"))
}

/// Checks for an executable file. Some(false): the path exists and is something else. None: it does not exist.
fn executable_file(path: &Path) -> Option<bool> {
    let found = std::fs::metadata(path).ok()?;
    Some(found.is_file() && found.permissions().mode() & 0o111 != 0)
}

/// Returns the file to execute for these variables, as the daemon finds it now.
pub fn find_program(program: &str, env: &[Vec<u8>]) -> (String, Option<i32>) {
    let path = env.iter().find_map(|variable| variable.strip_prefix(b"PATH="));
    search_path(program, path)
}

/// Returns a path that a caller gives relative to a directory. None: the home directory.
pub fn resolve_path(cwd: Option<&str>, path: &str) -> String {
    let base = match cwd {
        Some(cwd) => cwd.to_owned(),
        None => working_dir(None).unwrap_or_else(|_| "/".into()),
    };
    Path::new(&base).join(path).to_string_lossy().into_owned()
}

/// Returns the file to execute. A name with a slash is left to the kernel; for others PATH is searched, and the errno
/// is the reason if nothing was found.
fn search_path(program: &str, path: Option<&[u8]>) -> (String, Option<i32>) {
    if program.contains('/') {
        return (program.into(), None);
    }
    let mut errno = libc::ENOENT;
    for dir in path.unwrap_or(env::DEFAULT_PATH.as_bytes()).split(|byte| *byte == b':') {
        let dir = if dir.is_empty() { b"." } else { dir };
        let candidate = Path::new(OsStr::from_bytes(dir)).join(program);
        match executable_file(&candidate) {
            Some(true) => return (candidate.to_string_lossy().into_owned(), None),
            Some(false) => errno = libc::EACCES,
            None => {}
        }
    }
    (program.into(), Some(errno))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_quoted_for_a_shell() {
        let shown: Vec<String> = ["ls", "a b", "", "it's", "--x=1"].iter().map(|arg| shell_quote(arg)).collect();
        assert_eq!(shown, ["ls", "'a b'", "''", r"'it'\''s'", "--x=1"]);
    }

    #[test]
    fn a_program_is_searched_in_path_and_an_errno_is_the_reason_if_none_is_found() {
        assert_eq!(search_path("sh", Some(b"/nowhere:/bin")), ("/bin/sh".into(), None));
        assert_eq!(search_path("./x", None), ("./x".into(), None));
        assert_eq!(search_path("no-such-program", Some(b"/bin")), ("no-such-program".into(), Some(libc::ENOENT)));
        assert_eq!(search_path("passwd", Some(b"/etc")), ("passwd".into(), Some(libc::EACCES)));
    }
}
