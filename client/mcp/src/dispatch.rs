//! The methods of the protocol, and the forms of their results in both eras.

use crate::approval;
use crate::call::Call;
use crate::catalog;
use crate::client::Handshake;
use crate::daemon_link::{Cancel, Failure};
use crate::foreign_tools;
use crate::message::{
    self, Era, LEGACY_VERSIONS, METHOD_NOT_FOUND, MODERN_VERSION, ProtocolError, Request, TASKS_EXTENSION,
};
use crate::reply::{Reply, Stated};
use crate::resources;
use crate::retry_key::retry_key;
use crate::server::Server;
use crate::subscriptions::{self, Listen};
use crate::tasks;
use crate::tools;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// The time for which a list that never changes may be kept.
const STABLE_TTL_MS: u64 = 3_600_000;
/// The time for which a list of tools of others may be kept.
const TOOLS_TTL_MS: u64 = 10_000;

pub fn server_info() -> Value {
    json!({"name": "toold", "title": "toold", "version": env!("CARGO_PKG_VERSION")})
}

/// Reports whether a method may wait: for the daemon, a process or a person.
pub fn needs_thread(method: &str) -> bool {
    matches!(
        method,
        "tools/list"
            | "tools/call"
            | "resources/list"
            | "resources/read"
            | "tasks/get"
            | "tasks/update"
            | "tasks/cancel"
    )
}

/// Answers a request. None: the answer was sent already, or comes later, or is not wanted any more.
pub fn answer(server: &Arc<Server>, request: &Request, cancel: &Cancel) -> Option<Value> {
    if let Err(error) = request.check_version() {
        return Some(message::error(&request.id, &error));
    }
    let result = match (request.method.as_str(), request.era) {
        ("initialize", Era::Legacy) => Ok(initialize(server, request)),
        ("ping", Era::Legacy) => Ok(json!({})),
        ("server/discover", _) => Ok(discover(server)),
        ("tools/list", _) => tools_list(server, request, cancel),
        ("tools/call", _) => return call_tool(server, request, cancel),
        ("resources/list", _) => {
            let listed = resources::list(&mut server.call(request, &Map::new(), cancel));
            listed.map(|list| cacheable(list, 0, "private"))
        }
        ("resources/templates/list", _) => Ok(cacheable(resources::templates(), STABLE_TTL_MS, "public")),
        ("resources/read", _) => match request.text("uri") {
            None => Err(ProtocolError::params("`uri` is missing")),
            Some(uri) => {
                let read = resources::read(&mut server.call(request, &Map::new(), cancel), uri);
                read.map(|content| cacheable(content, 0, "private"))
            }
        },
        ("resources/subscribe" | "resources/unsubscribe", Era::Legacy) => subscribe(server, request),
        ("subscriptions/listen", Era::Modern) => match listen(server, request) {
            Ok(()) => return None,
            Err(error) => Err(error),
        },
        ("tasks/get" | "tasks/update" | "tasks/cancel", Era::Modern) => return task_method(server, request, cancel),
        (other, _) => Err(ProtocolError::new(METHOD_NOT_FOUND, format!("there is no method {other:?} here"))),
    };
    Some(match result {
        Ok(result) => message::result(&request.id, in_era(result, request.era)),
        Err(error) => message::error(&request.id, &error),
    })
}

/// Adds what every result of the newer era has; takes away what the older one does not know.
fn in_era(mut result: Value, era: Era) -> Value {
    let Some(object) = result.as_object_mut() else { return result };
    match era {
        Era::Modern => {
            object.entry("resultType").or_insert_with(|| "complete".into());
            let meta = object.entry("_meta").or_insert_with(|| json!({}));
            meta[message::own_key("serverInfo")] = server_info();
        }
        Era::Legacy => {
            object.remove("ttlMs");
            object.remove("cacheScope");
        }
    }
    result
}

fn cacheable(mut result: Value, ttl_ms: u64, scope: &str) -> Value {
    result["ttlMs"] = json!(ttl_ms);
    result["cacheScope"] = json!(scope);
    result
}

