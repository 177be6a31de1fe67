//! Maps the typed errors of the layers below to error answers, for everyone who answers calls: `rpc` and the layers just below
//! it.

mod files;
mod patch;
mod sandbox;

pub use files::swapped;

use crate::admission::AdmitError;
use crate::approvals::ExecError;
use crate::backend::process_limit;
use crate::clock::wall_ms;
use crate::policy::PolicyRefusal;
use crate::proc::handle::NoReply;
use crate::proc::output::OutputError;
use crate::proc::screen::{MAX_CELLS, ScreenError};
use crate::proc::stdin::StdinError;
use crate::proc::{Proc, view};
use crate::registry::{FindError, SetAside, SpawnError};
use crate::spec::{AskError, InvalidParam, Problem, SpecError};
use toold_format::step;
use toold_policy::RuleError;
use toold_proto::approval::{Approval, ApprovalState};
use toold_proto::process::{Failure, LimitReport};
use toold_proto::pty::PtySize;
use toold_proto::{ErrorKind, ProcId, RpcError};

impl From<InvalidParam> for RpcError {
    fn from(invalid: InvalidParam) -> RpcError {
        match invalid.problem {
            Problem::Text(text) => RpcError::param(&invalid.param, text),
            Problem::TooSmall { min, given } => RpcError::too_small(&invalid.param, min, given),
            Problem::TooLong { key, max, given } => {
                let problem = format!("must be at most {max} bytes, not {given} (config key `{key}`)");
                RpcError::param(&invalid.param, problem).with("limit", key).with("max", max).with("given", given)
            }
        }
    }
}

impl From<SpecError> for RpcError {
    fn from(error: SpecError) -> RpcError {
        match error {
            SpecError::InvalidParam(invalid) => invalid.into(),
            SpecError::UnknownBackend(name) => {
                let message = format!("unknown backend {name:?}; the only backend is `local`");
                RpcError::new(ErrorKind::Unavailable, message).with("backend", name)
            }
        }
    }
}

impl From<AdmitError> for RpcError {
    fn from(error: AdmitError) -> RpcError {
        match error {
            AdmitError::Spec(error) => error.into(),
            AdmitError::Sandbox(error) => error.into(),
            AdmitError::Refused(refusal) => refusal.into(),
            AdmitError::Exec(error) => error.into(),
            AdmitError::Patch(error) => error.into(),
        }
    }
}

impl From<PolicyRefusal> for RpcError {
    fn from(refusal: PolicyRefusal) -> RpcError {
        let PolicyRefusal { reason, rule } = refusal;
        let error = RpcError::new(ErrorKind::Denied, format!("denied: {reason}")).with("reason", reason);
        match rule {
            Some(rule) => error.with("rule", serde_json::to_value(rule).unwrap_or_default()),
            None => error,
        }
    }
}

/// Builds the error for a rule file that was refused.
pub fn rule_error(error: RuleError) -> RpcError {
    let message = format!("{error}; the rules stay as they were");
    let RuleError { file, index, example, why } = error;
    RpcError::new(ErrorKind::InvalidParams, message)
        .with("param", "rules")
        .with("problem", why)
        .with("file", file)
        .with("index", index.map(|index| index as u64))
        .with("example", example)
}

