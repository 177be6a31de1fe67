//! `resume`.

use super::context::Daemon;
use super::pause::{described, find_pausable};
use super::wire::Peer;
use crate::proc::control::Control;
use std::sync::Arc;
use toold_proto::{RpcError, params, results};

pub async fn resume(
    call: params::ResumeParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<results::ResumeResult, RpcError> {
    let proc = find_pausable(&daemon, &call.id)?;
    Ok(results::ResumeResult { process: described(&proc, "resume", proc.control(Control::Resume).await)? })
}