fn capabilities(server: &Server, era: Era) -> Value {
    let tools = if server.options.tools.is_empty() { json!({}) } else { json!({"listChanged": true}) };
    let mut capabilities = json!({"tools": tools, "resources": {"subscribe": true, "listChanged": true}});
    if era == Era::Modern {
        capabilities["extensions"] = json!({TASKS_EXTENSION: {}});
    }
    capabilities
}

fn initialize(server: &Server, request: &Request) -> Value {
    let requested = request.text("protocolVersion").unwrap_or_default();
    let version = LEGACY_VERSIONS.into_iter().find(|version| *version == requested).unwrap_or(LEGACY_VERSIONS[0]);
    let client = request.params.get("clientInfo").and_then(|info| info["name"].as_str()).map(str::to_owned);
    let capabilities_of_client = request.params.get("capabilities").cloned().unwrap_or_default();
    server.set_handshake(Handshake { client, capabilities: capabilities_of_client });
    json!({
        "protocolVersion": version,
        "capabilities": capabilities(server, Era::Legacy),
        "serverInfo": server_info(),
        "instructions": catalog::INSTRUCTIONS,
    })
}

fn discover(server: &Server) -> Value {
    let found = json!({
        "supportedVersions": [MODERN_VERSION],
        "capabilities": capabilities(server, Era::Modern),
        "instructions": catalog::INSTRUCTIONS,
    });
    cacheable(found, STABLE_TTL_MS, "public")
}

fn tools_list(server: &Server, request: &Request, cancel: &Cancel) -> Result<Value, ProtocolError> {
    let mut tools: Vec<Value> =
        catalog::offered(server.options.read_only).map(catalog::ToolEntry::definition).collect();
    if server.options.tools.is_empty() {
        return Ok(cacheable(json!({ "tools": tools }), STABLE_TTL_MS, "public"));
    }
    let call = server.call(request, &Map::new(), cancel);
    // Only the daemon knows these tools, so it is started for the list.
    let mut link = crate::daemon_link::DaemonLink::new(&server.address, cancel);
    let listed = foreign_tools::list(server, &mut link, &call.session);
    tools.extend(listed.map_err(|failure| ProtocolError::new(message::INTERNAL_ERROR, failure.to_string()))?);
    Ok(cacheable(json!({ "tools": tools }), TOOLS_TTL_MS, "private"))
}

fn subscribe(server: &Arc<Server>, request: &Request) -> Result<Value, ProtocolError> {
    let uri = request.text("uri").ok_or_else(|| ProtocolError::params("`uri` is missing"))?;
    if resources::Subject::parse(uri).is_none() {
        return Err(ProtocolError { data: Some(json!({ "uri": uri })), ..ProtocolError::params("Resource not found") });
    }
    if request.method == "resources/unsubscribe" {
        server.subscriptions.unsubscribe(uri);
        return Ok(json!({}));
    }
    server.subscriptions.subscribe(uri);
    subscriptions::follow_log(server, uri);
    let cancel = Cancel::default();
    subscriptions::follow_session(server, &server.call(request, &Map::new(), &cancel).session);
    Ok(json!({}))
}