impl From<SpawnError> for RpcError {
    fn from(error: SpawnError) -> RpcError {
        match error {
            SpawnError::TooManyPending { limit } => RpcError::limit(
                "max_pending",
                format!("{limit} processes wait already; wait for some, or raise the limit"),
            ),
            SpawnError::Ask(error) => error.into(),
            SpawnError::AskToReplace => {
                let problem = "`restart` would kill the running process before a person has answered; kill it first";
                RpcError::param("if_running", problem)
            }
            SpawnError::After(error) => find_error("after", error),
            SpawnError::TooManyRunning { limit } => {
                let message = format!("{limit} processes run already; kill or wait for some, or raise the limit");
                RpcError::limit("max_running", message)
            }
            SpawnError::NameInUse(holder) => {
                let name = holder.spec.name.as_deref().unwrap_or_default();
                let message = format!("the name {name:?} is in use by {}", holder.spec.id);
                RpcError::new(ErrorKind::AlreadyExists, message).with("process", process(&holder))
            }
            SpawnError::Survivors { proc, survivors } => {
                let pids: Vec<String> = survivors.iter().map(|member| member.pid.to_string()).collect();
                let (name, id) = (proc.spec.name.as_deref().unwrap_or_default(), proc.spec.id);
                let pids = pids.join(", ");
                let message =
                    format!("the name {name:?} is in use: {id} was killed, but of its tree pid {pids} survived");
                RpcError::new(ErrorKind::AlreadyExists, message)
                    .with("process", process(&proc))
                    .with("survivors", serde_json::to_value(&survivors).unwrap_or_default())
            }
            SpawnError::NotExecutable(failure) => spawn_failed(failure, "; the running process was left alone"),
            SpawnError::Unenforced(limits) => {
                let one = |(key, report): (&String, &LimitReport)| {
                    format!("limits.{key} cannot be enforced here: {}", report.note.as_deref().unwrap_or("no reason"))
                };
                let message = limits.iter().map(one).collect::<Vec<_>>().join("; ") + "; nothing was started";
                RpcError::new(ErrorKind::Unavailable, message)
                    .with("limits", serde_json::to_value(&limits).unwrap_or_default())
            }
            SpawnError::Record { dir, source } => {
                let message = format!("record the process in {}: {source}", dir.display());
                RpcError::new(ErrorKind::SpawnFailed, message)
                    .with("step", "record")
                    .with("errno", source.raw_os_error().unwrap_or(0))
                    .with("path", dir.display().to_string())
            }
            SpawnError::Request { proc, source } => {
                let (id, path) = (proc.spec.id, proc.dir.display().to_string());
                let message = format!("record the request_id for {id}, which runs, in {path}: {source}");
                RpcError::new(ErrorKind::SpawnFailed, message)
                    .with("step", "record")
                    .with("errno", source.raw_os_error().unwrap_or(0))
                    .with("path", path)
                    .with("process", process(&proc))
            }
            SpawnError::Conflict { proc, request_id } => {
                let (id, command) = (proc.spec.id, &proc.spec.command);
                let message = format!(
                    "the request_id {request_id:?} belongs to {id} ({command:.80}), which was started with another command, \
                     directory, names of variables, limits, backend or name; repeat that call unchanged, or use another request_id"
                );
                RpcError::new(ErrorKind::Conflict, message)
                    .with("request_id", request_id)
                    .with("process", process(&proc))
            }
            SpawnError::Sandbox(error) => error.into(),
            SpawnError::Random(e) => RpcError::new(ErrorKind::Internal, format!("no random bytes: {e}")),
            SpawnError::IdTaken(id) => RpcError::new(ErrorKind::Internal, format!("the id {id} is taken; try again")),
            SpawnError::NoEnvironment(proc) => {
                let id = proc.spec.id;
                let problem =
                    format!("must be given: {id} had values of its own, and they are kept only while its shim lives");
                RpcError::param("env", problem).with("reason", "environment_lost").with("id", id.to_string())
            }
            SpawnError::NoReply { proc, why } => no_reply(&proc, why),
            SpawnError::Failed(proc) => match view::outcome(&proc.spec, &proc.published_state()).failure {
                Some(failure) => {
                    let is_limit = failure.errno == libc::EAGAIN && failure.step == step::name(step::FORK);
                    let why = if is_limit { process_limit::explain() } else { String::new() };
                    spawn_failed(failure, &why).with("id", proc.spec.id.to_string()).with("process", process(&proc))
                }
                None => RpcError::new(ErrorKind::Internal, "a start failed without a reason"),
            },
        }
    }
}

/// Builds the error for a program that cannot be started.
fn spawn_failed(failure: Failure, remark: &str) -> RpcError {
    let cause = std::io::Error::from_raw_os_error(failure.errno);
    RpcError::new(ErrorKind::SpawnFailed, format!("{} {}: {cause}{remark}", failure.step, failure.path))
        .with("step", failure.step)
        .with("errno", failure.errno)
        .with("error", failure.error)
        .with("path", failure.path)
}

