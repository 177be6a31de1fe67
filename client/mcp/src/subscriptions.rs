//! Notifications that a client asked for: changes of the list of processes, of their logs and states, and of tasks. One thread
//! follows the events of a session, one more each subscribed log.

use crate::daemon_link::{Cancel, DaemonLink};
use crate::message::own_key;
use crate::output::Output;
use crate::resources::{LIST_URI, Subject, process_uri};
use crate::server::Server;
use crate::sys;
use crate::view::Process;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use toold_client::blocking::{CallError, Client, Message};

/// The shortest time between two notifications about a log.
const LOG_INTERVAL: Duration = Duration::from_secs(1);
/// The time of one look at a log. Only a bound: it answers at the first output.
const LOG_WAIT_MS: u64 = 20_000;
/// The time between two attempts to reach a daemon. None is started for a notification.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// The most sessions and logs that are followed.
const MAX_FOLLOWED: usize = 64;

/// A stream of `subscriptions/listen`.
#[derive(Debug, Clone)]
pub struct Listen {
    pub id: Value,
    pub resources_list: bool,
    pub tools_list: bool,
    pub uris: BTreeSet<String>,
    pub tasks: BTreeSet<String>,
}

#[derive(Default)]
struct State {
    /// The older era: every change of the list is reported.
    has_handshake: bool,
    legacy_uris: BTreeSet<String>,
    listens: BTreeMap<String, Listen>,
    followed_sessions: BTreeSet<String>,
    followed_logs: BTreeSet<String>,
}

/// All subscriptions of the client.
#[derive(Default)]
pub struct Subscriptions(Mutex<State>);

impl Subscriptions {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub fn set_handshake(&self) {
        self.lock().has_handshake = true;
    }

    pub fn subscribe(&self, uri: &str) {
        self.lock().legacy_uris.insert(uri.to_owned());
    }

    pub fn unsubscribe(&self, uri: &str) {
        self.lock().legacy_uris.remove(uri);
    }

    /// Adds a stream. `acknowledge` is sent before anything else of it, and no end of the server comes between.
    pub fn add_listen(&self, listen: Listen, acknowledge: impl FnOnce()) {
        let mut state = self.lock();
        acknowledge();
        state.listens.insert(listen.id.to_string(), listen);
    }

    /// Ends a stream. Returns false if there is none.
    pub fn end_listen(&self, id: &Value) -> bool {
        self.lock().listens.remove(&id.to_string()).is_some()
    }

    /// Takes all streams out, for the end of the server.
    pub fn take_listens(&self) -> Vec<Listen> {
        std::mem::take(&mut self.lock().listens).into_values().collect()
    }

    fn wants(&self, uri: &str) -> bool {
        let state = self.lock();
        state.legacy_uris.contains(uri) || state.listens.values().any(|listen| listen.uris.contains(uri))
    }

    /// Sends a notification to the older era if it wants it, and to each stream that does.
    fn send(
        &self,
        output: &Output,
        method: &str,
        params: &Value,
        legacy: impl Fn(&State) -> bool,
        stream: impl Fn(&Listen) -> bool,
    ) {
        let (is_legacy, ids): (bool, Vec<Value>) = {
            let state = self.lock();
            (
                legacy(&state),
                state.listens.values().filter(|listen| stream(listen)).map(|listen| listen.id.clone()).collect(),
            )
        };
        if is_legacy {
            output.notify(method, params.clone());
        }
        for id in ids {
            let mut params = params.clone();
            params["_meta"] = json!({own_key("subscriptionId"): id});
            output.notify(method, params);
        }
    }

    fn list_changed(&self, output: &Output) {
        let method = "notifications/resources/list_changed";
        self.send(output, method, &json!({}), |state| state.has_handshake, |listen| listen.resources_list);
        self.updated(output, LIST_URI);
    }

    fn tools_changed(&self, output: &Output) {
        let method = "notifications/tools/list_changed";
        self.send(output, method, &json!({}), |state| state.has_handshake, |listen| listen.tools_list);
    }

    fn updated(&self, output: &Output, uri: &str) {
        let (method, params) = ("notifications/resources/updated", json!({ "uri": uri }));
        self.send(output, method, &params, |state| state.legacy_uris.contains(uri), |listen| listen.uris.contains(uri));
    }