/// Opens a stream of notifications: the acknowledgement first.
fn listen(server: &Arc<Server>, request: &Request) -> Result<(), ProtocolError> {
    let cancel = Cancel::default();
    let call = server.call(request, &Map::new(), &cancel);
    let wanted = request.params.get("notifications").cloned().unwrap_or_default();
    let texts = |key: &str| -> Vec<String> {
        wanted[key].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    let tasks = texts("taskIds");
    if !tasks.is_empty() && !call.client.has_tasks() {
        return Err(ProtocolError::missing_tasks());
    }
    let uris: Vec<String> =
        texts("resourceSubscriptions").into_iter().filter(|uri| resources::Subject::parse(uri).is_some()).collect();
    let listen = Listen {
        id: request.id.clone(),
        resources_list: wanted["resourcesListChanged"] == json!(true),
        tools_list: wanted["toolsListChanged"] == json!(true) && !server.options.tools.is_empty(),
        uris: uris.iter().cloned().collect(),
        tasks: tasks.iter().cloned().collect(),
    };
    let mut honoured = Map::new();
    for (key, value) in [
        ("toolsListChanged", listen.tools_list.then_some(json!(true))),
        ("resourcesListChanged", listen.resources_list.then_some(json!(true))),
        ("resourceSubscriptions", (!uris.is_empty()).then(|| json!(uris))),
        ("taskIds", (!tasks.is_empty()).then(|| json!(tasks))),
    ] {
        honoured.extend(value.map(|value| (key.to_owned(), value)));
    }
    let meta = json!({message::own_key("subscriptionId"): request.id});
    let acknowledged = json!({"_meta": meta, "notifications": honoured});
    server.subscriptions.add_listen(listen, || {
        server.output.notify("notifications/subscriptions/acknowledged", acknowledged);
    });
    subscriptions::follow_session(server, &call.session);
    uris.iter().for_each(|uri| subscriptions::follow_log(server, uri));
    Ok(())
}

/// Calls a tool, and sends the result with its trailer. Returns only errors of the protocol.
fn call_tool(server: &Arc<Server>, request: &Request, cancel: &Cancel) -> Option<Value> {
    let Some(name) = request.text("name") else {
        return Some(message::error(&request.id, &ProtocolError::params("`name` is missing")));
    };
    let arguments = match request.params.get("arguments") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(_) => return Some(message::error(&request.id, &ProtocolError::params("`arguments` must be an object"))),
    };
    let mut call = server.call(request, &arguments, cancel);
    call.key = retry_key(&call.session, &request.id, name, &arguments, &call.cwd);
    let reply = match run_tool(server, request, name, &arguments, &mut call) {
        None => return Some(message::error(&request.id, &ProtocolError::params(format!("there is no tool {name:?}")))),
        Some(Ok(reply)) => reply,
        Some(Err(Failure::Cancelled)) => return None,
        // No daemon, no events.
        Some(Err(failure @ Failure::Unreachable(_))) => {
            let result = in_era(Reply::error(failure.to_string()).call_result(None), request.era);
            return Some(message::result(&request.id, result));
        }
        Some(Err(failure)) => Reply::error(failure.to_string()),
    };
    if cancel.is_cancelled() {
        return None;
    }
    subscriptions::follow_session(server, &call.session);
    send_reply(server, request, &mut call, reply);
    None
}

/// Runs a tool. None: there is no such tool here.
fn run_tool(
    server: &Arc<Server>,
    request: &Request,
    name: &str,
    arguments: &Map<String, Value>,
    call: &mut Call<'_>,
) -> Option<Result<Reply, Failure>> {
    if let Some(tool) = catalog::TOOLS.iter().find(|tool| tool.name == name) {
        if server.options.read_only && !tool.is_read_only {
            let text = format!("{name} is not offered: this server only reads (denied)");
            return Some(Ok(Reply::error(text)));
        }
        let answers = request.params.get("inputResponses").and_then(Value::as_object);
        if let Some(answers) = answers
            && let Err(failure) = approval::apply_answers(call, answers)
        {
            return Some(Err(failure));
        }
        // A call that is made again with answers has another id, and is the same call.
        if let Some(state) = request.text("requestState").filter(|_| answers.is_some()) {
            call.key = state.to_owned();
        }
        let reply = tools::run(name, arguments, call)?;
        return Some(reply.and_then(|reply| settle_approval(server, call, name, arguments, reply)));
    }
    let tool = foreign_tools::find(server, &mut call.link, &call.session, name)?;
    let answers = request.params.get("inputResponses").and_then(Value::as_object);
    if let Some(answers) = answers
        && let Err(failure) = approval::apply_answers(call, answers)
    {
        return Some(Err(failure));
    }
    Some(foreign_tools::run(server, call, &tool, arguments, request.text("requestState")))
}