fn process(proc: &Proc) -> serde_json::Value {
    serde_json::to_value(proc.listed_view(&proc.state(), wall_ms())).unwrap_or_default()
}

/// Builds the error for a parameter that names no process.
pub fn find_error(param: &str, error: FindError) -> RpcError {
    match error {
        FindError::Empty => RpcError::param(param, "must name a process"),
        FindError::NotFound(text) => {
            let short =
                if ProcId::is_short_prefix(&text) { ", and the start of an id needs at least 4 digits" } else { "" };
            let message = format!("no process {text:?}{short}; `list` shows what there is");
            RpcError::new(ErrorKind::NotFound, message).with("id", text)
        }
        FindError::SetAside { id, aside } => {
            let (kind, text) = match aside {
                SetAside::Damaged(text) => (ErrorKind::NotFound, text),
                SetAside::Unread(text) => (ErrorKind::Unavailable, text),
            };
            let message = format!("{id} cannot be loaded: {text}");
            RpcError::new(kind, message).with("id", id.to_string()).with("damaged", [text].as_slice())
        }
        FindError::Ambiguous { text, ids } => {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            let message = format!("{text:?} fits more than one process: {}; give more digits", ids.join(", "));
            RpcError::new(ErrorKind::AmbiguousId, message).with("matches", ids)
        }
        FindError::NameOrPrefix { text, ids } => {
            let ids: Vec<String> = ids.iter().map(ToString::to_string).collect();
            let (named, others) = (&ids[0], ids[1..].join(", "));
            let message =
                format!("{text:?} is the name of {named} and the start of the id of {others}; give a whole id");
            RpcError::new(ErrorKind::AmbiguousId, message).with("matches", ids)
        }
    }
}

impl From<OutputError> for RpcError {
    fn from(error: OutputError) -> RpcError {
        match error {
            OutputError::Read { id, source } => {
                RpcError::new(ErrorKind::Internal, format!("read the output of {id}: {source}"))
            }
            OutputError::TooSlow(message) => RpcError::limit("max_search_ms_per_mib", message),
        }
    }
}

/// Builds the error for a process without a terminal.
pub fn no_terminal(proc: &Proc) -> RpcError {
    let problem = format!("{} has no terminal; start it with pty: true", proc.spec.id);
    RpcError::param("id", problem).with("reason", "no_pty").with("id", proc.spec.id.to_string())
}

/// Builds the error for a screen that cannot be drawn.
pub fn screen_error(proc: &Proc, error: ScreenError) -> RpcError {
    let id = proc.spec.id;
    match error {
        ScreenError::NoTerminal => no_terminal(proc),
        ScreenError::TooLarge(PtySize { rows, cols }) => {
            let problem = format!(
                "the terminal of {id} has {rows} rows of {cols} characters, and a screen is drawn up to {MAX_CELLS} \
                 characters; make it smaller with `resize`"
            );
            RpcError::param("id", problem).with("reason", "too_large").with("id", id.to_string())
        }
        ScreenError::Io(e) => RpcError::new(ErrorKind::Internal, format!("draw the screen of {id}: {e}")),
    }
}

/// Builds the error for a request that the shim did not answer.
pub fn no_reply(proc: &Proc, why: NoReply) -> RpcError {
    match why {
        NoReply::Gone if proc.published_state().has_ended() => already_exited(proc),
        NoReply::Gone => {
            let id = proc.spec.id;
            let message = format!("the connection to the shim of {id} broke before it answered; the process runs");
            RpcError::new(ErrorKind::Unavailable, message).with("shim_pid", proc.published_state().shim_pid)
        }
        NoReply::Pending => {
            let message =
                format!("{} is pending: it has not started yet, and `pending_on` has the reason", proc.spec.id);
            RpcError::new(ErrorKind::Unavailable, message).with("process", process(proc))
        }
        NoReply::Unreachable => {
            let (id, why) = (proc.spec.id, proc.unreachable().unwrap_or_default());
            RpcError::new(ErrorKind::Unavailable, format!("{id}: {why}"))
                .with("shim_pid", proc.published_state().shim_pid)
        }
        NoReply::Unresponsive => {
            let (id, shim) = (proc.spec.id, proc.published_state().shim_pid);
            let message =
                format!("the shim of {id} (pid {shim}) does not answer; it is stopped, frozen or waits for its disk");
            RpcError::new(ErrorKind::Unavailable, message).with("shim_pid", shim)
        }
    }
}

