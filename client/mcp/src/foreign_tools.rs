//! `--tools`: the tools of the daemon's dispatcher, native and of others, with flat schemas, called under the session's policy.

use crate::approval;
use crate::call::Call;
use crate::daemon_link::{Cancel, DaemonAddress, DaemonLink, Failure, Tick};
use crate::flat_schema::flatten;
use crate::message::Era;
use crate::reply::{MAX_OUTPUT_CHARS, Reply, keep_begin};
use crate::retry_key::timed_key;
use crate::server::Server;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant, SystemTime};

/// The interval of looks at questions that a running call waits for.
const QUESTION_CHECK: Duration = Duration::from_millis(300);
/// The longest call.
const MAX_CALL_TIME: Duration = Duration::from_secs(3600);

/// A call that runs in a thread of its own, so that it goes on while the client asks its user.
#[derive(Default)]
struct RunningCall {
    result: Mutex<Option<Result<Value, Failure>>>,
    done: Condvar,
}

/// The dispatcher's tools that this server offers.
#[derive(Default)]
pub struct ForeignTools {
    /// The daemon's name of each tool by the name in the list.
    names: Mutex<BTreeMap<String, String>>,
    running: Mutex<BTreeMap<String, Arc<RunningCall>>>,
}

/// Returns the definitions, and remembers their names.
pub fn list(server: &Server, link: &mut DaemonLink<'_>, session: &str) -> Result<Vec<Value>, Failure> {
    let listed = link.call("tools.list", &json!({"format": "mcp", "session_key": session}))?;
    let mut names = BTreeMap::new();
    let mut definitions = Vec::new();
    for definition in listed["tools"].as_array().into_iter().flatten() {
        let Some(name) = definition["name"].as_str() else { continue };
        let ours = listed["names"][name].as_str().unwrap_or(name);
        let is_chosen = server.options.tools.iter().any(|wanted| wanted == "all" || wanted == name || wanted == ours);
        let is_allowed = !server.options.read_only || definition["annotations"]["readOnlyHint"] == json!(true);
        if is_chosen && is_allowed {
            names.insert(name.to_owned(), ours.to_owned());
            definitions.push(flat_definition(definition));
        }
    }
    *server.foreign.names.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = names;
    Ok(definitions)
}

/// Returns a definition with a flat schema, and without a schema of its result: agents would show that alone.
fn flat_definition(definition: &Value) -> Value {
    let mut flat = definition.clone();
    if let Some(object) = flat.as_object_mut() {
        object.remove("outputSchema");
        let schema = object.get("inputSchema").map(flatten).unwrap_or_default();
        object.insert("inputSchema".into(), schema);
    }
    flat
}

/// Returns the daemon's name of a tool. None: it is not offered.
pub fn find(server: &Server, link: &mut DaemonLink<'_>, session: &str, name: &str) -> Option<String> {
    if server.options.tools.is_empty() {
        return None;
    }
    let known = || server.foreign.names.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).get(name).cloned();
    known().or_else(|| {
        list(server, link, session).ok()?;
        known()
    })
}

/// Calls a tool. `state` is that of a call which is made again with the answers of the user.
pub fn run(
    server: &Server,
    call: &mut Call<'_>,
    tool: &str,
    arguments: &Map<String, Value>,
    state: Option<&str>,
) -> Result<Reply, Failure> {
    let request_id = state.map_or_else(|| timed_key(&call.key, SystemTime::now()), str::to_owned);
    let args: Map<String, Value> =
        arguments.iter().filter(|(name, _)| *name != "_session").map(|(k, v)| (k.clone(), v.clone())).collect();
    let params =
        json!({"name": tool, "args": args, "session_key": call.session, "cwd": call.cwd, "request_id": request_id});
    let running = start(server, call.address, &request_id, params);
    let (begin, mut asked) = (Instant::now(), Vec::new());
    let bound = call.bound(None).time;
    loop {
        if let Some(result) = running.take_within(QUESTION_CHECK) {
            server.foreign.forget(&request_id);
            return result.map(|answer| reply(&answer));
        }
        if call.cancel.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        let left = bound.saturating_sub(begin.elapsed());
        if left.is_zero() {
            let text = format!("{tool} still runs; make the same call again with the same id for its result (timeout)");
            return Ok(Reply::error(text));
        }
        let Some(question) = approval::next_question(&mut call.link, &call.session, &asked) else { continue };
        asked.push(question.id.clone());
        if call.client.has_elicitation() && call.era == Era::Modern {
            let input_required = approval::input_required(&question, &request_id);
            return Ok(Reply { input_required: Some(input_required), ..Reply::default() });
        }
        let decision = approval::ask(server, call, &question, left);
        question.decide(&mut call.link, decision)?;
    }
}

/// Starts the call, or finds the one that runs.
fn start(server: &Server, address: &DaemonAddress, request_id: &str, params: Value) -> Arc<RunningCall> {
    let mut calls = server.foreign.running.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(running) = calls.get(request_id) {
        return running.clone();
    }
    let running = Arc::new(RunningCall::default());
    calls.insert(request_id.to_owned(), running.clone());
    let (shared, address) = (running.clone(), address.clone());
    std::thread::spawn(move || {
        let cancel = Cancel::default();
        let mut link = DaemonLink::new(&address, &cancel);
        let patience = Duration::from_secs(30);
        let result = link.call_waiting("tools.call", |_| params.clone(), MAX_CALL_TIME, patience, |_| Tick::GoOn);
        *shared.result.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Some(result);
        shared.done.notify_all();
    });
    running
}

impl RunningCall {
    fn take_within(&self, time: Duration) -> Option<Result<Value, Failure>> {
        let result = self.result.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let (mut result, _) = self
            .done
            .wait_timeout_while(result, time, |result| result.is_none())
            .unwrap_or_else(|poisoned| poisoned.into_inner());
        result.take()
    }
}

impl ForeignTools {
    fn forget(&self, request_id: &str) {
        self.running.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).remove(request_id);
    }
}

/// Makes the text of a result: a text as it is, anything else as compact JSON.
fn reply(answer: &Value) -> Reply {
    let text = match &answer["result"] {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let (kept, is_cut) = keep_begin(&text, MAX_OUTPUT_CHARS);
    let mut reply = Reply::line(kept);
    if is_cut {
        reply.push(format!("[cut to {MAX_OUTPUT_CHARS} of {} characters]", text.chars().count()));
    }
    reply
}
