//! The errors of `toolctl`: their text and their exit codes.

use crate::autostart::StartError;
use crate::blocking::CallError;
use crate::render::time::exact;
use crate::{daemon_probe, error_text};
use serde_json::{Value, json};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use toold_proto::{ErrorKind, RpcError, paths};

pub const DONE: u8 = 0;
pub const FAILED: u8 = 1;
pub const USAGE: u8 = 2;
pub const NO_SUCH_PROCESS: u8 = 3;
pub const UNREACHABLE: u8 = 4;
pub const DENIED: u8 = 5;
/// `run` printed less than the program wrote.
pub const INCOMPLETE: u8 = 74;
pub const TIMED_OUT: u8 = 124;
/// The exit codes of shells for a program that cannot be executed, and for one that does not exist.
pub const NOT_EXECUTABLE: u8 = 126;
pub const NOT_FOUND: u8 = 127;

#[derive(Debug)]
pub enum CliError {
    /// The command line is wrong in a way that clap cannot detect.
    Usage(String),
    Call(CallError),
    /// The daemon did not answer within the time that `wait` was given.
    WaitTimedOut {
        time: Duration,
        error: CallError,
    },
    /// The program of `run` could not start.
    SpawnFailed(RpcError),
    Start(StartError),
    /// There is no daemon to stop.
    NotRunning(PathBuf),
    /// This system lacks what the command needs, or it is not set up. A whole sentence.
    Unavailable(String),
    /// The current directory was removed.
    NoDirectory,
    /// The reader of our output is gone, so there is no one to print an error to.
    OutputClosed,
    Io {
        doing: &'static str,
        source: io::Error,
    },
}

impl CliError {
    /// Converts an I/O error on a file or descriptor of ours.
    pub fn io(doing: &'static str) -> impl FnOnce(io::Error) -> CliError {
        move |source| match source.kind() {
            io::ErrorKind::BrokenPipe => CliError::OutputClosed,
            // Every other error is reported.
            _ => CliError::Io { doing, source },
        }
    }

    /// Converts the error for `run`, which stands for its program: if that could not start, the exit code is the one that a shell
    /// returns.
    pub fn of_run(self) -> CliError {
        match self {
            CliError::Call(CallError::Rpc(error)) if error.kind() == Some(ErrorKind::SpawnFailed) => {
                CliError::SpawnFailed(error)
            }
            other => other,
        }
    }

    /// Converts the error for a wait, whose time is over although the daemon did not answer.
    pub fn of_wait(self, time: Duration) -> CliError {
        match self {
            CliError::Call(error @ CallError::TimedOut { .. }) => CliError::WaitTimedOut { time, error },
            other => other,
        }
    }

    /// Returns what to do about it on this command line, where the daemon's message does not know the option.
    pub fn hint(&self) -> Option<String> {
        let (CliError::Call(CallError::Rpc(error)) | CliError::SpawnFailed(error)) = self else { return None };
        if error.kind() == Some(ErrorKind::SpawnFailed) {
            let path = error.data.get("path").and_then(|path| path.as_str())?;
            return path.contains(' ').then(|| "shell text goes behind -c: -c 'echo hello'".to_owned());
        }
        let name = error.data.get("process").and_then(|process| process["name"].as_str());
        let name = name.filter(|_| error.kind() == Some(ErrorKind::AlreadyExists))?;
        Some(format!(
            "end that one with `toolctl kill {name}`, use another --name, or choose: --if-running return \
             prints the running one, --if-running restart replaces it"
        ))
    }

    /// Returns the lines of the daemon's log at the end of the text; empty if there are none.
    pub fn excerpt(&self) -> &str {
        match self {
            CliError::Start(StartError::Exited { tail, .. } | StartError::TimedOut { tail, .. }) => tail,
            // Every other error is one line.
            _ => "",
        }
    }

    /// Reports whether an id named no process.
    pub fn is_not_found(&self) -> bool {
        matches!(self, CliError::Call(CallError::Rpc(error)) if error.kind() == Some(ErrorKind::NotFound))
    }

    pub fn exit_code(&self) -> u8 {
        match self {
            CliError::Usage(_) => USAGE,
            CliError::WaitTimedOut { .. } => TIMED_OUT,
            CliError::Call(CallError::Rpc(error)) => rpc_exit_code(error),
            CliError::SpawnFailed(error) => spawn_failed_exit_code(error),
            CliError::Call(
                CallError::Unreachable { .. } | CallError::Untrusted { .. } | CallError::TimedOut { .. },
            )
            | CliError::Start(_)
            | CliError::NotRunning(_) => UNREACHABLE,
            CliError::Call(CallError::Protocol(_))
            | CliError::Unavailable(_)
            | CliError::NoDirectory
            | CliError::Io { .. } => FAILED,
            CliError::OutputClosed => DONE,
        }
    }

