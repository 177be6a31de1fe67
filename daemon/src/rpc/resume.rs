//! `resume`.

use super::context::Daemon;
use super::pause::{described, find_pausable};
use super::process_response::PreviewedResponse;
use super::wire::Peer;
use crate::proc::control::Control;
use std::sync::Arc;
use toold_proto::fields::FieldSet;
use toold_proto::{RpcError, params, results};

pub async fn resume(
    call: params::ResumeParams,
    daemon: Arc<Daemon>,
    _: Arc<Peer>,
) -> Result<PreviewedResponse<results::ResumeResult>, RpcError> {
    let fields = FieldSet::of::<results::ResumeResult>(&call)?;
    let proc = find_pausable(&daemon, &call.id)?;
    let result = results::ResumeResult { process: described(&proc, "resume", proc.control(Control::Resume).await)? };
    Ok(PreviewedResponse::new(result, fields, &proc).await)
}
