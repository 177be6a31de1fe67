//! `pause`.

use super::context::Daemon;
use super::process_response::PreviewedResponse;
use super::wire::Peer;
use crate::call_error::{already_exited, check_running, no_reply};
use crate::clock::wall_ms;
use crate::proc::Proc;
use crate::proc::control::Control;
use crate::proc::handle::NoReply;
use crate::store::shim_level;
use std::sync::Arc;
use toold_proto::fields::FieldSet;
use toold_proto::process::Process;
use toold_proto::{ErrorKind, RpcError, params, results};

pub async fn pause(
    call: params::PauseParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<PreviewedResponse<results::PauseResult>, RpcError> {
    let fields = FieldSet::of::<results::PauseResult>(&call)?;
    let proc = find_pausable(&daemon, &call.id)?;
    let result = results::PauseResult { process: described(&proc, "pause", proc.control(Control::Pause).await)? };
    Ok(PreviewedResponse::new(result, fields, &proc).await)
}

/// Finds a running process whose shim can stop and continue it.
pub fn find_pausable(daemon: &Daemon, id: &str) -> Result<Arc<Proc>, RpcError> {
    let proc = daemon.find(id)?;
    check_running(&proc)?;
    if !shim_level::reports_stops(proc.spec.shim_level) {
        let id = proc.spec.id;
        let message = format!("{id} was started by an earlier version of toold; use `signal` with SIGSTOP and SIGCONT");
        return Err(RpcError::new(ErrorKind::Unavailable, message).with("id", id.to_string()));
    }
    Ok(proc)
}

/// Describes the process after the shim's answer.
pub fn described(proc: &Proc, verb: &str, answer: Result<i32, NoReply>) -> Result<Process, RpcError> {
    match answer {
        Ok(0) => Ok(proc.view(wall_ms())),
        Ok(libc::ESRCH) => Err(already_exited(proc)),
        Ok(errno) => {
            let why = std::io::Error::from_raw_os_error(errno);
            Err(RpcError::new(ErrorKind::Internal, format!("{verb} {}: {why}", proc.spec.id)))
        }
        Err(e) => Err(no_reply(proc, e)),
    }
}
