//! `proc_start`: starts a command once, however often the call is made, and waits for what the agent wants to know.

use crate::arguments::Arguments;
use crate::call::Call;
use crate::daemon_link::Failure;
use crate::reply::Reply;
use crate::retry_key::RETRY_TIME;
use crate::view::Process;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// The wait without `wait_s`.
const DEFAULT_WAIT_MS: u64 = 10_000;
/// The wait before a command goes on as a task, for a client that takes tasks.
const TASK_WAIT: Duration = Duration::from_secs(1);
/// The most earlier calls with the same key that are looked at.
const MAX_EARLIER_CALLS: usize = 64;
/// The output in the reply.
const SHOWN_LINES: u64 = 40;
const SHOWN_CHARS: usize = 4000;
/// The difference that the times of a process and of a call may have.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(500);
/// The start of a `ready` that is a port.
const PORT: &str = "port:";

pub fn run(mut args: Arguments<'_>, call: &mut Call<'_>) -> Result<Reply, Failure> {
    let (command, cwd, name) = (args.required_text("command"), args.text("cwd"), args.text("name"));
    let (env, wait_ms) = (args.text_map("env"), args.seconds_ms("wait_s"));
    let ready = args.pattern("ready", |text| !text.starts_with(PORT));
    let (tty, timeout_ms) = (args.flag("tty").unwrap_or(false), args.seconds_ms("timeout_s"));
    let replace = args.flag("replace").unwrap_or(false);
    args.finish().map_err(Failure::Arguments)?;
    // Checked first: a call that is refused starts nothing.
    let until = ready.as_deref().map(condition).transpose()?;
    let cwd = cwd.map_or_else(|| call.cwd.clone(), |cwd| Path::new(&call.cwd).join(cwd).display().to_string());
    let mut params = json!({
        "command": command,
        "cwd": cwd,
        "login": false,
        "notify": true,
        "session_key": call.session,
        "labels": {"client": call.client.name},
        "if_running": if replace { "restart" } else { "return" },
        "stdin": if tty { "null" } else { "pipe" },
        "env_mode": "replace",
    });
    if name.is_none() {
        // Only a name can be in use.
        params.as_object_mut().map(|params| params.remove("if_running"));
    }
    add_environment(&mut params, &env, &cwd);
    for (key, value) in [
        ("name", name.map(Value::from)),
        ("timeout_ms", timeout_ms.map(Value::from)),
        ("pty", tty.then_some(json!(true))),
    ] {
        if let Some(value) = value {
            params[key] = value;
        }
    }
    let begin = Instant::now();
    let process = start_once(call, &mut params)?;
    let is_ours = process.request_id.as_deref() == params["request_id"].as_str();
    // A request that this call itself sent again, to a daemon that was killed, is no other call.
    let is_repeated = process.existing && is_ours && age(&process) > begin.elapsed() + CLOCK_TOLERANCE;
    let mut reply = started(call, &process, wait_ms.unwrap_or(DEFAULT_WAIT_MS), until, process.existing && !is_ours)?;
    if is_repeated {
        reply.push("[this call was made before; nothing was started again]");
    }
    Ok(reply)
}

/// Starts the process of this call, or finds the one that an earlier call with this key has started within the last minutes.
fn start_once(call: &mut Call<'_>, params: &mut Value) -> Result<Process, Failure> {
    let mut key = call.key.clone();
    for _ in 0..MAX_EARLIER_CALLS {
        params["request_id"] = json!(key);
        let process = match call.link.call("exec", params) {
            Ok(found) => Process::read(&found),
            // The same call in another environment, after a restart of this server.
            Err(Failure::Refused(error)) if error.data.get("kind") == Some(&json!("conflict")) => {
                let found = error.data.get("process").map(Process::read).unwrap_or_default();
                match found.id.as_str() {
                    "" => return Err(Failure::Refused(error)),
                    id => Process { existing: true, request_id: Some(key.clone()), ..call.tail(id, 1)? },
                }
            }
            Err(failure) => return Err(failure),
        };
        let is_repeated = process.existing && process.request_id.as_deref() == Some(key.as_str());
        if !is_repeated || age(&process) <= RETRY_TIME {
            return Ok(process);
        }
        key = format!("{}-{}", call.key, process.id);
    }
    Err(Failure::Unreachable("this call was made too often".into()))
}

