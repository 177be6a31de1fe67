//! The channel of a script: a socket of its own, on which it calls tools with the authority of the script and nothing else. A
//! client shows the token of the script and is a process of its tree.

use super::context::Daemon;
use super::register::{parse, register_raw};
use super::wire::{self, Peer, Serialized, Wire, WireLimits, cancel};
use crate::disk;
use crate::script::{LiveScript, NextCell, Report, check_toolset};
use crate::tools::dispatcher::CallRequest;
use crate::tools::journal::CallOutcome;
use jsonrpsee::Methods;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::os::unix::net::UnixListener;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use toold_proto::script::ResultFile;
use toold_proto::tools::{ToolsListParams, Toolset};
use toold_proto::{ErrorKind, RpcError};

/// The most connections to one channel: a process of the script's tree has one each.
const MAX_CONNECTIONS: usize = 256;
/// The most calls in flight on one connection. More wait in the script; `max_parallel` bounds those that run.
const MAX_REQUESTS_IN_FLIGHT: usize = 4096;
/// The longest id of a call.
const MAX_CALL_ID_LEN: usize = 64;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct HelloParams {
    #[serde(default)]
    token: Option<String>,
    #[serde(default)]
    pid: Option<i64>,
}

#[derive(Serialize)]
struct HelloResult {
    script: String,
    cwd: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CallParams {
    name: String,
    #[serde(default = "empty_object")]
    args: Value,
    #[serde(default)]
    timeout_ms: Option<u64>,
    /// None: the process that calls does not know it, and has the authority of the cell that runs.
    #[serde(default)]
    cell: Option<u64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NextParams {
    after: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StoppingParams {
    cell: u64,
}

#[derive(Serialize)]
struct StoppingResult {
    /// The cell is to be interrupted. False: it has ended.
    stopping: bool,
}

fn empty_object() -> Value {
    Value::Object(Default::default())
}

/// The answer of a call: its result, or the file that has it.
#[derive(Serialize)]
struct CallAnswer {
    call: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<ResultFile>,
}

/// Serves the channel of a script until the script has ended.
pub fn serve(daemon: Arc<Daemon>, listener: UnixListener, live: Arc<LiveScript>) {
    let listener = match tokio::net::UnixListener::from_std(listener) {
        Ok(listener) => listener,
        Err(error) => return tracing::error!(id = %live.id, %error, "the channel of a script cannot be served"),
    };
    let limits = WireLimits {
        max_connections: MAX_CONNECTIONS,
        max_requests_in_flight: MAX_REQUESTS_IN_FLIGHT,
        max_subscriptions: 0,
        ..WireLimits::from(&daemon.registry.config)
    };
    let closing = live.closing.subscribe();
    let own_uid = nix::unistd::getuid().as_raw();
    let wire = Wire::new(methods(&daemon, &live), limits, own_uid);
    tokio::spawn(wire::serve(listener, wire, closing));
}

fn not_inside() -> RpcError {
    let message = "denied: only processes of the script may use its channel";
    RpcError::new(ErrorKind::Denied, message).with("reason", "not_inside")
}

/// The state of a channel.
struct Channel {
    daemon: Arc<Daemon>,
    live: Arc<LiveScript>,
}

fn methods(daemon: &Arc<Daemon>, live: &Arc<LiveScript>) -> Methods {
    let channel = Arc::new(Channel { daemon: daemon.clone(), live: live.clone() });
    let mut methods = Methods::new();
    let at = channel.clone();
    register_raw(&mut methods, "script.hello", move |_, params, peer| hello(at.clone(), params, peer));
    let at = channel.clone();
    register_raw(&mut methods, "tools.call", move |id, params, peer| call(at.clone(), id, params, peer));
    let at = channel.clone();
    register_raw(&mut methods, "tools.list", move |_, params, peer| list(at.clone(), params, peer));
    let at = channel.clone();
    register_raw(&mut methods, "script.report", move |_, params, peer| report(at.clone(), params, peer));
    let at = channel.clone();
    register_raw(&mut methods, "kernel.next", move |_, params, peer| next(at.clone(), params, peer));
    let at = channel.clone();
    register_raw(&mut methods, "kernel.stopping", move |_, params, peer| stopping(at.clone(), params, peer));
    methods
}

async fn hello(
    channel: Arc<Channel>,
    params: Option<String>,
    peer: Arc<Peer>,
) -> Result<Serialized<HelloResult>, RpcError> {
    let hello: HelloParams = parse(params.as_deref())?;
    let live = &channel.live;
    let registry = &channel.daemon.registry;
    // Before its process is recorded, nothing of the script can be connected.
    let proc = registry.find(&live.id.to_string()).ok();
    if !proc.is_some_and(|proc| registry.is_inside(peer.client(), &proc)) {
        return Err(not_inside());
    }
    if let Err(error) = live.check_token(hello.token.as_deref().unwrap_or_default()) {
        tracing::warn!(id = %live.id, pid = peer.pid, claimed = hello.pid, "a client of a channel has a wrong token");
        return Err(error);
    }
    peer.is_known.store(true, Relaxed);
    Ok(Serialized(HelloResult { script: live.id.to_string(), cwd: live.cwd.clone() }))
}

fn check_known(peer: &Peer) -> Result<(), RpcError> {
    if peer.is_known.load(Relaxed) {
        return Ok(());
    }
    let message = "denied: begin with script.hello and the token of the script";
    Err(RpcError::new(ErrorKind::Denied, message).with("reason", "token"))
}

async fn call(
    channel: Arc<Channel>,
    id: Value,
    params: Option<String>,
    peer: Arc<Peer>,
) -> Result<Serialized<CallAnswer>, RpcError> {
    check_known(&peer)?;
    let CallParams { name, args, timeout_ms, cell } = parse(params.as_deref())?;
    let id = call_id(&id)?;
    let (dispatcher, owner) = (&channel.daemon.scripts.dispatcher, &channel.live.owner);
    let cell = cell.unwrap_or_else(|| owner.present_cell());
    let request = CallRequest { id: id.clone(), name, toolset: Toolset::Toold, args, timeout_ms, cell };
    let answered = dispatcher.call(owner, request);
    tokio::pin!(answered);
    let outcome = tokio::select! {
        biased;
        outcome = &mut answered => outcome,
        () = cancel::requested() => {
            dispatcher.cancel(owner, &id, RpcError::new(ErrorKind::Cancelled, "the script cancelled the call")).await;
            answered.await
        }
    };
    answer(id, &outcome)
}

fn answer(call: String, outcome: &CallOutcome) -> Result<Serialized<CallAnswer>, RpcError> {
    let answer = match outcome {
        CallOutcome::Result(result) => CallAnswer { call, result: Some(result.clone()), file: None },
        CallOutcome::File(file) => CallAnswer { call, result: None, file: Some(file.clone()) },
        CallOutcome::Error(error) | CallOutcome::Refused(error) => return Err(error.clone()),
    };
    Ok(Serialized(answer))
}

/// Returns the id of a call: it names files, so it must be plain.
fn call_id(id: &Value) -> Result<String, RpcError> {
    let id = match id {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    if id.is_empty() || id.len() > MAX_CALL_ID_LEN || !id.bytes().all(is_plain) {
        let problem =
            format!("the id of the request is the id of the call: 1 to {MAX_CALL_ID_LEN} letters, digits, - or _");
        return Err(RpcError::param("id", problem));
    }
    Ok(id)
}

async fn list(channel: Arc<Channel>, params: Option<String>, peer: Arc<Peer>) -> Result<Serialized<Value>, RpcError> {
    check_known(&peer)?;
    let mut call: ToolsListParams = parse(params.as_deref())?;
    check_toolset(call.toolset)?;
    call.session_key = channel.live.owner.scope.session_key.clone();
    let listed = channel.daemon.scripts.dispatcher.list(&call, Some(&channel.live.spec.tools)).await?;
    serde_json::to_value(listed).map(Serialized).map_err(|e| RpcError::new(ErrorKind::Internal, e.to_string()))
}

async fn report(channel: Arc<Channel>, params: Option<String>, peer: Arc<Peer>) -> Result<Serialized<Value>, RpcError> {
    check_known(&peer)?;
    let report: Report = parse(params.as_deref())?;
    if let Report::Cell(cell) = report {
        let done = disk::call_on_disk(async move { channel.daemon.scripts.report_cell(&channel.live, cell).await });
        return done.await.map(|()| Serialized(empty_object()));
    }
    let done = disk::blocking(move || channel.daemon.scripts.report(&channel.live, report)).await;
    done.map_err(|e| RpcError::new(ErrorKind::Unavailable, format!("run the call on a thread: {e}")))??;
    Ok(Serialized(empty_object()))
}

async fn next(
    channel: Arc<Channel>,
    params: Option<String>,
    peer: Arc<Peer>,
) -> Result<Serialized<NextCell>, RpcError> {
    check_known(&peer)?;
    let NextParams { after } = parse(params.as_deref())?;
    let next = disk::call_on_disk(async move { channel.daemon.scripts.next_cell(&channel.live, after).await });
    next.await.map(Serialized)
}

async fn stopping(
    channel: Arc<Channel>,
    params: Option<String>,
    peer: Arc<Peer>,
) -> Result<Serialized<StoppingResult>, RpcError> {
    check_known(&peer)?;
    let StoppingParams { cell } = parse(params.as_deref())?;
    Ok(Serialized(StoppingResult { stopping: channel.live.stopping(cell).await? }))
}