    /// Returns the error as one JSON document: the daemon's own object, or one of the same shape.
    pub fn document(&self) -> Value {
        let kind = match self {
            CliError::Call(CallError::Rpc(error)) | CliError::SpawnFailed(error) => return json!(error),
            CliError::Usage(_) => "usage",
            CliError::Call(CallError::Untrusted { .. })
            | CliError::Start(StartError::Unusable(CallError::Untrusted { .. })) => "untrusted",
            CliError::Call(CallError::Unreachable { .. } | CallError::TimedOut { .. })
            | CliError::WaitTimedOut { .. }
            | CliError::Start(_)
            | CliError::NotRunning(_) => "unreachable",
            CliError::Call(CallError::Protocol(_)) => "protocol",
            CliError::Unavailable(_) => "unavailable",
            CliError::OutputClosed | CliError::NoDirectory | CliError::Io { .. } => "io",
        };
        json!({ "code": null, "message": self.to_string(), "data": { "kind": kind } })
    }
}

/// Returns the missing directory that is the reason why a socket does not exist.
fn missing_directory<'a>(path: &'a Path, source: &io::Error) -> Option<&'a Path> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty())?;
    (source.kind() == io::ErrorKind::NotFound && !dir.exists()).then_some(dir)
}

/// Returns how to reach a daemon at another socket than ours; `usual` is our socket without options.
fn socket_hint(there: &Path, usual: &Path) -> String {
    let way = if there == usual {
        "leave --socket out".to_owned()
    } else {
        format!("use --socket {0}, or `export TOOLD_SOCKET={0}`", there.display())
    };
    format!("the one of this state directory listens at {}: {way}", there.display())
}

/// Returns what makes the daemon reachable, by the reason why it is not.
fn remedy(path: &Path, source: &io::Error, other_socket: impl Fn(&Path) -> Option<PathBuf>) -> String {
    match source.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
            if let Some(there) = other_socket(path) {
                return socket_hint(&there, &paths::socket());
            }
            let service = if daemon_probe::has_user_manager() { "`toolctl service start` or " } else { "" };
            format!("start one with {service}`toold &`, or leave --no-autostart out")
        }
        io::ErrorKind::PermissionDenied => {
            format!("you have no access to it: `ls -ld {}` shows its owner", path.display())
        }
        // It was there and closed the connection, or is something else.
        _ => "`toolctl doctor` looks for the reason".into(),
    }
}

fn rpc_exit_code(error: &RpcError) -> u8 {
    // By code, so that an unknown kind has an exit code too.
    match error.code {
        code if code == ErrorKind::InvalidParams.code() => USAGE,
        code if code == ErrorKind::NotFound.code() => NO_SUCH_PROCESS,
        code if code == ErrorKind::Denied.code() => DENIED,
        _ => FAILED,
    }
}

/// Returns the exit code of a failed start. Only the step `exec` is the program's own fault.
fn spawn_failed_exit_code(error: &RpcError) -> u8 {
    let of_program = error.data.get("step").and_then(|step| step.as_str()) == Some("exec");
    match error.data.get("errno").and_then(|errno| errno.as_i64()).filter(|_| of_program) {
        Some(errno) if errno == i64::from(libc::ENOENT) => NOT_FOUND,
        Some(_) => NOT_EXECUTABLE,
        None => FAILED,
    }
}

impl fmt::Display for CliError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CliError::Usage(what) => f.write_str(what),
            CliError::Call(CallError::Unreachable { path, source })
            | CliError::Start(StartError::Unusable(CallError::Unreachable { path, source })) => {
                let place = path.display();
                match missing_directory(path, source) {
                    Some(dir) => write!(f, "no daemon at {place}: there is no directory {}", dir.display())?,
                    None => write!(f, "no daemon at {place}: {source}")?,
                }
                write!(f, "; {}", remedy(path, source, daemon_probe::other_socket))
            }
            CliError::Unavailable(what) => f.write_str(what),
            CliError::WaitTimedOut { time, error } => {
                write!(f, "timed out after {}: {error}", exact(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)))
            }
            CliError::Call(CallError::Rpc(error)) | CliError::SpawnFailed(error) => {
                f.write_str(&error_text::describe(error))
            }
            CliError::Call(error) => error.fmt(f),
            CliError::Start(error) => error.fmt(f),
            CliError::NotRunning(path) => write!(f, "no daemon at {}: there is nothing to stop", path.display()),
            CliError::NoDirectory => f.write_str("the current directory is gone; give --cwd DIR"),
            CliError::OutputClosed => f.write_str("the output was closed"),
            CliError::Io { doing, source } => write!(f, "{doing}: {source}"),
        }
    }
}

impl From<CallError> for CliError {
    fn from(error: CallError) -> CliError {
        CliError::Call(error)
    }
}

