//! `exec`.

use super::context::Daemon;
use super::events::{consumer, exit_receipt};
use super::poll::remember_exit;
use super::process_response::ProcessResponse;
use super::text_form::{tail_lines, text_form};
use super::wire::{Peer, cancel};
use crate::admission::{self, StartExtras};
use crate::approvals::caller;
use crate::call_error::denied;
use crate::clock::wall_ms;
use crate::proc::condition::Readiness;
use crate::proc::hold::Claim;
use crate::proc::output::{FittedOutput, read_fitted};
use crate::proc::state::State;
use crate::proc::view;
use crate::registry::{NamePolicy, Spawned};
use std::sync::Arc;
use std::time::Duration;
use toold_proto::fields::FieldSet;
use toold_proto::params::{Ansi, Encoding};
use toold_proto::process::Reason;
use toold_proto::{RpcError, params, results};

/// The output in an answer, in tokens, if the call has no `max_output_tokens`.
const DEFAULT_OUTPUT_TOKENS: u64 = 10_000;
/// The most output in an answer, in tokens. The answer has the range that was cut; `poll` reads it.
const MAX_OUTPUT_TOKENS: u64 = 1 << 20;

pub async fn exec(
    mut call: params::ExecParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<ProcessResponse<results::ExecResult>, RpcError> {
    let fields = FieldSet::of::<results::ExecResult>(&call)?;
    let tail_lines = tail_lines(call.tail_lines)?;
    let form = text_form(Ansi::Strip, Encoding::Text, call.collapse)?;
    let config = &daemon.registry.config;
    if call.hold {
        peer.check_follows()?;
    }
    daemon.sessions.add_use(&peer.sessions, call.session_key.as_deref());
    let readiness = Readiness::from_call(&call, config.max_wait_ms)?;
    let consumer = consumer(&daemon, call.consumer.as_deref())?;
    let policy = NamePolicy { if_running: call.if_running, uid: peer.uid, pid: peer.pid };
    let by = || caller(peer.uid, peer.pid);
    let Spawned { proc, existing } = admission::exec(
        &daemon.approvals,
        &daemon.judge,
        &daemon.patches,
        &mut call,
        policy,
        StartExtras::default(),
        by,
    )
    .await?;
    if call.hold {
        let claim = match existing {
            false => Claim::Start,
            // The same request again, after a lost connection: the process is this client's own.
            true if call.request_id.is_some() && call.request_id == proc.spec.request_id => Claim::Own,
            true => Claim::IfFree,
        };
        peer.holds.take(peer.connection, &proc, 0, claim);
    }
    let wait = async {
        if proc.published_state().asking && (readiness.is_some() || call.yield_ms > 0) {
            // The time of an approval is not counted.
            proc.answered().await;
        }
        if let Some(readiness) = readiness {
            return Box::pin(readiness.wait(&proc)).await.map(Some);
        }
        if call.yield_ms > 0 {
            let timeout = Duration::from_millis(call.yield_ms.min(config.max_wait_ms));
            let mut state = proc.subscribe();
            // The exit, and not the close: a descendant may hold a pipe open.
            let _ = tokio::time::timeout(timeout, state.wait_for(State::has_ended)).await;
        }
        Ok(None)
    };
    let ready = tokio::select! {
        biased;
        ready = wait => ready?,
        // The process runs on, and the caller may know it only by its `request_id`.
        () = cancel::requested() => return Err(cancel::cancelled().with("id", proc.spec.id.to_string())),
    };
    proc.retry_known().await;
    let state = proc.state();
    if view::outcome(&proc.spec, &state).reason == Some(Reason::Denied) {
        let approval = proc.spec.policy.as_ref().and_then(|policy| policy.approval);
        return Err(denied(&proc, approval.and_then(|id| daemon.approvals.get(id)).as_ref()));
    }
    remember_exit(&peer, &proc, &state);
    let max_tokens = call.max_output_tokens.unwrap_or(DEFAULT_OUTPUT_TOKENS).min(MAX_OUTPUT_TOKENS);
    let FittedOutput { output, next, truncated, gap } = read_fitted(&proc, &state, max_tokens, tail_lines, form)?;
    let process = proc.view_of(&state, wall_ms());
    let receipt = exit_receipt(&daemon, consumer, process.exited_at.is_some().then_some(&*proc).into_iter());
    let result = results::ExecResult { process, output, next_cursor: next, truncated, gap, existing, ready };
    Ok(ProcessResponse { result, fields, receipt })
}
