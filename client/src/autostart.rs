//! Starts the daemon when none answers, and waits until one does.

use crate::blocking::{CallError, Client};
use crate::{daemon_probe, sys};
use std::ffi::OsString;
use std::fmt;
use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, IsTerminal, Read, Seek, SeekFrom};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use toold_proto::paths;

/// The time that a daemon may take to open its socket. One that needs longer has failed.
const START_TIMEOUT: Duration = Duration::from_secs(10);
/// The time to wait for the daemon that won the race for the state directory's lock. The one that lost exits at
/// once, while the winner may still read its records.
const WINNER_TIMEOUT: Duration = Duration::from_secs(3);
/// The same when the lock names no process: the winner may not have written its pid yet.
const NO_OWNER_TIMEOUT: Duration = Duration::from_secs(1);
/// The exit code of `toold` when its flags or its config are wrong: no other daemon will come.
const EXIT_USAGE: i32 = 2;
/// The time that a start may take before a line about it is shown.
const NOTICE_DELAY: Duration = Duration::from_secs(1);
/// The first delay between two tries to connect, and the longest.
const RETRY_DELAY: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(100));
/// The part of the daemon's log that an error shows.
const TAIL_LINES: usize = 10;
const TAIL_BYTES: u64 = 4096;

/// The flags to start the daemon with: those that `toolctl` was given.
#[derive(Debug, Clone, Default)]
pub struct DaemonFlags {
    pub socket: Option<PathBuf>,
    pub config: Option<PathBuf>,
}

/// The reason why no daemon answers.
#[derive(Debug)]
pub enum StartError {
    /// The socket exists but cannot be used; another daemon would not help.
    Unusable(CallError),
    /// The program could not be started.
    Spawn { program: PathBuf, source: io::Error },
    /// It started and exited; with the end of its log.
    Exited { status: ExitStatus, log: Option<PathBuf>, tail: String },
    /// It runs, but does not answer.
    TimedOut { socket: PathBuf, log: Option<PathBuf>, tail: String },
    /// The state directory, which holds the log, cannot be used.
    StateDir { doing: &'static str, path: PathBuf, source: io::Error },
    /// A file that the start needs.
    Io { doing: &'static str, path: PathBuf, source: io::Error },
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Unusable(error) => error.fmt(f),
            StartError::Spawn { program, source } if source.kind() == io::ErrorKind::NotFound => write!(
                f,
                "no daemon answers, and {} is neither beside toolctl nor in PATH: install it, or start one yourself",
                program.display()
            ),
            StartError::Spawn { program, source } => write!(f, "cannot start {}: {source}", program.display()),
            StartError::Exited { status, log, tail } => {
                write!(f, "toold started and exited ({status}){}", log_excerpt(log.as_deref(), tail))
            }
            StartError::TimedOut { socket, log, tail } => {
                let seconds = START_TIMEOUT.as_secs();
                write!(f, "toold was started but {} does not answer after {seconds} s", socket.display())?;
                f.write_str(&log_excerpt(log.as_deref(), tail))
            }
            StartError::StateDir { doing, path, source } => {
                let path = path.display();
                write!(f, "cannot {doing} {path}: {source}; set TOOLD_STATE_DIR to a directory that you can write to")
            }
            StartError::Io { doing, path, source } => write!(f, "{doing} {}: {source}", path.display()),
        }
    }
}

impl std::error::Error for StartError {}

fn log_excerpt(log: Option<&Path>, tail: &str) -> String {
    match log {
        Some(log) if tail.is_empty() => format!("; its log {} is empty", log.display()),
        Some(log) => format!("; the end of {}:\n{tail}", log.display()),
        None => "; there is no home directory, so it has no log: set TOOLD_STATE_DIR".into(),
    }
}

/// Reports whether no process listens there: the one case in which starting a daemon helps.
pub fn is_not_listening(error: &CallError) -> bool {
    match error {
        CallError::Unreachable { source, .. } => {
            matches!(source.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused)
        }
        CallError::Untrusted { .. } | CallError::TimedOut { .. } | CallError::Rpc(_) | CallError::Protocol(_) => false,
    }
}