    fn wants_task(&self, id: &str) -> bool {
        self.lock().listens.values().any(|listen| listen.tasks.contains(id))
    }
}

/// Follows the events of a session from now on. Called after a call that reached the daemon.
pub fn follow_session(server: &Arc<Server>, session: &str) {
    {
        let mut state = server.subscriptions.lock();
        if state.followed_sessions.len() >= MAX_FOLLOWED || !state.followed_sessions.insert(session.to_owned()) {
            return;
        }
    }
    let (server, session) = (server.clone(), session.to_owned());
    std::thread::spawn(move || {
        let mut is_first = true;
        loop {
            if let Ok(mut client) = Client::connect(&server.address.socket) {
                if !is_first {
                    // Events of the meantime are not replayed here.
                    server.subscriptions.list_changed(&server.output);
                }
                is_first = false;
                let _ = follow_events(&server, &session, &mut client);
            }
            sys::pause(RETRY_DELAY);
        }
    });
}

fn follow_events(server: &Server, session: &str, client: &mut Client) -> Result<(), CallError> {
    let types = ["started", "exited", "completion", "needs_input"];
    client.send("events.subscribe", &json!({"session_key": session, "types": types}))?;
    if !server.options.tools.is_empty() {
        client.send("events.subscribe", &json!({"types": ["tool_provider"]}))?;
    }
    loop {
        while let Some(message) = client.next_message()? {
            let Message::Push(push) = message else { continue };
            let Ok(raw) = push.outcome else { return Ok(()) };
            let event: Value = serde_json::from_str(raw.get()).unwrap_or_default();
            on_event(server, session, &event);
        }
        client.fill()?;
    }
}

fn on_event(server: &Server, session: &str, event: &Value) {
    let (subscriptions, output) = (&server.subscriptions, &server.output);
    let id = event["id"].as_str().unwrap_or_default();
    match event["type"].as_str() {
        Some("tool_provider") => return subscriptions.tools_changed(output),
        Some("started") => subscriptions.list_changed(output),
        Some("exited") => {
            subscriptions.list_changed(output);
            server.wake.exited(session);
        }
        Some("completion") => return server.wake.exited(session),
        // A question changes the process alone.
        _ => {}
    }
    subscriptions.updated(output, &process_uri(id));
    if subscriptions.wants_task(id) {
        send_task(server, session, id);
    }
}

/// Sends the state of a task to the streams that want it.
fn send_task(server: &Server, session: &str, id: &str) {
    let Some((task, _)) = server.task_now(session, id) else { return };
    let is_wanted = |listen: &Listen| listen.tasks.contains(id);
    server.subscriptions.send(&server.output, "notifications/tasks", &task, |_| false, is_wanted);
}

/// Follows a log while someone wants to know of it.
pub fn follow_log(server: &Arc<Server>, uri: &str) {
    let Some(Subject::Log(id)) = Subject::parse(uri) else { return };
    {
        let mut state = server.subscriptions.lock();
        if state.followed_logs.len() >= MAX_FOLLOWED || !state.followed_logs.insert(uri.to_owned()) {
            return;
        }
    }
    let (server, uri) = (server.clone(), uri.to_owned());
    std::thread::spawn(move || {
        let cancel = Cancel::default();
        let mut cursor = None;
        while server.subscriptions.wants(&uri) {
            let mut link = DaemonLink::without_start(&server.address, &cancel);
            let params = match cursor {
                None => json!({"id": id, "tail_lines": 1}),
                Some(cursor) => json!({"id": id, "cursor": cursor, "max_bytes": 65_536, "wait_ms": LOG_WAIT_MS}),
            };
            let Ok(found) = link.call("poll", &params) else {
                sys::pause(LOG_INTERVAL);
                continue;
            };
            let process = Process::read(&found);
            if cursor.is_some_and(|cursor| cursor < process.cursor) {
                server.subscriptions.updated(&server.output, &uri);
                sys::pause(LOG_INTERVAL);
            } else if process.has_ended() && cursor.is_some() {
                break;
            }
            cursor = Some(process.cursor);
        }
        server.subscriptions.lock().followed_logs.remove(&uri);
    });
}
