//! `update(state, input) → actions`: everything that `top` decides. The driver performs the actions.

mod answers;
mod keys;
mod line_keys;
mod log;
mod mouse;
#[cfg(test)]
mod tests;

use crate::model::row::{FIELDS, LIVE_FIELDS};
use crate::model::{Detail, MAX_EVENTS, Reachability, State, event_line};
use ratatui::crossterm::event::{KeyEvent, MouseEvent};
use serde_json::value::RawValue;
use serde_json::{Value, json};
use toold_proto::RpcError;

/// The delay between two lists, while something runs.
const REFRESH_MS: u64 = 1_000;
/// Ages of ended processes above a minute change no faster than this.
const SLOW_REFRESH_MS: u64 = 60_000;
/// Events that come this close together cause one list.
const EVENT_DELAY_MS: u64 = 100;
/// The delay between two questions for the sessions that have a client, while owners are shown.
const INFO_MS: u64 = 5_000;
/// A list costs at most this part of the time: less than one percent, because waking up and sending are not measured.
const COST_FACTOR: u64 = 130;
/// The longest that an event waits for its list.
const MAX_EVENT_DELAY_MS: u64 = 3_000;
/// More processes than any daemon has.
const MAX_PROCESSES: u64 = 1_000_000;
/// The number of past events to begin with.
const PAST_EVENTS: u64 = 20;

/// The calls of `top`. A number is the view that asks: answers to an earlier one are dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Call {
    Info,
    Subscribe,
    List,
    Usage,
    Log(u64),
    Older(u64),
    Lines(u64),
    Screen(u64),
    Tree,
    Edit,
    Kill,
    Restart,
    Forget,
    Submit,
    Grep(u64),
}

/// One thing that happened.
pub enum Input {
    Key(KeyEvent),
    Paste(String),
    Mouse(MouseEvent),
    Resize(u16, u16),
    /// A timer is due.
    Tick,
    Connected,
    Disconnected,
    Answer(Call, Result<Box<RawValue>, RpcError>),
    Event(Box<RawValue>),
    /// Another program had the terminal, and this is how it went.
    Resumed(Option<String>),
}