/// Connects; starts the daemon first if no process listens. Several clients may do so at once: one daemon wins, and all
/// of them connect to it.
pub fn connect(socket: &Path, flags: &DaemonFlags) -> Result<Client, StartError> {
    match Client::connect(socket) {
        Ok(client) => Ok(client),
        // A daemon that we start would not get the state directory.
        Err(error) if is_not_listening(&error) && daemon_probe::other_socket(socket).is_none() => start(socket, flags),
        Err(error) => Err(StartError::Unusable(error)),
    }
}

fn start(socket: &Path, flags: &DaemonFlags) -> Result<Client, StartError> {
    let log = DaemonLog::open(paths::state_dir())?;
    let program = program();
    let mut child = command(&program, flags, &log)?
        .spawn()
        .map_err(|source| StartError::Spawn { program: program.clone(), source })?;
    let mut wait = Backoff::until(Instant::now() + START_TIMEOUT);
    let (mut ended, mut notice) = (None, Notice::new());
    loop {
        notice.show_if_slow();
        match Client::connect(socket) {
            Ok(client) => return Ok(client),
            Err(error) if !is_not_listening(&error) => return Err(StartError::Unusable(error)),
            Err(_) => {}
        }
        if ended.is_none() {
            ended = exit_of(&mut child);
            match ended {
                Some(status) if status.code() == Some(EXIT_USAGE) => return Err(log.exited(status)),
                Some(_) => {
                    let timeout = if daemon_probe::daemon_pid().is_some() { WINNER_TIMEOUT } else { NO_OWNER_TIMEOUT };
                    wait.deadline = wait.deadline.min(Instant::now() + timeout);
                }
                None => {}
            }
        }
        if !wait.once() {
            return Err(match ended {
                Some(status) => log.exited(status),
                None => StartError::TimedOut { socket: socket.into(), tail: log.tail(), log: log.path },
            });
        }
    }
}

/// A line on a terminal while a daemon takes long to read its records. It is erased when the daemon answers.
struct Notice {
    began: Instant,
    shown: bool,
}

impl Notice {
    fn new() -> Notice {
        Notice { began: Instant::now(), shown: false }
    }

    fn show_if_slow(&mut self) {
        if !self.shown && self.began.elapsed() > NOTICE_DELAY && io::stderr().is_terminal() {
            eprint!("toolctl: starting the daemon…");
            self.shown = true;
        }
    }
}

impl Drop for Notice {
    fn drop(&mut self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}

/// Delays that grow, up to a deadline.
pub struct Backoff {
    next: Duration,
    deadline: Instant,
}

impl Backoff {
    pub fn until(deadline: Instant) -> Backoff {
        Backoff { next: RETRY_DELAY.0, deadline }
    }

    /// Sleeps a little longer than the last time. Returns false once the deadline has passed.
    pub fn once(&mut self) -> bool {
        let left = self.deadline.saturating_duration_since(Instant::now());
        std::thread::sleep(self.next.min(left));
        self.next = (self.next * 3 / 2).min(RETRY_DELAY.1);
        !left.is_zero()
    }
}

/// Returns the exit status of a daemon that ended. A child whose status cannot be read counts as running.
fn exit_of(child: &mut Child) -> Option<ExitStatus> {
    child.try_wait().ok().flatten()
}

/// Returns the path of `toold`: beside this program, else in PATH.
pub fn program() -> PathBuf {
    let beside = std::env::current_exe().ok().and_then(|own| Some(own.parent()?.join("toold")));
    let runs = |path: &PathBuf| path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0);
    beside.filter(runs).unwrap_or_else(|| "toold".into())
}

fn command(program: &Path, flags: &DaemonFlags, log: &DaemonLog) -> Result<Command, StartError> {
    let mut command = Command::new(program);
    for (flag, path) in [("--socket", &flags.socket), ("--config", &flags.config)] {
        if let Some(path) = path {
            command.arg(flag).arg(absolute(path)?);
        }
    }
    // The daemon starts in `/`, where a relative path would name another file.
    for name in ["TOOLD_SOCKET", "TOOLD_STATE_DIR", "TOOLD_CONFIG"] {
        if let Some(path) = std::env::var_os(name).filter(|v| !v.is_empty()) {
            command.env(name, absolute(Path::new(&path))?);
        }
    }
    command.current_dir("/").stdin(Stdio::null()).stdout(log.stdio()?).stderr(log.stdio()?);
    sys::detach(&mut command);
    Ok(command)
}

fn absolute(path: &Path) -> Result<OsString, StartError> {
    match std::path::absolute(path) {
        Ok(path) => Ok(path.into()),
        Err(source) => Err(StartError::Io { doing: "resolve", path: path.into(), source }),
    }
}

