//! `signal`.

use super::context::Daemon;
use super::wire::Peer;
use crate::call_error::{already_exited, check_running, no_reply};
use crate::proc::control::Control;
use crate::proc::view;
use std::sync::Arc;
use toold_proto::{ErrorKind, RpcError, params, results};

pub async fn signal(
    call: params::SignalParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<results::SignalResult, RpcError> {
    let number = signal_number(&call.signal)?;
    let proc = daemon.find(&call.id)?;
    check_running(&proc)?;
    match proc.control(Control::Signal(number)).await {
        Ok(0) => Ok(results::SignalResult { id: proc.spec.id, signal: view::signal_name(number) }),
        Ok(libc::ESRCH) => Err(already_exited(&proc)),
        Err(e) => Err(no_reply(&proc, e)),
        Ok(errno) => {
            let why = std::io::Error::from_raw_os_error(errno);
            Err(RpcError::new(ErrorKind::Internal, format!("signal {}: {why}", proc.spec.id)))
        }
    }
}

/// Returns the number of a signal by name.
pub fn signal_number(name: &str) -> Result<i32, RpcError> {
    view::signal_number(name)
        .ok_or_else(|| RpcError::param("signal", format!("there is no signal {name:?}; SIGTERM is one")))
}
