//! Maps the typed errors of the layers below to error answers.

use crate::proc::Proc;
use crate::proc::handle::NoReply;
use crate::proc::output::OutputError;
use crate::proc::stdin::StdinError;
use crate::spec::{self, InvalidParam, Problem};
use toold_proto::{ErrorKind, RpcError};

impl From<InvalidParam> for RpcError {
    fn from(invalid: InvalidParam) -> RpcError {
        match invalid.problem {
            Problem::Text(text) => RpcError::param(&invalid.param, text),
            Problem::TooSmall { min, given } => RpcError::too_small(&invalid.param, min, given),
        }
    }
}

impl From<spec::Error> for RpcError {
    fn from(error: spec::Error) -> RpcError {
        match error {
            spec::Error::InvalidParam(invalid) => invalid.into(),
            spec::Error::UnknownBackend(name) => {
                let message = format!("there is no backend {name:?} here; `local` is the one there is");
                RpcError::new(ErrorKind::Unavailable, message).with("backend", name)
            }
        }
    }
}

impl From<OutputError> for RpcError {
    fn from(error: OutputError) -> RpcError {
        RpcError::new(ErrorKind::Internal, format!("read the output of {}: {}", error.id, error.source))
    }
}

/// The error for a call that got no answer.
pub fn no_reply(proc: &Proc, why: NoReply) -> RpcError {
    match why {
        NoReply::Gone => already_exited(proc),
        NoReply::Unresponsive => {
            let (id, shim) = (proc.spec.id, proc.published_state().shim_pid);
            let message =
                format!("the shim of {id} (pid {shim}) does not answer; it is stopped, frozen or waits for its disk");
            RpcError::new(ErrorKind::Unavailable, message).with("shim_pid", shim)
        }
    }
}

/// The error for a process that has ended, with how.
pub fn already_exited(proc: &Proc) -> RpcError {
    let process = proc.view(crate::clock::wall_ms());
    let message = match (&process.signal, process.exit_code) {
        (Some(signal), _) => format!("{} has ended, by {signal}", proc.spec.id),
        (None, Some(code)) => format!("{} has exited with code {code}", proc.spec.id),
        (None, None) => format!("{} has ended", proc.spec.id),
    };
    let (code, signal) = (process.exit_code, process.signal.clone());
    RpcError::new(ErrorKind::AlreadyExited, message)
        .with("exit_code", code)
        .with("signal", signal)
        .with("process", serde_json::to_value(process).unwrap_or_default())
}

pub fn check_running(proc: &Proc) -> Result<(), RpcError> {
    if proc.published_state().has_ended() { Err(already_exited(proc)) } else { Ok(()) }
}

/// Builds the error for a write or close. In `stdin_unavailable`, `data.reason` is `not_piped` or `closed`.
pub fn stdin_error(proc: &Proc, error: StdinError) -> RpcError {
    let id = proc.spec.id;
    let unavailable = |reason, message: String| {
        RpcError::new(ErrorKind::StdinUnavailable, message).with("reason", reason).with("id", id.to_string())
    };
    let (error, bytes) = match error {
        StdinError::Ended { bytes } => (already_exited(proc), bytes),
        StdinError::NotPiped => {
            let message = format!("{id} was started without stdin; start it with stdin: \"pipe\" or pty: true");
            (unavailable("not_piped", message), None)
        }
        StdinError::Closed { bytes } => (unavailable("closed", format!("the stdin of {id} is closed")), bytes),
        StdinError::NoReply(why) => (no_reply(proc, why), None),
    };
    match bytes {
        Some(bytes) => error.with("bytes_written", bytes),
        None => error,
    }
}