/// Has a start that waits for a person decided by the form of the client, where it has one.
fn settle_approval(
    server: &Server,
    call: &mut Call<'_>,
    name: &str,
    arguments: &Map<String, Value>,
    mut reply: Reply,
) -> Result<Reply, Failure> {
    let Some(id) = reply.stated.approvals.first().cloned().filter(|_| name == "proc_start") else { return Ok(reply) };
    let Some(question) = approval::question(&mut call.link, &id)? else { return Ok(reply) };
    if call.client.has_elicitation() && call.era == Era::Modern {
        return Ok(Reply { input_required: Some(approval::input_required(&question, &call.key)), ..Reply::default() });
    }
    let time = call.bound(None).time;
    match approval::ask(server, call, &question, time) {
        approval::Decision::Open => {
            reply.push(question.line());
            Ok(reply)
        }
        decision => {
            question.decide(&mut call.link, decision)?;
            // The same call again: it finds its process, which runs now or was denied.
            let mut decided = match tools::run(name, arguments, call).unwrap_or(Ok(Reply::default())) {
                Ok(decided) => decided,
                Err(failure @ Failure::Refused(_)) => {
                    let exits = reply.process.into_iter().collect();
                    Reply { stated: Stated { exits, ..Stated::default() }, ..Reply::error(failure.to_string()) }
                }
                Err(failure) => return Err(failure),
            };
            decided.stated.approvals.push(id);
            Ok(decided)
        }
    }
}

/// Sends the result. What it reports is acknowledged once the client has read it.
fn send_reply(server: &Server, request: &Request, call: &mut Call<'_>, reply: Reply) {
    if let Some(input_required) = reply.input_required {
        let _ = server.output.send(&message::result(&request.id, in_era(input_required, request.era)));
        return;
    }
    let session = call.session.clone();
    let trailer = server.carrier.trailer(&mut call.link, &server.address, &session, reply.stated.clone());
    let result = match &reply.task {
        // A task has no text: the events wait for the next result.
        Some(process) => {
            drop(trailer);
            let _ = server.output.send(&message::result(&request.id, in_era(tasks::created(process), request.era)));
            return;
        }
        None => in_era(reply.call_result(trailer.line.as_deref()), request.era),
    };
    if let Ok(mark) = server.output.send(&message::result(&request.id, result)) {
        trailer.written(mark);
    }
}

fn task_method(server: &Arc<Server>, request: &Request, cancel: &Cancel) -> Option<Value> {
    let mut call = server.call(request, &Map::new(), cancel);
    let Some(id) = request.text("taskId") else {
        return Some(message::error(&request.id, &ProtocolError::params("`taskId` is missing")));
    };
    let is_refused = server.options.read_only && request.method != "tasks/get";
    let empty = Map::new();
    let result = match request.method.as_str() {
        _ if is_refused => Err(ProtocolError::params("this server only reads")),
        "tasks/get" => tasks::get(&mut call, id),
        "tasks/update" => {
            let answers = request.params.get("inputResponses").and_then(Value::as_object).unwrap_or(&empty);
            tasks::update(&mut call, id, answers).map(|()| (json!({}), None))
        }
        _ => tasks::cancel(&mut call, id).map(|()| (json!({}), None)),
    };
    match result {
        Err(error) => Some(message::error(&request.id, &error)),
        Ok((task, None)) => Some(message::result(&request.id, in_era(task, request.era))),
        Ok((task, Some(reply))) => {
            // This reports the end of the process; a trailer does not report it once more.
            let session = call.session.clone();
            let stated = Stated { questions: Vec::new(), ..reply.stated };
            let mut trailer = server.carrier.trailer(&mut call.link, &server.address, &session, stated);
            trailer.report_nothing();
            if let Ok(mark) = server.output.send(&message::result(&request.id, in_era(task, request.era))) {
                trailer.written(mark);
            }
            None
        }
    }
}
