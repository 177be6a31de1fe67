//! `resize`.

use super::context::Daemon;
use super::wire::Peer;
use crate::call_error::{already_exited, check_running, no_reply, no_terminal};
use crate::proc::control::Control;
use crate::spec::terminal_size;
use std::sync::Arc;
use toold_proto::{ErrorKind, RpcError, params, results};

pub async fn resize(
    call: params::ResizeParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<results::ResizeResult, RpcError> {
    let size = terminal_size(call.rows, call.cols)?;
    let proc = daemon.find(&call.id)?;
    if proc.spec.pty.is_none() {
        return Err(no_terminal(&proc));
    }
    check_running(&proc)?;
    match proc.control(Control::Resize { rows: size.rows as u16, cols: size.cols as u16 }).await {
        Ok(0) => Ok(results::ResizeResult { id: proc.spec.id, rows: size.rows, cols: size.cols }),
        Ok(_) if proc.published_state().has_ended() => Err(already_exited(&proc)),
        Ok(errno) => {
            let why = std::io::Error::from_raw_os_error(errno);
            Err(RpcError::new(ErrorKind::Internal, format!("resize the terminal of {}: {why}", proc.spec.id)))
        }
        Err(e) => Err(no_reply(&proc, e)),
    }
}