/// Builds the error for a process that has ended. `data` has its exit.
pub fn already_exited(proc: &Proc) -> RpcError {
    let process = proc.listed_view(&proc.state(), wall_ms());
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

impl From<ExecError> for RpcError {
    fn from(error: ExecError) -> RpcError {
        match error {
            ExecError::Spawn(error) => error.into(),
            ExecError::NotAsked { reason, message } => RpcError::new(ErrorKind::Denied, message).with("reason", reason),
        }
    }
}

impl From<AskError> for RpcError {
    fn from(error: AskError) -> RpcError {
        match error {
            AskError::TooMany { limit } => {
                let message = format!("{limit} questions of this session wait already; decide or withdraw some");
                RpcError::limit("policy.max_pending", message)
            }
            AskError::Store { path, source } => {
                let message = format!("record the question in {}: {source}; nothing was started", path.display());
                RpcError::new(ErrorKind::Internal, message)
            }
            AskError::Random(e) => RpcError::new(ErrorKind::Internal, format!("no random bytes: {e}")),
        }
    }
}

/// Builds the error for a process that was not approved.
pub fn denied(proc: &Proc, approval: Option<&Approval>) -> RpcError {
    let id = proc.spec.id.to_string();
    let error = match approval {
        Some(approval) => not_approved(&id, approval, "it did not run"),
        None => RpcError::new(ErrorKind::Denied, format!("{id} was denied; it did not run")).with("reason", "denied"),
    };
    error.with("process", process(proc))
}

/// Builds the error for a question that was not answered with yes. `effect`: the state of what was asked for.
pub fn not_approved(what: &str, approval: &Approval, effect: &str) -> RpcError {
    let (reason, why) = match approval.state {
        ApprovalState::Timeout => ("timeout", "was not approved in time"),
        ApprovalState::Withdrawn => ("withdrawn", "was not approved: the question was withdrawn"),
        ApprovalState::Aborted => ("aborted", "was denied, with the rest of its task"),
        ApprovalState::Denied | ApprovalState::Pending | ApprovalState::Approved => ("denied", "was denied"),
    };
    let message = approval.message.clone();
    let text = message.as_ref().map_or_else(String::new, |message| format!(": {message}"));
    RpcError::new(ErrorKind::Denied, format!("{what} {why}{text}; {effect}"))
        .with("reason", reason)
        .with("approval", approval.id.to_string())
        .with("message", message)
}

/// Fails if the process has ended.
pub fn check_running(proc: &Proc) -> Result<(), RpcError> {
    if proc.published_state().has_ended() { Err(already_exited(proc)) } else { Ok(()) }
}

/// Builds the error for a write or close. In `stdin_unavailable`, `data.reason` is `not_piped`, `closed`, `full` or `echo`.
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
        StdinError::Full => {
            let message = format!(
                "the terminal of {id} takes no input now: its queue is full, and end-of-file was not typed; \
                 try again when the program has read"
            );
            (unavailable("full", message), None)
        }
        StdinError::Echo { known } => {
            let why = if known { "shows what is typed" } else { "cannot be checked" };
            let message = format!(
                "the terminal of {id} {why}, so the secret would be in its log; nothing was written; \
                 try again when the program asks for it"
            );
            (unavailable("echo", message), None)
        }
        StdinError::Errno(errno) => {
            let why = std::io::Error::from_raw_os_error(errno);
            (RpcError::new(ErrorKind::Internal, format!("close the stdin of {id}: {why}")), None)
        }
        StdinError::NoReply(why) => (no_reply(proc, why), None),
    };
    match bytes {
        Some(bytes) => error.with("bytes_written", bytes),
        None => error,
    }
}