impl From<StartError> for CliError {
    fn from(error: StartError) -> CliError {
        CliError::Start(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_in_use_is_reported_with_every_alternative() {
        let error = RpcError::new(ErrorKind::AlreadyExists, "the name \"web\" is in use by proc_0123456789ab");
        let failure = CliError::Call(CallError::Rpc(error.with("process", json!({"name": "web"}))));
        let hint = failure.hint().expect("a way out");
        for way in ["`toolctl kill web`", "another --name", "--if-running return", "--if-running restart"] {
            assert!(hint.contains(way), "{hint}");
        }
        assert_eq!(CliError::Call(CallError::Rpc(RpcError::new(ErrorKind::NotFound, "no process"))).hint(), None);
    }

    #[test]
    fn an_unreachable_daemon_is_reported_with_its_socket_the_reason_and_a_fix() {
        let printed = |kind: io::ErrorKind| {
            CliError::Call(CallError::Unreachable { path: "/r/s".into(), source: kind.into() }).to_string()
        };
        let refused = printed(io::ErrorKind::ConnectionRefused);
        assert!(refused.starts_with("no daemon at /r/s: connection refused; "), "{refused}");
        // The user who runs these tests may have a daemon.
        let alone = remedy(Path::new("/r/s"), &io::ErrorKind::ConnectionRefused.into(), |_| None);
        assert!(alone.starts_with("start one with `"), "{alone}");
        assert!(alone.ends_with("`toold &`, or leave --no-autostart out"), "{alone}");
        assert_eq!(alone.contains("service start"), daemon_probe::has_user_manager(), "{alone}");
        assert!(printed(io::ErrorKind::PermissionDenied).ends_with("`ls -ld /r/s` shows its owner"));
        assert!(printed(io::ErrorKind::UnexpectedEof).ends_with("`toolctl doctor` looks for the reason"));
        let unusable = CallError::Unreachable { path: "/r/s".into(), source: io::ErrorKind::PermissionDenied.into() };
        assert!(CliError::Start(StartError::Unusable(unusable)).to_string().starts_with("no daemon at /r/s: "));
    }

    #[test]
    fn a_daemon_at_another_socket_is_reported_with_how_to_reach_it() {
        let there = Path::new("/r/toold.sock");
        assert_eq!(
            socket_hint(there, there),
            "the one of this state directory listens at /r/toold.sock: leave --socket out"
        );
        assert!(
            socket_hint(there, Path::new("/other"))
                .ends_with("use --socket /r/toold.sock, or `export TOOLD_SOCKET=/r/toold.sock`")
        );
        let missing = |path: &'static str, kind: io::ErrorKind| missing_directory(Path::new(path), &kind.into());
        assert_eq!(missing("/nope/x", io::ErrorKind::NotFound), Some(Path::new("/nope")));
        assert_eq!(missing("/nope/x", io::ErrorKind::ConnectionRefused), None);
        assert_eq!((missing("/x", io::ErrorKind::NotFound), missing("x", io::ErrorKind::NotFound)), (None, None));
    }

    #[test]
    fn a_program_that_could_not_start_has_a_shell_s_code_in_run_and_1_elsewhere() {
        let failed = |step: &str, errno: i32| {
            let error = RpcError::new(ErrorKind::SpawnFailed, "x").with("step", step).with("errno", errno);
            CliError::Call(CallError::Rpc(error))
        };
        let code = |step, errno| (failed(step, errno).exit_code(), failed(step, errno).of_run().exit_code());
        assert_eq!(code("exec", libc::ENOENT), (1, 127));
        assert_eq!(code("exec", libc::EACCES), (1, 126));
        assert_eq!(code("exec", libc::E2BIG), (1, 126));
        assert_eq!(
            (code("pty", libc::ENOENT), code("fork", libc::EAGAIN)),
            ((1, 1), (1, 1)),
            "not the program's fault"
        );
        let refused = CliError::Call(CallError::Rpc(RpcError::new(ErrorKind::Limit, "x"))).of_run();
        assert_eq!(refused.exit_code(), 1);
    }

    #[test]
    fn every_kind_of_error_has_its_documented_exit_code() {
        let codes = [
            (ErrorKind::InvalidParams, 2),
            (ErrorKind::NotFound, 3),
            (ErrorKind::AmbiguousId, 3),
            (ErrorKind::AlreadyExited, 1),
            (ErrorKind::StdinUnavailable, 1),
            (ErrorKind::Limit, 1),
            (ErrorKind::Denied, 5),
            (ErrorKind::SpawnFailed, 1),
            (ErrorKind::AlreadyExists, 1),
            (ErrorKind::Unavailable, 1),
            (ErrorKind::Conflict, 1),
            (ErrorKind::Cancelled, 1),
            (ErrorKind::Internal, 1),
            (ErrorKind::MethodNotFound, 1),
        ];
        for (kind, code) in codes {
            assert_eq!(CliError::Call(CallError::Rpc(RpcError::new(kind, "x"))).exit_code(), code, "{kind:?}");
        }
        let lost = CallError::Unreachable { path: "/s".into(), source: io::ErrorKind::NotFound.into() };
        assert_eq!(CliError::Call(lost).exit_code(), 4);
        assert_eq!(CliError::Call(CallError::Protocol("x".into())).exit_code(), 1);
        assert_eq!(CliError::io("write")(io::ErrorKind::BrokenPipe.into()).exit_code(), 0);
    }
}