/// Returns the time since the start.
fn age(process: &Process) -> Duration {
    let started = toold_client::agent_events::unix_ms(&process.started_at).unwrap_or(0);
    Duration::from_millis(crate::carrier::now_ms().saturating_sub(started))
}

/// Waits for a started process, and describes it.
fn started(
    call: &mut Call<'_>,
    process: &Process,
    wait_ms: u64,
    ready: Option<Value>,
    existing: bool,
) -> Result<Reply, Failure> {
    let bound = call.bound(Some(wait_ms));
    let is_task = call.client.has_tasks();
    let time = if is_task { bound.time.min(TASK_WAIT) } else { bound.time };
    let mut extra = Vec::new();
    let mut status = "timeout".to_owned();
    if !time.is_zero() && process.pending_approval().is_none() {
        let until = ready.clone().unwrap_or_else(|| json!("exit"));
        let waited = call.wait(json!({"ids": [process.id]}), until, "any", time)?;
        status = waited.status;
        if let Some(first) = waited.processes.first().filter(|_| ready.is_some()) {
            extra.extend(readiness(&status, first));
        }
    }
    if existing {
        extra.push("it was running already".into());
    }
    let mut reply = Reply::default();
    let shown = call.show(&mut reply, &process.id, SHOWN_LINES, SHOWN_CHARS, &extra)?;
    if !shown.has_ended() && status == "timeout" {
        reply.lines.extend(bound.note());
        reply.task = is_task.then_some(shown);
    }
    Ok(reply)
}

/// Returns the condition of `ready`: a port or a regular expression.
fn condition(ready: &str) -> Result<Value, Failure> {
    match ready.strip_prefix(PORT) {
        None => Ok(json!({"match": {"regex": ready}})),
        Some(port) => match port.trim().parse::<u16>() {
            Ok(port) if port > 0 => Ok(json!({"port": port})),
            Ok(_) | Err(_) => Err(Failure::Arguments(format!("ready: {ready:?} is no port; write port:3000"))),
        },
    }
}

fn readiness(status: &str, process: &Process) -> Option<String> {
    match status {
        "matched" => Some(match (&process.listener["port"], &process.matched) {
            (Value::Number(port), _) => format!("ready: port {port}"),
            (_, Some(line)) => format!("ready: \"{}\"", crate::view::last_line(line)),
            (_, None) => "ready".to_owned(),
        }),
        "exited" => None,
        _ => Some("not ready yet".into()),
    }
}

/// Adds our environment, which is that of the agent, and the variables of the call.
fn add_environment(params: &mut Value, more: &[(String, String)], cwd: &str) {
    let (mut text, mut other) = (Map::new(), Map::new());
    for (name, value) in std::env::vars_os() {
        let Some(name) = name.to_str().filter(|name| !name.contains('=') && !name.is_empty()) else { continue };
        match value.to_str() {
            Some(value) => text.insert(name.to_owned(), value.into()),
            None => other.insert(name.to_owned(), STANDARD.encode(value.as_bytes()).into()),
        };
    }
    // As after a `cd`: programs that trust PWD would work in our directory.
    if text.contains_key("PWD") {
        text.insert("PWD".into(), cwd.into());
    }
    for (name, value) in more {
        other.remove(name);
        text.insert(name.clone(), value.clone().into());
    }
    params["env"] = Value::Object(text);
    if !other.is_empty() {
        params["env_base64"] = Value::Object(other);
    }
}