/// One thing to do.
#[derive(Debug, PartialEq)]
pub enum Action {
    Send(Call, &'static str, Value),
    /// Starts a process again; an ended one gets our environment.
    Restart {
        id: String,
        with_env: bool,
    },
    Cancel(Call),
    Attach(String),
    /// Opens a copy of these files in an editor or a pager.
    Edit {
        name: String,
        files: Vec<String>,
    },
    Copy(String),
    Suspend,
    Redraw,
    Quit,
}

pub fn update(state: &mut State, input: Input) -> Vec<Action> {
    let mut actions = Vec::new();
    match input {
        Input::Key(key) => keys::press(state, key, &mut actions),
        Input::Paste(text) => line_keys::paste(state, &text),
        Input::Mouse(event) => mouse::on_mouse(state, event, &mut actions),
        Input::Resize(columns, lines) => (state.columns, state.lines) = (columns, lines),
        Input::Tick => {}
        Input::Connected => on_connected(state, &mut actions),
        Input::Disconnected => on_disconnected(state),
        Input::Answer(call, outcome) => answers::on_answer(state, call, outcome, &mut actions),
        Input::Event(event) => on_event(state, &event),
        Input::Resumed(failure) => {
            failure.into_iter().for_each(|text| state.notify(text));
            state.timers.list_at = Some(state.now_ms);
        }
    }
    log::sync(state, &mut actions);
    state.notice.take_if(|(_, until)| *until <= state.now_ms);
    state.timers.drawn_ms = state.now_ms;
    if state.link == Reachability::Up {
        send_due(state, &mut actions);
    }
    scroll_to_cursor(state);
    actions
}

/// Formats a number of processes.
fn processes(n: u64) -> String {
    if n == 1 { "1 process".into() } else { format!("{n} processes") }
}

/// Returns the time of the next timer.
pub fn deadline(state: &State) -> Option<u64> {
    let mut due = vec![state.notice.as_ref().map(|(_, until)| *until)];
    if state.link == Reachability::Up {
        due.push(state.timers.list_at.filter(|_| !state.timers.list_pending));
        due.push(state.timers.log_at.filter(|_| !state.timers.log_pending));
        due.push(usage_due(state));
        due.push(info_due(state));
    } else {
        // The time since it went away is shown.
        due.push(Some(state.timers.drawn_ms + REFRESH_MS));
    }
    let is_young = |row: &crate::model::row::Row| {
        row.ended_ms.is_some_and(|ended| state.now_ms.saturating_sub(ended) < SLOW_REFRESH_MS)
    };
    let ages = if state.rows.iter().any(is_young) { REFRESH_MS } else { SLOW_REFRESH_MS };
    let ages = ages.max(state.timers.frame_us * COST_FACTOR / 1000);
    due.push((!state.rows.is_empty()).then_some(state.timers.drawn_ms + ages));
    due.into_iter().flatten().min()
}

fn usage_due(state: &State) -> Option<u64> {
    let timers = &state.timers;
    let is_free = state.has_running() && !timers.usage_pending && !timers.list_pending;
    is_free.then(|| timers.listed_ms + REFRESH_MS.max(timers.cost_us * COST_FACTOR / 1000))
}

fn info_due(state: &State) -> Option<u64> {
    (state.by_owner && !state.timers.info_pending).then_some(state.timers.info_ms + INFO_MS)
}

fn send_due(state: &mut State, actions: &mut Vec<Action>) {
    let now = state.now_ms;
    if state.timers.list_at.is_some_and(|at| at <= now) && !state.timers.list_pending {
        state.timers.list_at = None;
        state.timers.list_pending = true;
        actions.push(Action::Send(Call::List, "list", list_params(state)));
    } else if usage_due(state).is_some_and(|at| at <= now) {
        state.timers.usage_pending = true;
        let params = json!({"usage": true, "status": "running", "limit": MAX_PROCESSES});
        actions.push(Action::Send(Call::Usage, "list", with_fields(state, params, &LIVE_FIELDS)));
        ask_tree(state, actions);
    }
    if info_due(state).is_some_and(|at| at <= now) {
        ask_info(state, actions);
    }
    if state.timers.log_at.is_some_and(|at| at <= now) && !state.timers.log_pending {
        log::read_on(state, actions);
    }
}

fn list_params(state: &State) -> Value {
    let today = state.now_ms.saturating_sub(state.midnight_ms).max(crate::model::arrangement::RECENT_MS);
    let params = json!({"usage": true, "limit": MAX_PROCESSES, "ended_within_ms": today});
    with_fields(state, params, &FIELDS)
}

fn with_fields(state: &State, mut params: Value, fields: &[&str]) -> Value {
    if !state.timers.all_fields {
        params["fields"] = json!(fields);
    }
    if let Some(session) = &state.session {
        params["session_key"] = json!(session);
    }
    params
}

fn ask_info(state: &mut State, actions: &mut Vec<Action>) {
    state.timers.info_pending = true;
    actions.push(Action::Send(Call::Info, "daemon.info", json!({})));
}

/// Asks for the tree of the current process, if it is shown.
fn ask_tree(state: &mut State, actions: &mut Vec<Action>) {
    let Some(id) = state.current().cloned() else { return };
    if state.detail == Detail::Tree && !state.timers.inspect_pending {
        state.timers.inspect_pending = true;
        actions.push(Action::Send(Call::Tree, "inspect", json!({"id": id, "fields": ["id", "tree"]})));
    }
}

fn on_connected(state: &mut State, actions: &mut Vec<Action>) {
    state.link = Reachability::Up;
    let (generation, grep) = (state.timers.log_generation, state.timers.grep_generation);
    let cost_us = state.timers.cost_us;
    state.timers =
        crate::model::Timers { log_generation: generation, grep_generation: grep, cost_us, ..Default::default() };
    state.timers.log_at = state.log.as_ref().filter(|log| !log.complete).map(|_| state.now_ms);
    if let Some(log) = &mut state.log {
        log.page_pending = false;
    }
    ask_info(state, actions);
}

fn on_disconnected(state: &mut State) {
    if state.link == Reachability::Up {
        state.link = Reachability::Lost { since_ms: state.now_ms };
    }
    if let Some(grep) = &mut state.grep {
        grep.pending = 0;
    }
}

fn on_event(state: &mut State, event: &RawValue) {
    let delay = (state.timers.cost_us * COST_FACTOR / 4000).clamp(EVENT_DELAY_MS, MAX_EVENT_DELAY_MS);
    let at = state.now_ms.max(state.timers.listed_ms + delay.saturating_sub(EVENT_DELAY_MS)) + EVENT_DELAY_MS;
    state.timers.list_at = Some(state.timers.list_at.map_or(at, |due| due.min(at)));
    let Ok(event) = serde_json::from_str::<Value>(event.get()) else { return };
    let Some(line) = event_line::read(&event) else { return };
    if state.last_seq.is_some_and(|last| line.seq <= last) {
        return;
    }
    state.last_seq = Some(line.seq);
    // The end of the output follows every exit.
    if event["type"] != "closed" {
        state.events.push_back(line);
        if state.events.len() > MAX_EVENTS {
            state.events.pop_front();
        }
    }
}

/// Keeps the cursor inside of the list on the screen.
fn scroll_to_cursor(state: &mut State) {
    let height = usize::from(crate::layout::layout(state).list.height).max(1);
    let Some(at) = state.cursor_line() else {
        state.list_top = 0;
        return;
    };
    // The heading of an owner is shown with its first process.
    let first = if at > 0 && state.shown[at - 1].id().is_none() && height > 1 { at - 1 } else { at };
    state.list_top = state.list_top.clamp((at + 1).saturating_sub(height), first);
    state.list_top = state.list_top.min(state.shown.len().saturating_sub(height));
}
