//! `wait`.

use super::context::Daemon;
use super::events::{consumer, exit_receipt};
use super::poll::remember_exit;
use super::process_response::ProcessResponse;
use super::session::check_key;
use super::text_form::{tail_lines, text_form};
use super::wire::Peer;
use crate::clock::wall_ms;
use crate::disk::on_disk;
use crate::proc::Proc;
use crate::proc::condition::{Condition, Reached, wait_for_many};
use crate::proc::output::{OutputError, read_cached_first, read_tail, tail_bound};
use crate::proc::readers::Reader;
use crate::proc::redacted;
use crate::registry::Selector;
use crate::text::TextForm;
use std::sync::Arc;
use std::time::Duration;
use toold_proto::fields::FieldSet;
use toold_proto::params::{Ansi, Encoding};
use toold_proto::results::{WaitStatus, Waited};
use toold_proto::{RpcError, params, results};

const DEFAULT_TIMEOUT_MS: i64 = 180_000;
/// The length of the output of each process in the answer, in characters.
const TAIL_CHARS: usize = 2000;
/// The length of the last lines of a process.
const MAX_TAIL_LEN: usize = 64 * 1024;
/// The same for one of many: a wait for all that there can be must not need more memory than with characters.
const MAX_LISTED_TAIL_LEN: usize = 4 * TAIL_CHARS;
/// The most processes whose views are as long as that of one. Those of more are as in a list.
const MAX_SINGLE_VIEWS: usize = 4;
/// The most processes in one wait.
const MAX_PROCESSES: usize = 4096;

pub async fn wait(
    call: params::WaitParams,
    daemon: Arc<Daemon>,
    peer: Arc<Peer>,
) -> Result<ProcessResponse<results::WaitResult>, RpcError> {
    let fields = FieldSet::of::<Waited>(&call)?;
    let view = OutputView {
        tail_lines: tail_lines(call.tail_lines)?,
        form: text_form(Ansi::Strip, Encoding::Text, call.collapse)?,
    };
    let asked = call.timeout_ms.unwrap_or(DEFAULT_TIMEOUT_MS);
    if asked <= 0 {
        return Err(RpcError::too_small("timeout_ms", 1, asked));
    }
    let procs = selected(&call, &daemon)?;
    daemon.sessions.add_use(&peer.sessions, call.session_key.as_deref());
    let max = daemon.registry.config.max_wait_ms;
    let timeout_ms = (asked as u64).min(max);
    let clamped = asked as u64 > max;
    let condition = Condition::new("until", &call.until)?;
    let consumer = match call.consumer.as_deref() {
        Some(name) => on_disk(async { consumer(&daemon, Some(name)) }).await?,
        None => None,
    };
    let _readers: Vec<Reader> = procs.iter().map(Proc::add_reader).collect();
    let timeout = Duration::from_millis(timeout_ms);
    let reached = match procs.is_empty() {
        true => Some(Vec::new()),
        false => wait_for_many(&procs, &condition, call.mode, call.or_input, timeout).await?,
    };
    for proc in &procs {
        proc.retry_known().await;
    }
    let status = match &reached {
        None => WaitStatus::Timeout,
        Some(reached) if reached.contains(&Reached::Input) => WaitStatus::Input,
        Some(reached) if reached.iter().any(|one| *one != Reached::Exit) => WaitStatus::Matched,
        Some(_) => WaitStatus::Exited,
    };
    let reached = reached.unwrap_or_else(|| vec![Reached::Exit; procs.len()]);
    let is_one_of_many = procs.len() > MAX_SINGLE_VIEWS;
    let read =
        || procs.iter().map(|proc| waited(proc, &peer, is_one_of_many, view)).collect::<Result<Vec<Waited>, _>>();
    let mut processes = read_cached_first(read).await?;
    if call.redact {
        for (proc, waited) in procs.iter().zip(&mut processes) {
            let known = proc.secrets_for_reader().await;
            let from = waited.next_cursor.saturating_sub(waited.output.len() as u64);
            let part = redacted::Part { from, to: waited.next_cursor, stream: None };
            let redacted = redacted::redact(proc, &proc.state(), &waited.output, part, &known);
            waited.output = redacted.map_err(OutputError::of(proc))?;
            proc.redact_prompt(&mut waited.process, &known);
        }
    }
    for (process, reached) in processes.iter_mut().zip(reached) {
        match reached {
            Reached::Match(line) => process.matched = Some(line),
            Reached::Port(listener) => process.listener = Some(listener),
            Reached::Quiet | Reached::Input | Reached::Exit => {}
        }
    }
    let exited = procs.iter().zip(&processes).filter(|(_, waited)| waited.process.exited_at.is_some());
    let receipt = exit_receipt(&daemon, consumer, exited.map(|(proc, _)| proc));
    let note = clamped.then(|| format!("the timeout of {asked} ms was cut to max_wait_ms, {max} ms"));
    let result = results::WaitResult { status, processes, timeout_ms, clamped, note };
    Ok(ProcessResponse { result, fields, receipt })
}

fn selected(call: &params::WaitParams, daemon: &Daemon) -> Result<Vec<Arc<Proc>>, RpcError> {
    if let Some(key) = &call.session_key {
        if call.id.is_some() || call.ids.is_some() {
            return Err(RpcError::param("session_key", "give either ids or session_key, not both"));
        }
        check_key(key, daemon)?;
        let selector = Selector { session_key: Some(key.clone()), ..Selector::default() };
        let mut procs = daemon.registry.select_running(&selector);
        procs.truncate(MAX_PROCESSES);
        return Ok(procs);
    }
    let ids = match (&call.id, &call.ids) {
        (Some(_), Some(_)) => return Err(RpcError::param("id", "give either id or ids, not both")),
        (None, None) => return Err(RpcError::param("id", "give id, ids or session_key")),
        (Some(id), None) => std::slice::from_ref(id),
        (None, Some(ids)) if ids.is_empty() => return Err(RpcError::param("ids", "must not be empty")),
        (None, Some(ids)) if ids.len() > MAX_PROCESSES => {
            return Err(RpcError::param("ids", format!("must be at most {MAX_PROCESSES}, not {}", ids.len())));
        }
        (None, Some(ids)) => ids.as_slice(),
    };
    ids.iter().map(|id| daemon.find_by(if call.id.is_some() { "id" } else { "ids" }, id)).collect()
}

/// The part of the output to show, and its form.
#[derive(Clone, Copy)]
struct OutputView {
    /// None: the last characters.
    tail_lines: Option<usize>,
    form: TextForm,
}

fn waited(proc: &Proc, peer: &Peer, is_one_of_many: bool, view: OutputView) -> Result<Waited, OutputError> {
    let state = proc.state();
    remember_exit(peer, proc, &state);
    let max_len = if is_one_of_many { MAX_LISTED_TAIL_LEN } else { MAX_TAIL_LEN };
    let bound = tail_bound(view.tail_lines, TAIL_CHARS, max_len);
    let (output, next_cursor) = read_tail(proc, &state, bound, view.form)?;
    let process = if is_one_of_many { proc.listed_view(&state, wall_ms()) } else { proc.view_of(&state, wall_ms()) };
    Ok(Waited { process, output, next_cursor, matched: None, listener: None })
}