/// The log of a daemon that we start: a file of the user, or none without a home directory.
struct DaemonLog {
    path: Option<PathBuf>,
    file: Option<File>,
    /// The offset at which this start's output begins.
    begin: u64,
}

impl DaemonLog {
    fn open(state_dir: Option<PathBuf>) -> Result<DaemonLog, StartError> {
        let Some(dir) = state_dir else { return Ok(DaemonLog { path: None, file: None, begin: 0 }) };
        let io = |doing, path: &Path| {
            let path = path.to_path_buf();
            move |source| StartError::StateDir { doing, path, source }
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&dir).map_err(io("create", &dir))?;
        let path = paths::daemon_log(&dir);
        let file = OpenOptions::new().append(true).create(true).mode(0o600).open(&path).map_err(io("open", &path))?;
        let begin = file.metadata().map_err(io("look at", &path))?.len();
        Ok(DaemonLog { path: Some(path), file: Some(file), begin })
    }

    fn stdio(&self) -> Result<Stdio, StartError> {
        let (Some(file), Some(path)) = (&self.file, &self.path) else { return Ok(Stdio::null()) };
        let file =
            file.try_clone().map_err(|source| StartError::Io { doing: "duplicate", path: path.clone(), source })?;
        Ok(file.into())
    }

    /// Returns the last lines since this start. An unreadable log counts as empty: it is only a hint.
    fn tail(&self) -> String {
        self.path.as_deref().and_then(|path| tail(path, self.begin).ok()).unwrap_or_default()
    }

    fn exited(self, status: ExitStatus) -> StartError {
        StartError::Exited { status, tail: self.tail(), log: self.path }
    }
}

fn tail(path: &Path, begin: u64) -> io::Result<String> {
    let mut file = File::open(path)?;
    let end = file.metadata()?.len();
    file.seek(SeekFrom::Start(begin.max(end.saturating_sub(TAIL_BYTES))))?;
    let mut bytes = Vec::new();
    file.take(TAIL_BYTES).read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let lines: Vec<&str> = text.lines().collect();
    Ok(lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_is_private_and_its_tail_is_of_this_start_only() {
        let dir = tempfile::tempdir().expect("a directory");
        let state = dir.path().join("a/b");
        drop(DaemonLog::open(Some(state.clone())).expect("a log"));
        std::fs::write(state.join("toold.log"), "an older start\n").expect("the log is writable");
        let log = DaemonLog::open(Some(state.clone())).expect("a log");
        let log_excerpt: String = (0..20).map(|n| format!("line {n}\n")).collect();
        std::fs::write(state.join("toold.log"), format!("an older start\n{log_excerpt}")).expect("the log is writable");
        let expected: Vec<String> = (10..20).map(|n| format!("line {n}")).collect();
        assert_eq!(log.tail(), expected.join("\n"));
        let mode = |path: &Path| path.metadata().expect("it is there").permissions().mode() & 0o777;
        assert_eq!((mode(&state), mode(&state.join("toold.log"))), (0o700, 0o600));
    }

    #[test]
    fn only_a_socket_without_a_listener_needs_a_new_daemon() {
        let lost = |kind: io::ErrorKind| CallError::Unreachable { path: "/s".into(), source: kind.into() };
        assert!(is_not_listening(&lost(io::ErrorKind::NotFound)));
        assert!(is_not_listening(&lost(io::ErrorKind::ConnectionRefused)));
        assert!(!is_not_listening(&lost(io::ErrorKind::PermissionDenied)));
        assert!(!is_not_listening(&CallError::Protocol("x".into())));
    }

    #[test]
    fn flags_reach_the_daemon_as_absolute_paths() {
        let log = DaemonLog { path: None, file: None, begin: 0 };
        let flags = DaemonFlags { socket: Some("s.sock".into()), config: Some("/etc/c.toml".into()) };
        let command = command(Path::new("toold"), &flags, &log).expect("a command");
        let here = std::env::current_dir().expect("a directory").join("s.sock");
        let args: Vec<_> = command.get_args().collect();
        assert_eq!(args, ["--socket".as_ref(), here.as_os_str(), "--config".as_ref(), "/etc/c.toml".as_ref()]);
        assert_eq!(command.get_current_dir(), Some(Path::new("/")));
    }
}
